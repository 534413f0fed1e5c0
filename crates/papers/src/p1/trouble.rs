//! What goes wrong: a server that dies, and more load than can be served.

use std::thread;
use std::time::{Duration, Instant};

use super::users::SLACK;
use super::{
    ALGORITHMS, ALL_AT_ONCE, CAPACITY, LIMITED, MINUTE, clients, listed, many, stage, url,
};
use crate::cell::{Cell, Measured, Need, Scale};
use crate::tools::generator;
use crate::tools::k6::Call;
use crate::world::{Kind, World};

/// The phases of robustness at full scale, and shares of what the servers can do.
const BEFORE: (Duration, f64) = (MINUTE, 0.5);
const BEYOND: (Duration, f64) = (MINUTE, 1.5);
const AFTER: (Duration, f64) = (Duration::from_secs(180), 0.5);
/// Short enough to see when all is well again.
const EVERY: Duration = Duration::from_millis(250);

pub(super) fn cells(scale: Scale) -> Vec<Cell> {
    let mut cells = Vec::new();
    for algorithm in ALGORITHMS {
        cells.push(killed(algorithm, true, scale));
        cells.push(killed(algorithm, false, scale));
        cells.push(beyond(algorithm, scale));
    }
    cells
}

/// A server dies under a hundred users, and stays dead. No health checks: what is left is that a
/// request is tried again elsewhere.
fn killed(algorithm: &'static str, by_k6: bool, scale: Scale) -> Cell {
    let stage = stage(Kind::Subak, algorithm, ALL_AT_ONCE);
    let time = scale.time(5 * MINUTE).max(Duration::from_secs(4));
    let call = Call {
        options: format!("vus: 100, duration: '{}ms'", time.as_millis()),
        url: url(&stage),
        sources: listed(&many()),
        at_most: time + SLACK,
    };
    let clients = clients(&stage, many());
    Cell {
        id: format!("P1/failover/subak/{algorithm}{}#1", if by_k6 { "" } else { "/ours" }),
        takes: time + Duration::from_secs(3),
        needs: stage.needs(by_k6.then_some(Need::K6)),
        work: Box::new(move |world: &World| {
            let mut running = stage.start(world)?;
            let server = running.servers.get_mut(0).ok_or("no servers")?;
            let measured = thread::scope(|scope| {
                // A thread that only waits and ends a process: the processes' parent stays here.
                scope.spawn(|| {
                    thread::sleep(time / 2);
                    server.kill();
                });
                match by_k6 {
                    true => call.run(world),
                    false => generator::users(&clients, &vec![(Duration::ZERO, 100), (time, 100)]),
                }
            })?;
            Ok(measured.counts("hits", running.hits()))
        }),
    }
}

/// Half of what servers can do, half as much again as they can, and half again: who is refused, and
/// when is all well?
fn beyond(algorithm: &'static str, scale: Scale) -> Cell {
    let stage = stage(Kind::Subak, algorithm, LIMITED);
    let clients = clients(&stage, many());
    let phases =
        [BEFORE, BEYOND, AFTER].map(|(time, share)| (scale.time(time).max(4 * EVERY), share));
    // A whole second at a constant rate after each jump, at least.
    let stages: Vec<(Duration, f64)> = phases
        .into_iter()
        .flat_map(|(time, share)| [(Duration::ZERO, share * CAPACITY), (time, share * CAPACITY)])
        .collect();
    let begins = phases[0].0;
    let ends = phases[0].0 + phases[1].0;
    let takes: Duration = phases.iter().map(|(time, _)| *time).sum();
    Cell {
        id: format!("P1/robustness/subak/{algorithm}/ours#1"),
        takes: takes + Duration::from_secs(5),
        needs: stage.needs(None),
        work: Box::new(move |world: &World| {
            let running = stage.start(world)?;
            let start = Instant::now();
            running.measure(|| {
                let (measured, report) =
                    generator::rising(&clients, stages.clone(), EVERY, |_| false)?;
                let usual = |moment: &&subak_lab::load::Moment| moment.at <= begins;
                let before = report.moments.iter().filter(usual).map(|moment| moment.p95).max();
                let before = before.unwrap_or_default();
                let is_well = |moment: &subak_lab::load::Moment| {
                    moment.failed == 0 && moment.answered > 0 && moment.p95 <= before * 2
                };
                // From the last interval on that was not as before.
                let after = report.moments.iter().filter(|moment| moment.at > ends);
                let last_bad =
                    after.filter(|moment| !is_well(moment)).map(|moment| moment.at).next_back();
                let recovery = last_bad.map_or(Duration::ZERO, |at| at.saturating_sub(ends));
                let is_over = last_bad.is_some_and(|at| at + EVERY * 2 > report.elapsed);
                let measured = measured
                    .number("p95_before_ms", before.as_secs_f64() * 1e3)
                    .number("lasted_s", start.elapsed().as_secs_f64());
                Ok(of_recovery(measured, recovery, is_over))
            })
        }),
    }
}

/// Without a number where the run ended before all was well.
fn of_recovery(measured: Measured, recovery: Duration, is_over: bool) -> Measured {
    match is_over {
        true => measured.number("never_recovered", 1.0),
        false => measured.number("recovery_s", recovery.as_secs_f64()),
    }
}
