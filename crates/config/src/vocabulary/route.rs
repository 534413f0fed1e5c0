//! Which requests a route takes: the tables of its conditions.

use super::{
    FIELD_NAME_PATTERN, HEADERS, HOST, NETWORK, PATH, POOL_NAME, REDIRECT, REGEX,
    RESPOND, TEMPLATE, key,
};
use super::limits;
use super::split::SPLITS;
use crate::keys::{Key, Kind, Map, Rule, Table, Text};

use crate::keys::Kind::{Boolean, Either, Integer, OneOrMany};
use crate::keys::Without::{Absent, Default, Required};

static METHOD: Text = Text {
    what: "a method such as \"GET\"",
    pattern: Some("^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,32}$"),
};
static REWRITE_TO: Text = Text { what: "a path such as \"/new\"", pattern: None };
static VALUE: Text = Text { what: "a value such as \"prod\"", pattern: None };

const VALUES: Kind = OneOrMany(&Either(&[Kind::Text(&VALUE), Kind::Table(&VALUE_MATCH)]));

static HEADER_VALUES: Map =
    Map { key: "a header name", pattern: FIELD_NAME_PATTERN, value: VALUES };
static COOKIE_VALUES: Map =
    Map { key: "the name of a cookie", pattern: FIELD_NAME_PATTERN, value: VALUES };
static QUERY_VALUES: Map =
    Map { key: "the name of a parameter", pattern: "^.{1,256}$", value: VALUES };

const HOSTS: Kind = OneOrMany(&Kind::Text(&HOST));
const PATHS: Kind = Either(&[Kind::Text(&PATH), Kind::Table(&PATH_MATCH)]);
const METHODS: Kind = OneOrMany(&Kind::Text(&METHOD));
const CLIENTS: Kind = OneOrMany(&Kind::Text(&NETWORK));

const HOST_KEY: Key =
    key("host", HOSTS, Absent("every host"), "[\"example.com\", \"*.example.com\"]",
        "Hosts without a port; `*.` stands for one label or more.");
const PATH_KEY: Key =
    key("path", PATHS, Absent("every path"), "\"/api/\"",
        "A prefix, or a table with one of `exact`, `prefix`, `regex`. Matched against the normalised path, without the query.");
const METHOD_KEY: Key =
    key("method", METHODS, Absent("every method"), "[\"GET\", \"HEAD\"]",
        "Methods, in capitals.");
const CLIENT_KEY: Key =
    key("client", CLIENTS, Absent("every client"), "[\"10.0.0.0/8\", \"192.0.2.7\"]",
        "Networks or addresses of clients, behind trusted proxies the one they name; `\"unix\"`: came by unix socket.");
const HEADER_KEY: Key =
    key("header", Kind::Map(&HEADER_VALUES), Absent("every header"), "{ X-Env = \"staging\", X-Beta = { present = true } }",
        "Values of header fields as the client sent them: a value, a table of tests, or a list, any of which will do.");
const COOKIE_KEY: Key =
    key("cookie", Kind::Map(&COOKIE_VALUES), Absent("every cookie"), "{ beta = \"yes\" }",
        "Values of cookies, like `header`.");
const QUERY_KEY: Key =
    key("query", Kind::Map(&QUERY_VALUES), Absent("every query"), "{ version = [\"2\", \"3\"] }",
        "Values of parameters of the query, decoded (`%20` and `+` are spaces), like `header`.");

/// `[[listener.NAME.route]]`.
pub static ROUTE: Table = Table {
    path: "listener.NAME.route",
    what: "a route",
    doc: "Which requests it takes (all conditions have to hold) and what becomes of them: one of `pool`, `split`, `redirect`, `respond`.",
    keys: &[
        HOST_KEY,
        PATH_KEY,
        METHOD_KEY,
        CLIENT_KEY,
        HEADER_KEY,
        COOKIE_KEY,
        QUERY_KEY,
        key("not", Kind::Table(&ROUTE_NOT), Absent("nothing is left out"), "{ client = \"10.0.0.0/8\" }",
            "The same conditions, none of which may hold."),
        key("pool", Kind::Text(&POOL_NAME), Absent("`redirect` or `respond`"), "\"app\"",
            "Balance over this pool."),
        key("split", SPLITS, Absent("`pool` alone"), "[{ pool = \"next\", weight = 10 }, { pool = \"app\", weight = 90 }]",
            "Pools that share the requests by weight, or a table that says also how a client stays with its pool."),
        key("strip_prefix", Kind::Text(&PATH), Absent("the path stays whole"), "\"/v2\"",
            "What is taken off the beginning of the path, in whole segments; X-Forwarded-Prefix says so. With `pool` or `split`."),
        key("rewrite", Kind::Table(&REWRITE), Absent("the path stays as it is"), "{ prefix = \"/old\", to = \"/new\" }",
            "Another path for the endpoint. With `pool` or `split`."),
        key("redirect", Either(&[Kind::Text(&TEMPLATE), Kind::Table(&REDIRECT)]), Absent("`pool` or `respond`"), "\"https://{host}{path_and_query}\"",
            "Send the client elsewhere."),
        key("respond", Either(&[Integer { min: 200, max: 599 }, Kind::Table(&RESPOND)]), Absent("`pool` or `redirect`"), "404",
            "A fixed answer: a status, or a table."),
        limits::RATE_KEY,
        key("limits", Kind::Table(&super::ROUTE_LIMITS), Default("{}"), "{ body = \"100MiB\", in_flight = 50 }",
            "Bounds on its requests, beside those of the listener."),
        limits::ALLOW_KEY,
        limits::DENY_KEY,
        key("request_headers", Kind::Table(&HEADERS), Default("{}"), "{ set = { X-Env = \"prod\" } }",
            "Changes to requests, after the listener's and before the pool's. Only with `pool`."),
        key("response_headers", Kind::Table(&HEADERS), Default("{}"), "{ add = { X-Route = \"api\" } }",
            "Changes to answers, after the pool's and before the listener's."),
        key("error_pages", Kind::Map(&super::PAGES), Default("{}"), "{ \"503\" = \"busy.html\" }",
            "As in the listener; these come first."),
    ],
    rules: &[
        Rule::ExactlyOne(&["pool", "split", "redirect", "respond"]),
        Rule::AtMostOne(&["strip_prefix", "rewrite"]),
    ],
};

/// `not` of a route.
pub static ROUTE_NOT: Table = Table {
    path: "listener.NAME.route.not",
    what: "what a route leaves out",
    doc: "Conditions of a route none of which may hold.",
    keys: &[HOST_KEY, PATH_KEY, METHOD_KEY, CLIENT_KEY, HEADER_KEY, COOKIE_KEY, QUERY_KEY],
    rules: &[Rule::AtLeastOne(&["host", "path", "method", "client", "header", "cookie", "query"])],
};

/// `path` of a route.
pub static PATH_MATCH: Table = Table {
    path: "listener.NAME.route.path",
    what: "a path match",
    doc: "One of three. Paths are compared after normalisation: dot segments resolved, needless percent-encoding undone, and (unless told otherwise) slashes merged.",
    keys: &[
        key("exact", Kind::Text(&PATH), Absent("`prefix` or `regex`"), "\"/healthz\"",
            "This path alone."),
        key("prefix", Kind::Text(&PATH), Absent("`exact` or `regex`"), "\"/api/\"",
            "Paths that begin so: `/api` takes `/apiary` too, `/api/` does not take `/api`."),
        key("regex", Kind::Text(&REGEX), Absent("`exact` or `prefix`"), "'\\.(css|js)$'",
            "Paths in which it is found; anchor it by `^` and `$`. No look-around, no back references: linear time."),
    ],
    rules: &[Rule::ExactlyOne(&["exact", "prefix", "regex"])],
};

/// `rewrite` of a route.
pub static REWRITE: Table = Table {
    path: "listener.NAME.route.rewrite",
    what: "a rewrite",
    doc: "Another path for the endpoint, made from the normalised one. A path that does not fit stays as it is; the query stays in any case.",
    keys: &[
        key("prefix", Kind::Text(&PATH), Absent("`regex`"), "\"/old\"",
            "A beginning of the path, in whole segments, that `to` takes the place of."),
        key("regex", Kind::Text(&REGEX), Absent("`prefix`"), "'^/users/(\\d+)/'",
            "The first match in the path gives way to `to`; anchor it by `^` and `$`."),
        key("to", Kind::Text(&REWRITE_TO), Required, "\"/new\"",
            "What takes its place. After `regex`: `$1` to `$9` are its groups, `$0` is all of it, `$$` is `$`."),
    ],
    rules: &[Rule::ExactlyOne(&["prefix", "regex"])],
};

/// The test of a value of `header`, `cookie` or `query`.
pub static VALUE_MATCH: Table = Table {
    path: "listener.NAME.route.header.NAME",
    what: "a value's test",
    doc: "What one value of `header`, `cookie` or `query` has to look like; all that is given has to be true of it.",
    keys: &[
        key("exact", Kind::Text(&VALUE), Absent("any"), "\"prod\"",
            "It is this one, with case."),
        key("prefix", Kind::Text(&VALUE), Absent("any"), "\"Bearer \"",
            "It begins so."),
        key("suffix", Kind::Text(&VALUE), Absent("any"), "\"-beta\"",
            "It ends so."),
        key("contains", Kind::Text(&VALUE), Absent("any"), "\"bot\"",
            "This is somewhere in it."),
        key("regex", Kind::Text(&REGEX), Absent("any"), "'(?i)^mozilla/'",
            "The expression is found in it; anchor it by `^` and `$`."),
        key("present", Boolean, Absent("any"), "true",
            "Whether there is one at all. `false` stands alone."),
    ],
    rules: &[Rule::AtLeastOne(&["exact", "prefix", "suffix", "contains", "regex", "present"])],
};
