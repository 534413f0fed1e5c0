//! Certificates that Subak orders by itself: `acme`, and names in a listener's `tls`.

use super::{FILE, key};
use crate::keys::{Kind, Table, Text};

use crate::keys::Kind::{Boolean, Choice, Duration, Either, List};
use crate::keys::Without::{Absent, Default, Required};

static DIRECTORY: Text = Text {
    what: "\"letsencrypt\", \"letsencrypt-staging\" or a URL such as \"https://ca.internal/acme/directory\"",
    pattern: Some("^(letsencrypt|letsencrypt-staging|https://.+)$"),
};
static EMAIL: Text = Text { what: "an address such as \"ops@example.com\"", pattern: Some("@") };
static PROFILE: Text = Text { what: "a name such as \"shortlived\"", pattern: None };
static ACCOUNT_ID: Text = Text { what: "what the authority calls the account", pattern: None };
static NAME: Text = Text { what: "a name such as \"example.com\"", pattern: None };

/// What `acme` of a listener's `tls` takes: names, or lists of names that share a certificate.
pub(super) const NAMES: Kind = List(&Either(&[Kind::Text(&NAME), List(&Kind::Text(&NAME))]));

/// `acme`.
pub static ACME: Table = Table {
    path: "acme",
    what: "the issuer of certificates",
    doc: "Who issues certificates for the names that listeners list under `tls.acme`. See [acme.md](acme.md).",
    keys: &[
        key("accept_terms", Boolean, Required, "true",
            "Whether you have read the authority's terms of service and agree; nothing is ordered without."),
        key("directory", Kind::Text(&DIRECTORY), Default("\"letsencrypt\""), "\"https://ca.internal/acme/directory\"",
            "The authority's ACME directory."),
        key("email", Kind::Text(&EMAIL), Absent("the authority cannot write to anybody"), "\"ops@example.com\"",
            "Whom the authority may write to."),
        key("storage", Kind::Text(&FILE), Default("\"/var/lib/subak/acme\""), "\"/srv/acme\"",
            "The directory for account, keys and certificates. Processes that name the same one share them."),
        key("ca", Kind::Text(&FILE), Absent("the machine's authorities"), "\"ca.pem\"",
            "Whom to trust as the directory."),
        key("challenge", Choice(&["auto", "http-01", "tls-alpn-01"]), Default("\"auto\""), "\"tls-alpn-01\"",
            "How names are proven: by a cleartext listener that clients reach at port 80, or by TLS at port 443. `auto` goes by the ports that listeners have."),
        key("key_type", Choice(&["p256", "p384", "rsa2048"]), Default("\"p256\""), "\"p384\"",
            "The kind of private keys."),
        key("profile", Kind::Text(&PROFILE), Absent("the authority's usual one"), "\"shortlived\"",
            "A kind of certificate, as the authority calls it."),
        key("external_account", Kind::Table(&EXTERNAL_ACCOUNT), Absent("none"), "{ id = \"kid-1\", key_file = \"eab.key\" }",
            "Who the authority knows us as already, where it asks for that."),
        key("back_off", Kind::Table(&ACME_BACK_OFF), Default("{}"), "{ initial = \"5m\", max = \"1d\" }",
            "How long the next attempt waits after one that failed."),
    ],
    rules: &[],
};

/// `acme.external_account`.
pub static EXTERNAL_ACCOUNT: Table = Table {
    path: "acme.external_account",
    what: "an account that the authority knows",
    doc: "What binds the account to one that the authority has made by other means (RFC 8555, 7.3.4).",
    keys: &[
        key("id", Kind::Text(&ACCOUNT_ID), Required, "\"kid-1\"",
            "The key's identifier."),
        key("key_file", Kind::Text(&FILE), Required, "\"eab.key\"",
            "The file with the key, in base64url."),
    ],
    rules: &[],
};

/// `acme.back_off`.
pub static ACME_BACK_OFF: Table = Table {
    path: "acme.back_off",
    what: "the back-off of orders",
    doc: "Doubled for each failure in a row; a reload begins anew. Authorities refuse who fails too often.",
    keys: &[
        key("initial", Duration, Default("\"1m\""), "\"5m\"",
            "After the first failure."),
        key("max", Duration, Default("\"6h\""), "\"1d\"",
            "Never longer."),
    ],
    rules: &[],
};

