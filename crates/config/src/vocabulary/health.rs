//! Whether endpoints are fit for work: `health`, `agent_check`, `eject`, `slow_start` of a pool.

use subak_health::JITTER_MAX_PER_MILLE;

use super::endpoint_tls::SERVER_NAME;
use super::{PORT, key};
use crate::defaults::{
    MAX_CHECK_INTERVAL, MAX_EJECTION, MAX_IN_A_ROW, MIN_CHECK_INTERVAL, MAX_WINDOW, MIN_WINDOW,
};
use crate::keys::{Kind, Rule, Table, Text};

use crate::keys::Kind::{Boolean, Choice, Decimal, Duration, DurationWithin, Either, Integer, Ratio};
use crate::keys::Without::{Absent, Default, Required};

pub(super) static CHECK: Text =
    Text { what: "\"tcp\", or a path to ask for such as \"/healthz\"", pattern: Some("^(tcp$|/)") };
static TARGET: Text = Text { what: "a path such as \"/healthz\"", pattern: Some("^/") };
static GRPC_CODE: Text =
    Text { what: "a status of gRPC such as \"unavailable\"", pattern: Some("^[a-z_]+$") };
static STATUSES: Text = Text { what: "statuses such as \"200-399\" or \"2xx,304\"", pattern: None };
static SERVICE: Text = Text { what: "the name of a gRPC service, or \"\"", pattern: None };
static NEEDLE: Text = Text { what: "a text to look for", pattern: None };
static CHECK_HOST: Text =
    Text { what: "\"endpoint\" or a host such as \"app.internal\"", pattern: None };

/// From one check to the next.
pub(super) const INTERVAL: Kind = DurationWithin {
    min_ms: MIN_CHECK_INTERVAL.as_millis() as u64,
    max_ms: MAX_CHECK_INTERVAL.as_millis() as u64,
};
const IN_A_ROW: Kind = Integer { min: 1, max: MAX_IN_A_ROW as i64 };
const JITTER: Kind = Decimal { min: 0, max: JITTER_MAX_PER_MILLE };

/// `health` of a pool.
pub static HEALTH: Table = Table {
    path: "pool.NAME.health",
    what: "a health check",
    doc: "Subak asks every endpoint itself, by HTTP/1.1, by gRPC's health check, or by opening a connection.",
    keys: &[
        key("http", Kind::Text(&TARGET), Absent("`tcp` or `grpc`"), "\"/healthz\"",
            "The path to ask for, query included. Redirects are not followed."),
        key("tcp", Boolean, Absent("`http` or `grpc`"), "true",
            "Only open a connection, and close it at once."),
        key("grpc", Kind::Text(&SERVICE), Absent("`http` or `tcp`"), "\"shop.Cart\"",
            "The service to ask for by gRPC's health checking protocol; `\"\"` is the server as a whole. SERVING passes."),
        key("port", PORT, Absent("the endpoint's own"), "8081",
            "Where to ask instead, at the endpoint's address."),
        key("tls", Boolean, Absent("as the pool"), "true",
            "Whether to ask by TLS, with what the pool's `tls` says where it has one."),
        key("server_name", Kind::Text(&SERVER_NAME), Absent("the pool's"), "\"health.internal\"",
            "Another name to ask for by TLS, and that the certificate has to have."),
        key("proxy_protocol", Boolean, Absent("as the pool"), "true",
            "Whether to begin with a header of the PROXY protocol that announces nobody: `LOCAL`, or `UNKNOWN` in version 1."),
        key("interval", INTERVAL, Default("\"2s\""), "\"5s\"",
            "From one check to the next, while nothing changes."),
        key("fast_interval", INTERVAL, Default("\"500ms\""), "\"1s\"",
            "The same before the first result and while results speak against the present state. Without it at most `interval`."),
        key("timeout", Duration, Default("\"1s\""), "\"800ms\"",
            "For a whole check, from connect to the last byte needed. At most `interval`."),
        key("rise", IN_A_ROW, Default("2"), "3",
            "Passes in a row that bring an endpoint up. The first result of all decides alone."),
        key("fall", IN_A_ROW, Default("3"), "2",
            "Failures in a row that take it down."),
        key("jitter", JITTER, Default("0.1"), "0.2",
            "By what share an interval varies, either way, so that checks do not fall into step."),
        key("assume", Choice(&["up", "down"]), Default("\"up\""), "\"down\"",
            "What an endpoint counts as until its first result."),
        key("method", Choice(&["GET", "HEAD", "OPTIONS"]), Default("\"GET\""), "\"HEAD\"",
            "The method of the request. Only with `http`."),
        key("host", Kind::Text(&CHECK_HOST), Absent("the pool's `host` where that is a fixed one, else `\"endpoint\"`"), "\"app.internal\"",
            "The Host of the request. Only with `http` and `grpc`."),
        key("status", Either(&[Kind::Text(&STATUSES), Integer { min: 200, max: 599 }]), Default("\"200-399\""), "\"2xx,304\"",
            "The statuses that pass: single ones, ranges, classes, separated by commas. Only with `http`."),
        key("body", Either(&[Kind::Text(&NEEDLE), Kind::Table(&HEALTH_BODY)]), Absent("any body"), "\"ok\"",
            "A text that the first 16 KiB of the body have to contain, or a table. Only with `http`."),
    ],
    rules: &[Rule::ExactlyOne(&["http", "tcp", "grpc"])],
};

/// `body` of a health check.
pub static HEALTH_BODY: Table = Table {
    path: "pool.NAME.health.body",
    what: "a body to expect",
    doc: "Plain text of at most 256 bytes; upper and lower case differ.",
    keys: &[
        key("contains", Kind::Text(&NEEDLE), Absent("`exact`"), "\"ok\"",
            "Is found somewhere in it."),
        key("exact", Kind::Text(&NEEDLE), Absent("`contains`"), "\"ok\"",
            "Is all of it, but for line ends behind."),
    ],
    rules: &[Rule::ExactlyOne(&["contains", "exact"])],
};

/// `agent_check` of a pool.
pub static AGENT_CHECK: Table = Table {
    path: "pool.NAME.agent_check",
    what: "an agent check",
    doc: "A program beside every endpoint says in a line of text how it is and what share it wants: the protocol of HAProxy's agent-check.",
    keys: &[
        key("port", PORT, Required, "9999",
            "Where the agent listens, at the endpoint's address."),
        key("interval", INTERVAL, Default("\"5s\""), "\"2s\"",
            "From one question to the next."),
        key("timeout", Duration, Default("\"1s\""), "\"500ms\"",
            "For connecting and reading the line. At most `interval`."),
        key("jitter", JITTER, Default("0.1"), "0.2",
            "By what share the interval varies, either way."),
    ],
    rules: &[],
};

/// `eject` of a pool.
pub static EJECT: Table = Table {
    path: "pool.NAME.eject",
    what: "an ejection",
    doc: "An endpoint that the traffic shows to be unfit is left out for a while. A failure is a request that got no answer from it, or one of 500 to 599.",
    keys: &[
        key("consecutive", Integer { min: 0, max: MAX_IN_A_ROW as i64 }, Default("5"), "3",
            "Failures in a row that eject at once; 0: not by failures in a row."),
        key("share", Ratio, Default("0.5"), "0.2",
            "The share of failures in the window that ejects; 0: not by share."),
        key("grpc", Kind::List(&Kind::Text(&GRPC_CODE)), Default("[]"), "[\"unavailable\", \"internal\"]",
            "Statuses of gRPC calls that count as failures too."),
        key("latency", Either(&[Boolean, Kind::Table(&EJECT_LATENCY)]), Default("true"), "false",
            "Whether an endpoint that is much slower than the others is ejected, or when."),
        key("window", DurationWithin { min_ms: MIN_WINDOW.as_millis() as u64, max_ms: MAX_WINDOW.as_millis() as u64 }, Default("\"10s\""), "\"30s\"",
            "The time over which shares and latencies are taken."),
        key("min_requests", Integer { min: 1, max: 1_000_000 }, Default("20"), "100",
            "Fewer requests to an endpoint in the window say nothing of its share and latency."),
        key("base", DurationWithin { min_ms: 100, max_ms: MAX_EJECTION.as_millis() as u64 }, Default("\"10s\""), "\"5s\"",
            "How long the first ejection lasts; the n-th lasts n times as long. One is forgiven for every `base` without another."),
        key("max", DurationWithin { min_ms: 100, max_ms: MAX_EJECTION.as_millis() as u64 }, Default("\"5m\""), "\"2m\"",
            "Never longer."),
        key("max_share", Ratio, Default("0.5"), "0.2",
            "How much of the pool may be ejected at a time: rounded down, but at least one, and never the last one unless it is 1."),
    ],
    rules: &[],
};

/// `latency` of an ejection.
pub static EJECT_LATENCY: Table = Table {
    path: "pool.NAME.eject.latency",
    what: "an ejection by latency",
    doc: "An endpoint is too slow when its mean is above `factor` times the pool's median and at least `min` above it.",
    keys: &[
        key("factor", Decimal { min: 1_000, max: 1_000_000 }, Default("3"), "2.5",
            "So many times the pool's median."),
        key("min", Duration, Default("\"50ms\""), "\"200ms\"",
            "And so much above it: three times nothing is nothing."),
    ],
    rules: &[],
};

/// `slow_start` of a pool.
pub static SLOW_START: Table = Table {
    path: "pool.NAME.slow_start",
    what: "a slow start",
    doc: "An endpoint that comes back begins with a share of its weight and grows into it. Not with `ip_hash`, `new_hash` and hashing by modulo.",
    keys: &[
        key("over", Duration, Required, "\"30s\"",
            "From the first share to the whole weight."),
        key("from", Ratio, Default("0.1"), "0.25",
            "The first share."),
    ],
    rules: &[],
};
