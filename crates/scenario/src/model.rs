//! A scenario, as it was understood. All times are from its beginning. Traffic and what goes wrong are in
//! the simulator's own words.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use subak_sim as sim;

use crate::assertion::Assertion;

/// An experiment.
#[derive(Clone, PartialEq, Debug)]
pub struct Scenario {
    /// A few words.
    pub title: String,
    /// What it is to answer.
    pub question: String,
    /// How long requests arrive.
    pub lasts: Duration,
    /// What arrives earlier is not measured.
    pub warm_up: Duration,
    /// Seeds in the simulator; at least 2.
    pub seeds: u32,
    /// Runs on real servers; at least 2.
    pub repetitions: u32,
    /// What is compared.
    pub algorithms: Vec<Algorithm>,
    /// The traffic.
    pub load: Load,
    /// Keys of a listener's configuration beside `bind`, `pool` and `trusted_proxies`; the simulator
    /// has none.
    pub listener: toml::Table,
    /// Keys of a pool's configuration beside `balance` and `endpoints`.
    pub pool: toml::Table,
    /// The pool's endpoints in their order.
    pub endpoints: Vec<Endpoint>,
    /// The balancers before them.
    pub balancers: sim::Balancers,
    /// What goes wrong.
    pub faults: Vec<sim::Fault>,
    /// Bursts beside the load.
    pub herds: Vec<sim::Herd>,
    /// Who means no good; only on real servers.
    pub attacks: Vec<Attack>,
    /// From when to when something is wrong: the faults and herds unless the file says otherwise.
    pub trouble: Option<(Duration, Duration)>,
    /// What ought to come out.
    pub assertions: Vec<Assertion>,
}

/// An algorithm with its options.
#[derive(Clone, PartialEq, Debug)]
pub struct Algorithm {
    /// As reports name it; unique in the scenario.
    pub name: String,
    /// The value of `balance` in a configuration.
    pub balance: toml::Value,
}

/// The traffic.
#[derive(Clone, PartialEq, Debug)]
pub struct Load {
    /// How much, when. Of a log that is not read yet ([`Scenario::attach`]) nothing.
    pub arrivals: sim::Arrivals,
    /// The log it is to be as, as the scenario names it.
    pub log: Option<PathBuf>,
    /// Who asks. A log has its own.
    pub clients: sim::Keys,
    /// What is asked for. A log has its own.
    pub objects: sim::Keys,
    /// How long a client waits.
    pub patience: Duration,
}

impl Load {
    /// The stages of a rate or of users; none of what goes on in another way.
    pub(crate) fn stages(&self) -> &[sim::Stage] {
        match &self.arrivals {
            sim::Arrivals::Open { rate: sim::Rate::Stages(stages), .. }
            | sim::Arrivals::Users { stages, .. } => stages,
            sim::Arrivals::Open { .. } | sim::Arrivals::Trace(_) => &[],
        }
    }

    /// Requests a second, or users, in the mean of so long.
    pub(crate) fn mean(&self, lasts: Duration) -> f64 {
        let seconds = lasts.as_secs_f64().max(1e-9);
        match &self.arrivals {
            sim::Arrivals::Open { rate: sim::Rate::Steady(mean), .. }
            | sim::Arrivals::Open { rate: sim::Rate::Diurnal { mean, .. }, .. } => *mean,
            sim::Arrivals::Trace(trace) => trace.requests.len() as f64 / seconds,
            sim::Arrivals::Open { rate: sim::Rate::Stages(stages), .. }
            | sim::Arrivals::Users { stages, .. } => {
                let (mut sum, mut before) = (0.0, 0.0);
                for stage in stages {
                    sum += (before + stage.to) / 2.0 * stage.lasts.as_secs_f64();
                    before = stage.to;
                }
                sum / seconds
            }
        }
    }

    /// The same so many times as fast.
    fn faster(&mut self, times: f64) {
        let shorter = |time: Duration| time.div_f64(times);
        self.patience = shorter(self.patience);
        let sooner = |stages: &mut Vec<sim::Stage>| {
            stages.iter_mut().for_each(|stage| stage.lasts = shorter(stage.lasts));
        };
        match &mut self.arrivals {
            sim::Arrivals::Open { pace, rate } => {
                if let sim::Pace::Bursty { calm, burst, .. } = pace {
                    (*calm, *burst) = (shorter(*calm), shorter(*burst));
                }
                match rate {
                    sim::Rate::Steady(rate) => *rate *= times,
                    sim::Rate::Stages(stages) => {
                        sooner(stages);
                        stages.iter_mut().for_each(|stage| stage.to *= times);
                    }
                    sim::Rate::Diurnal { mean, period, .. } => {
                        (*mean, *period) = (*mean * times, shorter(*period));
                    }
                }
            }
            sim::Arrivals::Trace(trace) => {
                for request in &mut Arc::make_mut(trace).requests {
                    request.at_ns = (request.at_ns as f64 / times) as u64;
                }
            }
            sim::Arrivals::Users { stages, think } => {
                sooner(stages);
                if let sim::Service::Constant(think) = think {
                    *think = shorter(*think);
                }
            }
        }
    }
}

/// How one endpoint works.
#[derive(Clone, PartialEq, Debug)]
pub struct Endpoint {
    /// Its weight in the pool.
    pub weight: u16,
    /// How long it works on a request.
    pub service: Service,
    /// How many requests it works on at once.
    pub concurrency: u32,
    /// How many may wait; one more is answered 503.
    pub queue: u32,
    /// What it keeps: so many objects, each answered again in this time.
    pub cache: Option<(u32, Service)>,
}

/// A distribution of service times.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Service {
    /// Always the same.
    Constant(Duration),
    /// With this mean.
    Exponential(Duration),
    /// Median and the deviation of the logarithm.
    LogNormal(Duration, f64),
    /// The least time and the exponent.
    Pareto(Duration, f64),
}

/// Somebody who means no good.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Attack {
    /// What they do.
    pub what: Assault,
    /// When they begin.
    pub from: Duration,
    /// When they end.
    pub until: Duration,
    /// Requests, or connections, a second.
    pub rate: f64,
}

/// What an attacker does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Assault {
    /// Sends requests that two programs could read in two ways.
    Ambiguous,
    /// Sends heads of a megabyte.
    LargeHeads,
    /// Opens connections and sends a head byte by byte, without end.
    SlowHeads,
    /// Opens connections and says nothing.
    Connections,
}

impl Assault {
    /// All of them, as scenarios name them.
    pub const ALL: [(&str, Assault); 4] = [
        ("ambiguous", Assault::Ambiguous),
        ("large-heads", Assault::LargeHeads),
        ("slow-heads", Assault::SlowHeads),
        ("connections", Assault::Connections),
    ];

    /// As scenarios name it.
    pub fn name(self) -> &'static str {
        Assault::ALL.iter().find(|(_, one)| *one == self).map_or("", |(name, _)| name)
    }

    /// Whether each of its requests must be refused; of others it counts how long they hold on.
    pub fn is_refused(self) -> bool {
        matches!(self, Assault::Ambiguous | Assault::LargeHeads)
    }
}

impl Scenario {
    /// Takes the requests of the log that its load is to be as; `trace` reads it, its name being from the
    /// scenario's directory. Without such a load nothing happens.
    ///
    /// # Errors
    /// What `trace` says, or that the log is too short.
    pub fn attach(
        &mut self,
        trace: impl FnOnce(&Path) -> Result<sim::Trace, String>,
    ) -> Result<(), String> {
        let Some(log) = &self.load.log else { return Ok(()) };
        let trace = trace(log)?;
        let lasts = trace.requests.last().map_or(0, |last| last.at_ns);
        if lasts < (self.lasts.as_nanos() * 9 / 10) as u64 {
            return Err(format!(
                "{}: its last request comes after {:.1} s, and the scenario lasts {:?}: let it last as \
                 long as the log",
                log.display(),
                lasts as f64 / 1e9,
                self.lasts
            ));
        }
        self.load.arrivals = sim::Arrivals::Trace(Arc::new(trace));
        Ok(())
    }

    /// The same so many times as fast: all times are divided, all rates multiplied. What the pool and
    /// the listener are configured with stays.
    #[must_use]
    pub fn faster(mut self, times: f64) -> Scenario {
        if times == 1.0 {
            return self;
        }
        let shorter = |time: Duration| time.div_f64(times);
        let service = |service: Service| match service {
            Service::Constant(time) => Service::Constant(shorter(time)),
            Service::Exponential(mean) => Service::Exponential(shorter(mean)),
            Service::LogNormal(median, sigma) => Service::LogNormal(shorter(median), sigma),
            Service::Pareto(least, alpha) => Service::Pareto(shorter(least), alpha),
        };
        (self.lasts, self.warm_up) = (shorter(self.lasts), shorter(self.warm_up));
        self.load.faster(times);
        self.balancers.every = shorter(self.balancers.every);
        for endpoint in &mut self.endpoints {
            endpoint.service = service(endpoint.service);
            endpoint.cache = endpoint.cache.map(|(objects, hit)| (objects, service(hit)));
        }
        for fault in &mut self.faults {
            (fault.from, fault.until) = (shorter(fault.from), shorter(fault.until));
            match &mut fault.trouble {
                sim::Trouble::Flapping { down: first, up: second }
                | sim::Trouble::Deploy { drain: first, away: second } => {
                    (*first, *second) = (shorter(*first), shorter(*second));
                }
                _ => {}
            }
        }
        for herd in &mut self.herds {
            (herd.at, herd.within) = (shorter(herd.at), shorter(herd.within));
        }
        for attack in &mut self.attacks {
            (attack.from, attack.until) = (shorter(attack.from), shorter(attack.until));
            attack.rate *= times;
        }
        self.trouble = self.trouble.map(|(from, until)| (shorter(from), shorter(until)));
        self.assertions = self.assertions.into_iter().map(|one| one.faster(times)).collect();
        self
    }
}
