//! What is simulated.

use std::time::Duration;

use subak_balance::{Algorithm, Endpoints};

/// A pool, what its endpoints can do, and the traffic it gets.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// The algorithm and its options.
    pub algorithm: Algorithm,
    /// The pool's list.
    pub endpoints: Endpoints,
    /// How each endpoint of the list works; as many as there are endpoints.
    pub models: Vec<EndpointModel>,
    /// Mean time between two arrivals. Arrivals are Poisson.
    pub gap: Duration,
    /// How many requests arrive.
    pub requests: u64,
    /// How many of the first ones do not count in the summary's times: the pool starts empty.
    pub warm_up: u64,
    /// How many different clients there are, all equally busy.
    pub clients: u32,
    /// Runs with one seed and the same traffic see the same arrivals and the same amounts of work,
    /// whatever the algorithm.
    pub seed: u64,
}

/// How one endpoint works: requests wait in one queue, first come, first served.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EndpointModel {
    /// How many requests it works on at once; at least 1.
    pub concurrency: u32,
    /// How long it works on one.
    pub service: Service,
}

/// A distribution of service times.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Service {
    /// Always the same.
    Constant(Duration),
    /// Exponential with this mean.
    Exponential(Duration),
}
