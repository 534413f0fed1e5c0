//! The breakpoint: iterations begin at a rate that rises to 20,000 a second in an hour, until something
//! gives. As it was meant, by our generator and by k6, and as the paper prints the script.

use std::fs;
use std::time::Duration;

use super::users::{SLACK, asked};
use super::{ALGORITHMS, ALL_AT_ONCE, MINUTE, clients, listed, many, stage, url};
use crate::cell::{Cell, Measured, Scale};
use crate::tools::generator;
use crate::tools::k6::{self, Call};
use crate::world::{Kind, Stage, World};

/// The last rate, in iterations a second.
const LAST: u32 = 20_000;
/// Users that k6 needs for it: with a second of sleep each begins one iteration a second.
const USERS: u32 = 22_000;
/// What a user of k6 takes of memory, measured: each has a JavaScript machine of its own.
const USER_BYTES: u64 = 4 << 20;
/// The share of the free memory that k6 may have.
const SHARE: u64 = 4;
/// How long the paper's run went: 4,259 iterations at 7.884463 a second.
const PRINTED_TIME: Duration = Duration::from_secs(540);
/// Something has given: more than this share failed, or p95 was longer, in an interval.
const FAILED: f64 = 0.05;
const SLOW: Duration = Duration::from_secs(2);

pub(super) fn cells(scale: Scale) -> Vec<Cell> {
    let time = scale.time(60 * MINUTE);
    let mut cells = Vec::new();
    for algorithm in ALGORITHMS {
        cells.push(by_us(algorithm, "many", time));
        cells.push(by_k6(algorithm, time));
    }
    cells.push(by_us("ip_hash", "one", time));
    cells.push(printed(scale));
    cells
}

fn by_us(algorithm: &'static str, from: &str, time: Duration) -> Cell {
    let stage = stage(Kind::Subak, algorithm, ALL_AT_ONCE);
    let sources = if from == "many" { many() } else { Vec::new() };
    let clients = clients(&stage, sources);
    // A hundred looks at it, whatever the scale.
    let every = (time / 100).max(Duration::from_millis(200));
    Cell {
        id: format!("P1/breakpoint/subak/{algorithm}/{from}/ours#1"),
        takes: time / 2,
        needs: stage.needs(None),
        work: Box::new(move |world: &World| {
            let running = stage.start(world)?;
            running.measure(|| broken(&clients, time, every))
        }),
    }
}

fn broken(
    clients: &generator::Clients,
    time: Duration,
    every: Duration,
) -> Result<Measured, String> {
    let mut most = 0.0_f64;
    let mut gave = None;
    let stages = vec![(time, f64::from(LAST))];
    let (mut measured, report) = generator::rising(clients, stages, every, |moment| {
        let ended = (moment.answered + moment.failed).max(1) as f64;
        let failed = moment.failed as f64 / ended;
        match () {
            () if failed > FAILED => gave = Some(("failed_at_per_s", moment.load)),
            () if moment.p95 > SLOW => gave = Some(("slow_at_per_s", moment.load)),
            () => most = most.max(moment.answered as f64 / moment.took.as_secs_f64().max(1e-9)),
        }
        gave.is_some()
    })?;
    // That it had nothing left is what a breakpoint looks for; who had not is told beside it.
    measured.invalid = None;
    measured = measured
        .number("most_per_s", most)
        .number("generator_busy_percent", report.watch.busy_share() * 100.0)
        .number("generator_starved_percent", report.watch.starved_share() * 100.0);
    if let Some((what, rate)) = gave {
        measured = measured.number(what, rate).number("gave_at_per_s", rate);
    }
    Ok(measured)
}

/// Users that k6 may have here.
fn affordable() -> u32 {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let kib = text.lines().find_map(|line| {
        line.strip_prefix("MemAvailable:")?.split_whitespace().next()?.parse::<u64>().ok()
    });
    let users = kib.unwrap_or(0) * 1024 / SHARE / USER_BYTES;
    u32::try_from(users).unwrap_or(USERS).clamp(100, USERS)
}

fn by_k6(algorithm: &'static str, time: Duration) -> Cell {
    let stage = stage(Kind::Subak, algorithm, ALL_AT_ONCE);
    let gives = |metric: &str, bound: &str| {
        format!("{metric}: [{{ threshold: '{bound}', abortOnFail: true, delayAbortEval: '2s' }}]")
    };
    let call = Call {
        options: format!(
            "scenarios: {{ breakpoint: {{ executor: 'ramping-arrival-rate', startRate: 0, \
             timeUnit: '1s', preAllocatedVUs: 50, maxVUs: {}, \
             stages: {}, gracefulStop: '5s' }} }}, thresholds: {{ {}, {}, {} }}",
            affordable(),
            k6::stages(&[(time, LAST)]),
            gives("http_req_failed", "rate<0.05"),
            gives("http_req_duration", "p(95)<2000"),
            gives("dropped_iterations", "count<1000"),
        ),
        url: url(&stage),
        sources: listed(&many()),
        at_most: time + SLACK,
    };
    let mut cell = asked(format!("P1/breakpoint/subak/{algorithm}/many#1"), stage, call);
    cell.takes = time / 2;
    cell
}

/// As figure 7 prints it: an executor outside of a scenario is ignored, and the stages ramp users. As
/// long as the paper's run went, and as many users as memory allows.
fn printed(scale: Scale) -> Cell {
    let stage: Stage = stage(Kind::Subak, "round_robin", ALL_AT_ONCE);
    let time = scale.time(PRINTED_TIME);
    let whole = scale.time(60 * MINUTE);
    let users = affordable().min(LAST);
    // The same slope, as far as memory allows: k6 makes all users before it begins.
    let ramp = [(whole.mul_f64(f64::from(users) / f64::from(LAST)), users)];
    let call = Call {
        options: format!("executor: 'ramping-arrival-rate', stages: {}", k6::stages(&ramp)),
        url: url(&stage),
        sources: None,
        at_most: time + Duration::from_secs(5),
    };
    let mut cell = asked("P1/breakpoint_as_printed/subak/round_robin#1".to_owned(), stage, call);
    cell.takes = time + Duration::from_secs(10);
    cell
}
