//! Random times. Floating point, but of operations alone that every machine does alike: those of IEEE
//! 754, and logarithm, power and cosine in software.

use subak_base::Rng;

use crate::histogram::nanos;
use crate::scenario::Service;

/// Uniform over (0, 1], in steps of 2⁻⁵³.
#[inline]
fn unit(random: &mut Rng) -> f64 {
    ((random.next_u64() >> 11) + 1) as f64 * (1.0 / (1_u64 << 53) as f64)
}

/// Exponential with mean 1.
#[inline]
pub(crate) fn exponential(random: &mut Rng) -> f64 {
    -libm::log(unit(random))
}

/// Normal with mean 0 and deviation 1. Source: Box and Muller, "A note on the generation of random
/// normal deviates", 1958.
fn normal(random: &mut Rng) -> f64 {
    let (radius, angle) = (unit(random), unit(random));
    (-2.0 * libm::log(radius)).sqrt() * libm::cos(std::f64::consts::TAU * angle)
}

/// How long an endpoint works on a request, in nanoseconds; `traced_ns` is what the trace says.
#[inline]
pub(crate) fn service_ns(service: &Service, traced_ns: u64, random: &mut Rng) -> u64 {
    match service {
        Service::Constant(time) => nanos(*time),
        Service::Exponential(mean) => (nanos(*mean) as f64 * exponential(random)) as u64,
        Service::LogNormal { median, sigma } => {
            (nanos(*median) as f64 * libm::exp(sigma * normal(random))) as u64
        }
        Service::Pareto { least, alpha } => {
            (nanos(*least) as f64 * libm::exp(exponential(random) / alpha)) as u64
        }
        Service::Histogram(steps) => steps.at(random.next_u64()),
        Service::AsTraced { per_mille } => scaled(traced_ns, *per_mille),
    }
}

/// So many thousandths of it.
#[inline]
pub(crate) fn scaled(time_ns: u64, per_mille: u32) -> u64 {
    match per_mille {
        1000 => time_ns,
        _ => (u128::from(time_ns) * u128::from(per_mille) / 1000).min(u128::from(u64::MAX)) as u64,
    }
}

/// True so many times of a thousand.
#[inline]
pub(crate) fn happens(per_mille: u32, random: &mut Rng) -> bool {
    per_mille > 0 && random.below(1000) < u64::from(per_mille)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    /// Draws a million and compares quantiles with those of the distribution, by four standard
    /// deviations of a sample quantile (density by difference).
    fn judge(service: &Service, quantile: impl Fn(f64) -> f64) {
        let mut random = Rng::new(1);
        let count = 400_000;
        let mut drawn: Vec<u64> = (0..count).map(|_| service_ns(service, 0, &mut random)).collect();
        drawn.sort_unstable();
        for percent in [1, 10, 25, 50, 75, 90, 99] {
            let share = f64::from(percent) / 100.0;
            let found = drawn[count / 100 * percent as usize] as f64 / 1e9;
            let slope = (quantile(share + 1e-4) - quantile(share - 1e-4)) / 2e-4;
            let deviation = (share * (1.0 - share) / count as f64).sqrt() * slope;
            let exact = quantile(share);
            assert!(
                (found - exact).abs() < 4.0 * deviation,
                "{service:?} {percent}: {found} {exact}"
            );
        }
    }

    #[test]
    fn times_have_the_quantiles_of_their_distributions() {
        let second = Duration::from_secs(1);
        judge(&Service::Exponential(second), |share| -(1.0 - share).ln());
        judge(&Service::Pareto { least: second, alpha: 2.5 }, |share| (1.0 - share).powf(-0.4));
        // Quantiles of the normal distribution from its table.
        let normal = |share: f64| {
            let (mut low, mut high) = (-8.0_f64, 8.0_f64);
            for _ in 0..80 {
                let middle = (low + high) / 2.0;
                let below = 0.5 * libm::erfc(-middle / 2.0_f64.sqrt());
                if below < share { low = middle } else { high = middle }
            }
            low
        };
        let sigma = 0.7;
        judge(&Service::LogNormal { median: second, sigma }, |share| (sigma * normal(share)).exp());
    }

    #[test]
    fn what_is_fixed_is_not_drawn() {
        let mut random = Rng::new(1);
        let ms = Duration::from_millis(3);
        assert_eq!(service_ns(&Service::Constant(ms), 7, &mut random), 3_000_000);
        assert_eq!(service_ns(&Service::AsTraced { per_mille: 1500 }, 10, &mut random), 15);
        assert_eq!(random.next_u64(), Rng::new(1).next_u64());
    }
}
