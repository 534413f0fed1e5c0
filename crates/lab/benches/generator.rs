//! How fast the load generator is, and how punctual: `make lab`.
//!
//! Two cores: the generator has one to itself, a test endpoint that answers at once the other. Closed
//! loop: 64 users on kept connections over loopback, as fast as answers come. Open loop: 20,000 a
//! second, evenly, and how late they start. Each is the median of rounds, which alternate. Exit
//! status 1 where less comes out than promised.
//!
//! The closed loop brings the generator to its limit, which is what it is to show: as a load such a
//! run would be invalid. `quick` as an argument: one short round, and nothing is judged.

use std::io;
use std::process::ExitCode;
use std::time::Duration;

use subak_lab::endpoint::{EndpointSpec, Endpoints};
use subak_lab::load::{self, LoadPlan, LoadReport};
use subak_lab::machine;

/// Requests a second of one core, closed loop.
const LEAST_PER_SECOND: f64 = 60_000.0;
/// Of an open loop, and how late its starts may be, p99.
const RATE: f64 = 20_000.0;
const LATEST: Duration = Duration::from_millis(1);

fn main() -> ExitCode {
    let is_quick = std::env::args().any(|word| word == "quick");
    match measure(is_quick) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Whether all is as promised.
fn measure(is_quick: bool) -> io::Result<bool> {
    let cpus = machine::allowed_cpus()?;
    let &[other, own, ..] = &cpus[..] else {
        return Err(io::Error::other("two CPUs are needed: one for each side"));
    };
    let any = "127.0.0.1:0".parse().map_err(io::Error::other)?;
    let endpoints = Endpoints::start_on(vec![EndpointSpec::new("a", any)], Some(other))?;
    machine::pin_to(own)?;
    let (rounds, seconds) = if is_quick { (1, 1) } else { (5, 3) };
    let plan = LoadPlan::get(endpoints.address(0), "/").lasting(Duration::from_secs(seconds));
    let open = plan.clone().rate(RATE, 64);
    let (mut rates, mut latenesses) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        let closed = load::run(&plan)?;
        rates.push(closed.per_second());
        println!("closed loop: {:.0} requests/s, {}", closed.per_second(), own_use(&closed));
        let open = load::run(&open)?;
        let late = |share| open.lateness.quantile(share).as_secs_f64() * 1e3;
        latenesses.push(open.lateness.quantile(0.99));
        println!(
            "open loop: {:.0} requests/s, {}; started late: p50 {:.3} ms, p99 {:.3} ms, at most {:.3} ms",
            open.per_second(),
            own_use(&open),
            late(0.5),
            late(0.99),
            open.lateness.max().as_secs_f64() * 1e3,
        );
        if closed.failures.total() + open.failures.total() > 0 {
            return Err(io::Error::other(format!("{}; {}", closed.failures, open.failures)));
        }
    }
    rates.sort_by(f64::total_cmp);
    latenesses.sort_unstable();
    let (rate, lateness) = (rates[rounds / 2], latenesses[rounds / 2]);
    let is_fast = rate >= LEAST_PER_SECOND;
    let is_punctual = lateness < LATEST;
    println!(
        "generator: {rate:.0} requests/s on one core{}; at {RATE:.0}/s p99 of start lateness is {:.3} ms{}",
        if is_fast { "" } else { " TOO SLOW" },
        lateness.as_secs_f64() * 1e3,
        if is_punctual { "" } else { " TOO LATE" },
    );
    Ok(is_quick || is_fast && is_punctual)
}

/// What its thread used of the core.
fn own_use(report: &LoadReport) -> String {
    let watch = &report.watch;
    let each_us = watch.cpu.as_secs_f64() * 1e6 / report.answered.max(1) as f64;
    format!(
        "{each_us:.2} µs each, core used {:.0} %, waited for {:.0} %",
        watch.busy_share() * 100.0,
        watch.starved_share() * 100.0
    )
}
