//! Means with the interval they lie in, by Student's distribution.
//!
//! Its distribution function has a closed form for whole degrees of freedom (Abramowitz and Stegun,
//! 26.7.3 and 26.7.4); quantiles are found by halving.

/// A mean, and the interval that holds it at some confidence.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Spread {
    pub(crate) mean: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
}

impl Spread {
    /// Of independent values; `error` is the chance that the interval misses, 0.05 for 95 %. Of one
    /// value nobody knows the spread: its interval is all numbers.
    pub(crate) fn of(values: &[f64], error: f64) -> Spread {
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count.max(1.0);
        if values.len() < 2 {
            return Spread { mean, low: f64::NEG_INFINITY, high: f64::INFINITY };
        }
        let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
        let deviation = libm::sqrt(squares / (count - 1.0) / count);
        let half = quantile(values.len() as u32 - 1, error) * deviation;
        Spread { mean, low: mean - half, high: mean + half }
    }
}

/// The value that Student's t exceeds, either way, with the chance `error`.
fn quantile(freedom: u32, error: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1e6);
    for _ in 0..200 {
        let middle = (low + high) / 2.0;
        if 1.0 - within(freedom, middle) > error {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}

/// The chance that Student's t is within ±t.
fn within(freedom: u32, t: f64) -> f64 {
    let angle = libm::atan(t / libm::sqrt(f64::from(freedom)));
    let (sine, cosine) = (libm::sin(angle), libm::cos(angle));
    let is_even = freedom.is_multiple_of(2);
    let (mut term, mut sum) = if is_even { (1.0, 1.0) } else { (cosine, cosine) };
    let mut step = if is_even { 1 } else { 2 };
    while step + 1 < freedom {
        term *= cosine * cosine * f64::from(step) / f64::from(step + 1);
        sum += term;
        step += 2;
    }
    match (is_even, freedom) {
        (true, _) => sine * sum,
        (false, 1) => 2.0 / std::f64::consts::PI * angle,
        (false, _) => 2.0 / std::f64::consts::PI * (angle + sine * sum),
    }
}

#[cfg(test)]
mod tests {
    use super::{Spread, quantile};

    #[test]
    fn quantiles_are_those_of_the_tables() {
        for (freedom, error, expected) in [
            (1, 0.05, 12.706),
            (2, 0.05, 4.303),
            (3, 0.05, 3.182),
            (4, 0.05, 2.776),
            (4, 0.01, 4.604),
            (9, 0.05, 2.262),
            (30, 0.001, 3.646),
            (120, 0.05, 1.980),
        ] {
            let found = quantile(freedom, error);
            assert!((found - expected).abs() < 0.001, "{freedom} {error}: {found}");
        }
    }

    #[test]
    fn the_interval_of_five_values() {
        let spread = Spread::of(&[1.0, 2.0, 3.0, 4.0, 5.0], 0.05);
        assert!((spread.mean - 3.0).abs() < 1e-12);
        assert!((spread.high - 3.0 - 2.776 * 0.5_f64.sqrt()).abs() < 0.001, "{spread:?}");
        assert!(Spread::of(&[1.0], 0.05).high.is_infinite());
    }
}
