//! A very cheap HTTP/1.1 load generator.
//!
//! One thread, raw epoll, one `send` and one `recv` per request and no allocation.
//! Three ways to ask ([`Mode`]):
//!
//! - **Closed loop**: every connection asks again as soon as it is answered. What
//!   the far side can do at most, and its cost per request when busy.
//! - **New connection per request**: the same with a fresh connection each time.
//! - **Fixed rate**, an open loop: requests start at fixed times whether or not
//!   earlier ones were answered. Latency counts from the *intended* start, also for
//!   a request that had to wait for a free connection, so a far side that stalls
//!   is charged for everybody it kept waiting (no coordinated omission).
//!
//! Bodies are counted and dropped inside the kernel (`MSG_TRUNC`), not copied.

mod answer;
mod engine;

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use crate::histogram::Histogram;

/// How requests follow each other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Mode {
    /// As fast as answers come, on connections that stay.
    KeepAlive,
    /// As fast as answers come, each on a connection of its own.
    ConnectionPerRequest,
    /// This many requests per second, evenly spaced, on connections that stay.
    Rate(f64),
}

/// When a run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// After this time, warm-up not counted.
    Time(Duration),
    /// After exactly this many requests were asked and answered (or failed),
    /// warm-up included.
    Requests(u64),
}

/// What to ask, of whom, and how.
#[derive(Clone, Debug)]
pub struct LoadPlan {
    /// Where to connect.
    pub target: SocketAddr,
    /// Addresses to connect from, in turn; empty leaves it to the kernel. Several
    /// help when one has too few ports left.
    pub sources: Vec<IpAddr>,
    /// Connections at a time.
    pub connections: usize,
    /// How requests follow each other.
    pub mode: Mode,
    /// When to end.
    pub limit: Limit,
    /// Time before the measured window, in which nothing is counted.
    pub warm_up: Duration,
    /// An answer that takes longer is an error, and its connection is replaced.
    pub answer_within: Duration,
    /// The request, ready to send. [`LoadPlan::get`] makes the usual one.
    pub request: Vec<u8>,
}

impl LoadPlan {
    /// GET `path` from `target` over 64 kept connections for five seconds after one
    /// second of warm-up. Change the fields that should be different.
    pub fn get(target: SocketAddr, path: &str) -> LoadPlan {
        LoadPlan {
            target,
            sources: Vec::new(),
            connections: 64,
            mode: Mode::KeepAlive,
            limit: Limit::Time(Duration::from_secs(5)),
            warm_up: Duration::from_secs(1),
            answer_within: Duration::from_secs(10),
            request: format!("GET {path} HTTP/1.1\r\nHost: {target}\r\n\r\n").into_bytes(),
        }
    }

    /// Asks with a new connection each time, and says so to the other side.
    #[must_use]
    pub fn with_new_connections(mut self) -> LoadPlan {
        if let Some(end) = self.request.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
            self.request.splice(end + 2..end + 2, *b"Connection: close\r\n");
        }
        self.mode = Mode::ConnectionPerRequest;
        self
    }
}

/// Why a request failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// No connection: refused, unreachable, no port or descriptor left.
    Connect,
    /// The connection broke or was closed before the whole answer was there.
    Closed,
    /// The answer took longer than [`LoadPlan::answer_within`].
    Late,
    /// Answered, with a status other than 2xx.
    Status,
    /// Not an HTTP/1.x answer with a length, or more bytes than it announced.
    Framing,
}

impl Failure {
    /// Every kind, in the order of [`Failures`].
    pub const ALL: [Failure; 5] =
        [Failure::Connect, Failure::Closed, Failure::Late, Failure::Status, Failure::Framing];
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Failure::Connect => "connect",
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

    fn add(&mut self, kind: Failure) {
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

/// What happened in the measured window.
#[derive(Clone, Debug)]
pub struct LoadReport {
    /// Requests answered with 2xx.
    pub answered: u64,
    /// Requests that failed.
    pub failures: Failures,
    /// Length of the window.
    pub elapsed: Duration,
    /// From start (intended start at a fixed rate) to the last byte of the answer,
    /// for answered requests.
    pub latency: Histogram,
    /// Fixed rate: the most requests that were due and had no free connection.
    pub longest_backlog: u64,
}

impl LoadReport {
    /// Answered requests per second.
    pub fn per_second(&self) -> f64 {
        if self.elapsed.is_zero() { 0.0 } else { self.answered as f64 / self.elapsed.as_secs_f64() }
    }
}

/// The two ends of the measured window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edge {
    /// Counting begins.
    Start,
    /// Counting has ended.
    End,
}

/// Runs the plan on the calling thread.
///
/// # Errors
/// The plan makes no sense (no connections, a rate that is not positive, a request
/// without an end), or the system refuses an epoll instance. What goes wrong with
/// requests is counted in the report instead.
pub fn run(plan: &LoadPlan) -> io::Result<LoadReport> {
    run_with(plan, |_| {})
}

/// As [`run`]; `at` is called at both ends of the measured window, on the same
/// thread, so that other things can be measured over exactly that window.
///
/// # Errors
/// As [`run`].
pub fn run_with(plan: &LoadPlan, at: impl FnMut(Edge)) -> io::Result<LoadReport> {
    let wrong = match plan.mode {
        _ if plan.connections == 0 => Some("a load needs at least one connection"),
        Mode::Rate(rate) if !(rate.is_finite() && rate > 0.0) => Some("a rate must be positive"),
        _ if !plan.request.windows(4).any(|bytes| bytes == b"\r\n\r\n") => {
            Some("the request has no empty line that ends its head")
        }
        _ => None,
    };
    if let Some(wrong) = wrong {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, wrong));
    }
    engine::Engine::new(plan)?.run(at)
}

/// Whether `bytes` hold a whole answer: not yet, or yes and it is a good one.
pub(crate) fn whole_answer(bytes: &[u8]) -> Option<bool> {
    match answer::parse(bytes, false) {
        answer::Parsed::Partial => None,
        answer::Parsed::Bad => Some(false),
        answer::Parsed::Head(head) if (bytes.len() as u64) < head.head as u64 + head.body => None,
        answer::Parsed::Head(head) => Some(head.good),
    }
}

#[cfg(test)]
mod tests;
