//! One accounted in-flight use of an endpoint.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use subak_balance::Completion;
use subak_base::Tick;

use crate::endpoint::Endpoint;
use crate::packets::Account;
use crate::pick_log::Ending;
use crate::pool::{Pool, View};
use crate::shadow::Taken;

/// How a dispatch ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// The endpoint answered to the end.
    Completed(Answered),
    /// The endpoint refused, timed out, or broke its answer off; it is left out for a while.
    Unreachable,
    /// The endpoint accepted and then failed.
    Failed,
    /// Nothing is known about the endpoint: the client left, or Subak gave up for reasons of its own.
    Cancelled,
}

/// An answer that came to its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Answered {
    /// From the dispatch to the first byte of the answer.
    pub first_byte: Option<Duration>,
    /// Whether the endpoint says itself that it failed: a 5xx.
    pub status_failed: bool,
}

/// A request slot of one endpoint, from dispatch to settlement. Settles exactly once; dropping it
/// without a word counts as cancelled.
#[derive(Debug)]
pub struct Lease<'p> {
    pool: &'p Pool,
    index: usize,
    since: Tick,
    /// The number of its record in the pool's log; 0 for none.
    pub(crate) record: u64,
    packets: Cell<Account>,
    bytes: Cell<Account>,
}

impl<'p> Lease<'p> {
    #[inline]
    pub(crate) fn new(pool: &'p Pool, index: usize, since: Tick, record: u64) -> Lease<'p> {
        let (packets, bytes) = (Cell::default(), Cell::default());
        Lease { pool, index, since, record, packets, bytes }
    }

    /// The endpoint's place in its pool.
    pub fn index(&self) -> usize {
        self.index
    }

    /// The endpoint.
    pub fn endpoint(&self) -> &'p Arc<Endpoint> {
        &self.pool.member(self.index).endpoint
    }

    /// The moment of the dispatch.
    pub fn since(&self) -> Tick {
        self.since
    }

    /// The Host that asks for the endpoint by name, where it has one.
    pub fn host(&self) -> Option<&str> {
        self.pool.spec.endpoints[self.index].host.as_deref()
    }

    /// How many connections the endpoint may have.
    pub fn max_connections(&self) -> Option<u32> {
        self.pool.spec.endpoints[self.index].max_connections
    }

    /// Whether it is of any use to [`count`](Lease::count).
    #[inline]
    pub fn is_counted(&self) -> bool {
        self.pool.wants.packets || self.pool.wants.bytes
    }

    /// Whether it is of any use to [`tell`](Lease::tell).
    #[inline]
    pub fn is_recorded(&self) -> bool {
        self.record != 0
    }

    /// Says how it went, for the pick log, before it is settled.
    pub fn tell(&self, ending: Ending) {
        if let Some(log) = &self.pool.log {
            log.tell(self.record, ending);
        }
    }

    /// Gives the slot back and says how it went.
    #[inline]
    pub fn settle(self, outcome: Outcome, now: Tick) {
        let endpoint = self.endpoint();
        match outcome {
            Outcome::Completed(answered) => {
                if endpoint.back_off.succeeded() {
                    self.pool.refresh(now);
                }
                match answered.status_failed {
                    false => endpoint.end_row(),
                    true => self.pool.count_failure(self.index, now),
                }
            }
            Outcome::Unreachable => {
                endpoint.back_off.failed(&self.pool.spec.back_off, now);
                self.pool.count_failure(self.index, now);
                self.pool.refresh(now);
            }
            Outcome::Failed => self.pool.count_failure(self.index, now),
            Outcome::Cancelled => {}
        }
        if self.pool.has_extras {
            self.learn(outcome, now);
        }
    }

    /// So many more packets and bytes have gone to the endpoint and come from it, by the counters of
    /// the connection: at the end, before the connection is closed, and once a second on a long
    /// exchange. Takes the place of what the dispatch was charged.
    pub fn count(&self, packets: u64, bytes: u64, now: Tick) {
        let Some(learnt) = &self.pool.member(self.index).learnt else { return };
        if let Some(traffic) = &learnt.packets {
            self.packets.set(traffic.count(self.packets.get(), packets, now));
        }
        if let Some(traffic) = &learnt.bytes {
            self.bytes.set(traffic.count(self.bytes.get(), bytes, now));
        }
    }

    /// What its dispatch has added to the load.
    pub(crate) fn taken(&self) -> Taken {
        let (packets, bytes) = (self.packets.get().charged(), self.bytes.get().charged());
        Taken { index: self.index, packets, bytes }
    }

    /// What a dispatch is beside a number.
    #[inline(never)]
    pub(crate) fn charge(&self) {
        let Some(learnt) = &self.pool.member(self.index).learnt else { return };
        if self.pool.wants.cells {
            let compiled = self.pool.compiled.load();
            learnt.change(|cell| compiled.balancer.on_dispatch(cell, self.since));
        }
        if let Some(traffic) = &learnt.packets {
            self.packets.set(traffic.charge(self.since));
        }
        if let Some(traffic) = &learnt.bytes {
            self.bytes.set(traffic.charge(self.since));
        }
    }

    /// What a settlement is beside a number.
    #[inline(never)]
    fn learn(&self, outcome: Outcome, now: Tick) {
        if let Some(log) = &self.pool.log {
            log.settled(self.record, outcome, Some(now));
        }
        let elapsed = now.since(self.since);
        let (answered, first_byte, failed) = match outcome {
            Outcome::Completed(answered) => (true, answered.first_byte, answered.status_failed),
            Outcome::Unreachable | Outcome::Failed => (false, None, true),
            Outcome::Cancelled => (false, None, false),
        };
        if self.pool.spec.eject.is_some() && answered && !failed {
            // A client that takes its time with the rest of an answer says nothing of the endpoint.
            self.endpoint().count_success(first_byte.unwrap_or(elapsed));
        }
        let completion = Completion { now, elapsed, first_byte, failed };
        if let Some(shadows) = &self.pool.shadows
            && (answered || failed)
        {
            shadows.completed(self.pool, self.index, &completion);
        }
        let Some(learnt) = &self.pool.member(self.index).learnt else { return };
        if self.pool.wants.cells && (answered || failed) {
            let compiled = self.pool.compiled.load();
            let view = View(self.pool);
            learnt
                .change(|cell| compiled.balancer.on_complete(cell, self.index, &completion, &view));
        }
        if let Some(traffic) = &learnt.packets {
            traffic.settle(self.packets.get(), answered, now);
        }
        if let Some(traffic) = &learnt.bytes {
            traffic.settle(self.bytes.get(), answered, now);
        }
    }
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        if let Some(log) = &self.pool.log {
            // Unless it was settled with a word.
            log.settled(self.record, Outcome::Cancelled, None);
        }
        self.endpoint().settle();
        self.pool.queue().notify();
    }
}
