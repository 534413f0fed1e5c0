//! Tables IV to VII and figure 5, and what became of their claims.

use subak_report::{Block, Cell, Section, Table, Verdict, Word};

use super::{KINDS, LOADS, WEIGHTS, ratio};
use crate::figures::{
    Grid, bars, columns, count_bars, first_hits, hits, is_lowest, not_run, words,
};
use crate::results::Results;

/// Table VII, mean response time in ms, by ratio and load.
const PRINTED_MS: [[f64; 3]; 3] =
    [[243.03, 254.83, 255.07], [223.77, 233.13, 235.37], [234.4, 236.33, 237.37]];

fn grid<'a>(caption: &str, number: &'a str, unit: &'a str) -> Grid<'a> {
    let mut rows = Vec::new();
    for kind in &KINDS[..2] {
        for (weights, _) in WEIGHTS {
            let ratio = ratio(weights);
            let ids = LOADS.map(|load| format!("P5/load/{}/{ratio}/{load}", kind.key()));
            rows.push((format!("{} {ratio}", kind.name()), ids.to_vec()));
        }
    }
    Grid {
        caption: caption.to_owned(),
        corner: "balancer and weights",
        unit,
        digits: 1,
        rows,
        columns: LOADS.map(|load| load.to_string()).to_vec(),
        number,
    }
}

pub(crate) fn sections(results: &Results) -> Vec<Section> {
    let row = |index: usize| {
        let (weights, expected) = WEIGHTS[index];
        let mut cells = vec![
            Cell::text(ratio(weights)),
            Cell::text(expected.map(|count| count.to_string()).join(" / ")),
        ];
        cells
            .extend(KINDS.map(|kind| {
                hits(results, &format!("P5/single/{}/{}", kind.key(), ratio(weights)))
            }));
        cells
    };
    let mut blocks = vec![Block::Table(Table {
        caption: "Tables IV to VI: 30 single requests over IPv6, hits by server".to_owned(),
        columns: columns(["weights", "paper", "Subak", "nginx", "HAProxy"]),
        rows: (0..WEIGHTS.len()).map(row).collect(),
    })];
    let counted = KINDS.into_iter().flat_map(|kind| {
        WEIGHTS.map(|(weights, _)| {
            let id = format!("P5/single/{}/{}", kind.key(), ratio(weights));
            (format!("{} {}", kind.name(), ratio(weights)), first_hits(results, &id))
        })
    });
    let counted: Vec<_> = counted.collect();
    blocks.extend(count_bars("30 single requests", ("server", "hits"), &counted));
    let answered = KINDS.into_iter().map(|kind| {
        let mean = results.mean(&format!("P5/without_h1/{}", kind.key()), "succeeded");
        (kind.name().to_owned(), mean.map(|mean| mean.value).into_iter().collect())
    });
    let answered: Vec<_> = answered.collect();
    let caption = "1,000 requests by h2load without --h1";
    blocks.extend(bars(caption, ("answered", None), &[String::new()], &answered));
    let x = LOADS.map(f64::from);
    let request =
        grid("Table VII: mean time of a request, h2load --h1, 100 clients", "request_ms", "ms");
    blocks.push(request.table(results));
    blocks.extend(request.plot(results, ("requests", &x), "time of a request"));
    let first = grid(
        "h2load's \"time to 1st byte\": from the start, with the connection's time",
        "first_byte_ms",
        "ms",
    );
    blocks.push(first.table(results));
    for server in 1..=3 {
        let name = format!("busy_{server}_percent");
        let caption = format!("Figure 5: how busy server {server} was, of what it can do");
        let busy = grid(&caption, &name, "%");
        blocks.push(busy.table(results));
        blocks.extend(busy.plot(results, ("requests", &x), "busy"));
    }
    for server in 1..=3 {
        let name = format!("cpu_mean_{server}_percent");
        let caption = format!("CPU of server {server} in fact, of one core of this machine");
        blocks.push(grid(&caption, &name, "%").table(results));
    }
    let printed = |(row, (weights, _)): (usize, ([u32; 3], [u64; 3]))| {
        let mut cells = vec![Cell::text(ratio(weights))];
        cells.extend(PRINTED_MS[row].map(|ms| Cell::number(ms, 2)));
        cells
    };
    blocks.push(Block::Table(Table {
        caption: "Table VII of the paper, in ms".to_owned(),
        columns: columns(["weights", "1,000", "2,000", "3,000"]),
        rows: WEIGHTS.into_iter().enumerate().map(printed).collect(),
    }));
    vec![Section::new("P5: weighted round robin over IPv6", blocks)]
}

pub(crate) fn verdicts(results: &Results) -> Vec<Verdict> {
    vec![exact(results), best(results), even(results), without_h1(results), drop_in()]
}

fn exact(results: &Results) -> Verdict {
    let claim = "P5: 30 requests go 10/10/10, 15/8/7 and 18/6/6";
    let mut seen = Vec::new();
    let mut is_exact = true;
    for kind in KINDS {
        for (weights, expected) in WEIGHTS {
            let id = format!("P5/single/{}/{}", kind.key(), ratio(weights));
            for hits in results.counts(&id, "hits") {
                is_exact &= hits == expected;
                seen.push(format!("{} {}: {hits:?}", kind.name(), ratio(weights)));
            }
        }
    }
    if seen.is_empty() {
        return not_run(claim, results.why_not("P5/single/subak/"));
    }
    let word = if is_exact { Word::Reproduced } else { Word::NotReproduced };
    Verdict::new(claim, word, seen.join(", "))
}

fn best(results: &Results) -> Verdict {
    let claim = "P5: 2:1:1 has the lowest response time when the first server is twice as strong";
    let of = |weights: [u32; 3], load: u32| format!("P5/load/subak/{}/{load}", ratio(weights));
    let order = [[2, 1, 1], [1, 1, 1], [3, 1, 1]];
    let means = order.map(|weights| results.mean(&of(weights, LOADS[2]), "request_ms"));
    let [Some(two), Some(one), Some(three)] = means else {
        return not_run(claim, results.why_not("P5/load/subak/2:1:1/"));
    };
    let judged =
        LOADS.map(|load| is_lowest(results, &order.map(|weights| of(weights, load)), "request_ms"));
    let word = match judged {
        _ if judged.iter().all(|one| *one == Some(true)) => Word::Reproduced,
        _ if judged.contains(&Some(false)) => Word::NotReproduced,
        _ => Word::CannotTell,
    };
    let [two, one, three] = [two, one, three].map(|mean| words(Some(mean), "ms"));
    let because = format!("at 3,000 requests: 1:1:1 {one}, 2:1:1 {two}, 3:1:1 {three}");
    Verdict::new(claim, word, because)
}

fn even(results: &Results) -> Verdict {
    let claim = "P5: 2:1:1 evens out how busy the servers are";
    let spread = |weights: [u32; 3]| {
        let id = format!("P5/load/subak/{}/{}", ratio(weights), LOADS[2]);
        let busy = [1, 2, 3].map(|server| results.mean(&id, &format!("busy_{server}_percent")));
        let values: Option<Vec<f64>> = busy.into_iter().map(|mean| Some(mean?.value)).collect();
        values.map(|values| {
            values.iter().copied().fold(0.0, f64::max)
                - values.iter().copied().fold(f64::INFINITY, f64::min)
        })
    };
    let [Some(one), Some(two), Some(three)] = [[1, 1, 1], [2, 1, 1], [3, 1, 1]].map(spread) else {
        return not_run(claim, results.why_not("P5/load/subak/2:1:1/"));
    };
    let word = if two < one && two < three { Word::Reproduced } else { Word::NotReproduced };
    let because = format!(
        "busiest minus idlest server at 3,000 requests, in points of what each can do: 1:1:1 \
         {one:.0}, 2:1:1 {two:.0}, 3:1:1 {three:.0}. The paper's own CPU figures at 2:1:1 are 71 to \
         79 %, 47 to 56 % and 48 to 56 %: not even"
    );
    Verdict::new(claim, word, because)
}

fn without_h1(results: &Results) -> Verdict {
    let claim =
        "P5, hidden: h2load speaks HTTP/2 unless told otherwise, which the paper's nginx did not";
    let of = |kind: &str| {
        let id = format!("P5/without_h1/{kind}");
        results.mean(&id, "succeeded").map(|mean| mean.value)
    };
    let (Some(subak), Some(nginx)) = (of("subak"), of("nginx")) else {
        return not_run(claim, results.why_not("P5/without_h1/"));
    };
    let word = if nginx == 0.0 { Word::Holds } else { Word::Fails };
    let because = format!(
        "of 1,000 requests without --h1 nginx answered {nginx:.0}, Subak (which speaks HTTP/2 by \
         prior knowledge) {subak:.0}"
    );
    Verdict::new(claim, word, because)
}

fn drop_in() -> Verdict {
    not_run(
        "P5: the configuration of figure 3 runs unchanged",
        "needs Subak to read nginx.conf, which it does not yet; as TOML the same pool is run above",
    )
}
