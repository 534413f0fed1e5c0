//! What every algorithm did: latencies, failures, and where requests went (`hits`).

use subak_report::{
    Axis, Block, Cell, Column, Plot, PlotKind, Point, Scale, Section, Series, Table,
};

use crate::recommend::Comparison;
use crate::replay::{Finding, Trial};
use crate::spread::Spread;
use crate::trial::{Run, TOLD};

const CONFIDENCE: f64 = 0.05;

impl Finding<'_> {
    pub(super) fn results(&self, trial: &Trial) -> Section {
        let mut columns = vec![Column::new("algorithm")];
        columns.extend(["p50", "p95", "p99", "p99.9"].map(|name| Column::with_unit(name, "ms")));
        columns.extend([
            Column::new("p95 ÷ now"),
            Column::new("p99 ÷ now"),
            Column::with_unit("failed", "%"),
            Column::with_unit("from cache", "%"),
            Column::new("Jain index"),
            Column::with_unit("keys moved", "%"),
        ]);
        let has_cache = self.fit.as_ref().is_some_and(|fit| fit.cache.is_some());
        let mut rows = vec![self.row("the log itself", &trial.logged, None, None)];
        for (index, runs) in trial.runs.iter().enumerate() {
            let name = self.name(trial, index);
            let name = if index == trial.base { format!("{name} (now)") } else { name.to_owned() };
            let comparison = (index != trial.base).then(|| &trial.comparisons[index]);
            rows.push(self.row(&name, runs, comparison, trial.moved[index]));
        }
        if !has_cache {
            let place = columns.iter().position(|column| column.name == "from cache");
            if let Some(place) = place {
                columns.remove(place);
                rows.iter_mut().for_each(|row| _ = row.remove(place));
            }
        }
        let caption = "Means over the seeds, with the interval in which the mean lies (95 %). \"÷ now\": \
                       the ratio to the algorithm that made the log, stretch by stretch, with intervals \
                       of which none misses (95 %). \"Keys moved\": of the keys that belong to other \
                       endpoints, when the busiest one fails. Which endpoint a key belongs to is luck: \
                       but for the algorithm that made the log, it is another one in each seed.";
        let table = Table { caption: caption.into(), columns, rows };
        let mut blocks = vec![Block::Table(table), Block::Plot(self.plot(trial))];
        blocks.extend(self.hits(trial));
        Section::new("Results", blocks)
    }

    fn row(
        &self,
        name: &str,
        runs: &[Run],
        comparison: Option<&Comparison>,
        moved: Option<u64>,
    ) -> Vec<Cell> {
        let mut row = vec![Cell::text(name)];
        row.extend(
            (0..TOLD.len()).map(|place| spread(runs, 3, |run| run.latency[place] as f64 / 1e6)),
        );
        let ratio = |of: fn(&Comparison) -> &Spread| match comparison.map(of) {
            Some(ratio) => cell(ratio, 2),
            None => Cell::Missing,
        };
        row.push(ratio(|comparison| &comparison.p95));
        row.push(ratio(|comparison| &comparison.p99));
        row.push(spread(runs, 2, |run| run.failed * 100.0));
        row.push(spread(runs, 1, |run| run.cached * 100.0));
        row.push(spread(runs, 3, |run| run.jain));
        row.push(match moved {
            Some(moved) => Cell::number(moved as f64 / 10.0, 1),
            None => Cell::Missing,
        });
        row
    }

    fn plot(&self, trial: &Trial) -> Plot {
        let mut names: Vec<String> = vec!["the log itself".into()];
        names.extend((0..trial.runs.len()).map(|index| self.name(trial, index).to_owned()));
        let all: Vec<&Vec<Run>> = std::iter::once(&trial.logged).chain(&trial.runs).collect();
        let series = |(name, place): (&str, usize)| Series {
            name: name.into(),
            points: (0..)
                .zip(&all)
                .map(|(x, runs)| {
                    let spread = spread_of(runs, |run| run.latency[place] as f64 / 1e6);
                    let x = f64::from(x);
                    match spread.low.is_finite() {
                        true => Point::between(x, spread.mean, spread.low, spread.high),
                        false => Point::new(x, spread.mean),
                    }
                })
                .collect(),
        };
        Plot {
            caption: "Latency by algorithm, with 95 % intervals".into(),
            kind: PlotKind::Dots,
            x: Axis::new("", None, Scale::Names(names)),
            y: Axis::new("latency", Some("ms"), Scale::Log),
            series: [("p50", 0), ("p95", 1), ("p99", 2)].into_iter().map(series).collect(),
        }
    }
}

fn spread_of(runs: &[Run], of: impl Fn(&Run) -> f64) -> Spread {
    Spread::of(&runs.iter().map(of).collect::<Vec<_>>(), CONFIDENCE)
}

fn spread(runs: &[Run], digits: u8, of: impl Fn(&Run) -> f64) -> Cell {
    cell(&spread_of(runs, of), digits)
}

fn cell(spread: &Spread, digits: u8) -> Cell {
    match spread.low.is_finite() && spread.high.is_finite() {
        true => Cell::between(spread.mean, spread.low.max(0.0), spread.high, digits),
        false => Cell::number(spread.mean, digits),
    }
}
