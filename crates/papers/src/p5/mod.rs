//! Arifwidodo 2025: weighted round robin over IPv6, 30 single requests and `h2load` at 100 clients,
//! with a first server that is twice as strong as the others.

mod report;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use crate::cell::{Cell, Measured, Need, Scale};
use crate::tools::h2load;
use crate::world::{Kind, Service, Stage, World};

pub(crate) use report::{sections, verdicts};

/// The weights, and where 30 requests must go.
const WEIGHTS: [([u32; 3], [u64; 3]); 3] =
    [([1, 1, 1], [10, 10, 10]), ([2, 1, 1], [15, 8, 7]), ([3, 1, 1], [18, 6, 6])];
const LOADS: [u32; 3] = [1000, 2000, 3000];
const CLIENTS: u32 = 100;
const REPETITIONS: u32 = 30;
/// An interval takes a few.
const FEWEST: u32 = 3;
const SINGLE: u32 = 30;
const KINDS: [Kind; 3] = [Kind::Subak, Kind::Nginx, Kind::Haproxy];
const ANSWER_WITHIN: Duration = Duration::from_secs(10);

/// What h2load asks for; it connects to the balancer's address.
const URL: &str = "http://balancer.test/";

/// `2:1:1`.
fn ratio(weights: [u32; 3]) -> String {
    weights.map(|weight| weight.to_string()).join(":")
}

fn stage(kind: Kind, weights: [u32; 3], service: [Service; 3]) -> Stage {
    let at = |host: u16| SocketAddr::from(([0x2345, 0, 0, 0, 0, 0, 0, host], 80));
    Stage {
        kind: Some(kind),
        algorithm: "round_robin",
        front: at(5),
        servers: [2, 3, 4].map(at).to_vec(),
        weights: weights.to_vec(),
        service: service.to_vec(),
        trusts: None,
        tls: false,
        layer_4: false,
    }
}

/// Debian's first page of nginx has about this many bytes.
const PAGE: usize = 612;

fn pages() -> [Service; 3] {
    [(); 3].map(|()| Service::Page(PAGE))
}

/// Shares of a core, by control groups: the first server is a machine twice as strong as the others.
const CORES: [f64; 3] = [0.06, 0.03, 0.03];

fn unequal() -> [Service; 3] {
    CORES.map(|cores| Service::PageWithin(PAGE, cores))
}

pub(crate) fn cells(scale: Scale) -> Vec<Cell> {
    let mut cells = Vec::new();
    for kind in KINDS {
        for (weights, _) in WEIGHTS {
            cells.push(single(kind, weights));
        }
        cells.push(by_http2(kind));
    }
    for repetition in 1..=scale.repetitions(REPETITIONS).max(FEWEST) {
        for requests in LOADS {
            for kind in [Kind::Subak, Kind::Nginx] {
                for (weights, _) in WEIGHTS {
                    cells.push(loaded(kind, weights, requests, repetition));
                }
            }
        }
    }
    cells
}

/// A person who reloads the page thirty times.
fn single(kind: Kind, weights: [u32; 3]) -> Cell {
    let stage = stage(kind, weights, pages());
    Cell {
        id: format!("P5/single/{}/{}#1", kind.key(), ratio(weights)),
        takes: Duration::from_secs(2),
        needs: stage.needs(None),
        work: Box::new(move |world: &World| {
            let running = stage.start(world)?;
            for _ in 0..SINGLE {
                ask(stage.front)?;
            }
            Ok(Measured::default().counts("hits", running.hits()))
        }),
    }
}

/// One request over a connection of its own.
fn ask(address: SocketAddr) -> Result<(), String> {
    let asked = || {
        let mut stream = TcpStream::connect_timeout(&address, ANSWER_WITHIN)?;
        stream.set_read_timeout(Some(ANSWER_WITHIN))?;
        write!(stream, "GET / HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n")?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer)?;
        Ok(answer)
    };
    let answer = asked().map_err(|error: std::io::Error| format!("{address}: {error}"))?;
    if answer.starts_with(b"HTTP/1.1 200") {
        return Ok(());
    }
    let line = answer.split(|byte| *byte == b'\r').next().unwrap_or_default();
    Err(format!("{address}: {}", String::from_utf8_lossy(line)))
}

/// The command of the paper, with the option that it needed.
fn loaded(kind: Kind, weights: [u32; 3], requests: u32, repetition: u32) -> Cell {
    let stage = stage(kind, weights, unequal());
    Cell {
        id: format!("P5/load/{}/{}/{requests}#{repetition}", kind.key(), ratio(weights)),
        takes: Duration::from_millis(2000 + u64::from(requests)),
        needs: stage.needs(Some(Need::H2load)),
        work: Box::new(move |world: &World| {
            let running = stage.start(world)?;
            let to = stage.front.to_string();
            let call = h2load::Call { requests, clients: CLIENTS, h1: true, url: URL, to: &to };
            let mut measured = running.measure(|| of_h2load(&call, world))?;
            let failed = measured.numbers.get("failed").copied().unwrap_or(0.0);
            if failed > 0.0 {
                measured.invalid = Some(format!("{failed} of {requests} requests failed"));
            }
            for (index, cores) in CORES.into_iter().enumerate() {
                let used = measured.numbers.get(&format!("cpu_mean_{}_percent", index + 1));
                let busy = used.copied().unwrap_or(f64::NAN) / cores;
                measured = measured.number(format!("busy_{}_percent", index + 1), busy);
            }
            Ok(measured)
        }),
    }
}

/// The same without `--h1`.
fn by_http2(kind: Kind) -> Cell {
    let stage = stage(kind, [2, 1, 1], pages());
    Cell {
        id: format!("P5/without_h1/{}#1", kind.key()),
        takes: Duration::from_secs(3),
        needs: stage.needs(Some(Need::H2load)),
        work: Box::new(move |world: &World| {
            let _running = stage.start(world)?;
            let to = stage.front.to_string();
            let call =
                h2load::Call { requests: LOADS[0], clients: CLIENTS, h1: false, url: URL, to: &to };
            of_h2load(&call, world)
        }),
    }
}

fn of_h2load(call: &h2load::Call<'_>, world: &World) -> Result<Measured, String> {
    let said = call.run(world)?;
    let mut measured = Measured::default()
        .number("succeeded", said.succeeded)
        .number("failed", said.failed)
        .number("rate_per_s", said.rate)
        .number("request_ms", said.request_ms)
        .number("first_byte_ms", said.first_byte_ms);
    measured.commands.push(call.text());
    Ok(measured)
}
