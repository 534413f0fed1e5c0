//! Figures 12 to 21, and what became of their claims.

use subak_report::{
    Axis, Block, Cell, Plot, PlotKind, Point, Scale, Section, Series, Table, Verdict, Word,
};

use super::{ALGORITHMS, DRAWS, HASHES, WEIGHTS, proxy, steps, visits_name, weights_name};
use crate::figures::{Grid, columns, count_bars, not_run, slashed};
use crate::hashing::clients::Clients;
use crate::hashing::cost::{NODES, Search};
use crate::hashing::visits::Hash;
use crate::results::Results;
use crate::statistics::ChiSquare;

const COMPUTED: &str = "P3/visits_computed";

pub(crate) fn sections(results: &Results) -> Vec<Section> {
    let mut spread = vec![visits(results)];
    spread.extend(visit_bars(results));
    spread.push(real_visits(results));
    spread.extend(cost(results));
    vec![
        Section::new("P3: where hashes send clients, and what that costs", spread),
        Section::new("P3: four algorithms under rising load", load(results)),
        proxy::section(results),
    ]
}

fn grid<'a>(
    caption: &str,
    algorithms: &[(&str, &str, u32)],
    number: &'a str,
    unit: &'a str,
) -> Grid<'a> {
    let row = |(algorithm, name, nodes): &(&str, &str, u32)| {
        let ids = steps().map(|threads| format!("P3/load/{algorithm}/{nodes}/{threads}"));
        ((*name).to_owned(), ids.collect())
    };
    Grid {
        caption: caption.to_owned(),
        corner: "algorithm",
        unit,
        digits: 1,
        rows: algorithms.iter().map(row).collect(),
        columns: steps().map(|threads| threads.to_string()).collect(),
        number,
    }
}

fn load(results: &Results) -> Vec<Block> {
    let x: Vec<f64> = steps().map(f64::from).collect();
    let four = ALGORITHMS.map(|(algorithm, name)| (algorithm, name, 3));
    let two = [("new_hash", "2 nodes", 2), ("new_hash", "3 nodes", 3)];
    let text = "\"Threads per second\" is read as requests that begin each second, whether or not \
                earlier ones were answered. A node serves ten at once, 10 ms each, which is 1,000 a \
                second; 290 wait in line, more are answered with 503. 1,000 clients of random addresses have a connection each, and a request \
                takes one that is free: who waits for a node that is behind asks less, which spares \
                that node. Subak balances: nginx has no NEW_HASH.";
    let mut blocks = vec![Block::Text(text.to_owned())];
    for (caption, algorithms, number, unit, y) in [
        ("Figure 13: response time, median", &four[..], "median_ms", "ms", "median"),
        ("Figure 13 again: response time, p95", &four[..], "p95_ms", "ms", "p95"),
        ("Figure 14: failure rate", &four[..], "failed_percent", "%", "failed"),
        ("Figure 15: throughput", &four[..], "rate_per_s", "1/s", "answered"),
        ("Figure 17: response time of NEW_HASH, p95", &two[..], "p95_ms", "ms", "p95"),
        ("Figure 18: failure rate of NEW_HASH", &two[..], "failed_percent", "%", "failed"),
        ("Figure 19: throughput of NEW_HASH", &two[..], "rate_per_s", "1/s", "answered"),
    ] {
        let grid = grid(caption, algorithms, number, unit);
        blocks.push(grid.table(results));
        blocks.extend(grid.plot(results, ("requests begun a second", &x), y));
    }
    blocks
}

/// Counts of one draw.
fn counts(
    results: &Results,
    hash: Hash,
    weights: [u32; 3],
    clients: Clients,
    draw: u64,
) -> Option<Vec<u64>> {
    let name = visits_name(hash, weights, clients, draw);
    results.counts(COMPUTED, &name).first().map(|counts| counts.to_vec())
}

fn chi(counts: &[u64], weights: [u32; 3]) -> ChiSquare {
    ChiSquare::of(counts, &weights.map(u64::from))
}

fn visits(results: &Results) -> Block {
    let mut rows = Vec::new();
    for clients in Clients::ALL {
        for weights in WEIGHTS {
            for hash in HASHES {
                let draws: Vec<Vec<u64>> = (1..=DRAWS)
                    .filter_map(|draw| counts(results, hash, weights, clients, draw))
                    .collect();
                let Some(first) = draws.first() else { continue };
                let even = draws.iter().filter(|counts| chi(counts, weights).is_even()).count();
                let all: Vec<f64> =
                    draws.iter().map(|counts| chi(counts, weights).statistic).collect();
                rows.push(vec![
                    Cell::text(clients.name()),
                    Cell::text(weights_name(weights)),
                    Cell::text(hash.name()),
                    Cell::text(slashed(first)),
                    Cell::number(all.iter().sum::<f64>() / all.len() as f64, 2),
                    Cell::text(format!("{even} of {}", draws.len())),
                ]);
            }
        }
    }
    Block::Table(Table {
        caption:
            "Figures 20 and 21: visits of three nodes by 1,000 clients, five draws; chi-square \
                  with 2 degrees of freedom (5.99 is one in twenty)"
                .to_owned(),
        columns: columns([
            "clients",
            "weights",
            "hash",
            "visits in the first draw",
            "mean chi-square",
            "draws that chance explains",
        ]),
        rows,
    })
}

/// The first draw of each set of clients, weights alike.
fn visit_bars(results: &Results) -> Option<Block> {
    let counted = Clients::ALL.into_iter().flat_map(|clients| {
        HASHES.map(|hash| {
            let counts = counts(results, hash, WEIGHTS[0], clients, 1);
            (format!("{}, {}", clients.name(), hash.name()), counts.unwrap_or_default())
        })
    });
    let counted: Vec<_> = counted.collect();
    let caption = "Figures 20 and 21: visits at weights 1:1:1, first draw";
    count_bars(caption, ("node", "visits"), &counted)
}

fn real_visits(results: &Results) -> Block {
    let mut rows = Vec::new();
    for (id, name) in [
        ("P3/visits/nginx/ip_hash", "nginx ip_hash"),
        ("P3/visits/subak/ip_hash", "Subak ip_hash"),
        ("P3/visits/subak/new_hash", "Subak new_hash"),
    ] {
        let all = results.counts(id, "hits");
        let mut cells = vec![Cell::text(name)];
        for draw in 0..DRAWS as usize {
            cells.push(all.get(draw).map_or(Cell::Missing, |hits| Cell::text(slashed(hits))));
        }
        rows.push(cells);
    }
    Block::Table(Table {
        caption: "The same by processes: 1,000 random clients, each from its own address, once"
            .to_owned(),
        columns: columns(["balancer", "draw 1", "draw 2", "draw 3", "draw 4", "draw 5"]),
        rows,
    })
}

fn cost(results: &Results) -> Option<Block> {
    let series = Search::ALL.map(|search| Series {
        name: search.name().to_owned(),
        points: NODES
            .iter()
            .filter_map(|nodes| Some(Point::new(*nodes as f64, ns(results, search, *nodes)?)))
            .collect(),
    });
    let series: Vec<Series> = series.into_iter().filter(|one| !one.points.is_empty()).collect();
    (!series.is_empty()).then(|| {
        Block::Plot(Plot {
            caption: "Figure 12, measured: the cost of locating a node".to_owned(),
            kind: PlotKind::Lines,
            x: Axis::new("nodes", None, Scale::Log),
            y: Axis::new("time of a pick", Some("ns"), Scale::Log),
            series,
        })
    })
}

fn ns(results: &Results, search: Search, nodes: usize) -> Option<f64> {
    results.mean(&format!("P3/cost/{}", search.key()), &nodes.to_string()).map(|mean| mean.value)
}

pub(crate) fn verdicts(results: &Results) -> Vec<Verdict> {
    let mut verdicts = vec![
        evenness(results),
        speed(results),
        under_load(
            results,
            "p95_ms",
            "P3: NEW_HASH has the lowest response time at high concurrency",
        ),
        under_load(
            results,
            "failed_percent",
            "P3: NEW_HASH has the fewest failures at high concurrency",
        ),
        octets(results),
        printed(results),
    ];
    verdicts.extend(proxy::verdicts(results));
    verdicts.push(not_run(
        "P3: the virtual IP fails over to the backup and comes back to the master",
        "needs VRRP (Keepalived's part), which is later work. Scenario: two balancers in a namespace \
         each, priorities 150 and 100, preemption on; the master is killed under 500 requests a \
         second and comes back; requests lost and seconds without an address are reported",
    ));
    verdicts
}

fn evenness(results: &Results) -> Verdict {
    let claim = "P3: NEW_HASH spreads random clients more evenly than IP_HASH";
    let of = |hash| {
        let draws =
            (1..=DRAWS).filter_map(|draw| counts(results, hash, WEIGHTS[0], Clients::Random, draw));
        let all: Vec<ChiSquare> = draws.map(|counts| chi(&counts, WEIGHTS[0])).collect();
        let even = all.iter().filter(|chi| chi.is_even()).count();
        (all.iter().map(|chi| chi.statistic).sum::<f64>() / all.len() as f64, even, all.len())
    };
    let ((ip, ip_even, draws), (new, new_even, _)) = (of(Hash::IpHash), of(Hash::NewHash));
    if draws == 0 {
        return not_run(claim, results.why_not(COMPUTED));
    }
    // Both as even as chance lets them be: nothing to be ahead in.
    let word = if ip_even < new_even && new < ip { Word::Reproduced } else { Word::NotReproduced };
    Verdict::new(
        claim,
        word,
        format!(
            "over random clients: mean chi-square {ip:.2} and {new:.2} with 2 degrees \
             of freedom, and chance alone explains {ip_even} and {new_even} of {draws} draws. Clients \
             of one third octet are what NEW_HASH is worse at"
        ),
    )
}

fn speed(results: &Results) -> Verdict {
    let claim = "P3: NEW_HASH finds a node faster: log n instead of n";
    let all = Search::ALL.map(|search| (search, ns(results, search, 3), ns(results, search, 1000)));
    let listed = all.map(|(search, few, many)| match (few, many) {
        (Some(few), Some(many)) => format!("{} {few:.0} and {many:.0}", search.name()),
        _ => format!("{} not run", search.name()),
    });
    let [
        (_, Some(walk_few), Some(walk_many)),
        _,
        (_, Some(new_few), Some(new_many)),
        (_, Some(printed_few), Some(printed_many)),
    ] = all
    else {
        return not_run(claim, results.why_not("P3/cost/"));
    };
    let because = format!(
        "ns a pick at 3 and at 1,000 nodes: {}. As printed it sorts for every request and is {} than \
         the walk at 3 nodes and {} at 1,000; with prefix sums made once the search is logarithmic",
        listed.join("; "),
        if printed_few > walk_few { "slower" } else { "faster" },
        if printed_many > walk_many { "slower" } else { "faster" },
    );
    let word = match (new_many < walk_many, printed_many < walk_many) {
        (true, true) if new_few < walk_few => Word::Reproduced,
        _ => Word::NotReproduced,
    };
    Verdict::new(claim, word, because)
}

fn under_load(results: &Results, number: &str, claim: &str) -> Verdict {
    let high = [2600, 2800, 3000];
    let of = |algorithm: &str| {
        let ids = high.map(|threads| format!("P3/load/{algorithm}/3/{threads}"));
        let values = ids.map(|id| results.mean(&id, number).map(|mean| mean.value));
        let all: Option<Vec<f64>> = values.into_iter().collect();
        all.map(|all| all.iter().sum::<f64>() / all.len() as f64)
    };
    let all = ALGORITHMS.map(|(algorithm, name)| (name, of(algorithm)));
    if all.iter().any(|(_, value)| value.is_none()) {
        return not_run(claim, results.why_not("P3/load/new_hash/3/"));
    }
    let unit = if number.ends_with("_ms") { "ms" } else { "%" };
    let value = |index: usize| all[index].1.unwrap_or(f64::INFINITY);
    let listed = all.map(|(name, value)| format!("{name} {:.1} {unit}", value.unwrap_or(0.0)));
    // One run of each: what is not ahead of all by a tenth cannot be told from chance.
    let best_other = (0..3).map(value).fold(f64::INFINITY, f64::min);
    let worst_other = (0..3).map(value).fold(0.0, f64::max);
    let word = match () {
        () if value(3) < best_other * 0.9 => Word::Reproduced,
        () if value(3).max(worst_other) <= value(3).min(best_other) * 1.1 => Word::NoDifference,
        () => Word::NotReproduced,
    };
    let because = format!(
        "mean over 2,600, 2,800 and 3,000 requests a second: {}. A pick takes nanoseconds of a request \
         of milliseconds; what decides is how evenly requests reach nodes near their limit",
        listed.join(", ")
    );
    Verdict::new(claim, word, because)
}

fn octets(results: &Results) -> Verdict {
    let claim = "P3, hidden: where the sum of weights is divisible by 3 or 11, NEW_HASH nearly ignores two octets";
    let of = |weights, clients| counts(results, Hash::NewHash, weights, clients, 1);
    let (Some(three), Some(four), Some(eleven)) = (
        of(WEIGHTS[0], Clients::ThirdOctetSeven),
        of(WEIGHTS[1], Clients::ThirdOctetSeven),
        of(WEIGHTS[2], Clients::ThirdOctetSeven),
    ) else {
        return not_run(claim, results.why_not(COMPUTED));
    };
    let shows = three[1] == 0 && four.iter().all(|count| *count > 0);
    Verdict::new(
        claim,
        if shows { Word::Holds } else { Word::Fails },
        format!(
            "1,000 clients whose third octet is 7: {} at 1:1:1 and {} at 5:3:3 (sum 11), but {} at \
             2:1:1 (sum 4). The factor 33 = 3 × 11 takes what the first octets left out of h mod Σw; \
             only what h ≫ 16 brings back remains",
            slashed(&three),
            slashed(&eleven),
            slashed(&four),
        ),
    )
}

fn printed(results: &Results) -> Verdict {
    let claim =
        "P3, hidden: algorithm 5 as printed sends everything to one node at 1:1:1 and 2:1:1";
    let of = |weights| counts(results, Hash::Algorithm5AsPrinted, weights, Clients::Random, 1);
    let (Some(equal), Some(double), Some(eleven)) =
        (of(WEIGHTS[0]), of(WEIGHTS[1]), of(WEIGHTS[2]))
    else {
        return not_run(claim, results.why_not(COMPUTED));
    };
    let is_so = equal[1] == 1000 && double[1] == 1000;
    Verdict::new(
        claim,
        if is_so { Word::Holds } else { Word::Fails },
        format!(
            "random clients: {} at 1:1:1, {} at 2:1:1 (index 1, counted from 0), {} at 5:3:3: it \
             searches the sorted weights as if they were prefix sums",
            slashed(&equal),
            slashed(&double),
            slashed(&eleven),
        ),
    )
}
