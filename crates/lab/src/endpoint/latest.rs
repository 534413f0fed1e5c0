//! What an endpoint has served lately: the latest objects, up to a bound. An object's place in the line
//! counts only with its latest number, so a look costs O(1) in the mean.

use std::collections::{HashMap, VecDeque};

/// The latest objects, by whatever tells them apart.
#[derive(Debug)]
pub(super) struct Latest {
    most: usize,
    numbers: HashMap<u64, u64>,
    line: VecDeque<(u64, u64)>,
    number: u64,
}

impl Latest {
    pub(super) fn new(most: usize) -> Latest {
        let (numbers, line) = (HashMap::new(), VecDeque::new());
        Latest { most: most.max(1), numbers, line, number: 0 }
    }

    /// Whether it is there; then it is the newest.
    pub(super) fn has(&mut self, object: u64) -> bool {
        let is_there = self.numbers.contains_key(&object);
        if is_there {
            self.put_first(object);
        }
        is_there
    }

    /// It has just been served: it is the newest, and of too many the oldest goes.
    pub(super) fn keep(&mut self, object: u64) {
        self.put_first(object);
        while self.numbers.len() > self.most {
            let Some((oldest, number)) = self.line.pop_front() else { break };
            if self.numbers.get(&oldest) == Some(&number) {
                self.numbers.remove(&oldest);
            }
        }
    }

    fn put_first(&mut self, object: u64) {
        self.number += 1;
        self.numbers.insert(object, self.number);
        self.line.push_back((object, self.number));
        if self.line.len() > 4 * self.most + 16 {
            let numbers = &self.numbers;
            self.line.retain(|(object, number)| numbers.get(object) == Some(number));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_objects_are_there_and_the_line_stays_short() {
        let mut latest = Latest::new(3);
        assert!(!latest.has(1));
        [1, 2, 3].into_iter().for_each(|object| latest.keep(object));
        assert!(latest.has(1));
        latest.keep(4);
        assert!(!latest.has(2), "2 was the oldest");
        assert!(latest.has(1) && latest.has(3) && latest.has(4));
        (0..10_000).for_each(|_| assert!(latest.has(1)));
        assert!(latest.line.len() <= 4 * 3 + 16);
        latest.keep(5);
        assert!(latest.has(1) && !latest.has(3));
    }
}
