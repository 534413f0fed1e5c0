//! The relative share of new work an endpoint takes.

/// A relative weight, 0..=65535. Zero takes no new picks.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Weight(pub u16);

impl Weight {
    /// Takes no new picks; sticky sessions still reach it.
    pub const ZERO: Weight = Weight(0);
    /// What an endpoint has when nothing is said.
    pub const ONE: Weight = Weight(1);

    /// The weight as a number that sums do not overflow.
    pub const fn get(self) -> u64 {
        self.0 as u64
    }
}

impl Default for Weight {
    fn default() -> Weight {
        Weight::ONE
    }
}
