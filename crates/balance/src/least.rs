//! The smallest of value ÷ weight over all candidates, and what happens on a tie.
//!
//! Two endpoints are compared by cross multiplication, v₁·w₂ against v₂·w₁, so nothing is rounded.
//! Candidates that are all equal take turns in the compiled [rotation], so an idle or sequential
//! load gets exactly round robin. When only some are equal, the request's random word chooses one
//! of those in proportion to their weights: the next in the rotation would favour whoever follows
//! a busy endpoint in it (50/25/25 among three idle ones of four).
//!
//! Cost: O(n), twice when some are equal.
//!
//! [rotation]: crate::rotation::Rotation

use std::cmp::Ordering;

use crate::request::LoadView;
use crate::rules::Pick;

/// What decides between equal candidates, in words.
pub(crate) const TIES: &str =
    "all equal: the next in turn; some equal: one of them by chance, by weight";

/// The candidate with the smallest value for its weight.
#[inline]
pub(crate) fn least<L: LoadView + ?Sized, V: Value>(
    pick: &Pick<'_, L>,
    value: impl Fn(usize) -> V,
) -> Option<usize> {
    let load = |index| Load { value: value(index), weight: pick.weight(index) };
    let mut candidates = pick.candidates();
    let first = candidates.next()?;
    let mut least =
        Found { index: first, load: load(first), equals: 1, weight: pick.weight(first) };
    let mut all = 1;
    // Not a `for`: walking the set from inside is twice as fast.
    candidates.for_each(|index| {
        all += 1;
        let this = load(index);
        match this.compare(least.load) {
            Ordering::Less => {
                least = Found { index, load: this, equals: 1, weight: this.weight };
            }
            Ordering::Equal => {
                least.equals += 1;
                least.weight += this.weight;
            }
            Ordering::Greater => {}
        }
    });
    match least.equals {
        1 => Some(least.index),
        equals if equals == all => pick.next_in_rotation(),
        _ => {
            // Laid end to end in configured order, a weight long each; `point` lies in one.
            let mut point = scale(pick.request.random, least.weight);
            let mut chosen = least.index;
            // Live values may have changed since the first look: then the last one that is still
            // as small takes the request, at worst the one found first.
            for index in pick.candidates() {
                let this = load(index);
                if this.compare(least.load) != Ordering::Greater {
                    chosen = index;
                    if point < this.weight {
                        break;
                    }
                    point -= this.weight;
                }
            }
            Some(chosen)
        }
    }
}

/// A random word as a number below `bound`.
pub(crate) fn scale(random: u64, bound: u64) -> u64 {
    ((u128::from(random) * u128::from(bound)) >> 64) as u64
}

/// What is compared: a number whose product with a weight does not overflow.
pub(crate) trait Value: Copy {
    type Product: Ord;

    fn times(self, weight: u64) -> Self::Product;
}

impl Value for u32 {
    type Product = u64;

    #[inline]
    fn times(self, weight: u64) -> u64 {
        u64::from(self) * weight
    }
}

impl Value for u64 {
    type Product = u128;

    #[inline]
    fn times(self, weight: u64) -> u128 {
        u128::from(self) * u128::from(weight)
    }
}

/// Below 2¹¹².
impl Value for u128 {
    type Product = u128;

    #[inline]
    fn times(self, weight: u64) -> u128 {
        self * u128::from(weight)
    }
}

/// The smallest so far and how many, of which weight together, are like it.
struct Found<V> {
    index: usize,
    load: Load<V>,
    equals: usize,
    weight: u64,
}

#[derive(Clone, Copy)]
struct Load<V> {
    value: V,
    weight: u64,
}

impl<V: Value> Load<V> {
    /// Which has the smaller value for its weight.
    #[inline]
    fn compare(self, other: Load<V>) -> Ordering {
        self.value.times(other.weight).cmp(&other.value.times(self.weight))
    }
}
