//! What one rate limit costs a request: the hash of its key and a token.
//!
//! `cargo bench -p subak-limits --bench cost` prints nanoseconds; under
//! `valgrind --tool=callgrind --toggle-collect='*measured*'` it counts instructions, of [`REQUESTS`]
//! requests in one batch with `-- --once`. With `-- --check` it fails where the promise is not kept.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::hint::black_box;
use std::num::NonZeroU32;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use subak_base::Tick;
use subak_limits::{Counts, Rate, RateTable};

const BATCHES: usize = 31;
const REQUESTS: u64 = 20_000;

/// Clients that ask in turn.
const CLIENTS: u64 = 1000;

/// Promised of a rate.
const RATE_NS_MAX: f64 = 150.0;

fn main() -> ExitCode {
    let some = |number| NonZeroU32::new(number).unwrap_or(NonZeroU32::MIN);
    let rate = Rate { quota: some(1_000_000), window: Duration::from_secs(1), burst: some(1000) };
    let (table, counts, secret) =
        (RateTable::new(rate, 65_536), Counts::new(100, 65_536), RandomState::new());
    let has = |word: &str| std::env::args().any(|argument| argument == word);
    let batches = if has("--once") { 1 } else { BATCHES };
    // Every client has its place.
    measured_rate(&table, &secret, 0);
    let mut moment = REQUESTS;
    let rate_ns = median(batches, || {
        moment += REQUESTS;
        measured_rate(&table, &secret, moment);
    });
    println!("a rate: {rate_ns:.1} ns");
    if has("--once") {
        return ExitCode::SUCCESS;
    }
    let count_ns = median(batches, || measured_count(&counts, &secret));
    println!("a count: {count_ns:.1} ns");
    if rate_ns > RATE_NS_MAX && has("--check") {
        eprintln!("a rate takes more than {RATE_NS_MAX} ns");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

#[inline(never)]
fn measured_rate(table: &RateTable, secret: &RandomState, moment: u64) {
    for request in 0..REQUESTS {
        let client = u128::from(request % CLIENTS);
        let key = secret.hash_one(black_box(client));
        let taken = table.take(key, Tick((moment + request) * 1000));
        black_box(taken.is_ok());
    }
}

#[inline(never)]
fn measured_count(counts: &Counts, secret: &RandomState) {
    for request in 0..REQUESTS {
        let key = secret.hash_one(black_box(u128::from(request % CLIENTS)));
        if let Some(counted) = counts.enter(key) {
            counts.leave(black_box(counted));
        }
    }
}

fn median(batches: usize, mut batch: impl FnMut()) -> f64 {
    let mut timed = || {
        let began = Instant::now();
        batch();
        began.elapsed().as_nanos() as f64 / REQUESTS as f64
    };
    let mut all: Vec<f64> = (0..batches).map(|_| timed()).collect();
    all.sort_by(f64::total_cmp);
    all[all.len() / 2]
}
