//! Endpoints and their shared state: who may take a request, who does, and for how long.
//!
//! A [`Pool`] belongs to one snapshot and does not change, but for what is observed while it serves:
//! the counters of its [`Endpoint`]s, their health, what people set on them, and, derived from all
//! that, the compiled balancer over those that are eligible now. A reload makes a new pool that takes
//! all of it over by identity: see [`Pool::build`].
//!
//! [`Pool::acquire`] picks and accounts in one step and gives a [`Lease`], which settles exactly once:
//! the hot path. The control side calls [`Pool::tick`], asks the questions that are [due](Pool::due),
//! and brings the answers; see `tick.rs`.
//!
//! Nothing here reads a clock, draws randomness or waits by itself: `now` and `random` are passed in,
//! waiting is a [`Waiter`] that is polled. So the simulator runs this code as it is.

#![forbid(unsafe_code)]

mod acquire;
mod back_off;
mod blame;
mod circuit;
mod compiled;
mod control;
mod eligibility;
mod endpoint;
mod event;
mod explain;
mod latencies;
mod learnt;
mod lease;
mod packets;
mod pick_log;
mod pool;
mod retry_budget;
mod shadow;
mod spec;
mod standing;
mod status;
mod stick_table;
mod tally;
mod tick;
mod wait;

pub use acquire::{Acquire, Refusal};
pub use circuit::Passage;
pub use endpoint::{ConnectionSlot, Endpoint, EndpointIds};
pub use event::Event;
pub use explain::{Candidate, Exclusion, Home, PickTrace};
pub use latencies::{Latencies, Quantiles};
pub use lease::{Answered, Lease, Outcome};
pub use pick_log::{Ending, Evidence, PickRecord, PickedBy, Read, ReadKind, RecordedKey};
pub use pool::Pool;
pub use retry_budget::RetryBudgetStatus;
pub use shadow::{NO_FORECAST, ShadowKeys, ShadowStatus, ShadowTrace, imbalance};
pub use spec::{BackOffSpec, EndpointSpec, PoolSpec, RetrySpec, ShadowSpec, StickTableSpec};
pub use standing::Question;
pub use status::{EndpointStatus, PoolStatus, WeightStatus};
pub use subak_health::Client;
pub use tally::{Answers, Tally};
pub use tick::{Due, UnknownEndpoint};
pub use wait::{WaitQueue, Waiter};
