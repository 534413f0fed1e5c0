//! How long did an endpoint's answers take? Counts by classes a quarter of an octave wide.
//!
//! From 16 µs to 69 s, four classes for each doubling: a quantile read from them is off by a quarter at
//! most. All workers add to the same counters: an addition a request, beside those of its hits and
//! requests in flight. 720 bytes an endpoint, apart from what requests read.

use std::sync::atomic::{AtomicU64, Ordering};

/// Below 2^14 ns everything is one class.
const FIRST_OCTAVE: u32 = 14;
const OCTAVES: u32 = 22;
/// Classes of an octave, as a power of two.
const SPLIT: u32 = 2;
const CLASSES: usize = ((OCTAVES << SPLIT) + 2) as usize;

/// The counts of one endpoint, since it has been known.
#[derive(Debug)]
pub struct Latencies {
    classes: [AtomicU64; CLASSES],
}

/// What half, nine in ten and 99 in 100 of the answers took at most, in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Quantiles {
    /// Of half of them.
    pub p50_ns: u64,
    /// Of nine in ten.
    pub p90_ns: u64,
    /// Of 99 in 100.
    pub p99_ns: u64,
}

impl Default for Latencies {
    fn default() -> Latencies {
        Latencies { classes: [const { AtomicU64::new(0) }; CLASSES] }
    }
}

impl Latencies {
    /// An answer took so long.
    #[inline]
    pub(crate) fn count(&self, nanos: u64) {
        self.classes[class(nanos)].fetch_add(1, Ordering::Relaxed);
    }

    /// The quantiles; none before the first answer. Within its class an answer is taken to be spread
    /// evenly; what took longer than the last bound, to have taken that.
    pub fn quantiles(&self) -> Option<Quantiles> {
        let counts: [u64; CLASSES] =
            std::array::from_fn(|class| self.classes[class].load(Ordering::Relaxed));
        let all: u64 = counts.iter().sum();
        if all == 0 {
            return None;
        }
        let quantile = |percent: u64| {
            let wanted = (u128::from(all) * u128::from(percent)).div_ceil(100) as u64;
            let mut below = 0;
            for (class, count) in counts.into_iter().enumerate() {
                if below + count >= wanted {
                    let (lower, upper) = bounds(class);
                    let width = u128::from(upper - lower) * u128::from(wanted - below);
                    return lower + (width / u128::from(count.max(1))) as u64;
                }
                below += count;
            }
            bounds(CLASSES - 1).1
        };
        Some(Quantiles { p50_ns: quantile(50), p90_ns: quantile(90), p99_ns: quantile(99) })
    }
}

impl PartialEq for Latencies {
    fn eq(&self, other: &Latencies) -> bool {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        self.classes.iter().map(read).eq(other.classes.iter().map(read))
    }
}

/// The place of what took so long.
#[inline]
fn class(nanos: u64) -> usize {
    let octave = 63 - (nanos | 1).leading_zeros();
    if octave < FIRST_OCTAVE {
        return 0;
    }
    let part = (nanos >> (octave - SPLIT)) & ((1 << SPLIT) - 1);
    let class = 1 + (u64::from(octave - FIRST_OCTAVE) << SPLIT) + part;
    (class as usize).min(CLASSES - 1)
}

/// From where to where a class goes, in nanoseconds.
fn bounds(class: usize) -> (u64, u64) {
    let lower = |class: usize| {
        let (octave, part) = ((class - 1) as u32 >> SPLIT, (class - 1) as u64 & ((1 << SPLIT) - 1));
        ((1 << SPLIT) + part) << (FIRST_OCTAVE + octave - SPLIT)
    };
    match class {
        0 => (0, lower(1)),
        last if last == CLASSES - 1 => (lower(last), lower(last)),
        class => (lower(class), lower(class + 1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn nothing_is_said_of_nothing() {
        assert_eq!(Latencies::default().quantiles(), None);
    }

    #[test]
    fn classes_follow_each_other_without_a_gap() {
        for place in 1..CLASSES {
            assert_eq!(bounds(place - 1).1, bounds(place).0, "{place}");
            assert_eq!(class(bounds(place).0), place);
            assert_eq!(class(bounds(place).0 - 1), place - 1);
        }
        assert_eq!((class(0), class(u64::MAX)), (0, CLASSES - 1));
        assert_eq!(bounds(CLASSES - 1).0, 1 << 36, "69 s");
    }

    proptest! {
        #[test]
        fn a_quantile_is_off_by_less_than_the_width_of_its_class(
            mut took in prop::collection::vec(1u64 << FIRST_OCTAVE..1 << 36, 1..200),
        ) {
            let latencies = Latencies::default();
            took.iter().for_each(|nanos| latencies.count(*nanos));
            took.sort_unstable();
            let told = latencies.quantiles().expect("there are some");
            for (percent, told) in [(50, told.p50_ns), (90, told.p90_ns), (99, told.p99_ns)] {
                let exact = took[(took.len() * percent).div_ceil(100) - 1];
                let ratio = told as f64 / exact as f64;
                prop_assert!((0.8..=1.25).contains(&ratio), "{percent}: {told} for {exact}");
            }
        }
    }
}
