//! What holds when a configuration says nothing, and the bounds of what it may say.

use std::num::NonZeroU32;
use std::time::Duration;

/// `shutdown_timeout`.
pub const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(30);

/// `timeouts.head` of a listener.
pub const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// `timeouts.body_idle` of a listener.
pub const BODY_IDLE_TIMEOUT: Duration = Duration::from_secs(60);
/// `timeouts.keep_alive` of a listener.
pub const CLIENT_KEEP_ALIVE_TIMEOUT: Duration = Duration::from_secs(75);
/// `timeouts.write_idle` of a listener.
pub const WRITE_IDLE_TIMEOUT: Duration = Duration::from_secs(60);

/// `min_rate.rate`, bytes per second. A modem of 1995 is 15 times faster.
pub const MIN_RATE: u64 = 128;
/// The most that `min_rate.rate` may be.
pub const MAX_RATE: u64 = 1024 * 1024 * 1024;
/// `min_rate.grace`.
pub const MIN_RATE_GRACE: Duration = Duration::from_secs(10);

/// `limits.head` in bytes.
pub const HEAD_BYTES: usize = 32 * 1024;
/// The least that `limits.head` may be.
pub const MIN_HEAD_BYTES: usize = 1024;
/// The most that `limits.head` may be: one head is held in memory as a whole.
pub const MAX_HEAD_BYTES: usize = 64 * 1024;
/// `limits.fields`.
pub const FIELDS: usize = 100;
/// The most that `limits.fields` may be.
pub const MAX_FIELDS: usize = subak_message::h1::MAX_FIELDS;
/// `limits.requests_per_connection`. Bounds how unevenly long-lived clients can sit on workers.
pub const REQUESTS_PER_CONNECTION: u32 = 10_000;

/// `proxy_protocol.timeout` of a listener.
pub const PROXY_HEADER_TIMEOUT: Duration = Duration::from_secs(5);
/// `http2.streams` of a listener.
pub const HTTP2_STREAMS: u32 = 100;
/// The most that `http2.streams` may be.
pub const MAX_HTTP2_STREAMS: u32 = 10_000;
/// `http2.stream_window` of a listener, in bytes.
pub const HTTP2_STREAM_WINDOW: u32 = 64 * 1024;
/// The least that `http2.stream_window` may be: one frame of the largest usual size.
pub const MIN_HTTP2_STREAM_WINDOW: u32 = 16 * 1024;
/// `http2.connection_window` of a listener, in bytes.
pub const HTTP2_CONNECTION_WINDOW: u32 = 1024 * 1024;
/// The least that `http2.connection_window` may be: where every connection begins.
pub const MIN_HTTP2_CONNECTION_WINDOW: u32 = 64 * 1024;
/// The most that a window may be: it is memory that a client can make Subak hold.
pub const MAX_HTTP2_WINDOW: u32 = 64 * 1024 * 1024;
/// `http2.resets` of a listener, in ten seconds.
pub const HTTP2_RESETS: NonZeroU32 = NonZeroU32::new(500).expect("not zero");
/// `http2.control_frames` of a listener, in ten seconds.
pub const HTTP2_CONTROL_FRAMES: NonZeroU32 = NonZeroU32::new(500).expect("not zero");
/// `http2.stalled_streams` of a listener.
pub const HTTP2_STALLED_STREAMS: NonZeroU32 = NonZeroU32::new(16).expect("not zero");

/// `timeouts.connect` of a pool.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// `timeouts.first_byte` of a pool.
pub const FIRST_BYTE_TIMEOUT: Duration = Duration::from_secs(60);
/// `timeouts.idle` of a pool.
pub const IDLE_TIMEOUT: Duration = Duration::from_secs(60);
/// `timeouts.tunnel` of a pool.
pub const TUNNEL_TIMEOUT: Duration = Duration::from_secs(3600);
/// `timeouts.keep_alive` of a pool. Below the 65 to 75 s after which common servers close.
pub const ENDPOINT_KEEP_ALIVE_TIMEOUT: Duration = Duration::from_secs(60);
/// `keep_alive_connections` of a pool, per endpoint and worker. A few clients with 100 streams each use
/// hundreds at once; with fewer kept, every eighth request opened a connection.
pub const KEEP_ALIVE_CONNECTIONS: usize = 1024;
/// The most that `keep_alive_connections` may be.
pub const MAX_KEEP_ALIVE_CONNECTIONS: usize = 65_536;

/// `streams.per_connection` of a pool: what common servers allow.
pub const STREAMS_PER_CONNECTION: NonZeroU32 = NonZeroU32::new(100).expect("not zero");
/// The most that `streams.per_connection` may be.
pub const MAX_STREAMS_PER_CONNECTION: u32 = 10_000;
/// The most that `streams.connections` may be.
pub const MAX_STREAMS_CONNECTIONS: u32 = 64;
/// `streams.window` of a pool.
pub const STREAM_WINDOW_BYTES: u32 = 64 * 1024;
/// The least that `streams.window` may be: what one frame may hold.
pub const MIN_STREAM_WINDOW_BYTES: u32 = 16 * 1024;
/// The most that `streams.window` may be: it is held in memory for each request under way.
pub const MAX_STREAM_WINDOW_BYTES: u32 = 16 * 1024 * 1024;

/// `queue.length` of a pool.
pub const QUEUE_LENGTH: usize = 1000;
/// The most that `queue.length` may be.
pub const MAX_QUEUE_LENGTH: usize = 1_000_000;
/// `queue.timeout` of a pool.
pub const QUEUE_TIMEOUT: Duration = Duration::from_secs(5);
/// `queue.outage` of a pool: what a program takes to be started anew, and what a client hardly notices.
pub const QUEUE_OUTAGE: Duration = Duration::from_secs(1);
/// The most that `queue.outage` may be.
pub const MAX_QUEUE_OUTAGE: Duration = Duration::from_secs(60);

/// `retry.budget` of a pool, retries for each thousand requests (0.2).
pub const RETRY_BUDGET_PER_MILLE: u32 = 200;
/// `retry.min_per_second` of a pool.
pub const RETRY_MIN_PER_SECOND: u32 = 10;
/// `retry.attempts` of a pool, the first one included.
pub const RETRY_ATTEMPTS: u32 = 3;
/// The most that `retry.attempts` may be.
pub const MAX_RETRY_ATTEMPTS: u32 = 16;
/// `retry.body` of a pool in bytes.
pub const RETRY_BODY_BYTES: usize = 64 * 1024;
/// The most that `retry.body` may be: it is held in memory for each request under way.
pub const MAX_RETRY_BODY_BYTES: usize = 1024 * 1024;

/// `acme.back_off.initial`.
pub const ACME_BACK_OFF_INITIAL: Duration = Duration::from_secs(60);
/// `acme.back_off.max`.
pub const ACME_BACK_OFF_MAX: Duration = Duration::from_secs(6 * 60 * 60);
/// Names of one certificate; authorities take no more.
pub const MAX_ACME_NAMES: usize = 100;
/// Certificates by ACME, of all listeners.
pub const MAX_ACME_CERTIFICATES: usize = 1000;

/// `back_off.initial` of a pool.
pub const BACK_OFF_INITIAL: Duration = Duration::from_secs(1);
/// `back_off.max` of a pool.
pub const BACK_OFF_MAX: Duration = Duration::from_secs(30);

/// The least from one check of an endpoint to the next. 10 checks a second cost an endpoint little.
pub const MIN_CHECK_INTERVAL: Duration = Duration::from_millis(100);
/// The most from one check of an endpoint to the next.
pub const MAX_CHECK_INTERVAL: Duration = Duration::from_secs(24 * 3600);
/// The most that `rise`, `fall` and `eject.consecutive` may be.
pub const MAX_IN_A_ROW: u32 = 1000;
/// The least that `eject.window` may be.
pub const MIN_WINDOW: Duration = Duration::from_secs(1);
/// The most that `eject.window` may be.
pub const MAX_WINDOW: Duration = Duration::from_secs(3600);
/// The most that `eject.base` and `eject.max` may be.
pub const MAX_EJECTION: Duration = Duration::from_secs(24 * 3600);

/// `stick.expire`.
pub const STICK_EXPIRY: Duration = Duration::from_secs(30 * 60);
/// The most that `stick.expire` may be.
pub const MAX_STICK_EXPIRY: Duration = MAX_TIME;
/// `stick.entries`.
pub const STICK_ENTRIES: usize = 100_000;
/// The most that `stick.entries` may be: each is held in memory.
pub const MAX_STICK_ENTRIES: usize = 10_000_000;
/// Keys that sign and verify cookies, at most: every cookie that is not ours is tried with each.
pub const MAX_SESSION_KEYS: usize = 16;
/// Bytes of a key that signs cookies, at least.
pub const MIN_SESSION_KEY_BYTES: usize = 16;
/// Bytes of a token, at least: shorter ones can be guessed.
pub const MIN_TOKEN_BYTES: usize = 16;
/// Bytes of a token, at most.
pub const MAX_TOKEN_BYTES: usize = 1024;
/// Bytes of a file with keys or a token.
pub const MAX_SECRET_FILE_BYTES: usize = 64 * 1024;

/// `weigher.port`: where `subak agent` listens unless it is told otherwise.
pub const AGENT_PORT: u16 = 9180;
/// `weigher.interval`.
pub const WEIGHER_INTERVAL: Duration = Duration::from_secs(1);
/// `weigher.timeout`.
pub const WEIGHER_TIMEOUT: Duration = Duration::from_secs(1);
/// The most that `weigher.hold` may be.
pub const MAX_HOLD: Duration = MAX_TIME;
/// The most that a coefficient of the weigher may be.
pub const MAX_COEFFICIENT: u32 = 1_000_000;

/// `dns.timeout`.
pub const DNS_TIMEOUT: Duration = Duration::from_secs(2);
/// The most that `dns.timeout` may be: a start waits for it once.
pub const MAX_DNS_TIMEOUT: Duration = Duration::from_secs(30);
/// `dns.min_ttl`.
pub const DNS_MIN_TTL: Duration = Duration::from_secs(1);
/// `dns.max_ttl`.
pub const DNS_MAX_TTL: Duration = Duration::from_secs(5 * 60);
/// `dns.negative_ttl`.
pub const DNS_NEGATIVE_TTL: Duration = Duration::from_secs(10);
/// The least that any time between two questions may be.
pub const MIN_DNS_TTL: Duration = Duration::from_millis(100);
/// DNS servers that can be named.
pub const MAX_DNS_SERVERS: usize = 16;
/// Names of the whole configuration: each is asked again and again.
pub const MAX_NAMES: usize = 10_000;

/// The most that `pick_log` may be: each is held in memory.
pub const MAX_PICK_LOG: usize = 100_000;

/// Algorithms that may decide beside a pool's own: each costs every request a pick.
pub const MAX_SHADOWS: usize = 4;

/// Status of a redirect that names none.
pub const REDIRECT_STATUS: u16 = 302;

/// The least that any time limit may be.
pub const MIN_TIME: Duration = Duration::from_millis(1);
/// The most that any time limit may be: a week.
pub const MAX_TIME: Duration = Duration::from_secs(7 * 24 * 3600);
/// The most workers.
pub const MAX_WORKERS: usize = 1024;
/// Routes of one listener: they are tried one after the other.
pub const MAX_ROUTES: usize = 10_000;
/// Conditions of a route besides its host and path.
pub const MAX_CONDITIONS: usize = 64;
/// Pools of one split.
pub const MAX_SPLIT_SIDES: usize = 16;
/// Endpoints of one pool.
pub const MAX_ENDPOINTS: usize = 100_000;
/// Bytes of a file that is answered as it is (error page, fixed answer).
pub const MAX_PAGE_BYTES: usize = 1024 * 1024;
/// Bytes of a certificate or key file.
pub const MAX_PEM_BYTES: usize = 1024 * 1024;
/// Files that a configuration consists of.
pub const MAX_INCLUDED_FILES: usize = 256;
/// How deep files include files.
pub const MAX_INCLUDE_DEPTH: usize = 8;
/// Bytes of a file whose contents become part of a string.
pub const MAX_VALUE_BYTES: usize = 64 * 1024;
/// Bytes of a configuration, all its files together.
pub const MAX_CONFIG_BYTES: usize = 16 * 1024 * 1024;
/// Bytes of the compiled form of one path regex.
pub const MAX_REGEX_BYTES: usize = 1024 * 1024;

/// `status` of a rate limit: 429 (Too Many Requests).
pub const RATE_STATUS: u16 = 429;
/// The most that a rate may be, in requests a second.
pub const MAX_RATE_PER_SECOND: u32 = 1_000_000;
/// Limits of one kind that a listener, and that a route, may have.
pub const MAX_LIMITS: usize = 4;
/// `entries` of a limit.
pub const LIMIT_ENTRIES: usize = 65_536;
/// The least that `entries` of a limit may be.
pub const MIN_LIMIT_ENTRIES: usize = 8;
/// The most that `entries` of a limit may be: 64 MiB.
pub const MAX_LIMIT_ENTRIES: usize = 4_194_304;

/// `circuit.share` of a pool, in thousandths (0.5).
pub const CIRCUIT_SHARE_PER_MILLE: u32 = 500;
/// `circuit.window` of a pool.
pub const CIRCUIT_WINDOW: Duration = Duration::from_secs(10);
/// `circuit.min_requests` of a pool.
pub const CIRCUIT_LEAST: u32 = 20;
/// `circuit.open` of a pool.
pub const CIRCUIT_OPEN: Duration = Duration::from_secs(5);
/// `circuit.trials` of a pool.
pub const CIRCUIT_TRIALS: std::num::NonZeroU32 = std::num::NonZeroU32::new(3).unwrap();

/// How often the key of session tickets changes.
pub const TICKET_PERIOD: Duration = Duration::from_secs(6 * 3600);
/// Bounds of that: the least is for tests, the most is what TLS 1.3 lets a ticket live.
pub const MIN_TICKET_PERIOD: Duration = Duration::from_secs(1);
/// See [`MIN_TICKET_PERIOD`].
pub const MAX_TICKET_PERIOD: Duration = Duration::from_secs(3 * 24 * 3600);

/// A certificate that expires within this time is warned of.
pub const EXPIRES_SOON: Duration = Duration::from_secs(14 * 24 * 3600);
