//! What came of a load.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use super::watch::Watch;
use crate::histogram::Histogram;

/// Why a request failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// No connection: refused, unreachable, no port or descriptor left.
    Connect,
    /// The TLS handshake broke: a certificate that is not trusted, no common version.
    Tls,
    /// The connection broke or was closed before the whole answer was there.
    Closed,
    /// The answer took longer than [`super::LoadPlan::answer_within`].
    Late,
    /// Answered, with a status other than 2xx.
    Status,
    /// Not an HTTP answer whose end can be known, or more bytes than it announced.
    Framing,
}

impl Failure {
    /// Every kind, in the order of [`Failures`].
    pub const ALL: [Failure; 6] = [
        Failure::Connect,
        Failure::Tls,
        Failure::Closed,
        Failure::Late,
        Failure::Status,
        Failure::Framing,
    ];
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Failure::Connect => "connect",
            Failure::Tls => "tls",
            Failure::Closed => "closed",
            Failure::Late => "late",
            Failure::Status => "status",
            Failure::Framing => "framing",
        })
    }
}

/// Failed requests by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Failures([u64; Failure::ALL.len()]);

impl Failures {
    /// How many failed in this way.
    pub fn of(&self, kind: Failure) -> u64 {
        self.0[kind as usize]
    }

    /// How many failed in any way.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    pub(super) fn add(&mut self, kind: Failure) {
        self.0[kind as usize] += 1;
    }
}

impl fmt::Display for Failures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut first = true;
        for kind in Failure::ALL.into_iter().filter(|kind| self.of(*kind) > 0) {
            write!(f, "{}{} {kind}", if first { "" } else { ", " }, self.of(kind))?;
            first = false;
        }
        if first { f.write_str("none") } else { Ok(()) }
    }
}

/// The parts of requests' times. A phase that a request did not have counts as zero, except that
/// `answered` has no failed ones.
#[derive(Clone, Debug, Default)]
pub struct Phases {
    /// From the moment it was due until its connection was there, connecting and TLS included.
    pub blocked: Histogram,
    /// The TCP handshake.
    pub connecting: Histogram,
    /// The TLS handshake.
    pub tls: Histogram,
    /// Sending the request.
    pub sending: Histogram,
    /// From the end of the request to the first byte of the answer.
    pub waiting: Histogram,
    /// From the first to the last byte of the answer.
    pub receiving: Histogram,
    /// Sending, waiting and receiving together.
    pub duration: Histogram,
    /// The same, of answers with 2xx.
    pub answered: Histogram,
    /// From start to end, with the time a user thinks afterwards.
    pub iteration: Histogram,
}

/// What happened in one interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Moment {
    /// Its end, from the beginning of the window.
    pub at: Duration,
    /// Its length.
    pub took: Duration,
    /// Users (closed loop) or requests per second (open loop) that the profile had at its end.
    pub load: f64,
    /// Requests under way at its end.
    pub in_flight: u64,
    /// Requests answered with 2xx in it.
    pub answered: u64,
    /// Requests that failed in it.
    pub failed: u64,
    /// Latency of those answered: the mean, percentiles, the longest.
    pub mean: Duration,
    /// The median.
    pub p50: Duration,
    /// 95 % were not longer.
    pub p95: Duration,
    /// 99 % were not longer.
    pub p99: Duration,
    /// The longest.
    pub max: Duration,
}

/// How a check went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckResult {
    /// As it was written.
    pub name: String,
    /// Answers it held for.
    pub passed: u64,
    /// Answers it did not hold for.
    pub failed: u64,
}

/// What one target did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TargetResult {
    /// Where it is.
    pub address: SocketAddr,
    /// Requests to it that were answered with 2xx.
    pub answered: u64,
    /// Requests to it that failed.
    pub failed: u64,
}

impl TargetResult {
    pub(super) fn new(address: SocketAddr) -> TargetResult {
        TargetResult { address, answered: 0, failed: 0 }
    }
}

/// What happened in the measured window.
#[derive(Clone, Debug)]
pub struct LoadReport {
    /// Requests answered with 2xx.
    pub answered: u64,
    /// Requests that failed.
    pub failures: Failures,
    /// Both by target, in the plan's order.
    pub targets: Vec<TargetResult>,
    /// When the first and the last request that failed did, from the beginning of the window.
    pub failed_between: Option<(Duration, Duration)>,
    /// Why connections could not be made, in the system's words, and how many.
    pub unconnected: BTreeMap<String, u64>,
    /// Length of the window.
    pub elapsed: Duration,
    /// From start (intended start in an open loop) to the last byte of the answer, for answered
    /// requests.
    pub latency: Histogram,
    /// Open loop: the most requests that were due and had no free connection.
    pub longest_backlog: u64,
    /// Open loop: requests that were due in the window and never started, for want of a connection.
    pub not_started: u64,
    /// Open loop: how late requests started though a connection was free: the generator's own
    /// fault.
    pub lateness: Histogram,
    /// Answers by status.
    pub statuses: BTreeMap<u16, u64>,
    /// How checks went, in their order.
    pub checks: Vec<CheckResult>,
    /// Bytes received and sent, as they were on the connection (with TLS: encrypted).
    pub received: u64,
    /// Bytes sent.
    pub sent: u64,
    /// Bytes of answers' bodies.
    pub bodies: u64,
    /// Connections that were made.
    pub connections: u64,
    /// The most users there were, or connections in use at once.
    pub most_users: u64,
    /// The parts of requests' times, where asked for.
    pub phases: Option<Box<Phases>>,
    /// Interval by interval, where asked for.
    pub moments: Vec<Moment>,
    /// What the generator itself cost, and whether it was the bottleneck.
    pub watch: Watch,
}

impl LoadReport {
    /// Answered requests per second.
    pub fn per_second(&self) -> f64 {
        if self.elapsed.is_zero() { 0.0 } else { self.answered as f64 / self.elapsed.as_secs_f64() }
    }

    /// Requests that ended, in whatever way.
    pub fn ended(&self) -> u64 {
        self.answered + self.failures.total()
    }

    /// Failed requests among those that ended, 0 to 1.
    pub fn failed_share(&self) -> f64 {
        self.failures.total() as f64 / self.ended().max(1) as f64
    }

    /// Checks that held among all, 0 to 1; without checks 1.
    pub fn passed_share(&self) -> f64 {
        let passed: u64 = self.checks.iter().map(|check| check.passed).sum();
        let failed: u64 = self.checks.iter().map(|check| check.failed).sum();
        if passed + failed == 0 { 1.0 } else { passed as f64 / (passed + failed) as f64 }
    }

    /// Why nothing may be concluded from this run: the generator, or the machine it shares, was the
    /// bottleneck. Empty when the run is valid.
    pub fn invalid(&self) -> Vec<String> {
        self.watch.faults(self)
    }
}
