//! The standard deviation of whole numbers, of the pool as a whole and not of a sample.

/// Sums, so that no mean is rounded: σ² = (n·Σx² − (Σx)²) ÷ n².
#[derive(Default)]
pub(super) struct Spread {
    count: u128,
    sum: u128,
    squares: u128,
}

impl Spread {
    /// Values are below 2⁴⁰ (L ÷ C in ppm, with C at least 1 ppm): with up to 2²⁰ of them, n·Σx²
    /// stays below 2¹²⁰.
    pub(super) fn add(&mut self, value: u64) {
        let value = u128::from(value);
        self.count += 1;
        self.sum += value;
        self.squares += value * value;
    }

    /// Rounded down; none without values.
    pub(super) fn deviation(&self) -> Option<u64> {
        let root = (self.count * self.squares - self.sum * self.sum).isqrt();
        Some(root.checked_div(self.count)? as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::Spread;

    fn deviation(values: &[u64]) -> Option<u64> {
        let mut spread = Spread::default();
        values.iter().for_each(|value| spread.add(*value));
        spread.deviation()
    }

    #[test]
    fn deviations_are_exact_up_to_the_largest_values() {
        assert_eq!(deviation(&[]), None);
        assert_eq!(deviation(&[7]), Some(0));
        assert_eq!(deviation(&[2, 4, 4, 4, 5, 5, 7, 9]), Some(2));
        let most = 1_000_000_000_000;
        assert_eq!(deviation(&[0, most]), Some(most / 2));
        assert_eq!(deviation(&vec![most; 1 << 16]), Some(0));
    }
}
