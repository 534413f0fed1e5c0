//! Access logs: `access_log`, at the top level or of a listener.

use super::{FILE, key};
use crate::keys::{Kind, Rule, Table, Text};

use crate::keys::Kind::{Boolean, DurationWithin, Either, List, Ratio};
use crate::keys::Without::{Absent, Default};

static SYSLOG: Text = Text {
    what: "a syslog server such as \"udp:127.0.0.1:514\" or \"unix:/dev/log\"",
    pattern: Some("^(udp:.+|unix:/.+)$"),
};
static FORMAT: Text = Text {
    what: "\"json\", \"combined\", or names such as \"$remote_addr $status\" or \"%ci %ST\"",
    pattern: None,
};
static JSON_KEY: Text = Text { what: "a field such as \"status\"", pattern: None };
static CLASS: Text = Text {
    what: "\"1xx\" to \"5xx\", or \"failure\"",
    pattern: Some("^([1-5]xx|failure)$"),
};
static FACILITY: Text = Text { what: "a facility such as \"local0\"", pattern: None };
static TAG: Text =
    Text { what: "a word of at most 48 letters", pattern: Some("^[!-~]{1,48}$") };
static PATH: Text =
    Text { what: "the path of a file, or \"stdout\"", pattern: None };

/// What `access_log` takes at the top level.
pub(super) const ACCESS_LOGS: Kind =
    Either(&[Kind::Text(&PATH), Kind::Table(&ACCESS_LOG), List(&Kind::Table(&ACCESS_LOG))]);

/// What it takes of a listener.
pub(super) const OF_LISTENER: Kind =
    Either(&[Boolean, Kind::Text(&PATH), Kind::Table(&ACCESS_LOG), List(&Kind::Table(&ACCESS_LOG))]);

/// One of `access_log`.
pub static ACCESS_LOG: Table = Table {
    path: "access_log",
    what: "an access log",
    doc: "A line for every request. See [access-log.md](access-log.md) for formats and fields.",
    keys: &[
        key("path", Kind::Text(&FILE), Absent("`stdout` or `syslog`"), "\"/var/log/subak/access.json\"",
            "A file, to whose end lines are written, or a named pipe. SIGUSR1 opens it again."),
        key("stdout", Boolean, Absent("`path` or `syslog`"), "true",
            "To standard output."),
        key("syslog", Kind::Text(&SYSLOG), Absent("`path` or `stdout`"), "\"unix:/dev/log\"",
            "To a syslog server, a datagram for each line (RFC 5424)."),
        key("facility", Kind::Text(&FACILITY), Default("\"local0\""), "\"daemon\"",
            "The facility of what is sent. Only with `syslog`."),
        key("tag", Kind::Text(&TAG), Default("\"subak\""), "\"edge\"",
            "The program's name in what is sent. Only with `syslog`."),
        key("format", Either(&[Kind::Text(&FORMAT), List(&Kind::Text(&JSON_KEY))]), Default("\"json\""), "\"combined\"",
            "`\"json\"`, `\"combined\"`, a text with nginx's or HAProxy's names, or a list of JSON keys."),
        key("statuses", List(&Kind::Text(&CLASS)), Absent("all requests"), "[\"4xx\", \"5xx\", \"failure\"]",
            "Only requests that ended so. `failure` is whatever was not served, or not to its end."),
        key("sample", Ratio, Default("1.0"), "0.1",
            "The share of them that is logged."),
        key("always", List(&Kind::Text(&CLASS)), Default("[]"), "[\"5xx\", \"failure\"]",
            "What is logged whatever `sample` says."),
        key("flush", DurationWithin { min_ms: 200, max_ms: 60_000 }, Default("\"1s\""), "\"5s\"",
            "How long a line may wait for others, to be written with them. Full buffers do not wait."),
    ],
    rules: &[Rule::ExactlyOne(&["path", "stdout", "syslog"])],
};
