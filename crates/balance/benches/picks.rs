//! What a pick costs, for every entry of the catalogue, and what compiling costs.
//!
//! `cargo bench -p subak-balance` prints the tables; with `-- --check` it fails where a promised
//! number is not kept, with `-- NAME` only what has that in its name. Of many short batches the
//! quicker quarter counts: other work on the machine disturbs the others.

use std::cell::Cell;
use std::hint::black_box;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::process::ExitCode;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use subak_balance::catalogue::{self, Cost, OptionKind, OptionValue};
use subak_balance::{
    Algorithm, Balancer, Completion, Endpoints, Entry, Key, LoadView, PickRequest, Previous,
    Recipe, Tickets,
};
use subak_base::{BitSet, Rng, Tick, Weight};

const SIZES: [usize; 3] = [3, 100, 10_000];
const BATCHES: usize = 101;
const BATCH_TIME: Duration = Duration::from_micros(400);
const THREADS: usize = 8;
const PICKS_PER_THREAD: u32 = 100_000;
const CONTENDED_RUNS: usize = 5;

/// Promised of every algorithm whose cost does not grow with the pool, at 100 endpoints.
const PICK_NS_MAX: f64 = 50.0;
/// Promised of a rotation over 10,000 endpoints of equal weight.
const COMPILE_MS_MAX: f64 = 10.0;

fn main() -> ExitCode {
    let mut broken = Vec::new();

    println!("ns per pick, on one thread\n");
    println!("| algorithm | case | 3 endpoints | 100 | 10,000 |");
    println!("|---|---|---|---|---|");
    for (name, algorithm) in algorithms() {
        for case in [Case::IdleIpv4, Case::BusyIpv6, Case::Retry] {
            let cost = SIZES.map(|count| pick_ns(&algorithm, case, count));
            let [few, hundred, many] = cost;
            println!("| {name} | {case} | {few:.1} | {hundred:.1} | {many:.1} |");
            let is_promised = algorithm.traits().cost == Cost::Constant;
            if is_promised && case != Case::Retry && hundred > PICK_NS_MAX {
                broken.push(format!("{name} ({case}): {hundred:.1} ns a pick"));
            }
        }
    }

    println!("\nns per pick at 100 endpoints, {THREADS} threads on one counter and one list\n");
    println!("| algorithm | ns of one thread's time | million picks/s together |");
    println!("|---|---|---|");
    for (name, algorithm) in algorithms() {
        // The best of some runs: other work on the machine takes cores away.
        let runs = (0..CONTENDED_RUNS).map(|_| contended(&algorithm));
        let (cost, rate) = runs.min_by(|a, b| a.0.total_cmp(&b.0)).expect("some runs");
        println!("| {name} | {cost:.1} | {rate:.1} |");
    }

    println!("\nms to compile\n");
    println!(
        "| algorithm | 10,000 equal | rebuilt without one of them | 361 distinct weights, cycle 65,341 |"
    );
    println!("|---|---|---|---|");
    for (name, algorithm) in algorithms() {
        let [fresh, rebuilt, distinct] = compile_ms(&algorithm);
        println!("| {name} | {fresh:.2} | {rebuilt:.2} | {distinct:.2} |");
        if name == "`round_robin`" && fresh.max(rebuilt) > COMPILE_MS_MAX {
            broken.push(format!("{fresh:.2} and {rebuilt:.2} ms to compile 10,000 endpoints"));
        }
    }

    broken.iter().for_each(|promise| eprintln!("not kept: {promise}"));
    let is_checked = std::env::args().any(|argument| argument == "--check");
    if is_checked && !broken.is_empty() { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// Every entry of the catalogue, and what differs in cost by its options.
fn algorithms() -> Vec<(String, Algorithm)> {
    let mut all = Vec::new();
    for listing in catalogue::all() {
        all.push((format!("`{}`", listing.name), listing.algorithm()));
        let methods = listing.options.iter().find(|option| option.name == "method");
        let words = match methods.map(|option| option.kind) {
            Some(OptionKind::Words(words)) => &words[1..],
            _ => &[],
        };
        for word in words {
            let algorithm = listing.configure(listing.name, &[("method", (*word).into())]);
            let algorithm = algorithm.expect("a method of the listing");
            all.push((format!("`{}`, `{word}`", listing.name), algorithm));
        }
        if listing.options.iter().any(|option| option.name == "balance_factor") && words.is_empty()
        {
            let bound = [("balance_factor", OptionValue::Thousandths(1250))];
            let algorithm = listing.configure(listing.name, &bound).expect("a bound");
            all.push((format!("`{}`, bounded", listing.name), algorithm));
        }
    }
    let wanted: Vec<String> =
        std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    all.retain(|(name, _)| wanted.is_empty() || wanted.iter().any(|part| name.contains(part)));
    all
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Case {
    /// Nothing in flight: full ties.
    IdleIpv4,
    /// A random few in flight at each endpoint.
    BusyIpv6,
    /// The second try of a request.
    Retry,
}

impl std::fmt::Display for Case {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Case::IdleIpv4 => "idle, IPv4 client",
            Case::BusyIpv6 => "busy, IPv6 client",
            Case::Retry => "idle, second try",
        })
    }
}

/// A pool's counter and loads as they are in production: shared atomics.
struct Shared {
    tickets: AtomicU64,
    endpoints: Vec<Observed>,
    summary: AtomicU64,
}

#[derive(Default)]
struct Observed {
    in_flight: AtomicU32,
    cell: AtomicU64,
    packets: AtomicU64,
}

impl Shared {
    fn new(count: usize) -> Shared {
        let endpoints = (0..count).map(|_| Observed::default()).collect();
        Shared { tickets: AtomicU64::new(0), endpoints, summary: AtomicU64::new(0) }
    }

    /// A random few in flight everywhere, and some answers.
    fn make_busy(&self, balancer: &Balancer, rng: &mut Rng) {
        for (index, endpoint) in self.endpoints.iter().enumerate() {
            endpoint.in_flight.store(1 + rng.below(64) as u32, Relaxed);
            endpoint.packets.store(rng.below(100_000), Relaxed);
            let elapsed = Duration::from_micros(5_000 + rng.below(10_000));
            let (now, first_byte) = (Tick::from_millis(1), Some(elapsed));
            let completion = Completion { now, elapsed, first_byte, failed: false };
            endpoint.cell.store(balancer.on_complete(0, index, &completion, self), Relaxed);
        }
        self.summary.store(balancer.summarise(self, Tick::from_millis(2)), Relaxed);
    }
}

impl Tickets for Shared {
    fn draw(&self) -> u64 {
        self.tickets.fetch_add(1, Relaxed)
    }
}

impl LoadView for Shared {
    fn in_flight(&self, index: usize) -> u32 {
        self.endpoints[index].in_flight.load(Relaxed)
    }

    fn cell(&self, index: usize) -> u64 {
        self.endpoints[index].cell.load(Relaxed)
    }

    fn packets(&self, index: usize) -> u64 {
        self.endpoints[index].packets.load(Relaxed)
    }

    fn bytes(&self, index: usize) -> u64 {
        self.endpoints[index].packets.load(Relaxed)
    }

    fn summary(&self) -> u64 {
        self.summary.load(Relaxed)
    }
}

fn pick_ns(algorithm: &Algorithm, case: Case, count: usize) -> f64 {
    let endpoints = endpoints((0..count).map(|index| 1 + index as u16 % 3));
    let eligible = BitSet::full(count);
    let balancer = build(algorithm, &endpoints, &eligible, None);
    let shared = Shared::new(count);
    let mut rng = Rng::new(count as u64);
    if case == Case::BusyIpv6 {
        shared.make_busy(&balancer, &mut rng);
    }
    let clients: Vec<IpAddr> = (0..1024)
        .map(|_| match case {
            Case::BusyIpv6 => Ipv6Addr::from(u128::from(rng.next_u64()) << 64 | 7).into(),
            _ => Ipv4Addr::from(rng.next_u64() as u32).into(),
        })
        .collect();
    let tried: BitSet = (0..usize::from(case == Case::Retry)).collect();
    let turn = Cell::new(0);
    quiet_ns(|| {
        let client = clients[turn.get() % clients.len()];
        turn.set(turn.get() + 1);
        let request = PickRequest {
            tickets: &shared,
            random: rng.next_u64(),
            now: Tick::from_millis(3_000),
            key: Key::Address(client),
            eligible: &eligible,
            tried: &tried,
        };
        black_box(balancer.pick(&shared, &request));
    })
}

/// One thread's ns per pick and the picks of all in millions a second.
fn contended(algorithm: &Algorithm) -> (f64, f64) {
    let count = 100;
    let endpoints = endpoints((0..count).map(|_| 1));
    let eligible = BitSet::full(count);
    let balancer = build(algorithm, &endpoints, &eligible, None);
    let shared = Shared::new(count);
    let start = Barrier::new(THREADS);
    // From the first that began to the last that ended.
    let elapsed = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| {
                let (balancer, shared, eligible, start) = (&balancer, &shared, &eligible, &start);
                scope.spawn(move || {
                    let mut rng = Rng::new(thread as u64);
                    start.wait();
                    let began = Instant::now();
                    for _ in 0..PICKS_PER_THREAD {
                        let random = rng.next_u64();
                        let request = PickRequest {
                            tickets: shared,
                            random,
                            now: Tick(0),
                            key: Key::Address(Ipv4Addr::from(random as u32).into()),
                            eligible,
                            tried: &BitSet::EMPTY,
                        };
                        black_box(balancer.pick(shared, &request));
                    }
                    (began, Instant::now())
                })
            })
            .collect();
        let times: Vec<_> =
            threads.into_iter().map(|thread| thread.join().expect("it ends")).collect();
        let began = times.iter().map(|(began, _)| *began).min().expect("some threads");
        times.iter().map(|(_, ended)| ended.duration_since(began)).max().expect("some threads")
    });
    let picks = f64::from(PICKS_PER_THREAD) * THREADS as f64;
    let parallel = std::thread::available_parallelism().map_or(1, |cores| cores.get().min(THREADS));
    let nanos = elapsed.as_nanos() as f64;
    (nanos * parallel as f64 / picks, picks * 1e3 / nanos)
}

fn compile_ms(algorithm: &Algorithm) -> [f64; 3] {
    let count = 10_000;
    let equal = endpoints((0..count).map(|_| 1));
    let (all, mut fewer) = (BitSet::full(count), BitSet::full(count));
    fewer.remove(17);
    let first = build(algorithm, &equal, &all, None);
    let previous = Previous { balancer: &first, endpoints: &equal, ticket: 12_345 };
    let distinct = endpoints(1..=361);
    let median = |build: &dyn Fn() -> Balancer| {
        let mut times: Vec<_> = (0..9)
            .map(|_| {
                let began = Instant::now();
                black_box(build());
                began.elapsed().as_secs_f64() * 1e3
            })
            .collect();
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    };
    [
        median(&|| build(algorithm, &equal, &all, None)),
        median(&|| build(algorithm, &equal, &fewer, Some(previous))),
        median(&|| build(algorithm, &distinct, &all, None)),
    ]
}

fn build(
    algorithm: &Algorithm,
    endpoints: &Endpoints,
    eligible: &BitSet,
    previous: Option<Previous<'_>>,
) -> Balancer {
    Balancer::build(Recipe { algorithm, endpoints, eligible, previous })
}

fn endpoints(weights: impl Iterator<Item = u16>) -> Endpoints {
    let entry = |(index, weight): (usize, u16)| {
        let name = format!("http:10.{}.{}.{}:80", index >> 16, index >> 8 & 255, index & 255);
        Entry::new(name.clone(), name, Weight(weight))
    };
    Endpoints::new(weights.enumerate().map(entry).collect()).expect("addresses differ")
}

/// What one call takes in the batch that is slower than a quarter of them.
fn quiet_ns(mut call: impl FnMut()) -> f64 {
    let mut calls = 1_u64;
    let mut batch = |calls: u64| {
        let began = Instant::now();
        (0..calls).for_each(|_| call());
        began.elapsed()
    };
    while batch(calls) < BATCH_TIME {
        calls *= 2;
    }
    let mut times: Vec<_> =
        (0..BATCHES).map(|_| batch(calls).as_nanos() as f64 / calls as f64).collect();
    times.sort_by(f64::total_cmp);
    times[BATCHES / 4]
}
