//! When is the next question due? One question at a time, at a jittered period.
//!
//! The next start is `max(start of the last + period · (1 ± jitter), end of the last)`: starts keep
//! their rate whatever an answer takes, and never overlap. Jitter keeps many endpoints, and many
//! Subaks before one endpoint, from falling into step. O(1), 56 bytes.

use std::time::Duration;

use subak_base::Tick;

/// The shortest period; a shorter one counts as this.
pub const PERIOD_MIN: Duration = Duration::from_millis(10);

/// The largest share of a period by which it varies, either way; a larger one counts as this.
pub const JITTER_MAX_PER_MILLE: u32 = 500;

/// Longer than anybody waits, short enough to multiply.
const PERIOD_MAX: Duration = Duration::from_secs(365 * 24 * 3600);

/// One question under way. Its answer counts only while it is the latest one asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Run {
    number: u64,
    started: Tick,
    deadline: Tick,
    /// When it is no longer waited for: whoever should have brought its answer is gone.
    abandoned: Tick,
}

impl Run {
    /// When it began.
    pub fn started(&self) -> Tick {
        self.started
    }

    /// The moment by which there must be an answer.
    pub fn deadline(&self) -> Tick {
        self.deadline
    }
}

const _: () = assert!(size_of::<Schedule>() == 56);

#[derive(Clone, Debug)]
pub(crate) struct Schedule {
    next: Tick,
    running: Option<Run>,
    count: u64,
}

impl Schedule {
    /// The first question somewhere in the first `period`, so that a thousand do not start at once.
    pub(crate) fn new(period: Duration, now: Tick, random: u64) -> Schedule {
        Schedule { next: now.after(spread(period, random)), running: None, count: 0 }
    }

    /// Whether a question is to be asked now.
    pub(crate) fn is_due(&self, now: Tick) -> bool {
        now >= self.next_due()
    }

    /// The moment of the next question, or the one at which the running one is given up.
    pub(crate) fn next_due(&self) -> Tick {
        self.running.map_or(self.next, |run| run.abandoned)
    }

    /// Begins a question. One that is still running is forgotten.
    pub(crate) fn start(&mut self, timeout: Duration, now: Tick) -> Run {
        self.count += 1;
        let deadline = now.after(timeout);
        let abandoned = deadline.after(timeout.max(PERIOD_MIN));
        let run = Run { number: self.count, started: now, deadline, abandoned };
        self.running = Some(run);
        run
    }

    /// Whether this is the question under way, which then ends.
    pub(crate) fn end(&mut self, run: Run) -> bool {
        let is_current = self.running.is_some_and(|running| running.number == run.number);
        if is_current {
            self.running = None;
        }
        is_current
    }

    /// Sets the next question after one that ended now.
    pub(crate) fn follow(&mut self, run: Run, period: Duration, now: Tick) {
        self.next = run.started.after(period).max(now);
    }

    /// Forgets the running question and begins anew, as a new schedule would.
    pub(crate) fn restart(&mut self, period: Duration, now: Tick, random: u64) {
        self.running = None;
        self.next = now.after(spread(period, random));
    }

    /// Moves the next question closer where it is further than one `period` away.
    pub(crate) fn hasten(&mut self, period: Duration, now: Tick) {
        self.next = self.next.min(now.after(period));
    }
}

/// `period`, varied by up to `jitter` thousandths of it either way, uniformly.
pub(crate) fn jittered(period: Duration, jitter: u32, random: u64) -> Duration {
    let nanos = nanos(period);
    let jitter = u128::from(jitter.min(JITTER_MAX_PER_MILLE));
    let reach = nanos * jitter / 1000;
    let drawn = (u128::from(random) * (2 * reach + 1)) >> 64;
    duration(nanos - reach + drawn)
}

/// The longest that [`jittered`] gives.
pub(crate) fn longest(period: Duration, jitter: u32) -> Duration {
    jittered(period, jitter, u64::MAX)
}

/// A moment within `period`, uniform.
fn spread(period: Duration, random: u64) -> Duration {
    duration((u128::from(random) * nanos(period)) >> 64)
}

fn nanos(period: Duration) -> u128 {
    period.clamp(PERIOD_MIN, PERIOD_MAX).as_nanos()
}

/// Bounded by twice [`PERIOD_MAX`], so nothing is lost.
fn duration(nanos: u128) -> Duration {
    Duration::from_nanos(nanos as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use subak_base::Rng;

    #[test]
    fn jitter_uses_its_whole_range_and_no_more() {
        let mut rng = Rng::new(1);
        let period = Duration::from_secs(2);
        let drawn: Vec<_> = (0..10_000).map(|_| jittered(period, 100, rng.next_u64())).collect();
        let (least, most) = (drawn.iter().min().unwrap(), drawn.iter().max().unwrap());
        assert!((1800..1801).contains(&(least.as_millis() as u64)), "{least:?}");
        assert!((2199..2200).contains(&(most.as_millis() as u64)), "{most:?}");
        let mean = drawn.iter().sum::<Duration>() / drawn.len() as u32;
        assert!((1995..2005).contains(&(mean.as_millis() as u64)), "{mean:?}");
        assert_eq!(jittered(period, 100, 0), Duration::from_millis(1800));
        assert_eq!(longest(period, 100), Duration::from_millis(2200));
        assert_eq!(jittered(period, 0, u64::MAX), period);
    }

    #[test]
    fn no_period_is_too_short_or_too_long_to_work_with() {
        assert_eq!(jittered(Duration::ZERO, 0, 0), PERIOD_MIN);
        assert_eq!(jittered(Duration::MAX, 5000, u64::MAX), PERIOD_MAX * 3 / 2);
        assert_eq!(spread(Duration::MAX, 0), Duration::ZERO);
    }

    #[test]
    fn the_first_questions_of_many_are_spread() {
        let mut rng = Rng::new(2);
        let period = Duration::from_millis(500);
        let mut tenths = [0; 10];
        for _ in 0..1000 {
            let due = Schedule::new(period, Tick::from_millis(7), rng.next_u64()).next_due();
            tenths[(due.since(Tick::from_millis(7)).as_millis() / 50) as usize] += 1;
        }
        assert!(tenths.iter().all(|count| (60..140).contains(count)), "{tenths:?}");
    }
}
