//! How much is too much: `rate`, `limits.in_flight`, `limits.connections_per_client`, `allow` and `deny`
//! of listeners and routes, `circuit` of a pool.

use super::{COUNT, NAME_PATTERN, key};
use crate::defaults::{MAX_LIMIT_ENTRIES, MAX_WINDOW, MIN_LIMIT_ENTRIES, MIN_WINDOW};
use crate::keys::{Key, Kind, Table, Text};

use crate::keys::Kind::{
    Boolean, Choice, Duration, DurationWithin, Either, Integer, OneOrMany, OrUnlimited, Ratio, Size,
};
use crate::keys::Without::{Absent, Default, Required};

static RATE_TEXT: Text =
    Text { what: "a rate such as \"100/s\" or \"6000/m\"", pattern: Some("^[0-9]+/(s|m|h|d)$") };
static KEY: Text = Text {
    what: "\"client\", \"client/24/56\", \"header:NAME\", \"cookie:NAME\", \"query:NAME\", \"path\", \"host\" or \"all\"",
    pattern: Some("^(all|path|host|client(/[0-9]+/[0-9]+)?|(header|cookie|query):[!#$%&'*+.^_`|~0-9A-Za-z-]+)$"),
};
static CLIENT: Text = Text {
    what: "\"client\", or with prefixes \"client/24/56\"",
    pattern: Some("^client(/[0-9]+/[0-9]+)?$"),
};
static LIMIT_NAME: Text = Text { what: "a name such as \"login\"", pattern: Some(NAME_PATTERN) };
static NETWORK: Text = Text { what: "a network such as \"10.0.0.0/8\", or an address", pattern: None };

pub(super) const RATES: Kind = OneOrMany(&Either(&[Kind::Text(&RATE_TEXT), Kind::Table(&RATE_LIMIT)]));
pub(super) const IN_FLIGHTS: Kind = OneOrMany(&Either(&[COUNT, Kind::Table(&IN_FLIGHT)]));
pub(super) const PER_CLIENT: Kind = Either(&[COUNT, Kind::Table(&CONNECTIONS_PER_CLIENT)]);
const NETWORKS: Kind = OneOrMany(&Kind::Text(&NETWORK));
const ENTRIES: Kind = Integer { min: MIN_LIMIT_ENTRIES as i64, max: MAX_LIMIT_ENTRIES as i64 };
const STATUS: Kind = Integer { min: 400, max: 599 };

const ENTRIES_KEY: Key =
    key("entries", ENTRIES, Default("65536"), "1000000",
        "Keys that are told apart at once. See [limits.md](limits.md) for what happens beyond.");
const NAME_KEY: Key =
    key("name", Kind::Text(&LIMIT_NAME), Absent("one made of the listener, the route and a number"), "\"login\"",
        "What it is called in metrics, status and answers.");
const DRY_RUN_KEY: Key =
    key("dry_run", Boolean, Default("false"), "true",
        "Only count and log whom it would refuse.");

pub(super) const ALLOW_KEY: Key =
    key("allow", NETWORKS, Absent("everybody, but for `deny`"), "[\"10.0.0.0/8\", \"2001:db8::/32\"]",
        "Networks whose clients may in; others may not. Of several networks that hold an address the most specific decides.");
pub(super) const DENY_KEY: Key =
    key("deny", NETWORKS, Absent("nobody, but for `allow`"), "[\"192.0.2.0/24\"]",
        "Networks whose clients may not: a listener closes their connections at once, a route answers 403.");
pub(super) const RATE_KEY: Key =
    key("rate", RATES, Absent("no limit"), "[\"100/s\", { rate = \"1000/m\", key = \"header:X-Api-Key\" }]",
        "How many requests a client may make: a rate, a table, or several of them, all of which have to be kept.");
pub(super) const TARGET_KEY: Key =
    key("target", Size { min: 16, max: 65_536 }, Absent("what fits into the head"), "\"2KiB\"",
        "Bytes of path and query (414).");
pub(super) const IN_FLIGHT_KEY: Key =
    key("in_flight", IN_FLIGHTS, Absent("no limit"), "[1000, { most = 20, key = \"client\" }]",
        "Requests under way at once: how many, a table, or several of them.");

/// `rate`.
pub static RATE_LIMIT: Table = Table {
    path: "listener.NAME.rate",
    what: "a rate limit",
    doc: "A bucket of tokens for each key, of a listener or of a route. Every request takes one; where there is none it is refused.",
    keys: &[
        key("rate", Kind::Text(&RATE_TEXT), Required, "\"100/s\"",
            "Tokens that a bucket gets, evenly, in a second, minute, hour or day."),
        key("burst", COUNT, Absent("as many as `rate` names"), "20",
            "Tokens that a bucket holds: requests that may come at once."),
        key("key", Kind::Text(&KEY), Default("\"client\""), "\"header:X-Api-Key\"",
            "Whose bucket: `client` is the address (of IPv6 the first 64 bits), `client/24/56` its first bits, `all` everybody's. Who lacks the header, cookie or parameter goes by the address."),
        key("status", STATUS, Default("429"), "503",
            "What a refused request is answered."),
        key("fields", Choice(&["refused", "always", "never"]), Default("\"refused\""), "\"always\"",
            "Which answers have the fields RateLimit and RateLimit-Policy."),
        DRY_RUN_KEY,
        ENTRIES_KEY,
        NAME_KEY,
    ],
    rules: &[],
};

/// `limits.in_flight`.
pub static IN_FLIGHT: Table = Table {
    path: "listener.NAME.limits.in_flight",
    what: "a limit of requests under way",
    doc: "How many requests may be under way at once, of a listener or of a route.",
    keys: &[
        key("most", COUNT, Required, "20",
            "So many of each key."),
        key("key", Kind::Text(&KEY), Default("\"all\""), "\"client\"",
            "Who is counted together, as in `rate`."),
        key("status", STATUS, Absent("503 for the key \"all\", else 429"), "429",
            "What one more is answered."),
        DRY_RUN_KEY,
        ENTRIES_KEY,
        NAME_KEY,
    ],
    rules: &[],
};

/// `limits.connections_per_client`.
pub static CONNECTIONS_PER_CLIENT: Table = Table {
    path: "listener.NAME.limits.connections_per_client",
    what: "a limit of connections",
    doc: "How many connections one client may have open; one more is closed at once.",
    keys: &[
        key("most", COUNT, Required, "50",
            "So many of each client."),
        key("key", Kind::Text(&CLIENT), Default("\"client\""), "\"client/24/56\"",
            "Which addresses are one client: `client` is all of an IPv4 address and the first 64 bits of an IPv6 address."),
        ENTRIES_KEY,
    ],
    rules: &[],
};

/// `limits` of a route.
pub static ROUTE_LIMITS: Table = Table {
    path: "listener.NAME.route.limits",
    what: "a route's limits",
    doc: "Bounds on the requests of one route. What is not given here is as the listener has it.",
    keys: &[
        key("body", OrUnlimited(&Size { min: 0, max: i64::MAX as u64 }), Absent("the listener's"), "\"100MiB\"",
            "Bytes of a request's body (413), instead of the listener's."),
        TARGET_KEY,
        key("fields", Integer { min: 1, max: crate::defaults::MAX_FIELDS as i64 }, Absent("the listener's"), "30",
            "Fields of a request's head (431)."),
        IN_FLIGHT_KEY,
    ],
    rules: &[],
};

/// `circuit` of a pool.
pub static CIRCUIT: Table = Table {
    path: "pool.NAME.circuit",
    what: "a circuit",
    doc: "Gives a pool up for a while when too many of its requests fail: they are answered 503 at once. A failure is a request that no endpoint answered, or one answered 500 to 599.",
    keys: &[
        key("share", Ratio, Default("0.5"), "0.3",
            "The share of failures in the window that opens it; 0: not by share."),
        key("consecutive", Integer { min: 0, max: 1_000_000 }, Default("0"), "20",
            "Failures in a row that open it; 0: not by failures in a row."),
        key("window", DurationWithin { min_ms: MIN_WINDOW.as_millis() as u64, max_ms: MAX_WINDOW.as_millis() as u64 }, Default("\"10s\""), "\"30s\"",
            "The time over which the share is taken."),
        key("min_requests", Integer { min: 1, max: 1_000_000 }, Default("20"), "100",
            "Fewer requests in the window say nothing of the share."),
        key("slow", Duration, Absent("however slow"), "\"2s\"",
            "A request that took longer counts as a failure."),
        key("open", Duration, Default("\"5s\""), "\"30s\"",
            "How long it stays open before the first trial."),
        key("trials", Integer { min: 1, max: 1000 }, Default("3"), "10",
            "Requests that have to be well, one and all, before it closes; not more at once."),
        key("max_in_flight", COUNT, Absent("no limit"), "500",
            "Requests of the pool at once, those that wait included; one more is answered 503."),
    ],
    rules: &[],
};
