//! What Subak counts of its own work, and how it is shown.
//!
//! Counting happens on the data path, so it must cost next to nothing: every worker has counters of
//! its own, on cache lines of their own ([`Shards`]), and adds to them by relaxed atomics that nobody
//! else writes. Handles ([`ListenerMetrics`], [`PoolMetrics`]) are resolved when a snapshot is built;
//! nothing is looked up by name while a request is served. Who reads adds the shards up.
//!
//! [`families`] is the one list of everything that is shown: name, kind, help and labels. The text for
//! Prometheus ([`Exposition`]) can only be written by it, and docs/metrics.md is tested against it.
//!
//! [`Problems`] is the one list of what is wrong now.
//!
//! What endpoints count is theirs (crate `pool`) and is read when somebody asks.

#![forbid(unsafe_code)]

mod cause;
mod exposition;
pub mod families;
mod flood;
mod histogram;
mod lately;
mod listener;
mod outcome;
mod pool;
mod problems;
mod registry;
mod route;
mod shards;

pub use cause::{Blame, Cause};
pub use exposition::{Dialect, Exposition, Samples};
pub use families::{Family, Kind};
pub use flood::Flood;
pub use histogram::{BOUNDS, Counts, Histogram};
pub use lately::Lately;
pub use listener::{ListenerMetrics, ListenerTotals, Turned};
pub use outcome::{OUTCOMES, Outcome, PerOutcome};
pub use pool::{CALL_STATUSES, PoolMetrics, PoolTotals};
pub use problems::{Problem, ProblemKind, Problems};
pub use registry::Registry;
pub use route::RouteMetrics;
pub use shards::Shards;
