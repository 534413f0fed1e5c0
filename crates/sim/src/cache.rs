//! What an endpoint has served lately: the latest objects, up to a bound. O(1).

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use subak_base::Rng;

const NONE: u32 = u32::MAX;

/// The latest objects.
#[derive(Debug)]
pub(crate) struct Latest {
    places: HashMap<u32, u32, BuildHasherDefault<Mixed>>,
    /// A ring through all of them, newest to oldest.
    entries: Vec<Entry>,
    bound: usize,
    newest: u32,
    oldest: u32,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    object: u32,
    newer: u32,
    older: u32,
}

/// The same on every machine and in every run.
#[derive(Default, Debug)]
struct Mixed(u64);

impl Hasher for Mixed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u32(u32::from(*byte)));
    }

    fn write_u32(&mut self, number: u32) {
        self.0 = Rng::new(self.0 ^ u64::from(number)).next_u64();
    }
}

impl Latest {
    pub(crate) fn new(bound: u32) -> Latest {
        let (places, entries) = (HashMap::default(), Vec::new());
        let bound = bound.clamp(1, NONE - 1) as usize;
        Latest { places, entries, bound, newest: NONE, oldest: NONE }
    }

    /// Whether it is there; then it is the newest.
    pub(crate) fn has(&mut self, object: u32) -> bool {
        let Some(place) = self.places.get(&object).copied() else { return false };
        self.take_out(place);
        self.put_first(place);
        true
    }

    /// It has just been served.
    pub(crate) fn keep(&mut self, object: u32) {
        if self.has(object) {
            return;
        }
        let place = if self.entries.len() < self.bound {
            self.entries.push(Entry { object, newer: NONE, older: NONE });
            self.entries.len() as u32 - 1
        } else {
            let place = self.oldest;
            self.take_out(place);
            self.places.remove(&self.entries[place as usize].object);
            self.entries[place as usize].object = object;
            place
        };
        self.places.insert(object, place);
        self.put_first(place);
    }

    /// It has been started anew.
    pub(crate) fn clear(&mut self) {
        self.places.clear();
        self.entries.clear();
        (self.newest, self.oldest) = (NONE, NONE);
    }

    fn take_out(&mut self, place: u32) {
        let Entry { newer, older, .. } = self.entries[place as usize];
        match newer {
            NONE => self.newest = older,
            newer => self.entries[newer as usize].older = older,
        }
        match older {
            NONE => self.oldest = newer,
            older => self.entries[older as usize].newer = newer,
        }
    }

    fn put_first(&mut self, place: u32) {
        let older = std::mem::replace(&mut self.newest, place);
        let entry = &mut self.entries[place as usize];
        (entry.newer, entry.older) = (NONE, older);
        match older {
            NONE => self.oldest = place,
            older => self.entries[older as usize].newer = place,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Latest;
    use std::collections::VecDeque;
    use subak_base::Rng;

    #[test]
    fn holds_the_latest_like_a_plain_list() {
        let mut random = Rng::new(4);
        for bound in [1, 2, 7, 50] {
            let (mut cache, mut list) = (Latest::new(bound), VecDeque::new());
            for step in 0..20_000 {
                let object = random.below(100) as u32;
                let known = list.iter().position(|one| *one == object);
                assert_eq!(cache.has(object), known.is_some());
                known.map(|place| list.remove(place));
                cache.keep(object);
                list.push_front(object);
                list.truncate(bound as usize);
                if step % 5_000 == 4_999 {
                    cache.clear();
                    list.clear();
                }
            }
        }
    }
}
