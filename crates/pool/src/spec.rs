//! What a pool is built from.

use std::time::Duration;

use subak_balance::Algorithm;
use subak_base::{Address, Weight};

/// A pool as it was configured.
#[derive(Clone, Debug)]
pub struct PoolSpec {
    /// Unique among the pools.
    pub name: String,
    /// Who gets the next request.
    pub algorithm: Algorithm,
    /// In configured order; addresses are unique.
    pub endpoints: Vec<EndpointSpec>,
    /// Requests that may wait while every endpoint is at its cap.
    pub queue_length: usize,
    /// How many retries there may be.
    pub retry: RetrySpec,
    /// How long an endpoint is left out that refused or timed out.
    pub back_off: BackOffSpec,
}

/// An endpoint as it was configured.
#[derive(Clone, Debug)]
pub struct EndpointSpec {
    /// As it was written.
    pub name: String,
    /// Where it is.
    pub address: Address,
    /// Its share.
    pub weight: Weight,
    /// Requests under way at once in the whole process.
    pub max_in_flight: Option<u32>,
    /// Connections at once in the whole process, idle ones included.
    pub max_connections: Option<u32>,
}

impl EndpointSpec {
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
