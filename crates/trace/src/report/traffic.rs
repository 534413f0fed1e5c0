//! What was read of the log.

use subak_report::{
    Axis, Block, Cell, Column, Plot, PlotKind, Point, Scale, Section, Series, Table,
};

use crate::describe::Traffic;
use crate::log::Log;
use crate::moment::Grain;

pub(super) fn traffic(log: &Log, traffic: &Traffic) -> Section {
    let counts = &log.counts;
    let mut rows = Vec::new();
    let mut add = |name: &str, value: String| rows.push(vec![Cell::text(name), Cell::text(value)]);
    add("lines", counts.lines.to_string());
    add("lines of another format", counts.bad.to_string());
    add("requests to endpoints", log.requests.len().to_string());
    if counts.not_balanced > 0 {
        add("requests to no endpoint, left out", counts.not_balanced.to_string());
    }
    if counts.other_pools > 0 {
        add("requests of other pools, left out", counts.other_pools.to_string());
    }
    if counts.beyond > 0 {
        add("lines past the bounds, left out", counts.beyond.to_string());
    }
    add("endpoints", log.endpoints.len().to_string());
    add("time", format!("{:.1} s", traffic.lasts_s));
    add("mean rate", format!("{:.1} requests/s", traffic.mean));
    add("busiest second", format!("{} requests", traffic.peak));
    let words = match traffic.burstiness {
        burstiness if burstiness < 0.7 => "more even than chance",
        burstiness if burstiness < 1.5 => "like chance (Poisson)",
        _ => "in bursts, or at a rate that changes",
    };
    add("burstiness (variance ÷ mean, by second)", format!("{:.2}: {words}", traffic.burstiness));
    for (name, share) in [("clients", &traffic.clients), ("URIs", &traffic.uris)] {
        let (first, ten) = (share.first * 100.0, share.ten * 100.0);
        let busiest = format!("the busiest has {first:.1} % of the requests, ten have {ten:.1} %");
        add(name, format!("{}; {busiest}", share.count));
    }
    if log.grain != Grain::Micros || log.is_coarse {
        let grain = match log.grain {
            Grain::Seconds => "seconds",
            Grain::Millis | Grain::Micros => "milliseconds",
        };
        let unit = if log.is_coarse { "milliseconds" } else { "microseconds" };
        add(
            "precision",
            format!("moments in {grain}, durations in {unit}; the rest is spread evenly"),
        );
    }
    let columns = vec![Column::new("figure"), Column::new("value")];
    let caption = "What was read".to_owned();
    let mut blocks = vec![Block::Table(Table { caption, columns, rows })];
    if let Some((number, line)) = &counts.first_bad {
        let text = format!("The first line of another format is number {number}:\n\n{line}");
        blocks.push(Block::Text(text));
    }
    blocks.push(Block::Plot(Plot {
        caption: "Requests over time".into(),
        kind: PlotKind::Steps,
        x: Axis::new("time", Some("s"), Scale::Linear),
        y: Axis::new("rate", Some("requests/s"), Scale::Linear),
        series: vec![Series {
            name: String::new(),
            points: traffic.rates.iter().map(|(x, y)| Point::new(*x, *y)).collect(),
        }],
    }));
    Section::new("The log", blocks)
}
