//! The number a pick compares, for whoever explains a pick.

use std::fmt;

/// What a pick compares of one endpoint: `amount` ÷ `per`, in `unit`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Score {
    /// The numerator.
    pub amount: u128,
    /// The denominator: a weight, or the unit's fixed point; never 0.
    pub per: u128,
    /// What it counts, and which way is better: `requests in flight by weight, fewest first`.
    pub unit: &'static str,
}

impl Score {
    /// A score that is a whole number.
    pub(crate) fn whole(amount: u64, unit: &'static str) -> Score {
        Score { amount: u128::from(amount), per: 1, unit }
    }
}

/// In decimals, rounded down: `1.500 requests in flight by weight, fewest first`.
impl fmt::Display for Score {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, rest) = (self.amount / self.per, self.amount % self.per);
        match rest.saturating_mul(1000) / self.per {
            0 if rest == 0 => write!(f, "{whole} {}", self.unit),
            thousandths => write!(f, "{whole}.{thousandths:03} {}", self.unit),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Score;

    #[test]
    fn shows_whole_numbers_and_fractions() {
        let score = |amount, per| Score { amount, per, unit: "requests" }.to_string();
        assert_eq!(score(3, 1), "3 requests");
        assert_eq!(score(3, 2), "1.500 requests");
        assert_eq!(score(2, 3), "0.666 requests");
        assert_eq!(score(1, 10_000), "0.000 requests");
    }
}
