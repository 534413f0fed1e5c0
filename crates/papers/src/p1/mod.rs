//! Sudiatmika et al. 2023: k6 at an HTTPS balancer before three application servers, round robin and
//! IP hash; the intended loads by k6 and by our generator, and beside them what the printed script of
//! the breakpoint does. What the paper claims without an experiment has one here: a server that dies,
//! more load than can be served, slow clients, old versions of TLS, ambiguous requests.

mod breakpoint;
mod claims;
mod report;
mod security;
mod slow;
mod trouble;
mod users;

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use crate::cell::{Cell, Scale};
use crate::tools::Stages;
use crate::tools::generator::Clients;
use crate::world::{Kind, Service, Stage};

pub(crate) use claims::verdicts;
pub(crate) use report::sections;

const MINUTE: Duration = Duration::from_secs(60);
const ALGORITHMS: [&str; 2] = ["round_robin", "ip_hash"];
const SERVERS: u8 = 3;
const PAGE: usize = 4096;
/// How long an application takes: log-normal, with the median (31.65 ms) and p95 (59.91 ms) of the
/// waiting that the paper's table 1 has for round robin.
const TIME: &str = "lognormal:34ms,0.39";
/// Requests that a server serves at once where nothing is known of its limit: all.
const ALL_AT_ONCE: u32 = 100_000;
/// Where it has one: with it a server does 4 ÷ 34 ms = 118 requests a second, three of them 353.
const LIMITED: u32 = 4;
/// What three limited servers do in a second.
const CAPACITY: f64 = SERVERS as f64 * LIMITED as f64 / 0.034;
/// Requests in line at a limited server; more are answered with 503.
const QUEUE: u32 = 400;
/// Networks that clients come from when they are many: IP hash looks at three octets.
const NETWORKS: u8 = 64;

pub(crate) fn cells(scale: Scale) -> Vec<Cell> {
    let mut cells = vec![security::versions(), security::ambiguous(), slow::clients()];
    cells.extend(users::cells(scale));
    cells.extend(trouble::cells(scale));
    cells.extend(breakpoint::cells(scale));
    cells
}

/// Three applications that take as long as the paper's, so many requests at once each.
fn stage(kind: Kind, algorithm: &'static str, at_once: u32) -> Stage {
    let server = |index: u8| SocketAddr::from(([10, 50, 0, 11 + index], 80));
    let service = Service::Application { body: PAGE, time: TIME, at_once, queue: QUEUE };
    Stage {
        kind: Some(kind),
        algorithm,
        front: ([10, 50, 0, 1], 443).into(),
        servers: (0..SERVERS).map(server).collect(),
        weights: vec![1; SERVERS.into()],
        service: vec![service; SERVERS.into()],
        trusts: None,
        tls: true,
        layer_4: false,
    }
}

/// One address of each of many networks.
fn many() -> Vec<IpAddr> {
    let address = |network: u8| IpAddr::from([10, 60 + network / 8, 1 + network % 8, 1]);
    (0..NETWORKS).map(address).collect()
}

/// As k6's `--local-ips` has them.
fn listed(addresses: &[IpAddr]) -> Option<String> {
    let texts: Vec<String> = addresses.iter().map(IpAddr::to_string).collect();
    (!texts.is_empty()).then(|| texts.join(","))
}

fn clients(stage: &Stage, sources: Vec<IpAddr>) -> Clients {
    Clients { tls: stage.tls, ..Clients::of(stage.front, sources) }
}

fn url(stage: &Stage) -> String {
    format!("https://{}/", stage.front.ip())
}

fn length(stages: &Stages) -> Duration {
    stages.iter().map(|(time, _)| *time).sum()
}
