//! Random times in whole numbers.

use std::time::Duration;

use subak_base::Rng;

use crate::scenario::Service;

/// An exponentially distributed number of nanoseconds.
///
/// By comparisons alone, so that every machine gets the same: of uniform numbers drawn one after
/// the other, let n be the place of the first that is larger than the one before it. If n is even,
/// the first number is the fraction, and the rounds that went before with odd n are the whole part.
/// (Given the first number x, n is even with probability e⁻ˣ.) Source: von Neumann, "Various
/// techniques used in connection with random digits", 1951.
pub(crate) fn exponential(mean: Duration, rng: &mut Rng) -> u64 {
    let mean = u128::from(nanos(mean));
    let mut whole = 0;
    loop {
        let first = rng.next_u64();
        let (mut last, mut place) = (first, 1_u32);
        let n = loop {
            let next = rng.next_u64();
            place += 1;
            if next > last {
                break place;
            }
            last = next;
        };
        if n.is_multiple_of(2) {
            let fraction = (mean * u128::from(first)) >> 64;
            return u64::try_from(mean * whole + fraction).unwrap_or(u64::MAX);
        }
        whole += 1;
    }
}

pub(crate) fn service(service: Service, rng: &mut Rng) -> u64 {
    match service {
        Service::Constant(time) => nanos(time),
        Service::Exponential(mean) => exponential(mean, rng),
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::exponential;
    use std::time::Duration;
    use subak_base::Rng;

    #[test]
    fn has_the_quantiles_of_the_exponential_distribution() {
        let mut rng = Rng::new(1);
        let count = 200_000;
        let mut drawn: Vec<_> = (0..count)
            .map(|_| exponential(Duration::from_secs(1), &mut rng) as f64 / 1e9)
            .collect();
        drawn.sort_by(f64::total_cmp);
        for percent in [1, 10, 25, 50, 75, 90, 99] {
            let share = f64::from(percent) / 100.0;
            let (found, exact) = (drawn[count / 100 * percent as usize], -(1.0 - share).ln());
            // Four standard deviations of a sample quantile.
            let deviation = (share / (1.0 - share) / count as f64).sqrt();
            assert!((found - exact).abs() < 4.0 * deviation, "{percent} %: {found} for {exact}");
        }
        let mean = drawn.iter().sum::<f64>() / count as f64;
        assert!((mean - 1.0).abs() < 0.01, "{mean}");
    }
}
