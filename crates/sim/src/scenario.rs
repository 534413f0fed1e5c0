//! What is simulated: a pool as it is configured, what its endpoints can do, the traffic, and what
//! goes wrong.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use subak_balance::Algorithm;
use subak_base::{Address, Weight};
use subak_pool::{EndpointSpec, PoolSpec};

use crate::arrivals::{Arrivals, Herd};
use crate::histogram::Steps;
use crate::keys::Keys;
use crate::trouble::Fault;

/// One experiment. Runs with one seed and the same traffic see the same arrivals, the same keys and
/// the same amounts of work, whatever the algorithm.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// The pool, with all its settings in force: caps, line, back-off, probes, ejection, slow start,
    /// retry budget. Its pick log is not kept.
    pub pool: PoolSpec,
    /// How each endpoint of the pool works; as many as the pool has endpoints.
    pub models: Vec<EndpointModel>,
    /// When requests come.
    pub arrivals: Arrivals,
    /// Bursts beside these.
    pub herds: Vec<Herd>,
    /// Who asks, from the addresses of [`crate::client_address`]. A trace brings its own clients.
    pub clients: Keys,
    /// What is asked for: the key of algorithms that look at anything but the client's address, and
    /// what caches hold: the n-th is the key `/o/n`, from 0. None: every client asks for a thing of its
    /// own. A trace brings its own.
    pub objects: Option<Keys>,
    /// How many balancers there are, and what they know of the load.
    pub balancers: Balancers,
    /// How long is waited, and for what.
    pub patience: Patience,
    /// What is tried again at another endpoint.
    pub retry: Retry,
    /// What goes wrong.
    pub faults: Vec<Fault>,
    /// Nobody arrives after so many requests.
    pub requests: u64,
    /// Nobody arrives after so long.
    pub duration: Duration,
    /// Requests that arrive earlier are not measured: the pool starts empty.
    pub warm_up: Duration,
    /// The length of one step of the outcome's series; none: no series.
    pub series: Option<Duration>,
    /// Of what the exchange of one request weighs, for algorithms that count it.
    pub exchange: Exchange,
    /// Everything that is drawn follows from it.
    pub seed: u64,
}

/// More is not said of a run's end.
const FOREVER: Duration = Duration::from_secs(100 * 365 * 86_400);

impl Scenario {
    /// A scenario with everything else at its simplest: one balancer that sees its own load, unlike
    /// clients, no time limits, no retries, no faults, no end.
    pub fn new(pool: PoolSpec, models: Vec<EndpointModel>, arrivals: Arrivals) -> Scenario {
        Scenario {
            pool,
            models,
            arrivals,
            herds: Vec::new(),
            clients: Keys::Uniform { count: u32::MAX },
            objects: None,
            balancers: Balancers::default(),
            patience: Patience::default(),
            retry: Retry::default(),
            faults: Vec::new(),
            requests: u64::MAX,
            duration: FOREVER,
            warm_up: Duration::ZERO,
            series: None,
            exchange: Exchange::default(),
            seed: 0,
        }
    }

    /// A pool of endpoints e0, e1, … of these weights, with everything else at its default.
    pub fn pool_of(algorithm: Algorithm, weights: &[u16]) -> PoolSpec {
        let endpoint = |(index, weight): (usize, &u16)| {
            let host = Ipv4Addr::from(0x0A00_0001 + index as u32);
            EndpointSpec {
                weight: Weight(*weight),
                ..EndpointSpec::new(
                    format!("e{index}"),
                    Address::inet(SocketAddr::from((host, 80))),
                )
            }
        };
        let endpoints = weights.iter().enumerate().map(endpoint).collect();
        PoolSpec::new("simulated", algorithm, endpoints)
    }
}

/// How one endpoint works: requests wait in one queue, first come, first served.
#[derive(Clone, PartialEq, Debug)]
pub struct EndpointModel {
    /// How many requests it works on at once; at least 1.
    pub concurrency: u32,
    /// How many may wait for that; one more is answered 503 at once.
    pub queue: u32,
    /// How long it works on one.
    pub service: Service,
    /// How much longer a work occupies the endpoint than it was to: how late its timers are.
    pub late: Duration,
    /// What every answer takes beside, without occupying the endpoint: the network, the kernel, the
    /// balancer. As traced is none.
    pub delay: Service,
    /// What it has served lately and gives again quickly.
    pub cache: Option<Cache>,
    /// Whether it leaves out, when its turn comes, what nobody waits for any more. Most servers find
    /// out by answering.
    pub drops_abandoned: bool,
    /// How long it takes to answer a probe.
    pub probe: Duration,
}

impl EndpointModel {
    /// An endpoint that works on so many at once, with a queue that has no end.
    pub fn new(concurrency: u32, service: Service) -> EndpointModel {
        EndpointModel {
            concurrency,
            queue: u32::MAX,
            service,
            late: Duration::ZERO,
            delay: Service::Constant(Duration::ZERO),
            cache: None,
            drops_abandoned: false,
            probe: Duration::from_millis(1),
        }
    }
}

/// What an endpoint keeps of the objects it has served: the latest ones.
#[derive(Clone, PartialEq, Debug)]
pub struct Cache {
    /// So many; at least 1.
    pub objects: u32,
    /// How long it works on one that it has.
    pub hit: Service,
}

/// A distribution of service times.
#[derive(Clone, PartialEq, Debug)]
pub enum Service {
    /// Always the same.
    Constant(Duration),
    /// Exponential with this mean.
    Exponential(Duration),
    /// Log-normal: the logarithm is normal with deviation `sigma`. The mean is
    /// `median · e^(sigma² / 2)`.
    LogNormal {
        /// Half take longer.
        median: Duration,
        /// Above 0.
        sigma: f64,
    },
    /// Pareto: longer than t with probability `(least / t)^alpha`. The mean is
    /// `least · alpha / (alpha − 1)`, and there is none unless `alpha` is above 1.
    Pareto {
        /// None takes less.
        least: Duration,
        /// Above 0; the smaller, the heavier the tail.
        alpha: f64,
    },
    /// As was counted.
    Histogram(Arc<Steps>),
    /// As the request of the trace says, in thousandths of it.
    AsTraced {
        /// 1,000 for just so long.
        per_mille: u32,
    },
}

/// The balancers in front of the endpoints. Each is a process of its own, with its own pool; clients
/// are sent to them by turns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Balancers {
    /// At least 1.
    pub count: u32,
    /// Whose requests in flight each of them sees.
    pub sees: Sees,
    /// How old what it sees may get: the load is looked at anew so often. Zero: with every request.
    pub every: Duration,
}

impl Default for Balancers {
    fn default() -> Balancers {
        Balancers { count: 1, sees: Sees::Own, every: Duration::ZERO }
    }
}

/// Whose requests in flight a balancer sees.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sees {
    /// Those that it has sent itself.
    Own,
    /// Those of all balancers, as if the endpoints told.
    All,
}

/// How long is waited. None: for ever; an exchange that hangs then is cut off at the end of the run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Patience {
    /// In line for an endpoint below its cap.
    pub queue: Option<Duration>,
    /// For the answer of one endpoint.
    pub answer: Option<Duration>,
    /// Of the client, for everything. Then it leaves.
    pub client: Option<Duration>,
}

/// What is tried again. A refused connection always is, once with each endpoint, as it costs nothing;
/// the rest within `attempts` and the pool's budget.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Retry {
    /// Attempts of one request at the most.
    pub attempts: u32,
    /// After a connection that broke.
    pub on_reset: bool,
    /// After no answer in time.
    pub on_timeout: bool,
    /// After a 5xx.
    pub on_error: bool,
}

impl Default for Retry {
    fn default() -> Retry {
        Retry { attempts: 1, on_reset: true, on_timeout: true, on_error: false }
    }
}

/// What the exchange of one request weighs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Exchange {
    /// Packets, both ways.
    pub packets: u32,
    /// Bytes, both ways. A trace brings its own.
    pub bytes: u32,
}

impl Default for Exchange {
    fn default() -> Exchange {
        Exchange { packets: 6, bytes: 4096 }
    }
}
