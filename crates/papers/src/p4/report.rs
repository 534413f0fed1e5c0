//! Figures 12 to 17, and what became of their claims.

use subak_report::{Block, Cell, Section, Table, Verdict, Word};

use super::{ALGORITHMS, KINDS, LOADS, SERVERS, is_layer_4};
use crate::figures::{Grid, cell, columns, hits, not_run, words};
use crate::results::Results;
use crate::statistics::best_jain;
use crate::world::Kind;

fn grid<'a>(caption: &str, number: &'a str, unit: &'a str, digits: u8) -> Grid<'a> {
    let mut rows = Vec::new();
    for kind in KINDS {
        for algorithm in ALGORITHMS {
            let ids = LOADS.map(|load| format!("P4/{}/{algorithm}/{load}", kind.key()));
            rows.push((name(kind, algorithm), ids.to_vec()));
        }
    }
    Grid {
        caption: caption.to_owned(),
        corner: "balancer and algorithm",
        unit,
        digits,
        rows,
        columns: LOADS.map(|load| load.to_string()).to_vec(),
        number,
    }
}

fn name(kind: Kind, algorithm: &str) -> String {
    let how = if is_layer_4(kind) { " (TCP)" } else { "" };
    format!("{}{how} {algorithm}", kind.name())
}

pub(crate) fn sections(results: &Results) -> Vec<Section> {
    let x = LOADS.map(f64::from);
    let mut blocks = Vec::new();
    for (caption, number, unit, digits, y) in [
        (
            "Figure 12: throughput of `ab -n N`, one request at a time",
            "throughput_kbytes_per_s",
            "Kbytes/s",
            0,
            "throughput",
        ),
        ("Figure 13: response time", "time_ms", "ms", 3, "mean time"),
        ("Figure 14: segments sent again, of those sent", "loss_percent", "%", 3, "sent again"),
        ("Figures 16 and 17: Jain's index of hits", "jain", "", 9, "Jain's index"),
    ] {
        let grid = grid(caption, number, unit, digits);
        blocks.push(grid.table(results));
        blocks.extend(grid.plot(results, ("requests", &x), y));
    }
    let mut rows = Vec::new();
    for kind in KINDS {
        for algorithm in ALGORITHMS {
            let mut cells = vec![Cell::text(name(kind, algorithm))];
            let of = |load| hits(results, &format!("P4/{}/{algorithm}/{load}", kind.key()));
            cells.extend(LOADS.map(of));
            rows.push(cells);
        }
    }
    let loads = ["20,000", "40,000", "60,000", "80,000", "100,000"];
    blocks.push(Block::Table(Table {
        caption: "Figure 15 and the attachment: connections by server".to_owned(),
        columns: columns(["balancer and algorithm"].into_iter().chain(loads)),
        rows,
    }));
    let computed = |number: &str| {
        LOADS.map(|load| cell(results.mean(&format!("P4/computed/{load}"), number), 9))
    };
    let mut rows = vec![vec![Cell::text("weighted round robin, the best there can be")]];
    rows[0].extend(computed("jain_round_robin"));
    rows.push(vec![Cell::text("hash of the five-tuple, ports in turn")]);
    rows[1].extend(computed("jain_hash"));
    blocks.push(Block::Table(Table {
        caption: "Jain's index computed, without any process".to_owned(),
        columns: columns(["algorithm"].into_iter().chain(loads)),
        rows,
    }));
    vec![Section::new("P4: two algorithms for connections at three servers", blocks)]
}

pub(crate) fn verdicts(results: &Results) -> Vec<Verdict> {
    vec![
        fairness(results),
        gain(results),
        exact_index(),
        not_run(
            "P4: 2 % less response time by IP hash, and loss below 2 %, in the packet path",
            "needs the packet plane (eBPF on XDP or tc), which is later work. Theirs ran on BMv2, some \
             80,000 packets a second at best: throughput and loss there are figures about BMv2 and \
             not about the algorithms; abstract and section 4.3 disagree about whose loss is lower",
        ),
        not_run(
            "P4: connection affinity kept in the packet path while the table changes",
            "needs the packet plane. Scenario: 100 clients with long downloads by weighted round robin \
             on SYN; a server is added and one drained by the control plane; no flow may change its \
             server, SYNs of each server are counted by the kernel beyond the cable",
        ),
    ]
}

fn fairness(results: &Results) -> Verdict {
    let claim =
        "P4: Jain's index is 1 for weighted round robin at every size, and below 1 for IP hash";
    let mut seen = Vec::new();
    let mut is_so = true;
    for kind in KINDS {
        for load in LOADS {
            let of =
                |algorithm| results.mean(&format!("P4/{}/{algorithm}/{load}", kind.key()), "jain");
            if let (Some(turn), Some(hash)) = (of(ALGORITHMS[0]), of(ALGORITHMS[1])) {
                let best = best_jain(load.into(), SERVERS.into());
                is_so &= (turn.value - best).abs() < 1e-12 && hash.value < best;
                seen.push(format!(
                    "{} at {load}: {:.9} and {:.6}",
                    kind.name(),
                    turn.value,
                    hash.value
                ));
            }
        }
    }
    if seen.is_empty() {
        let of = |load: u32, number: &str| {
            results.mean(&format!("P4/computed/{load}"), number).map(|mean| mean.value)
        };
        return match (of(LOADS[0], "jain_round_robin"), of(LOADS[0], "jain_hash")) {
            (Some(turn), Some(hash)) => Verdict::new(
                claim,
                if hash < turn { Word::Reproduced } else { Word::NotReproduced },
                format!(
                    "computed only: {turn:.9} and {hash:.6} at 20,000; by processes: {}",
                    results.why_not("P4/subak/")
                ),
            ),
            _ => not_run(claim, results.why_not("P4/")),
        };
    }
    let word = if is_so { Word::Reproduced } else { Word::NotReproduced };
    Verdict::new(claim, word, format!("by connections through proxies: {}", seen.join(", ")))
}

fn gain(results: &Results) -> Verdict {
    let claim = "P4: weighted round robin has 13 % more throughput than IP hash";
    let mut seen = Vec::new();
    for kind in KINDS {
        let of = |algorithm: &str, load: u32| {
            results
                .mean(&format!("P4/{}/{algorithm}/{load}", kind.key()), "throughput_kbytes_per_s")
        };
        for load in LOADS {
            if let (Some(turn), Some(hash)) = (of(ALGORITHMS[0], load), of(ALGORITHMS[1], load)) {
                let gain = (turn.value / hash.value - 1.0) * 100.0;
                let clear = hash.is_below(&turn) || turn.is_below(&hash);
                seen.push((gain, clear, format!("{} at {load}: {gain:+.1} %", kind.name())));
            }
        }
    }
    if seen.is_empty() {
        return not_run(claim, results.why_not("P4/subak/"));
    }
    let word = match () {
        () if seen.iter().all(|(gain, clear, _)| *clear && *gain > 5.0) => Word::Reproduced,
        () if seen.iter().any(|(_, clear, _)| *clear) => Word::NotReproduced,
        () if results.of(&format!("P4/subak/round_robin/{}", LOADS[0])).len() < 2 => {
            Word::CannotTell
        }
        () => Word::NoDifference,
    };
    let listed: Vec<&str> = seen.iter().map(|(_, _, text)| text.as_str()).collect();
    let because = format!(
        "{}. One request at a time, so servers are never loaded unevenly at any moment; time per \
         request at 20,000 by Subak: {} in turn, {} by hash",
        listed.join(", "),
        words(results.mean(&format!("P4/subak/round_robin/{}", LOADS[0]), "time_ms"), "ms"),
        words(results.mean(&format!("P4/subak/five_tuple_hash/{}", LOADS[0]), "time_ms"), "ms"),
    );
    Verdict::new(claim, word, because)
}

fn exact_index() -> Verdict {
    let exact = best_jain(LOADS[0].into(), SERVERS.into());
    Verdict::new(
        "P4, hidden: 20,000 is not divisible by 3, so the index cannot be 1",
        if format!("{exact:.9}") == "0.999999995" { Word::Holds } else { Word::Fails },
        format!("6,667 / 6,667 / 6,666 give {exact:.9}"),
    )
}
