//! Which algorithm made this log? Found out where the picks show it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::candidate::Candidate;
use crate::in_flight::by_reaching;
use crate::log::{Log, UNKNOWN};
use crate::places;

/// Of picks that follow from the key alone, how many must be as the algorithm makes them, in
/// thousandths.
const NEARLY_ALL: u64 = 980;
/// In turn: how many must be about as many picks after the endpoint's last as there are endpoints.
/// Moments in logs are rounded, so that neighbours change places.
const MOST: u64 = 850;
/// Least connections: how much more than the fewest those that were picked may have had in flight, of
/// what all had more on average. By chance it is all of it, for the better of two about half.
const LITTLE: u64 = 250;
/// Picks that must tell.
const FEWEST: u64 = 500;

/// The candidate that this log's picks are made by, if they show it.
pub(crate) fn maker(log: &Log, candidates: &[&Candidate]) -> Option<usize> {
    if log.endpoints.len() < 2 {
        return None;
    }
    for (index, candidate) in candidates.iter().enumerate() {
        let agreement = places::agreement_per_mille(log, &candidate.pool);
        if agreement.is_some_and(|agreement| agreement >= NEARLY_ALL) {
            return Some(index);
        }
    }
    let (least, turns) = habits(log);
    let named = |name: &str| {
        candidates.iter().position(|candidate| candidate.pool.algorithm.listing().name == name)
    };
    if least.told >= FEWEST && least.sum * 1000 <= least.of * LITTLE {
        return named("least_connections");
    }
    let is_in_turn = turns.told >= FEWEST && turns.sum * 1000 >= turns.of * MOST;
    if is_in_turn { named("round_robin") } else { None }
}

/// Picks that tell something, and two sums over them.
#[derive(Default)]
struct Tally {
    told: u64,
    sum: u64,
    of: u64,
}

impl Tally {
    fn add(&mut self, part: u64, of: u64) {
        self.told += 1;
        self.sum += part;
        self.of += of;
    }
}

/// How much more than the fewest those had in flight that were picked, of what all had more; and how
/// often an endpoint was picked when it was its turn.
fn habits(log: &Log) -> (Tally, Tally) {
    let count = log.endpoints.len();
    let (mut least, mut turns) = (Tally::default(), Tally::default());
    let mut in_flight = vec![0_u64; count];
    let mut ends = BinaryHeap::new();
    let mut last: Vec<Option<u64>> = vec![None; count];
    for (number, index) in (0_u64..).zip(by_reaching(log)) {
        let request = &log.requests[index as usize];
        let picked = usize::from(request.endpoint);
        while ends.peek().is_some_and(|Reverse((end, _))| *end <= request.reached) {
            if let Some(Reverse((_, endpoint))) = ends.pop() {
                in_flight[endpoint] -= 1;
            }
        }
        let fewest = in_flight.iter().min().copied().unwrap_or(0);
        let more: u64 = in_flight.iter().map(|here| here - fewest).sum();
        if more > 0 {
            least.add((in_flight[picked] - fewest) * count as u64, more);
        }
        if let Some(last) = last[picked].replace(number) {
            let (gap, tolerated) = (number - last, (count as u64 * 3 / 10).max(1));
            turns.add(u64::from(gap.abs_diff(count as u64) <= tolerated), 1);
        }
        if request.latency != UNKNOWN {
            in_flight[picked] += 1;
            ends.push(Reverse((request.reached + request.latency, picked)));
        }
    }
    (least, turns)
}

#[cfg(test)]
mod tests {
    use super::maker;
    use crate::log::tests::log_of;
    use subak_base::Rng;

    /// 3,000 requests, 3 ms from one to the next, about 10 ms each, to the endpoint that `pick` says
    /// of its number and of what is in flight.
    fn made_by(mut pick: impl FnMut(u64, &[usize; 3]) -> usize) -> Option<String> {
        let mut random = Rng::new(2);
        let mut ends: Vec<(u64, usize)> = Vec::new();
        let requests: Vec<_> = (0..3000)
            .map(|number| {
                let (now, latency) = (number * 3, 1 + random.below(20));
                ends.retain(|(end, _)| *end > now);
                let mut in_flight = [0; 3];
                ends.iter().for_each(|(_, endpoint)| in_flight[*endpoint] += 1);
                let endpoint = pick(number, &in_flight);
                ends.push((now + latency, endpoint));
                (now, latency, endpoint as u16)
            })
            .collect();
        let log = log_of(&["10.0.0.1:80", "10.0.0.2:80", "10.0.0.3:80"], &requests);
        let candidates = log.catalogue(&[]);
        let all: Vec<_> = candidates.iter().collect();
        maker(&log, &all).map(|index| candidates[index].name.clone())
    }

    #[test]
    fn picks_show_who_made_them() {
        let mut random = Rng::new(1);
        assert_eq!(made_by(|number, _| number as usize % 3).as_deref(), Some("round_robin"));
        let least =
            |_, in_flight: &[usize; 3]| (0..3).min_by_key(|index| in_flight[*index]).unwrap_or(0);
        assert_eq!(made_by(least).as_deref(), Some("least_connections"));
        assert_eq!(made_by(|_, _| random.below(3) as usize), None);
    }
}
