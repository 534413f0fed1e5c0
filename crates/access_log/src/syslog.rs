//! What stands before a line that goes to syslog (RFC 5424, 6): priority, time, machine, program.

/// The facilities by name, in the order of their numbers (RFC 5424, table 1).
pub const FACILITIES: [&str; 24] = [
    "kern", "user", "mail", "daemon", "auth", "syslog", "lpr", "news", "uucp", "cron", "authpriv",
    "ftp", "ntp", "audit", "alert", "clock", "local0", "local1", "local2", "local3", "local4",
    "local5", "local6", "local7",
];

/// Severity "informational".
const INFORMATIONAL: usize = 6;

/// As what lines are sent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Syslog {
    /// The place of the facility in [`FACILITIES`].
    pub facility: usize,
    /// The program's name: printable ASCII without spaces, at most 48.
    pub tag: String,
}

impl Syslog {
    /// `<134>1 `
    pub(crate) fn before_time(&self) -> String {
        format!("<{}>1 ", self.facility * 8 + INFORMATIONAL)
    }

    /// ` machine subak 4711 access - `
    pub(crate) fn after_time(&self, hostname: &str) -> String {
        format!(" {hostname} {} {} access - ", self.tag, std::process::id())
    }
}
