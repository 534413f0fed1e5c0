//! What a scenario asserts: `p95 of peak_ewma < 50ms`, `failed of each < 1%`,
//! `p95 of least_connections < p95 of round_robin`.
//!
//! An assertion holds when the whole 95 % interval is on the asserted side, fails when all of it is on
//! the other, and cannot be told otherwise. Two algorithms are compared seed by seed.

use subak_report::{Verdict, Word};

use crate::measured::{Measured, On, Outcome, Trial};
use crate::model::{Algorithm, Scenario};
use crate::spread::Spread;
use crate::words;

/// Something that a run has a number for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Metric {
    /// Mean latency, ms.
    Mean,
    /// Median latency, ms.
    P50,
    /// 95 % of latencies, ms.
    P95,
    /// 99 % of latencies, ms.
    P99,
    /// 99.9 % of latencies, ms.
    P999,
    /// Share of requests that failed, %.
    Failed,
    /// Jain's index of hits.
    Jain,
    /// Requests answered a second in the best step.
    Peak,
    /// Seconds until all is as before the trouble.
    Recovery,
    /// Share of what attackers asked that was refused, %.
    Refused,
    /// Share of the connections that attackers held which were ended, %.
    Ended,
    /// The longest that an attacker held a connection, seconds.
    Held,
}

const METRICS: [(&str, Metric, &str); 12] = [
    ("mean", Metric::Mean, "ms"),
    ("p50", Metric::P50, "ms"),
    ("p95", Metric::P95, "ms"),
    ("p99", Metric::P99, "ms"),
    ("p99.9", Metric::P999, "ms"),
    ("failed", Metric::Failed, "%"),
    ("jain", Metric::Jain, ""),
    ("peak", Metric::Peak, "requests/s"),
    ("recovery", Metric::Recovery, "s"),
    ("refused", Metric::Refused, "%"),
    ("ended", Metric::Ended, "%"),
    ("held", Metric::Held, "s"),
];

impl Metric {
    /// As assertions name it.
    pub fn name(self) -> &'static str {
        METRICS.iter().find(|(_, metric, _)| *metric == self).map_or("", |(name, ..)| name)
    }

    /// The unit of its numbers; empty where it has none.
    pub fn unit(self) -> &'static str {
        METRICS.iter().find(|(_, metric, _)| *metric == self).map_or("", |(.., unit)| unit)
    }

    /// Its number in a run; infinite when what is waited for never came.
    pub fn of(self, run: &Measured, scenario: &Scenario) -> f64 {
        match self {
            Metric::Mean => run.mean_ms,
            Metric::P50 => run.p50_ms,
            Metric::P95 => run.p95_ms,
            Metric::P99 => run.p99_ms,
            Metric::P999 => run.p999_ms,
            Metric::Failed => run.failed_share() * 100.0,
            Metric::Jain => run.jain(),
            Metric::Peak => run.peak_rate(),
            Metric::Refused => run.refused_share() * 100.0,
            Metric::Ended => run.ended_share() * 100.0,
            Metric::Held => run.held_s(),
            Metric::Recovery => scenario.trouble.map_or(0.0, |(from, until)| {
                run.recovery_s(from.as_secs_f64(), until.as_secs_f64()).unwrap_or(f64::INFINITY)
            }),
        }
    }

    /// Its number in each valid run.
    pub(crate) fn all(self, trial: &Trial, scenario: &Scenario) -> Vec<f64> {
        let valid = trial.runs.iter().filter(|run| run.invalid.is_empty());
        valid.map(|run| self.of(run, scenario)).collect()
    }
}

/// What ought to come out.
#[derive(Clone, PartialEq, Debug)]
pub struct Assertion {
    /// As it was written.
    pub text: String,
    metric: Metric,
    /// The algorithm; none: each of them.
    of: Option<String>,
    below: bool,
    than: Than,
}

#[derive(Clone, PartialEq, Debug)]
enum Than {
    Number(f64),
    Algorithm(Metric, String),
}

impl Assertion {
    /// Reads one; its algorithms must be among these.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn read(text: &str, algorithms: &[Algorithm]) -> Result<Assertion, String> {
        let (left, below, right) = match (text.split_once('<'), text.split_once('>')) {
            (Some((left, right)), None) => (left, true, right),
            (None, Some((left, right))) => (left, false, right),
            _ => return Err("an assertion has one < or >: p95 of peak_ewma < 50ms".to_owned()),
        };
        let (metric, of) = subject(left, algorithms)?;
        let than = match right.trim() {
            right if right.contains(" of ") => match subject(right, algorithms)? {
                (metric, Some(of)) => Than::Algorithm(metric, of),
                (_, None) => return Err("each can only stand on the left".to_owned()),
            },
            right => Than::Number(limit(metric, right)?),
        };
        Ok(Assertion { text: text.to_owned(), metric, of, below, than })
    }

    /// The same of a scenario that is so many times as fast.
    pub(crate) fn faster(mut self, times: f64) -> Assertion {
        if let Than::Number(limit) = &mut self.than {
            match self.metric.unit() {
                "ms" | "s" => *limit /= times,
                "requests/s" => *limit *= times,
                _ => {}
            }
        }
        self
    }

    /// Which of the algorithms it is about.
    pub(crate) fn concerns(&self, algorithm: &str) -> bool {
        self.of.as_deref().is_none_or(|of| of == algorithm)
    }

    /// What became of it in one place.
    pub(crate) fn judge(&self, outcome: &Outcome, scenario: &Scenario, on: On) -> Verdict {
        let claim = format!("{} ({})", self.text, on.as_str());
        let trials: Vec<&Trial> = outcome
            .trials
            .iter()
            .filter(|trial| trial.on == on && self.concerns(&trial.algorithm))
            .collect();
        if trials.is_empty() {
            return Verdict::new(claim, Word::NotRun, "this algorithm was not run");
        }
        let each: Vec<(Word, String)> =
            trials.iter().map(|trial| self.of_one(trial, outcome, scenario)).collect();
        let worst = [Word::Invalid, Word::Fails, Word::NotRun, Word::CannotTell, Word::Holds];
        let word = worst.into_iter().find(|word| each.iter().any(|(one, _)| one == word));
        let word = word.unwrap_or(Word::CannotTell);
        // Of each, those that decided it say why.
        let because: Vec<&str> = match self.of {
            None if word != Word::Holds => {
                each.iter().filter(|(one, _)| *one == word).map(|(_, why)| why.as_str()).collect()
            }
            _ => each.iter().map(|(_, why)| why.as_str()).collect(),
        };
        Verdict::new(claim, word, because.join("; "))
    }

    fn of_one(&self, trial: &Trial, outcome: &Outcome, scenario: &Scenario) -> (Word, String) {
        let values = self.metric.all(trial, scenario);
        let name = &trial.algorithm;
        if values.is_empty() || values.len() * 2 < trial.runs.len() {
            let why = trial.runs.iter().find_map(|run| run.invalid.first());
            let why = why.map_or("no run", String::as_str);
            return (Word::Invalid, format!("{name}: {why}"));
        }
        match &self.than {
            Than::Number(limit) => {
                let Some(spread) = Spread::of(&values) else {
                    return (Word::NotRun, format!("{name}: no run"));
                };
                let (sure, not) = match self.below {
                    true => (spread.high < *limit, spread.low >= *limit),
                    false => (spread.low > *limit, spread.high <= *limit),
                };
                (decided(sure, not), format!("{name} {}", shown(&spread, self.metric)))
            }
            Than::Algorithm(metric, other) => {
                let mut trials = outcome.trials.iter().filter(|other| other.on == trial.on);
                let Some(other) = trials.find(|trial| trial.algorithm == *other) else {
                    return (Word::NotRun, format!("{other} was not run"));
                };
                let others = metric.all(other, scenario);
                let Some(difference) = Spread::of_differences(&values, &others) else {
                    return (Word::Invalid, format!("{}: no valid run", other.algorithm));
                };
                let (sure, not) = match self.below {
                    true => (difference.high < 0.0, difference.low >= 0.0),
                    false => (difference.low > 0.0, difference.high <= 0.0),
                };
                let both = [(name, &values), (&other.algorithm, &others)];
                let both = both.map(|(name, values)| {
                    let spread = Spread::of(values).map(|spread| shown(&spread, self.metric));
                    format!("{name} {}", spread.unwrap_or_default())
                });
                (decided(sure, not), both.join(", "))
            }
        }
    }
}

fn decided(sure: bool, not: bool) -> Word {
    match (sure, not) {
        (true, _) => Word::Holds,
        (_, true) => Word::Fails,
        _ => Word::CannotTell,
    }
}

/// `24.1 ms (22.9 to 25.5)`.
pub(crate) fn shown(spread: &Spread, metric: Metric) -> String {
    let digits = digits(metric, spread.mean);
    let number = |value| subak_report::grouped(value, digits);
    let unit = metric.unit();
    let space = if unit.is_empty() { "" } else { " " };
    if !spread.mean.is_finite() {
        return "never".to_owned();
    }
    let (low, high) = (spread.low, spread.high);
    format!("{}{space}{unit} ({} to {})", number(spread.mean), number(low), number(high))
}

/// Digits behind the point that are worth showing.
pub(crate) fn digits(metric: Metric, value: f64) -> u8 {
    match metric {
        Metric::Jain => 4,
        Metric::Peak => 0,
        Metric::Failed => 3,
        Metric::Refused | Metric::Ended => 2,
        Metric::Recovery | Metric::Held => 1,
        _ if value < 10.0 => 2,
        _ => 1,
    }
}

fn subject(text: &str, algorithms: &[Algorithm]) -> Result<(Metric, Option<String>), String> {
    let Some((metric, of)) = text.split_once(" of ") else {
        return Err("of which algorithm? p95 of peak_ewma < 50ms, or of each".to_owned());
    };
    let (metric, of) = (metric.trim(), of.trim());
    let Some((_, found, _)) = METRICS.iter().find(|(name, ..)| *name == metric) else {
        let names = METRICS.map(|(name, ..)| name).join(", ");
        return Err(format!("{metric:?} is not measured: {names}"));
    };
    match of {
        "each" => Ok((*found, None)),
        name if algorithms.iter().any(|algorithm| algorithm.name == name) => {
            Ok((*found, Some(name.to_owned())))
        }
        name => Err(format!("{name} is not among the algorithms of this scenario")),
    }
}

fn limit(metric: Metric, text: &str) -> Result<f64, String> {
    match metric.unit() {
        "ms" => Ok(words::duration(text)?.as_secs_f64() * 1e3),
        "s" => Ok(words::duration(text)?.as_secs_f64()),
        "%" => {
            words::number(text.strip_suffix('%').ok_or("a share is written 1%")?.trim(), 0.0, 100.0)
        }
        "requests/s" => words::number(text.trim_end_matches("/s"), 0.0, 1e9),
        _ => words::number(text, 0.0, 1e9),
    }
}
