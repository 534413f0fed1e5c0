//! One accounted in-flight use of an endpoint.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use subak_balance::Completion;
use subak_base::Tick;
use subak_health::Client;

use crate::back_off::Entry;
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
    /// No connection to the endpoint was made; it is left out for a while.
    Unreachable,
    /// The endpoint accepted, and reset, closed or wrote nonsense before the first byte of a response. A few
    /// of these in a row leave it out: see [`Suspects`](subak_health::Suspects).
    Broken,
    /// The endpoint took too long. Says more of the request than of the endpoint.
    Late,
    /// The endpoint failed in another way: it broke its response off, or said that it failed.
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
    client: Client,
    /// A trial until it has said something.
    entry: Cell<Entry>,
    since: Tick,
    /// The number of its record in the pool's log; 0 for none.
    pub(crate) record: u64,
    /// How long a connection may take; none: as long as configured.
    connect_within: Cell<Option<Duration>>,
    packets: Cell<Account>,
    bytes: Cell<Account>,
}

impl<'p> Lease<'p> {
    #[inline]
    pub(crate) fn new(
        pool: &'p Pool,
        index: usize,
        (client, entry): (Client, Entry),
        since: Tick,
        record: u64,
    ) -> Lease<'p> {
        let (packets, bytes) = (Cell::default(), Cell::default());
        let entry = Cell::new(entry);
        let connect_within = Cell::new(None);
        Lease { pool, index, client, entry, since, record, connect_within, packets, bytes }
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

    /// A connection to the endpoint may take so long, because others are to be tried in what is left.
    pub fn connect_within(&self, limit: Duration) {
        self.connect_within.set(Some(limit));
    }

    /// How long a connection to the endpoint may take, if not as long as configured.
    pub fn connect_limit(&self) -> Option<Duration> {
        self.connect_within.get()
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
                self.entry.set(Entry::Open);
                if endpoint.back_off.succeeded(self.since) {
                    self.pool.came_back(self.index, now);
                }
                match answered.status_failed {
                    false => endpoint.count_success(self.client, now),
                    true => self.pool.failed(self.index, self.client, now),
                }
            }
            Outcome::Unreachable => {
                let entry = self.entry.replace(Entry::Open);
                endpoint.back_off.failed(&self.pool.spec.back_off, (entry, true), now);
                self.pool.failed(self.index, self.client, now);
                self.pool.refresh(now);
            }
            Outcome::Broken => {
                let entry = self.entry.replace(Entry::Open);
                self.pool.broke(self.index, self.client, entry, now);
            }
            Outcome::Late => {
                if self.entry.replace(Entry::Open) == Entry::Trial {
                    let trial = (Entry::Trial, false);
                    endpoint.back_off.failed(&self.pool.spec.back_off, trial, now);
                    endpoint.back_off.broken_by(self.client);
                }
                self.pool.late(self.index, self.client, now);
            }
            Outcome::Failed => self.pool.failed(self.index, self.client, now),
            Outcome::Cancelled => {}
        }
        if self.pool.has_extras {
            self.learn(outcome, now);
        }
    }

    /// A connection was made to the endpoint: ends a back-off that was for want of one.
    pub fn connected(&self, now: Tick) {
        if self.endpoint().back_off.connected(self.since) {
            self.pool.came_back(self.index, now);
        }
    }

    /// Whether it is of any use to [`lingers`](Lease::lingers).
    #[inline]
    pub fn times_lingering(&self) -> bool {
        self.pool.times_ejections
    }

    /// So long was waited for the rest of a response that has begun: to be told once, while it is under
    /// way.
    pub fn lingers(&self, waited: Duration) {
        self.endpoint().count_lingering(waited);
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
            Outcome::Unreachable | Outcome::Broken | Outcome::Late | Outcome::Failed => {
                (false, None, true)
            }
            Outcome::Cancelled => (false, None, false),
        };
        if self.pool.times_ejections && answered && !failed {
            // A client that takes its time with the rest of an answer says nothing of the endpoint.
            self.endpoint().count_latency(first_byte.unwrap_or(elapsed));
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
        if self.entry.get() == Entry::Trial {
            self.endpoint().back_off.release();
        }
        self.endpoint().settle();
        self.pool.queue().notify();
    }
}
