//! The mean of a few runs, and how far it can be trusted: Student's t interval of 95 %.

/// A mean with its interval.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Spread {
    /// The mean.
    pub mean: f64,
    /// The interval's lower end.
    pub low: f64,
    /// The interval's upper end.
    pub high: f64,
}

/// Quantiles of Student's t for 97.5 %, by degrees of freedom from 1 to 30.
const T: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
    2.052, 2.048, 2.045, 2.042,
];

impl Spread {
    /// Of these values; none without any, no interval (from −∞ to ∞) of one alone.
    pub fn of(values: &[f64]) -> Option<Spread> {
        if values.is_empty() {
            return None;
        }
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        if values.len() == 1 {
            return Some(Spread { mean, low: f64::NEG_INFINITY, high: f64::INFINITY });
        }
        let squares = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
        let deviation = (squares / (count - 1.0)).sqrt();
        let t = T.get(values.len() - 2).copied().unwrap_or(1.96);
        let half = t * deviation / count.sqrt();
        Some(Spread { mean, low: mean - half, high: mean + half })
    }

    /// Of the differences of two lists, place by place: runs of one place had the same seed.
    pub fn of_differences(one: &[f64], other: &[f64]) -> Option<Spread> {
        let differences: Vec<f64> = one.iter().zip(other).map(|(one, other)| one - other).collect();
        Spread::of(&differences)
    }

    /// Whether zero is outside.
    pub fn is_not_zero(&self) -> bool {
        self.low > 0.0 || self.high < 0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_is_students() {
        let spread = Spread::of(&[9.0, 10.0, 11.0]).unwrap();
        assert_eq!(spread.mean, 10.0);
        assert!((spread.high - 10.0 - 4.303 / 3f64.sqrt()).abs() < 1e-9);
        assert!(
            !Spread::of_differences(&[9.0, 10.0, 11.0], &[9.5, 9.5, 11.0]).unwrap().is_not_zero()
        );
        assert!(
            Spread::of_differences(&[9.0, 10.0, 11.0], &[5.0, 6.1, 7.0]).unwrap().is_not_zero()
        );
        assert_eq!(Spread::of(&[]), None);
    }
}
