//! The few statistics that verdicts rest on: means with their intervals, chi-square, Jain's index.

/// Jain's fairness index of hits, (Σx)² ÷ (n·Σx²): 1 when all are alike, 1/n when one has
/// everything. 1 for nobody and for nothing.
pub fn jain(hits: &[u64]) -> f64 {
    let sum: f64 = hits.iter().map(|x| *x as f64).sum();
    let squares: f64 = hits.iter().map(|x| (*x as f64).powi(2)).sum();
    if squares == 0.0 { 1.0 } else { sum * sum / (hits.len() as f64 * squares) }
}

/// The index that is the best possible for this many whole requests over this many servers.
pub fn best_jain(requests: u64, servers: u64) -> f64 {
    let (each, rest) = (requests / servers.max(1), requests % servers.max(1));
    let hits: Vec<u64> = (0..servers).map(|index| each + u64::from(index < rest)).collect();
    jain(&hits)
}

/// How far counts are from shares that are proportional to `weights`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ChiSquare {
    /// Σ (seen − expected)² ÷ expected.
    pub statistic: f64,
    /// Categories of a weight above 0, less one.
    pub degrees: u32,
    /// How likely it is to see this much or more by chance alone.
    pub chance: f64,
}

impl ChiSquare {
    /// Of these counts, as many as there are weights.
    pub fn of(counts: &[u64], weights: &[u64]) -> ChiSquare {
        let total: f64 = counts.iter().map(|count| *count as f64).sum();
        let sum: f64 = weights.iter().map(|weight| *weight as f64).sum();
        let pairs = counts.iter().zip(weights).filter(|(_, weight)| **weight > 0);
        let (mut statistic, mut categories) = (0.0, 0_u32);
        for (count, weight) in pairs {
            let expected = total * *weight as f64 / sum;
            if expected > 0.0 {
                statistic += (*count as f64 - expected).powi(2) / expected;
            }
            categories += 1;
        }
        let degrees = categories.saturating_sub(1);
        ChiSquare { statistic, degrees, chance: upper_tail(statistic, degrees) }
    }

    /// Whether chance alone explains it, at one in twenty.
    pub fn is_even(&self) -> bool {
        self.chance >= 0.05
    }
}

/// The chi-square distribution's upper tail: Q(degrees/2, statistic/2).
fn upper_tail(statistic: f64, degrees: u32) -> f64 {
    if degrees == 0 || statistic <= 0.0 {
        return 1.0;
    }
    let half = statistic / 2.0;
    // Q(1/2, x) = erfc(√x) and Q(1, x) = e^-x; then Q(a + 1, x) = Q(a, x) + x^a e^-x ÷ Γ(a + 1).
    let is_odd = degrees % 2 == 1;
    let (mut tail, mut a) = if is_odd { (erfc(half.sqrt()), 0.5) } else { ((-half).exp(), 1.0) };
    let mut term = if is_odd {
        (half / std::f64::consts::PI).sqrt() * 2.0 * (-half).exp()
    } else {
        half * (-half).exp()
    };
    while a + 0.25 < f64::from(degrees) / 2.0 {
        tail += term;
        a += 1.0;
        term *= half / a;
    }
    tail.min(1.0)
}

/// The complementary error function for x ≥ 0, to within 1.2·10⁻⁷ (Numerical Recipes' Chebyshev
/// fit).
fn erfc(x: f64) -> f64 {
    const FIT: [f64; 10] = [
        -1.265_512_23,
        1.000_023_68,
        0.374_091_96,
        0.096_784_18,
        -0.186_288_06,
        0.278_868_07,
        -1.135_203_98,
        1.488_515_87,
        -0.822_152_23,
        0.170_872_77,
    ];
    let t = 1.0 / (1.0 + 0.5 * x);
    let polynomial = FIT.iter().rev().fold(0.0, |sum, factor| sum * t + factor);
    t * (-x * x + polynomial).exp()
}

/// A mean and the 95 % interval it is known to.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Mean {
    /// The mean.
    pub value: f64,
    /// The interval by Student's t; none of a single value.
    pub interval: Option<(f64, f64)>,
}

impl Mean {
    /// Of these values; none when there are none.
    pub fn of(values: &[f64]) -> Option<Mean> {
        let count = values.len();
        if count == 0 {
            return None;
        }
        let value = values.iter().sum::<f64>() / count as f64;
        if count == 1 {
            return Some(Mean { value, interval: None });
        }
        let squares: f64 = values.iter().map(|each| (each - value).powi(2)).sum();
        let error = (squares / (count - 1) as f64 / count as f64).sqrt();
        let reach = student(count - 1) * error;
        Some(Mean { value, interval: Some((value - reach, value + reach)) })
    }

    /// Whether it is known to be below the other: both were measured repeatedly and the intervals
    /// do not touch.
    pub fn is_below(&self, other: &Mean) -> bool {
        match (self.interval, other.interval) {
            (Some((_, high)), Some((low, _))) => high < low,
            _ => false,
        }
    }
}

/// The 97.5 % quantile of Student's t.
fn student(degrees: usize) -> f64 {
    const SMALL: [f64; 10] =
        [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228];
    match degrees {
        0 => f64::INFINITY,
        1..=10 => SMALL[degrees - 1],
        // The first terms of its expansion; exact to 0.002 from 11 on.
        _ => 1.95996 + 2.3722 / degrees as f64 + 2.8225 / (degrees as f64).powi(2),
    }
}

/// The value in the middle; of an even number of values the lower of the two.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len().checked_sub(1)? / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::{ChiSquare, Mean, best_jain, jain, median, student};

    #[test]
    fn twenty_thousand_over_three_cannot_be_exactly_even() {
        let index = best_jain(20_000, 3);
        assert!(index < 1.0);
        assert_eq!(format!("{index:.9}"), "0.999999995");
        assert_eq!(best_jain(60_000, 3), 1.0);
    }

    #[test]
    fn jain_of_the_extremes() {
        assert_eq!(jain(&[7, 7, 7]), 1.0);
        assert!((jain(&[9, 0, 0]) - 1.0 / 3.0).abs() < 1e-12);
        assert_eq!(jain(&[]), 1.0);
    }

    #[test]
    fn chi_square_has_the_tails_of_the_tables() {
        // Critical values at 0.05 for 1 to 5 degrees.
        for (degrees, critical) in [(1, 3.841), (2, 5.991), (3, 7.815), (4, 9.488), (5, 11.070)] {
            let tail = super::upper_tail(critical, degrees);
            assert!((tail - 0.05).abs() < 1e-4, "{degrees}: {tail}");
        }
        let skewed = ChiSquare::of(&[478, 0, 522], &[1, 1, 1]);
        assert!(skewed.chance < 1e-9 && !skewed.is_even());
        let even = ChiSquare::of(&[333, 334, 333], &[1, 1, 1]);
        assert!(even.is_even() && even.degrees == 2);
        assert_eq!(ChiSquare::of(&[50, 25, 25], &[2, 1, 1]).statistic, 0.0);
    }

    #[test]
    fn a_mean_is_known_to_its_interval_and_a_single_value_to_none() {
        let mean = Mean::of(&[9.0, 10.0, 11.0]).unwrap();
        let (low, high) = mean.interval.unwrap();
        assert_eq!(mean.value, 10.0);
        assert!((high - 12.484).abs() < 0.001 && (low - 7.516).abs() < 0.001, "{low} to {high}");
        assert!(!mean.is_below(&Mean::of(&[13.0]).unwrap()));
        assert!(mean.is_below(&Mean::of(&[20.0, 20.5, 21.0]).unwrap()));
        assert_eq!(Mean::of(&[]), None);
        assert!((student(29) - 2.045).abs() < 0.002 && (student(11) - 2.201).abs() < 0.003);
    }

    #[test]
    fn the_middle_of_some() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[]), None);
    }
}
