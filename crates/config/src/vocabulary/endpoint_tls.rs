//! TLS to endpoints: `tls` of a pool.

use super::{FILE, key};
use crate::keys::Kind::Boolean;
use crate::keys::Without::{Absent, Default, Required};
use crate::keys::{Kind, Table, Text};

pub(super) static SERVER_NAME: Text =
    Text { what: "a host such as \"api.internal\", or an address", pattern: None };

/// `tls` of a pool.
pub static ENDPOINT_TLS: Table = Table {
    path: "pool.NAME.tls",
    what: "a pool's TLS",
    doc: "TLS to endpoints: whom to trust, which name their certificates have to have, and what to show them. `tls = true` is `tls = {}`. See [tls-endpoints.md](tls-endpoints.md).",
    keys: &[
        key("ca", Kind::Text(&FILE), Absent("the machine's authorities"), "\"internal.pem\"",
            "Authorities that may have signed the endpoints' certificates, or those certificates themselves: PEM."),
        key("server_name", Kind::Text(&SERVER_NAME), Absent("the name the endpoint was resolved from, else its address"), "\"api.internal\"",
            "The name that is asked for (SNI), and that certificates have to have."),
        key("certificate", Kind::Table(&ENDPOINT_CERTIFICATE), Absent("none"), "{ chain = \"client.pem\", key = \"client.key\" }",
            "What is shown to endpoints that ask for a certificate."),
        key("crl", Kind::Text(&FILE), Absent("nobody looks"), "\"revoked.pem\"",
            "Certificates that authorities have taken back: lists in PEM."),
        key("verify", Boolean, Default("true"), "false",
            "Whether certificates are verified at all. Without that anybody on the way can read and change everything."),
    ],
    rules: &[],
};

/// `certificate` of a pool's TLS.
pub static ENDPOINT_CERTIFICATE: Table = Table {
    path: "pool.NAME.tls.certificate",
    what: "a certificate for endpoints",
    doc: "A chain and its key, both PEM.",
    keys: &[
        key("chain", Kind::Text(&FILE), Required, "\"client.pem\"",
            "Certificates, Subak's own first."),
        key("key", Kind::Text(&FILE), Required, "\"client.key\"",
            "The private key of the first certificate."),
    ],
    rules: &[],
};
