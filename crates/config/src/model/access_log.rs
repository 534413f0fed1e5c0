//! Access logs.

use std::time::Duration;

use subak_access_log::{Choice, Destination, Format, Syslog};

/// One access log of a listener.
#[derive(Clone, PartialEq, Debug)]
pub struct AccessLog {
    /// Where its lines go.
    pub destination: Destination,
    /// As what they are sent, where that is syslog.
    pub syslog: Option<Syslog>,
    /// What they look like.
    pub format: Format,
    /// Which requests get one.
    pub choice: Choice,
    /// How long one may wait for others.
    pub flush: Duration,
}
