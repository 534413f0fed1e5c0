//! How lately has an endpoint served the same thing? In other things that it has served since: what a
//! cache of that many would still hold.
//!
//! Stack distances by a tree of counts over moments (Bennett and Kruskal, "LRU stack processing", 1975):
//! O(log n) each.

use crate::log::Log;

/// Nobody has asked this endpoint for it before.
pub(crate) const NEVER: u32 = u32::MAX;

/// For each request how many other things its endpoint has served since it served the same.
/// `order` is the requests in the order in which they came to their endpoints.
pub(crate) fn distances(log: &Log, order: &[u32]) -> Vec<u32> {
    let mut distances = vec![NEVER; log.requests.len()];
    let mut here: Vec<Vec<u32>> = vec![Vec::new(); log.endpoints.len().max(1)];
    let last = here.len() - 1;
    for index in order {
        here[usize::from(log.requests[*index as usize].endpoint).min(last)].push(*index);
    }
    let mut seen = vec![0_u32; log.uris.len()];
    for requests in here {
        let mut newest = Tree::new(requests.len());
        for (moment, index) in (1..).zip(&requests) {
            let uri = log.requests[*index as usize].uri as usize;
            let before = seen[uri];
            if before > 0 {
                distances[*index as usize] = newest.between(before, moment);
                newest.add(before, false);
            }
            newest.add(moment, true);
            seen[uri] = moment;
        }
        requests.iter().for_each(|index| seen[log.requests[*index as usize].uri as usize] = 0);
    }
    distances
}

/// Which moments, from 1, are the latest of their thing.
struct Tree(Vec<u32>);

impl Tree {
    fn new(moments: usize) -> Tree {
        Tree(vec![0; moments + 1])
    }

    fn add(&mut self, moment: u32, is_more: bool) {
        let mut place = moment as usize;
        while place < self.0.len() {
            self.0[place] = if is_more { self.0[place] + 1 } else { self.0[place] - 1 };
            place += place & place.wrapping_neg();
        }
    }

    fn upto(&self, moment: u32) -> u32 {
        let (mut place, mut sum) = (moment as usize, 0);
        while place > 0 {
            sum += self.0[place];
            place &= place - 1;
        }
        sum
    }

    /// How many after `earlier` and before `later`.
    fn between(&self, earlier: u32, later: u32) -> u32 {
        self.upto(later - 1) - self.upto(earlier)
    }
}

#[cfg(test)]
mod tests {
    use super::{NEVER, distances};
    use crate::in_flight::by_reaching;
    use crate::log::tests::log_of;
    use subak_base::Rng;

    #[test]
    fn equals_a_list_that_is_searched() {
        let mut random = Rng::new(5);
        let requests: Vec<_> = (0..2000).map(|at| (at, 1, (random.below(2)) as u16)).collect();
        let mut log = log_of(&["a", "b"], &requests);
        for request in &mut log.requests {
            request.uri = random.below(40) as u32;
        }
        (0..40_u32).for_each(|uri| _ = log.uris.number(&uri.to_le_bytes()));
        let mut lists = [Vec::new(), Vec::new()];
        let expected: Vec<u32> = log
            .requests
            .iter()
            .map(|request| {
                let list: &mut Vec<u32> = &mut lists[usize::from(request.endpoint)];
                let place = list.iter().rposition(|uri| *uri == request.uri);
                let distance = place.map_or(NEVER, |place| (list.len() - 1 - place) as u32);
                if let Some(place) = place {
                    list.remove(place);
                }
                list.push(request.uri);
                distance
            })
            .collect();
        assert_eq!(distances(&log, &by_reaching(&log)), expected);
    }
}
