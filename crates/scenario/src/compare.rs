//! Two things side by side: two algorithms of one outcome, or two outcomes of one scenario.

use subak_report::{Block, Cell, Column, Report, Section, Table, Verdict, Word};

use crate::assertion::{Metric, digits, shown};
use crate::measured::{Outcome, Trial};
use crate::spread::Spread;
use crate::told::scenario_of;

/// What is compared.
const METRICS: [Metric; 6] =
    [Metric::Mean, Metric::P50, Metric::P95, Metric::P99, Metric::Failed, Metric::Jain];
/// Differences below this share of the first's value are not worth a change, however sure.
const WORTH: f64 = 0.05;

/// One side.
#[derive(Clone, Copy, Debug)]
pub struct Side<'a> {
    /// As people call it.
    pub name: &'a str,
    /// Where it comes from.
    pub outcome: &'a Outcome,
    /// What is compared.
    pub trial: &'a Trial,
}

/// Compares pairs; in each the runs of one place with the same seed are compared with each other.
///
/// # Errors
/// A scenario cannot be read.
pub fn compare(pairs: &[(Side<'_>, Side<'_>)], made: &str) -> Result<Report, String> {
    let mut verdicts = Vec::new();
    let mut sections = Vec::new();
    for (one, other) in pairs {
        let (verdict, section) = pair(one, other)?;
        verdicts.push(verdict);
        sections.push(section);
    }
    let answer = verdicts.iter().map(|verdict| verdict.because.clone()).collect::<Vec<_>>();
    let setup = pairs.iter().flat_map(|(one, other)| [one, other]);
    let mut sides: Vec<(String, String)> = Vec::new();
    for side in setup {
        let told = format!(
            "{}, {}, {} runs, subak {}, {}",
            side.outcome.name,
            side.trial.on.as_str(),
            side.trial.runs.len(),
            side.outcome.version,
            side.outcome.made
        );
        if sides.iter().all(|(name, _)| name != side.name) {
            sides.push((side.name.to_owned(), told));
        }
    }
    Ok(Report {
        title: match pairs {
            [(one, other)] => format!("{} and {}", one.name, other.name),
            _ => "Two runs".to_owned(),
        },
        question: "Which is better, and is that more than chance?".to_owned(),
        answer: if answer.len() == 1 { answer.concat() } else { String::new() },
        made: made.to_owned(),
        setup: sides,
        verdicts,
        sections,
        repeat: Vec::new(),
    })
}

fn pair(one: &Side<'_>, other: &Side<'_>) -> Result<(Verdict, Section), String> {
    let scenarios = (scenario_of(one.outcome)?, scenario_of(other.outcome)?);
    let mut rows = Vec::new();
    let mut p95 = None;
    for metric in METRICS {
        let values = metric.all(one.trial, &scenarios.0);
        let others = metric.all(other.trial, &scenarios.1);
        let (Some(left), Some(right)) = (Spread::of(&values), Spread::of(&others)) else {
            continue;
        };
        let Some(difference) = Spread::of_differences(&others, &values) else { continue };
        let cell = |spread: &Spread| {
            let digits = digits(metric, spread.mean.abs());
            match spread.low.is_finite() {
                true => Cell::between(spread.mean, spread.low, spread.high, digits),
                false => Cell::number(spread.mean, digits),
            }
        };
        let name = match metric.unit() {
            "" => metric.name().to_owned(),
            unit => format!("{}, {unit}", metric.name()),
        };
        let word = if difference.is_not_zero() { "more than chance" } else { "may be chance" };
        rows.push(vec![
            Cell::text(name),
            cell(&left),
            cell(&right),
            cell(&difference),
            Cell::text(word),
        ]);
        if metric == Metric::P95 {
            p95 = Some((left, right, difference));
        }
    }
    let claim = format!("{} and {} differ in p95", one.name, other.name);
    let comparable = one.outcome.scenario == other.outcome.scenario;
    let verdict = match p95 {
        _ if one.trial.on != other.trial.on || !comparable => Verdict::new(
            claim,
            Word::NotComparable,
            "they were not run in the same place by the same scenario",
        ),
        None => Verdict::new(claim, Word::Invalid, "no run that counts"),
        Some((left, right, difference)) => {
            let share = difference.mean / left.mean;
            let (lower, higher) =
                if difference.mean < 0.0 { (other.name, one.name) } else { (one.name, other.name) };
            let values = format!(
                "{} {}, {} {}",
                one.name,
                shown(&left, Metric::P95),
                other.name,
                shown(&right, Metric::P95)
            );
            if !difference.is_not_zero() {
                let why = format!("The p95 does not differ by more than chance: {values}");
                Verdict::new(claim, Word::NoDifference, why)
            } else if share.abs() < WORTH {
                let why =
                    format!("The difference is sure but below {:.0} %: {values}", WORTH * 100.0);
                Verdict::new(claim, Word::NoDifference, why)
            } else {
                let why = format!("{lower} has the lower p95, {higher} the higher: {values}");
                Verdict::new(claim, Word::Holds, why)
            }
        }
    };
    let table = Table {
        caption: "Ranges are 95 % intervals; the difference is taken seed by seed".to_owned(),
        columns: vec![
            Column::new(""),
            Column::new(one.name),
            Column::new(other.name),
            Column::new("difference"),
            Column::new(""),
        ],
        rows,
    };
    let heading = format!("{} and {}", one.name, other.name);
    Ok((verdict, Section::new(heading, vec![Block::Table(table)])))
}
