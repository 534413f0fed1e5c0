//! The vocabulary: every table, every key, what it takes, what it means and what holds without it.
//!
//! One declaration drives the parser (known keys, types, ranges, required keys, exclusive keys),
//! the JSON Schema and the reference tables of docs/configuration.md. A new key is one entry here
//! and one line where `read` builds the model; tests try every example and every default below.
//! Formatted by hand: two lines a key.

mod access_log;
mod acme;
mod admin;
mod dns;
mod endpoint_tls;
mod health;
mod limits;
mod proxy_protocol;
mod http2;
mod route;
mod split;
mod stick;
mod streams;
mod tls;
mod trusted_proxies;
mod weigher;

pub use access_log::ACCESS_LOG;
pub use acme::{ACME, ACME_BACK_OFF, EXTERNAL_ACCOUNT};
pub use admin::ADMIN;
pub use dns::DNS;
pub use endpoint_tls::{ENDPOINT_CERTIFICATE, ENDPOINT_TLS};
pub use health::{AGENT_CHECK, EJECT, EJECT_LATENCY, HEALTH, HEALTH_BODY, SLOW_START};
pub use limits::{CIRCUIT, CONNECTIONS_PER_CLIENT, IN_FLIGHT, RATE_LIMIT, ROUTE_LIMITS};
pub use proxy_protocol::{ACCEPT_PROXY, SEND_PROXY};
pub use http2::HTTP2;
pub use route::{PATH_MATCH, REWRITE, ROUTE, ROUTE_NOT, VALUE_MATCH};
pub use split::{SPLIT, SPLIT_SIDE};
pub use stick::STICK;
pub use streams::STREAMS;
pub use tls::{CERTIFICATE, CLIENT, HSTS, HTTPS_REDIRECT, TLS};
pub use trusted_proxies::TRUSTED_PROXIES;
pub use weigher::{WEIGHER, WEIGHER_CAPACITY, WEIGHER_LOAD};

use crate::defaults::{
    MAX_HEAD_BYTES, MAX_FIELDS, MAX_KEEP_ALIVE_CONNECTIONS, MAX_PICK_LOG, MAX_QUEUE_LENGTH, MAX_QUEUE_OUTAGE, MAX_RATE,
    MAX_RETRY_ATTEMPTS, MAX_RETRY_BODY_BYTES, MAX_WORKERS, MIN_HEAD_BYTES,
};
use crate::keys::{Key, Kind, Map, Rule, Table, Text, Without};

use Kind::{Boolean, Choice, Duration, DurationWithin, Either, Integer, List, OneOrMany, OrUnlimited, Ratio, Size};
use Without::{Absent, Default, Required};

const fn key(
    name: &'static str,
    kind: Kind,
    without: Without,
    example: &'static str,
    doc: &'static str,
) -> Key {
    Key { name, kind, without, example, doc }
}

const NAME_PATTERN: &str = "^[A-Za-z0-9_.-]{1,64}$";
const ACCOUNT_PATTERN: &str = "^[A-Za-z0-9_][A-Za-z0-9_.-]{0,31}$";
const FIELD_NAME_PATTERN: &str = "^[!#$%&'*+.^_`|~0-9A-Za-z-]+$";

static BIND: Text = Text { what: "an address such as \"0.0.0.0:80\"", pattern: None };
static ENDPOINT_TEXT: Text = Text {
    what: "an endpoint such as \"10.0.0.2:8080\", \"10.0.0.2:8080 weight=2\" or \"app.internal:8080\"",
    pattern: None,
};
static ENDPOINT_ADDRESS: Text =
    Text { what: "an address such as \"10.0.0.2:8080\" or a name such as \"app.internal:8080\"", pattern: None };
static POOL_NAME: Text = Text { what: "the name of a pool", pattern: Some(NAME_PATTERN) };
static HOST: Text =
    Text { what: "a host such as \"example.com\" or \"*.example.com\"", pattern: None };
static PATH: Text = Text { what: "a path such as \"/api/\"", pattern: Some("^/") };
static REGEX: Text = Text { what: "a regular expression", pattern: None };
static NETWORK: Text = Text { what: "a network such as \"10.0.0.0/8\", or \"unix\"", pattern: None };
static INCLUDE: Text = Text { what: "a path such as \"conf.d/*.toml\"", pattern: None };
static FILE: Text = Text { what: "the path of a file", pattern: None };
static ACCOUNT: Text = Text { what: "a name such as \"subak\", or a number", pattern: Some(ACCOUNT_PATTERN) };
static TEMPLATE: Text =
    Text { what: "a URL such as \"https://{host}{path_and_query}\"", pattern: None };
static BODY: Text = Text { what: "a text", pattern: None };
static FIELD_NAME: Text = Text { what: "a header name", pattern: Some(FIELD_NAME_PATTERN) };
static FIELD_VALUE: Text = Text { what: "a header value", pattern: None };
static CONTENT_TYPE: Text = Text { what: "a media type such as \"text/html\"", pattern: None };
static POOL_HOST: Text =
    Text { what: "\"preserve\", \"endpoint\" or a host such as \"app.internal\"", pattern: None };
static RETRY_ON: Text = Text {
    what: "\"connect\", \"reset\", \"timeout\", a status such as \"503\" or one of gRPC such as \"grpc:unavailable\"",
    pattern: Some("^(connect|reset|timeout|5[0-9][0-9]|grpc:[a-z_]+)$"),
};

static LISTENERS: Map =
    Map { key: "the name of a listener", pattern: NAME_PATTERN, value: Kind::Table(&LISTENER) };
static POOLS: Map =
    Map { key: "the name of a pool", pattern: NAME_PATTERN, value: Kind::Table(&POOL) };
static PAGES: Map = Map {
    key: "a status such as \"502\", or \"4xx\" or \"5xx\"",
    pattern: "^([45][0-9][0-9]|[45]xx)$",
    value: Kind::Text(&FILE),
};
static FIELDS_SET: Map =
    Map { key: "a header name", pattern: FIELD_NAME_PATTERN, value: Kind::Text(&FIELD_VALUE) };
static FIELDS_ADD: Map = Map {
    key: "a header name",
    pattern: FIELD_NAME_PATTERN,
    value: OneOrMany(&Kind::Text(&FIELD_VALUE)),
};

/// Below this not even a few exchanges fit.
const MIN_BUFFERS: u64 = 1 << 20;
const COUNT: Kind = Integer { min: 1, max: u32::MAX as i64 };
const PORT: Kind = Integer { min: 1, max: u16::MAX as i64 };

/// Every table, in the order of the reference.
pub static TABLES: &[&Table] = &[
    &ROOT, &ADMIN, &ACCESS_LOG, &DNS,
    &ACME, &EXTERNAL_ACCOUNT, &ACME_BACK_OFF,
    &LISTENER, &TLS, &CERTIFICATE, &CLIENT, &HSTS, &HTTPS_REDIRECT, &ACCEPT_PROXY, &TRUSTED_PROXIES, &LISTENER_TIMEOUTS, &RATE, &LIMITS, &RATE_LIMIT, &IN_FLIGHT, &CONNECTIONS_PER_CLIENT, &HTTP2, &PATH_POLICY,
    &FORWARDED, &HEADERS, &ROUTE, &ROUTE_LIMITS, &PATH_MATCH, &VALUE_MATCH, &ROUTE_NOT, &SPLIT, &SPLIT_SIDE, &REWRITE, &REDIRECT, &RESPOND, &POOL,
    &ENDPOINT, &ENDPOINT_TLS, &ENDPOINT_CERTIFICATE, &SEND_PROXY, &POOL_TIMEOUTS, &STREAMS, &QUEUE, &RETRY, &BACK_OFF, &CIRCUIT,
    &HEALTH, &HEALTH_BODY, &AGENT_CHECK, &EJECT, &EJECT_LATENCY, &SLOW_START,
    &STICK, &WEIGHER, &WEIGHER_CAPACITY, &WEIGHER_LOAD,
];

/// The whole file.
pub static ROOT: Table = Table {
    path: "",
    what: "the top level",
    doc: "What concerns the whole process.",
    keys: &[
        key("include", OneOrMany(&Kind::Text(&INCLUDE)), Absent("this file alone"), "[\"conf.d/*.toml\"]",
            "More files of this configuration: paths or patterns, relative to the file that names them."),
        key("workers", Integer { min: 1, max: MAX_WORKERS as i64 }, Absent("the CPUs it may use"), "4",
            "Worker threads, each with its own event loop."),
        key("shutdown_timeout", Duration, Default("\"30s\""), "\"2m\"",
            "How long a graceful stop waits for requests under way."),
        key("max_connections", COUNT, Absent("what the descriptor limit leaves room for"), "20000",
            "Client connections of the whole process. One more takes the place of an idle one, or waits to be accepted."),
        key("buffers", Size { min: MIN_BUFFERS, max: i64::MAX as u64 }, Absent("half of the memory of the machine or control group"), "\"256MiB\"",
            "Bytes of requests and responses that are held at once, for all clients together. From an eighth on each exchange holds little; beyond it new requests are answered 503."),
        key("user", Kind::Text(&ACCOUNT), Absent("whoever started it"), "\"subak\"",
            "Run as this user once files are read and addresses bound: by name or number, for who starts it as root. See [service.md](service.md)."),
        key("group", Kind::Text(&ACCOUNT), Absent("the user's own"), "\"subak\"",
            "The group that goes with `user`."),
        key("pid_file", Kind::Text(&FILE), Absent("none"), "\"/run/subak/subak.pid\"",
            "A file with the number of this process, there while it serves."),
        key("admin", Either(&[Boolean, Kind::Table(&ADMIN)]), Default("true"), "{ socket = \"/run/subak/admin.sock\" }",
            "The Admin API: on a unix socket in the usual place, somewhere else, or `false`: nowhere."),
        key("dns", Kind::Table(&DNS), Default("{}"), "{ servers = [\"10.0.0.53\"] }",
            "How the names among endpoints are resolved."),
        key("acme", Kind::Table(&ACME), Absent("no certificates by ACME"), "{ accept_terms = true, email = \"ops@example.com\" }",
            "Who issues certificates for the names that listeners list under `tls.acme`."),
        key("access_log", access_log::ACCESS_LOGS, Absent("none"), "{ path = \"/var/log/subak/access.json\", sample = 0.1 }",
            "A line for every request of listeners that say nothing else: a file, `\"stdout\"`, a table, or several tables."),
        key("listener", Kind::Map(&LISTENERS), Required, "{ web = { bind = \"0.0.0.0:80\", pool = \"app\" } }",
            "Where clients arrive, by name: `[listener.web]`."),
        key("pool", Kind::Map(&POOLS), Absent("no pools"), "{ app = { endpoints = [\"10.0.0.2:8080\"] } }",
            "Endpoints that share requests, by name: `[pool.app]`."),
    ],
    rules: &[],
};

/// `[listener.NAME]`.
pub static LISTENER: Table = Table {
    path: "listener.NAME",
    what: "a listener",
    doc: "Where clients arrive, and what becomes of their requests.",
    keys: &[
        key("bind", OneOrMany(&Kind::Text(&BIND)), Required, "[\"0.0.0.0:80\", \"[::]:80\", \"unix:/run/subak/web.sock\"]",
            "Addresses to listen on. `\"*:80\"` is `0.0.0.0:80` and `[::]:80`; an IPv6 address takes IPv6 only."),
        key("pool", Kind::Text(&POOL_NAME), Absent("404 where no route matches"), "\"app\"",
            "The pool that takes what no route matches."),
        key("split", split::SPLITS, Absent("`pool` alone"), "[{ pool = \"next\", weight = 10 }, { pool = \"app\", weight = 90 }]",
            "Pools that share by weight what no route matches, instead of `pool`; a table as in a route says more."),
        key("route", List(&Kind::Table(&ROUTE)), Absent("no routes"), "[{ host = \"api.example.com\", pool = \"app\" }]",
            "Tried in order, the first that matches decides: `[[listener.web.route]]`."),
        key("tls", Kind::Table(&TLS), Absent("cleartext"), "{ certificates = [{ chain = \"site.pem\", key = \"site.key\" }] }",
            "Certificates; with them the listener speaks TLS only. See [tls.md](tls.md)."),
        key("hsts", tls::HSTS_SHORT, Absent("nothing is said"), "\"365d\"",
            "Browsers that have come once by TLS come by TLS alone for so long (Strict-Transport-Security)."),
        key("redirect_to_https", tls::REDIRECT_TO_HTTPS, Default("false"), "true",
            "Send every client to the same place by HTTPS (308): on port 443, or on this one."),
        key("protocols", List(&Choice(&["h2", "http/1.1"])), Default("[\"h2\", \"http/1.1\"]"), "[\"http/1.1\"]",
            "What clients may speak. `h2` is by ALPN with TLS, by prior knowledge without."),
        key("encoded_slashes", Choice(&["refuse", "keep", "decode"]), Default("\"refuse\""), "\"keep\"",
            "What becomes of `%2F` and `%5C`: refused with 400; kept, for routes and endpoints; or decoded, so that `%2F` is a slash for both. See [http-strictness.md](http-strictness.md#encoded-slashes)."),
        key("half_close", Boolean, Default("false"), "true",
            "Serve HTTP/1 clients that end their side of the connection behind the request. By default an end that comes before the response counts as a client that has left."),
        key("access_log", access_log::OF_LISTENER, Absent("that of the top level"), "\"/var/log/subak/web.json\"",
            "This listener's access log instead; `false`: none."),
        key("proxy_protocol", Kind::Table(&ACCEPT_PROXY), Absent("none is understood"), "{ from = [\"10.0.0.0/8\"] }",
            "Whose headers of the PROXY protocol say who the client is."),
        key("trusted_proxies", trusted_proxies::SHORT, Default("[]"), "[\"10.0.0.0/8\", \"fd00::/8\", \"unix\"]",
            "Proxies that say who the client is, and in which field. A list of networks is short for `from`."),
        key("timeouts", Kind::Table(&LISTENER_TIMEOUTS), Default("{}"), "{ head = \"5s\", keep_alive = \"30s\" }",
            "Time limits towards clients."),
        key("min_rate", Either(&[Size { min: 0, max: MAX_RATE }, Kind::Table(&RATE)]), Default("128"), "\"1KiB\"",
            "Bytes a second that a client has to send or take while it is waited for, on average; 0 turns it off."),
        key("limits", Kind::Table(&LIMITS), Default("{}"), "{ body = \"16MiB\" }",
            "Bounds on what one client may ask for."),
        key("http2", Kind::Table(&HTTP2), Default("{}"), "{ streams = 250 }",
            "Bounds of one client's HTTP/2 connection."),
        limits::RATE_KEY,
        limits::ALLOW_KEY,
        limits::DENY_KEY,
        key("path", Kind::Table(&PATH_POLICY), Default("{}"), "{ merge_slashes = false }",
            "How paths are normalised before routes are matched, and what endpoints see."),
        key("allow_trace", Boolean, Default("false"), "true",
            "Forward TRACE instead of answering 405. CONNECT is always refused."),
        key("decision_header", Kind::Text(&FIELD_NAME), Absent("no answer has one"), "\"X-Subak-Decision\"",
            "The field of every answer that names its decision, for `subak explain --id`: 16 hexadecimal digits."),
        key("request_headers", Kind::Table(&HEADERS), Default("{}"), "{ set = { X-Env = \"prod\" }, remove = [\"X-Debug\"] }",
            "Changes to every request, before those of the route and of the pool."),
        key("response_headers", Kind::Table(&HEADERS), Default("{}"), "{ remove = [\"Server\"] }",
            "Changes to every answer, after those of the pool and of the route."),
        key("forwarded_headers", Kind::Table(&FORWARDED), Default("{}"), "{ forwarded = true }",
            "What Subak tells endpoints about the client."),
        key("error_pages", Kind::Map(&PAGES), Default("{}"), "{ \"502\" = \"502.html\", \"5xx\" = \"error.html\" }",
            "Files for the errors that Subak itself answers, by status or class."),
    ],
    rules: &[Rule::AtLeastOne(&["pool", "route", "split", "redirect_to_https"]), Rule::AtMostOne(&["pool", "split"])],
};

/// `listener.NAME.timeouts`.
pub static LISTENER_TIMEOUTS: Table = Table {
    path: "listener.NAME.timeouts",
    what: "a listener's timeouts",
    doc: "Time limits towards clients.",
    keys: &[
        key("head", Duration, Default("\"10s\""), "\"5s\"",
            "From the first byte of a request to the end of its head (408), and for the TLS handshake."),
        key("body_idle", Duration, Default("\"60s\""), "\"20s\"",
            "Between two pieces of a request's body (408)."),
        key("keep_alive", Duration, Default("\"75s\""), "\"30s\"",
            "An idle connection between two requests, or before the first."),
        key("write_idle", Duration, Default("\"60s\""), "\"20s\"",
            "While a response waits because the client takes less than 4 KiB of it, whatever it sends meanwhile."),
    ],
    rules: &[],
};

/// `listener.NAME.min_rate`.
pub static RATE: Table = Table {
    path: "listener.NAME.min_rate",
    what: "a minimum rate",
    doc: "The least throughput a client has to keep up while it sends a head or a body or takes an answer.",
    keys: &[
        key("rate", Size { min: 0, max: MAX_RATE }, Default("128"), "\"1KiB\"",
            "Bytes a second, averaged over the time the client is waited for; 0 turns it off."),
        key("grace", Duration, Default("\"10s\""), "\"30s\"",
            "Time before the average counts."),
    ],
    rules: &[],
};

/// `listener.NAME.limits`.
pub static LIMITS: Table = Table {
    path: "listener.NAME.limits",
    what: "a listener's limits",
    doc: "Bounds on what one client may ask for.",
    keys: &[
        key("head", Size { min: MIN_HEAD_BYTES as u64, max: MAX_HEAD_BYTES as u64 }, Default("\"32KiB\""), "\"16KiB\"",
            "Bytes of a request's head, first line included (431)."),
        key("fields", Integer { min: 1, max: MAX_FIELDS as i64 }, Default("100"), "50",
            "Fields of a request's head (431)."),
        key("requests_per_connection", OrUnlimited(&COUNT), Default("10000"), "\"unlimited\"",
            "Requests after which a connection is closed."),
        key("body", OrUnlimited(&Size { min: 0, max: i64::MAX as u64 }), Default("\"unlimited\""), "\"16MiB\"",
            "Bytes of a request's body (413)."),
        key("connections", OrUnlimited(&COUNT), Default("\"unlimited\""), "5000",
            "Client connections of this listener; the process's `max_connections` counts as well. One more takes the place of an idle one, or is closed at once."),
        key("connections_per_client", limits::PER_CLIENT, Absent("no limit"), "50",
            "Connections of one client, by its address: how many, or a table. One more is closed at once."),
        limits::TARGET_KEY,
        limits::IN_FLIGHT_KEY,
    ],
    rules: &[],
};

/// `listener.NAME.path`.
pub static PATH_POLICY: Table = Table {
    path: "listener.NAME.path",
    what: "a listener's path settings",
    doc: "How paths are normalised before routes are matched, and what endpoints see.",
    keys: &[
        key("merge_slashes", Boolean, Default("true"), "false",
            "Match `//` as `/`."),
        key("forward", Choice(&["original", "normalized"]), Default("\"original\""), "\"normalized\"",
            "Which form goes to the endpoint: what the client wrote, or the normal one, with the parameters that it has."),
    ],
    rules: &[],
};

/// `listener.NAME.forwarded_headers`.
pub static FORWARDED: Table = Table {
    path: "listener.NAME.forwarded_headers",
    what: "a listener's forwarded headers",
    doc: "What Subak tells endpoints about the client.",
    keys: &[
        key("x_forwarded", Boolean, Default("true"), "false",
            "Send X-Forwarded-For, X-Forwarded-Proto and X-Forwarded-Host."),
        key("forwarded", Boolean, Default("false"), "true",
            "Send Forwarded (RFC 7239)."),
    ],
    rules: &[],
};

/// `request_headers` and `response_headers`.
pub static HEADERS: Table = Table {
    path: "request_headers, response_headers",
    what: "header changes",
    doc: "Changes to header fields: first `remove`, then `set`, then `add`. Fields that frame a message or belong to one connection cannot be changed.",
    keys: &[
        key("set", Kind::Map(&FIELDS_SET), Default("{}"), "{ X-Env = \"prod\" }",
            "Replaces all fields of a name by one."),
        key("add", Kind::Map(&FIELDS_ADD), Default("{}"), "{ Vary = [\"Accept\", \"Origin\"] }",
            "Adds one field, or several."),
        key("remove", List(&Kind::Text(&FIELD_NAME)), Default("[]"), "[\"X-Debug\"]",
            "Removes all fields of a name."),
    ],
    rules: &[],
};

/// `redirect` of a route.
pub static REDIRECT: Table = Table {
    path: "listener.NAME.route.redirect",
    what: "a redirect",
    doc: "Variables of `to`: `{scheme}`, `{host}` (without a port), `{path}`, `{query}` (without `?`), `{path_and_query}`.",
    keys: &[
        key("to", Kind::Text(&TEMPLATE), Required, "\"https://{host}{path_and_query}\"",
            "Where to: an absolute URL, or a path from `/`."),
        key("status", Integer { min: 301, max: 308 }, Default("302"), "308",
            "301, 302, 303, 307 or 308."),
    ],
    rules: &[],
};

/// `respond` of a route.
pub static RESPOND: Table = Table {
    path: "listener.NAME.route.respond",
    what: "a fixed answer",
    doc: "A fixed answer, with `body` or `file` or neither.",
    keys: &[
        key("status", Integer { min: 200, max: 599 }, Required, "200",
            "The status."),
        key("body", Kind::Text(&BODY), Absent("an empty body"), "\"ok\\n\"",
            "The body."),
        key("file", Kind::Text(&FILE), Absent("an empty body"), "\"busy.html\"",
            "The file that is the body, at most 1 MiB, read with the configuration."),
        key("content_type", Kind::Text(&CONTENT_TYPE), Absent("by the file's name; `text/plain; charset=utf-8` for `body`"), "\"application/json\"",
            "Content-Type of the body."),
    ],
    rules: &[Rule::AtMostOne(&["body", "file"])],
};

/// `[pool.NAME]`.
pub static POOL: Table = Table {
    path: "pool.NAME",
    what: "a pool",
    doc: "Endpoints that share requests, and how.",
    keys: &[
        key("endpoints", List(&Either(&[Kind::Text(&ENDPOINT_TEXT), Kind::Table(&ENDPOINT)])), Required, "[\"10.0.0.2:8080\", \"10.0.0.3:8080 weight=2\", \"[2345::4]:80\", \"unix:/run/app.sock\"]",
            "Addresses with options (`weight=2 max_in_flight=100`), or tables. An empty list answers 503."),
        key("balance", Kind::Algorithm, Default("\"least_connections\""), "\"round_robin\"",
            "Who gets the next request: an algorithm's name, or a table with its options."),
        key("shadow", List(&Kind::Algorithm), Absent("none"), "[\"peak_ewma\", { algorithm = \"power_of_two\", choices = 3 }]",
            "Up to four other algorithms that decide beside it and send nothing. See [shadow.md](shadow.md)."),
        key("host", Kind::Text(&POOL_HOST), Default("\"preserve\""), "\"endpoint\"",
            "The Host that endpoints see: the client's, the endpoint's address, or a fixed one."),
        key("tls", Either(&[Boolean, Kind::Table(&ENDPOINT_TLS)]), Default("false"), "{ ca = \"internal.pem\", server_name = \"api.internal\" }",
            "Speak TLS with the endpoints: whether, or a table. Certificates are verified."),
        key("proxy_protocol", Either(&[Choice(&["v1", "v2"]), Kind::Table(&SEND_PROXY)]), Absent("none is sent"), "\"v2\"",
            "Tell endpoints by a header of the PROXY protocol who the client is: a version, or a table."),
        key("protocol", Choice(&["http/1.1", "h2", "auto"]), Default("\"http/1.1\""), "\"h2\"",
            "What endpoints speak. `h2` is by ALPN with TLS, by prior knowledge without; `auto` is what the endpoint chooses by ALPN, HTTP/1.1 without TLS."),
        key("streams", Kind::Table(&STREAMS), Default("{}"), "{ per_connection = 250 }",
            "How requests share connections where HTTP/2 is spoken."),
        key("max_in_flight", COUNT, Absent("no cap"), "200",
            "Requests under way at once, for each endpoint that says nothing itself."),
        key("max_connections", COUNT, Absent("no cap"), "500",
            "Connections at once, idle ones included, for each endpoint that says nothing itself."),
        key("keep_alive_connections", Integer { min: 0, max: MAX_KEEP_ALIVE_CONNECTIONS as i64 }, Default("1024"), "32",
            "Idle connections kept to each endpoint by each worker."),
        key("timeouts", Kind::Table(&POOL_TIMEOUTS), Default("{}"), "{ connect = \"1s\", first_byte = \"30s\" }",
            "Time limits towards endpoints."),
        key("queue", Kind::Table(&QUEUE), Default("{}"), "{ length = 100, timeout = \"1s\" }",
            "Where requests wait while every endpoint is at its cap."),
        key("retry", Kind::Table(&RETRY), Default("{}"), "{ budget = 0.1, on = [\"connect\", \"503\"] }",
            "When a request is tried on another endpoint."),
        key("back_off", Either(&[Duration, Kind::Table(&BACK_OFF)]), Default("\"1s\""), "\"5s\"",
            "How long an endpoint is left out after it refused a connection or broke requests in a row: the first time, or a table."),
        key("circuit", Either(&[Boolean, Kind::Table(&CIRCUIT)]), Default("false"), "{ share = 0.3, open = \"10s\" }",
            "Give the pool up for a while when too many of its requests fail: whether, or a table."),
        key("health", Either(&[Kind::Text(&health::CHECK), Kind::Table(&HEALTH)]), Absent("no active checks"), "\"/healthz\"",
            "Ask every endpoint whether it is well: a path to ask for, `\"tcp\"` to open a connection only, or a table."),
        key("agent_check", Either(&[PORT, Kind::Table(&AGENT_CHECK)]), Absent("no agents"), "9999",
            "Ask a program beside every endpoint how it is: its port, or a table."),
        key("eject", Either(&[Boolean, Kind::Table(&EJECT)]), Default("{ latency = false }"), "false",
            "Leave an endpoint out for a while whose requests fail, or that is slow: whether, or a table."),
        key("on_all_down", Choice(&["fail_open", "fail_closed", "backup_only"]), Default("\"fail_open\""), "\"fail_closed\"",
            "Who takes requests when every endpoint is down: all that are only down, nobody (503), or backups that are only down."),
        key("slow_start", Either(&[Duration, Kind::Table(&SLOW_START)]), Absent("the whole weight at once"), "\"30s\"",
            "How an endpoint that comes back grows into its weight: over what time, or a table."),
        key("stick", Kind::Table(&STICK), Absent("every request is balanced"), "{ cookie = \"SUBAK\" }",
            "Keep a client with its endpoint."),
        key("weigher", Kind::Table(&WEIGHER), Absent("weights as configured"), "{ resource = true, token_file = \"agent.token\" }",
            "Let weights follow what the endpoints report of their load."),
        key("pick_log", Integer { min: 1, max: MAX_PICK_LOG as i64 }, Absent("no log"), "1000",
            "How many of the last picks are kept with all that they were made from."),
        key("request_headers", Kind::Table(&HEADERS), Default("{}"), "{ set = { X-Pool = \"app\" } }",
            "Changes to requests, after the route's."),
        key("response_headers", Kind::Table(&HEADERS), Default("{}"), "{ remove = [\"X-Powered-By\"] }",
            "Changes to the endpoints' answers, before the route's."),
    ],
    rules: &[],
};

/// An endpoint as a table.
pub static ENDPOINT: Table = Table {
    path: "pool.NAME.endpoints",
    what: "an endpoint",
    doc: "An endpoint as a table; in the short form the same keys follow the address as `key=value`.",
    keys: &[
        key("address", Kind::Text(&ENDPOINT_ADDRESS), Required, "\"10.0.0.2:8080\"",
            "IPv4, IPv6 in brackets, `localhost`, `unix:` and an absolute path; a name (all its addresses), or `srv:` and a name (what its SRV records list)."),
        key("weight", Integer { min: 0, max: u16::MAX as i64 }, Default("1"), "2",
            "Its share; 0 takes no new requests."),
        key("max_in_flight", COUNT, Absent("the pool's"), "100",
            "Requests under way at once."),
        key("max_connections", COUNT, Absent("the pool's"), "200",
            "Connections at once, idle ones included."),
        key("backup", Boolean, Default("false"), "true",
            "Whether it only takes requests while no other endpoint is ready."),
        key("state", Choice(&["ready", "drain", "maintenance"]), Default("\"ready\""), "\"drain\"",
            "What is wanted of it: work; no new clients (`drain`: sticky ones stay); nothing, not even checks (`maintenance`)."),
    ],
    rules: &[],
};

/// `pool.NAME.timeouts`.
pub static POOL_TIMEOUTS: Table = Table {
    path: "pool.NAME.timeouts",
    what: "a pool's timeouts",
    doc: "Time limits towards endpoints.",
    keys: &[
        key("connect", Duration, Default("\"3s\""), "\"1s\"",
            "To open a connection, or several: while a request has other endpoints to try, one has half of what is left."),
        key("first_byte", Duration, Default("\"60s\""), "\"30s\"",
            "From the end of the request to the first byte of the answer (504)."),
        key("idle", Duration, Default("\"60s\""), "\"20s\"",
            "Between two pieces of the answer, and while the endpoint takes nothing of the request."),
        key("tunnel", Duration, Default("\"1h\""), "\"10m\"",
            "While neither side of a tunnel (WebSocket) sends anything."),
        key("keep_alive", Duration, Default("\"60s\""), "\"30s\"",
            "A connection without a request."),
    ],
    rules: &[],
};

/// `pool.NAME.queue`.
pub static QUEUE: Table = Table {
    path: "pool.NAME.queue",
    what: "a pool's queue",
    doc: "Where requests wait while every endpoint is at its cap (`max_in_flight`), or while none can be reached for a moment.",
    keys: &[
        key("length", Integer { min: 0, max: MAX_QUEUE_LENGTH as i64 }, Default("1000"), "100",
            "Requests that may wait; one more is answered 503. 0: nobody waits."),
        key("timeout", Duration, Default("\"5s\""), "\"1s\"",
            "How long one waits at most; then it is answered 503."),
        key("outage", DurationWithin { min_ms: 0, max_ms: MAX_QUEUE_OUTAGE.as_millis() as u64 }, Default("\"1s\""), "\"3s\"",
            "How long a request waits while no endpoint can be reached; then it is answered 502 or 503. \"0s\": not at all."),
    ],
    rules: &[],
};

/// `pool.NAME.retry`.
pub static RETRY: Table = Table {
    path: "pool.NAME.retry",
    what: "a pool's retries",
    doc: "When a request is tried on another endpoint. Only requests whose answer has not begun; only idempotent ones, unless nothing of the request was sent.",
    keys: &[
        key("budget", Ratio, Default("0.2"), "0.1",
            "Retries as a share of requests. Refused connections do not count."),
        key("min_per_second", Integer { min: 0, max: 1_000_000 }, Default("10"), "3",
            "Retries a second that are allowed whatever the budget."),
        key("attempts", Integer { min: 1, max: MAX_RETRY_ATTEMPTS as i64 }, Default("3"), "2",
            "Endpoints that one request may be tried on, the first included."),
        key("on", List(&Either(&[Kind::Text(&RETRY_ON), Integer { min: 500, max: 599 }])), Default("[\"connect\", \"reset\", \"timeout\"]"), "[\"connect\", \"503\"]",
            "`connect`: no connection; `reset`: it ended before the answer began; `timeout`: no first byte in time; a status; or `grpc:` and a status of gRPC, where the call ended so before its first message."),
        key("body", Size { min: 0, max: MAX_RETRY_BODY_BYTES as u64 }, Default("\"64KiB\""), "\"16KiB\"",
            "Bytes of a request's body that are kept to send it again; a larger one is not retried."),
    ],
    rules: &[],
};

/// `back_off` of a pool.
pub static BACK_OFF: Table = Table {
    path: "pool.NAME.back_off",
    what: "a back-off",
    doc: "Doubled for each failure in a row, until the endpoint answers again.",
    keys: &[
        key("initial", Duration, Default("\"1s\""), "\"5s\"",
            "After the first failure."),
        key("max", Duration, Default("\"30s\""), "\"2m\"",
            "Never longer."),
    ],
    rules: &[],
};
