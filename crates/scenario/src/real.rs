//! A scenario on real processes: `subak serve`, one or several, on one core; endpoints that work and fail as the
//! scenario says, attackers and the load generator on the other. All of it on addresses of 127.0.0.0/8
//! that nobody else uses, and ended with the run.
//!
//! A run counts only when nothing but the balancer and the endpoints decided its result: the generator
//! watches itself, and neither core may be busier than [`MOST_BUSY`].

mod attack;
mod balancer;
mod calibration;
mod faults;
mod plan;
mod process;
mod world;

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use subak_lab::load::{self, Event, Failure, LoadReport};
use subak_lab::{machine, process as costs};

use crate::measured::{Measured, Moment, On, Trial};
use crate::model::{Algorithm, Scenario};

pub use calibration::{Calibration, calibrate};
use world::World;

/// A core that is busier than this may have decided the result.
const MOST_BUSY: f64 = 0.6;
/// Descriptors that are needed beside connections.
const OTHER_DESCRIPTORS: u64 = 256;

/// Why a scenario could not be run on real servers.
#[derive(Debug)]
pub enum NotRun {
    /// This scenario is not for real servers, or not for this machine.
    Unfit(String),
    /// The system refused something.
    System(io::Error),
    /// Somebody said stop.
    Stopped,
}

impl fmt::Display for NotRun {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotRun::Unfit(why) => out.write_str(why),
            NotRun::System(error) => error.fmt(out),
            NotRun::Stopped => out.write_str("stopped; nothing was kept"),
        }
    }
}

impl std::error::Error for NotRun {}

impl From<io::Error> for NotRun {
    fn from(error: io::Error) -> NotRun {
        NotRun::System(error)
    }
}

/// What real runs need beside the scenario.
#[derive(Clone, Copy)]
pub struct Ground<'a> {
    /// The Subak that serves, and whose test endpoints are used.
    pub binary: &'a Path,
    /// Ends everything soon after it became true.
    pub stop: &'a AtomicBool,
    /// Where the endpoints are, of every run; see [`Ground::addresses`].
    pub endpoints: &'a [SocketAddr],
    /// Hears how many of all runs are done.
    pub progress: &'a dyn Fn(usize, usize),
}

impl fmt::Debug for Ground<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Ground").field("binary", &self.binary).finish_non_exhaustive()
    }
}

impl Ground<'_> {
    /// Addresses for the endpoints of a scenario. They are a part of what consistent hashes place
    /// clients by, so all runs that are compared have the same.
    ///
    /// # Errors
    /// There is no free port.
    pub fn addresses(scenario: &Scenario) -> io::Result<Vec<SocketAddr>> {
        process::addresses(scenario.endpoints.len())
    }

    fn go_on(&self) -> Result<(), NotRun> {
        if self.stop.load(Ordering::Relaxed) { Err(NotRun::Stopped) } else { Ok(()) }
    }
}

/// The balancer's core, and that of everything else.
#[derive(Clone, Copy, Debug)]
struct Cores {
    balancer: usize,
    others: usize,
}

impl Cores {
    fn of_this_machine() -> Result<Cores, NotRun> {
        match machine::allowed_cpus()?[..] {
            [balancer, .., others] => Ok(Cores { balancer, others }),
            _ => Err(NotRun::Unfit(
                "real servers need two cores: one for the balancer, one for everything else; \
                 run it in the simulator"
                    .to_owned(),
            )),
        }
    }
}

/// Runs every algorithm with every repetition, by turns, so that what changes on the machine meanwhile
/// meets all of them alike.
///
/// # Errors
/// [`NotRun`]. Requests that fail are results.
pub fn measure(scenario: &Scenario, ground: &Ground<'_>) -> Result<Vec<Trial>, NotRun> {
    let cores = Cores::of_this_machine()?;
    let mut trials: Vec<Trial> = scenario
        .algorithms
        .iter()
        .map(|one| Trial { on: On::Real, algorithm: one.name.clone(), runs: Vec::new() })
        .collect();
    let all = trials.len() * scenario.repetitions as usize;
    let mut done = 0;
    for repetition in 0..scenario.repetitions {
        for (algorithm, trial) in scenario.algorithms.iter().zip(&mut trials) {
            let seed = u64::from(repetition) + 1;
            trial.runs.push(once(scenario, algorithm, ground, cores, seed)?);
            done += 1;
            (ground.progress)(done, all);
        }
    }
    Ok(trials)
}

/// What was known at one end of the measured window.
struct End {
    balancer: costs::CpuTime,
    cores_ns: [u64; 2],
    at: Instant,
}

impl End {
    fn now(pids: &[u32], cores: Cores) -> io::Result<End> {
        let busy = |core| machine::cpu_busy_ns(core);
        let cores_ns = [busy(cores.balancer)?, busy(cores.others)?];
        Ok(End { balancer: costs::cpu_time(pids)?, cores_ns, at: Instant::now() })
    }
}

fn once(
    scenario: &Scenario,
    algorithm: &Algorithm,
    ground: &Ground<'_>,
    cores: Cores,
    seed: u64,
) -> Result<Measured, NotRun> {
    let mut world = World::start(scenario, algorithm, ground, cores, seed)?;
    let targets = world.targets();
    let plan = plan::plan(scenario, targets.clone(), seed)?;
    machine::raise_descriptor_limit(plan.most_connections() as u64 + OTHER_DESCRIPTORS)?;
    let pids = world.balancers_pids()?;
    let mut ends: Vec<io::Result<End>> = Vec::new();
    let over = AtomicBool::new(false);
    let began = Instant::now();
    let (report, attacked) = thread::scope(|scope| {
        let attacks =
            attack::start(scope, &scenario.attacks, targets[0], cores.others, began, &over);
        // A thread of its own, which keeps to its core for as long as it runs.
        let generator = thread::Builder::new().name("load".to_owned()).spawn_scoped(scope, || {
            // Also when it fails: others wait for that.
            let _over = Over(&over);
            machine::pin_to(cores.others)?;
            load::run_watched(&plan, ground.stop, &mut |event| {
                if !matches!(event, Event::Moment(_)) {
                    ends.push(End::now(&pids, cores));
                }
            })
        });
        if generator.is_err() {
            over.store(true, Ordering::Relaxed);
        }
        // By this thread: processes end with the one that started them.
        let faults =
            faults::trouble(&scenario.faults, &mut world.endpoints, &world.balancers, began, &over);
        let failed = || Err(io::Error::other("the load generator failed"));
        let report = generator.and_then(|thread| thread.join().unwrap_or_else(|_| failed()));
        let attacked = attack::finish(attacks);
        io::Result::Ok((report?, faults.and(attacked)?))
    })?;
    // Who was stopped has no window.
    ground.go_on()?;
    let lasted = began.elapsed();
    let mut ends = ends.into_iter();
    let (start, end) = match (ends.next(), ends.next()) {
        (Some(start), Some(end)) => (start?, end?),
        _ => return Err(NotRun::System(io::Error::other("the load had no window"))),
    };
    let window_s = end.at.duration_since(start.at).as_secs_f64().max(1e-9);
    let cpu = end.balancer.since(start.balancer).total();
    let mut measured = counted(scenario, &report, seed);
    let told = world.endpoints.told()?;
    measured.hits = told.iter().map(|one| one.hits).collect();
    let slots = scenario.endpoints.iter().map(|one| f64::from(one.concurrency));
    measured.utilisation = told
        .iter()
        .zip(slots)
        .map(|(one, slots)| one.service_s / slots / lasted.as_secs_f64())
        .collect();
    measured.balancer_us = Some(cpu.as_secs_f64() * 1e6 / report.ended().max(1) as f64);
    measured.balancer_busy = Some(cpu.as_secs_f64() / window_s);
    measured.attacked = attacked;
    let names = ["the balancer's core", "the endpoints' and the generator's core"];
    for (index, name) in names.into_iter().enumerate() {
        let busy_ns = end.cores_ns[index].saturating_sub(start.cores_ns[index]);
        let share = busy_ns as f64 / 1e9 / window_s;
        if share > MOST_BUSY {
            let (percent, most) = (share * 100.0, MOST_BUSY * 100.0);
            let why = format!("{name} was {percent:.0} % busy, {most:.0} % may be");
            measured.invalid.push(why);
        }
    }
    Ok(measured)
}

/// Says that the load is over when it is dropped.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn counted(scenario: &Scenario, report: &LoadReport, seed: u64) -> Measured {
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    let at = |share| ms(report.latency.quantile(share));
    let failures =
        Failure::ALL.into_iter().map(|kind| (kind.to_string(), report.failures.of(kind)));
    // The window begins after the warm-up; the scenario's time before it.
    let moment = |one: &load::Moment| Moment {
        at_s: (one.at.saturating_sub(one.took) + scenario.warm_up).as_secs_f64(),
        took_s: one.took.as_secs_f64(),
        answered: one.answered,
        failed: one.failed,
        p95_ms: ms(one.p95),
    };
    Measured {
        seed,
        requests: report.ended() + report.not_started,
        answered: report.answered,
        failures: failures.filter(|(_, count)| *count > 0).collect(),
        mean_ms: ms(report.latency.mean()),
        p50_ms: at(0.5),
        p95_ms: at(0.95),
        p99_ms: at(0.99),
        p999_ms: at(0.999),
        series: report.moments.iter().map(moment).collect(),
        invalid: report.invalid(),
        ..Measured::default()
    }
}
