//! Do the endpoints keep what they have served? Then the same thing is faster where it was served
//! lately.
//!
//! Requests that did not wait are split by how many other things their endpoint has served since it
//! served the same: of all bounds the one that parts fast from slow best (a split of least squares, of
//! the latency's logarithm). That rare things are slow by themselves would look alike; so the
//! difference must be there between requests for one and the same thing.

use crate::log::Log;
use crate::recency::NEVER;

/// The least that a miss must take, in thousandths of a hit, at the same thing.
const GAIN_PER_MILLE: u64 = 1250;
/// Pairs of hit and miss, of one thing, that must have been seen.
const FEWEST_PAIRS: u64 = 100;

/// A cache that each of the endpoints has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct CacheFit {
    /// How many things it keeps: the latest.
    pub(crate) objects: u32,
    /// Of the log's requests that did not wait, in thousandths.
    pub(crate) hits_per_mille: u32,
}

/// Looks for a cache. `idle` are requests that did not wait.
pub(crate) fn fit(log: &Log, idle: &[u32], distances: &[u32]) -> Option<CacheFit> {
    if distances.is_empty() {
        return None;
    }
    let mut points: Vec<(u32, i64)> = idle
        .iter()
        .map(|index| {
            let latency = log.requests[*index as usize].latency;
            (distances[*index as usize], logarithm(latency))
        })
        .collect();
    points.sort_unstable();
    let objects = split(&points)?;
    let hits = points.partition_point(|(distance, _)| *distance < objects);
    let gain = gain(log, idle, distances, objects)?;
    (gain >= logarithm(GAIN_PER_MILLE) - logarithm(1000))
        .then_some(CacheFit { objects, hits_per_mille: (hits * 1000 / points.len().max(1)) as u32 })
}

/// The bound that parts these best, if those below it are the faster ones.
fn split(points: &[(u32, i64)]) -> Option<u32> {
    let total: i64 = points.iter().map(|(_, value)| value).sum();
    let count = points.len() as f64;
    let mut best = (0.0, None);
    let (mut below, mut sum) = (0.0, 0);
    for pair in points.windows(2) {
        below += 1.0;
        sum += pair[0].1;
        if pair[0].0 == pair[1].0 {
            continue;
        }
        let above = count - below;
        let gap = (total - sum) as f64 / above - sum as f64 / below;
        let gained = gap * gap * below * above / count;
        if gap > 0.0 && gained > best.0 {
            // What came back after d others needs room for d + 1.
            best = (gained, Some(pair[0].0 + 1));
        }
    }
    best.1
}

/// By how much a miss is slower than a hit at the same thing, as a logarithm; none where too little
/// was seen of both.
fn gain(log: &Log, idle: &[u32], distances: &[u32], objects: u32) -> Option<i64> {
    let mut seen = vec![[(0_u64, 0_i64); 2]; log.uris.len()];
    for index in idle {
        let request = &log.requests[*index as usize];
        let distance = distances[*index as usize];
        // Who asks first finds a cache that the log knows nothing of.
        let is_miss = distance >= objects || distance == NEVER;
        let (count, sum) = &mut seen[request.uri as usize][usize::from(is_miss)];
        *count += 1;
        *sum += logarithm(request.latency);
    }
    let (mut pairs, mut gained) = (0, 0);
    for [(hits, of_hits), (misses, of_misses)] in seen {
        let here = hits.min(misses);
        if here > 0 {
            let gap = of_misses / misses as i64 - of_hits / hits as i64;
            pairs += here;
            gained += gap * here as i64;
        }
    }
    (pairs >= FEWEST_PAIRS).then(|| gained / pairs as i64)
}

/// The binary logarithm in 1/1024, within 0.09: straight lines between powers of two.
fn logarithm(value: u64) -> i64 {
    let value = value.max(1);
    let whole = value.ilog2();
    let fraction = ((u128::from(value) << 10) >> whole) as i64 - 1024;
    i64::from(whole) * 1024 + fraction
}

#[cfg(test)]
mod tests {
    use super::{fit, logarithm, split};
    use crate::in_flight::by_reaching;
    use crate::log::Log;
    use crate::log::tests::log_of;
    use crate::recency::distances;
    use subak_base::Rng;

    /// 40 things at one endpoint; `latency` of (whether it is among the last 10, the thing).
    fn found(latency: impl Fn(bool, u32) -> u64) -> Option<u32> {
        let mut random = Rng::new(8);
        let mut latest: Vec<u32> = Vec::new();
        let mut log: Log = log_of(&["a"], &vec![(0, 1, 0); 5000]);
        for (at, request) in (0..).zip(&mut log.requests) {
            let uri = random.below(6).min(random.below(40)) as u32 + random.below(34) as u32;
            let place = latest.iter().position(|one| *one == uri);
            let is_there = place.is_some_and(|place| place < 10);
            place.map(|place| latest.remove(place));
            latest.insert(0, uri);
            (request.reached, request.uri) = (at * 1_000_000_000, uri);
            request.latency = latency(is_there, uri) * (900 + random.below(200));
        }
        (0..40_u32).for_each(|uri| _ = log.uris.number(&uri.to_le_bytes()));
        let order = by_reaching(&log);
        fit(&log, &order, &distances(&log, &order)).map(|cache| cache.objects)
    }

    #[test]
    fn a_cache_is_found_with_its_size() {
        assert_eq!(found(|is_there, _| if is_there { 1_000 } else { 9_000 }), Some(10));
    }

    #[test]
    fn things_that_are_slow_by_themselves_are_no_cache() {
        assert_eq!(found(|_, _| 5_000), None);
        assert_eq!(found(|_, uri| if uri < 12 { 1_000 } else { 9_000 }), None);
    }

    #[test]
    fn the_best_split_is_found_and_the_wrong_way_round_is_none() {
        assert_eq!(split(&[(0, 1), (1, 1), (4, 9), (9, 9)]), Some(2));
        assert_eq!(split(&[(0, 9), (1, 9), (4, 1)]), None);
        assert_eq!([1, 2, 3, 1024].map(logarithm), [0, 1024, 1536, 10_240]);
    }
}
