//! Which endpoint does a client belong to? A bounded table from the hash of what a client is known by
//! to the stick key of an endpoint; a client is forgotten after a time without a request.
//!
//! Since every entry lives equally long after its last use, the order of last use is the order of
//! expiry: a doubly linked list in each shard, the next to be forgotten at its end. A client that
//! finds its shard full takes the place of the one that asked longest ago *in this shard*.
//!
//! The places of all shards together are exactly those that are configured. So that shards of a small
//! table are not full long before the table is, it has fewer of them: up to [`SHARDS_MAX`], each of
//! [`SHARD_MIN`] places or more.
//!
//! O(1) a request, one lock of one shard. About 60 bytes a client.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use subak_base::Tick;

use crate::spec::StickTableSpec;

/// A power of two, so that a shard is some bits of the hash.
const SHARDS_MAX: usize = 16;

/// Places of a shard, where there are several.
const SHARD_MIN: usize = 64;

/// No slot.
const NONE: u32 = u32::MAX;

/// The clients of one pool. Kept over reloads; by a copy where the size has changed.
#[derive(Debug)]
pub(crate) struct StickTable {
    spec: StickTableSpec,
    /// A power of two of them.
    shards: Arc<[Mutex<Shard>]>,
}

impl StickTable {
    /// A table of this size; the clients are those of `before`, where there is one, or as many of them
    /// as have room. O(1), but O(entries · log entries) where the size is another.
    pub(crate) fn new(spec: StickTableSpec, before: Option<&StickTable>) -> StickTable {
        if let Some(before) = before
            && before.spec.entries == spec.entries
        {
            return StickTable { spec, shards: before.shards.clone() };
        }
        let count = 1 << (spec.entries / SHARD_MIN).clamp(1, SHARDS_MAX).ilog2();
        let shards = (0..count).map(|_| Mutex::default()).collect();
        let table = StickTable { spec, shards };
        // The table before stays as it is: this one may never come in force.
        before.into_iter().for_each(|before| table.copy(before));
        table
    }

    /// Takes the clients of another table over, who asked last coming last.
    fn copy(&self, other: &StickTable) {
        let mut slots = Vec::new();
        for shard in other.shards.iter() {
            let shard = lock(shard);
            slots.extend(shard.places.values().map(|place| shard.slots[*place as usize]));
        }
        slots.sort_unstable_by_key(|slot| slot.used);
        slots.iter().for_each(|slot| self.put(slot.client, slot.endpoint, slot.used));
    }

    /// The endpoint this client belongs to.
    pub(crate) fn find(&self, client: u64, now: Tick) -> Option<u64> {
        lock(&self.shards[self.shard_of(client)]).find(client, self.spec.expire, now)
    }

    /// The same for somebody who only wants to know: the client has not asked.
    pub(crate) fn look_up(&self, client: u64, now: Tick) -> Option<u64> {
        let shard = lock(&self.shards[self.shard_of(client)]);
        let slot = shard.slots[*shard.places.get(&client)? as usize];
        (now.since(slot.used) < self.spec.expire).then_some(slot.endpoint)
    }

    /// This client belongs to that endpoint from now on.
    pub(crate) fn put(&self, client: u64, endpoint: u64, now: Tick) {
        let shard = self.shard_of(client);
        lock(&self.shards[shard]).put(client, endpoint, self.places(shard), now);
    }

    /// How many clients a shard has room for. The first shards take what is left over.
    fn places(&self, shard: usize) -> usize {
        let (entries, shards) = (self.spec.entries, self.shards.len());
        let places = entries / shards + usize::from(shard < entries % shards);
        places.clamp(1, NONE as usize - 1)
    }

    /// How many clients belong to each endpoint; forgets those whose time is over. O(entries).
    pub(crate) fn count(&self, now: Tick) -> HashMap<u64, usize> {
        let mut counts = HashMap::new();
        for shard in self.shards.iter() {
            let mut shard = lock(shard);
            shard.forget_expired(self.spec.expire, now);
            for slot in shard.places.values() {
                *counts.entry(shard.slots[*slot as usize].endpoint).or_default() += 1;
            }
        }
        counts
    }

    fn shard_of(&self, client: u64) -> usize {
        // The map uses the low bits.
        (client >> 60) as usize % self.shards.len()
    }
}

fn lock(shard: &Mutex<Shard>) -> MutexGuard<'_, Shard> {
    shard.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

#[derive(Debug)]
struct Shard {
    places: HashMap<u64, u32>,
    slots: Vec<Slot>,
    /// Used last, and longest ago.
    newest: u32,
    oldest: u32,
    /// First of the free slots, which are linked by `older`.
    free: u32,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    client: u64,
    endpoint: u64,
    used: Tick,
    newer: u32,
    older: u32,
}

impl Default for Shard {
    fn default() -> Shard {
        let (places, slots) = (HashMap::new(), Vec::new());
        Shard { places, slots, newest: NONE, oldest: NONE, free: NONE }
    }
}

impl Shard {
    fn find(&mut self, client: u64, expire: Duration, now: Tick) -> Option<u64> {
        self.forget_expired(expire, now);
        let slot = *self.places.get(&client)?;
        self.use_again(slot, now);
        Some(self.slots[slot as usize].endpoint)
    }

    fn put(&mut self, client: u64, endpoint: u64, most: usize, now: Tick) {
        if let Some(slot) = self.places.get(&client).copied() {
            self.slots[slot as usize].endpoint = endpoint;
            self.use_again(slot, now);
            return;
        }
        while self.places.len() >= most {
            self.forget_oldest();
        }
        let slot = Slot { client, endpoint, used: now, newer: NONE, older: NONE };
        let place = match self.free {
            NONE => {
                self.slots.push(slot);
                (self.slots.len() - 1) as u32
            }
            place => {
                self.free = self.slots[place as usize].older;
                self.slots[place as usize] = slot;
                place
            }
        };
        self.places.insert(client, place);
        self.link_as_newest(place);
    }

    fn use_again(&mut self, place: u32, now: Tick) {
        // Workers' clocks differ by a moment; the list must stay in order.
        let newest = match self.newest {
            NONE => now,
            newest => self.slots[newest as usize].used.max(now),
        };
        self.slots[place as usize].used = newest;
        if self.newest != place {
            self.unlink(place);
            self.link_as_newest(place);
        }
    }

    fn forget_expired(&mut self, expire: Duration, now: Tick) {
        while self.oldest != NONE && now.since(self.slots[self.oldest as usize].used) >= expire {
            self.forget_oldest();
        }
    }

    fn forget_oldest(&mut self) {
        let place = self.oldest;
        if place == NONE {
            return;
        }
        self.unlink(place);
        let slot = &mut self.slots[place as usize];
        self.places.remove(&slot.client);
        slot.older = self.free;
        self.free = place;
        if self.places.is_empty() {
            *self = Shard::default();
        }
    }

    fn unlink(&mut self, place: u32) {
        let Slot { newer, older, .. } = self.slots[place as usize];
        match newer {
            NONE => self.newest = older,
            newer => self.slots[newer as usize].older = older,
        }
        match older {
            NONE => self.oldest = newer,
            older => self.slots[older as usize].newer = newer,
        }
    }

    fn link_as_newest(&mut self, place: u32) {
        let before = self.newest;
        let slot = &mut self.slots[place as usize];
        (slot.newer, slot.older) = (NONE, before);
        match before {
            NONE => self.oldest = place,
            before => self.slots[before as usize].newer = place,
        }
        self.newest = place;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SPEC: StickTableSpec = of(64);

    const fn of(entries: usize) -> StickTableSpec {
        StickTableSpec { expire: Duration::from_secs(30), entries }
    }

    /// Clients whose hashes are spread over all shards.
    fn clients(count: u64) -> impl Iterator<Item = u64> {
        (0..count).map(|number| number.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    fn size(table: &StickTable) -> usize {
        table.count(at(0)).values().sum()
    }

    fn at(seconds: u64) -> Tick {
        Tick::from_millis(seconds * 1000)
    }

    #[test]
    fn a_client_is_known_while_it_keeps_asking_and_forgotten_after() {
        let table = StickTable::new(SPEC, None);
        assert_eq!(table.find(7, at(0)), None);
        table.put(7, 3, at(0));
        for second in [29, 58, 87] {
            assert_eq!(table.find(7, at(second)), Some(3));
        }
        assert_eq!(table.find(7, at(117)), None);
        table.put(7, 4, at(118));
        table.put(7, 5, at(119));
        assert_eq!(table.find(7, at(120)), Some(5));
        assert_eq!(table.count(at(120)), HashMap::from([(5, 1)]));
        assert!(table.count(at(150)).is_empty());
    }

    #[test]
    fn a_table_never_holds_more_than_its_entries_and_fills_them() {
        for entries in [1, 2, 15, 16, 17, 100, 127, 128, 1000, 1023, 1024, 1037] {
            let table = StickTable::new(of(entries), None);
            for client in clients(10_000) {
                table.put(client, 1, at(0));
            }
            assert_eq!(size(&table), entries);
        }
    }

    #[test]
    fn another_size_keeps_who_asked_last_and_leaves_the_table_before_alone() {
        let large = StickTable::new(of(2000), None);
        for (number, client) in clients(1000).enumerate() {
            large.put(client, number as u64, Tick(number as u64));
        }
        let same = StickTable::new(of(2000), Some(&large));
        assert!(Arc::ptr_eq(&same.shards, &large.shards));
        let small = StickTable::new(of(10), Some(&large));
        let kept =
            clients(1000).enumerate().filter(|(_, client)| small.find(*client, at(0)).is_some());
        assert!(kept.map(|(number, _)| number).eq(990..1000));
        assert_eq!((size(&small), size(&large)), (10, 1000));
        let larger = StickTable::new(of(100_000), Some(&large));
        let known = |(number, client)| larger.find(client, at(0)) == Some(number as u64);
        assert!(clients(1000).enumerate().all(known));
    }

    proptest! {
        /// Against a list that is searched from end to end.
        #[test]
        fn equals_a_plain_list_of_who_asked_when(
            steps in prop::collection::vec((0_u64..8, 0_u64..12, any::<bool>()), 1..300),
        ) {
            let mut shard = Shard::default();
            let mut list: Vec<(u64, u64, u64)> = Vec::new();
            let mut now = 0;
            for (number, (pause, client, puts)) in steps.into_iter().enumerate() {
                now += pause;
                list.retain(|(_, _, used)| now - used < 30);
                let known = list.iter().position(|(known, ..)| *known == client);
                if puts {
                    let endpoint = number as u64;
                    shard.forget_expired(SPEC.expire, at(now));
                    shard.put(client, endpoint, 4, at(now));
                    match known {
                        Some(place) => drop(list.remove(place)),
                        None if list.len() == 4 => drop(list.remove(0)),
                        None => {}
                    }
                    list.push((client, endpoint, now));
                } else {
                    let found = shard.find(client, SPEC.expire, at(now));
                    prop_assert_eq!(found, known.map(|place| list[place].1));
                    if let Some(place) = known {
                        let (client, endpoint, _) = list.remove(place);
                        list.push((client, endpoint, now));
                    }
                }
                prop_assert_eq!(shard.places.len(), list.len());
                prop_assert!(shard.slots.len() <= 4);
            }
        }
    }
}
