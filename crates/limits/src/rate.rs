//! Is there a token left for this key? Token buckets, many of them, in a table of a fixed size.
//!
//! A bucket holds `burst` tokens and gets `quota` new ones in every `window`, evenly. It is kept as
//! one number, the moment at which it will be full again (the generic cell rate algorithm, ITU-T
//! I.371): with T = window / quota, a request moves it from `full` to `max(full, now) + T` and is
//! refused if that is more than `burst · T` from now. One compare-and-swap takes a token, so the rate
//! is exact over all threads. T is in nanoseconds; at the highest rate, a million a second, rounding
//! costs a twentieth of a percent.
//!
//! A bucket that is full again is worth nothing: whoever is new takes its place. Where no bucket of a
//! set is full, the one that has given least is forgotten: to make a table forget the key that asks
//! most, one would have to ask more by eight others.
//!
//! Cost: one set (two cache lines), no allocation, no lock. 16 bytes a key.

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use subak_base::Tick;

use crate::sets::{WAYS, set_of, sets_for};

/// How many, in which time, and how many at once.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Rate {
    /// Tokens that a bucket gets,
    pub quota: NonZeroU32,
    /// in this time.
    pub window: Duration,
    /// Tokens that it holds.
    pub burst: NonZeroU32,
}

impl Rate {
    /// Nanoseconds from one token to the next, at least 1.
    fn interval_ns(&self) -> u64 {
        let quota = u64::from(self.quota.get());
        let window = u64::try_from(self.window.as_nanos()).unwrap_or(u64::MAX);
        (window.saturating_add(quota / 2) / quota).max(1)
    }

    /// The time in which an empty bucket becomes full.
    pub fn refill(&self) -> Duration {
        let nanos = self.interval_ns().saturating_mul(u64::from(self.burst.get()));
        Duration::from_nanos(nanos)
    }
}

/// A token was there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Taken {
    place: u32,
    /// How the bucket is now.
    pub level: Level,
    /// Whether it has just gone below its half: the moment to note whose it is.
    pub is_half_empty: bool,
}

/// There was none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Refused {
    /// Until there is one.
    pub wait: Duration,
    /// How the bucket is.
    pub level: Level,
}

/// How full a bucket is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Level {
    /// Whole tokens in it.
    pub left: u32,
    /// Until it is full.
    pub full_in: Duration,
}

/// Buckets by key.
#[derive(Debug)]
pub struct RateTable {
    rate: Rate,
    interval_ns: u64,
    capacity_ns: u64,
    sets: Box<[Set]>,
    evicted: AtomicU64,
}

/// Keys and the moments at which their buckets are full, in nanoseconds; key 0 is nobody's.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Set {
    keys: [AtomicU64; WAYS],
    full_at: [AtomicU64; WAYS],
}

impl RateTable {
    /// A table with room for so many keys, rounded up to sets of eight.
    pub fn new(rate: Rate, entries: usize) -> RateTable {
        let interval_ns = rate.interval_ns();
        let capacity_ns = interval_ns.saturating_mul(u64::from(rate.burst.get()));
        let sets = (0..sets_for(entries)).map(|_| Set::default()).collect();
        RateTable { rate, interval_ns, capacity_ns, sets, evicted: AtomicU64::new(0) }
    }

    /// What it allows.
    pub fn rate(&self) -> &Rate {
        &self.rate
    }

    /// Takes a token of this key's bucket.
    ///
    /// # Errors
    /// [`Refused`] when there is none; then nothing has changed.
    #[inline]
    pub fn take(&self, key: u64, now: Tick) -> Result<Taken, Refused> {
        let key = key.max(1);
        let place = self.place(key, now);
        let full_at = &self.set(key).full_at[place];
        let mut old = full_at.load(Ordering::Relaxed);
        loop {
            let new = old.max(now.0).saturating_add(self.interval_ns);
            let used = new - now.0;
            if used > self.capacity_ns {
                let wait = Duration::from_nanos(used - self.capacity_ns);
                return Err(Refused { wait, level: self.level(old, now) });
            }
            match full_at.compare_exchange_weak(old, new, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => {
                    let half = self.capacity_ns / 2;
                    let is_half_empty = used > half && old.saturating_sub(now.0) <= half;
                    let level = self.level(new, now);
                    return Ok(Taken { place: place as u32, level, is_half_empty });
                }
                Err(newer) => old = newer,
            }
        }
    }

    /// Gives back what was taken: the request was refused for another reason.
    pub fn give_back(&self, key: u64, taken: &Taken) {
        let key = key.max(1);
        let (set, place) = (self.set(key), taken.place as usize);
        if set.keys[place].load(Ordering::Relaxed) == key {
            let less = |full: u64| Some(full.saturating_sub(self.interval_ns));
            let full_at = &set.full_at[place];
            _ = full_at.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        }
    }

    /// How this key's bucket is, and for how long a request would have to wait. Changes nothing.
    pub fn look(&self, key: u64, now: Tick) -> (Level, Duration) {
        let key = key.max(1);
        let set = self.set(key);
        let full = set.find(key).map_or(0, |place| set.full_at[place].load(Ordering::Relaxed));
        let used = full.max(now.0).saturating_add(self.interval_ns) - now.0;
        (self.level(full, now), Duration::from_nanos(used.saturating_sub(self.capacity_ns)))
    }

    /// Fills this key's bucket. False when it was full.
    pub fn clear(&self, key: u64, now: Tick) -> bool {
        let key = key.max(1);
        let set = self.set(key);
        let Some(place) = set.find(key) else { return false };
        set.full_at[place].swap(0, Ordering::Relaxed) > now.0
    }

    /// The keys whose buckets have given most, at most so many of them, and how many buckets are not
    /// full. O(places).
    pub fn emptiest(&self, most: usize, now: Tick) -> (Vec<(u64, Level)>, usize) {
        let mut found: Vec<(u64, u64)> = Vec::new();
        for set in &self.sets {
            for (key, full_at) in set.keys.iter().zip(&set.full_at) {
                let (key, full_at) = (key.load(Ordering::Relaxed), full_at.load(Ordering::Relaxed));
                if key != 0 && full_at > now.0 {
                    found.push((full_at, key));
                }
            }
        }
        let used = found.len();
        if used > most && most > 0 {
            found.select_nth_unstable_by(most - 1, |one, other| other.cmp(one));
        }
        found.truncate(most);
        found.sort_unstable_by(|one, other| other.cmp(one));
        let level = |(full_at, key)| (key, self.level(full_at, now));
        (found.into_iter().map(level).collect(), used)
    }

    /// Keys it has room for.
    pub fn places(&self) -> usize {
        self.sets.len() * WAYS
    }

    /// Buckets that were forgotten before they were full.
    pub fn evicted(&self) -> u64 {
        self.evicted.load(Ordering::Relaxed)
    }

    #[inline]
    fn set(&self, key: u64) -> &Set {
        &self.sets[set_of(key, self.sets.len())]
    }

    /// The key's place; one that it takes over where it has none.
    #[inline]
    fn place(&self, key: u64, now: Tick) -> usize {
        let set = self.set(key);
        set.find(key).unwrap_or_else(|| self.settle(set, key, now))
    }

    /// A place for a new key: a free one, one whose bucket is full, or that of the bucket which has
    /// given least.
    #[cold]
    fn settle(&self, set: &Set, key: u64, now: Tick) -> usize {
        // Every turn another thread has changed this set: it found its place.
        loop {
            if let Some(place) = set.find(key) {
                return place;
            }
            let mut victim = 0;
            let mut least = u64::MAX;
            let mut known = 0;
            for (place, (one, full_at)) in set.keys.iter().zip(&set.full_at).enumerate() {
                let (one, full_at) = (one.load(Ordering::Relaxed), full_at.load(Ordering::Relaxed));
                // All that are full are alike: the first, so that two threads want the same.
                let full_at = if one == 0 || full_at <= now.0 { 0 } else { full_at };
                if full_at < least {
                    (victim, least, known) = (place, full_at, one);
                }
            }
            let place = &set.keys[victim];
            if place.compare_exchange(known, key, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
                if least > 0 {
                    let full_at = &set.full_at[victim];
                    // Whoever was faster has charged the newcomer already.
                    _ = full_at.compare_exchange(least, 0, Ordering::Relaxed, Ordering::Relaxed);
                    self.evicted.fetch_add(1, Ordering::Relaxed);
                }
                return victim;
            }
        }
    }

    fn level(&self, full_at: u64, now: Tick) -> Level {
        let used = full_at.saturating_sub(now.0).min(self.capacity_ns);
        let left = (self.capacity_ns - used) / self.interval_ns;
        let left = left.min(u64::from(self.rate.burst.get())) as u32;
        Level { left, full_in: Duration::from_nanos(used) }
    }
}

impl Set {
    #[inline]
    fn find(&self, key: u64) -> Option<usize> {
        self.keys.iter().position(|one| one.load(Ordering::Relaxed) == key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(quota: u32, window: Duration, burst: u32) -> Rate {
        let some = |number| NonZeroU32::new(number).expect("more than nothing");
        Rate { quota: some(quota), window, burst: some(burst) }
    }

    #[test]
    fn a_bucket_gives_its_burst_and_then_its_rate() {
        let table = RateTable::new(rate(10, Duration::from_secs(1), 3), 8);
        let start = Tick::from_millis(5000);
        for left in [2, 1, 0] {
            assert_eq!(table.take(7, start).map(|taken| taken.level.left), Ok(left));
        }
        let refused = table.take(7, start).expect_err("empty");
        assert_eq!((refused.wait, refused.level.left), (Duration::from_millis(100), 0));
        let later = start.after(Duration::from_millis(99));
        assert_eq!(table.take(7, later).expect_err("empty").wait, Duration::from_millis(1));
        let later = start.after(Duration::from_millis(100));
        assert!(table.take(7, later).is_ok() && table.take(7, later).is_err());
        assert!(table.take(8, later).is_ok(), "another key");
        let rested = start.after(Duration::from_secs(60));
        assert_eq!(table.look(7, rested).0.left, 3, "and no more");
    }

    #[test]
    fn what_is_given_back_is_there_again() {
        let table = RateTable::new(rate(1, Duration::from_secs(60), 1), 8);
        let now = Tick::from_millis(1);
        let taken = table.take(9, now).expect("a token");
        assert!(taken.is_half_empty && table.take(9, now).is_err());
        table.give_back(9, &taken);
        assert!(table.take(9, now).is_ok());
        assert!(table.clear(9, now) && !table.clear(9, now) && !table.clear(10, now));
        assert!(table.take(9, now).is_ok());
    }

    #[test]
    fn the_busiest_key_is_not_forgotten_in_a_flood() {
        let table = RateTable::new(rate(100, Duration::from_secs(3600), 100), 64);
        let now = Tick::from_millis(10);
        while table.take(42, now).is_ok() {}
        for key in 1..100_000u64 {
            let flooder = key.wrapping_mul(0x9E37_79B9_7F4A_7C15);
            _ = table.take(flooder, now);
        }
        assert!(table.take(42, now).is_err(), "its bucket is still empty");
        let (top, used) = table.emptiest(3, now);
        assert_eq!((top[0].0, top[0].1.left, top.len(), used), (42, 0, 3, 64));
        assert!(table.evicted() > 90_000);
    }

    #[test]
    fn a_full_bucket_makes_room_first() {
        let table = RateTable::new(rate(1, Duration::from_secs(1), 5), 8);
        let start = Tick::from_millis(0);
        assert!(table.take(1, start).is_ok());
        for key in 2..=8 {
            assert!(table.take(key, start.after(Duration::from_secs(2))).is_ok());
        }
        assert!(table.take(100, start.after(Duration::from_secs(2))).is_ok());
        assert_eq!(table.evicted(), 0, "the first key's bucket was full");
    }

    #[test]
    fn a_million_a_second_is_still_exact() {
        let rate = rate(1_000_000, Duration::from_secs(1), 1);
        assert_eq!(rate.interval_ns(), 1000);
        assert_eq!(rate.refill(), Duration::from_micros(1));
    }
}
