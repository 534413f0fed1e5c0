//! Which endpoint a client comes back to: `stick` of a pool.

use super::{FILE, key};
use crate::defaults::{MAX_STICK_ENTRIES, MAX_STICK_EXPIRY};
use crate::keys::{Kind, Rule, Table, Text};

use crate::keys::Kind::{Boolean, Choice, DurationWithin, Either, Integer};
use crate::keys::Without::{Absent, Default};

static COOKIE_NAME: Text = Text {
    what: "the name of a cookie such as \"SUBAK\"",
    pattern: Some("^[!#$%&'*+.^_`|~0-9A-Za-z-]+$"),
};
static COOKIE_PATH: Text = Text { what: "a path such as \"/\"", pattern: Some("^/") };

/// `stick` of a pool.
pub static STICK: Table = Table {
    path: "pool.NAME.stick",
    what: "stickiness",
    doc: "A client stays with the endpoint that it was first sent to, by a signed cookie or by a table of addresses.",
    keys: &[
        key("cookie", Kind::Text(&COOKIE_NAME), Absent("`table`"), "\"SUBAK\"",
            "The name of the cookie that answers set."),
        key("table", Choice(&["source"]), Absent("`cookie`"), "\"source\"",
            "Remember clients by their address."),
        key("path", Kind::Text(&COOKIE_PATH), Default("\"/\""), "\"/app/\"",
            "Path of the cookie."),
        key("secure", Either(&[Boolean, Choice(&["auto"])]), Default("\"auto\""), "true",
            "Secure of the cookie: always, never, or where the client came by TLS."),
        key("http_only", Boolean, Default("true"), "false",
            "HttpOnly of the cookie: no script sees it."),
        key("same_site", Choice(&["lax", "strict", "none"]), Default("\"lax\""), "\"strict\"",
            "SameSite of the cookie. Browsers take `none` only together with Secure."),
        key("keys_file", Kind::Text(&FILE), Absent("a random key, so that a restart forgets sessions"), "\"session.keys\"",
            "Keys that sign cookies, one a line: the first signs, all verify."),
        key("expire", DurationWithin { min_ms: 1000, max_ms: MAX_STICK_EXPIRY.as_millis() as u64 }, Default("\"30m\""), "\"8h\"",
            "How long a client is remembered after its last request. Only with `table`."),
        key("entries", Integer { min: 1, max: MAX_STICK_ENTRIES as i64 }, Default("100000"), "1000000",
            "Clients that are remembered at most. Only with `table`."),
    ],
    rules: &[Rule::ExactlyOne(&["cookie", "table"])],
};
