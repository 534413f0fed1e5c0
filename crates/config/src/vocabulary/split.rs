//! Traffic shared between pools: `split` of a route or of a listener.

use super::{POOL_NAME, key};
use crate::keys::{Kind, Rule, Table, Text};

use crate::keys::Kind::{Boolean, Either, Integer, List};
use crate::keys::Without::{Absent, Default, Required};

static COOKIE_NAME: Text = Text {
    what: "the name of a cookie such as \"SUBAK-SPLIT\"",
    pattern: Some("^[!#$%&'*+.^_`|~0-9A-Za-z-]+$"),
};
static SPLIT_KEY: Text = Text {
    what: "a key such as \"header:X-User\"",
    pattern: Some("^(source|uri|path|(header|cookie|query):[!#$%&'*+.^_`|~0-9A-Za-z-]+)$"),
};

const SIDES: Kind = List(&Kind::Table(&SPLIT_SIDE));
/// A list of pools, or a table that says more.
pub(super) const SPLITS: Kind = Either(&[SIDES, Kind::Table(&SPLIT)]);

/// `split`.
pub static SPLIT: Table = Table {
    path: "listener.NAME.route.split",
    what: "a split",
    doc: "Pools that share requests by weight, and how a client stays with its pool. With neither `by` nor `cookie` each request goes by chance.",
    keys: &[
        key("pools", SIDES, Required, "[{ pool = \"next\", weight = 10 }, { pool = \"app\", weight = 90 }]",
            "The pools with their weights."),
        key("by", Kind::Text(&SPLIT_KEY), Absent("chance"), "\"header:X-User\"",
            "What a client is recognised by: `source` (its address), `uri`, `path`, `header:NAME`, `cookie:NAME`, `query:NAME`. A request without it goes by chance."),
        key("cookie", Kind::Text(&COOKIE_NAME), Absent("no cookie is set"), "\"SUBAK-SPLIT\"",
            "A cookie that answers set and that keeps a client with its pool."),
        key("fallback", Boolean, Default("true"), "false",
            "Whether the others take the requests of a pool that has no endpoint for them; else those are answered 503."),
    ],
    rules: &[Rule::AtMostOne(&["by", "cookie"])],
};

/// One pool of a split.
pub static SPLIT_SIDE: Table = Table {
    path: "listener.NAME.route.split.pools",
    what: "a pool of a split",
    doc: "A pool and its share.",
    keys: &[
        key("pool", Kind::Text(&POOL_NAME), Required, "\"app\"",
            "The pool."),
        key("weight", Integer { min: 0, max: 1_000_000 }, Default("1"), "90",
            "Its share of the sum of all weights; 0: none."),
    ],
    rules: &[],
};
