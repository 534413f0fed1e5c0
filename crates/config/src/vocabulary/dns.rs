//! How names are resolved: `dns`.

use super::key;
use crate::defaults::{MAX_DNS_TIMEOUT, MAX_TIME, MIN_DNS_TTL};
use crate::keys::{Kind, Table, Text};

use crate::keys::Kind::{Choice, DurationWithin, List};
use crate::keys::Without::{Absent, Default};

static SERVER: Text = Text { what: "an address such as \"10.0.0.53\"", pattern: None };

const TTL: Kind = DurationWithin {
    min_ms: MIN_DNS_TTL.as_millis() as u64,
    max_ms: MAX_TIME.as_millis() as u64,
};

/// `dns`.
pub static DNS: Table = Table {
    path: "dns",
    what: "the resolution of names",
    doc: "How the names among endpoints are resolved.",
    keys: &[
        key("servers", List(&Kind::Text(&SERVER)), Absent("those of /etc/resolv.conf"), "[\"127.0.0.53\", \"10.0.0.53:5353\"]",
            "The DNS servers to ask, by address; the port is 53 unless one is given."),
        key("families", Choice(&["both", "ipv4", "ipv6"]), Default("\"both\""), "\"ipv4\"",
            "Which addresses of a name are used."),
        key("timeout", DurationWithin { min_ms: 1, max_ms: MAX_DNS_TIMEOUT.as_millis() as u64 }, Default("\"2s\""), "\"500ms\"",
            "The time for one answer, with all servers and everything that it leads to."),
        key("min_ttl", TTL, Default("\"1s\""), "\"5s\"",
            "The least time from one question to the next, whatever the answer says."),
        key("max_ttl", TTL, Default("\"5m\""), "\"1m\"",
            "The most time from one question to the next, whatever the answer says."),
        key("negative_ttl", TTL, Default("\"10s\""), "\"30s\"",
            "The most time from a failure to the next question; it is `min_ttl` at first and doubles."),
    ],
    rules: &[],
};
