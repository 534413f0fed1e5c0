//! What a machine adds to the time that endpoints work: measured once, apart from what is judged, and
//! handed to the simulator.
//!
//! The scenario's own load at its mean, without faults, on endpoints that work a constant time and never
//! queue. What an answer takes beyond that time is the path's (generator, kernel, balancer, back), but
//! for what the endpoint's own timers were late by: that occupies a slot, the rest does not.

use std::time::Duration;

use subak_lab::histogram::Histogram;
use subak_lab::load;
use subak_lab::machine;
use subak_sim as sim;

use super::{Cores, Ground, NotRun, OTHER_DESCRIPTORS, World, plan};
use crate::model::{Endpoint, Load, Scenario, Service};

/// How long, beside a warm-up.
const LASTS: Duration = Duration::from_secs(4);
const WARM_UP: Duration = Duration::from_secs(1);
/// No endpoint has more to do than this.
const CONCURRENCY: u32 = 100_000;
/// The constant time is the mean of the endpoints', and not longer than this: latencies are known to
/// within 0.4 % of themselves.
const LONGEST_WORK: Duration = Duration::from_millis(5);
/// Quantiles that are kept of what is added.
const STEPS: u32 = 200;

/// What a machine adds.
#[derive(Clone, PartialEq, Debug)]
pub struct Calibration {
    /// How late the endpoints' timers are, in the mean.
    pub late: Duration,
    /// Quantiles of what the path takes beside, evenly from the least to the greatest.
    pub path: Vec<Duration>,
    /// Why it does not count, and no run of the simulator that goes by it; empty when it does.
    pub invalid: Vec<String>,
}

impl Calibration {
    fn of(latency: &Histogram, work: Duration, late: Duration) -> Calibration {
        let share = |step: u32| f64::from(step) / f64::from(STEPS);
        let path =
            (0..=STEPS).map(|step| latency.quantile(share(step)).saturating_sub(work + late));
        Calibration { late, path: path.collect(), invalid: Vec::new() }
    }

    /// The path as the simulator draws from it.
    pub(crate) fn delay(&self) -> sim::Service {
        let nothing = sim::Service::Constant(Duration::ZERO);
        let Some((least, others)) = self.path.split_first() else { return nothing };
        let steps: Vec<(Duration, u64)> = others.iter().map(|upper| (*upper, 1)).collect();
        sim::Steps::new(*least, &steps)
            .map_or(nothing, |steps| sim::Service::Histogram(steps.into()))
    }

    /// For people.
    pub fn told(&self) -> String {
        let at = |percent: usize| {
            let quantile = self.path.get(self.path.len().saturating_sub(1) * percent / 100);
            quantile.map_or(0.0, |time| time.as_secs_f64() * 1e3)
        };
        format!(
            "the path adds {:.3} ms at p50, {:.3} at p95, {:.3} at p99; endpoints' timers are {:.3} ms \
             late in the mean",
            at(50),
            at(95),
            at(99),
            self.late.as_secs_f64() * 1e3
        )
    }
}

/// Measures it. A run of its own, of which nothing is judged.
///
/// # Errors
/// As [`super::measure`].
pub fn calibrate(scenario: &Scenario, ground: &Ground<'_>) -> Result<Calibration, NotRun> {
    let cores = Cores::of_this_machine()?;
    let work = work(scenario);
    let endpoint = |one: &Endpoint| Endpoint {
        service: Service::Constant(work),
        concurrency: CONCURRENCY,
        cache: None,
        ..one.clone()
    };
    let quiet = Scenario {
        lasts: LASTS + WARM_UP,
        warm_up: WARM_UP,
        endpoints: scenario.endpoints.iter().map(endpoint).collect(),
        faults: Vec::new(),
        herds: Vec::new(),
        attacks: Vec::new(),
        load: constant(scenario),
        ..scenario.clone()
    };
    let Some(algorithm) = quiet.algorithms.first() else {
        return Err(NotRun::Unfit("there is no algorithm".to_owned()));
    };
    let world = World::start(&quiet, algorithm, ground, cores, 99)?;
    let plan = plan::plan(&quiet, world.targets(), 99)?;
    machine::raise_descriptor_limit(plan.most_connections() as u64 + OTHER_DESCRIPTORS)?;
    let report = std::thread::scope(|scope| {
        let generator = scope.spawn(|| {
            machine::pin_to(cores.others)?;
            load::run_watched(&plan, ground.stop, &mut |_| {})
        });
        let failed = || Err(std::io::Error::other("the load generator failed"));
        generator.join().unwrap_or_else(|_| failed())
    })?;
    ground.go_on()?;
    if report.answered == 0 {
        let why = format!("the calibration had no answer: {}", report.failures);
        return Err(NotRun::Unfit(why));
    }
    let told = world.endpoints.told()?;
    let served: u64 = told.iter().map(|one| one.served).sum();
    let late_s = told.iter().map(|one| one.late_s).sum::<f64>() / served.max(1) as f64;
    let invalid = report.invalid().iter().map(|why| format!("calibration: {why}")).collect();
    let late = Duration::from_secs_f64(late_s);
    Ok(Calibration { invalid, ..Calibration::of(&report.latency, work, late) })
}

/// The mean time of work over the endpoints.
fn work(scenario: &Scenario) -> Duration {
    let mean = |service: Service| match service {
        Service::Constant(time) | Service::Exponential(time) => time.as_secs_f64(),
        Service::LogNormal(median, sigma) => median.as_secs_f64() * (sigma * sigma / 2.0).exp(),
        Service::Pareto(least, alpha) => least.as_secs_f64() * alpha / (alpha - 1.0),
    };
    let sum: f64 = scenario.endpoints.iter().map(|one| mean(one.service)).sum();
    Duration::from_secs_f64(sum / scenario.endpoints.len().max(1) as f64).min(LONGEST_WORK)
}

/// The load at its mean, all the time.
fn constant(scenario: &Scenario) -> Load {
    let to = scenario.load.mean(scenario.lasts).max(1.0).round();
    let stage = |lasts| sim::Stage { to, lasts };
    let stages = vec![stage(Duration::ZERO), stage(LASTS + WARM_UP)];
    let arrivals = match &scenario.load.arrivals {
        sim::Arrivals::Users { think, .. } => sim::Arrivals::Users { stages, think: think.clone() },
        sim::Arrivals::Open { pace: sim::Pace::Even, .. } => {
            sim::Arrivals::Open { pace: sim::Pace::Even, rate: sim::Rate::Stages(stages) }
        }
        sim::Arrivals::Open { .. } | sim::Arrivals::Trace(_) => {
            sim::Arrivals::Open { pace: sim::Pace::Poisson, rate: sim::Rate::Stages(stages) }
        }
    };
    Load { arrivals, log: None, ..scenario.load.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_added_is_what_is_left_of_the_latency() {
        let mut latency = Histogram::new();
        let us = Duration::from_micros;
        (0..1000).for_each(|one| latency.record(20_000_000 + 100_000 + one * 100));
        let calibration = Calibration::of(&latency, us(20_000), us(40));
        assert_eq!(calibration.late, us(40));
        // Within the steps of the histogram: 0.4 % of 20 ms.
        let middle = calibration.path[STEPS as usize / 2];
        assert!(middle > us(20) && middle < us(200), "{middle:?}");
        assert!(calibration.path.is_sorted());
        assert!(matches!(calibration.delay(), sim::Service::Histogram(_)));
        assert!(calibration.told().contains("0.040 ms late"), "{}", calibration.told());
    }
}
