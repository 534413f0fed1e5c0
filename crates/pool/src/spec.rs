//! What a pool is built from.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use subak_balance::Algorithm;
use subak_base::{Address, Weight};
use subak_health::{Admin, AgentSpec, EjectionSpec, OnAllDown, ProbeSpec, SlowStart};
use subak_limits::CircuitSpec;

/// A pool as it was configured. Equal ones make equal pools: one that is in force need not be built
/// again.
#[derive(Clone, PartialEq, Debug)]
pub struct PoolSpec {
    /// Unique among the pools.
    pub name: String,
    /// Who gets the next request.
    pub algorithm: Algorithm,
    /// Who decides beside that, and sends nothing. No two are equal.
    pub shadows: Vec<ShadowSpec>,
    /// In configured order; addresses are unique.
    pub endpoints: Vec<EndpointSpec>,
    /// Requests that may wait while every endpoint is at its cap.
    pub queue_length: usize,
    /// How many retries there may be.
    pub retry: RetrySpec,
    /// How long an endpoint is left out that refused or timed out.
    pub back_off: BackOffSpec,
    /// When the whole pool is given up for a while; none: never.
    pub circuit: Option<CircuitSpec>,
    /// When endpoints are probed; none: never.
    pub probe: Option<ProbeSpec>,
    /// When agents are asked; none: never.
    pub agent: Option<AgentSpec>,
    /// When traffic shows that an endpoint is unfit; none: it is not looked at.
    pub eject: Option<EjectionSpec>,
    /// How an endpoint that comes back grows into its share; none: it has it at once.
    pub slow_start: Option<SlowStart>,
    /// Who takes work when nobody is ready.
    pub on_all_down: OnAllDown,
    /// Where it is kept which client belongs to which endpoint; none: nowhere.
    pub stick_table: Option<StickTableSpec>,
    /// How many picks are kept to be looked at and replayed; none: none.
    pub pick_log: Option<NonZeroUsize>,
}

impl PoolSpec {
    /// A pool with everything else at its default: no checks, no slow start, nothing kept.
    pub fn new(
        name: impl Into<String>,
        algorithm: Algorithm,
        endpoints: Vec<EndpointSpec>,
    ) -> PoolSpec {
        PoolSpec {
            name: name.into(),
            algorithm,
            shadows: Vec::new(),
            endpoints,
            queue_length: 1000,
            retry: RetrySpec { budget_per_mille: 200, min_per_second: 10 },
            back_off: BackOffSpec { initial: Duration::from_secs(1), max: Duration::from_secs(30) },
            circuit: None,
            probe: None,
            agent: None,
            eject: None,
            slow_start: None,
            on_all_down: OnAllDown::default(),
            stick_table: None,
            pick_log: None,
        }
    }
}

/// An algorithm that decides beside a pool's own.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ShadowSpec {
    /// What it is called, here and in metrics: `peak_ewma`, `power_of_two choices=3`.
    pub name: Arc<str>,
    /// The algorithm.
    pub algorithm: Algorithm,
}

/// An endpoint as it was configured.
#[derive(Clone, PartialEq, Debug)]
pub struct EndpointSpec {
    /// As it was written.
    pub name: String,
    /// Where it is.
    pub address: Address,
    /// The name it was resolved from; none: it was given itself.
    pub origin: Option<Arc<str>>,
    /// The Host that asks for it by name; none: its address does.
    pub host: Option<Arc<str>>,
    /// Its share.
    pub weight: Weight,
    /// Requests under way at once in the whole process.
    pub max_in_flight: Option<u32>,
    /// Connections at once in the whole process, idle ones included.
    pub max_connections: Option<u32>,
    /// Whether it takes work only while no other is ready.
    pub backup: bool,
    /// What the file wants of it.
    pub admin: Admin,
}

impl EndpointSpec {
    /// An endpoint of weight 1 without caps.
    pub fn new(name: impl Into<String>, address: Address) -> EndpointSpec {
        EndpointSpec {
            name: name.into(),
            address,
            origin: None,
            host: None,
            weight: Weight::ONE,
            max_in_flight: None,
            max_connections: None,
            backup: false,
            admin: Admin::Ready,
        }
    }

    /// Protocol and address: what makes it the same endpoint after a reload.
    pub fn identity(&self) -> String {
        format!("http://{}", self.address)
    }
}

/// How many retries there may be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RetrySpec {
    /// Retries for each thousand requests.
    pub budget_per_mille: u32,
    /// Retries a second that are always allowed.
    pub min_per_second: u32,
}

/// How long an endpoint is left out: `initial`, doubled for each failure in a row, at most `max`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BackOffSpec {
    /// After the first failure.
    pub initial: Duration,
    /// At the most.
    pub max: Duration,
}

/// How long and how many clients are remembered with their endpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StickTableSpec {
    /// A client is forgotten after so long without a request.
    pub expire: Duration,
    /// Clients remembered at the most; whoever asked longest ago makes room.
    pub entries: usize,
}
