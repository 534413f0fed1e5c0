//! A timetable: requests that are due at given times, each with what it asks and in whose name.

use std::time::Duration;

use super::plan::LoadPlan;

/// In place of [`Due::client`]: the request says nothing of whom it is for.
pub const NOBODY: u32 = u32::MAX;

/// One request of a timetable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Due {
    /// When it is due, from the beginning of the run, the warm-up included.
    pub at: Duration,
    /// What it asks: the place in [`LoadPlan::requests`]; weights there say nothing.
    pub request: u32,
    /// Whom X-Forwarded-For names: the place in [`super::Sources::forwarded`], or [`NOBODY`];
    /// without meaning where that is empty.
    pub client: u32,
}

/// Requests per second over the second before `at`, or the part of it that the run has seen.
pub(super) fn per_second(due: &[Due], at: Duration) -> f64 {
    let from = at.saturating_sub(Duration::from_secs(1));
    let before = |time: Duration| due.partition_point(|one| one.at < time);
    let seconds = (at - from).as_secs_f64();
    if seconds == 0.0 { 0.0 } else { (before(at) - before(from)) as f64 / seconds }
}

/// What makes no sense about the plan's timetable.
pub(super) fn fault(due: &[Due], plan: &LoadPlan) -> Option<String> {
    let clients = &plan.sources.forwarded;
    if due.is_empty() {
        return Some("a timetable has at least one request".to_owned());
    }
    if !due.is_sorted_by_key(|one| one.at) {
        return Some("the times of a timetable ascend".to_owned());
    }
    if due.iter().any(|one| plan.requests.get(one.request as usize).is_none()) {
        return Some("a timetable asks for what the load has not".to_owned());
    }
    let is_known = |one: &Due| one.client == NOBODY || (one.client as usize) < clients.len();
    if !clients.is_empty() && !due.iter().all(is_known) {
        return Some("a timetable names a client that the load has not".to_owned());
    }
    match plan.requests_in_all {
        Some(all) if all > due.len() as u64 => {
            Some(format!("a timetable of {} requests has no {all}", due.len()))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Due {
        Due { at: Duration::from_millis(ms), request: 0, client: 0 }
    }

    #[test]
    fn a_rate_is_that_of_the_second_before() {
        let due = [at(0), at(100), at(900), at(1500), at(1600)];
        let rate = |ms| per_second(&due, Duration::from_millis(ms));
        assert_eq!(
            (rate(0), rate(200), rate(1000), rate(1700), rate(9000)),
            (0.0, 10.0, 3.0, 3.0, 0.0)
        );
    }

    #[test]
    fn what_a_load_has_not_is_a_fault() {
        let target = "127.0.0.1:1".parse().expect("an address");
        let mut plan = LoadPlan::get(target, "/");
        assert_eq!(fault(&[at(1), at(1), at(2)], &plan), None);
        assert!(fault(&[], &plan).is_some());
        assert!(fault(&[at(2), at(1)], &plan).is_some());
        assert!(fault(&[Due { request: 1, ..at(0) }], &plan).is_some());
        let other = [Due { client: 1, ..at(0) }, Due { client: NOBODY, ..at(0) }];
        assert_eq!(fault(&other, &plan), None, "without a list nobody is named");
        plan.sources.forwarded = vec!["10.0.0.1".parse().expect("an address")];
        assert!(fault(&other, &plan).is_some());
        assert_eq!(fault(&other[1..], &plan), None);
        plan.requests_in_all = Some(3);
        assert!(fault(&other[1..], &plan).is_some());
    }
}
