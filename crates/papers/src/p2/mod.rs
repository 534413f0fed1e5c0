//! Ramadhan & Wardhana 2021: `ab -n N -c 10` at four servers that send a static page, by four
//! algorithms, beside nginx and HAProxy where they have them, and without a balancer.

mod printed;
mod report;

use std::net::SocketAddr;
use std::time::Duration;

use crate::cell::{Cell, Measured, Need, Scale};
use crate::tools::ab;
use crate::tools::generator::{self, Clients};
use crate::world::{Kind, Service, Stage, World};

pub(crate) use report::{sections, verdicts};

/// Requests of a run.
const LOADS: [u32; 4] = [3000, 6000, 9000, 12_000];
/// Algorithms in the order of the paper's tables.
const ALGORITHMS: [&str; 4] =
    ["round_robin", "least_connections", "least_response_time", "least_packets"];
const KINDS: [Kind; 3] = [Kind::Subak, Kind::Nginx, Kind::Haproxy];
/// The paper's did each once; an interval takes a few.
const REPETITIONS: u32 = 5;
const FEWEST: u32 = 2;
/// The ramp-up of the runs that CPU was read in.
const RAMP: Duration = Duration::from_secs(180);
/// Bytes of the document behind the balancer, then of the one without it.
const BALANCED: usize = 864;
const ALONE: usize = 834;

pub(crate) fn cells(scale: Scale) -> Vec<Cell> {
    let mut cells = Vec::new();
    for repetition in 1..=scale.repetitions(REPETITIONS).max(FEWEST) {
        for requests in LOADS {
            for (name, stage, keep_alive) in variants() {
                cells.push(asked(name, stage, keep_alive, requests, repetition));
            }
        }
    }
    for requests in LOADS {
        for (name, stage, _) in variants() {
            // Load that is the same for all says which algorithm costs servers what.
            if !name.starts_with("nginx") && !name.starts_with("haproxy") && name != PRINTED {
                cells.push(ramped(&name, stage, requests, scale));
            }
        }
    }
    cells
}

/// Without a balancer, over connections that stay, another document: as the paper did it.
const PRINTED: &str = "none/as_printed";
/// Without a balancer, and else as with one.
const ALIKE: &str = "none/alike";

fn variants() -> Vec<(String, Stage, bool)> {
    let mut variants = vec![
        (PRINTED.to_owned(), stage(None, "round_robin", ALONE), true),
        (ALIKE.to_owned(), stage(None, "round_robin", BALANCED), false),
    ];
    for kind in KINDS {
        for algorithm in ALGORITHMS.into_iter().filter(|name| kind.word(name).is_some()) {
            let name = format!("{}/{algorithm}", kind.key());
            variants.push((name, stage(Some(kind), algorithm, BALANCED), false));
        }
    }
    variants
}

fn stage(kind: Option<Kind>, algorithm: &'static str, bytes: usize) -> Stage {
    let count = if kind.is_some() { 4 } else { 1 };
    let server = |index: u8| SocketAddr::from(([11, 11, 11, 21 + index], 80));
    Stage {
        kind,
        algorithm,
        front: if kind.is_some() { ([10, 10, 10, 2], 80).into() } else { server(0) },
        servers: (0..count).map(server).collect(),
        weights: vec![1; count as usize],
        service: vec![Service::Page(bytes); count as usize],
        trusts: None,
        tls: false,
        layer_4: false,
    }
}

/// The paper's command.
fn asked(name: String, stage: Stage, keep_alive: bool, requests: u32, repetition: u32) -> Cell {
    let url = format!("http://{}/", stage.front.ip());
    Cell {
        id: format!("P2/{name}/{requests}#{repetition}"),
        takes: Duration::from_millis(1500 + u64::from(requests) / 3),
        needs: stage.needs(Some(Need::Ab)),
        work: Box::new(move |world: &World| {
            let running = stage.start(world)?;
            let call = ab::Call { requests, concurrency: 10, keep_alive, url: &url };
            running.measure(|| {
                let said = call.run(world)?;
                let mut measured = of_ab(&said);
                measured.commands.push(call.text());
                Ok(measured)
            })
        }),
    }
}

/// What ab says, by name.
pub(crate) fn of_ab(said: &ab::Ab) -> Measured {
    Measured::default()
        .number("complete", said.complete)
        .number("failed", said.failed)
        .number("rate_per_s", said.rate)
        .number("time_ms", said.time_ms)
        .number("across_ms", said.across_ms)
        .number("throughput_kbytes_per_s", said.kbytes_per_s)
        .number("median_ms", said.median_ms)
        .number("p95_ms", said.p95_ms)
}

/// As many users as requests, starting over three minutes: each asks once.
fn ramped(name: &str, stage: Stage, requests: u32, scale: Scale) -> Cell {
    let time = scale.time(RAMP);
    let rate = f64::from(requests) / RAMP.as_secs_f64();
    Cell {
        id: format!("P2/cpu/{name}/{requests}#1"),
        takes: time + Duration::from_secs(2),
        needs: stage.needs(None),
        work: Box::new(move |world: &World| {
            let running = stage.start(world)?;
            let clients = Clients::of(stage.front, Vec::new());
            running.measure(|| generator::cost_at_rate(&clients, rate, time))
        }),
    }
}
