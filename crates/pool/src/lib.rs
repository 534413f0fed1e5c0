//! Endpoints and their shared state: who may take a request, who does, and for how long.
//!
//! A [`Pool`] belongs to one snapshot and does not change, but for two things that are observed while
//! it serves: the cells of its [`Endpoint`]s (in flight, connections, hits, back-off) and, derived
//! from them, the compiled balancer over those that are eligible now. A reload makes a new pool that
//! takes the endpoints' state over by identity: see [`Pool::build`].
//!
//! [`Pool::acquire`] picks and accounts in one step and gives a [`Lease`], which settles exactly once.
//! Nothing here reads a clock, draws randomness or waits by itself: `now` and `random` are passed in,
//! waiting is a [`Waiter`] that is polled. So the simulator runs this code as it is.

#![forbid(unsafe_code)]

mod back_off;
mod endpoint;
mod lease;
mod pool;
mod retry_budget;
mod spec;
mod wait;

pub use endpoint::{ConnectionSlot, Endpoint, EndpointIds};
pub use lease::{Lease, Outcome};
pub use pool::{Acquire, Pool, Refusal};
pub use spec::{BackOffSpec, EndpointSpec, PoolSpec, RetrySpec};
pub use wait::{WaitQueue, Waiter};
