//! A table of slots that hardly changes when an endpoint goes or comes.
//!
//! Each endpoint has a preference list of all slots: `offset`, `offset + skip`, `offset + 2·skip`, …
//! modulo the number of slots, which is prime; both numbers are hashes of its identity. The
//! endpoints take turns, and in its turn each takes the first free slot of its list. An endpoint has
//! as many turns as its weight is due of all slots, by largest remainder and at least one; the turns
//! of a smaller weight are spread evenly over those of the largest.
//!
//! The table is a function of the eligible endpoints alone, in canonical order: every node with the
//! same endpoints has the same table. With equal weights no two endpoints differ by more than one
//! slot.
//!
//! Compiling: about M · ln M steps for M slots; 2 ms at 65,537.
//! Source: Eisenbud et al., "Maglev", NSDI 2016, section 3.4.

use crate::balancer::Recipe;
use crate::consistent::Gate;
use crate::hash64::hash64;
use crate::request::LoadView;
use crate::shares;

/// Primes, each the next above a power of two.
const PRIMES: [usize; 9] =
    [65_537, 131_101, 262_147, 524_309, 1_048_583, 2_097_169, 4_194_319, 8_388_617, 16_777_259];

/// Slots for each endpoint of the list, at least.
const SLOTS_PER_ENDPOINT: usize = 100;

const OFFSET_SEED: u64 = 1;
const SKIP_SEED: u64 = 2;

/// Slots that a walk looks at before all endpoints are scanned.
const WALK_MAX: usize = 128;

const FREE: u32 = u32::MAX;

#[derive(Debug)]
pub(crate) struct MaglevTable {
    /// The endpoint of every slot; empty when nobody was eligible.
    slots: Box<[u32]>,
}

impl MaglevTable {
    pub(crate) fn build(recipe: &Recipe<'_>) -> MaglevTable {
        let (endpoints, eligible) = (recipe.endpoints, recipe.eligible);
        let members: Vec<usize> = endpoints
            .canonical()
            .iter()
            .map(|index| *index as usize)
            .filter(|index| eligible.contains(*index) && endpoints.entry(*index).weight.get() > 0)
            .collect();
        if members.is_empty() {
            return MaglevTable { slots: Box::default() };
        }
        // By the whole list, so that the table keeps its size when somebody is out for a while.
        let count = slots_for(endpoints.len());
        let mut preferences: Vec<Preference> = members
            .iter()
            .map(|index| Preference::new(&endpoints.entry(*index).identity, count))
            .collect();
        let weights: Vec<u64> =
            members.iter().map(|index| endpoints.entry(*index).weight.get()).collect();
        let mut slots = vec![FREE; count];
        for turn in turns(&weights, count) {
            let preference = &mut preferences[turn as usize];
            let slot = preference.find(|slot| slots[*slot] == FREE);
            slots[slot] = members[turn as usize] as u32;
        }
        MaglevTable { slots: slots.into() }
    }

    /// How many slots each weight gets.
    pub(crate) fn places(weights: &[u64]) -> Vec<u64> {
        shares::rounded(weights, slots_for(weights.len()))
    }

    pub(crate) fn slots(&self) -> &[u32] {
        &self.slots
    }

    /// The first endpoint that is admitted, from the slot of the hash on.
    #[inline]
    pub(crate) fn lead<L: LoadView + ?Sized>(
        &self,
        hash: u64,
        gate: &Gate<'_, L>,
    ) -> Option<usize> {
        let start = hash.checked_rem(self.slots.len() as u64).unwrap_or(0) as usize;
        let first = *self.slots.get(start)? as usize;
        if gate.admits(first) { Some(first) } else { self.walk(hash, gate) }
    }

    #[cold]
    fn walk<L: LoadView + ?Sized>(&self, hash: u64, gate: &Gate<'_, L>) -> Option<usize> {
        let mut walk = self.endpoints(hash).take(WALK_MAX);
        walk.find(|index| gate.admits(*index)).or_else(|| gate.scan())
    }

    /// The endpoints of all slots, from that of the hash on.
    pub(crate) fn endpoints(&self, hash: u64) -> impl Iterator<Item = usize> {
        let start = hash.checked_rem(self.slots.len() as u64).unwrap_or(0) as usize;
        let (before, after) = self.slots.split_at(start);
        after.iter().chain(before).map(|index| *index as usize)
    }
}

/// How many slots a list of so many endpoints gets.
fn slots_for(endpoints: usize) -> usize {
    let enough = endpoints.saturating_mul(SLOTS_PER_ENDPOINT);
    let prime = PRIMES.iter().find(|prime| **prime >= enough);
    prime.copied().unwrap_or(PRIMES[PRIMES.len() - 1])
}

/// Whose turn it is, for each of `count` turns.
fn turns(weights: &[u64], count: usize) -> Vec<u32> {
    let due = shares::rounded(weights, count);
    let most = due.iter().copied().max().unwrap_or(0);
    // The k-th turn of an endpoint with d of them is in round k · most ÷ d. Sorted by round, then by
    // rank, by counting.
    let round = |turn: u64, due: u64| (turn * most / due) as usize;
    let mut ends = vec![0; most as usize + 1];
    for due in due.iter().copied().filter(|due| *due > 0) {
        (0..due).for_each(|turn| ends[round(turn, due) + 1] += 1);
    }
    (1..ends.len()).for_each(|place| ends[place] += ends[place - 1]);
    let mut order = vec![0; count];
    for (member, due) in due.iter().copied().enumerate().filter(|(_, due)| *due > 0) {
        for turn in 0..due {
            let place = &mut ends[round(turn, due)];
            order[*place] = member as u32;
            *place += 1;
        }
    }
    order
}

/// The rest of an endpoint's preference list.
struct Preference {
    next: usize,
    skip: usize,
    slots: usize,
}

impl Preference {
    fn new(identity: &str, slots: usize) -> Preference {
        let (identity, count) = (identity.as_bytes(), slots as u64);
        let next = hash64(identity, OFFSET_SEED) % count;
        let skip = hash64(identity, SKIP_SEED) % (count - 1) + 1;
        Preference { next: next as usize, skip: skip as usize, slots }
    }

    /// The next slot for which this holds. There is one, as long as a slot is left: the number of
    /// slots is prime, so the list has all of them.
    fn find(&mut self, is_free: impl Fn(&usize) -> bool) -> usize {
        loop {
            let slot = self.next;
            self.next += self.skip;
            if self.next >= self.slots {
                self.next -= self.slots;
            }
            if is_free(&slot) {
                return slot;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{PRIMES, slots_for, turns};

    #[test]
    fn the_listed_numbers_are_primes_each_the_next_above_a_power_of_two() {
        let is_prime = |n: usize| (2..).take_while(|d| d * d <= n).all(|d| !n.is_multiple_of(d));
        for (power, prime) in (16..).zip(PRIMES) {
            let next = ((1 << power) + 1..).find(|n| is_prime(*n));
            assert_eq!(next, Some(prime));
        }
    }

    #[test]
    fn a_list_gets_a_hundred_slots_an_endpoint_and_65537_at_least() {
        assert_eq!([0, 3, 655].map(slots_for), [65_537; 3]);
        assert_eq!([656, 1_311].map(slots_for), [131_101; 2]);
        assert_eq!(slots_for(10_000), 1_048_583);
        assert_eq!(slots_for(100_000), 16_777_259);
    }

    #[test]
    fn turns_are_as_many_as_due_and_spread_evenly() {
        assert_eq!(turns(&[1, 1, 1], 7), [0, 1, 2, 0, 1, 2, 0]);
        assert_eq!(turns(&[1, 4], 5), [0, 1, 1, 1, 1]);
        assert_eq!(turns(&[2, 1, 1], 8), [0, 1, 2, 0, 0, 1, 2, 0]);
        // Due less than one: one all the same.
        assert_eq!(turns(&[1, 100], 10).iter().filter(|member| **member == 0).count(), 1);
    }
}
