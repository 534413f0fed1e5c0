//! Asks endpoints how they are: by a connection, by an HTTP request, by gRPC's health check, or through
//! their agent.
//!
//! `health` decides when to ask and what an answer means, and does no input or output; here is the
//! other half. [`check`] makes one probe and says what came of it in the closed list of
//! [`ProbeResult`](subak_health::ProbeResult); [`agent_line`] asks an agent. [`Prober`] runs many of
//! both at once on the runtime of whoever calls it, within a bound.
//!
//! A probe is one socket and no name look-up. Cost on loopback, both ends' kernel work included: see
//! docs/health.md.
//!
//! ```no_run
//! use std::time::Duration;
//! use subak_base::Address;
//! use subak_health::{Expect, ProbeResult};
//! use subak_message::Method;
//! use subak_probe::{Check, HttpCheck, Way, check};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let endpoint = Address::inet("10.0.0.2:8080".parse()?);
//! let what = Check::Http(HttpCheck::new(Method::Get, "/healthz", None, Expect::default())?);
//! let result = check(&endpoint, &what, &Way::default(), Duration::from_secs(1)).await;
//! assert_eq!(result, ProbeResult::Passed);
//! # Ok(())
//! # }
//! ```

#![forbid(unsafe_code)]

mod agent;
mod answer;
mod check;
mod connection;
mod grpc;
mod http2;
mod miss;
mod prober;
mod request;
mod way;

pub use agent::{AgentLine, agent_line};
pub use check::{Check, check, with_port};
pub use grpc::{GrpcCheck, SERVICE_MAX};
pub use miss::Miss;
pub use prober::Prober;
pub use request::HttpCheck;
pub use way::{Spoken, Way};
