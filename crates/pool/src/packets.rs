//! Packets or bytes of one endpoint in the last 14 s, in atomics: what `least_packets` and
//! `least_bandwidth` look at.
//!
//! A dispatch is charged what an exchange with the endpoint took on average, so that picks that come
//! close together do not all go to one endpoint. When the connection's counters are read, what they
//! say takes the charge's place. The average moves by an eighth of the difference.
//!
//! Buckets are those of [`Window`]. Their sum is worked out by whoever changes one, and once a tick;
//! a pick reads one word. Two workers at the same moment may leave a sum that lacks one of the
//! changes, until the next.
//!
//! 128 bytes an endpoint; some 20 ns a change.

use std::sync::atomic::{AtomicU64, Ordering};

use subak_balance::{BUCKETS, Window};
use subak_base::Tick;

/// The average is kept in 1/256.
const FRACTION_BITS: u32 = 8;

/// An amount that no exchange exceeds; keeps sums from overflowing.
const AMOUNT_MAX: u64 = 1 << 38;

/// Fourteen seconds of one endpoint.
#[derive(Debug, Default)]
pub(crate) struct Traffic {
    sum: AtomicU64,
    average: AtomicU64,
    buckets: [AtomicU64; BUCKETS],
}

/// What one exchange has been charged or, once something was counted, what was counted: one word, of
/// which the highest bit tells the two apart.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Account(u64);

const COUNTED: u64 = 1 << 63;

impl Account {
    /// What the dispatch was charged, as long as nothing was counted.
    pub(crate) fn charged(self) -> u64 {
        if self.counted().is_some() { 0 } else { self.0 }
    }

    fn counted(self) -> Option<u64> {
        (self.0 & COUNTED != 0).then_some(self.0 & !COUNTED)
    }
}

impl Traffic {
    /// One that has counted the same.
    pub(crate) fn copied(&self) -> Traffic {
        let copy = |counter: &AtomicU64| AtomicU64::new(counter.load(Ordering::Relaxed));
        Traffic {
            sum: copy(&self.sum),
            average: copy(&self.average),
            buckets: self.buckets.each_ref().map(copy),
        }
    }

    /// The sum as of the last change or tick.
    #[inline]
    pub(crate) fn sum(&self) -> u64 {
        self.sum.load(Ordering::Relaxed)
    }

    /// A dispatch.
    pub(crate) fn charge(&self, now: Tick) -> Account {
        let charged = self.average.load(Ordering::Relaxed) >> FRACTION_BITS;
        if charged > 0 {
            self.add(charged as i64, now);
        }
        Account(charged)
    }

    /// So many more were counted.
    pub(crate) fn count(&self, account: Account, amount: u64, now: Tick) -> Account {
        let amount = amount.min(AMOUNT_MAX);
        let (before, charged) = match account.counted() {
            None => (0, account.0),
            Some(before) => (before, 0),
        };
        self.add(amount as i64 - charged as i64, now);
        Account(COUNTED | (before + amount).min(AMOUNT_MAX))
    }

    /// The end of an exchange. What was never counted keeps its charge if it was `answered`.
    pub(crate) fn settle(&self, account: Account, answered: bool, now: Tick) {
        match account.counted() {
            Some(counted) if answered => {
                let average = self.average.load(Ordering::Relaxed);
                let took = counted << FRACTION_BITS;
                // Up and down by the same rule; an average of nothing takes the first as it is.
                let moved = match average {
                    0 => took,
                    _ => average - average / 8 + took / 8,
                };
                self.average.store(moved, Ordering::Relaxed);
            }
            None if !answered && account.0 > 0 => self.add(-(account.0 as i64), now),
            _ => {}
        }
    }

    /// Lets go of what is older than 14 s.
    pub(crate) fn expire(&self, now: Tick) {
        let buckets = self.buckets.iter().map(|bucket| bucket.load(Ordering::Relaxed));
        self.sum.store(Window::sum_of(buckets, now), Ordering::Relaxed);
    }

    /// Begins anew, with this sum spread over all buckets.
    pub(crate) fn fill(&self, sum: u64, now: Tick) {
        for age in 0..BUCKETS as u64 {
            let (place, bucket) = Window::fill(now, sum, age);
            self.buckets[place].store(bucket, Ordering::Relaxed);
        }
        self.expire(now);
    }

    fn add(&self, amount: i64, now: Tick) {
        let bucket = &self.buckets[Window::place(now)];
        let added = |before| Some(Window::added(before, now, amount));
        let _ = bucket.fetch_update(Ordering::Relaxed, Ordering::Relaxed, added);
        self.expire(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Tick {
        Tick::from_millis(seconds * 1000)
    }

    /// One exchange that takes so many packets, settled a second later.
    fn exchange(traffic: &Traffic, packets: u64, second: u64) {
        let account = traffic.charge(at(second));
        let account = traffic.count(account, packets, at(second + 1));
        traffic.settle(account, true, at(second + 1));
    }

    #[test]
    fn a_charge_is_replaced_by_what_was_counted() {
        let traffic = Traffic::default();
        exchange(&traffic, 40, 1);
        assert_eq!(traffic.sum(), 40);
        let account = traffic.charge(at(3));
        assert_eq!(traffic.sum(), 80, "as much as the last one took");
        let account = traffic.count(account, 10, at(4));
        assert_eq!(traffic.sum(), 50);
        let account = traffic.count(account, 7, at(5));
        assert_eq!(traffic.sum(), 57);
        traffic.settle(account, true, at(5));
        assert_eq!(traffic.sum(), 57);
        assert_eq!(traffic.charge(at(6)).0, 40 - 5 + 2, "an eighth of the way from 40 to 17");
    }

    #[test]
    fn who_never_answered_is_not_charged() {
        let traffic = Traffic::default();
        exchange(&traffic, 40, 1);
        let account = traffic.charge(at(3));
        traffic.settle(account, false, at(4));
        assert_eq!(traffic.sum(), 40);
        let account = traffic.charge(at(4));
        traffic.settle(account, true, at(4));
        assert_eq!(traffic.sum(), 80, "nobody counted: the charge is the best that is known");
    }

    #[test]
    fn what_is_old_is_forgotten_with_a_tick() {
        let traffic = Traffic::default();
        exchange(&traffic, 40, 1);
        traffic.expire(at(15));
        assert_eq!(traffic.sum(), 40);
        traffic.expire(at(16));
        assert_eq!(traffic.sum(), 0);
        traffic.fill(1300, at(20));
        assert_eq!(traffic.sum(), 1300);
        traffic.expire(at(27));
        assert_eq!(traffic.sum(), 600, "six whole seconds of thirteen are left");
    }

    #[test]
    fn no_charge_is_lost_between_threads() {
        let traffic = Traffic::default();
        exchange(&traffic, 8, 1);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..10_000 {
                        let account = traffic.charge(at(2));
                        let account = traffic.count(account, 8, at(2));
                        traffic.settle(account, true, at(2));
                    }
                });
            }
        });
        traffic.expire(at(2));
        assert_eq!(traffic.sum(), 8 + 4 * 10_000 * 8);
    }
}
