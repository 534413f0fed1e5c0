//! Figures of one round, and what several rounds say together.

use std::time::Duration;

use serde_json::{Value, json};

/// What one balancer did in one round of a case with requests.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Sample {
    /// CPU time of the balancer per answered request, µs.
    pub(crate) user_us: f64,
    pub(crate) system_us: f64,
    /// Share of the wall time that the balancer used its core.
    pub(crate) utilisation: f64,
    /// Share of the wall time that its core did anything, the balancer or else.
    pub(crate) core_busy: f64,
    /// The same of the core that endpoints and clients share.
    pub(crate) load_core_busy: f64,
    pub(crate) per_second: f64,
    pub(crate) p50_us: f64,
    pub(crate) p99_us: f64,
    pub(crate) p999_us: f64,
    pub(crate) answered: u64,
    pub(crate) failed: u64,
    /// Fixed rate: the most requests that waited for a free connection.
    pub(crate) backlog: u64,
}

impl Sample {
    /// User and system together.
    pub(crate) fn cpu_us(&self) -> f64 {
        self.user_us + self.system_us
    }

    pub(crate) fn to_json(self) -> Value {
        json!({
            "cpu_us": self.cpu_us(), "user_us": self.user_us, "system_us": self.system_us,
            "utilisation": self.utilisation, "core_busy": self.core_busy,
            "load_core_busy": self.load_core_busy, "per_second": self.per_second,
            "p50_us": self.p50_us, "p99_us": self.p99_us, "p999_us": self.p999_us,
            "answered": self.answered, "failed": self.failed, "backlog": self.backlog,
        })
    }
}

/// What idle connections cost one balancer in one round, bytes per connection.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct IdleSample {
    /// Pages only it has and has written to: what the connections cost it.
    pub(crate) private_dirty: f64,
    /// Its proportional share of resident memory.
    pub(crate) proportional: f64,
    /// Kernel objects, machine-wide, both ends of each connection.
    pub(crate) kernel_slab: f64,
    /// Before the first connection, whole process tree, bytes.
    pub(crate) baseline: f64,
    /// Connections that were opened.
    pub(crate) opened: usize,
    /// Connections still open when memory was read.
    pub(crate) alive: usize,
}

impl IdleSample {
    pub(crate) fn to_json(self) -> Value {
        json!({
            "private_dirty_bytes": self.private_dirty, "proportional_bytes": self.proportional,
            "kernel_slab_bytes": self.kernel_slab, "baseline_bytes": self.baseline,
            "opened": self.opened, "alive": self.alive,
        })
    }
}

/// The middle and the ends of several figures.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
}

impl Spread {
    /// `None` when there are no figures.
    pub(crate) fn of(figures: impl IntoIterator<Item = f64>) -> Option<Spread> {
        let mut sorted: Vec<f64> = figures.into_iter().collect();
        sorted.sort_by(f64::total_cmp);
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        let middle = sorted.len() / 2;
        let median = if sorted.len() % 2 == 1 {
            sorted[middle]
        } else {
            (sorted[middle - 1] + sorted[middle]) / 2.0
        };
        Some(Spread { median, min, max })
    }

    /// Round by round `left / right`, and the spread of that: what both rounds had in
    /// common, such as a busy neighbour, cancels.
    pub(crate) fn of_ratios(left: &[f64], right: &[f64]) -> Option<Spread> {
        Spread::of(left.iter().zip(right).filter(|(_, r)| **r > 0.0).map(|(l, r)| l / r))
    }

    pub(crate) fn to_json(self) -> Value {
        json!({ "median": self.median, "min": self.min, "max": self.max })
    }
}

/// A duration in microseconds.
pub(crate) fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_and_ends() {
        assert_eq!(Spread::of([]), None);
        let odd = Spread::of([3.0, 1.0, 2.0]).expect("figures");
        assert_eq!((odd.median, odd.min, odd.max), (2.0, 1.0, 3.0));
        assert_eq!(Spread::of([4.0, 1.0, 2.0, 3.0]).expect("figures").median, 2.5);
    }

    #[test]
    fn ratios_are_taken_round_by_round() {
        // The second round was disturbed: twice as dear for both.
        let ratio = Spread::of_ratios(&[7.0, 14.0, 7.7], &[10.0, 20.0, 11.0]).expect("figures");
        assert!((ratio.max - ratio.min).abs() < 1e-9);
        assert!((ratio.median - 0.7).abs() < 1e-9);
        assert_eq!(Spread::of_ratios(&[1.0], &[0.0]), None);
    }
}
