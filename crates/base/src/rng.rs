//! A small seeded generator (SplitMix64). Not for secrets.
//!
//! Source: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014.

/// A stream of 64-bit numbers, a pure function of its seed.
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// The stream that belongs to `seed`.
    pub const fn new(seed: u64) -> Rng {
        Rng(seed)
    }

    /// The next number, uniform over all 64-bit values.
    pub const fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `bound` (0 when `bound` is 0), by multiplication; bias below 2⁻³² for bounds
    /// up to 2³².
    pub const fn below(&mut self, bound: u64) -> u64 {
        ((self.next_u64() as u128 * bound as u128) >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::Rng;

    #[test]
    fn equals_the_published_sequence() {
        // First outputs of the reference implementation for seed 1234567.
        let mut rng = Rng::new(1_234_567);
        assert_eq!(rng.next_u64(), 6_457_827_717_110_365_317);
        assert_eq!(rng.next_u64(), 3_203_168_211_198_807_973);
        assert_eq!(rng.next_u64(), 9_817_491_932_198_370_423);
    }

    #[test]
    fn stays_below_its_bound() {
        let mut rng = Rng::new(7);
        for bound in [0, 1, 2, 3, 1000, u64::MAX] {
            for _ in 0..100 {
                let drawn = rng.below(bound);
                assert!(drawn < bound || (bound == 0 && drawn == 0));
            }
        }
    }
}
