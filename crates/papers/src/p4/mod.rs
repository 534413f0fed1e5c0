//! Usman et al. 2024: two algorithms for connections, `ab -n N` from one client at three servers.
//!
//! Their balancer is in the packet path. What is run here is the same two algorithms on connections
//! by proxies: Subak and nginx as HTTP, where every request has a connection of its own and so a decision
//! about a request is one about a connection; HAProxy in its TCP mode. What only the packet path can
//! answer is said to be not run.

mod report;

use std::fs;
use std::net::SocketAddr;
use std::time::Duration;

use subak_balance::{five_tuple, hash64};

use crate::cell::{Cell, Measured, Need, Scale};
use crate::p2::of_ab;
use crate::statistics::{best_jain, jain};
use crate::tools::ab;
use crate::world::{Kind, Service, Stage, World};

pub(crate) use report::{sections, verdicts};

const LOADS: [u32; 5] = [20_000, 40_000, 60_000, 80_000, 100_000];
const SERVERS: u32 = 3;
const ALGORITHMS: [&str; 2] = ["round_robin", "five_tuple_hash"];
const KINDS: [Kind; 3] = [Kind::Subak, Kind::Nginx, Kind::Haproxy];
const REPETITIONS: u32 = 3;
/// Bytes of the directory listing that Python's server sent.
const PAGE: usize = 910;

/// HAProxy balances connections here, whatever is in them.
fn is_layer_4(kind: Kind) -> bool {
    kind == Kind::Haproxy
}

pub(crate) fn cells(scale: Scale) -> Vec<Cell> {
    let mut cells: Vec<Cell> = LOADS.into_iter().map(computed).collect();
    for repetition in 1..=scale.repetitions(REPETITIONS) {
        for requests in LOADS {
            for kind in KINDS {
                for algorithm in ALGORITHMS {
                    cells.push(asked(kind, algorithm, requests, repetition));
                }
            }
        }
    }
    cells
}

fn front() -> SocketAddr {
    ([10, 0, 0, 1], 8000).into()
}

/// What the algorithms make of so many connections of one client, without any process: ports in
/// turn, as kernels give them out.
fn computed(requests: u32) -> Cell {
    Cell {
        id: format!("P4/computed/{requests}#1"),
        takes: Duration::from_millis(10),
        needs: Vec::new(),
        work: Box::new(move |_| {
            let mut hits = vec![0; SERVERS as usize];
            for connection in 0..requests {
                let port = 1024 + (connection % 64_512) as u16;
                let tuple = five_tuple(6, ([10, 0, 1, 1], port).into(), front());
                hits[(hash64(&tuple, 0) % u64::from(SERVERS)) as usize] += 1;
            }
            Ok(Measured::default()
                .number("jain_hash", jain(&hits))
                .number("jain_round_robin", best_jain(requests.into(), SERVERS.into()))
                .counts("hits_hash", hits))
        }),
    }
}

fn asked(kind: Kind, algorithm: &'static str, requests: u32, repetition: u32) -> Cell {
    let stage = Stage {
        kind: Some(kind),
        algorithm,
        front: front(),
        servers: [2, 3, 4].map(|host| SocketAddr::from(([10, 0, 1, host], 8000))).to_vec(),
        weights: vec![1; SERVERS as usize],
        service: vec![Service::Instant(PAGE); SERVERS as usize],
        trusts: None,
        tls: false,
        layer_4: is_layer_4(kind),
    };
    Cell {
        id: format!("P4/{}/{algorithm}/{requests}#{repetition}", kind.key()),
        takes: Duration::from_millis(2000 + u64::from(requests)),
        needs: stage.needs(Some(Need::Ab)),
        work: Box::new(move |world: &World| {
            let running = stage.start(world)?;
            let url = format!("http://{}/", stage.front);
            let call = ab::Call { requests, concurrency: 1, keep_alive: false, url: &url };
            running.measure(|| {
                let before = segments()?;
                let said = call.run(world)?;
                let after = segments()?;
                let again = (after[1] - before[1]) as f64;
                let sent = (after[0] - before[0]).max(1) as f64;
                let mut measured = of_ab(&said).number("loss_percent", again / sent * 100.0);
                measured.commands.push(call.text());
                Ok(measured)
            })
        }),
    }
}

/// TCP segments that this network has sent, and sent again.
fn segments() -> Result<[u64; 2], String> {
    let text = fs::read_to_string("/proc/net/snmp").map_err(|error| error.to_string())?;
    read_segments(&text).ok_or_else(|| "/proc/net/snmp has no count of TCP segments".to_owned())
}

fn read_segments(text: &str) -> Option<[u64; 2]> {
    let mut lines = text.lines().filter_map(|line| line.strip_prefix("Tcp: "));
    let (names, values) = (lines.next()?, lines.next()?);
    let of = |wanted: &str| {
        let at = names.split(' ').position(|name| name == wanted)?;
        values.split(' ').nth(at)?.parse().ok()
    };
    Some([of("OutSegs")?, of("RetransSegs")?])
}

#[cfg(test)]
mod tests {
    use super::read_segments;

    #[test]
    fn the_kernel_counts_segments() {
        let text = "Ip: A\nIp: 1\nTcp: InSegs OutSegs RetransSegs InErrs\nTcp: 9 120 3 0\nUdp: X\n";
        assert_eq!(read_segments(text), Some([120, 3]));
        assert_eq!(read_segments(""), None);
    }
}
