//! The whole queueing table against theory, and how fast the simulator is: `make lab`.
//!
//! Poisson arrivals, exponential service of mean 1 s, mean time in system. A cell is the mean of
//! twenty independent runs with seeds fixed beforehand, on as many threads as there are cores. It is
//! wrong when its mean is not within 2 % of the exact value; the whole table is wrong when more than two
//! of its 95 % intervals (Student's, over the runs) do not contain that value. Exit status 1 for what is
//! wrong, and when the simulator is slower than promised. Of tables that are right, one in thirteen is
//! called wrong by chance; what has been run so far, and its seeds, is in `docs/simulator.md`.
//!
//! Options: `table` or `speed` alone; `quick` for a tenth of the requests, which judges nothing.

use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use subak_balance::catalogue::{self, OptionValue};
use subak_health::ProbeSpec;
use subak_sim::{Arrivals, EndpointModel, Fault, Patience, Retry, Scenario, Service, Trouble, run};

const SECOND: Duration = Duration::from_secs(1);

/// Independent runs of a cell.
const RUNS: usize = 20;
/// Student's 97.5 % quantile for as many less one.
const STUDENT: f64 = 2.093;

/// What the mean may be off.
const TOLERANCE: f64 = 0.02;
/// How many intervals may miss.
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
        exact: [1.324642, 2.019804, 5.660276, 11.154948],
        algorithm: "round_robin",
        option: None,
        endpoints: 10,
        is_one_line: false,
        warm_up_s: [200, 500, 4_000, 15_000],
        requests: [50_000, 100_000, 300_000, 1_500_000],
    },
    Column {
        name: "power of two, n = 8,000",
        exact: [1.265686, 1.614454, 2.614057, 3.383046],
        algorithm: "power_of_two",
        option: None,
        endpoints: 8_000,
        is_one_line: false,
        warm_up_s: [30, 60, 200, 500],
        requests: [200_000, 200_000, 600_000, 1_500_000],
    },
    Column {
        name: "three choices, n = 8,000",
        exact: [1.125244, 1.356842, 2.027856, 2.535133],
        algorithm: "power_of_two",
        option: Some(("choices", 3)),
        endpoints: 8_000,
        is_one_line: false,
        warm_up_s: [30, 60, 200, 500],
        requests: [200_000, 200_000, 600_000, 1_500_000],
    },
    Column {
        name: "one line before 10 (M/M/10)",
        exact: [1.007221, 1.073910, 1.668732, 2.651171],
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

/// Its cells.
const CELLS: usize = COLUMNS.len() * LOADS.len();

/// The mean of these runs and half of its interval.
fn mean_and_half(means: &[f64]) -> (f64, f64) {
    let count = means.len() as f64;
    let mean = means.iter().sum::<f64>() / count;
    let variance = means.iter().map(|one| (one - mean).powi(2)).sum::<f64>() / (count - 1.0);
    (mean, STUDENT * (variance / count).sqrt())
}

/// A cell by its number; higher loads, which take longer, have higher numbers.
fn cell(place: usize) -> (usize, &'static Column) {
    (place / COLUMNS.len(), &COLUMNS[place % COLUMNS.len()])
}

/// The seed of a run. No two runs share one, or the cells would be wrong together; none is of an earlier
/// design of this table.
fn seed_of(place: usize, replication: usize) -> u64 {
    1_000_000 + 1_000 * place as u64 + replication as u64
}

/// Every run of every cell, by all cores: their means, and how many requests there were.
fn simulate(share: u64) -> (Vec<Vec<f64>>, usize) {
    let found = Mutex::new(vec![Vec::new(); CELLS]);
    let (next, requests) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let work = || {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            // The longest first, so that no core is left alone with one at the end.
            let Some(left) = (CELLS * RUNS).checked_sub(number + 1) else { return };
            let (place, replication) = (left / RUNS, left % RUNS);
            let (row, column) = cell(place);
            let outcome = run(&column.scenario(row, seed_of(place, replication), share));
            requests.fetch_add(outcome.requests as usize, Ordering::Relaxed);
            let mean = outcome.latency.total_ns() as f64 / 1e9 / outcome.latency.count() as f64;
            found.lock().unwrap_or_else(PoisonError::into_inner)[place].push(mean);
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

/// Simulates all cells, shows them by columns and judges them.
fn table(share: u64) -> bool {
    let began = Instant::now();
    let (found, requests) = simulate(share);
    println!(
        "Mean time in system, in seconds, over {RUNS} runs of each cell; ± is the 95 % interval.\n"
    );
    println!("{:<30} {:>5} {:>9} {:>19} {:>8}", "column", "load", "exact", "simulated", "off");
    let (mut wrong, mut missed) = (0, 0);
    let mut shown: Vec<_> = found.iter().enumerate().collect();
    shown.sort_by_key(|(place, _)| (place % COLUMNS.len(), *place));
    for (place, means) in shown {
        let (row, column) = cell(place);
        let (exact, (mean, half)) = (column.exact[row], mean_and_half(means));
        let off = mean / exact - 1.0;
        let mut word = "";
        if (mean - exact).abs() > half {
            missed += 1;
            word = "  outside of the interval";
        }
        if off.abs() > TOLERANCE {
            wrong += 1;
            word = "  WRONG";
        }
        println!(
            "{:<30} {:>5.2} {exact:>9.4} {mean:>10.4} ± {half:>6.4} {:>+7.2} %{word}",
            column.name,
            LOADS[row],
            off * 100.0
        );
    }
    println!(
        "\n{:.1} million requests in {:.1} s on {} cores; {wrong} of {CELLS} cells off by more than \
         2 %; {missed} intervals miss (at most {MISSES} may).",
        requests as f64 / 1e6,
        began.elapsed().as_secs_f64(),
        cores(),
    );
    share > 1 || (wrong == 0 && missed <= MISSES)
}

/// Time that this thread was on a core; none where the kernel does not tell.
fn on_core() -> Option<Duration> {
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    Some(Duration::from_nanos(told.split(' ').next()?.parse().ok()?))
}

/// Runs of which the quickest says what the simulator can do: others have the machine too.
const SPEED_RUNS: u64 = 9;

/// Requests per second of one core, the best of several runs.
fn speed(name: &str, scenario: &Scenario, promised: f64, share: u64) -> bool {
    let mut best: f64 = 0.0;
    let mut last = None;
    for seed in 0..SPEED_RUNS {
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
    println!(
        "Requests of one core a second, by time on the core, the best of {SPEED_RUNS} runs.\n"
    );
    let plain = |name: &str, endpoints: usize| {
        let algorithm = catalogue::find(name).expect("it is in the catalogue").algorithm();
        let pool = Scenario::pool_of(algorithm, &vec![1; endpoints]);
        let model = EndpointModel::new(1, Service::Exponential(Duration::from_millis(1)));
        let arrivals = Arrivals::poisson(700.0 * endpoints as f64);
        Scenario { requests: 2_000_000, ..Scenario::new(pool, vec![model; endpoints], arrivals) }
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
