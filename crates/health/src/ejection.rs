//! When does traffic itself show that an endpoint is unfit, and for how long is it left out?
//!
//! Three verdicts, each of which can be switched off:
//!
//! - `consecutive` failures in a row: at once, within the request that makes the number full;
//! - a share of failures `share_per_mille` among at least `min_requests` in the window;
//! - latency: the endpoint's mean over the window is above `max(median · factor, median + min)`, and
//!   so is the mean of more than half of the window's buckets (one request of half a minute moves a
//!   mean, not the buckets). The median is the lower one over the means of the pool's endpoints;
//!   who takes part has completed at least `min_requests`, and there must be two of them. Failed
//!   requests have no part in a mean: a fast error is not a fast endpoint. A response that does not end
//!   counts once while it is under way, with the time that was waited for it.
//!
//! An ejection lasts `base · n`, at most `max`; `n` counts the endpoint's ejections, and one is forgiven
//! for every full `base` that it has been in again without another.
//!
//! At most `max_share_per_mille` of the endpoints that would take work otherwise are ejected at a time,
//! rounded down, but at least one if the share is not 0, and never the last one unless the share is the
//! whole: without an ejection it might serve some, ejected it serves none.
//!
//! Source: the idea and its limits are those of Envoy's outlier detection; the latency verdict, the
//! rule for the last endpoint and forgiving by time are not.

use std::fmt;
use std::num::NonZeroU32;
use std::time::Duration;

use subak_base::Tick;

/// When an endpoint is ejected, and for how long.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EjectionSpec {
    /// Failures in a row; none: do not look at them.
    pub consecutive: Option<NonZeroU32>,
    /// Failures in thousandths of the requests in the window; none: do not look at them.
    pub share_per_mille: Option<NonZeroU32>,
    /// How slow is too slow; none: do not look at latency.
    pub latency: Option<LatencySpec>,
    /// The time over which shares and latencies are taken.
    pub window: Duration,
    /// Fewer requests in the window say nothing of share and latency.
    pub min_requests: u32,
    /// The first ejection lasts so long.
    pub base: Duration,
    /// No ejection lasts longer.
    pub max: Duration,
    /// How much of the pool may be ejected at a time, in thousandths.
    pub max_share_per_mille: u32,
}

/// How slow is too slow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LatencySpec {
    /// So many thousandths of the pool's median.
    pub factor_per_mille: u32,
    /// And at least so much above it.
    pub min: Duration,
}

impl Default for EjectionSpec {
    fn default() -> EjectionSpec {
        EjectionSpec {
            consecutive: NonZeroU32::new(5),
            share_per_mille: NonZeroU32::new(500),
            latency: Some(LatencySpec { factor_per_mille: 3000, min: Duration::from_millis(50) }),
            window: Duration::from_secs(10),
            min_requests: 20,
            base: Duration::from_secs(10),
            max: Duration::from_secs(300),
            max_share_per_mille: 500,
        }
    }
}

impl EjectionSpec {
    /// How many of `count` endpoints may be ejected at a time.
    pub fn room(&self, count: usize) -> usize {
        let share = self.max_share_per_mille.min(1000) as usize;
        match share {
            0 => 0,
            1000 => count,
            _ => (count * share / 1000).max(1).min(count.saturating_sub(1)),
        }
    }

    /// How long an endpoint's `count`th ejection lasts.
    pub(crate) fn length(&self, count: u32) -> Duration {
        self.base.saturating_mul(count).min(self.max)
    }

    /// How many ejections are forgiven after so long without one.
    pub(crate) fn forgiven(&self, healthy: Duration) -> u32 {
        let base = self.base.as_nanos().max(1);
        u32::try_from(healthy.as_nanos() / base).unwrap_or(u32::MAX)
    }

    /// Above which mean an endpoint is too slow in a pool of this median, in microseconds.
    pub(crate) fn limit_us(&self, latency: LatencySpec, median_us: u64) -> u64 {
        let by_factor = u128::from(median_us) * u128::from(latency.factor_per_mille) / 1000;
        let by_factor = u64::try_from(by_factor).unwrap_or(u64::MAX);
        let least = u64::try_from(latency.min.as_micros()).unwrap_or(u64::MAX);
        by_factor.max(median_us.saturating_add(least))
    }
}

/// Whether an endpoint is ejected.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Standing {
    /// It takes its part.
    In,
    /// It is left out.
    Ejected {
        /// Until this moment, or earlier where [`EjectionReason`] says so.
        until: Tick,
    },
}

impl fmt::Display for Standing {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Standing::In => "in",
            Standing::Ejected { .. } => "ejected",
        })
    }
}

/// Why an endpoint was ejected, or came back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EjectionReason {
    /// So many requests in a row failed.
    Consecutive(u32),
    /// Too large a share of its requests failed.
    FailureShare {
        /// Requests that failed.
        failed: u64,
        /// All requests.
        requests: u64,
    },
    /// It was much slower than the others.
    Latency {
        /// Its mean.
        mean: Duration,
        /// The pool's median of such means.
        median: Duration,
    },
    /// The time of its ejection was over.
    Over,
    /// Too large a share of the pool would have been ejected.
    Room,
    /// Somebody ended it.
    Lifted,
}

impl fmt::Display for EjectionReason {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EjectionReason::Consecutive(1) => out.write_str("1 request failed"),
            EjectionReason::Consecutive(count) => write!(out, "{count} requests in a row failed"),
            EjectionReason::FailureShare { failed, requests } => {
                write!(out, "{failed} of {requests} requests failed")
            }
            EjectionReason::Latency { mean, median } => {
                write!(out, "took {mean:?} on average, the pool's median is {median:?}")
            }
            EjectionReason::Over => out.write_str("the time of its ejection is over"),
            EjectionReason::Room => {
                out.write_str("too many of those that are left would be ejected")
            }
            EjectionReason::Lifted => out.write_str("the ejection was lifted"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_room_is_the_share_rounded_down_but_one_and_never_the_last() {
        let room = |share, count| {
            EjectionSpec { max_share_per_mille: share, ..EjectionSpec::default() }.room(count)
        };
        for (count, expected) in [(0, 0), (1, 0), (2, 1), (3, 1), (4, 2), (5, 2), (100, 50)] {
            assert_eq!(room(500, count), expected, "half of {count}");
        }
        for (count, expected) in [(0, 0), (1, 0), (2, 1), (9, 1), (100, 10)] {
            assert_eq!(room(100, count), expected, "a tenth of {count}");
        }
        for count in 0..20 {
            assert_eq!(room(0, count), 0);
            assert_eq!(room(1000, count), count);
            assert_eq!(room(5000, count), count);
            assert_eq!(room(999, count), count.saturating_sub(1));
        }
    }

    #[test]
    fn ejections_grow_to_their_maximum_and_are_forgiven_by_time() {
        let spec = EjectionSpec::default();
        let seconds = |count| spec.length(count).as_secs();
        assert_eq!([1, 2, 3, 30, 31, u32::MAX].map(seconds), [10, 20, 30, 300, 300, 300]);
        let forgiven = |seconds| spec.forgiven(Duration::from_secs(seconds));
        assert_eq!([0, 9, 10, 19, 20, 3600].map(forgiven), [0, 0, 1, 1, 2, 360]);
        let none = EjectionSpec { base: Duration::ZERO, ..spec };
        assert_eq!(none.forgiven(Duration::MAX), u32::MAX);
    }

    #[test]
    fn too_slow_is_by_factor_and_by_difference() {
        let spec = EjectionSpec::default();
        let latency = spec.latency.unwrap();
        assert_eq!(spec.limit_us(latency, 1_000), 51_000, "three times 1 ms is nothing");
        assert_eq!(spec.limit_us(latency, 100_000), 300_000);
        assert_eq!(spec.limit_us(latency, u64::MAX), u64::MAX);
    }
}
