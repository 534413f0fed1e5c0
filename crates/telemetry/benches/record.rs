//! What counting costs a request: one of a listener and one, with its duration, of a pool.
//!
//! `cargo bench -p subak-telemetry --bench record` prints a table; with `-- --check` it fails where the promised
//! number is not kept. Medians of short batches: other work on the machine disturbs some batches, not
//! the median. "One shard" is what all workers would pay if they shared their counters.

use std::hint::black_box;
use std::process::ExitCode;
use std::sync::Barrier;
use std::time::{Duration, Instant};

use subak_telemetry::{ListenerMetrics, Outcome, PoolMetrics};

const BATCHES: usize = 31;
const REQUESTS: u32 = 20_000;

/// Promised of a request, whatever the number of workers.
const REQUEST_NS_MAX: f64 = 50.0;

fn main() -> ExitCode {
    println!("ns per request, median of {BATCHES} batches\n");
    println!("| workers | a shard each | one shard |");
    println!("|---|---|---|");
    let mut kept = true;
    for workers in [1, 2] {
        let (sharded, shared) = (measure(workers, workers), measure(workers, 1));
        println!("| {workers} | {sharded:.1} | {shared:.1} |");
        kept &= sharded <= REQUEST_NS_MAX;
    }
    if !kept && std::env::args().any(|argument| argument == "--check") {
        eprintln!("counting a request takes more than {REQUEST_NS_MAX} ns");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

/// The median over all batches of all workers.
fn measure(workers: usize, shards: usize) -> f64 {
    let (listener, pool) = (ListenerMetrics::new(shards), PoolMetrics::new(shards));
    let barrier = Barrier::new(workers);
    let batches = &|worker: usize| {
        barrier.wait();
        let batch = |_| {
            let began = Instant::now();
            for request in 0..REQUESTS {
                let worker = black_box(worker);
                listener.request(worker, Outcome::Success);
                let took = Duration::from_micros(u64::from(request % 5000));
                pool.answered(worker, Outcome::Success, black_box(took));
            }
            began.elapsed().as_nanos() as f64 / f64::from(REQUESTS)
        };
        (0..BATCHES).map(batch).collect::<Vec<f64>>()
    };
    let mut all: Vec<f64> = std::thread::scope(|scope| {
        let threads: Vec<_> =
            (0..workers).map(|worker| scope.spawn(move || batches(worker))).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap_or_default()).collect()
    });
    all.sort_by(f64::total_cmp);
    all[all.len() / 2]
}
