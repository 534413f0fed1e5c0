//! What would this algorithm do with this traffic? A discrete-event simulation that answers with
//! the very [`Balancer`](subak_balance::Balancer) that serves live requests.
//!
//! Time is virtual: the clock jumps from one event to the next. Everything follows from the
//! scenario and its seed, so a run can be repeated bit for bit on any machine: there are no sockets,
//! no threads, no clock, and no floating point in what decides the course of a run.

#![forbid(unsafe_code)]

mod chance;
mod engine;
mod scenario;

pub use engine::{Event, Step, Summary, run};
pub use scenario::{EndpointModel, Scenario, Service};
