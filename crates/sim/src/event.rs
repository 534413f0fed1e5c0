//! The log of a run: who was sent where, and what became of it.

use subak_base::Tick;

/// One line of a run's log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Event {
    /// When it happened.
    pub at: Tick,
    /// The request's number, from 0.
    pub request: u64,
    /// What happened.
    pub step: Step,
}

/// What happened to a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// A balancer has sent it to the endpoint at this index.
    Dispatched {
        /// Which balancer.
        balancer: u32,
        /// Of the pool.
        endpoint: usize,
    },
    /// It stands in line.
    Waits,
    /// The endpoint at this index has failed it.
    Failed {
        /// Of the pool.
        endpoint: usize,
        /// How.
        why: Why,
    },
    /// It is over, and answered well by the endpoint at this index.
    Answered(usize),
    /// It is over without a good answer.
    Ended(Why),
}

/// Why a request was not answered well.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Why {
    /// Nobody could take it.
    NoEndpoint,
    /// The pool's line was full.
    LineFull,
    /// It stood in line too long.
    LineTimeout,
    /// The connection was refused.
    Refused,
    /// The connection broke.
    Reset,
    /// There was no answer in time.
    Timeout,
    /// The answer was a 5xx.
    Error,
    /// The client left.
    Abandoned,
    /// It hung at the end of the run.
    Unfinished,
}

/// Looks on. `()` does not, and costs nothing.
pub trait Observer {
    /// Something has happened, in the order of time.
    fn note(&mut self, event: Event);
}

impl Observer for () {
    #[inline]
    fn note(&mut self, _event: Event) {}
}

impl<F: FnMut(Event)> Observer for F {
    #[inline]
    fn note(&mut self, event: Event) {
        self(event);
    }
}
