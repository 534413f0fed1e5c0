//! The PROXY protocol: `proxy_protocol` of a listener and of a pool.

use super::{NETWORK, key};
use crate::keys::Kind::{Boolean, Choice, Duration, List};
use crate::keys::Without::{Default, Required};
use crate::keys::{Kind, Table};

/// `proxy_protocol` of a listener.
pub static ACCEPT_PROXY: Table = Table {
    path: "listener.NAME.proxy_protocol",
    what: "a listener's PROXY protocol",
    doc: "Proxies before this listener say by a header of the PROXY protocol (version 1 or 2) who the client is. See [proxy-protocol.md](proxy-protocol.md).",
    keys: &[
        key("from", List(&Kind::Text(&NETWORK)), Required, "[\"10.0.0.0/8\", \"unix\"]",
            "Whose headers are believed: networks, single addresses, `\"unix\"` for unix sockets. Everybody else is refused."),
        key("optional", Boolean, Default("false"), "true",
            "Serve connections without a header too, from everywhere; a header is read from these networks only."),
        key("timeout", Duration, Default("\"5s\""), "\"1s\"",
            "How long the header may take."),
    ],
    rules: &[],
};

/// `proxy_protocol` of a pool.
pub static SEND_PROXY: Table = Table {
    path: "pool.NAME.proxy_protocol",
    what: "a pool's PROXY protocol",
    doc: "Endpoints hear by a header of the PROXY protocol who the client is. Such a connection serves one client's connection only.",
    keys: &[
        key("version", Choice(&["v1", "v2"]), Default("\"v2\""), "\"v1\"",
            "A line of text, or the binary form."),
        key("tls", Boolean, Default("true"), "false",
            "Whether the header tells of the client's TLS: ALPN, server name, version, cipher, common name. Not with `v1`."),
        key("checksum", Boolean, Default("false"), "true",
            "Whether the header has a checksum (CRC32c). Not with `v1`."),
    ],
    rules: &[],
};
