//! The generator watches itself: was it what held the load up?
//!
//! A slow generator looks like a slow target. So three things are measured over the window: the share
//! of a core that its thread used, the share of the time in which it could have run but had none
//! (another process had it, or its control group's quota was used up), and, in an open loop, how late requests started though a connection was
//! free.

use std::io;
use std::time::{Duration, Instant};

use super::report::LoadReport;
use crate::process;

/// A thread that uses more of its core than this has nothing left: the load would have been higher.
pub const MOST_BUSY: f64 = 0.95;
/// A thread that waits longer for its core than this share of the time measures the machine.
pub const MOST_STARVED: f64 = 0.10;
/// Starts that are later than this (p99) count as late if they are also a tenth of the median latency.
pub const LATE: Duration = Duration::from_millis(1);
/// Requests that never started, among all that were due, at most.
const MOST_NOT_STARTED: f64 = 0.01;
/// Below this a window is too short to say what its thread did.
const SHORTEST: Duration = Duration::from_millis(200);

/// What the generator's thread did during the window.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Watch {
    /// Time its thread executed.
    pub cpu: Duration,
    /// Time its thread could have executed and had no core.
    pub starved: Duration,
    /// The window these belong to.
    pub window: Duration,
    /// Descriptors the process may have open.
    pub descriptor_limit: u64,
    /// It ran before all others of its core.
    pub is_ahead: bool,
}

impl Watch {
    /// Share of a core used, 0 to 1.
    pub fn busy_share(&self) -> f64 {
        share(self.cpu, self.window)
    }

    /// Share of the time it waited for a core, 0 to 1.
    pub fn starved_share(&self) -> f64 {
        share(self.starved, self.window)
    }

    /// Why the run is not valid.
    pub(super) fn faults(&self, report: &LoadReport) -> Vec<String> {
        let mut faults = Vec::new();
        let percent = |share: f64| (share * 100.0).round();
        if self.window >= SHORTEST && self.busy_share() > MOST_BUSY {
            faults.push(format!(
                "the generator used {} % of its core: the target could have been asked more",
                percent(self.busy_share())
            ));
        }
        if self.window >= SHORTEST && self.starved_share() > MOST_STARVED {
            faults.push(format!(
                "the generator had no core for {} % of the time (others had it, or a quota was used \
                 up): give it one",
                percent(self.starved_share())
            ));
        }
        let late = report.lateness.quantile(0.99);
        if late > LATE && late > report.latency.quantile(0.5) / 10 {
            faults.push(format!(
                "requests started late: {:.3} ms at p99, though connections were free",
                late.as_secs_f64() * 1e3
            ));
        }
        let due = report.ended() + report.not_started;
        if report.not_started as f64 > due as f64 * MOST_NOT_STARTED {
            faults.push(format!(
                "{} requests that were due never started, for want of a free connection: \
                 allow more connections",
                report.not_started
            ));
        }
        faults
    }
}

fn share(part: Duration, whole: Duration) -> f64 {
    if whole.is_zero() { 0.0 } else { part.as_secs_f64() / whole.as_secs_f64() }
}

/// Where the calling thread stood at the window's beginning.
#[derive(Debug)]
pub(super) struct Watching {
    began: Instant,
    cpu: Duration,
    starved: Duration,
}

impl Watching {
    pub(super) fn begin() -> io::Result<Watching> {
        let (cpu, starved) = process::thread_times()?;
        Ok(Watching { began: Instant::now(), cpu, starved })
    }

    pub(super) fn end(self) -> io::Result<Watch> {
        let (cpu, starved) = process::thread_times()?;
        Ok(Watch {
            cpu: cpu.saturating_sub(self.cpu),
            starved: starved.saturating_sub(self.starved),
            window: self.began.elapsed(),
            descriptor_limit: crate::machine::raise_descriptor_limit(1)?,
            is_ahead: false,
        })
    }
}
