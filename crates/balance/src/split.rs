//! Which side of a weighted split takes a key? Rendezvous over few sides, each with its weight.
//!
//! The side with the least −log₂(u) ÷ w takes it, with u = hash(key, name) as a fraction between 0 and
//! 1: a key drawn by chance falls to a side with probability w ÷ Σw. When one weight changes, keys move
//! to that side or from it and nowhere else; when a side is closed, its keys alone move; the order of
//! the sides means nothing.
//!
//! Cost: O(sides), about 5 ns each. Source: as for `rendezvous`.

use subak_base::Rng;

use crate::fixed::minus_log2;
use crate::hash64::hash64;

const NAME_SEED: u64 = 5;

/// The sides of a split. Immutable.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Split {
    sides: Box<[Side]>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct Side {
    name: u64,
    weight: u64,
}

impl Split {
    /// Sides by name and weight. One of weight 0 takes nothing.
    pub fn new<'a>(sides: impl IntoIterator<Item = (&'a str, u32)>) -> Split {
        let side = |(name, weight): (&str, u32)| Side {
            name: hash64(name.as_bytes(), NAME_SEED),
            weight: weight.into(),
        };
        Split { sides: sides.into_iter().map(side).collect() }
    }

    /// The side that takes this key, among those that are open; none when no side with a weight is.
    pub fn pick(&self, key: u64, mut is_open: impl FnMut(usize) -> bool) -> Option<usize> {
        let mut best: Option<(usize, u128, u128)> = None;
        for (index, side) in self.sides.iter().enumerate() {
            if side.weight == 0 || !is_open(index) {
                continue;
            }
            let number = minus_log2(Rng::new(key ^ side.name).next_u64().max(1));
            let (number, weight) = (u128::from(number), u128::from(side.weight));
            if best.is_none_or(|(_, least, held)| number * held < least * weight) {
                best = Some((index, number, weight));
            }
        }
        best.map(|(index, ..)| index)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Split;

    const NAMES: [&str; 4] = ["new", "app", "old", "test"];

    fn split(weights: &[u32]) -> Split {
        Split::new(NAMES.into_iter().zip(weights.iter().copied()))
    }

    #[test]
    fn shares_are_those_of_the_weights() {
        const KEYS: u64 = 100_000;
        let mut random = subak_base::Rng::new(7);
        let keys: Vec<u64> = (0..KEYS).map(|_| random.next_u64()).collect();
        for weights in [&[10, 90][..], &[1, 99], &[1, 2, 3, 4], &[0, 5, 5]] {
            let split = split(weights);
            let total: u32 = weights.iter().sum();
            let mut counts = [0.0; 4];
            keys.iter()
                .filter_map(|key| split.pick(*key, |_| true))
                .for_each(|side| counts[side] += 1.0);
            for (count, weight) in counts.into_iter().zip(weights) {
                let expected = KEYS as f64 * f64::from(*weight) / f64::from(total);
                // Four standard deviations.
                assert!(
                    (count - expected).abs() <= 4.0 * expected.sqrt(),
                    "{weights:?}: {counts:?}"
                );
            }
        }
    }

    #[test]
    fn from_ten_to_twenty_percent_ten_percent_move() {
        let (before, after) = (split(&[10, 90]), split(&[20, 80]));
        let mut random = subak_base::Rng::new(11);
        let mut moved = 0;
        for _ in 0..100_000 {
            let key = random.next_u64();
            match (before.pick(key, |_| true), after.pick(key, |_| true)) {
                (Some(0), Some(1)) => panic!("a client of the new side went back"),
                (Some(1), Some(0)) => moved += 1,
                _ => {}
            }
        }
        assert!((9_600..=10_400).contains(&moved), "{moved}");
    }

    proptest! {
        #[test]
        fn only_keys_to_or_from_what_changed_move(
            weights in prop::collection::vec(0_u32..1000, 2..5),
            changed in 0..4_usize,
            weight in 0_u32..1000,
            keys in prop::collection::vec(any::<u64>(), 50),
        ) {
            let changed = changed % weights.len();
            let mut other = weights.clone();
            other[changed] = weight;
            let (before, after) = (split(&weights), split(&other));
            for key in keys {
                let (from, to) = (before.pick(key, |_| true), after.pick(key, |_| true));
                let is_about_it = from == Some(changed) || to == Some(changed);
                prop_assert!(from == to || is_about_it);
                if weight >= weights[changed] {
                    prop_assert!(from == to || to == Some(changed), "a side that grows loses nobody");
                }
                // Closed, it gives its own keys to the others and takes none of theirs.
                let closed = before.pick(key, |side| side != changed);
                prop_assert!(from == Some(changed) || closed == from);
                prop_assert!(closed != Some(changed));
            }
        }
    }
}
