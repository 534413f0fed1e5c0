//! A load generator: how much is asked when, of whom, and what came back.
//!
//! One thread, raw epoll, one `send` and one `recv` per request and no allocation. Two kinds
//! ([`Shape`]):
//!
//! - **Open loop**: requests start when a rate (constant, or in stages) or a timetable says, whether or
//!   not earlier ones were answered. Latency counts from the *intended* start, also for a request that had to wait
//!   for a free connection, so a target that stalls is charged for everybody it kept waiting (no
//!   coordinated omission).
//! - **Closed loop**: users (constant, or in stages), each of whom asks, waits for the answer, thinks
//!   and asks again. As fast as answers come, or a number of requests shared among them.
//!
//! HTTP/1.1 by this engine, in cleartext and TLS; HTTP/2 by another on the h2 library (`h2.rs`), with
//! the same plan and the same report. Bodies that nobody looks at are counted and dropped inside the
//! kernel (`MSG_TRUNC`), not copied. The generator watches itself ([`Watch`]): a run in which it was
//! the bottleneck is not valid.

mod answer;
mod asked;
mod check;
mod connection;
mod engine;
mod exchange;
mod h2;
mod plan;
mod profile;
mod recorder;
mod report;
mod schedule;
pub mod summary;
mod threshold;
mod timetable;
mod transport;
mod watch;

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

pub use asked::{MAX_ADDRESSES, Request, Sources, addresses};
pub use check::{Check, MAX_CHECKED_BODY};
pub use plan::{
    Detail, LoadPlan, MAX_CHECKS, MAX_CONNECTIONS, Precedence, Protocol, Shape, Think, Tls,
};
pub use profile::{Arrivals, Profile, Spacing, Stage};
pub use report::{CheckResult, Failure, Failures, LoadReport, Moment, Phases, TargetResult};
pub use threshold::{Kept, Threshold};
pub use timetable::{Due, NOBODY};
pub use watch::{LATE, MOST_BUSY, MOST_STARVED, Watch};

pub(crate) use profile::{exponential, uniform};

use crate::machine::Ahead;
use transport::Secured;

/// The two ends of the measured window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edge {
    /// Counting begins.
    Start,
    /// Counting has ended.
    End,
}

/// What is told while a load runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Event<'a> {
    /// Counting begins.
    Start,
    /// An interval is over ([`Detail::every`]).
    Moment(&'a Moment),
    /// Counting has ended.
    End,
}

/// Runs the plan on the calling thread.
///
/// # Errors
/// The plan makes no sense (no connections, a rate that is not positive, a request that is none), or
/// the system refuses an epoll instance. What goes wrong with requests is counted in the report
/// instead.
pub fn run(plan: &LoadPlan) -> io::Result<LoadReport> {
    run_with(plan, |_| {})
}

/// As [`run`]; `at` is called at both ends of the measured window, on the same thread, so that other
/// things can be measured over exactly that window.
///
/// # Errors
/// As [`run`].
pub fn run_with(plan: &LoadPlan, mut at: impl FnMut(Edge)) -> io::Result<LoadReport> {
    run_watched(plan, &AtomicBool::new(false), &mut |event| match event {
        Event::Start => at(Edge::Start),
        Event::End => at(Edge::End),
        Event::Moment(_) => {}
    })
}

/// As [`run`]; ends early, with what there is, soon after `stop` became true, and tells what happens.
///
/// # Errors
/// As [`run`].
pub fn run_watched(
    plan: &LoadPlan,
    stop: &AtomicBool,
    on: &mut dyn FnMut(Event<'_>),
) -> io::Result<LoadReport> {
    if let Some(fault) = plan.fault() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, fault));
    }
    let ahead = match plan.precedence {
        Precedence::Usual => None,
        Precedence::AheadIfAllowed => Ahead::run().ok(),
        Precedence::Ahead => Some(Ahead::run().map_err(not_ahead)?),
    };
    let mut report = match plan.protocol {
        Protocol::Http1 => engine::Engine::new(plan)?.run(stop, on),
        Protocol::Http2 { .. } => h2::run(plan, stop, on),
    }?;
    report.watch.is_ahead = ahead.is_some();
    Ok(report)
}

fn not_ahead(error: io::Error) -> io::Error {
    let why = format!(
        "the load generator cannot run before all others: {error}; run it as root, give it \
         CAP_SYS_NICE, or leave --ahead out"
    );
    io::Error::new(error.kind(), why)
}

/// TLS as the plan wants it, with the name of the protocol.
fn secured(plan: &LoadPlan, protocol: &[u8]) -> Option<Secured> {
    plan.tls.as_ref().map(|tls| {
        let mut config = (*tls.config).clone();
        config.alpn_protocols = vec![protocol.to_vec()];
        Secured { config: Arc::new(config), name: tls.name.clone() }
    })
}

/// Whether `bytes` hold a whole answer with a length: not yet, or yes and it is a good one.
pub(crate) fn whole_answer(bytes: &[u8]) -> Option<bool> {
    match answer::parse(bytes, false) {
        answer::Parsed::Partial => None,
        answer::Parsed::Bad | answer::Parsed::Interim(_) => Some(false),
        answer::Parsed::Head(head) => match head.body {
            answer::Length::Bytes(body) if (bytes.len() as u64) < head.head as u64 + body => None,
            answer::Length::Bytes(_) => Some((200..300).contains(&head.status)),
            answer::Length::Chunked | answer::Length::Close => Some(false),
        },
    }
}

#[cfg(test)]
mod tests;
