//! Draws by weight in O(1): an alias table.
//!
//! Every slot is as likely as any other and belongs to two endpoints at most, the larger part of it
//! to one or the other; so a draw is one multiplication and one comparison, whatever the weights.
//! Compiled from whole numbers: the chance of an endpoint is off by less than 2⁻³².
//!
//! The table holds who was eligible when it was compiled. A draw that cannot take the request is
//! rejected; after [`REJECTIONS_MAX`] of those the candidates are scanned.
//!
//! Source: Walker 1977; Vose 1991.

use subak_base::Rng;

use crate::balancer::Recipe;
use crate::least::scale;
use crate::request::LoadView;
use crate::rules::Pick;

/// Rejected draws after which the candidates are scanned.
const REJECTIONS_MAX: usize = 8;

/// Most endpoints that are drawn for one request.
pub(crate) const CHOICES_MAX: usize = 8;

/// The compiled table.
#[derive(Debug)]
pub(crate) struct Draw {
    slots: Box<[Slot]>,
}

/// One n-th of all chances.
#[derive(Clone, Copy, Debug)]
struct Slot {
    /// The part of the slot, in 2⁻³², that is `own`'s; the rest is `other`'s.
    part: u32,
    own: u32,
    other: u32,
}

impl Draw {
    pub(crate) fn build(recipe: &Recipe<'_>) -> Draw {
        let weights = recipe.endpoints.iter().enumerate().map(|(index, entry)| {
            let is_in = recipe.eligible.contains(index);
            (index as u32, if is_in { entry.weight.get() } else { 0 })
        });
        Draw::of(&weights.filter(|(_, weight)| *weight > 0).collect::<Vec<_>>())
    }

    fn of(weights: &[(u32, u64)]) -> Draw {
        let count = weights.len() as u64;
        let total: u64 = weights.iter().map(|(_, weight)| weight).sum();
        // Each one's chance in units of which `total` make a slot. Those short of a slot are filled
        // up by those that have more.
        let (mut short, mut long) = (Vec::new(), Vec::new());
        for (index, weight) in weights {
            let chance = weight * count;
            if chance < total { short.push((*index, chance)) } else { long.push((*index, chance)) }
        }
        let mut slots = Vec::with_capacity(weights.len());
        while let Some((own, chance)) = short.pop() {
            // Whole numbers add up exactly: while one is short another has too much.
            let Some((other, rest)) = long.pop() else { break };
            let part = ((u128::from(chance) << 32) / u128::from(total)) as u32;
            slots.push(Slot { part, own, other });
            let rest = rest - (total - chance);
            if rest < total { short.push((other, rest)) } else { long.push((other, rest)) }
        }
        slots.extend(long.into_iter().map(|(own, _)| Slot { part: u32::MAX, own, other: own }));
        Draw { slots: slots.into() }
    }

    /// The endpoint that a random word stands for.
    #[inline]
    fn endpoint(&self, word: u64) -> Option<usize> {
        let scaled = u128::from(word) * self.slots.len() as u128;
        let slot = self.slots.get((scaled >> 64) as usize)?;
        let within = (scaled as u64 >> 32) as u32;
        Some(if within < slot.part { slot.own } else { slot.other } as usize)
    }

    /// A candidate by weight that is none of `except`.
    #[inline]
    pub(crate) fn one<L: LoadView + ?Sized>(
        &self,
        pick: &Pick<'_, L>,
        words: &mut Rng,
        except: &[usize],
    ) -> Option<usize> {
        for _ in 0..REJECTIONS_MAX {
            let Some(drawn) = self.endpoint(words.next_u64()) else { break };
            if pick.is_candidate(drawn) && !except.contains(&drawn) {
                return Some(drawn);
            }
        }
        scan(pick, words.next_u64(), except)
    }

    /// The best of `choices` different candidates drawn by weight; of fewer, when there are fewer.
    /// The first drawn stays unless another is better.
    #[inline]
    pub(crate) fn best<L: LoadView + ?Sized>(
        &self,
        pick: &Pick<'_, L>,
        choices: usize,
        is_better: impl Fn(usize, usize) -> bool,
    ) -> Option<usize> {
        let mut words = Rng::new(pick.request.random);
        let mut drawn = [0; CHOICES_MAX];
        drawn[0] = self.one(pick, &mut words, &[])?;
        let mut best = drawn[0];
        for count in 1..choices.min(CHOICES_MAX) {
            let Some(next) = self.one(pick, &mut words, &drawn[..count]) else { break };
            drawn[count] = next;
            if is_better(next, best) {
                best = next;
            }
        }
        Some(best)
    }
}

/// A candidate by weight that is none of `except`, by looking at all.
#[cold]
fn scan<L: LoadView + ?Sized>(pick: &Pick<'_, L>, word: u64, except: &[usize]) -> Option<usize> {
    let left = || pick.candidates().filter(|index| !except.contains(index));
    let total: u64 = left().map(|index| pick.weight(index)).sum();
    let mut point = scale(word, total);
    left().find(|index| {
        let weight = pick.weight(*index);
        let is_hit = point < weight;
        point = point.saturating_sub(weight);
        is_hit
    })
}
