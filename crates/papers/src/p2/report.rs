//! Tables 5 to 7 and figures 9 to 13, and what became of their claims.

use subak_report::{Block, Cell, Section, Table, Verdict, Word};

use super::printed::{CPU_PERCENT, RESPONSE_MS, ROWS, THROUGHPUT, product, product_restored};
use super::{ALGORITHMS, ALIKE, KINDS, LOADS, PRINTED};
use crate::figures::{Grid, columns, count_bars, first_hits, hits, is_lowest, not_run, words};
use crate::results::Results;
use crate::world::Kind;

const LAST: u32 = LOADS[LOADS.len() - 1];

/// Every variant by its cell's name.
fn variants() -> Vec<String> {
    let mut names = vec![ALIKE.to_owned(), PRINTED.to_owned()];
    for kind in KINDS {
        let has = ALGORITHMS.into_iter().filter(|name| kind.word(name).is_some());
        names.extend(has.map(|algorithm| format!("{}/{algorithm}", kind.key())));
    }
    names
}

fn grid<'a>(caption: &str, prefix: &str, number: &'a str, unit: &'a str) -> Grid<'a> {
    let row = |name: String| {
        let ids = LOADS.map(|load| format!("{prefix}{name}/{load}")).to_vec();
        (name, ids)
    };
    Grid {
        caption: caption.to_owned(),
        corner: "balancer and algorithm",
        unit,
        digits: 3,
        rows: variants().into_iter().map(row).collect(),
        columns: LOADS.map(|load| load.to_string()).to_vec(),
        number,
    }
}

pub(crate) fn sections(results: &Results) -> Vec<Section> {
    let x = LOADS.map(f64::from);
    let mut measured = Vec::new();
    let mut add = |grid: &Grid<'_>, y: &str| {
        measured.push(grid.table(results));
        measured.extend(grid.plot(results, ("requests", &x), y));
    };
    add(
        &grid("How long a request took: ab's \"Time per request (mean)\"", "P2/", "time_ms", "ms"),
        "time per request",
    );
    add(
        &grid(
            "Table 5 as the paper read it: \"mean, across all concurrent requests\", which is 1 ÷ throughput",
            "P2/",
            "across_ms",
            "ms",
        ),
        "1 ÷ throughput",
    );
    add(&grid("Table 6: throughput", "P2/", "throughput_kbytes_per_s", "Kbytes/s"), "throughput");
    let cpu =
        |name: String| (name.clone(), LOADS.map(|load| format!("P2/cpu/{name}/{load}")).to_vec());
    let mut rows = vec![cpu(ALIKE.to_owned())];
    rows.extend(ALGORITHMS.map(|algorithm| cpu(format!("subak/{algorithm}"))));
    let cpu = Grid {
        caption:
            "Table 7: CPU of the busiest server under the ramp (N users in three minutes), mean"
                .to_owned(),
        rows,
        ..grid("", "", "cpu_mean_percent", "% of a core")
    };
    add(&cpu, "CPU of the busiest server");
    let row = |name: String| {
        let of = |load| hits(results, &format!("P2/{name}/{load}"));
        let mut cells = vec![Cell::text(&name)];
        cells.extend(LOADS.map(of));
        cells
    };
    measured.push(Block::Table(Table {
        caption: "Figures 9 and 13: service hits by server".to_owned(),
        columns: columns(
            ["balancer and algorithm"].into_iter().chain(["3,000", "6,000", "9,000", "12,000"]),
        ),
        rows: variants().into_iter().filter(|name| !name.starts_with("none")).map(row).collect(),
    }));
    let balanced = variants().into_iter().filter(|name| !name.starts_with("none"));
    let counted = balanced.map(|name| {
        let hits = first_hits(results, &format!("P2/{name}/{LAST}"));
        (name, hits)
    });
    let counted: Vec<_> = counted.collect();
    let caption = format!("Service hits of {LAST} requests");
    measured.extend(count_bars(&caption, ("server", "hits"), &counted));
    vec![
        Section::new("P2: four algorithms behind one address, `ab -n N -c 10`", measured),
        Section::new("P2: what the paper's own numbers say", hidden()),
    ]
}

/// Response time × throughput of every row of the paper.
fn hidden() -> Vec<Block> {
    let row = |row: usize| {
        let mut cells = vec![Cell::text(ROWS[row])];
        for load in 0..LOADS.len() {
            cells.push(Cell::number(product(row, load), 1));
        }
        cells.push(Cell::number(product_restored(row, LOADS.len() - 1), 1));
        cells
    };
    let text = "ab's \"Time per request (mean, across all concurrent requests)\" is the time of the \
                whole run divided by the number of requests: 1 ÷ throughput, and no response time. So \
                the product of tables 5 and 6 is the size of an answer, some 1,143 bytes with its \
                head, in every balanced row; at 12,000 two throughputs were exchanged. The row \
                without a balancer has another document (834 instead of 864 bytes) and kept its \
                connections (11,866 of 12,000). CPU is not lowest for least packet at 6,000: 2.025 %, \
                against 1.3758 % for least connection.";
    vec![
        Block::Text(text.to_owned()),
        Block::Table(Table {
            caption: "Table 5 × table 6 of the paper, in bytes".to_owned(),
            columns: columns([
                "row",
                "3,000",
                "6,000",
                "9,000",
                "12,000",
                "12,000, two exchanged back",
            ]),
            rows: (0..ROWS.len()).map(row).collect(),
        }),
    ]
}

pub(crate) fn verdicts(results: &Results) -> Vec<Verdict> {
    vec![
        exact_hits(results),
        best_response(results),
        over_none(results),
        lowest_cpu(results),
        evenest(results),
        one_number(),
    ]
}

fn exact_hits(results: &Results) -> Verdict {
    let claim = "P2: round robin hits each of four servers exactly 3,000 times in 12,000";
    let (mut seen, mut all_exact, mut has_last) = (Vec::new(), true, false);
    for kind in KINDS {
        for load in LOADS {
            let all = results.counts(&format!("P2/{}/round_robin/{load}", kind.key()), "hits");
            if !all.is_empty() {
                let quarter = u64::from(load / 4);
                all_exact &= all.iter().all(|hits| hits.iter().all(|count| *count == quarter));
                has_last |= load == LAST;
                seen.push(format!("{} {load} ({} times)", kind.name(), all.len()));
            }
        }
    }
    if seen.is_empty() {
        return not_run(claim, results.why_not("P2/subak/round_robin/"));
    }
    let (word, what) = match (all_exact, has_last) {
        (true, true) => (Word::Reproduced, "a quarter each, every time"),
        (true, false) => (Word::CannotTell, "a quarter each, but 12,000 were not asked for"),
        (false, _) => (Word::NotReproduced, "not every run was exact, see the table of hits"),
    };
    Verdict::new(claim, word, format!("{}: {what}", seen.join(", ")))
}

fn best_response(results: &Results) -> Verdict {
    let claim = "P2: least connection has the best response time and throughput of the four";
    let order = ["least_connections", "round_robin", "least_response_time", "least_packets"];
    let judged = LOADS.map(|load| {
        let ids = order.map(|name| format!("P2/subak/{name}/{load}"));
        is_lowest(results, &ids, "time_ms")
    });
    let of = |name: &str| words(results.mean(&format!("P2/subak/{name}/{LAST}"), "time_ms"), "ms");
    let because = format!(
        "time per request at {LAST}: least connections {}, round robin {}, least response time {}, \
         least packets {}",
        of(order[0]),
        of(order[1]),
        of(order[2]),
        of(order[3]),
    );
    if results.mean(&format!("P2/subak/{}/{LAST}", order[0]), "time_ms").is_none() {
        return not_run(claim, results.why_not("P2/subak/least_connections/"));
    }
    let word = match judged {
        _ if judged.iter().all(|one| *one == Some(true)) => Word::Reproduced,
        _ if judged.contains(&Some(false)) => Word::NotReproduced,
        _ if results.of(&format!("P2/subak/{}/{LAST}", order[0])).len() < 3 => Word::CannotTell,
        _ => Word::NoDifference,
    };
    Verdict::new(claim, word, because)
}

fn over_none(results: &Results) -> Verdict {
    let claim = "P2: −33 % response time and +53 % throughput against no balancer";
    let mean = |name: &str, number: &str| {
        results.mean(&format!("P2/{name}/{LAST}"), number).map(|mean| mean.value)
    };
    let of = |number: &str| {
        Some((mean("subak/least_connections", number)? / mean(ALIKE, number)? - 1.0) * 100.0)
    };
    let (Some(time), Some(rate)) = (of("time_ms"), of("throughput_kbytes_per_s")) else {
        return not_run(claim, results.why_not(&format!("P2/{ALIKE}/")));
    };
    let because = format!(
        "least connections against the same request without a balancer: time {time:+.0} %, \
         throughput {rate:+.0} %. Here servers, balancer and client share one machine, and a page \
         costs a server less than balancing costs; theirs was a slow virtual machine alone, with \
         another document and kept connections. The two percentages are one number: \
         1 ÷ (1 − 0.33) = 1.5"
    );
    Verdict::new(claim, Word::NotComparable, because)
}

fn lowest_cpu(results: &Results) -> Verdict {
    let claim = "P2: least packet has the lowest CPU use of the servers";
    let order = ["least_packets", "round_robin", "least_connections", "least_response_time"];
    let of = |name: &str, load: u32| {
        results.mean(&format!("P2/cpu/subak/{name}/{load}"), "cpu_mean_percent")
    };
    if of(order[0], LAST).is_none() {
        return not_run(claim, results.why_not("P2/cpu/subak/least_packets/"));
    }
    // Only where all four were measured can one be the lowest.
    let judged: Vec<bool> = LOADS
        .iter()
        .filter_map(|load| {
            let [first, others @ ..] = order.map(|name| of(name, *load).map(|mean| mean.value));
            let others = others.into_iter().collect::<Option<Vec<f64>>>()?;
            Some(others.iter().all(|other| first.is_some_and(|first| first < *other)))
        })
        .collect();
    let count = judged.iter().filter(|is_lowest| **is_lowest).count();
    let because = format!(
        "lowest at {count} of the {} loads (of {}) where all four were measured; at {LAST} users the busiest server had {} with it and {} \
         with round robin. In the paper too it is not lowest at 6,000",
        judged.len(),
        LOADS.len(),
        words(of(order[0], LAST), "% of a core"),
        words(of(order[1], LAST), "% of a core"),
    );
    let word = match () {
        () if count == LOADS.len() => Word::Reproduced,
        () if judged.len() == LOADS.len() => Word::NotReproduced,
        () => Word::CannotTell,
    };
    Verdict::new(claim, word, because)
}

fn evenest(results: &Results) -> Verdict {
    let claim = "P2: round robin spreads hits most evenly";
    let spread = |name: &str| {
        let all = results.counts(&format!("P2/{}/{name}/{LAST}", Kind::Subak.key()), "hits");
        all.iter()
            .map(|hits| hits.iter().max().unwrap_or(&0) - hits.iter().min().unwrap_or(&0))
            .max()
    };
    let spreads = ALGORITHMS.map(|name| (name, spread(name)));
    let Some(of_round_robin) = spreads[0].1 else {
        return not_run(claim, results.why_not("P2/subak/round_robin/"));
    };
    let listed = spreads.map(|(name, spread)| match spread {
        Some(spread) => format!("{name} {spread}"),
        None => format!("{name} not run"),
    });
    let best =
        spreads.iter().all(|(_, spread)| spread.is_none_or(|spread| of_round_robin <= spread));
    let word = if best { Word::Reproduced } else { Word::NotReproduced };
    Verdict::new(claim, word, format!("most minus fewest hits at {LAST}: {}", listed.join(", ")))
}

fn one_number() -> Verdict {
    let balanced =
        (0..4).flat_map(|row| (0..LOADS.len()).map(move |load| product_restored(row, load)));
    let (low, high) = balanced.fold((f64::INFINITY, 0.0_f64), |(low, high), product| {
        (low.min(product), high.max(product))
    });
    let drop = 1.0 - RESPONSE_MS[1][3] / RESPONSE_MS[4][3];
    let rise = THROUGHPUT[1][3] / THROUGHPUT[4][3] - 1.0;
    Verdict::new(
        "P2, hidden: response time and throughput are one number, and two of table 6 are exchanged",
        Word::Holds,
        format!(
            "with the exchange undone the product is {low:.0} to {high:.0} bytes in all 16 balanced \
             rows ({:.0} and {:.0} without); −{:.0} % and +{:.0} % are the same measurement. CPU at \
             6,000: least packet {} %, least connection {} %",
            product(2, 3),
            product(3, 3),
            drop * 100.0,
            rise * 100.0,
            CPU_PERCENT[3][1],
            CPU_PERCENT[1][1],
        ),
    )
}
