//! The simulator against real servers: for each algorithm the latencies of both, whether they come in the
//! same order, and how far apart they are.

use subak_report::{Block, Cell, Column, Section, Table, Verdict, Word};

use crate::assertion::Metric;
use crate::measured::{On, Outcome};
use crate::model::Scenario;
use crate::spread::Spread;

/// Allowed between the simulator's p95 and the measured one, %.
const P95_WITHIN: f64 = 20.0;
/// What is shown of both.
const METRICS: [Metric; 3] = [Metric::P50, Metric::P95, Metric::P99];

/// One metric of one algorithm in both places.
struct Pair {
    algorithm: String,
    sim: Option<Spread>,
    real: Option<Spread>,
}

impl Pair {
    /// The simulator's mean by the measured one.
    fn ratio(&self) -> Option<f64> {
        Some(self.sim?.mean / self.real?.mean)
    }
}

fn pairs(outcome: &Outcome, scenario: &Scenario, metric: Metric) -> Vec<Pair> {
    let of = |on, name: &str| {
        let trial = outcome.trials.iter().find(|one| one.on == on && one.algorithm == name)?;
        Spread::of(&metric.all(trial, scenario))
    };
    let mut pairs: Vec<Pair> = Vec::new();
    for trial in &outcome.trials {
        let name = &trial.algorithm;
        if pairs.iter().all(|pair| pair.algorithm != *name) {
            let (sim, real) = (of(On::Sim, name), of(On::Real, name));
            pairs.push(Pair { algorithm: name.clone(), sim, real });
        }
    }
    pairs
}

/// How well the simulator told what came.
pub(crate) fn verdicts(outcome: &Outcome, scenario: &Scenario) -> Vec<Verdict> {
    let pairs = pairs(outcome, scenario, Metric::P95);
    let both: Vec<(&str, Spread, Spread)> = pairs
        .iter()
        .filter_map(|pair| Some((pair.algorithm.as_str(), pair.sim?, pair.real?)))
        .collect();
    let claim = "the simulator has the algorithms' p95 in the measured order, wherever measured intervals do not overlap";
    if both.len() < pairs.len() {
        let why = "not every algorithm has runs that count in both places";
        return vec![Verdict::new(claim, Word::Invalid, why)];
    }
    let (mut judged, mut wrong) = (0, Vec::new());
    for (index, (name, sim, real)) in both.iter().enumerate() {
        for (other, other_sim, other_real) in &both[index + 1..] {
            if real.high < other_real.low || other_real.high < real.low {
                judged += 1;
                if (real.mean < other_real.mean) != (sim.mean < other_sim.mean) {
                    wrong.push(format!("{name} and {other}"));
                }
            }
        }
    }
    let word = match (judged, wrong.len()) {
        (0, _) => Word::CannotTell,
        (_, 0) => Word::Holds,
        _ => Word::Fails,
    };
    let mut because = format!("{judged} pairs do not overlap, {} in another order", wrong.len());
    if !wrong.is_empty() {
        because += &format!(": {}", wrong.join(", "));
    }
    let off = |pair: &Pair| (pair.ratio().unwrap_or(f64::INFINITY) - 1.0) * 100.0;
    let is_near = pairs.iter().all(|pair| off(pair).abs() <= P95_WITHIN);
    let each = pairs.iter().map(|pair| format!("{} {:+.0} %", pair.algorithm, off(pair)));
    vec![
        Verdict::new(claim, word, because),
        Verdict::new(
            format!("the simulator's p95 is within {P95_WITHIN:.0} % of the measured one"),
            if is_near { Word::Holds } else { Word::Fails },
            each.collect::<Vec<_>>().join(", "),
        ),
    ]
}

/// One table for each metric.
pub(crate) fn section(outcome: &Outcome, scenario: &Scenario) -> Section {
    let tables = METRICS.map(|metric| Block::Table(table(outcome, scenario, metric)));
    Section::new("Simulator and reality", tables.to_vec())
}

fn table(outcome: &Outcome, scenario: &Scenario, metric: Metric) -> Table {
    let cell = |spread: &Option<Spread>| match spread {
        Some(spread) if spread.low.is_finite() => {
            Cell::between(spread.mean, spread.low.max(0.0), spread.high, 2)
        }
        Some(spread) => Cell::number(spread.mean, 2),
        None => Cell::Missing,
    };
    let row = |pair: &Pair| {
        let ratio = pair.ratio().map_or(Cell::Missing, |ratio| Cell::number(ratio, 2));
        vec![Cell::text(&pair.algorithm), cell(&pair.sim), cell(&pair.real), ratio]
    };
    let name = metric.name();
    Table {
        caption: format!("{name} in the simulator and on real servers; ranges are 95 % intervals"),
        columns: vec![
            Column::new("algorithm"),
            Column::with_unit("simulator", "ms"),
            Column::with_unit("real", "ms"),
            Column::new("ratio"),
        ],
        rows: pairs(outcome, scenario, metric).iter().map(row).collect(),
    }
}
