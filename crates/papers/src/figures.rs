//! Results as cells, points and verdicts of a report.

use subak_report::{
    Axis, Block, Cell, Column, Plot, PlotKind, Point, Scale, Series, Table, Verdict, Word,
};

use crate::results::Results;
use crate::statistics::Mean;

/// A measured number with its interval, or the lack of it.
pub(crate) fn cell(mean: Option<Mean>, digits: u8) -> Cell {
    match mean {
        Some(Mean { value, interval }) => Cell::Number {
            value,
            low: interval.map(|(low, _)| low),
            high: interval.map(|(_, high)| high),
            digits,
        },
        None => Cell::Missing,
    }
}

/// Columns without units.
pub(crate) fn columns<'a>(names: impl IntoIterator<Item = &'a str>) -> Vec<Column> {
    names.into_iter().map(Column::new).collect()
}

/// Hits of servers: `3,000 / 3,000`; of several repetitions the range of each.
pub(crate) fn hits(results: &Results, id: &str) -> Cell {
    let all = results.counts(id, "hits");
    let Some(first) = all.first() else { return Cell::Missing };
    let of = |index: usize| {
        let values = all.iter().filter_map(|hits| hits.get(index).copied());
        let (low, high) = (values.clone().min().unwrap_or(0), values.max().unwrap_or(0));
        if low == high { low.to_string() } else { format!("{low} to {high}") }
    };
    Cell::text((0..first.len()).map(of).collect::<Vec<_>>().join(" / "))
}

/// `3000 / 3000`.
pub(crate) fn slashed(counts: &[u64]) -> String {
    counts.iter().map(u64::to_string).collect::<Vec<_>>().join(" / ")
}

/// A table of one number: what is in the rows, and what is in the columns of each.
pub(crate) struct Grid<'a> {
    pub(crate) caption: String,
    pub(crate) corner: &'a str,
    pub(crate) unit: &'a str,
    pub(crate) digits: u8,
    /// A name, and the cell of each column.
    pub(crate) rows: Vec<(String, Vec<String>)>,
    pub(crate) columns: Vec<String>,
    pub(crate) number: &'a str,
}

impl Grid<'_> {
    pub(crate) fn table(&self, results: &Results) -> Block {
        let mut columns = vec![Column::new(self.corner)];
        columns.extend(self.columns.iter().map(|name| Column::with_unit(name, self.unit)));
        let row = |(name, ids): &(String, Vec<String>)| {
            let mut cells = vec![Cell::text(name)];
            cells.extend(ids.iter().map(|id| cell(results.mean(id, self.number), self.digits)));
            cells
        };
        let rows = self.rows.iter().map(row).collect();
        Block::Table(Table { caption: self.caption.clone(), columns, rows })
    }

    /// The same as lines over the columns' values; nothing where nothing was measured.
    pub(crate) fn plot(&self, results: &Results, x: (&str, &[f64]), y: &str) -> Option<Block> {
        let series = self.rows.iter().map(|(name, ids)| Series {
            name: name.clone(),
            points: ids
                .iter()
                .zip(x.1)
                .filter_map(|(id, x)| Some(point(*x, results.mean(id, self.number)?)))
                .collect(),
        });
        let series: Vec<Series> = series.filter(|series| !series.points.is_empty()).collect();
        (!series.is_empty()).then(|| {
            Block::Plot(Plot {
                caption: self.caption.clone(),
                kind: PlotKind::Lines,
                x: Axis::new(x.0, None, Scale::Linear),
                y: Axis::new(y, Some(self.unit), Scale::Linear),
                series,
            })
        })
    }
}

/// Bars: a row for each name, in it a bar for each series; nothing where nothing was measured.
pub(crate) fn bars(
    caption: &str,
    y: (&str, Option<&str>),
    series: &[String],
    rows: &[(String, Vec<f64>)],
) -> Option<Block> {
    let rows: Vec<_> = rows.iter().filter(|(_, values)| !values.is_empty()).collect();
    let one = |(index, name): (usize, &String)| Series {
        name: name.clone(),
        points: (0_u32..)
            .zip(&rows)
            .filter_map(|(row, (_, values))| Some(Point::new(row.into(), *values.get(index)?)))
            .collect(),
    };
    let names = rows.iter().map(|(name, _)| name.clone()).collect();
    (!rows.is_empty()).then(|| {
        Block::Plot(Plot {
            caption: caption.to_owned(),
            kind: PlotKind::Bars,
            x: Axis::new("", None, Scale::Names(names)),
            y: Axis::new(y.0, y.1, Scale::Linear),
            series: series.iter().enumerate().map(one).collect(),
        })
    })
}

/// Counts as bars, one for each of what there are several of: servers, nodes.
pub(crate) fn count_bars(
    caption: &str,
    of: (&str, &str),
    rows: &[(String, Vec<u64>)],
) -> Option<Block> {
    let most = rows.iter().map(|(_, counts)| counts.len()).max()?;
    let series: Vec<String> = (1..=most).map(|number| format!("{} {number}", of.0)).collect();
    let rows: Vec<(String, Vec<f64>)> = rows
        .iter()
        .map(|(name, counts)| (name.clone(), counts.iter().map(|count| *count as f64).collect()))
        .collect();
    bars(caption, (of.1, None), &series, &rows)
}

/// Hits of servers in the first repetition of a cell; none where it was not measured.
pub(crate) fn first_hits(results: &Results, id: &str) -> Vec<u64> {
    results.counts(id, "hits").first().map_or_else(Vec::new, |hits| hits.to_vec())
}

/// A point with its interval.
pub(crate) fn point(x: f64, mean: Mean) -> Point {
    match mean.interval {
        Some((low, high)) => Point::between(x, mean.value, low, high),
        None => Point::new(x, mean.value),
    }
}

/// Nothing can be said of this claim: nothing was measured.
pub(crate) fn not_run(claim: &str, why: impl Into<String>) -> Verdict {
    Verdict::new(claim, Word::NotRun, why)
}

/// Is the first of these known to be ahead of each of the others? `Some(true)` when its interval is
/// below everybody's, `Some(false)` when somebody's is below its own, none when neither is known.
pub(crate) fn is_lowest(results: &Results, ids: &[String], number: &str) -> Option<bool> {
    let means: Vec<Mean> = ids.iter().filter_map(|id| results.mean(id, number)).collect();
    if means.len() < ids.len() {
        return None;
    }
    let (first, others) = means.split_first()?;
    if others.iter().all(|other| first.is_below(other)) {
        return Some(true);
    }
    others.iter().any(|other| other.is_below(first)).then_some(false)
}

/// A mean in words: `13.2 ms (12.9 to 13.5)`.
pub(crate) fn words(mean: Option<Mean>, unit: &str) -> String {
    match mean {
        Some(Mean { value, interval: Some((low, high)) }) => {
            format!("{value:.2} {unit} ({low:.2} to {high:.2})")
        }
        Some(Mean { value, interval: None }) => format!("{value:.2} {unit} (once)"),
        None => "not measured".to_owned(),
    }
}
