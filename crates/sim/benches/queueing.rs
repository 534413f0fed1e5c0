//! The whole queueing table against theory, and how fast the simulator is: `make lab`.
//!
//! Poisson arrivals, exponential service of mean 1 s, mean time in system. A cell is the mean of
//! independent runs with seeds fixed beforehand, on as many threads as there are cores. It is wrong
//! when its mean is not within 2 % of the exact value. Where its 95 % interval (Student's, over the
//! runs) does not contain that value, five times as many new runs are made and judged instead: of
//! twenty true intervals one misses by chance, and more than two do in one table of thirteen. The
//! whole table is wrong when more than two intervals miss then. Exit status 1 for what is wrong, and
//! when the simulator is slower than promised.
//!
//! Options: `table` or `speed` alone; `quick` for a tenth of the requests, which judges nothing.

use std::ops::Range;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use subak_balance::catalogue::{self, OptionValue};
use subak_health::ProbeSpec;
use subak_sim::{Arrivals, EndpointModel, Fault, Patience, Retry, Scenario, Service, Trouble, run};

const SECOND: Duration = Duration::from_secs(1);

/// Independent runs of a cell.
struct Stage {
    runs: Range<usize>,
    /// Student's 97.5 % quantile for as many less one.
    student: f64,
}

const FIRST: Stage = Stage { runs: 0..20, student: 2.093 };
/// Of the cells that miss in the first.
const AGAIN: Stage = Stage { runs: 100..200, student: 1.984 };

/// What the mean may be off.
const TOLERANCE: f64 = 0.02;
/// How many intervals may miss in the end.
const MISSES: usize = 2;

const LOADS: [f64; 4] = [0.5, 0.7, 0.9, 0.95];

/// One column of the table.
struct Column {
    name: &'static str,
    exact: [f64; 4],
    algorithm: &'static str,
    option: Option<(&'static str, u32)>,
    endpoints: usize,
    is_one_line: bool,
    /// Seconds that are left out, and requests that count, of one run at each load.
    warm_up_s: [u32; 4],
    requests: [u64; 4],
}

const COLUMNS: [Column; 5] = [
    Column {
        name: "random (M/M/1 each)",
        exact: [2.0, 10.0 / 3.0, 10.0, 20.0],
        algorithm: "random",
        option: None,
        endpoints: 10,
        is_one_line: false,
        warm_up_s: [200, 500, 5_000, 20_000],
        requests: [50_000, 100_000, 500_000, 2_000_000],
    },
    Column {
        name: "round robin over 10 (E10/M/1)",
        exact: [1.325, 2.020, 5.660, 11.155],
        algorithm: "round_robin",
        option: None,
        endpoints: 10,
        is_one_line: false,
        warm_up_s: [200, 500, 4_000, 15_000],
        requests: [50_000, 100_000, 300_000, 1_500_000],
    },
    Column {
        name: "power of two, n = 2,000",
        exact: [1.2657, 1.6145, 2.6141, 3.3830],
        algorithm: "power_of_two",
        option: None,
        endpoints: 2_000,
        is_one_line: false,
        warm_up_s: [30, 60, 200, 500],
        requests: [100_000, 100_000, 300_000, 750_000],
    },
    Column {
        name: "three choices, n = 2,000",
        exact: [1.1252, 1.3568, 2.0279, 2.5351],
        algorithm: "power_of_two",
        option: Some(("choices", 3)),
        endpoints: 2_000,
        is_one_line: false,
        warm_up_s: [30, 60, 200, 500],
        requests: [100_000, 100_000, 300_000, 750_000],
    },
    Column {
        name: "one line before 10 (M/M/10)",
        exact: [1.0072, 1.0739, 1.6687, 2.6512],
        algorithm: "least_connections",
        option: None,
        endpoints: 10,
        is_one_line: true,
        warm_up_s: [100, 200, 1_000, 4_000],
        requests: [50_000, 100_000, 500_000, 1_500_000],
    },
];

impl Column {
    fn scenario(&self, row: usize, seed: u64, share: u64) -> Scenario {
        let listing = catalogue::find(self.algorithm).expect("it is in the catalogue");
        let option = self.option.map(|(name, value)| (name, OptionValue::Integer(value)));
        let algorithm = listing.configure(listing.name, option.as_slice()).expect("it is right");
        let mut pool = Scenario::pool_of(algorithm, &vec![1; self.endpoints]);
        if self.is_one_line {
            pool.endpoints.iter_mut().for_each(|endpoint| endpoint.max_in_flight = Some(1));
            pool.queue_length = usize::MAX;
        }
        let model = EndpointModel::new(1, Service::Exponential(SECOND));
        let rate = LOADS[row] * self.endpoints as f64;
        let warm_up = SECOND * self.warm_up_s[row] / share as u32;
        let before = (warm_up.as_secs_f64() * rate) as u64;
        Scenario {
            requests: before + self.requests[row] / share,
            warm_up,
            seed,
            ..Scenario::new(pool, vec![model; self.endpoints], Arrivals::poisson(rate))
        }
    }
}

/// The mean of these runs and half of its interval.
fn mean_and_half(means: &[f64], student: f64) -> (f64, f64) {
    let count = means.len() as f64;
    let mean = means.iter().sum::<f64>() / count;
    let variance = means.iter().map(|one| (one - mean).powi(2)).sum::<f64>() / (count - 1.0);
    (mean, student * (variance / count).sqrt())
}

/// A cell by its number; higher loads, which take longer, have higher numbers.
fn cell(place: usize) -> (usize, &'static Column) {
    (place / COLUMNS.len(), &COLUMNS[place % COLUMNS.len()])
}

/// The seed of a run. No two runs share one, or the cells would be wrong together.
fn seed_of(place: usize, replication: usize) -> u64 {
    1_000 * (place as u64 + 1) + replication as u64
}

/// Every run of these cells, by all cores: their means, and how many requests they had.
fn simulate(places: &[usize], stage: &Stage, share: u64) -> (Vec<Vec<f64>>, usize) {
    let found = Mutex::new(vec![Vec::new(); places.len()]);
    let (next, requests) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let runs = stage.runs.len();
    let work = || {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            // The longest first, so that no core is left alone with one at the end.
            let Some(left) = (places.len() * runs).checked_sub(number + 1) else { return };
            let (index, replication) = (left / runs, stage.runs.start + left % runs);
            let (row, column) = cell(places[index]);
            let scenario = column.scenario(row, seed_of(places[index], replication), share);
            let outcome = run(&scenario);
            requests.fetch_add(outcome.requests as usize, Ordering::Relaxed);
            let mean = outcome.latency.total_ns() as f64 / 1e9 / outcome.latency.count() as f64;
            found.lock().unwrap_or_else(PoisonError::into_inner)[index].push(mean);
        }
    };
    std::thread::scope(|scope| {
        (0..cores()).for_each(|_| drop(scope.spawn(work)));
    });
    (found.into_inner().unwrap_or_else(PoisonError::into_inner), requests.into_inner())
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// What a stage found.
struct Judged {
    /// Off by more than the tolerance.
    wrong: Vec<usize>,
    /// The interval misses.
    missed: Vec<usize>,
    requests: usize,
}

/// Simulates these cells, shows them by columns and judges them.
fn judge(places: &[usize], stage: &Stage, share: u64) -> Judged {
    let (found, requests) = simulate(places, stage, share);
    println!(
        "Mean time in system, in seconds, over {} runs of each cell; ± is the 95 % interval.\n",
        stage.runs.len()
    );
    println!("{:<30} {:>5} {:>9} {:>19} {:>8}", "column", "load", "exact", "simulated", "off");
    let mut judged = Judged { wrong: Vec::new(), missed: Vec::new(), requests };
    let mut shown: Vec<_> = places.iter().zip(&found).collect();
    shown.sort_by_key(|(place, _)| (*place % COLUMNS.len(), **place));
    for (&place, means) in shown {
        let (row, column) = cell(place);
        let (exact, (mean, half)) = (column.exact[row], mean_and_half(means, stage.student));
        let off = mean / exact - 1.0;
        let mut word = "";
        if (mean - exact).abs() > half {
            judged.missed.push(place);
            word = "  outside of the interval";
        }
        if off.abs() > TOLERANCE {
            judged.wrong.push(place);
            word = "  WRONG";
        }
        println!(
            "{:<30} {:>5.2} {exact:>9.4} {mean:>10.4} ± {half:>6.4} {:>+7.2} %{word}",
            column.name,
            LOADS[row],
            off * 100.0
        );
    }
    println!();
    judged
}

fn table(share: u64) -> bool {
    let cells = COLUMNS.len() * LOADS.len();
    let began = Instant::now();
    let first = judge(&(0..cells).collect::<Vec<_>>(), &FIRST, share);
    let mut again = first.missed.clone();
    again.sort_unstable();
    let second = match again.is_empty() || share > 1 {
        true => Judged { wrong: Vec::new(), missed: first.missed, requests: 0 },
        false => judge(&again, &AGAIN, share),
    };
    let wrong = first.wrong.len() + second.wrong.len();
    let requests = (first.requests + second.requests) as f64 / 1e6;
    println!(
        "{requests:.1} million requests in {:.1} s on {} cores; {wrong} of {cells} cells off by more than \
         2 %; {} intervals miss, {} at last (at most {MISSES} may).",
        began.elapsed().as_secs_f64(),
        cores(),
        again.len(),
        second.missed.len()
    );
    share > 1 || (wrong == 0 && second.missed.len() <= MISSES)
}

/// Time that this thread was on a core; none where the kernel does not tell.
fn on_core() -> Option<Duration> {
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    Some(Duration::from_nanos(told.split(' ').next()?.parse().ok()?))
}

/// Requests per second of one core, the best of three.
fn speed(name: &str, scenario: &Scenario, promised: f64, share: u64) -> bool {
    let mut best: f64 = 0.0;
    let mut last = None;
    for seed in 0..3 {
        let scenario = Scenario { seed, requests: scenario.requests / share, ..scenario.clone() };
        let (began, before) = (Instant::now(), on_core());
        let outcome = run(&scenario);
        let on_core = on_core().zip(before).map(|(after, before)| after - before);
        let took = on_core.unwrap_or_else(|| began.elapsed()).as_secs_f64();
        best = best.max(outcome.requests as f64 / took);
        last = Some(outcome);
    }
    let Some(outcome) = last else { return false };
    println!(
        "{name:<60} {:>6.2} million/s ({:.0} ns each; promised {:.0}); {} retries, {} failed",
        best / 1e6,
        1e9 / best,
        promised / 1e6,
        outcome.retries,
        outcome.failures.total()
    );
    share > 1 || best >= promised
}

fn speeds(share: u64) -> bool {
    println!("Requests of one core a second, by time on the core, the best of three runs.\n");
    let plain = |name: &str, endpoints: usize| {
        let algorithm = catalogue::find(name).expect("it is in the catalogue").algorithm();
        let pool = Scenario::pool_of(algorithm, &vec![1; endpoints]);
        let model = EndpointModel::new(1, Service::Exponential(Duration::from_millis(1)));
        let arrivals = Arrivals::poisson(700.0 * endpoints as f64);
        Scenario { requests: 6_000_000, ..Scenario::new(pool, vec![model; endpoints], arrivals) }
    };
    let mut busy = plain("power_of_two", 1_000);
    busy.pool.probe = Some(ProbeSpec::default());
    busy.patience = Patience {
        answer: Some(Duration::from_millis(20)),
        client: Some(SECOND),
        ..Patience::default()
    };
    busy.retry = Retry { attempts: 3, ..Retry::default() };
    busy.faults = vec![Fault {
        endpoints: (0..50).collect(),
        from: Duration::ZERO,
        until: SECOND * 3_600,
        trouble: Trouble::Lossy { per_mille: 100 },
    }];
    let round_robin = plain("round_robin", 10);
    let first = speed("round robin over 10", &round_robin, 3e6, share);
    let second = speed("power of two over 1,000, probes, time limits, retries", &busy, 1e6, share);
    for name in ["random", "least_connections", "peak_ewma", "hash"] {
        speed(&format!("{name} over 10"), &plain(name, 10), 0.0, share);
    }
    println!();
    first && second
}

fn main() -> ExitCode {
    let asked: Vec<String> = std::env::args().skip(1).collect();
    let has = |word: &str| asked.iter().any(|one| one == word);
    let share = if has("quick") { 10 } else { 1 };
    let is_fast = has("table") || speeds(share);
    let is_right = has("speed") || table(share);
    if is_fast && is_right { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
