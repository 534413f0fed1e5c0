//! What a run has to keep to: `p95<200ms`, `failed<1%`, `rate>1000/s`, `checks>99%`.
//!
//! | left side | is |
//! |---|---|
//! | `p50` … `p99.9` (or k6's `p(95)`), `avg`, `med`, `min`, `max` | latency, with a unit: `200ms` |
//! | `failed` | failed requests among all, as a share: `1%` or `0.01` |
//! | `checks` | checks that held among all, as a share |
//! | `rate` | answered requests per second |
//! | `not_started` | requests that were due and never started |

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use super::report::LoadReport;

/// One condition on a report.
#[derive(Clone, Debug, PartialEq)]
pub struct Threshold {
    text: String,
    quantity: Quantity,
    relation: Relation,
    /// Milliseconds, a share, or a plain number, as the quantity is.
    limit: f64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Quantity {
    Quantile(f64),
    Mean,
    Least,
    Most,
    Failed,
    Checks,
    Rate,
    NotStarted,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Relation {
    Below,
    AtMost,
    Above,
    AtLeast,
}

/// Whether a threshold was kept to, and by what.
#[derive(Clone, Debug, PartialEq)]
pub struct Kept {
    /// As it was written.
    pub threshold: String,
    /// Whether it holds.
    pub holds: bool,
    /// What was measured, with its unit.
    pub measured: String,
}

impl Threshold {
    /// Holds it against a report.
    pub fn judge(&self, report: &LoadReport) -> Kept {
        let millis = |time: Duration| time.as_secs_f64() * 1e3;
        let value = match self.quantity {
            Quantity::Quantile(share) => millis(report.latency.quantile(share)),
            Quantity::Mean => millis(report.latency.mean()),
            Quantity::Least => millis(report.latency.min()),
            Quantity::Most => millis(report.latency.max()),
            Quantity::Failed => report.failed_share(),
            Quantity::Checks => report.passed_share(),
            Quantity::Rate => report.per_second(),
            Quantity::NotStarted => report.not_started as f64,
        };
        // Without a single answer no latency is short.
        let known = !self.quantity.is_time() || report.latency.count() > 0;
        let holds = match self.relation {
            Relation::Below => value < self.limit,
            Relation::AtMost => value <= self.limit,
            Relation::Above => value > self.limit,
            Relation::AtLeast => value >= self.limit,
        };
        let measured = match self.quantity {
            quantity if quantity.is_time() && known => format!("{value:.3} ms"),
            quantity if quantity.is_time() => "no answer".to_owned(),
            Quantity::Failed | Quantity::Checks => format!("{:.3} %", value * 100.0),
            Quantity::Rate => format!("{value:.1}/s"),
            _ => value.to_string(),
        };
        Kept { threshold: self.text.clone(), holds: holds && known, measured }
    }
}

impl Quantity {
    fn is_time(self) -> bool {
        matches!(self, Quantity::Quantile(_) | Quantity::Mean | Quantity::Least | Quantity::Most)
    }
}

impl fmt::Display for Threshold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for Threshold {
    type Err = String;

    fn from_str(text: &str) -> Result<Threshold, String> {
        let at = text.find(['<', '>']).ok_or_else(|| {
            format!("{text:?} has no < or >: a threshold is p95<200ms, failed<1% or rate>1000/s")
        })?;
        let (name, rest) = text.split_at(at);
        let (relation, limit) = match (rest.strip_prefix("<="), rest.strip_prefix(">=")) {
            (Some(limit), _) => (Relation::AtMost, limit),
            (_, Some(limit)) => (Relation::AtLeast, limit),
            _ if rest.starts_with('<') => (Relation::Below, &rest[1..]),
            _ => (Relation::Above, &rest[1..]),
        };
        let quantity = quantity(name.trim())?;
        let limit = match quantity {
            quantity if quantity.is_time() => time_ms(limit.trim()),
            Quantity::Failed | Quantity::Checks => share(limit.trim()),
            _ => limit.trim().trim_end_matches("/s").parse().ok(),
        };
        let limit = limit.filter(|limit: &f64| limit.is_finite() && *limit >= 0.0);
        let limit = limit.ok_or_else(|| {
            let wanted = match quantity {
                quantity if quantity.is_time() => "a time such as 200ms or 1.5s",
                Quantity::Failed | Quantity::Checks => "a share such as 1% or 0.01",
                _ => "a number such as 1000/s",
            };
            format!("{text:?}: behind {name} stands {wanted}")
        })?;
        Ok(Threshold { text: text.to_owned(), quantity, relation, limit })
    }
}

fn quantity(name: &str) -> Result<Quantity, String> {
    let percent = name
        .strip_prefix('p')
        .map(|rest| rest.strip_prefix('(').and_then(|rest| rest.strip_suffix(')')).unwrap_or(rest));
    Ok(match (name, percent.and_then(|percent| percent.parse::<f64>().ok())) {
        (_, Some(percent)) if percent > 0.0 && percent <= 100.0 => {
            Quantity::Quantile(percent / 100.0)
        }
        ("avg" | "mean", _) => Quantity::Mean,
        ("med", _) => Quantity::Quantile(0.5),
        ("min", _) => Quantity::Least,
        ("max", _) => Quantity::Most,
        ("failed", _) => Quantity::Failed,
        ("checks", _) => Quantity::Checks,
        ("rate", _) => Quantity::Rate,
        ("not_started", _) => Quantity::NotStarted,
        _ => {
            return Err(format!(
                "there is no {name:?}: p50 to p99.99, avg, med, min, max, failed, checks, rate, \
                 not_started"
            ));
        }
    })
}

fn time_ms(text: &str) -> Option<f64> {
    let units = [("us", 1e-3), ("µs", 1e-3), ("ms", 1.0), ("s", 1e3)];
    let (number, unit) =
        units.iter().find_map(|(unit, ms)| Some((text.strip_suffix(unit)?, *ms)))?;
    Some(number.trim().parse::<f64>().ok()? * unit)
}

fn share(text: &str) -> Option<f64> {
    match text.strip_suffix('%') {
        Some(percent) => Some(percent.trim().parse::<f64>().ok()? / 100.0),
        None => text.parse().ok(),
    }
}
