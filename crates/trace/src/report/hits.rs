//! Where requests went: the share of each endpoint by each algorithm.
//!
//! A table of all endpoints is read where they are few. Of more, people see how far apart the shares
//! are and who has the largest and the smallest; programs find all of them in the JSON.

use std::collections::HashMap;

use subak_report::{Block, Cell, Column, Table};

use crate::replay::{Finding, Question, Trial};
use crate::trial::Run;

/// Endpoints that people see one by one.
const MOST_SHOWN: usize = 16;

/// What an algorithm did, or what the log itself shows.
struct Row<'a> {
    name: &'a str,
    endpoints: Vec<&'a str>,
    /// The endpoints' places in the list.
    places: HashMap<&'a str, usize>,
    /// Of each run the endpoints' shares, in per cent.
    runs: Vec<Vec<f64>>,
    /// Their means over the runs.
    means: Vec<f64>,
}

impl Finding<'_> {
    pub(super) fn hits(&self, trial: &Trial) -> Vec<Block> {
        let rows = self.hit_rows(trial);
        let all: Vec<&str> = match self.question {
            // In the order of the log.
            Question::Replay { .. } => self.log.endpoints.iter().map(String::as_str).collect(),
            // The two need not have the same endpoints.
            Question::WhatIf { .. } => {
                let mut all: Vec<&str> =
                    rows.iter().flat_map(|row| row.endpoints.iter().copied()).collect();
                all.sort_unstable();
                all.dedup();
                all
            }
        };
        match self.question {
            _ if all.len() > MOST_SHOWN => {
                let whole = by_endpoint(&all, &rows);
                vec![Block::Table(extremes(&rows)), Block::Data(whole)]
            }
            Question::Replay { .. } => vec![Block::Table(by_algorithm(&all, &rows))],
            Question::WhatIf { .. } => vec![Block::Table(by_endpoint(&all, &rows))],
        }
    }

    fn hit_rows<'a>(&'a self, trial: &'a Trial) -> Vec<Row<'a>> {
        let candidates = self.question.candidates();
        let row = |(index, runs): (usize, &Vec<Run>)| {
            let pool = &candidates[trial.tried[index]].pool;
            let endpoints = pool.endpoints.iter().map(|one| one.name.as_str()).collect();
            Row::new(self.name(trial, index), endpoints, runs)
        };
        let mut rows: Vec<Row<'a>> = trial.runs.iter().enumerate().map(row).collect();
        if let Question::Replay { .. } = self.question {
            let endpoints = self.log.endpoints.iter().map(String::as_str).collect();
            rows.insert(0, Row::new("the log itself", endpoints, &trial.logged));
        }
        rows
    }
}

impl<'a> Row<'a> {
    fn new(name: &'a str, endpoints: Vec<&'a str>, runs: &[Run]) -> Row<'a> {
        let shares = |run: &Run| {
            let all = run.hits.iter().sum::<u64>().max(1) as f64;
            let hits = (0..endpoints.len()).map(|place| run.hits.get(place).copied().unwrap_or(0));
            hits.map(|hits| hits as f64 * 100.0 / all).collect()
        };
        let runs: Vec<Vec<f64>> = runs.iter().map(shares).collect();
        let mean =
            |place| runs.iter().map(|shares| shares[place]).sum::<f64>() / runs.len().max(1) as f64;
        let means = (0..endpoints.len()).map(mean).collect();
        let places = endpoints.iter().enumerate().map(|(place, name)| (*name, place)).collect();
        Row { name, endpoints, places, runs, means }
    }

    /// A mean over the runs; none of an endpoint that is not in this pool.
    fn share(&self, endpoint: &str, digits: u8) -> Cell {
        let share = self.places.get(endpoint).map(|place| self.means[*place]);
        share.map_or(Cell::Missing, |share| Cell::number(share, digits))
    }
}

/// A row for each algorithm, a column for each endpoint.
fn by_algorithm(all: &[&str], rows: &[Row<'_>]) -> Table {
    let mut columns = vec![Column::new("algorithm")];
    columns.extend(all.iter().map(|name| Column::with_unit(*name, "%")));
    let row = |row: &Row<'_>| {
        let cells = all.iter().map(|name| row.share(name, 1));
        std::iter::once(Cell::text(row.name)).chain(cells).collect()
    };
    Table { caption: CAPTION.into(), columns, rows: rows.iter().map(row).collect() }
}

/// A row for each endpoint, a column for each algorithm.
fn by_endpoint(all: &[&str], rows: &[Row<'_>]) -> Table {
    let mut columns = vec![Column::new("endpoint")];
    columns.extend(rows.iter().map(|row| Column::with_unit(row.name, "%")));
    let digits = if all.len() > MOST_SHOWN { 4 } else { 1 };
    let row = |name: &&str| {
        let cells = rows.iter().map(|row| row.share(name, digits));
        std::iter::once(Cell::text(*name)).chain(cells).collect()
    };
    Table { caption: CAPTION.into(), columns, rows: all.iter().map(row).collect() }
}

const CAPTION: &str = "Requests by endpoint, of all";

/// How far apart the shares are, and whose are the largest and the smallest.
fn extremes(rows: &[Row<'_>]) -> Table {
    let columns = vec![
        Column::new("algorithm"),
        Column::new("endpoints"),
        Column::with_unit("smallest", "%"),
        Column::with_unit("median", "%"),
        Column::with_unit("largest", "%"),
        Column::new("busiest"),
        Column::new("idlest"),
    ];
    let row = |row: &Row<'_>| {
        // Each run by itself: means over runs hide what is uneven at another place in each.
        let mut runs = row.runs.clone();
        runs.iter_mut().for_each(|shares| shares.sort_unstable_by(f64::total_cmp));
        let at = |place: usize| {
            let sum: f64 = runs.iter().filter_map(|shares| shares.get(place)).sum();
            Cell::number(sum / runs.len().max(1) as f64, 3)
        };
        let name = |place: Option<usize>| {
            place.map_or(Cell::Missing, |place| Cell::text(row.endpoints[place]))
        };
        let count = row.endpoints.len();
        let by_mean = |one: &usize, other: &usize| row.means[*one].total_cmp(&row.means[*other]);
        vec![
            Cell::text(row.name),
            Cell::count(count as u64),
            at(0),
            at(count / 2),
            at(count.saturating_sub(1)),
            // The first of several that are alike.
            name((0..count).rev().max_by(by_mean)),
            name((0..count).min_by(by_mean)),
        ]
    };
    let caption = format!(
        "{CAPTION}: the smallest, the median and the largest share in a run, means over the seeds, and \
         who had most and least over all seeds. The share of every endpoint is in result.json."
    );
    Table { caption, columns, rows: rows.iter().map(row).collect() }
}
