//! How many requests were at an endpoint when another came to it? From moments and durations alone.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::log::{Log, UNKNOWN};

/// For each request of the log how many others its endpoint was at work on when it came there;
/// [`NOBODY_KNOWS`] where the log lacks its duration. Where the log names no endpoints, all of them
/// count as one.
pub(crate) fn found(log: &Log) -> Vec<u32> {
    let mut found = vec![NOBODY_KNOWS; log.requests.len()];
    let mut at_work: Vec<BinaryHeap<Reverse<u64>>> = Vec::new();
    at_work.resize_with(log.endpoints.len().max(1), BinaryHeap::new);
    for index in by_reaching(log) {
        let request = &log.requests[index as usize];
        if request.latency == UNKNOWN {
            continue;
        }
        let place = usize::from(request.endpoint).min(at_work.len() - 1);
        let here = &mut at_work[place];
        while here.peek().is_some_and(|Reverse(end)| *end <= request.reached) {
            here.pop();
        }
        found[index as usize] = here.len() as u32;
        here.push(Reverse(request.reached + request.latency));
    }
    found
}

/// Not known.
pub(crate) const NOBODY_KNOWS: u32 = u32::MAX;

/// The requests in the order in which they came to their endpoints.
pub(crate) fn by_reaching(log: &Log) -> Vec<u32> {
    let mut order: Vec<u32> = (0..log.requests.len() as u32).collect();
    order.sort_by_key(|index| log.requests[*index as usize].reached);
    order
}

#[cfg(test)]
mod tests {
    use super::{NOBODY_KNOWS, found};
    use crate::log::tests::log_of;

    #[test]
    fn whoever_is_still_there_counts() {
        // (reached, latency, endpoint), in milliseconds.
        let log = log_of(
            &["a", "b"],
            &[(0, 10, 0), (5, 10, 0), (6, 1, 1), (10, 9, 0), (15, u64::MAX, 0), (30, 1, 0)],
        );
        assert_eq!(found(&log), [0, 1, 0, 1, NOBODY_KNOWS, 0]);
    }
}
