//! How many of this key are under way? Counts by key in a table of a fixed size, exact over all threads.
//!
//! A place is one word: 40 bits of the key's hash and 24 bits of its count; what is at nothing is free.
//! A count must not be forgotten, so a key that finds no free place in its set is let through and
//! counted nowhere; the table says how often that was. Keys that have a place keep it.
//!
//! Cost: one set (one cache line), one compare-and-swap to enter and one to leave. 8 bytes a key.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::sets::{WAYS, set_of, sets_for};

/// Bits of a count.
const BITS: u32 = 24;
const COUNT: u64 = (1 << BITS) - 1;

/// The most that is ever under way of one key.
const MOST: u32 = COUNT as u32;

/// Counts by key.
#[derive(Debug)]
pub struct Counts {
    most: u32,
    sets: Box<[Set]>,
    uncounted: AtomicU64,
}

#[derive(Debug, Default)]
#[repr(align(64))]
struct Set([AtomicU64; WAYS]);

/// One that is under way; to be given back by [`Counts::leave`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub struct Counted {
    set: u32,
    /// [`WAYS`]: counted nowhere.
    way: u32,
    /// How many there are of its key, itself included.
    pub now: u32,
}

impl Counts {
    /// At most `most` of each key at once, with room for so many keys, rounded up to sets of eight.
    pub fn new(most: u32, entries: usize) -> Counts {
        let sets = (0..sets_for(entries)).map(|_| Set::default()).collect();
        Counts { most: most.min(MOST), sets, uncounted: AtomicU64::new(0) }
    }

    /// How many there may be of each key.
    pub fn most(&self) -> u32 {
        self.most
    }

    /// One more of this key; none where there are as many as may be.
    #[inline]
    pub fn enter(&self, key: u64) -> Option<Counted> {
        let tag = key & !COUNT;
        let index = set_of(key, self.sets.len());
        let set = &self.sets[index].0;
        loop {
            let place = |way: usize| {
                let word = set[way].load(Ordering::Relaxed);
                (word & COUNT > 0 && word & !COUNT == tag).then_some((way, word))
            };
            let own = (0..WAYS).find_map(place);
            let free = || (0..WAYS).find(|way| set[*way].load(Ordering::Relaxed) & COUNT == 0);
            let (way, word) = match own {
                Some(own) => own,
                None => match free() {
                    Some(way) => (way, set[way].load(Ordering::Relaxed)),
                    None => {
                        self.uncounted.fetch_add(1, Ordering::Relaxed);
                        return Some(Counted { set: index as u32, way: WAYS as u32, now: 1 });
                    }
                },
            };
            let count = (word & COUNT) as u32;
            if own.is_some() && count >= self.most || self.most == 0 {
                return None;
            }
            if own.is_none() && count > 0 {
                continue;
            }
            let new = tag | u64::from(count + 1);
            let swapped =
                set[way].compare_exchange(word, new, Ordering::Relaxed, Ordering::Relaxed);
            if swapped.is_err() {
                continue;
            }
            let counted = Counted { set: index as u32, way: way as u32, now: count + 1 };
            // Two that are new at once may have found two places: the later one joins the other.
            if own.is_none() && (0..way).any(|way| place(way).is_some()) {
                self.leave(counted);
                continue;
            }
            return Some(counted);
        }
    }

    /// One less.
    #[inline]
    pub fn leave(&self, counted: Counted) {
        let place =
            self.sets.get(counted.set as usize).and_then(|set| set.0.get(counted.way as usize));
        if let Some(place) = place {
            place.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// How many of this key are under way.
    pub fn of(&self, key: u64) -> u32 {
        let set = &self.sets[set_of(key, self.sets.len())].0;
        let words = set.iter().map(|word| word.load(Ordering::Relaxed));
        let own = words.filter(|word| word & !COUNT == key & !COUNT);
        own.map(|word| (word & COUNT) as u32).sum()
    }

    /// What is kept of a key.
    pub fn tag(key: u64) -> u64 {
        key & !COUNT
    }

    /// The keys with most under way, by their [tags](Counts::tag), at most so many of them, and how
    /// many keys have any. O(places).
    pub fn busiest(&self, most: usize) -> (Vec<(u64, u32)>, usize) {
        let words = self.sets.iter().flat_map(|set| &set.0);
        let words = words.map(|word| word.load(Ordering::Relaxed));
        let mut found: Vec<(u32, u64)> = words
            .filter(|word| word & COUNT > 0)
            .map(|word| ((word & COUNT) as u32, word & !COUNT))
            .collect();
        let used = found.len();
        found.sort_unstable_by(|one, other| other.cmp(one));
        found.truncate(most);
        (found.into_iter().map(|(count, tag)| (tag, count)).collect(), used)
    }

    /// Keys it has room for.
    pub fn places(&self) -> usize {
        self.sets.len() * WAYS
    }

    /// How many found no place and were let through.
    pub fn uncounted(&self) -> u64 {
        self.uncounted.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: u64 = 0xABCD_EF01_2345_6789;

    #[test]
    fn there_are_no_more_than_may_be() {
        let counts = Counts::new(2, 8);
        let one = counts.enter(KEY).expect("room");
        let two = counts.enter(KEY).expect("room");
        assert_eq!((one.now, two.now, counts.of(KEY)), (1, 2, 2));
        assert!(counts.enter(KEY).is_none());
        assert!(counts.enter(!KEY).is_some(), "another key");
        counts.leave(one);
        assert_eq!(counts.busiest(8).1, 2);
        let again = counts.enter(KEY).expect("room again");
        counts.leave(again);
        counts.leave(two);
        assert_eq!(counts.of(KEY), 0);
    }

    #[test]
    fn who_finds_no_place_is_let_through_and_those_who_have_one_keep_it() {
        let counts = Counts::new(1, 8);
        let keys: Vec<u64> = (1..=8).map(|number| number << 40).collect();
        let held: Vec<Counted> = keys.iter().filter_map(|key| counts.enter(*key)).collect();
        assert_eq!(held.len(), 8);
        let ninth = counts.enter(9 << 40).expect("let through");
        assert!(counts.enter(9 << 40).is_some());
        assert_eq!(counts.uncounted(), 2);
        counts.leave(ninth);
        assert!(keys.iter().all(|key| counts.enter(*key).is_none()), "nobody was forgotten");
        held.into_iter().for_each(|counted| counts.leave(counted));
        assert_eq!(counts.busiest(8), (Vec::new(), 0));
    }

    #[test]
    fn threads_agree() {
        let counts = Counts::new(100, 8);
        let peak = std::sync::atomic::AtomicU64::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for round in 0..20_000u64 {
                        let key = (round % 3 + 1) << 40;
                        let counted = counts.enter(key).expect("a hundred are never there");
                        peak.fetch_max(counted.now.into(), Ordering::Relaxed);
                        counts.leave(counted);
                    }
                });
            }
        });
        assert_eq!(counts.busiest(8), (Vec::new(), 0), "everything was given back");
        assert!(peak.into_inner() <= 4);
    }
}
