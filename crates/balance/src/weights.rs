//! How does a configured weight become the weight in force? A product of layers.
//!
//! | layer | from | range |
//! |---|---|---|
//! | base | the operator's value if one is set, else the configured one | 0 to 65,535 |
//! | weigher | what the endpoint says of itself | [`Factor`], 1/64 to 64 |
//! | ramp | slow start | [`Factor`], 1/64 to 1 |
//!
//! weight in force = base · weigher · ramp, relative to the others of the pool. Products are kept
//! in 1/1024 and made whole numbers last: divided by their greatest common divisor and, where the
//! largest is still above 65,535, scaled down to that and rounded, to at least 1. Base 0 stays 0.
//! Where every factor is 1 the bases come out as they are.
//!
//! Factors are relative to the pool, so an endpoint that is alone takes everything whatever its own.

use std::fmt;

use subak_base::Weight;

/// What a weight is multiplied with, in 1/1024: from 1/64 to 64.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Factor(u32);

impl Factor {
    /// Changes nothing.
    pub const NEUTRAL: Factor = Factor(Factor::UNIT);
    /// The smallest.
    pub const MIN: Factor = Factor(Factor::UNIT / 64);
    /// The largest.
    pub const MAX: Factor = Factor(Factor::UNIT * 64);
    /// A factor of 1, in the fixed point.
    pub const UNIT: u32 = 1024;

    /// The factor of so many 1/1024, brought within the range.
    pub const fn from_1024ths(value: u64) -> Factor {
        if value < Factor::MIN.0 as u64 {
            Factor::MIN
        } else if value > Factor::MAX.0 as u64 {
            Factor::MAX
        } else {
            Factor(value as u32)
        }
    }

    /// `over` ÷ `under`, rounded to the nearest and brought within the range; 1 where `under` is 0.
    pub const fn ratio(over: u64, under: u64) -> Factor {
        if under == 0 {
            return Factor::NEUTRAL;
        }
        let value = (over as u128 * Factor::UNIT as u128 + under as u128 / 2) / under as u128;
        Factor::from_1024ths(if value > u64::MAX as u128 { u64::MAX } else { value as u64 })
    }

    /// In 1/1024.
    pub const fn get(self) -> u32 {
        self.0
    }
}

impl Default for Factor {
    fn default() -> Factor {
        Factor::NEUTRAL
    }
}

/// In decimals: `0.250`.
impl fmt::Display for Factor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let thousandths = (u64::from(self.0) * 1000 + 512) / 1024;
        write!(f, "{}.{:03}", thousandths / 1000, thousandths % 1000)
    }
}

/// What the weight of one endpoint is made of.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Layers {
    /// As the configuration has it.
    pub configured: Weight,
    /// What the operator has set instead, if anything.
    pub operator: Option<Weight>,
    /// What a weigher makes of the endpoint's reports.
    pub weigher: Factor,
    /// How far slow start has come; not above 1.
    pub ramp: Factor,
}

impl Layers {
    /// The whole number that the factors apply to.
    pub fn base(&self) -> Weight {
        self.operator.unwrap_or(self.configured)
    }

    /// Whether the base is what is in force.
    pub fn is_neutral(&self) -> bool {
        self.weigher == Factor::NEUTRAL && self.ramp == Factor::NEUTRAL
    }

    /// The product, in 1/1024; below 2⁴³.
    fn product(&self) -> u64 {
        let factor = u64::from(self.weigher.0) * u64::from(self.ramp.0);
        let product = self.base().get() * factor / u64::from(Factor::UNIT);
        product.max(u64::from(self.base() > Weight::ZERO))
    }
}

/// The weights in force of a whole pool, in its order.
pub fn in_force(pool: &[Layers]) -> Vec<Weight> {
    if pool.iter().all(Layers::is_neutral) {
        return pool.iter().map(Layers::base).collect();
    }
    let products: Vec<u64> = pool.iter().map(Layers::product).collect();
    let divisor = products.iter().copied().fold(0, gcd).max(1);
    let most = products.iter().copied().max().unwrap_or(0) / divisor;
    let limit = u64::from(u16::MAX);
    let scale = |product: u64| {
        let exact = product / divisor;
        let scaled = if most <= limit { exact } else { (exact * limit + most / 2) / most };
        Weight(scaled.max(u64::from(product > 0)) as u16)
    };
    products.into_iter().map(scale).collect()
}

/// The greatest common divisor; that of 0 and a number is the number.
pub(crate) fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::{Factor, Layers, in_force};
    use proptest::prelude::*;
    use subak_base::Weight;

    fn layers(configured: u16, weigher: u64, ramp: u64) -> Layers {
        let (weigher, ramp) = (Factor::from_1024ths(weigher), Factor::from_1024ths(ramp));
        Layers { configured: Weight(configured), operator: None, weigher, ramp }
    }

    fn weights(pool: &[Layers]) -> Vec<u16> {
        in_force(pool).into_iter().map(|weight| weight.0).collect()
    }

    #[test]
    fn factors_of_one_change_nothing() {
        let pool = [10, 5, 0, 65_535].map(|weight| layers(weight, 1024, 1024));
        assert_eq!(weights(&pool), [10, 5, 0, 65_535]);
    }

    #[test]
    fn factors_shift_the_proportion() {
        let pool = [layers(1, 1536, 1024), layers(1, 512, 1024)];
        assert_eq!(weights(&pool), [3, 1]);
        let pool = [layers(2, 1024, 1024), layers(1, 1024, 512), layers(0, 2048, 1024)];
        assert_eq!(weights(&pool), [4, 1, 0]);
    }

    #[test]
    fn the_operators_weight_takes_the_place_of_the_configured_one() {
        let set = Layers { operator: Some(Weight(7)), ..layers(1, 1024, 1024) };
        assert_eq!(weights(&[set, layers(2, 1024, 1024)]), [7, 2]);
        let off = Layers { operator: Some(Weight::ZERO), ..layers(9, 4096, 1024) };
        assert_eq!(weights(&[off, layers(2, 1024, 1024)]), [0, 1]);
    }

    #[test]
    fn nobody_with_a_weight_is_rounded_down_to_none() {
        let pool = [layers(65_535, 65_536, 1024), layers(1, 16, 16)];
        assert_eq!(weights(&pool), [65_535, 1]);
    }

    #[test]
    fn factors_stay_within_their_range() {
        assert_eq!(Factor::ratio(1, 1_000), Factor::MIN);
        assert_eq!(Factor::ratio(1_000, 1), Factor::MAX);
        assert_eq!(Factor::ratio(u64::MAX, 1), Factor::MAX);
        assert_eq!(Factor::ratio(7, 0), Factor::NEUTRAL);
        assert_eq!(Factor::ratio(3, 2).get(), 1536);
        assert_eq!(Factor::ratio(1, 4).to_string(), "0.250");
        assert_eq!(Factor::MAX.to_string(), "64.000");
    }

    proptest! {
        #[test]
        fn proportions_are_kept_to_one_part_in_65535(
            pool in prop::collection::vec((0_u16..=65_535, 16_u64..=65_536, 16_u64..=1024), 1..20),
        ) {
            let pool: Vec<Layers> = pool.into_iter().map(|(w, f, r)| layers(w, f, r)).collect();
            let exact = |one: &Layers| {
                f64::from(one.base().0) * f64::from(one.weigher.0) * f64::from(one.ramp.0)
            };
            let most = pool.iter().map(exact).fold(0.0, f64::max);
            let found = in_force(&pool);
            let largest = f64::from(found.iter().map(|weight| weight.0).max().unwrap_or(0));
            for (one, weight) in pool.iter().zip(&found) {
                prop_assert_eq!(one.base() == Weight::ZERO, *weight == Weight::ZERO);
                if most > 0.0 {
                    let due = exact(one) / most * largest;
                    // Half a unit of the scale, and what is lost below 1/1024 of a product.
                    let slack = 1.0 + largest * 1024.0 * 1024.0 / most;
                    prop_assert!((f64::from(weight.0) - due).abs() <= slack, "{weight:?} {due}");
                }
            }
        }
    }
}
