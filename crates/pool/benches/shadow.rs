//! What does a shadow cost a request? Acquires and settles leases of a pool of 10 endpoints, without a
//! shadow and with each entry of the catalogue.
//!
//! `cargo bench -p subak-pool --bench shadow` prints nanoseconds; `bench/shadow.sh` has callgrind count
//! the instructions of `-- NAME REQUESTS`, where NAME is `none` or an entry.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::process::ExitCode;
use std::time::Instant;

use subak_balance::{Key, catalogue};
use subak_base::{Address, BitSet, Rng, Tick};
use subak_pool::{
    Acquire, Answered, EndpointIds, EndpointSpec, Outcome, Pool, PoolSpec, ShadowKeys, ShadowSpec,
};

const ENDPOINTS: u16 = 10;
const REQUESTS: u32 = 200_000;
const RUNS: usize = 15;

fn main() -> ExitCode {
    let arguments: Vec<String> =
        std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    match &arguments[..] {
        [] => {
            let plain = ns("none");
            println!("none: {plain:.0} ns a request");
            for listing in catalogue::all() {
                println!("{}: {:+.0} ns", listing.name, ns(listing.name) - plain);
            }
            ExitCode::SUCCESS
        }
        [name, requests] if name == "none" || catalogue::find(name).is_some() => {
            match requests.parse() {
                Ok(requests) => {
                    serve(&pool(name), requests);
                    ExitCode::SUCCESS
                }
                Err(_) => usage(),
            }
        }
        _ => usage(),
    }
}

fn usage() -> ExitCode {
    eprintln!("NAME REQUESTS, where NAME is none or an algorithm; or nothing, for all of them");
    ExitCode::from(2)
}

/// The quickest of some runs: other work on the machine disturbs the others.
fn ns(name: &str) -> f64 {
    let pool = pool(name);
    let run = |_| {
        let began = Instant::now();
        serve(&pool, REQUESTS);
        began.elapsed().as_nanos() as f64 / f64::from(REQUESTS)
    };
    (0..RUNS).map(run).fold(f64::INFINITY, f64::min)
}

/// `round_robin`, which costs least itself, with this shadow.
fn pool(name: &str) -> Pool {
    let algorithm = |name: &str| catalogue::find(name).expect("is one").algorithm();
    let endpoint = |port: u16| {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        EndpointSpec::new(port.to_string(), Address::Inet(address))
    };
    let endpoints = (1..=ENDPOINTS).map(endpoint).collect();
    let mut spec = PoolSpec::new("app", algorithm("round_robin"), endpoints);
    if name != "none" {
        spec.shadows.push(ShadowSpec { name: name.into(), algorithm: algorithm(name) });
    }
    let pool = Pool::build(&spec, &mut EndpointIds::new(), None, Tick(0));
    pool.tick(Tick(0), 0);
    pool
}

/// Eight requests are always under way.
fn serve(pool: &Pool, requests: u32) {
    let mut random = Rng::new(7);
    let mut now = Tick(0);
    let mut under_way = std::collections::VecDeque::with_capacity(8);
    for _ in 0..requests {
        let word = random.next_u64();
        let ip = IpAddr::from(((word >> 32) as u32).to_be_bytes());
        now = Tick(now.0 + 10_000);
        let request = Acquire {
            key: Key::Address(ip),
            shadow_keys: ShadowKeys::OWN,
            random: word,
            now,
            in_turn: false,
            stick: None,
            client: None,
            from: None,
            decision: None,
        };
        let Ok(lease) = pool.acquire(&request, &BitSet::EMPTY) else { return };
        under_way.push_back(lease);
        if under_way.len() == 8
            && let Some(lease) = under_way.pop_front()
        {
            lease.settle(Outcome::Completed(Answered::default()), now);
        }
    }
}
