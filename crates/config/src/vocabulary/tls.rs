//! TLS to clients: `tls`, `hsts` and `redirect_to_https` of a listener.

use super::{FILE, key};
use crate::defaults::{MAX_TICKET_PERIOD, MIN_TICKET_PERIOD};
use crate::keys::{Kind, Rule, Table, Without};

use Kind::{Boolean, Choice, DurationWithin, Either, Integer, List};
use Without::{Absent, Default, Required};

/// How long browsers remember; ten years is as good as for ever.
const AGE: Kind = DurationWithin { min_ms: 0, max_ms: 3650 * 24 * 3600 * 1000 };
const PERIOD: Kind = DurationWithin {
    min_ms: MIN_TICKET_PERIOD.as_millis() as u64,
    max_ms: MAX_TICKET_PERIOD.as_millis() as u64,
};

/// What `redirect_to_https` takes.
pub(super) const REDIRECT_TO_HTTPS: Kind =
    Either(&[Boolean, super::PORT, Kind::Table(&HTTPS_REDIRECT)]);
/// What `hsts` takes.
pub(super) const HSTS_SHORT: Kind = Either(&[AGE, Kind::Table(&HSTS)]);

/// `listener.NAME.tls`.
pub static TLS: Table = Table {
    path: "listener.NAME.tls",
    what: "a listener's TLS",
    doc: "Certificates, and who is served. Files are read again when they change: see [tls.md](tls.md).",
    keys: &[
        key("certificates", List(&Kind::Table(&CERTIFICATE)), Absent("those of `acme`"), "[{ chain = \"site.pem\", key = \"site.key\" }]",
            "Chosen by the name that a client asks for, then by the kind of key; the first is the default."),
        key("acme", super::acme::NAMES, Absent("those of `certificates`"), "[\"example.com\", [\"a.example.com\", \"b.example.com\"]]",
            "Names for which certificates come by themselves, from whom `[acme]` says; a list within it shares one certificate. See [acme.md](acme.md)."),
        key("unknown_name", Choice(&["default", "refuse"]), Default("\"default\""), "\"refuse\"",
            "A client that asks for a name without a certificate, or for none: gets the default one, or is refused."),
        key("profile", Choice(&["intermediate", "modern"]), Default("\"intermediate\""), "\"modern\"",
            "Mozilla's recommendations: `intermediate` is TLS 1.2 and 1.3 with forward secrecy, `modern` is TLS 1.3 alone."),
        key("min_version", Choice(&["1.2", "1.3"]), Absent("that of the profile"), "\"1.3\"",
            "The least version of TLS."),
        key("tickets", Either(&[Boolean, PERIOD]), Default("\"6h\""), "false",
            "How often the key of session tickets changes; the one before still counts. `false`: no tickets."),
        key("client", Kind::Table(&CLIENT), Absent("clients are not asked"), "{ ca = \"clients.pem\" }",
            "Certificates that clients have to show, or may."),
    ],
    rules: &[Rule::AtLeastOne(&["certificates", "acme"])],
};

/// One certificate.
pub static CERTIFICATE: Table = Table {
    path: "listener.NAME.tls.certificates",
    what: "a certificate",
    doc: "A chain and its key, both PEM.",
    keys: &[
        key("chain", Kind::Text(&FILE), Required, "\"site.pem\"",
            "Certificates, the site's own first."),
        key("key", Kind::Text(&FILE), Required, "\"site.key\"",
            "The private key of the first certificate."),
        key("ocsp", Kind::Text(&FILE), Absent("nothing is stapled"), "\"site.ocsp\"",
            "An OCSP response about it, in DER, that something else keeps fresh; stapled while it is good."),
    ],
    rules: &[],
};

/// Certificates of clients.
pub static CLIENT: Table = Table {
    path: "listener.NAME.tls.client",
    what: "a listener's client certificates",
    doc: "Who clients are, by their own certificates. Endpoints are told in fields that no client can forge: see [tls.md](tls.md#client-certificates).",
    keys: &[
        key("ca", Kind::Text(&FILE), Required, "\"clients.pem\"",
            "PEM with the authorities that may have signed."),
        key("mode", Choice(&["require", "optional"]), Default("\"require\""), "\"optional\"",
            "Whether a client without a certificate is refused. One that does not verify always is."),
        key("crl", Kind::Text(&FILE), Absent("nothing is revoked"), "\"clients.crl\"",
            "PEM with lists of revoked certificates."),
        key("headers", Boolean, Default("true"), "false",
            "Tell endpoints: X-Client-Cert-Verify, -Subject, -Issuer, -SAN, -Serial and -Fingerprint."),
        key("certificate_header", Boolean, Default("false"), "true",
            "Send them the certificate itself: Client-Cert (RFC 9440)."),
    ],
    rules: &[],
};

/// `listener.NAME.hsts`.
pub static HSTS: Table = Table {
    path: "listener.NAME.hsts",
    what: "Strict-Transport-Security",
    doc: "Browsers that have seen it come by HTTPS alone, for so long (RFC 6797).",
    keys: &[
        key("max_age", AGE, Required, "\"730d\"",
            "How long; `\"0s\"` makes browsers forget."),
        key("include_subdomains", Boolean, Default("false"), "true",
            "About all names below as well."),
        key("preload", Boolean, Default("false"), "true",
            "Browsers may have it built in. Hard to take back."),
    ],
    rules: &[],
};

/// `listener.NAME.redirect_to_https`.
pub static HTTPS_REDIRECT: Table = Table {
    path: "listener.NAME.redirect_to_https",
    what: "a redirect to HTTPS",
    doc: "Every request goes to the same host and path by HTTPS, but for challenges of ACME.",
    keys: &[
        key("port", super::PORT, Default("443"), "8443",
            "The port of the listener that speaks TLS."),
        key("status", Integer { min: 301, max: 308 }, Default("308"), "301",
            "301, 302, 307 or 308."),
    ],
    rules: &[] as &[Rule],
};
