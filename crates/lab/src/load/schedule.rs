//! What an open loop asks next, and when: the arrivals of a rate, or a timetable.

use std::iter::Peekable;
use std::sync::Arc;

use super::plan::{LoadPlan, Shape};
use super::profile::Arrivals;
use super::recorder::nanos;
use super::timetable::Due;

/// Requests that were due and never started are counted up to here.
const MOST_LEFT: u64 = 10_000_000;

/// What has not been asked yet, ascending. Times are nanoseconds from the beginning of the run.
pub(super) enum Schedule {
    Rate { arrivals: Peekable<Arrivals>, most_per_s: f64 },
    Timetable { due: Arc<[Due]>, next: usize, end: usize },
}

impl Schedule {
    /// None for a closed loop.
    pub(super) fn of(plan: &LoadPlan) -> Option<Schedule> {
        match &plan.shape {
            Shape::Users { .. } => None,
            Shape::Rate { profile, spacing, .. } => {
                let arrivals = profile.after(plan.warm_up).arrivals(*spacing, plan.seed);
                let arrivals = arrivals.peekable();
                Some(Schedule::Rate { arrivals, most_per_s: profile.largest() })
            }
            Shape::Timetable { due, lasts, .. } => {
                let ends = plan.warm_up.saturating_add(*lasts);
                let end = due.partition_point(|one| one.at < ends);
                Some(Schedule::Timetable { due: due.clone(), next: 0, end })
            }
        }
    }

    /// When the next request is due.
    pub(super) fn due_ns(&mut self) -> Option<u64> {
        match self {
            Schedule::Rate { arrivals, .. } => arrivals.peek().copied(),
            Schedule::Timetable { due, next, end } => {
                due[..*end].get(*next).map(|one| nanos(one.at))
            }
        }
    }

    /// The next request is asked, or never will be. A timetable says what it asks.
    pub(super) fn take(&mut self) -> Option<Due> {
        match self {
            Schedule::Rate { arrivals, .. } => {
                arrivals.next();
                None
            }
            Schedule::Timetable { due, next, .. } => {
                *next += 1;
                due.get(*next - 1).copied()
            }
        }
    }

    /// How many are due by then, the next one included; of a rate as many as the largest would make.
    pub(super) fn behind(&mut self, now_ns: u64) -> u64 {
        let due_ns = self.due_ns().unwrap_or(now_ns);
        match self {
            Schedule::Rate { most_per_s, .. } => {
                (now_ns.saturating_sub(due_ns) as f64 * *most_per_s / 1e9) as u64 + 1
            }
            Schedule::Timetable { due, next, end } => {
                due[*next..*end].partition_point(|one| nanos(one.at) <= now_ns) as u64
            }
        }
    }

    /// How many were due by then and will never be asked.
    pub(super) fn left(&mut self, until_ns: u64) -> u64 {
        let mut left = 0;
        while left < MOST_LEFT && self.due_ns().is_some_and(|due_ns| due_ns <= until_ns) {
            self.take();
            left += 1;
        }
        left
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// A table of these milliseconds, for 10 ms after 2 ms of warm-up.
    fn schedule(ms: &[u32]) -> Schedule {
        let due = ms.iter().map(|ms| Due { at: MS * *ms, request: *ms, client: 0 });
        let target = "127.0.0.1:1".parse().expect("an address");
        let plan = LoadPlan {
            warm_up: MS * 2,
            shape: Shape::Timetable { due: due.collect(), lasts: MS * 10, connections: 1, most: 1 },
            ..LoadPlan::get(target, "/")
        };
        Schedule::of(&plan).expect("an open loop")
    }

    #[test]
    fn a_timetable_is_taken_in_turn_up_to_its_end() {
        let mut schedule = schedule(&[0, 3, 3, 11, 12]);
        let mut taken = Vec::new();
        while let Some(due_ns) = schedule.due_ns() {
            taken.push((due_ns / 1_000_000, schedule.take().expect("one").request));
        }
        assert_eq!(taken, [(0, 0), (3, 3), (3, 3), (11, 11)], "what is due at the end is too late");
    }

    #[test]
    fn what_is_behind_and_left_is_counted() {
        let mut schedule = schedule(&[1, 3, 3, 11]);
        assert_eq!(schedule.behind(3_500_000), 3);
        schedule.take();
        assert_eq!(schedule.behind(3_500_000), 2);
        assert_eq!((schedule.left(3_500_000), schedule.left(20_000_000)), (2, 1));
    }
}
