//! How the endpoints work by the log, and how well that replays it.

use std::cmp::Reverse;

use subak_report::{Block, Cell, Column, Section, Table};

use crate::fit::{Check, FIGURE_NAMES, FIGURES, Fit, shown};
use crate::log::Log;
use crate::replay::Trial;

/// Endpoints whose figures people see; of more the slowest.
const MOST_SHOWN: usize = 32;

pub(super) fn model(log: &Log, fit: &Fit, trial: Option<&Trial>) -> Section {
    let columns = vec![
        Column::new("endpoint"),
        Column::new("requests"),
        Column::new("at once"),
        Column::with_unit("service p50", "ms"),
        Column::with_unit("service p95", "ms"),
        Column::with_unit("service mean", "ms"),
        Column::with_unit("failed", "%"),
    ];
    let rows = log.endpoints.iter().zip(&fit.endpoints).map(|(name, endpoint)| {
        let ms = |nanos: u64| Cell::number(nanos as f64 / 1e6, 3);
        let least = if endpoint.is_at_least { "at least " } else { "" };
        let name = match endpoint.is_borrowed {
            true => format!("{name} (few requests: times of all)"),
            false => name.clone(),
        };
        vec![
            Cell::text(name),
            Cell::count(endpoint.requests as u64),
            Cell::text(format!("{least}{}", endpoint.concurrency)),
            ms(endpoint.service.quantile(500)),
            ms(endpoint.service.quantile(950)),
            ms(endpoint.service.mean()),
            Cell::number(f64::from(endpoint.failed_per_mille) / 10.0, 1),
        ]
    });
    let mut caption =
        "How the endpoints work, as far as the log shows: requests at once, and the times of \
                   requests that found fewer than that at work, which did not have to wait. \"At \
                   least\": nobody was seen to wait; beyond that, waiting is assumed."
            .to_owned();
    let rows: Vec<Vec<Cell>> = rows.collect();
    let mut blocks = Vec::new();
    if rows.len() > MOST_SHOWN {
        let mut slowest: Vec<usize> = (0..rows.len()).collect();
        slowest.sort_by_key(|place| Reverse(fit.endpoints[*place].service.mean()));
        slowest.truncate(MOST_SHOWN);
        let shown = slowest.into_iter().map(|place| rows[place].clone()).collect();
        let all = rows.len();
        let whole = Table { caption: caption.clone(), columns: columns.clone(), rows };
        caption += &format!(
            " Of {all} endpoints these are the {MOST_SHOWN} slowest; all are in result.json."
        );
        blocks.push(Block::Table(Table { caption, columns, rows: shown }));
        blocks.push(Block::Data(whole));
    } else {
        blocks.push(Block::Table(Table { caption, columns, rows }));
    }
    if let Some(cache) = &fit.cache {
        let means = |of: fn(&crate::fit::EndpointFit) -> u64| {
            let sum: u64 = fit.endpoints.iter().map(of).sum();
            shown(sum / fit.endpoints.len() as u64)
        };
        blocks.push(Block::Text(format!(
            "Endpoints are faster with what they have served lately, as if each kept the latest {} \
             URIs: {} instead of {} on average (the table has the latter). So it was with {:.1} % of \
             the requests that did not wait.",
            cache.objects,
            means(|endpoint| endpoint.hit.as_ref().map_or(0, |hit| hit.mean())),
            means(|endpoint| endpoint.service.mean()),
            f64::from(cache.hits_per_mille) / 10.0
        )));
    }
    blocks.push(Block::Table(checks(&fit.check, trial.map(|trial| &trial.check))));
    Section::new("The model, and how well it replays the log", blocks)
}

fn checks(as_logged: &Check, by_base: Option<&Check>) -> Table {
    let mut columns = vec![
        Column::new("figure"),
        Column::with_unit("log", "ms"),
        Column::with_unit("replayed to the same endpoints", "ms"),
        Column::with_unit("off", "%"),
    ];
    if by_base.is_some() {
        columns.push(Column::with_unit("replayed by the algorithm", "ms"));
        columns.push(Column::with_unit("off", "%"));
    }
    let ms = |nanos: u64| Cell::number(nanos as f64 / 1e6, 3);
    let off = |check: &Check, place: usize| {
        let (logged, replayed) = (check.logged[place] as f64, check.replayed[place] as f64);
        Cell::number((replayed / logged.max(1.0) - 1.0) * 100.0, 1)
    };
    let rows = (0..FIGURES).map(|place| {
        let mut row = vec![
            Cell::text(FIGURE_NAMES[place]),
            ms(as_logged.logged[place]),
            ms(as_logged.replayed[place]),
            off(as_logged, place),
        ];
        match by_base {
            Some(check) if place < 3 => row.extend([ms(check.replayed[place]), off(check, place)]),
            Some(_) => row.extend([Cell::Missing, Cell::Missing]),
            None => {}
        }
        row
    });
    let caption = "Tolerated: 15 % for p50 and p95, 20 % for the others (or 1 ms, where the log tells \
                   whole milliseconds). Beyond that the log cannot tell.";
    Table { caption: caption.into(), columns, rows: rows.collect() }
}
