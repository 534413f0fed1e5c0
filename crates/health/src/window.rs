//! What an endpoint did in the last seconds: a ring of ten buckets.
//!
//! A bucket is a tenth of the window, so the sums cover between nine tenths and the whole of it.
//! Fixed memory, 248 bytes an endpoint; adding and summing touch ten buckets at most. Buckets are
//! aligned to multiples of their width, so that all endpoints of a pool turn them over together.

use std::time::Duration;

use subak_base::Tick;

const BUCKETS: usize = 10;

/// The shortest bucket, so that a window of nothing is no division by zero.
const WIDTH_MIN: Duration = Duration::from_millis(1);

/// Requests that ended, and how.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) completed: u32,
    pub(crate) failed: u32,
    /// Those of the failed that timed out.
    pub(crate) late: u32,
    /// Responses under way on which was waited for long, each once.
    pub(crate) lingered: u32,
    /// Sum over the completed and the lingering, in microseconds.
    pub(crate) latency_us: u64,
}

impl Counts {
    pub(crate) fn requests(self) -> u64 {
        u64::from(self.completed) + u64::from(self.failed)
    }

    /// How many its latency is the sum of.
    pub(crate) fn timed(self) -> u32 {
        self.completed.saturating_add(self.lingered)
    }

    /// Mean latency in microseconds, if anything was completed or lingers.
    pub(crate) fn mean_us(self) -> Option<u64> {
        self.latency_us.checked_div(u64::from(self.timed()))
    }

    pub(crate) fn add(&mut self, other: Counts) {
        self.completed = self.completed.saturating_add(other.completed);
        self.failed = self.failed.saturating_add(other.failed);
        self.late = self.late.saturating_add(other.late);
        self.lingered = self.lingered.saturating_add(other.lingered);
        self.latency_us = self.latency_us.saturating_add(other.latency_us);
    }

    pub(crate) fn subtract(&mut self, other: Counts) {
        self.completed = self.completed.saturating_sub(other.completed);
        self.failed = self.failed.saturating_sub(other.failed);
        self.late = self.late.saturating_sub(other.late);
        self.lingered = self.lingered.saturating_sub(other.lingered);
        self.latency_us = self.latency_us.saturating_sub(other.latency_us);
    }
}

const _: () = assert!(size_of::<Window>() == 248);

#[derive(Clone, Debug, Default)]
pub(crate) struct Window {
    /// Number of the newest bucket: time divided by the width.
    newest: u64,
    buckets: [Counts; BUCKETS],
}

impl Window {
    /// Counts what ended now.
    pub(crate) fn add(&mut self, window: Duration, now: Tick, counts: Counts) {
        self.advance(window, now);
        let slot = self.slot();
        self.buckets[slot].add(counts);
    }

    /// Lets go of what is older than the window.
    pub(crate) fn advance(&mut self, window: Duration, now: Tick) {
        let width = (window / BUCKETS as u32).max(WIDTH_MIN).as_nanos();
        let number = (u128::from(now.0) / width) as u64;
        let passed = number.saturating_sub(self.newest).min(BUCKETS as u64);
        for _ in 0..passed {
            self.newest += 1;
            let slot = self.slot();
            self.buckets[slot] = Counts::default();
        }
        // After a long pause every bucket is empty and the numbers catch up.
        self.newest = self.newest.max(number);
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        self.buckets = [Counts::default(); BUCKETS];
    }

    pub(crate) fn total(&self) -> Counts {
        let mut total = Counts::default();
        self.buckets.iter().for_each(|bucket| total.add(*bucket));
        total
    }

    /// Whether more than half of the buckets with completed requests have a mean above this.
    pub(crate) fn is_mostly_above(&self, limit_us: u64) -> bool {
        let means = || self.buckets.iter().filter_map(|bucket| bucket.mean_us());
        2 * means().filter(|mean| *mean > limit_us).count() > means().count()
    }

    fn slot(&self) -> usize {
        (self.newest % BUCKETS as u64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const WINDOW: Duration = Duration::from_secs(10);

    fn one(latency_us: u64) -> Counts {
        Counts { completed: 1, latency_us, ..Counts::default() }
    }

    #[test]
    fn one_slow_request_is_not_most_of_the_window() {
        let mut window = Window::default();
        for second in 0..10 {
            window.add(WINDOW, Tick::from_millis(second * 1000), one(10_000));
        }
        window.add(WINDOW, Tick::from_millis(9500), one(30_000_000));
        assert_eq!(window.total().mean_us(), Some(30_100_000 / 11));
        assert!(!window.is_mostly_above(50_000));
        assert!(window.is_mostly_above(5_000));
        assert!(!Window::default().is_mostly_above(0), "nothing is above anything");
        let mut half = Window::default();
        for second in 0..6 {
            half.add(WINDOW, Tick::from_millis(second * 1000), one(second));
        }
        assert!(!half.is_mostly_above(2), "half are");
        assert!(half.is_mostly_above(1));
    }

    proptest! {
        #[test]
        fn it_holds_the_last_nine_to_ten_tenths(
            steps in prop::collection::vec((0_u64..3_000, 0_u32..5, 0_u32..5), 1..60),
        ) {
            let mut window = Window::default();
            let mut added = Vec::new();
            let mut now = 0;
            for (pause, completed, failed) in steps {
                now += pause;
                let latency_us = u64::from(completed) * 7;
                let (late, lingered) = (failed / 2, completed / 2);
                let counts = Counts { completed, failed, late, lingered, latency_us };
                window.add(WINDOW, Tick::from_millis(now), counts);
                added.push((now, counts));
                let mut expected = Counts::default();
                let oldest = (now / 1000).saturating_sub(9) * 1000;
                for (_, counts) in added.iter().filter(|(at, _)| *at >= oldest) {
                    expected.add(*counts);
                }
                prop_assert_eq!(window.total(), expected);
            }
            window.advance(WINDOW, Tick::from_millis(now + 20_000));
            prop_assert_eq!(window.total(), Counts::default());
            window.advance(Duration::ZERO, Tick(u64::MAX));
        }
    }
}
