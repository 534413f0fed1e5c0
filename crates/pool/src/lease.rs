//! One accounted in-flight use of an endpoint.

use std::sync::Arc;

use subak_base::Tick;

use crate::endpoint::Endpoint;
use crate::pool::Pool;

/// How a dispatch ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// The endpoint answered to the end.
    Completed,
    /// The endpoint refused, timed out, or broke its answer off; it is left out for a while.
    Unreachable,
    /// The endpoint accepted and then failed; nothing is held against further requests.
    Failed,
    /// Nothing is known about the endpoint: the client left, or Subak gave up for reasons of its own.
    Cancelled,
}

/// A request slot of one endpoint, from dispatch to settlement. Settles exactly once; dropping it
/// without a word counts as cancelled.
#[derive(Debug)]
pub struct Lease<'p> {
    pool: &'p Pool,
    index: usize,
}

impl<'p> Lease<'p> {
    pub(crate) fn new(pool: &'p Pool, index: usize) -> Lease<'p> {
        Lease { pool, index }
    }

    /// The endpoint's place in its pool.
    pub fn index(&self) -> usize {
        self.index
    }

    /// The endpoint.
    pub fn endpoint(&self) -> &'p Arc<Endpoint> {
        &self.pool.member(self.index).endpoint
    }

    /// How many connections the endpoint may have.
    pub fn max_connections(&self) -> Option<u32> {
        self.pool.member(self.index).max_connections
    }

    /// Gives the slot back and says how it went.
    pub fn settle(self, outcome: Outcome, now: Tick) {
        self.pool.observe(self.index, outcome, now);
    }
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        self.endpoint().settle();
        self.pool.queue().notify();
    }
}
