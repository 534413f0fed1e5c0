//! Where the Admin API listens: `admin`.

use super::{FILE, key};
use crate::keys::{Kind, Rule, Table, Text};

use crate::keys::Kind::{Boolean, List};
use crate::keys::Without::{Absent, Default};

static SOCKET: Text =
    Text { what: "an absolute path such as \"/run/subak/admin.sock\"", pattern: Some("^/") };
static TCP: Text = Text { what: "an address such as \"127.0.0.1:9000\"", pattern: None };
static NAME: Text = Text { what: "a name such as \"lb1.internal\"", pattern: None };

/// `admin`.
pub static ADMIN: Table = Table {
    path: "admin",
    what: "the Admin API",
    doc: "Where status and metrics are read, and endpoints are drained and weighed.",
    keys: &[
        key("socket", Kind::Text(&SOCKET), Absent("`tcp`"), "\"/run/subak/admin.sock\"",
            "A unix socket that only its owner may open (mode 0600)."),
        key("tcp", Kind::Text(&TCP), Absent("`socket`"), "\"127.0.0.1:9000\"",
            "An address; whoever asks has to show the token. It is not encrypted."),
        key("token_file", Kind::Text(&FILE), Absent("required by `tcp`"), "\"admin.token\"",
            "The file with the token, sent as `Authorization: Bearer …`. Only with `tcp`."),
        key("hosts", List(&Kind::Text(&NAME)), Default("[]"), "[\"lb1.internal\"]",
            "Names it may be asked by, besides IP addresses and `localhost`. Only with `tcp`."),
        key("unix_endpoints", Boolean, Default("false"), "true",
            "Whether the API may add endpoints on unix sockets of this machine. Only with `tcp`: by a unix socket it always may."),
    ],
    rules: &[Rule::ExactlyOne(&["socket", "tcp"])],
};
