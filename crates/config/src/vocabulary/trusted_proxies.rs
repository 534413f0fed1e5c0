//! Proxies whose word about the client is believed: `trusted_proxies` of a listener.

use super::{FIELD_NAME, FIELD_NAME_PATTERN, NETWORK, key};
use crate::keys::Kind::{Either, List};
use crate::keys::Without::{Default, Required};
use crate::keys::{Kind, Table, Text};

static FIELD: Text = Text {
    what: "a field such as \"x-forwarded-for\", \"forwarded\" or \"x-real-ip\"",
    pattern: Some(FIELD_NAME_PATTERN),
};

const NETWORKS: Kind = List(&Kind::Text(&NETWORK));

/// Networks alone, or the table.
pub(super) const SHORT: Kind = Either(&[NETWORKS, Kind::Table(&TRUSTED_PROXIES)]);

/// `trusted_proxies` of a listener.
pub static TRUSTED_PROXIES: Table = Table {
    path: "listener.NAME.trusted_proxies",
    what: "a listener's trusted proxies",
    doc: "Proxies before this listener that say who the client is, and the field in which they say it. A list of networks is short for `from`.",
    keys: &[
        key("from", NETWORKS, Required, "[\"10.0.0.0/8\", \"unix\"]",
            "Their addresses: networks, single addresses, `\"unix\"` for unix sockets."),
        key("field", Kind::Text(&FIELD), Default("\"x-forwarded-for\""), "\"forwarded\"",
            "The field that every one of them writes into every request: `x-forwarded-for` (with X-Forwarded-Proto, -Host, -Port, -Prefix, -Scheme, -Server and -Ssl), `forwarded`, or a field with one address such as `x-real-ip` or `cf-connecting-ip`. Other fields by which proxies tell of a client are removed, whoever sends them."),
        key("also", List(&Kind::Text(&FIELD_NAME)), Default("[]"), "[\"X-Forwarded-User\", \"X-Client-Cert-*\"]",
            "Further fields that every one of them sets or removes in every request. They go on from these proxies, and from nobody else. `*` at the end stands for any ending."),
    ],
    rules: &[],
};
