//! A share between nothing and all, in parts per million.

/// 0 to 1,000,000 parts per million. Fine enough for any share that is measured, and the product of
/// two of them fits a `u64` a million times over.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Ppm(u32);

impl Ppm {
    /// Nothing.
    pub const ZERO: Ppm = Ppm(0);
    /// All of it.
    pub const ONE: Ppm = Ppm(1_000_000);

    /// This many parts per million; none above 1,000,000.
    pub const fn new(parts: u32) -> Option<Ppm> {
        if parts <= Ppm::ONE.0 { Some(Ppm(parts)) } else { None }
    }

    /// This many parts per million, at most all.
    pub const fn saturating(parts: u64) -> Ppm {
        if parts < Ppm::ONE.0 as u64 { Ppm(parts as u32) } else { Ppm::ONE }
    }

    /// `part` of `whole`, halves rounded up, at most all; nothing of nothing is 0.
    pub fn of(part: u64, whole: u64) -> Ppm {
        let (part, whole) = (u128::from(part.min(whole)), u128::from(whole));
        let parts = (part * u128::from(Ppm::ONE.0) + whole / 2).checked_div(whole);
        Ppm(parts.unwrap_or(0) as u32)
    }

    /// The parts per million.
    pub const fn get(self) -> u32 {
        self.0
    }

    /// How far two shares are apart.
    pub const fn distance(self, other: Ppm) -> Ppm {
        Ppm(self.0.abs_diff(other.0))
    }
}

#[cfg(test)]
mod tests {
    use super::Ppm;

    #[test]
    fn shares_are_rounded_and_never_more_than_all() {
        for (part, whole, parts) in [
            (0, 0, 0),
            (1, 0, 0),
            (0, 7, 0),
            (1, 3, 333_333),
            (2, 3, 666_667),
            (1, 2_000_000, 1),
            (1, 2_000_001, 0),
            (7, 7, 1_000_000),
            (8, 7, 1_000_000),
            (u64::MAX, u64::MAX, 1_000_000),
            (u64::MAX / 2, u64::MAX, 500_000),
        ] {
            assert_eq!(Ppm::of(part, whole).get(), parts, "{part} of {whole}");
        }
        assert_eq!(Ppm::new(1_000_001), None);
        assert_eq!(Ppm::saturating(u64::MAX), Ppm::ONE);
        assert_eq!(Ppm::saturating(999_999).get(), 999_999);
    }
}
