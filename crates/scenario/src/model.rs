//! A scenario, as it was understood. All times are from its beginning.

use std::time::Duration;

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
    /// What goes wrong.
    pub faults: Vec<Fault>,
    /// Bursts beside the load.
    pub herds: Vec<Herd>,
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
    /// How much.
    pub shape: Shape,
    /// Who asks.
    pub clients: Keys,
    /// What is asked for; none: everybody asks for the same.
    pub objects: Option<Keys>,
    /// How long a client waits.
    pub patience: Duration,
}

/// How much is asked.
#[derive(Clone, PartialEq, Debug)]
pub enum Shape {
    /// Requests a second, whatever becomes of those before.
    Rate {
        /// Over time.
        stages: Vec<Stage>,
        /// Evenly spaced instead of by chance (Poisson).
        even: bool,
    },
    /// Users who wait for each answer.
    Users {
        /// Over time.
        stages: Vec<Stage>,
        /// From an answer to the next request.
        think: Duration,
    },
}

impl Shape {
    /// Its stages.
    pub fn stages(&self) -> &[Stage] {
        match self {
            Shape::Rate { stages, .. } | Shape::Users { stages, .. } => stages,
        }
    }
}

/// A stretch of time on which the load goes on a straight line to a value; without time a jump.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Stage {
    /// Requests a second, or users, at its end.
    pub to: f64,
    /// How long.
    pub over: Duration,
}

/// So many different ones, some of them oftener than others.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Keys {
    /// At least 1.
    pub count: u32,
    /// The n-th comes in proportion to `n^−zipf`; 0: all alike.
    pub zipf: f64,
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

/// Something that is wrong with some endpoints for some time.
#[derive(Clone, PartialEq, Debug)]
pub struct Fault {
    /// By their places.
    pub endpoints: Vec<usize>,
    /// When it begins.
    pub from: Duration,
    /// When it is over.
    pub until: Duration,
    /// What it is.
    pub trouble: Trouble,
}

/// What can be wrong with an endpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Trouble {
    /// So many thousandths of the time.
    Slow(u32),
    /// Refuses connections; what it had is reset.
    Dead,
    /// Takes everything, answers nothing.
    Silent,
    /// Dead and alive by turns: for how long each.
    Flapping(Duration, Duration),
    /// So many thousandths of its answers break off.
    Lossy(u32),
    /// Answers so many thousandths with 500 at once.
    Failing(u32),
}

/// A burst.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Herd {
    /// When.
    pub at: Duration,
    /// How many.
    pub requests: u32,
    /// Within which time.
    pub within: Duration,
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
        for time in [&mut self.lasts, &mut self.warm_up, &mut self.load.patience] {
            *time = shorter(*time);
        }
        match &mut self.load.shape {
            Shape::Rate { stages, .. } => {
                for stage in stages {
                    *stage = Stage { to: stage.to * times, over: shorter(stage.over) };
                }
            }
            Shape::Users { stages, think } => {
                *think = shorter(*think);
                stages.iter_mut().for_each(|stage| stage.over = shorter(stage.over));
            }
        }
        for endpoint in &mut self.endpoints {
            endpoint.service = service(endpoint.service);
            endpoint.cache = endpoint.cache.map(|(objects, hit)| (objects, service(hit)));
        }
        for fault in &mut self.faults {
            (fault.from, fault.until) = (shorter(fault.from), shorter(fault.until));
            if let Trouble::Flapping(down, up) = &mut fault.trouble {
                (*down, *up) = (shorter(*down), shorter(*up));
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
