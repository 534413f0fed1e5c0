//! How long did it take? Counts by fixed bounds, from 100 µs to a minute.
//!
//! Eighteen bounds in steps of 1, 2 and 5: an estimate of a quantile from them is off by a factor of
//! less than 1.6 on either side, for two cache lines a worker and pool. A record is two additions and
//! a search of at most five comparisons.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The upper bounds, in nanoseconds and as Prometheus writes them, in seconds.
pub const BOUNDS: [(u64, &str); 18] = [
    (100_000, "0.0001"),
    (200_000, "0.0002"),
    (500_000, "0.0005"),
    (1_000_000, "0.001"),
    (2_000_000, "0.002"),
    (5_000_000, "0.005"),
    (10_000_000, "0.01"),
    (20_000_000, "0.02"),
    (50_000_000, "0.05"),
    (100_000_000, "0.1"),
    (200_000_000, "0.2"),
    (500_000_000, "0.5"),
    (1_000_000_000, "1"),
    (2_000_000_000, "2"),
    (5_000_000_000, "5"),
    (10_000_000_000, "10"),
    (30_000_000_000, "30"),
    (60_000_000_000, "60"),
];

const BUCKETS: usize = BOUNDS.len() + 1;

/// One worker's counts.
#[derive(Debug, Default)]
pub struct Histogram {
    buckets: [AtomicU64; BUCKETS],
    sum_ns: AtomicU64,
}

/// What was counted, by bucket and not cumulated; the last bucket has no bound.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Counts {
    buckets: [u64; BUCKETS],
    sum_ns: u64,
}

impl Histogram {
    /// Counts one duration. A bound belongs to the bucket below it.
    #[inline]
    pub fn record(&self, duration: Duration) {
        let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        let bucket = BOUNDS.partition_point(|(bound, _)| *bound < nanos);
        self.buckets[bucket].fetch_add(1, Ordering::Relaxed);
        self.sum_ns.fetch_add(nanos, Ordering::Relaxed);
    }

    /// Adds what was counted to `counts`.
    pub fn add_to(&self, counts: &mut Counts) {
        for (total, bucket) in counts.buckets.iter_mut().zip(&self.buckets) {
            *total += bucket.load(Ordering::Relaxed);
        }
        counts.sum_ns = counts.sum_ns.wrapping_add(self.sum_ns.load(Ordering::Relaxed));
    }
}

impl Counts {
    /// How many durations.
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// All of them together, in seconds.
    pub fn sum_s(&self) -> f64 {
        self.sum_ns as f64 / 1e9
    }

    /// What so large a part (0 to 1) took at most, in milliseconds: within its bucket it is taken to be
    /// spread evenly. None before anything was counted, and beyond the last bound.
    pub fn quantile_ms(&self, part: f64) -> Option<f64> {
        let wanted = part.clamp(0.0, 1.0) * self.count() as f64;
        let (mut below, mut lower) = (0, 0);
        for (count, (bound, _)) in self.buckets.iter().zip(BOUNDS) {
            if *count > 0 && (below + count) as f64 >= wanted {
                let within = ((wanted - below as f64) / *count as f64).max(0.0);
                return Some((lower as f64 + within * (bound - lower) as f64) / 1e6);
            }
            (below, lower) = (below + count, bound);
        }
        None
    }

    /// Every bound with how many were not above it; the last, `+Inf`, with all.
    pub fn cumulated(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let bounds = BOUNDS.iter().map(|(_, text)| *text).chain(["+Inf"]);
        bounds.zip(self.buckets.iter().scan(0, |sum, count| {
            *sum += count;
            Some(*sum)
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_say_what_the_bounds_are_and_these_rise() {
        for (nanos, text) in BOUNDS {
            let seconds: f64 = text.parse().unwrap();
            assert_eq!((seconds * 1e9).round() as u64, nanos, "{text}");
        }
        assert!(BOUNDS.is_sorted_by(|one, next| one.0 < next.0));
    }

    #[test]
    fn a_bound_counts_as_below_itself() {
        let histogram = Histogram::default();
        for nanos in [0, 100_000, 100_001, 1_000_000_000, 60_000_000_000, 60_000_000_001] {
            histogram.record(Duration::from_nanos(nanos));
        }
        let mut counts = Counts::default();
        histogram.add_to(&mut counts);
        let below: Vec<_> = counts.cumulated().collect();
        assert_eq!(below[0], ("0.0001", 2));
        assert_eq!(below[1], ("0.0002", 3));
        assert_eq!(below[12], ("1", 4));
        assert_eq!(below[17], ("60", 5));
        assert_eq!(below[18], ("+Inf", 6));
        assert_eq!(counts.count(), 6);
        assert!((counts.sum_s() - 121.0002).abs() < 0.001, "{}", counts.sum_s());
    }

    #[test]
    fn a_quantile_lies_in_the_bucket_of_what_it_stands_for() {
        let mut counts = Counts::default();
        assert_eq!(counts.quantile_ms(0.5), None);
        let histogram = Histogram::default();
        (0..90).for_each(|_| histogram.record(Duration::from_micros(1500)));
        (0..10).for_each(|_| histogram.record(Duration::from_millis(40)));
        histogram.add_to(&mut counts);
        let quantile = |part| counts.quantile_ms(part).unwrap();
        assert!((1.0..=2.0).contains(&quantile(0.5)), "{}", quantile(0.5));
        assert_eq!(quantile(0.9), 2.0);
        assert!((20.0..=50.0).contains(&quantile(0.99)), "{}", quantile(0.99));
        assert!(quantile(0.0) >= 1.0 && quantile(1.0) == 50.0);
        histogram.record(Duration::MAX);
        let mut counts = Counts::default();
        histogram.add_to(&mut counts);
        assert_eq!(counts.quantile_ms(1.0), None, "longer than the last bound says");
    }

    #[test]
    fn the_longest_duration_is_counted_too() {
        let histogram = Histogram::default();
        histogram.record(Duration::MAX);
        let mut counts = Counts::default();
        histogram.add_to(&mut counts);
        assert_eq!(counts.cumulated().last(), Some(("+Inf", 1)));
    }
}
