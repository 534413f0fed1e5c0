//! How weights follow what endpoints report of themselves.

use std::num::NonZeroU16;
use std::time::Duration;

use subak_balance::weigher::Options;

use super::Token;

/// `weigher` of a pool: the weigher `resource`.
#[derive(Clone, PartialEq, Debug)]
pub struct Weigher {
    /// Where the agents listen, at the endpoints' addresses, none of which is a unix socket.
    pub port: NonZeroU16,
    /// What they ask for.
    pub token: Token,
    /// From one report to the next.
    pub interval: Duration,
    /// For one report; not above `interval`.
    pub timeout: Duration,
    /// What becomes of the reports. One is fresh for three intervals.
    pub options: Options,
}
