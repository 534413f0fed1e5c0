//! A moment on the process's own monotonic clock, in nanoseconds since it was started.

use std::time::Duration;

/// Nanoseconds since the process (or the simulation) began. Good for 584 years.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Tick(pub u64);

impl Tick {
    /// The moment `millis` milliseconds after the start.
    pub const fn from_millis(millis: u64) -> Tick {
        Tick(millis.saturating_mul(1_000_000))
    }

    /// This moment moved into the future; saturates at the end of time.
    pub const fn after(self, duration: Duration) -> Tick {
        let nanos = duration.as_nanos();
        let nanos = if nanos > u64::MAX as u128 { u64::MAX } else { nanos as u64 };
        Tick(self.0.saturating_add(nanos))
    }

    /// How long ago `earlier` was; zero when it is not in the past.
    pub const fn since(self, earlier: Tick) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}
