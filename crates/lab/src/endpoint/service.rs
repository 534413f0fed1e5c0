//! How long an endpoint takes to answer: distributions of service time, drawn from a seed.
//!
//! | written | is | mean |
//! |---|---|---|
//! | `constant:5ms` or `5ms` | always as long | 5 ms |
//! | `exponential:5ms` | exponentially distributed | 5 ms |
//! | `lognormal:5ms,1.2` | log-normal with this mean and the σ of its logarithm | 5 ms |
//! | `pareto:2ms,1.5` | Pareto: never below 2 ms, with the tail x^−1.5 | α·min/(α−1), here 6 ms |

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use subak_base::Rng;

use crate::load::{exponential, uniform};

/// No draw is longer.
pub const LONGEST: Duration = Duration::from_secs(600);

/// A distribution of service times.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Service {
    /// Always as long.
    Constant(Duration),
    /// With this mean.
    Exponential(Duration),
    /// With this mean, and the standard deviation of its logarithm.
    LogNormal(Duration, f64),
    /// With this least value, and the exponent of its tail.
    Pareto(Duration, f64),
}

impl Service {
    /// One draw.
    pub(super) fn draw(&self, rng: &mut Rng) -> Duration {
        let drawn = match *self {
            Service::Constant(time) => return time.min(LONGEST),
            Service::Exponential(mean) => mean.as_secs_f64() * exponential(rng),
            Service::LogNormal(mean, sigma) => {
                // Box and Muller; the mean of exp(σz) is exp(σ²/2).
                let angle = std::f64::consts::TAU * uniform(rng);
                let normal = (2.0 * exponential(rng)).sqrt() * angle.cos();
                mean.as_secs_f64() * (sigma * normal - sigma * sigma / 2.0).exp()
            }
            Service::Pareto(least, alpha) => {
                least.as_secs_f64() * (1.0 - uniform(rng)).powf(-1.0 / alpha)
            }
        };
        Duration::from_secs_f64(drawn.clamp(0.0, LONGEST.as_secs_f64()))
    }
}

impl fmt::Display for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Service::Constant(time) => write!(f, "constant:{time:?}"),
            Service::Exponential(mean) => write!(f, "exponential:{mean:?}"),
            Service::LogNormal(mean, sigma) => write!(f, "lognormal:{mean:?},{sigma}"),
            Service::Pareto(least, alpha) => write!(f, "pareto:{least:?},{alpha}"),
        }
    }
}

impl FromStr for Service {
    type Err = String;

    fn from_str(text: &str) -> Result<Service, String> {
        let (name, rest) = text.split_once(':').unwrap_or(("constant", text));
        let (first, second) = rest.split_once(',').unwrap_or((rest, ""));
        let wrong = || {
            format!(
                "{text:?} is no service time: constant:5ms, exponential:5ms, lognormal:5ms,1.2 or \
                 pareto:2ms,1.5"
            )
        };
        let time = time(first).filter(|time| *time <= LONGEST).ok_or_else(wrong)?;
        let number = second.parse::<f64>().ok().filter(|n| n.is_finite() && *n > 0.0);
        match (name, number, second) {
            ("constant", None, "") => Ok(Service::Constant(time)),
            ("exponential", None, "") => Ok(Service::Exponential(time)),
            ("lognormal", Some(sigma), _) if sigma <= 5.0 => Ok(Service::LogNormal(time, sigma)),
            ("pareto", Some(alpha), _) => Ok(Service::Pareto(time, alpha)),
            _ => Err(wrong()),
        }
    }
}

/// `5ms`, `200us`, `1.5s`.
fn time(text: &str) -> Option<Duration> {
    let units = [("us", 1e-6), ("µs", 1e-6), ("ms", 1e-3), ("s", 1.0)];
    let (number, unit) =
        units.iter().find_map(|(unit, seconds)| Some((text.strip_suffix(unit)?, *seconds)))?;
    let seconds = number.trim().parse::<f64>().ok()? * unit;
    Duration::try_from_secs_f64(seconds).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_are_what_they_are_said_to_be() {
        for (text, mean_ms, within) in [
            ("5ms", 5.0, 1e-9),
            ("exponential:5ms", 5.0, 0.02),
            ("lognormal:5ms,1", 5.0, 0.03),
            ("pareto:2ms,3", 3.0, 0.03),
        ] {
            let service: Service = text.parse().expect(text);
            let mut rng = Rng::new(11);
            let draws = (0..100_000).map(|_| service.draw(&mut rng).as_secs_f64() * 1e3);
            let mean = draws.sum::<f64>() / 1e5;
            assert!((mean / mean_ms - 1.0).abs() <= within, "{text}: {mean} ms");
        }
    }

    #[test]
    fn they_are_read_and_written_alike() {
        for text in ["constant:5ms", "exponential:200µs", "lognormal:5ms,1.2", "pareto:2ms,1.5"] {
            assert_eq!(text.parse::<Service>().expect(text).to_string(), text);
        }
        for wrong in
            ["", "5", "uniform:5ms", "pareto:2ms", "pareto:2ms,0", "lognormal:5ms,-1", "1h"]
        {
            wrong.parse::<Service>().expect_err(wrong);
        }
    }
}
