//! A scenario under virtual time: the same seed gives the same result, byte for byte, on however many
//! threads.

use std::fmt;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use subak_config::Pool;
use subak_pool::PoolSpec;
use subak_sim as sim;

use crate::configuration;
use crate::measured::{Measured, Moment, On, Trial};
use crate::model::{Algorithm, Endpoint, Scenario, Service};
use crate::real::Calibration;

/// Steps of a run's series.
const STEPS: u32 = 60;

/// An algorithm does not go with the scenario's pool.
#[derive(Debug)]
pub struct Unfit {
    /// Which one.
    pub algorithm: String,
    /// What the configuration's reader says.
    pub why: String,
}

impl fmt::Display for Unfit {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:\n{}", self.algorithm, self.why)
    }
}

impl std::error::Error for Unfit {}

/// Runs every algorithm with every seed; `progress` hears how many of all runs are done.
///
/// `as_real` is what a machine adds, and where the real endpoints are; without it the network is perfect.
/// `to_spec` makes of a configured pool what a pool is built from, as the data path does.
///
/// # Errors
/// The scenario's pool is no valid configuration with one of the algorithms.
pub fn simulate(
    scenario: &Scenario,
    as_real: Option<(&Calibration, &[SocketAddr])>,
    to_spec: fn(&Pool) -> PoolSpec,
    progress: &(dyn Fn(usize, usize) + Sync),
) -> Result<Vec<Trial>, Unfit> {
    let calibration = as_real.map(|(calibration, _)| calibration);
    let addresses: Vec<String> = match as_real {
        Some((_, addresses)) => addresses.iter().map(ToString::to_string).collect(),
        None => (0..scenario.endpoints.len())
            .map(|index| format!("10.0.{}.{}:80", index / 250, index % 250 + 1))
            .collect(),
    };
    let mut worlds = Vec::new();
    for algorithm in &scenario.algorithms {
        let text = configuration::text(scenario, algorithm, "127.0.0.1:8080", &addresses);
        let pool = configuration::pool(&text)
            .map_err(|why| Unfit { algorithm: algorithm.name.clone(), why })?;
        worlds.push(world(scenario, calibration, &pool, to_spec(&pool)));
    }
    let seeds = scenario.seeds as usize;
    let invalid = calibration.map_or(&[][..], |calibration| &calibration.invalid);
    let all = worlds.len() * seeds;
    let results: Mutex<Vec<Option<Measured>>> = Mutex::new(vec![None; all]);
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from).min(all) {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    if index >= all {
                        return;
                    }
                    let seed = (index % seeds) as u64 + 1;
                    let world = sim::Scenario { seed, ..worlds[index / seeds].clone() };
                    let mut measured = measured(&world, &sim::run(&world));
                    measured.invalid = invalid.to_vec();
                    let mut results = results.lock().unwrap_or_else(PoisonError::into_inner);
                    results[index] = Some(measured);
                    drop(results);
                    progress(done.fetch_add(1, Ordering::Relaxed) + 1, all);
                }
            });
        }
    });
    let results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    let mut runs = results.into_iter().flatten();
    let trial = |algorithm: &Algorithm| Trial {
        on: On::Sim,
        algorithm: algorithm.name.clone(),
        runs: runs.by_ref().take(seeds).collect(),
    };
    Ok(scenario.algorithms.iter().map(trial).collect())
}

/// The scenario as the simulator has it.
fn world(
    scenario: &Scenario,
    calibration: Option<&Calibration>,
    pool: &Pool,
    spec: PoolSpec,
) -> sim::Scenario {
    let mut models: Vec<sim::EndpointModel> = scenario.endpoints.iter().map(model).collect();
    if let Some(calibration) = calibration {
        for model in &mut models {
            (model.late, model.delay) = (calibration.late, calibration.delay());
        }
    }
    sim::Scenario {
        herds: scenario.herds.clone(),
        clients: scenario.load.clients.clone(),
        objects: Some(scenario.load.objects.clone()),
        balancers: scenario.balancers,
        patience: sim::Patience {
            queue: Some(pool.queue.timeout),
            answer: Some(pool.timeouts.first_byte),
            client: Some(scenario.load.patience),
        },
        retry: sim::Retry {
            attempts: pool.retry.attempts.get(),
            on_reset: pool.retry.on.reset,
            on_timeout: pool.retry.on.timeout,
            on_error: !pool.retry.on.statuses.is_empty(),
        },
        faults: scenario.faults.clone(),
        duration: scenario.lasts,
        warm_up: scenario.warm_up,
        series: Some(scenario.lasts / STEPS),
        ..sim::Scenario::new(spec, models, scenario.load.arrivals.clone())
    }
}

fn model(endpoint: &Endpoint) -> sim::EndpointModel {
    let cache = endpoint.cache.map(|(objects, hit)| sim::Cache { objects, hit: service(hit) });
    sim::EndpointModel {
        queue: endpoint.queue,
        cache,
        ..sim::EndpointModel::new(endpoint.concurrency, service(endpoint.service))
    }
}

fn service(service: Service) -> sim::Service {
    match service {
        Service::Constant(time) => sim::Service::Constant(time),
        Service::Exponential(mean) => sim::Service::Exponential(mean),
        Service::LogNormal(median, sigma) => sim::Service::LogNormal { median, sigma },
        Service::Pareto(least, alpha) => sim::Service::Pareto { least, alpha },
    }
}

fn measured(world: &sim::Scenario, outcome: &sim::Outcome) -> Measured {
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    let at = |per_mille| ms(outcome.latency.quantile(per_mille));
    let failures = outcome.failures.named().into_iter().filter(|(_, count)| *count > 0);
    let took_s = world.series.map_or(0.0, |step| step.as_secs_f64());
    let moment = |one: &sim::Moment| Moment {
        at_s: one.from.as_secs_f64(),
        took_s,
        answered: one.answered,
        failed: one.failed,
        p95_ms: ms(one.p95),
    };
    // What comes after the last arrival is the end of the queues, not a step of the scenario.
    let series = outcome.series.iter().filter(|one| one.from < world.duration);
    let ended_s = (outcome.ended.0 as f64 / 1e9).max(1e-9);
    let busy = outcome.endpoints.iter().zip(&world.models);
    Measured {
        seed: world.seed,
        requests: outcome.requests,
        answered: outcome.answered,
        failures: failures.map(|(name, count)| (name.to_owned(), count)).collect(),
        retries: Some(outcome.retries),
        mean_ms: ms(outcome.latency.mean()),
        p50_ms: at(500),
        p95_ms: at(950),
        p99_ms: at(990),
        p999_ms: at(999),
        hits: outcome.hits(),
        utilisation: busy
            .map(|(one, model)| one.busy.as_secs_f64() / ended_s / f64::from(model.concurrency))
            .collect(),
        balancer_us: None,
        balancer_busy: None,
        attacked: Vec::new(),
        series: series.map(moment).collect(),
        invalid: Vec::new(),
    }
}
