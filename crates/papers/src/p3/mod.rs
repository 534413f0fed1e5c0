//! Ma & Chi 2022: where hashes send clients, what finding a node costs, and four algorithms under
//! 200 to 3,000 requests a second at three nodes and at two.

mod proxy;
mod report;

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use crate::cell::{Cell, Measured, Scale};
use crate::hashing::clients::Clients;
use crate::hashing::cost::{self, Search};
use crate::hashing::visits::{Hash, visits};
use crate::tools::generator::{self, Clients as Callers};
use crate::world::{Kind, Service, Stage, World};

pub(crate) use report::{sections, verdicts};

const HASHES: [Hash; 3] = [Hash::IpHash, Hash::NewHash, Hash::Algorithm5AsPrinted];
/// Sums of 3, 4 and 11.
const WEIGHTS: [[u32; 3]; 3] = [[1, 1, 1], [2, 1, 1], [5, 3, 3]];
/// Draws of each set of clients, as in the paper.
const DRAWS: u64 = 5;
/// The steps of figures 13 to 15.
const STEP: usize = 200;
const STEPS_TO: u32 = 3000;
const STEP_TIME: Duration = Duration::from_secs(300);
/// Figures 13 to 15 by algorithm, as tables name them.
const ALGORITHMS: [(&str, &str); 4] = [
    ("round_robin", "WRR"),
    ("ip_hash", "IP_HASH"),
    ("least_connections", "LEAST_CONN"),
    ("new_hash", "NEW_HASH"),
];
/// A node does a thousand requests a second, so that three do what the largest step asks; as many are
/// there at once as Tomcat has threads (200) and places to wait (100).
const NODE: Service = Service::Application { body: PAGE, time: "10ms", at_once: 10, queue: 290 };
const PAGE: usize = 1024;
/// Addresses that clients have under load.
const CLIENTS: usize = 1000;

fn steps() -> impl Iterator<Item = u32> {
    (STEP as u32..=STEPS_TO).step_by(STEP)
}

pub(crate) fn cells(scale: Scale) -> Vec<Cell> {
    let mut cells = vec![spread()];
    cells.extend(Search::ALL.into_iter().map(|search| searched(search, scale)));
    for draw in 1..=DRAWS {
        for (kind, algorithm) in
            [(Kind::Nginx, "ip_hash"), (Kind::Subak, "ip_hash"), (Kind::Subak, "new_hash")]
        {
            cells.push(visited(kind, algorithm, draw));
        }
    }
    for threads in steps() {
        for (algorithm, _) in ALGORITHMS {
            cells.push(loaded(algorithm, 3, threads, scale));
        }
        cells.push(loaded("new_hash", 2, threads, scale));
    }
    cells.extend(proxy::cells(scale));
    cells
}

fn weights_name(weights: [u32; 3]) -> String {
    weights.map(|weight| weight.to_string()).join(":")
}

/// The name of the counts of a draw.
fn visits_name(hash: Hash, weights: [u32; 3], clients: Clients, draw: u64) -> String {
    format!("{} {} {} {draw}", hash.name(), weights_name(weights), clients.name())
}

/// All that is computed of visits: no process, some milliseconds.
fn spread() -> Cell {
    Cell {
        id: "P3/visits_computed#1".to_owned(),
        takes: Duration::from_millis(50),
        needs: Vec::new(),
        work: Box::new(|_| {
            let mut measured = Measured::default();
            for hash in HASHES {
                for weights in WEIGHTS {
                    for clients in Clients::ALL {
                        for draw in 1..=DRAWS {
                            let name = visits_name(hash, weights, clients, draw);
                            let counts = visits(hash, &weights, &clients.draw(draw));
                            measured = measured.counts(name, counts);
                        }
                    }
                }
            }
            Ok(measured)
        }),
    }
}

/// Figure 12 in nanoseconds.
fn searched(search: Search, scale: Scale) -> Cell {
    let time = scale.time(Duration::from_secs(10)) / cost::NODES.len() as u32;
    Cell {
        id: format!("P3/cost/{}#1", search.key()),
        takes: time * cost::NODES.len() as u32,
        needs: Vec::new(),
        work: Box::new(move |_| {
            let mut measured = Measured::default();
            for nodes in cost::NODES {
                let ns = cost::pick_ns(search, nodes, time);
                measured = measured.number(format!("{nodes}"), ns);
            }
            Ok(measured)
        }),
    }
}

fn stage(kind: Kind, algorithm: &'static str, nodes: u16, service: Service) -> Stage {
    let node = |index| SocketAddr::from(([192, 168, 88, 129], 8080 + index));
    Stage {
        kind: Some(kind),
        algorithm,
        front: ([192, 168, 88, 130], 80).into(),
        servers: (0..nodes).map(node).collect(),
        weights: vec![1; nodes.into()],
        service: vec![service; nodes.into()],
        trusts: None,
        tls: false,
        layer_4: false,
    }
}

/// A thousand random clients that really come, each from its own address.
fn visited(kind: Kind, algorithm: &'static str, draw: u64) -> Cell {
    let stage = stage(kind, algorithm, 3, Service::Instant(PAGE));
    Cell {
        id: format!("P3/visits/{}/{algorithm}#{draw}", kind.key()),
        takes: Duration::from_secs(3),
        needs: stage.needs(None),
        work: Box::new(move |world: &World| {
            let running = stage.start(world)?;
            let sources = Clients::Random.draw(draw).into_iter().map(IpAddr::from).collect();
            let measured = generator::one_each(&Callers::of(stage.front, sources))?;
            Ok(measured.counts("hits", running.hits()))
        }),
    }
}

/// One step of figures 13 to 15, and 17 to 19.
fn loaded(algorithm: &'static str, nodes: u16, threads: u32, scale: Scale) -> Cell {
    let stage = stage(Kind::Subak, algorithm, nodes, NODE);
    let time = scale.time(STEP_TIME);
    Cell {
        id: format!("P3/load/{algorithm}/{nodes}/{threads}#1"),
        takes: time + Duration::from_secs(2),
        needs: stage.needs(None),
        work: Box::new(move |world: &World| {
            let running = stage.start(world)?;
            let clients = Clients::Random.draw(1).into_iter().take(CLIENTS).map(IpAddr::from);
            let clients = Callers::of(stage.front, clients.collect());
            running.measure(|| generator::at_rate(&clients, threads.into(), time))
        }),
    }
}
