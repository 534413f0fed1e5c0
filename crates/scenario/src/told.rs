//! The report of an outcome: what was asked, what came out for each algorithm, what was asserted.

mod traffic;

use std::path::Path;

use subak_report::{
    Axis, Block, Cell, Column, Plot, PlotKind, Point, Report, Scale, Section, Series, Table,
    Verdict, Word,
};

use crate::assertion::{Metric, digits, shown};
use crate::measured::{On, Outcome, Trial};
use crate::model::Scenario;
use crate::spread::Spread;
use crate::{builtin, reading, reality};

/// Makes the report of an outcome.
///
/// # Errors
/// The outcome's own scenario cannot be read; says why.
pub fn report(outcome: &Outcome) -> Result<Report, String> {
    let scenario = scenario_of(outcome)?;
    let places = [On::Sim, On::Real];
    let ran = |on: &On| outcome.trials.iter().any(|trial| trial.on == *on);
    let places: Vec<On> = places.into_iter().filter(ran).collect();
    let mut verdicts: Vec<Verdict> = places
        .iter()
        .flat_map(|on| scenario.assertions.iter().map(|one| one.judge(outcome, &scenario, *on)))
        .collect();
    if places == [On::Real] && !scenario.attacks.is_empty() {
        let why = "attacks need real servers";
        verdicts.push(Verdict::new("the same in the simulator", Word::NotRun, why));
    }
    if places.len() == 2 {
        verdicts.extend(reality::verdicts(outcome, &scenario));
    }
    let mut sections: Vec<Section> =
        places.iter().map(|on| results(outcome, &scenario, *on)).collect();
    if places.len() == 2 {
        sections.insert(0, reality::section(outcome, &scenario));
    }
    let mut setup = vec![
        ("subak".to_owned(), outcome.version.clone()),
        ("scenario".to_owned(), outcome.name.clone()),
        ("load".to_owned(), traffic::load(&scenario)),
        ("endpoints".to_owned(), traffic::endpoints(&scenario)),
    ];
    setup.extend(traffic::balancers(&scenario).map(|told| ("balancers".to_owned(), told)));
    setup.extend(outcome.setup.iter().cloned());
    let on = match places[..] {
        [On::Real] => " --on real",
        [_, _] => " --on both",
        _ => "",
    };
    let answer = places.last().and_then(|on| answer(outcome, &scenario, *on));
    Ok(Report {
        title: scenario.title.clone(),
        question: scenario.question.clone(),
        answer: answer.unwrap_or_default(),
        made: outcome.made.clone(),
        setup,
        verdicts,
        sections,
        repeat: vec![repeat(outcome, on)],
    })
}

/// The command that runs it again. Of a scenario of one's own it takes the file's name without place.
fn repeat(outcome: &Outcome, on: &str) -> String {
    let file = if builtin::find(&outcome.name).is_some() { "" } else { ".toml" };
    let faster = match outcome.faster {
        1.0 => String::new(),
        times => format!(" --faster {times}"),
    };
    let trial = |on| outcome.trials.iter().find(|trial| trial.on == on);
    let runs = |on, option: &str| {
        trial(on).map_or(String::new(), |trial| format!(" --{option} {}", trial.runs.len()))
    };
    let (seeds, repetitions) = (runs(On::Sim, "seeds"), runs(On::Real, "repetitions"));
    format!("subak lab run {}{file}{on}{faster}{seeds}{repetitions}", outcome.name)
}

/// The scenario that an outcome is of.
pub(crate) fn scenario_of(outcome: &Outcome) -> Result<Scenario, String> {
    let read = reading::read(&outcome.scenario, Path::new(&outcome.name));
    let errors = read.sources.render(&read.diagnostics, false);
    read.scenario.map(|scenario| scenario.faster(outcome.faster)).ok_or(errors)
}

/// The trials of one place.
fn trials(outcome: &Outcome, on: On) -> Vec<&Trial> {
    outcome.trials.iter().filter(|trial| trial.on == on).collect()
}

/// The algorithm with the lowest p95, and whether the others are worse for sure.
fn answer(outcome: &Outcome, scenario: &Scenario, on: On) -> Option<String> {
    let mut all: Vec<(&Trial, Vec<f64>, Spread)> = Vec::new();
    for trial in trials(outcome, on) {
        let values = Metric::P95.all(trial, scenario);
        let spread = Spread::of(&values)?;
        all.push((trial, values, spread));
    }
    all.sort_by(|one, other| one.2.mean.total_cmp(&other.2.mean));
    let (best, rest) = all.split_first()?;
    let alike = rest.iter().filter(|other| {
        Spread::of_differences(&other.1, &best.1).is_none_or(|spread| !spread.is_not_zero())
    });
    let alike: Vec<&str> = alike.map(|(trial, ..)| trial.algorithm.as_str()).collect();
    let mut text = format!(
        "Lowest p95 ({}): {}, {}.",
        on.as_str(),
        best.0.algorithm,
        shown(&best.2, Metric::P95)
    );
    if !alike.is_empty() {
        text += &format!(" Not worse for sure: {}.", alike.join(", "));
    }
    if let Some(last) = rest.last().filter(|last| !alike.contains(&last.0.algorithm.as_str())) {
        text += &format!(" Highest: {}, {}.", last.0.algorithm, shown(&last.2, Metric::P95));
    }
    let lossy = all.iter().filter(|one| one.0.runs.iter().any(|run| run.failed() > 0));
    let lossy: Vec<&str> = lossy.map(|(trial, ..)| trial.algorithm.as_str()).collect();
    if !lossy.is_empty() {
        text += &format!(" Requests failed with {}.", lossy.join(", "));
    }
    Some(text)
}

fn cell(trial: &Trial, scenario: &Scenario, metric: Metric) -> Cell {
    match Spread::of(&metric.all(trial, scenario)) {
        Some(spread) if spread.mean.is_finite() => {
            let places = digits(metric, spread.mean);
            if spread.low.is_finite() {
                // Neither times nor shares are negative.
                Cell::between(spread.mean, spread.low.max(0.0), spread.high, places)
            } else {
                Cell::number(spread.mean, places)
            }
        }
        Some(_) => Cell::text("never"),
        None => Cell::Missing,
    }
}

fn results(outcome: &Outcome, scenario: &Scenario, on: On) -> Section {
    let trials = trials(outcome, on);
    let mut metrics =
        vec![Metric::P50, Metric::P95, Metric::P99, Metric::P999, Metric::Failed, Metric::Jain];
    if traffic::varies(&scenario.load) {
        metrics.push(Metric::Peak);
    }
    if scenario.trouble.is_some() {
        metrics.push(Metric::Recovery);
    }
    if on == On::Real && !scenario.attacks.is_empty() {
        metrics.extend([Metric::Refused, Metric::Held]);
    }
    let column = |metric: &Metric| match metric.unit() {
        "" => Column::new(metric.name()),
        unit => Column::with_unit(metric.name(), unit),
    };
    let mut columns = vec![Column::new("algorithm")];
    columns.extend(metrics.iter().map(column));
    let rows = trials.iter().map(|trial| {
        let mut row = vec![Cell::text(&trial.algorithm)];
        row.extend(metrics.iter().map(|metric| cell(trial, scenario, *metric)));
        row
    });
    let runs = trials.first().map_or(0, |trial| trial.runs.len());
    let what = if on == On::Sim { "seeds" } else { "runs" };
    let table = Table {
        caption: format!(
            "Latency of answered requests, and failures; ranges are 95 % intervals over {runs} {what}"
        ),
        columns,
        rows: rows.collect(),
    };
    let mut blocks = vec![Block::Table(table), Block::Plot(quantiles(&trials, scenario))];
    blocks.push(Block::Plot(over_time(&trials, "p95", Some("ms"), |one| one.p95_ms)));
    if trials.iter().any(|trial| trial.runs.iter().any(|run| run.failed() > 0)) {
        blocks.push(Block::Plot(over_time(&trials, "failed requests", Some("1/s"), |one| {
            one.failed as f64 / one.took_s.max(1e-9)
        })));
        blocks.push(Block::Table(failures(&trials)));
    }
    blocks.push(Block::Table(by_endpoint(&trials)));
    if on == On::Real {
        if !scenario.attacks.is_empty() {
            blocks.push(Block::Table(attacked(&trials)));
        }
        blocks.push(Block::Table(cost(&trials)));
    }
    Section::new(
        format!("On {}", if on == On::Sim { "the simulator" } else { on.as_str() }),
        blocks,
    )
}

fn quantiles(trials: &[&Trial], scenario: &Scenario) -> Plot {
    let names = trials.iter().map(|trial| trial.algorithm.clone()).collect();
    let series = [Metric::P50, Metric::P95, Metric::P99].map(|metric| Series {
        name: metric.name().to_owned(),
        points: trials
            .iter()
            .enumerate()
            .filter_map(|(index, trial)| {
                let spread = Spread::of(&metric.all(trial, scenario))?;
                let low = spread.low.is_finite().then_some(spread.low.max(0.0));
                let high = spread.high.is_finite().then_some(spread.high);
                Some(Point { x: index as f64, y: spread.mean, low, high })
            })
            .collect(),
    });
    Plot {
        caption: "Latency by algorithm; whiskers are 95 % intervals".to_owned(),
        kind: PlotKind::Dots,
        x: Axis::new("algorithm", None, Scale::Names(names)),
        y: Axis::new("latency", Some("ms"), Scale::Log),
        series: series.to_vec(),
    }
}

fn over_time(
    trials: &[&Trial],
    what: &str,
    unit: Option<&str>,
    of: fn(&crate::measured::Moment) -> f64,
) -> Plot {
    let series = trials.iter().map(|trial| {
        let valid: Vec<_> = trial.runs.iter().filter(|run| run.invalid.is_empty()).collect();
        let steps = valid.iter().map(|run| run.series.len()).min().unwrap_or(0);
        let point = |step: usize| {
            let values: Vec<f64> = valid.iter().map(|run| of(&run.series[step])).collect();
            let first = valid.first().map(|run| run.series[step])?;
            let spread = Spread::of(&values)?;
            let low = spread.low.is_finite().then_some(spread.low.max(0.0));
            let high = spread.high.is_finite().then_some(spread.high);
            Some(Point { x: first.at_s + first.took_s / 2.0, y: spread.mean, low, high })
        };
        Series { name: trial.algorithm.clone(), points: (0..steps).filter_map(point).collect() }
    });
    Plot {
        caption: format!("{what} over time; bands are 95 % intervals"),
        kind: PlotKind::Lines,
        x: Axis::new("time", Some("s"), Scale::Linear),
        y: Axis::new(what, unit, Scale::Linear),
        series: series.collect(),
    }
}

fn failures(trials: &[&Trial]) -> Table {
    let mut kinds: Vec<&str> = Vec::new();
    for (kind, _) in trials.iter().flat_map(|trial| &trial.runs).flat_map(|run| &run.failures) {
        if !kinds.contains(&kind.as_str()) {
            kinds.push(kind);
        }
    }
    let mut columns = vec![Column::new("algorithm")];
    columns.extend(kinds.iter().map(|kind| Column::new(*kind)));
    let row = |trial: &&Trial| {
        let count = |kind: &&str| {
            let all = trial.runs.iter().flat_map(|run| &run.failures);
            Cell::count(all.filter(|(name, _)| name == kind).map(|(_, count)| count).sum())
        };
        let mut row = vec![Cell::text(&trial.algorithm)];
        row.extend(kinds.iter().map(count));
        row
    };
    let caption = "Failed requests by why, over all runs".to_owned();
    Table { caption, columns, rows: trials.iter().map(row).collect() }
}

fn by_endpoint(trials: &[&Trial]) -> Table {
    const SHOWN: usize = 12;
    let of = trials.iter().flat_map(|trial| &trial.runs).map(|run| run.hits.len()).max();
    let shown = of.unwrap_or(0).min(SHOWN);
    let mut columns = vec![Column::new("algorithm")];
    columns.extend((0..shown).map(|index| Column::with_unit(format!("e{index}"), "%")));
    let row = |trial: &&Trial| {
        let mut row = vec![Cell::text(&trial.algorithm)];
        row.extend((0..shown).map(|index| {
            let share = |run: &crate::measured::Measured| {
                let all: u64 = run.hits.iter().sum();
                run.hits.get(index).map(|hits| *hits as f64 / all.max(1) as f64 * 100.0)
            };
            let shares: Vec<f64> = trial.runs.iter().filter_map(share).collect();
            Spread::of(&shares).map_or(Cell::Missing, |spread| Cell::number(spread.mean, 1))
        }));
        row
    };
    let more = if of.unwrap_or(0) > SHOWN { ", the first of them" } else { "" };
    let caption = format!("Shares of the requests by endpoint{more}; means of all runs");
    Table { caption, columns, rows: trials.iter().map(row).collect() }
}

fn attacked(trials: &[&Trial]) -> Table {
    let columns = vec![
        Column::new("algorithm"),
        Column::new("attack"),
        Column::new("tried"),
        Column::new("refused or ended"),
        Column::with_unit("longest held", "s"),
    ];
    let mut rows = Vec::new();
    for trial in trials {
        let names = trial.runs.first().map_or(&[][..], |run| &run.attacked);
        for (place, name) in names.iter().enumerate() {
            let all = || trial.runs.iter().filter_map(|run| run.attacked.get(place));
            rows.push(vec![
                Cell::text(&trial.algorithm),
                Cell::text(&name.what),
                Cell::count(all().map(|one| one.tried).sum()),
                Cell::count(all().map(|one| one.refused).sum()),
                Cell::number(all().map(|one| one.held_s).fold(0.0, f64::max), 1),
            ]);
        }
    }
    let caption = "What attackers got, over all runs".to_owned();
    Table { caption, columns, rows }
}

fn cost(trials: &[&Trial]) -> Table {
    let columns = vec![
        Column::new("algorithm"),
        Column::with_unit("CPU per request", "µs"),
        Column::with_unit("balancer's core", "%"),
        Column::new("runs that count"),
    ];
    let row = |trial: &&Trial| {
        let valid = trial.runs.iter().filter(|run| run.invalid.is_empty());
        let mean = |values: Vec<f64>, digits| match Spread::of(&values) {
            Some(spread) if spread.low.is_finite() => {
                Cell::between(spread.mean, spread.low.max(0.0), spread.high, digits)
            }
            Some(spread) => Cell::number(spread.mean, digits),
            None => Cell::Missing,
        };
        let us = valid.clone().filter_map(|run| run.balancer_us).collect();
        let busy = valid.clone().filter_map(|run| run.balancer_busy);
        vec![
            Cell::text(&trial.algorithm),
            mean(us, 1),
            mean(busy.map(|share| share * 100.0).collect(), 0),
            Cell::text(format!("{} of {}", valid.count(), trial.runs.len())),
        ]
    };
    let caption = "What the balancer cost".to_owned();
    Table { caption, columns, rows: trials.iter().map(row).collect() }
}
