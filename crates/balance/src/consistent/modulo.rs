//! The hash modulo the sum of weights: the simplest way from a key to an endpoint.
//!
//! Laid end to end in configured order, the weights (divided by their greatest common divisor; above
//! 65,536 rounded) make a wheel of T places, eligible endpoints or not; the key's place is its hash
//! mod T. So one weight edited from 10 to 9, or one endpoint more, moves most keys.
//!
//! Compiled, the wheel is repeated to the largest multiple of T within 65,536 slots; the slots of
//! endpoints that are not eligible are led on, each by its own sequence of further places, so that
//! the keys of one that is out are spread over all others by weight, and no other key moves. A pick
//! that meets an endpoint it cannot use goes on in the same way.
//!
//! Weights: proportional. Cost: O(1).

use subak_base::Rng;

use crate::balancer::Recipe;
use crate::consistent::by_hash;
use crate::request::LoadView;
use crate::rules::Pick;
use crate::shares;

/// Slots, unless there are more endpoints.
const SLOTS_MAX: usize = 65_536;

/// Further places that are tried for a slot before all endpoints are scanned.
const PLACES_MAX: usize = 64;

#[derive(Debug)]
pub(crate) struct Modulo {
    /// The endpoint of every place of the wheel.
    wheel: Box<[u32]>,
    /// The endpoint of every slot, eligible ones only; empty when there is none.
    slots: Box<[u32]>,
}

impl Modulo {
    /// How many places of the wheel each weight gets.
    pub(crate) fn places(weights: &[u64]) -> Vec<u64> {
        shares::reduced(weights, SLOTS_MAX)
    }

    pub(crate) fn build(recipe: &Recipe<'_>) -> Modulo {
        let weights: Vec<u64> = recipe.endpoints.iter().map(|entry| entry.weight.get()).collect();
        let shares = Modulo::places(&weights).into_iter().enumerate();
        let wheel: Box<[u32]> = shares
            .flat_map(|(index, share)| std::iter::repeat_n(index as u32, share as usize))
            .collect();
        let is_in = |index: usize| recipe.eligible.contains(index) && weights[index] > 0;
        let members: Vec<u32> =
            (0..weights.len()).filter(|index| is_in(*index)).map(|index| index as u32).collect();
        let count = match wheel.len() {
            0 => 0,
            _ if members.is_empty() => 0,
            places => places * (SLOTS_MAX / places).max(1),
        };
        let resolve = |slot: usize| {
            let mut places = places(&wheel, slot).take(PLACES_MAX);
            let found = places.find(|index| is_in(*index)).map(|index| index as u32);
            found.unwrap_or_else(|| members[slot % members.len()])
        };
        let slots = (0..count).map(resolve).collect();
        Modulo { wheel, slots }
    }

    pub(crate) fn slots(&self) -> &[u32] {
        &self.slots
    }

    /// The endpoint of the hash's slot; else the first of its further places that is a candidate.
    #[inline]
    pub(crate) fn pick<L: LoadView + ?Sized>(
        &self,
        pick: &Pick<'_, L>,
        hash: u64,
    ) -> Option<usize> {
        let slot = hash.checked_rem(self.slots.len() as u64).unwrap_or(0) as usize;
        match self.slots.get(slot) {
            Some(index) if pick.is_candidate(*index as usize) => Some(*index as usize),
            _ => self.go_on(pick, hash),
        }
    }

    #[cold]
    fn go_on<L: LoadView + ?Sized>(&self, pick: &Pick<'_, L>, hash: u64) -> Option<usize> {
        let mut places = self.endpoints(hash);
        let found = places.find(|index| pick.is_candidate(*index));
        found.or_else(|| by_hash(hash, || pick.candidates()))
    }

    /// The endpoints that a hash leads to, one after the other.
    pub(crate) fn endpoints(&self, hash: u64) -> impl Iterator<Item = usize> {
        let slot = hash.checked_rem(self.slots.len() as u64).unwrap_or(0) as usize;
        places(&self.wheel, slot).take(PLACES_MAX)
    }
}

/// The endpoints at the places that a slot leads to; none on an empty wheel.
fn places(wheel: &[u32], slot: usize) -> impl Iterator<Item = usize> {
    let mut words = Rng::new(slot as u64);
    let further = std::iter::repeat_with(move || words.next_u64());
    let all = std::iter::once(slot as u64).chain(further);
    all.map_while(|word| {
        let place = word.checked_rem(wheel.len() as u64)?;
        wheel.get(place as usize).map(|index| *index as usize)
    })
}
