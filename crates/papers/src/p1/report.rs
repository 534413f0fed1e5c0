//! Tables 1 to 3 in k6's own words, by k6 and by our generator, and what has no table in the paper.

use subak_report::{
    Axis, Block, Cell, Column, Plot, PlotKind, Point, Scale, Section, Series, Table,
};

use super::security::VERSIONS;
use super::users::LOADS;
use super::{ALGORITHMS, LIMITED, NETWORKS, claims};
use crate::figures::{bars, cell, columns, count_bars, first_hits, hits};
use crate::results::Results;
use crate::tools::k6::METRICS;

/// The columns of k6's trends.
const TREND: [&str; 6] = ["avg", "min", "med", "max", "p(90)", "p(95)"];

/// A run's name and its cell.
type Run = (String, String);

/// By k6, and by us.
fn both(name: &str, id: &str) -> [Run; 2] {
    [(format!("{name}, by k6"), id.to_owned()), (format!("{name}, by us"), format!("{id}/ours"))]
}

/// The runs of a load.
fn runs(load: &str) -> Vec<Run> {
    let mut runs = Vec::new();
    for kind in ["subak", "nginx"] {
        for algorithm in ALGORITHMS {
            let name = format!("{kind} {algorithm}, one client address");
            runs.extend(both(&name, &format!("P1/{load}/{kind}/{algorithm}/one")));
        }
    }
    let name = format!("subak ip_hash, {NETWORKS} networks");
    runs.extend(both(&name, &format!("P1/{load}/subak/ip_hash/many")));
    for algorithm in ALGORITHMS {
        let name = format!("subak {algorithm}, one address, servers of {LIMITED} at once, by us");
        runs.push((name, format!("P1/{load}/subak/{algorithm}/limited/ours")));
    }
    runs
}

/// All of k6's metrics of these runs; nothing where nothing was measured.
fn metrics(results: &Results, caption: &str, runs: &[Run]) -> Option<Block> {
    let mut rows = Vec::new();
    for metric in METRICS {
        for (name, id) in runs {
            let of = |column: &str| results.mean(id, &format!("{metric}.{column}"));
            let mut cells = vec![Cell::text(metric), Cell::text(name)];
            let mut any = false;
            for column in TREND {
                let mean = of(column);
                any |= mean.is_some();
                cells.push(cell(mean, 2));
            }
            let (count, rate) = (of("count").or(of("passes")).or(of("value")), of("rate"));
            any |= count.is_some();
            cells.push(cell(count, 0));
            cells.push(cell(rate, 2));
            if any {
                rows.push(cells);
            }
        }
    }
    let mut names = columns(["metric", "run"]);
    names.extend(TREND.map(|column| Column::with_unit(column, "ms")));
    names.extend([
        Column::new("count (failed: how many; data: bytes; vus: last)"),
        Column::with_unit("rate", "1/s"),
    ]);
    let caption = caption.to_owned();
    (!rows.is_empty()).then_some(Block::Table(Table { caption, columns: names, rows }))
}

/// Half, 90 and 95 of 100 requests, run by run.
fn plot(results: &Results, caption: &str, runs: &[Run]) -> Option<Block> {
    let shares = [(50.0, "med"), (90.0, "p(90)"), (95.0, "p(95)")];
    let series = runs.iter().map(|(name, id)| {
        let of = |(share, column): (f64, &str)| {
            let mean = results.mean(id, &format!("http_req_duration.{column}"))?;
            Some(Point::new(share, mean.value))
        };
        Series { name: name.clone(), points: shares.into_iter().filter_map(of).collect() }
    });
    let series: Vec<Series> = series.filter(|series| !series.points.is_empty()).collect();
    (!series.is_empty()).then(|| {
        Block::Plot(Plot {
            caption: caption.to_owned(),
            kind: PlotKind::Lines,
            x: Axis::new("of 100 requests", None, Scale::Linear),
            y: Axis::new("http_req_duration, at most", Some("ms"), Scale::Linear),
            series,
        })
    })
}

fn servers(results: &Results, runs: &[Run]) -> Option<Block> {
    let row = |(name, id): &Run| {
        let seen = hits(results, id);
        let any = !matches!(seen, Cell::Missing);
        any.then(|| {
            vec![
                Cell::text(name),
                seen,
                cell(results.mean(id, "jain"), 4),
                cell(results.mean(id, "cpu_mean_percent"), 1),
                cell(results.mean(id, "cpu_balancer_percent"), 1),
            ]
        })
    };
    let rows: Vec<Vec<Cell>> = runs.iter().filter_map(row).collect();
    let mut columns = columns(["run", "hits by server", "Jain's index"]);
    columns.push(Column::with_unit("CPU of the busiest server", "% of a core"));
    columns.push(Column::with_unit("CPU of the balancer", "% of a core"));
    let caption = "What the servers saw (the paper's second monitor)".to_owned();
    (!rows.is_empty()).then_some(Block::Table(Table { caption, columns, rows }))
}

/// The same as bars.
fn server_bars(results: &Results, runs: &[Run]) -> Option<Block> {
    let counted = runs.iter().map(|(name, id)| (name.clone(), first_hits(results, id)));
    let counted: Vec<_> = counted.collect();
    count_bars("Hits by server", ("server", "hits"), &counted)
}

/// One number of several runs as bars.
fn number_bars(
    results: &Results,
    (caption, y, unit): (&str, &str, &str),
    number: &str,
    runs: &[Run],
) -> Option<Block> {
    let rows = runs.iter().map(|(name, id)| {
        let mean = results.mean(id, number);
        (name.clone(), mean.map(|mean| mean.value).into_iter().collect())
    });
    let rows: Vec<_> = rows.collect();
    bars(caption, (y, Some(unit)), &[String::new()], &rows)
}

/// The intended breakpoint, and what the printed script does.
fn breakpoints() -> Vec<Run> {
    let mut runs = Vec::new();
    for algorithm in ALGORITHMS {
        let name = format!("{algorithm}, {NETWORKS} networks, as intended");
        runs.extend(both(&name, &format!("P1/breakpoint/subak/{algorithm}/many")));
    }
    let name = "ip_hash, one client address, as intended, by us".to_owned();
    runs.push((name, "P1/breakpoint/subak/ip_hash/one/ours".to_owned()));
    let printed = "P1/breakpoint_as_printed/subak/round_robin".to_owned();
    runs.push(("round_robin, script as printed, by k6".to_owned(), printed));
    runs
}

/// Where it broke, by our generator.
fn broke(results: &Results) -> Option<Block> {
    let row = |(name, id): &Run| {
        let of = |number: &str| results.mean(id, number);
        of("gave_at_per_s").is_some().then(|| {
            vec![
                Cell::text(name),
                cell(of("gave_at_per_s"), 0),
                cell(of("most_per_s"), 0),
                cell(of("cpu_balancer_percent"), 0),
                cell(of("generator_busy_percent"), 0),
                cell(of("generator_starved_percent"), 0),
            ]
        })
    };
    let rows: Vec<Vec<Cell>> = breakpoints().iter().filter_map(row).collect();
    let columns = vec![
        Column::new("run"),
        Column::with_unit("asked when it gave", "1/s"),
        Column::with_unit("most answered in an interval before", "1/s"),
        Column::with_unit("CPU of the balancer, mean", "% of a core"),
        Column::with_unit("CPU of the generator, mean", "% of a core"),
        Column::with_unit("generator waited for a core", "% of the time"),
    ];
    let caption =
        "Where it gave, by our generator: 5 % failed or p95 was 2 s in an interval".to_owned();
    (!rows.is_empty()).then_some(Block::Table(Table { caption, columns, rows }))
}

fn recoveries(results: &Results) -> Option<Block> {
    let row = |algorithm: &&str| {
        let id = format!("P1/robustness/subak/{algorithm}/ours");
        let of = |number: &str| results.mean(&id, number);
        of("http_reqs.count").is_some().then(|| {
            vec![
                Cell::text(*algorithm),
                cell(of("http_reqs.count"), 0),
                cell(of("http_req_failed.passes"), 0),
                cell(of("http_req_duration.max"), 0),
                cell(of("p95_before_ms"), 0),
                cell(of("recovery_s"), 2),
            ]
        })
    };
    let rows: Vec<Vec<Cell>> = ALGORITHMS.iter().filter_map(row).collect();
    let columns = vec![
        Column::new("algorithm"),
        Column::new("requests"),
        Column::new("refused or late"),
        Column::with_unit("longest request", "ms"),
        Column::with_unit("p95 before", "ms"),
        Column::with_unit("until all was well", "s"),
    ];
    let caption =
        "Robustness: half of what servers can do, 1.5 times as much, and half again".to_owned();
    (!rows.is_empty()).then_some(Block::Table(Table { caption, columns, rows }))
}

pub(crate) fn sections(results: &Results) -> Vec<Section> {
    let mut sections = Vec::new();
    for (number, (load, _)) in (1..).zip(LOADS) {
        let runs = runs(load);
        let caption = format!("Table {number}: {load} load, every metric of k6");
        let blocks = [
            plot(results, &format!("{load} load: how long requests took"), &runs),
            metrics(results, &caption, &runs),
            servers(results, &runs),
            server_bars(results, &runs),
        ];
        sections.extend(section(format!("P1: {load} load"), blocks));
    }
    let runs = breakpoints();
    let gave = ("Where it gave, by our generator", "asked when it gave", "1/s");
    let blocks = [
        broke(results),
        number_bars(results, gave, "gave_at_per_s", &runs),
        metrics(results, "Table 3: breakpoint", &runs),
        servers(results, &runs),
    ];
    sections.extend(section("P1: breakpoint".to_owned(), blocks));
    let mut runs = Vec::new();
    for algorithm in ALGORITHMS {
        let name = format!("{algorithm}, one client address");
        runs.extend(both(&name, &format!("P1/spike/subak/{algorithm}/one")));
    }
    let spike = metrics(results, "Spike: 40 users, 200 at once, 40 again", &runs);
    let soak = both("round_robin", "P1/soak/subak/round_robin/one");
    let soak = metrics(results, "Soak: 100 users for half an hour at full scale", &soak);
    let mut runs = Vec::new();
    for algorithm in ALGORITHMS {
        let name = format!("{algorithm}, a server dies half-way");
        runs.extend(both(&name, &format!("P1/failover/subak/{algorithm}")));
    }
    let failover = metrics(results, "Failover: 100 users from 64 networks", &runs);
    let died = plot(results, "Failover: how long requests took", &runs);
    let recovered = ALGORITHMS
        .map(|algorithm| (algorithm.to_owned(), format!("P1/robustness/subak/{algorithm}/ours")));
    let well = ("Robustness: from the end of too much until all was well", "until then", "s");
    let blocks = [
        spike,
        soak,
        failover,
        died,
        servers(results, &runs),
        recoveries(results),
        number_bars(results, well, "recovery_s", &recovered),
    ];
    sections.extend(section("P1: what the paper claims without a table".to_owned(), blocks));
    let blocks = [slow_clients(results), versions(results), ambiguous(results)];
    sections.extend(section("P1: security".to_owned(), blocks));
    sections.extend(section("P1: what the set-up hides".to_owned(), [lengths()]));
    sections
}

/// Bars of numbers of one cell; nothing where it was not measured.
fn numbers(
    results: &Results,
    (caption, y): (&str, (&str, Option<&str>)),
    id: &str,
    named: &[(&str, &str)],
) -> Option<Block> {
    let rows = named.iter().map(|(name, number)| {
        let mean = results.mean(id, number);
        ((*name).to_owned(), mean.map(|mean| mean.value).into_iter().collect())
    });
    let rows: Vec<_> = rows.collect();
    bars(caption, y, &[String::new()], &rows)
}

fn slow_clients(results: &Results) -> Option<Block> {
    let what = ("500 slow clients: p95 of the others", ("p95", Some("ms")));
    let named = [("the others alone", "p95_alone_ms"), ("beside slow clients", "p95_together_ms")];
    numbers(results, what, "P1/security/slow_clients/ours", &named)
}

fn versions(results: &Results) -> Option<Block> {
    let what = ("Versions of TLS: 1 is spoken, 0 refused", ("spoken", None));
    let named = VERSIONS.map(|version| (version, version));
    numbers(results, what, "P1/security/versions", &named)
}

fn ambiguous(results: &Results) -> Option<Block> {
    let what = ("Requests that can be read in two ways", ("requests", None));
    let named = [
        ("refused as they must be", "refused"),
        ("answered otherwise", "not_refused"),
        ("reached a server", "reached"),
    ];
    numbers(results, what, "P1/security/ambiguous", &named)
}

/// Of the runs that the paper compares.
fn lengths() -> Option<Block> {
    let [average, average_hash, stress, stress_hash] = claims::lengths_s();
    let rows = [
        ("average load".to_owned(), vec![average, average_hash]),
        ("stress load".to_owned(), vec![stress, stress_hash]),
    ];
    let series = ["round robin", "IP hash"].map(str::to_owned);
    bars("Lengths of the paper's runs: requests ÷ rate", ("length", Some("s")), &series, &rows)
}

/// Nothing where nothing was measured.
fn section(title: String, blocks: impl IntoIterator<Item = Option<Block>>) -> Option<Section> {
    let blocks: Vec<Block> = blocks.into_iter().flatten().collect();
    (!blocks.is_empty()).then(|| Section::new(title, blocks))
}
