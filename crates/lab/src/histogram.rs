//! How long things took, by percentile: a log-linear histogram.
//!
//! Every power of two is cut into 128 equal parts, so a value is known to within
//! 1/128 and, taking the middle of its part, to within 0.4 %. Recording is one
//! shift and one increment, whatever the value; the memory is fixed (58 KiB).
//! The idea is that of G. Tene's HdrHistogram; unit here: nanoseconds.

use std::time::Duration;

/// Parts each power of two is cut into, and the smallest value that is rounded at all.
const PARTS: u64 = 128;
/// log2 of [`PARTS`].
const PART_BITS: u32 = PARTS.trailing_zeros();
/// Buckets for every `u64`: the exact ones below `PARTS`, then `PARTS` for each power above.
const BUCKETS: usize = (PARTS as usize) * (64 - PART_BITS as usize + 1);

/// Counts of durations, exact to 0.4 %.
#[derive(Clone, Debug)]
pub struct Histogram {
    counts: Box<[u64]>,
    total: u64,
    sum_ns: u64,
    smallest_ns: u64,
    largest_ns: u64,
}

impl Histogram {
    /// An empty histogram.
    pub fn new() -> Histogram {
        Histogram {
            counts: vec![0; BUCKETS].into_boxed_slice(),
            total: 0,
            sum_ns: 0,
            smallest_ns: u64::MAX,
            largest_ns: 0,
        }
    }

    /// Counts one duration of `ns` nanoseconds.
    pub fn record(&mut self, ns: u64) {
        self.counts[bucket(ns)] += 1;
        self.total += 1;
        self.sum_ns = self.sum_ns.saturating_add(ns);
        self.smallest_ns = self.smallest_ns.min(ns);
        self.largest_ns = self.largest_ns.max(ns);
    }

    /// Forgets everything recorded.
    pub fn clear(&mut self) {
        if self.total > 0 {
            self.counts.fill(0);
        }
        (self.total, self.sum_ns, self.smallest_ns, self.largest_ns) = (0, 0, u64::MAX, 0);
    }

    /// How many durations were recorded.
    pub fn count(&self) -> u64 {
        self.total
    }

    /// The mean, exactly; zero when there is none.
    pub fn mean(&self) -> Duration {
        Duration::from_nanos(self.sum_ns.checked_div(self.total).unwrap_or(0))
    }

    /// The standard deviation, as the buckets know it; zero when there is none.
    pub fn deviation(&self) -> Duration {
        if self.total == 0 {
            return Duration::ZERO;
        }
        let mean_ns = self.sum_ns as f64 / self.total as f64;
        let parts = self.counts.iter().enumerate().filter(|(_, count)| **count > 0);
        let squares = parts.map(|(index, count)| {
            let distance_ns = middle(index) as f64 - mean_ns;
            distance_ns * distance_ns * *count as f64
        });
        Duration::from_nanos((squares.sum::<f64>() / self.total as f64).sqrt() as u64)
    }

    /// The shortest duration recorded, exactly; zero when there is none.
    pub fn min(&self) -> Duration {
        Duration::from_nanos(if self.total == 0 { 0 } else { self.smallest_ns })
    }

    /// The longest duration recorded, exactly; zero when there is none.
    pub fn max(&self) -> Duration {
        Duration::from_nanos(self.largest_ns)
    }

    /// The duration that a `share` (0.0 to 1.0; 0.99 = p99) of all recorded ones do
    /// not exceed; zero when nothing was recorded.
    pub fn quantile(&self, share: f64) -> Duration {
        let rank = ((share.clamp(0.0, 1.0) * self.total as f64).ceil() as u64).max(1);
        let mut seen = 0;
        for (index, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= rank {
                let value_ns = middle(index).clamp(self.smallest_ns, self.largest_ns);
                return Duration::from_nanos(value_ns);
            }
        }
        Duration::ZERO
    }

    /// Adds everything `other` has recorded.
    pub fn merge(&mut self, other: &Histogram) {
        for (mine, theirs) in self.counts.iter_mut().zip(&other.counts) {
            *mine += theirs;
        }
        self.total += other.total;
        self.sum_ns = self.sum_ns.saturating_add(other.sum_ns);
        self.smallest_ns = self.smallest_ns.min(other.smallest_ns);
        self.largest_ns = self.largest_ns.max(other.largest_ns);
    }
}

impl Default for Histogram {
    fn default() -> Self {
        Histogram::new()
    }
}

/// The bucket of a value: itself below [`PARTS`], else power and part.
fn bucket(ns: u64) -> usize {
    if ns < PARTS {
        return ns as usize;
    }
    let shift = 63 - ns.leading_zeros() - PART_BITS;
    (u64::from(shift) * PARTS + (ns >> shift)) as usize
}

/// The middle of a bucket, the value it stands for.
fn middle(index: usize) -> u64 {
    let index = index as u64;
    if index < 2 * PARTS {
        return index;
    }
    let shift = index / PARTS - 1;
    let low = (index % PARTS + PARTS) << shift;
    low + ((1 << shift) >> 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_empty_one_says_zero() {
        let empty = Histogram::new();
        assert_eq!(empty.quantile(0.99), Duration::ZERO);
        assert_eq!((empty.min(), empty.mean(), empty.max()), Default::default());
        assert_eq!(empty.deviation(), Duration::ZERO);
    }

    #[test]
    fn percentiles_of_one_to_a_thousand_microseconds() {
        let mut histogram = Histogram::new();
        for micros in 1..=1000_u64 {
            histogram.record(micros * 1000);
        }
        for (share, expected_us) in [(0.5, 500.0), (0.99, 990.0), (0.999, 999.0), (1.0, 1000.0)] {
            let found_us = histogram.quantile(share).as_secs_f64() * 1e6;
            assert!((found_us / expected_us - 1.0).abs() < 0.004, "{share}: {found_us} µs");
        }
        assert_eq!(histogram.max(), Duration::from_millis(1));
        assert_eq!(histogram.min(), Duration::from_micros(1));
        assert_eq!(histogram.mean(), Duration::from_nanos(500_500));
        // Of the numbers 1 to n it is the root of (n² − 1) / 12.
        let deviation_us = histogram.deviation().as_secs_f64() * 1e6;
        assert!((deviation_us / 288.675 - 1.0).abs() < 0.004, "{deviation_us} µs");
        histogram.clear();
        assert_eq!((histogram.count(), histogram.quantile(0.5)), (0, Duration::ZERO));
    }

    #[test]
    fn merging_equals_recording_into_one() {
        let (mut left, mut right, mut both) =
            (Histogram::new(), Histogram::new(), Histogram::new());
        for value in (0..5000_u64).map(|index| index * index * 37) {
            if value % 3 == 0 {
                left.record(value)
            } else {
                right.record(value)
            }
            both.record(value);
        }
        left.merge(&right);
        assert_eq!(left.count(), both.count());
        for share in [0.01, 0.5, 0.9, 0.99, 1.0] {
            assert_eq!(left.quantile(share), both.quantile(share));
        }
    }

    proptest! {
        #[test]
        fn every_value_is_kept_to_within_four_per_mille(value: u64) {
            let kept = middle(bucket(value));
            let difference = kept.abs_diff(value);
            prop_assert!(difference as f64 <= value as f64 * 0.004, "{value} became {kept}");
        }

        #[test]
        fn buckets_keep_the_order(left: u64, right: u64) {
            let (low, high) = (left.min(right), left.max(right));
            prop_assert!(bucket(low) <= bucket(high));
        }
    }
}
