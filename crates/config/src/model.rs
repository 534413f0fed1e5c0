//! What a configuration says once it has been read: plain values that cannot be wrong.
//!
//! Everything here has been parsed, checked against its limits and cross-checked: a route's pool
//! exists, a regex is compiled, a file has been read, a header value is a legal one. Values are
//! comparable, so that a reload can tell which listeners and pools stay as they are.
//!
//! Units live in the types: times are [`Duration`], sizes are bytes.

mod access_log;
mod acme;
mod admin;
mod dns;
mod endpoint_tls;
mod health;
mod http2;
mod limits;
mod proxy_protocol;
mod secret;
mod split;
mod stick;
mod streams;
mod tls;
mod trusted_proxies;
mod weigher;

use std::fmt;
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use subak_balance::Algorithm;
use subak_base::Weight;
use subak_health::{EjectionSpec, OnAllDown, SlowStart};
use subak_limits::{CircuitSpec, Networks};
use subak_message::grpc::Codes;
use subak_message::{EncodedSlashes, PathRules};

pub use access_log::AccessLog;
pub use acme::{Acme, AcmeChallenge, AcmeKeyType, ExternalAccount};
pub use admin::Admin;
pub use dns::{ByName, Dns, Families, Origin};
pub use endpoint_tls::EndpointTls;
pub use health::{AgentCheck, Check, GrpcCheck, HealthCheck, HttpCheck};
pub use http2::Http2;
pub use limits::{ConnectionsPerClient, InFlight, LimitKey, RateFields, RateLimit, RouteLimits};
pub use proxy_protocol::{AcceptProxy, SendProxy};
pub use secret::{SessionKeys, Token};
pub use split::{Side, Split, SplitBy};
pub use stick::{SameSite, SecureCookie, Stick, StickCookie, StickTable};
pub use streams::{EndpointProtocol, Streams};
pub use tls::{Certificate, ClientVerification, Tls, TlsProfile, TlsVersion, UnknownName};
pub use trusted_proxies::{ProxyField, TrustedProxies};
pub use weigher::Weigher;

use crate::address::Address;
use crate::condition::Condition;
use crate::headers::{HeaderEdits, HeaderName, HeaderValue};
use crate::pattern::{HostPattern, PathPattern};
use crate::rewrite::Rewrite;
use crate::template::Template;

/// The name of a listener or a pool: 1 to 64 letters, digits, `_`, `-` or `.`.
pub type Name = Arc<str>;

/// One whole configuration.
#[derive(Clone, PartialEq, Debug)]
pub struct Config {
    /// Worker threads; `None`: as many as the process has CPUs.
    pub workers: Option<NonZeroUsize>,
    /// How long a graceful stop waits for requests under way.
    pub shutdown_timeout: Duration,
    /// Client connections of the whole process; `None`: what the descriptor limit leaves room for.
    pub max_connections: Option<NonZeroUsize>,
    /// Bytes of messages that are held at once; `None`: half of the memory the process may use.
    pub buffers: Option<NonZeroUsize>,
    /// Who it runs as once addresses are bound: the name of a user or its number; `None`: whoever
    /// started it.
    pub user: Option<Arc<str>>,
    /// The group beside `user`; `None`: the user's own.
    pub group: Option<Arc<str>>,
    /// Where the number of this process stands while it serves.
    pub pid_file: Option<PathBuf>,
    /// Where the Admin API listens.
    pub admin: Admin,
    /// How names are resolved.
    pub dns: Dns,
    /// Who issues certificates that are wanted by ACME; there is one where a listener wants any.
    pub acme: Option<Acme>,
    /// In the order of the file; names are unique.
    pub listeners: Vec<Listener>,
    /// In the order of the file; names are unique.
    pub pools: Vec<Pool>,
}

impl Config {
    /// The pool of that name. `Some` for every name found in this configuration's listeners.
    pub fn pool(&self, name: &str) -> Option<&Pool> {
        self.pools.iter().find(|pool| &*pool.name == name)
    }

    /// The listener of that name.
    pub fn listener(&self, name: &str) -> Option<&Listener> {
        self.listeners.iter().find(|listener| &*listener.name == name)
    }
}

/// Where clients arrive, and what becomes of their requests.
#[derive(Clone, PartialEq, Debug)]
pub struct Listener {
    /// Unique among the listeners.
    pub name: Name,
    /// Addresses to listen on, at least one, without duplicates over the whole configuration.
    pub bind: Vec<Address>,
    /// `None`: cleartext.
    pub tls: Option<Tls>,
    /// What clients may speak.
    pub protocols: Protocols,
    /// Whether an HTTP/1 client that ends its side of the connection still gets its response.
    pub half_close: bool,
    /// Its access logs: its own, or those of the top level.
    pub access_logs: Vec<AccessLog>,
    /// Whose headers of the PROXY protocol are believed; `None`: none is understood.
    pub proxy_protocol: Option<AcceptProxy>,
    /// Whose word about the client is believed, and in which fields.
    pub trusted_proxies: TrustedProxies,
    /// Time limits towards clients.
    pub timeouts: ListenerTimeouts,
    /// `None`: however slow a client is, only the other time limits count.
    pub min_rate: Option<MinRate>,
    /// Bounds on what one client may ask for.
    pub limits: ListenerLimits,
    /// Bounds of one client's HTTP/2 connection.
    pub http2: Http2,
    /// Requests in a time; all of these have to be kept.
    pub rates: Vec<RateLimit>,
    /// Requests at once; all of these have to be kept.
    pub in_flight: Vec<InFlight>,
    /// Whose connections are taken; `None`: everybody's.
    pub access: Option<Networks>,
    /// How a path is normalised and what is forwarded.
    pub path: PathPolicy,
    /// Whether TRACE is forwarded. CONNECT never is.
    pub allow_trace: bool,
    /// The field of every answer that names its decision; `None`: none does.
    pub decision_header: Option<HeaderName>,
    /// Applied to every request before the route's edits.
    pub request_headers: HeaderEdits,
    /// Applied to every answer, Subak's own included, after the route's edits.
    pub response_headers: HeaderEdits,
    /// What Subak itself tells endpoints about the client.
    pub forwarded_headers: ForwardedHeaders,
    /// Bodies for the errors that Subak itself answers; the route's come first.
    pub error_pages: ErrorPages,
    /// Tried in order; the first that matches decides.
    pub routes: Vec<Route>,
    /// Takes what no route matches; `None`: that is answered 404, unless there is a split.
    pub pool: Option<Name>,
    /// Takes what no route matches, instead of one pool.
    pub split: Option<Split>,
}

/// A PEM file and what was in it when the configuration was read.
#[derive(Clone, PartialEq)]
pub struct PemFile {
    /// Where it was read from, for messages.
    pub path: PathBuf,
    /// Its bytes. May be secret: not shown by `Debug`.
    pub contents: Bytes,
}

impl std::fmt::Debug for PemFile {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("PemFile").field("path", &self.path).finish_non_exhaustive()
    }
}

/// The HTTP versions a listener speaks; at least one is true.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Protocols {
    /// HTTP/1.1 and 1.0.
    pub http1: bool,
    /// HTTP/2: by ALPN with TLS, by prior knowledge without.
    pub http2: bool,
}

/// Time limits towards clients.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ListenerTimeouts {
    /// From the first byte of a request to the end of its head; also the TLS handshake.
    pub head: Duration,
    /// Between two pieces of a request's body.
    pub body_idle: Duration,
    /// An idle connection between two requests, or before the first.
    pub keep_alive: Duration,
    /// While an answer waits because the client takes nothing of it.
    pub write_idle: Duration,
}

/// The least throughput that a client has to keep up while it sends or takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MinRate {
    /// Averaged over the time in which the client is waited for; at least 1.
    pub bytes_per_second: u64,
    /// Time before the average counts.
    pub grace: Duration,
}

/// Bounds on what one client may ask for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ListenerLimits {
    /// Bytes of a request's head, first line included; more is answered 431.
    pub head_bytes: usize,
    /// Fields of a request's head; more is answered 431.
    pub fields: usize,
    /// Requests after which a connection is closed; `None`: no limit.
    pub requests_per_connection: Option<NonZeroU32>,
    /// Bytes of a request's body; more is answered 413; `None`: no limit.
    pub body_bytes: Option<u64>,
    /// Connections of this listener; `None`: only the process's limit counts.
    pub connections: Option<NonZeroUsize>,
    /// Connections of one client; `None`: no limit.
    pub per_client: Option<ConnectionsPerClient>,
    /// Bytes of path and query; more is answered 414; `None`: what fits into a head.
    pub target_bytes: Option<usize>,
}

/// How a path is normalised and what is forwarded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PathPolicy {
    /// Whether `//` counts as `/` when routes are matched.
    pub merge_slashes: bool,
    /// What becomes of `%2F` and `%5C`.
    pub encoded_slashes: EncodedSlashes,
    /// What the endpoint sees.
    pub forward: ForwardPath,
}

impl PathPolicy {
    /// The rules by which the forms of a path are made.
    pub fn rules(&self) -> PathRules {
        let PathPolicy { merge_slashes, encoded_slashes, .. } = *self;
        PathRules { merge_slashes, encoded_slashes }
    }
}

/// Which form of a path goes to the endpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ForwardPath {
    /// As the client wrote it.
    Original,
    /// In normal form.
    Normalized,
}

/// What Subak itself tells endpoints about the client.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ForwardedHeaders {
    /// X-Forwarded-For, X-Forwarded-Proto and X-Forwarded-Host.
    pub x_forwarded: bool,
    /// Forwarded (RFC 7239).
    pub forwarded: bool,
}

/// Bodies for the errors that Subak itself answers.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct ErrorPages {
    /// By status; at most one each.
    pub by_status: Vec<(u16, Page)>,
    /// By first digit, 4 or 5; at most one each.
    pub by_class: Vec<(u8, Page)>,
}

impl ErrorPages {
    /// The page for a status: its own, else its class's.
    pub fn get(&self, status: u16) -> Option<&Page> {
        let own = self.by_status.iter().find(|(of, _)| *of == status).map(|(_, page)| page);
        own.or_else(|| {
            self.by_class
                .iter()
                .find(|(of, _)| u16::from(*of) == status / 100)
                .map(|(_, page)| page)
        })
    }
}

/// A body that was read from a file or given in the configuration.
#[derive(Clone, PartialEq, Debug)]
pub struct Page {
    /// Content-Type; by the file's name unless it was given.
    pub content_type: HeaderValue,
    /// The body, at most [`crate::defaults::MAX_PAGE_BYTES`].
    pub body: Bytes,
}

/// What becomes of the requests that match.
#[derive(Clone, PartialEq, Debug)]
pub struct Route {
    /// Any of these; none given: every host.
    pub hosts: Vec<HostPattern>,
    /// Matched against the normalised path.
    pub path: PathPattern,
    /// What else has to hold, in the order of the reference.
    pub conditions: Vec<Condition>,
    /// What is done.
    pub action: Action,
    /// Another path for the endpoint.
    pub rewrite: Option<Rewrite>,
    /// Bounds on its requests, and who may make them.
    pub limits: RouteLimits,
    /// Applied after the listener's edits and before the pool's.
    pub request_headers: HeaderEdits,
    /// Applied to every answer of this route, after the pool's edits and before the listener's.
    pub response_headers: HeaderEdits,
    /// Before the listener's.
    pub error_pages: ErrorPages,
}

impl Action {
    /// The pools that requests can go to.
    pub fn pools(&self) -> impl Iterator<Item = &Name> {
        let (one, sides) = match self {
            Action::Pool(pool) => (Some(pool), None),
            Action::Split(split) => (None, Some(&split.sides)),
            Action::Redirect(_) | Action::Respond(_) => (None, None),
        };
        one.into_iter().chain(sides.into_iter().flatten().map(|side| &side.pool))
    }
}

impl Listener {
    /// The pools that take what no route matches.
    pub fn own_pools(&self) -> impl Iterator<Item = &Name> {
        let sides = self.split.iter().flat_map(|split| &split.sides);
        self.pool.iter().chain(sides.map(|side| &side.pool))
    }
}

impl Route {
    /// Whether it takes every request, of these hosts at least.
    pub fn takes_every_path(&self) -> bool {
        let slash = matches!(&self.path, PathPattern::Prefix(prefix) if &**prefix == "/");
        self.conditions.is_empty() && (slash || self.path == PathPattern::Any)
    }
}

/// What a route does.
#[derive(Clone, PartialEq, Debug)]
pub enum Action {
    /// Balance over this pool.
    Pool(Name),
    /// Balance over one of these pools.
    Split(Split),
    /// Send the client elsewhere.
    Redirect(Redirect),
    /// Answer at once.
    Respond(Respond),
}

/// In short, as the status shows it.
impl fmt::Display for Action {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Action::Pool(pool) => write!(out, "pool {pool}"),
            Action::Split(split) => split.fmt(out),
            Action::Redirect(Redirect { to, status }) => write!(out, "redirect {status} to {to}"),
            Action::Respond(Respond { status, .. }) => write!(out, "answer {status}"),
        }
    }
}

/// Where a redirect leads.
#[derive(Clone, PartialEq, Debug)]
pub struct Redirect {
    /// Becomes the Location.
    pub to: Template,
    /// 301, 302, 303, 307 or 308.
    pub status: u16,
}

/// A fixed answer.
#[derive(Clone, PartialEq, Debug)]
pub struct Respond {
    /// 200..=599.
    pub status: u16,
    /// `None`: an empty body, without a Content-Type. Always `None` for 204 and 304.
    pub page: Option<Page>,
}

/// An algorithm that decides beside a pool's own.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Shadow {
    /// The algorithm's name, and options that are not at their default: `power_of_two choices=3`.
    pub name: Arc<str>,
    /// The algorithm.
    pub algorithm: Algorithm,
}

/// Endpoints that share requests, and how.
#[derive(Clone, PartialEq, Debug)]
pub struct Pool {
    /// Unique among the pools.
    pub name: Name,
    /// Who gets the next request.
    pub algorithm: Algorithm,
    /// Who decides beside that, and sends nothing; no two are equal.
    pub shadows: Vec<Shadow>,
    /// In the order of the file, without duplicates; may be empty (every request is answered 503).
    pub endpoints: Vec<Endpoint>,
    /// Those that are given by name, by their places; empty where all have addresses.
    pub names: Vec<ByName>,
    /// How TLS is spoken with endpoints; `None`: cleartext.
    pub tls: Option<EndpointTls>,
    /// How endpoints hear of clients by the PROXY protocol; `None`: they do not.
    pub proxy_protocol: Option<SendProxy>,
    /// For endpoints that say nothing themselves, those that the API adds included.
    pub caps: Caps,
    /// Time limits towards endpoints.
    pub timeouts: PoolTimeouts,
    /// What is spoken to endpoints.
    pub protocol: EndpointProtocol,
    /// How requests share connections, where HTTP/2 is spoken.
    pub streams: Streams,
    /// Idle connections that each worker keeps to each endpoint.
    pub keep_alive_connections: usize,
    /// Where requests wait while every endpoint is at its cap.
    pub queue: Queue,
    /// When a request is tried on another endpoint.
    pub retry: Retry,
    /// How long an endpoint is left out after it refused a connection or broke requests in a row.
    pub back_off: BackOff,
    /// When the pool is given up for a while; `None`: never.
    pub circuit: Option<CircuitSpec>,
    /// How endpoints are asked whether they are well; `None`: they are not.
    pub health: Option<HealthCheck>,
    /// How a program beside each endpoint is asked; `None`: there is none.
    pub agent_check: Option<AgentCheck>,
    /// When the traffic shows an endpoint to be unfit; `None`: never.
    pub eject: Option<EjectionSpec>,
    /// How gRPC calls end that count as failures of the endpoint.
    pub grpc_failures: Codes,
    /// Who takes requests when every endpoint is down. With `BackupOnly` there is a backup.
    pub on_all_down: OnAllDown,
    /// How an endpoint that comes back grows into its weight; `None`: at once. Only with an algorithm
    /// that takes changing weights.
    pub slow_start: Option<SlowStart>,
    /// How a client is kept with its endpoint; `None`: it is not.
    pub stick: Option<Stick>,
    /// How weights follow what endpoints report; `None`: they do not. Only with an algorithm that
    /// takes changing weights.
    pub weigher: Option<Weigher>,
    /// Picks that are kept with all that they were made from; `None`: none.
    pub pick_log: Option<NonZeroUsize>,
    /// Applied last to requests.
    pub request_headers: HeaderEdits,
    /// Applied first to the endpoints' answers.
    pub response_headers: HeaderEdits,
    /// The Host that endpoints see.
    pub host: HostForward,
}

/// What holds for an endpoint that says nothing itself.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Caps {
    /// Requests under way at once.
    pub max_in_flight: Option<NonZeroU32>,
    /// Connections open at once.
    pub max_connections: Option<NonZeroU32>,
}

/// One place that answers requests.
#[derive(Clone, PartialEq, Debug)]
pub struct Endpoint {
    /// The address as it was written, without options.
    pub name: Arc<str>,
    /// Where it is. Unique in its pool.
    pub address: Address,
    /// The name it was resolved from, as configurations write it; `None`: it stands there itself.
    pub origin: Option<Arc<str>>,
    /// The Host that asks for it by name; `None`: its address does.
    pub host: Option<Arc<str>>,
    /// Its share.
    pub weight: Weight,
    /// Requests under way at once, over all workers; `None`: no cap.
    pub max_in_flight: Option<NonZeroU32>,
    /// Connections open at once, idle ones included, over all workers; `None`: no cap.
    pub max_connections: Option<NonZeroU32>,
    /// Whether it only takes requests while no other endpoint is ready.
    pub backup: bool,
    /// What the file wants of it.
    pub state: subak_health::Admin,
}

/// Time limits towards endpoints.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PoolTimeouts {
    /// To open a connection.
    pub connect: Duration,
    /// From the end of the request to the first byte of the answer.
    pub first_byte: Duration,
    /// Between two pieces of the answer, and while the endpoint takes nothing of the request.
    pub idle: Duration,
    /// While neither side of a tunnel (WebSocket) sends anything.
    pub tunnel: Duration,
    /// A connection without a request.
    pub keep_alive: Duration,
}

/// The wait queue of a pool.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Queue {
    /// Requests that may wait; one more is answered 503. 0: nobody waits.
    pub length: usize,
    /// How long one waits at most; then it is answered 503.
    pub timeout: Duration,
    /// How long one waits while no endpoint can be reached; zero: not at all.
    pub outage: Duration,
}

/// When a request is tried on another endpoint.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Retry {
    /// Retries allowed for each thousand requests, 0..=1000.
    pub budget_per_mille: u32,
    /// Retries a second that are always allowed, whatever the budget.
    pub min_per_second: u32,
    /// Endpoints that one request may be tried on, the first included; 1: no retries.
    pub attempts: NonZeroU32,
    /// What is retried.
    pub on: RetryOn,
    /// Bytes of a request's body that are kept so that it can be sent again.
    pub body_bytes: usize,
}

/// The failures after which a request is tried elsewhere.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct RetryOn {
    /// No connection: refused, unreachable, or not within the time limit.
    pub connect: bool,
    /// The connection ended before the answer began.
    pub reset: bool,
    /// No first byte of the answer within the time limit.
    pub timeout: bool,
    /// The answer has one of these statuses (each 500..=599); sorted, without duplicates.
    pub statuses: Vec<u16>,
    /// A gRPC call ended in one of these ways before its first message.
    pub grpc: Codes,
}

/// How long an endpoint is left out: `initial`, doubled for each failure in a row, up to `max`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BackOff {
    /// After the first failure.
    pub initial: Duration,
    /// Never longer; at least `initial`.
    pub max: Duration,
}

/// The Host that endpoints see.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum HostForward {
    /// The client's.
    Preserve,
    /// The name the endpoint was resolved from, else its address; `localhost` for a unix socket.
    Endpoint,
    /// This one.
    Literal(HeaderValue),
}
