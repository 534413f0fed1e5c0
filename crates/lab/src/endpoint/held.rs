//! Requests that an ill endpoint holds back: without any answer, or with one that trickles.
//!
//! Every [`STEP`] each of them is looked at, so that thousands of them cost little and end soon after
//! the endpoint is well.

use std::time::Duration;

use super::condition::Fault;
use super::place::Job;

/// Time from one byte of a trickling answer to the next.
const STEP: Duration = Duration::from_millis(100);

/// A request that is held back.
#[derive(Clone, Copy, Debug)]
pub(super) struct HeldRequest {
    pub(super) endpoint: usize,
    pub(super) job: Job,
    /// The fault of the endpoint when its service ended: [`Fault::Hang`] or [`Fault::Trickle`].
    pub(super) fault: Fault,
    /// Bytes of the trickling answer that were sent.
    pub(super) sent: usize,
}

/// All requests that are held back.
#[derive(Default)]
pub(super) struct Held {
    requests: Vec<HeldRequest>,
    due_ns: u64,
}

impl Held {
    /// When they are looked at next; `None` without any.
    pub(super) fn due_ns(&self) -> Option<u64> {
        (!self.requests.is_empty()).then_some(self.due_ns)
    }

    /// Holds one more back.
    pub(super) fn hold(&mut self, request: HeldRequest, now_ns: u64) {
        if self.requests.is_empty() {
            self.due_ns = now_ns + STEP.as_nanos() as u64;
        }
        self.requests.push(request);
    }

    /// All of them, when it is time to look at them. Those that are held back further come again by
    /// [`Held::hold`].
    pub(super) fn take_due(&mut self, now_ns: u64) -> Vec<HeldRequest> {
        match self.due_ns() {
            Some(due_ns) if due_ns <= now_ns => std::mem::take(&mut self.requests),
            _ => Vec::new(),
        }
    }
}
