//! Highest random weight: every endpoint has a number for every key, and the best takes it.
//!
//! The number is −log₂(u) ÷ w, smallest first, with u = hash(key, identity) as a fraction between 0
//! and 1. With exponential numbers of rate w the smallest is an endpoint's with probability
//! w ÷ Σw. When an endpoint goes, its keys alone move, each to its second best; when weights change,
//! keys move only to or from the endpoint that changed.
//!
//! No table. Cost: O(n), about 5 ns an endpoint.
//! Source: Thaler & Ravishankar 1998; Schindelhauer & Schomaker 2005 for the weights. Compared by
//! cross multiplication, in fixed point.

use subak_base::Rng;

use crate::balancer::Recipe;
use crate::consistent::{Gate, ranks};
use crate::fixed::{ONE, minus_log2};
use crate::hash64::hash64;
use crate::request::LoadView;
use crate::score::Score;

const IDENTITY_SEED: u64 = 3;

#[derive(Debug)]
pub(crate) struct Rendezvous {
    identities: Box<[u64]>,
    /// Canonical rank, for the case that two numbers are equal.
    ranks: Box<[u32]>,
}

impl Rendezvous {
    pub(crate) fn build(recipe: &Recipe<'_>) -> Rendezvous {
        let entries = recipe.endpoints.iter();
        let identities = entries.map(|entry| hash64(entry.identity.as_bytes(), IDENTITY_SEED));
        Rendezvous { identities: identities.collect(), ranks: ranks(recipe) }
    }

    /// The best of those admitted.
    pub(crate) fn lead<L: LoadView + ?Sized>(
        &self,
        hash: u64,
        gate: &Gate<'_, L>,
    ) -> Option<usize> {
        let mut best: Option<(usize, u64, u64)> = None;
        gate.pick.candidates().filter(|index| gate.admits(*index)).for_each(|index| {
            let (number, weight) = (self.number(hash, index), gate.pick.weight(index));
            // At most 64 in 2⁻³², times a weight: below 2⁵⁵.
            let is_better = best.is_none_or(|(holder, least, held)| {
                let (this, that) = (number * held, least * weight);
                this < that || this == that && self.ranks[index] < self.ranks[holder]
            });
            if is_better {
                best = Some((index, number, weight));
            }
        });
        best.map(|(index, ..)| index)
    }

    pub(crate) fn score(&self, hash: u64, index: usize, weight: u64) -> Score {
        Score {
            amount: u128::from(self.number(hash, index)),
            per: u128::from(weight) * u128::from(ONE),
            unit: "−log₂ of the key's hash with it by weight, smallest first",
        }
    }

    /// −log₂(u) in 2⁻³².
    #[inline]
    fn number(&self, hash: u64, index: usize) -> u64 {
        minus_log2(Rng::new(hash ^ self.identities[index]).next_u64().max(1))
    }
}
