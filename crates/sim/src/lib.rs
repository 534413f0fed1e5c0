//! What would this pool do with this traffic? A discrete-event simulation that answers with the very
//! [`Pool`](subak_pool::Pool), balancers and health checks that serve live requests.
//!
//! Time is virtual: the clock jumps from one event to the next. Everything follows from the
//! [`Scenario`] and its seed, so a run can be repeated bit for bit on any machine: there are no sockets,
//! no threads, no clock, and no floating point but of operations that every machine does alike.
//!
//! ```
//! use std::time::Duration;
//! use subak_balance::catalogue;
//! use subak_sim::{Arrivals, EndpointModel, Scenario, Service, run};
//!
//! let algorithm = catalogue::find("least_connections").unwrap().algorithm();
//! let pool = Scenario::pool_of(algorithm, &[1, 1, 1]);
//! let model = EndpointModel::new(4, Service::Exponential(Duration::from_millis(20)));
//! let arrivals = Arrivals::poisson(300.0);
//! let outcome = run(&Scenario { requests: 10_000, ..Scenario::new(pool, vec![model; 3], arrivals) });
//! assert_eq!(outcome.answered, 10_000);
//! println!("p95 {:?}, hits {:?}", outcome.latency.quantile(950), outcome.hits());
//! ```
//!
//! | file | is |
//! |---|---|
//! | `scenario.rs`, `arrivals.rs`, `keys.rs`, `trouble.rs` | what is simulated |
//! | `outcome.rs`, `histogram.rs`, `event.rs` | what came out |
//! | `arriving.rs`, `source.rs` | who asks for what, and when |
//! | `engine.rs` | the clock; `engine/flight.rs` a request's way, `engine/control.rs` probes and faults |
//! | `front.rs`, `server.rs` | a balancer, and an endpoint at work |

#![forbid(unsafe_code)]

mod agenda;
mod arrivals;
mod arriving;
mod cache;
mod condition;
mod draw;
mod engine;
mod event;
mod front;
mod histogram;
mod keys;
mod outcome;
mod scenario;
mod server;
mod slab;
mod source;
mod trouble;

pub use arrivals::{Arrivals, Herd, Pace, Rate, Stage, Trace, TracedRequest};
pub use arriving::{Asked, arrivals};
pub use condition::Condition;
pub use engine::{run, run_with};
pub use event::{Event, Observer, Step, Why};
pub use front::client_address;
pub use histogram::{Latency, Steps};
pub use keys::Keys;
pub use outcome::{EndpointOutcome, Failures, Moment, Outcome, PoolEvent, jain};
pub use scenario::{
    Balancers, Cache, EndpointModel, Exchange, Patience, Retry, Scenario, Sees, Service,
};
pub use trouble::{Fault, Trouble};
