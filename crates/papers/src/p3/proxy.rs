//! What the paper's set-up hides of clients: theirs came from addresses of their own, and each waited on
//! its own connection. Behind a proxy neither is so. All have the proxy's address, unless the balancer is
//! told to believe its X-Forwarded-For; and who asks next does not depend on which node is behind.

use std::net::IpAddr;
use std::time::Duration;

use subak_report::{Block, Cell as Entry, Section, Table, Verdict, Word};

use super::{ALGORITHMS, CLIENTS, NODE, PAGE, STEP_TIME, WEIGHTS, stage};
use crate::cell::{Cell, Scale};
use crate::figures::{Grid, columns, not_run, slashed};
use crate::hashing::clients::Clients;
use crate::hashing::visits::{self, Hash};
use crate::results::Results;
use crate::tools::generator::{self, Clients as Callers};
use crate::world::{Kind, Service, Stage, World};

/// Where the proxy is.
const PROXY: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 168, 88, 140));
/// One request of each client goes through it in this time.
const VISITS_TIME: Duration = Duration::from_secs(2);
/// The draw of the paper's random clients that is behind it.
const DRAW: u64 = 1;
/// Near what three nodes do, where claims about high concurrency are judged.
const HIGH: [u32; 3] = [2600, 2800, 3000];
/// A node that is asked for 4 % more than it does has its line of 290 full within this time.
const FILLS_WITHIN_S: f64 = 10.0;
/// Who balances by addresses.
const HASHES: [(Kind, &str, Hash); 3] = [
    (Kind::Subak, "ip_hash", Hash::IpHash),
    (Kind::Subak, "new_hash", Hash::NewHash),
    (Kind::Nginx, "ip_hash", Hash::IpHash),
];

pub(super) fn cells(scale: Scale) -> Vec<Cell> {
    let mut cells = Vec::new();
    for (kind, algorithm, _) in HASHES {
        for is_trusted in [false, true] {
            cells.push(visited(kind, algorithm, is_trusted));
        }
    }
    for threads in HIGH {
        cells.extend(ALGORITHMS.map(|(algorithm, _)| loaded(algorithm, threads, scale)));
    }
    cells
}

fn visited_id(kind: Kind, algorithm: &str, is_trusted: bool) -> String {
    let word = if is_trusted { "trusted" } else { "ignored" };
    format!("P3/proxy/{}/{algorithm}/{word}", kind.key())
}

fn loaded_id(algorithm: &str, threads: u32) -> String {
    format!("P3/behind/{algorithm}/3/{threads}")
}

fn behind() -> Vec<IpAddr> {
    Clients::Random.draw(DRAW).into_iter().take(CLIENTS).map(IpAddr::from).collect()
}

/// One request of each client, by the proxy's connections.
fn visited(kind: Kind, algorithm: &'static str, is_trusted: bool) -> Cell {
    let stage = Stage {
        trusts: is_trusted.then_some(PROXY),
        ..stage(kind, algorithm, 3, Service::Instant(PAGE))
    };
    Cell {
        id: visited_id(kind, algorithm, is_trusted) + "#1",
        takes: VISITS_TIME + Duration::from_secs(1),
        needs: stage.needs(None),
        work: Box::new(move |world: &World| {
            let running = stage.start(world)?;
            let clients = Callers::behind(PROXY, stage.front, behind());
            let measured = generator::one_each_behind(&clients, VISITS_TIME)?;
            Ok(measured.counts("hits", running.hits()))
        }),
    }
}

/// A step of figures 13 to 15 with clients that are behind a proxy, which is believed.
fn loaded(algorithm: &'static str, threads: u32, scale: Scale) -> Cell {
    let stage = Stage { trusts: Some(PROXY), ..stage(Kind::Subak, algorithm, 3, NODE) };
    let time = scale.time(STEP_TIME);
    Cell {
        id: loaded_id(algorithm, threads) + "#1",
        takes: time + Duration::from_secs(2),
        needs: stage.needs(None),
        work: Box::new(move |world: &World| {
            let running = stage.start(world)?;
            let clients = Callers::behind(PROXY, stage.front, behind());
            running.measure(|| generator::at_rate(&clients, threads.into(), time))
        }),
    }
}

pub(super) fn section(results: &Results) -> Section {
    let text = "Above, each client has an address and a connection of its own, and a request takes a \
                connection that is free: who waits for a node that is behind does not ask, which \
                spares that node. Here the same clients are behind one proxy, which names them in \
                X-Forwarded-For and sends their requests by whichever connection is free.";
    let mut blocks = vec![Block::Text(text.to_owned()), visited_nodes(results)];
    for (caption, number, unit, y) in [
        ("Response time behind a proxy that is believed, p95", "p95_ms", "ms", "p95"),
        ("Failure rate behind a proxy that is believed", "failed_percent", "%", "failed"),
    ] {
        let grid = grid(caption, number, unit);
        blocks.push(grid.table(results));
        let x = HIGH.map(f64::from);
        blocks.extend(grid.plot(results, ("requests begun a second", &x), y));
    }
    Section::new("P3: the same clients behind a proxy", blocks)
}

fn grid<'a>(caption: &str, number: &'a str, unit: &'a str) -> Grid<'a> {
    let rows = ALGORITHMS.iter().flat_map(|(algorithm, name)| {
        let direct = HIGH.map(|threads| format!("P3/load/{algorithm}/3/{threads}"));
        let behind = HIGH.map(|threads| loaded_id(algorithm, threads));
        [
            (format!("{name}, each from its address"), direct.to_vec()),
            (format!("{name}, behind the proxy"), behind.to_vec()),
        ]
    });
    Grid {
        caption: caption.to_owned(),
        corner: "algorithm",
        unit,
        digits: 1,
        rows: rows.collect(),
        columns: HIGH.map(|threads| threads.to_string()).to_vec(),
        number,
    }
}

fn hits(results: &Results, kind: Kind, algorithm: &str, is_trusted: bool) -> Option<Vec<u64>> {
    let id = visited_id(kind, algorithm, is_trusted);
    results.counts(&id, "hits").first().map(|hits| hits.to_vec())
}

/// Where the clients go by their own addresses.
fn computed(hash: Hash) -> Vec<u64> {
    visits::visits(hash, &WEIGHTS[0], &Clients::Random.draw(DRAW))
}

fn visited_nodes(results: &Results) -> Block {
    let shown =
        |hits: Option<Vec<u64>>| hits.map_or(Entry::Missing, |hits| Entry::text(slashed(&hits)));
    let row = |(kind, algorithm, hash): (Kind, &str, Hash)| {
        vec![
            Entry::text(format!("{} {algorithm}", kind.name())),
            shown(hits(results, kind, algorithm, false)),
            shown(hits(results, kind, algorithm, true)),
            Entry::text(slashed(&computed(hash))),
        ]
    };
    Block::Table(Table {
        caption: "Visits of three nodes by 1,000 random clients behind one proxy, once each"
            .to_owned(),
        columns: columns([
            "balancer",
            "the proxy is not believed",
            "the proxy is believed",
            "by the clients' own addresses, computed",
        ]),
        rows: HASHES.map(row).to_vec(),
    })
}

pub(super) fn verdicts(results: &Results) -> [Verdict; 2] {
    [one_client(results), tied(results)]
}

fn one_client(results: &Results) -> Verdict {
    let claim = "P3, hidden: behind a proxy all are one client to a hash of addresses, unless the \
                 balancer is told whose X-Forwarded-For to believe";
    let mut is_so = true;
    let mut listed = Vec::new();
    for (kind, algorithm, hash) in HASHES {
        let of = |is_trusted| hits(results, kind, algorithm, is_trusted);
        let (Some(ignored), Some(trusted)) = (of(false), of(true)) else { continue };
        let all: u64 = ignored.iter().sum();
        is_so &= ignored.contains(&all) && all == CLIENTS as u64 && trusted == computed(hash);
        let (ignored, trusted) = (slashed(&ignored), slashed(&trusted));
        listed.push(format!("{} {algorithm} {ignored} and {trusted}", kind.name()));
    }
    if listed.is_empty() {
        return not_run(claim, results.why_not("P3/proxy/"));
    }
    let because = format!(
        "1,000 clients behind one proxy, not believed and believed: {}. Believed, each goes where its \
         own address belongs",
        listed.join("; ")
    );
    Verdict::new(claim, if is_so { Word::Holds } else { Word::Fails }, because)
}

fn tied(results: &Results) -> Verdict {
    let claim = "P3, hidden: clients that wait on connections of their own spare the node that is \
                 behind, which flatters hashes";
    let mean = |ids: [String; 3]| {
        let values = ids.map(|id| results.mean(&id, "p95_ms").map(|mean| mean.value));
        let all: Option<Vec<f64>> = values.into_iter().collect();
        all.map(|all| all.iter().sum::<f64>() / all.len() as f64)
    };
    let mut all = Vec::new();
    for (algorithm, name) in ALGORITHMS {
        let tied = mean(HIGH.map(|threads| format!("P3/load/{algorithm}/3/{threads}")));
        let free = mean(HIGH.map(|threads| loaded_id(algorithm, threads)));
        let (Some(tied), Some(free)) = (tied, free) else {
            let why = match tied {
                Some(_) => "P3/behind/",
                None => "P3/load/",
            };
            return not_run(claim, results.why_not(&format!("{why}{algorithm}/3/")));
        };
        all.push((algorithm, name, tied, free));
    }
    let took = results.mean(&loaded_id("ip_hash", HIGH[2]), "answered");
    let took_s = took.map_or(0.0, |answered| answered.value / f64::from(HIGH[2]));
    if took_s < FILLS_WITHIN_S {
        let because = format!(
            "steps of {took_s:.0} s: a node that gets some percent more than it can do has a full line \
             only after that"
        );
        return Verdict::new(claim, Word::CannotTell, because);
    }
    let hashes = || all.iter().filter(|(algorithm, ..)| algorithm.ends_with("hash"));
    // One run of each: less than a tenth cannot be told from chance.
    let word = match () {
        () if hashes().all(|(.., tied, free)| *free > tied * 1.1) => Word::Holds,
        () if hashes().all(|(.., tied, free)| *free > tied * 0.9 && *free <= tied * 1.1) => {
            Word::NoDifference
        }
        () => Word::Fails,
    };
    let listed =
        all.iter().map(|(_, name, tied, free)| format!("{name} {tied:.0} and {free:.0} ms"));
    let because = format!(
        "p95, mean over 2,600, 2,800 and 3,000 requests a second, with connections of their own and \
         behind a proxy: {}",
        listed.collect::<Vec<_>>().join(", ")
    );
    Verdict::new(claim, word, because)
}
