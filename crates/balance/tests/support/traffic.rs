//! Requests over time to a pool whose endpoints take as long as they are told: a small simulation,
//! to see what an algorithm that learns does with what it learns.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use subak_base::{BitSet, Rng, Tick};

use crate::support::Pool;

/// What becomes of one request.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Fate {
    pub(crate) takes: Duration,
    pub(crate) fails: bool,
}

/// One that is answered after so many milliseconds.
pub(crate) fn answered(millis: u64) -> Fate {
    Fate { takes: Duration::from_millis(millis), fails: false }
}

/// From one summary to the next.
const SUMMARY: Duration = Duration::from_millis(100);

/// A pool under load.
pub(crate) struct Traffic {
    pub(crate) pool: Pool,
    /// Mean time between two requests.
    gap: Duration,
    rng: Rng,
    next_summary: Tick,
    /// Ends of requests in flight, the endpoint of each, and when it was dispatched.
    ends: BinaryHeap<Reverse<(Tick, usize, Tick, Fate)>>,
}

impl Traffic {
    pub(crate) fn new(pool: Pool, per_second: u32) -> Traffic {
        let gap = Duration::from_secs(1) / per_second;
        let (rng, next_summary) = (Rng::new(11), Tick(0));
        Traffic { pool, gap, rng, next_summary, ends: BinaryHeap::new() }
    }

    pub(crate) fn now(&self) -> Tick {
        self.pool.loads.now
    }

    /// Goes on for a while; how many requests each endpoint got. `watch` sees the pool after every
    /// dispatch, and which endpoint it was.
    pub(crate) fn run(
        &mut self,
        time: Duration,
        fate: impl Fn(usize, &mut Rng) -> Fate,
        mut watch: impl FnMut(&Pool, usize),
    ) -> Vec<u64> {
        let until = self.now().after(time);
        let mut hits = vec![0; self.pool.endpoints.len()];
        loop {
            // Between nothing and twice the mean.
            let gap = Duration::from_nanos(self.rng.below(2 * self.gap.as_nanos() as u64));
            let next = self.now().after(gap);
            if next > until {
                self.settle_until(until);
                self.pool.loads.now = until;
                return hits;
            }
            self.settle_until(next);
            self.pool.loads.now = next;
            let Some(picked) = self.pool.pick_with(subak_balance::Key::None, &BitSet::EMPTY) else {
                continue;
            };
            self.pool.dispatch(picked);
            hits[picked] += 1;
            watch(&self.pool, picked);
            let fate = fate(picked, &mut self.rng);
            self.ends.push(Reverse((next.after(fate.takes), picked, next, fate)));
        }
    }

    fn settle_until(&mut self, until: Tick) {
        loop {
            let next_end = self.ends.peek().map_or(Tick(u64::MAX), |Reverse((end, ..))| *end);
            if self.next_summary <= until.min(next_end) {
                self.pool.loads.now = self.next_summary;
                self.pool.summarise();
                self.next_summary = self.next_summary.after(SUMMARY);
            } else if next_end <= until {
                let Some(Reverse((end, endpoint, began, fate))) = self.ends.pop() else { return };
                self.pool.loads.now = end;
                self.pool.complete(endpoint, end.since(began), fate.fails);
            } else {
                return;
            }
        }
    }
}
