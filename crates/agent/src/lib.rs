//! How loaded is an endpoint, by its own account? Measured there, served, and asked for.
//!
//! `subak agent` runs beside a service. A [`Sampler`] reads what the kernel counts ([`measure`]) and
//! an [`Agent`] serves the result in two forms: as a [`Report`] in JSON over HTTP, to whoever shows
//! the [`Token`], and as the one line of HAProxy's agent-check. The balancer's side is [`fetch`];
//! what becomes of the reports there is the weigher `resource` of `subak-balance`.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use std::time::Duration;
//! use subak_agent::{Token, fetch};
//!
//! let token = Token::new("a secret of 16 letters or more")?;
//! let report = fetch("10.0.0.2:9180".parse()?, &token, Duration::from_secs(1)).await?;
//! println!("{:?} of its CPU is in use", report.used.cpu);
//! # Ok(())
//! # }
//! ```

#![forbid(unsafe_code)]

mod agent_check;
mod fetch;
mod http;
mod listen;
pub mod measure;
mod report;
mod serve;
mod token;

pub use fetch::{AgentError, MAX_REPORT_BYTES, fetch};
pub use measure::Sampler;
pub use report::{REPORT_PATH, Report, ReportError, VERSION, parse_report};
pub use serve::{Agent, Http, Options, StartError};
pub use token::{Token, TokenError};
