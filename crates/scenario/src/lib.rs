//! Experiments as TOML files: a load, a pool with its endpoints, what goes wrong, and what is
//! asserted. The vocabulary is described in `scenarios/README.md`.
//!
//! ```
//! let builtin = subak_scenario::builtin::find("slow-endpoint").unwrap();
//! let read = subak_scenario::read(builtin.text, "slow-endpoint".as_ref());
//! let scenario = read.scenario.expect("no errors");
//! println!("{}: {} algorithms", scenario.title, scenario.algorithms.len());
//! ```
//!
//! | file | is |
//! |---|---|
//! | `model.rs` | a scenario, as it was understood |
//! | `reading.rs`, `words.rs` | from TOML, every error with its place |
//! | `assertion.rs` | what a scenario asserts, and whether it is so |
//! | `configuration.rs` | the configuration that Subak runs with under it |
//! | `simulate.rs` | a scenario under virtual time |
//! | `real.rs`, `real/` | a scenario on real processes, and what a machine adds to it |
//! | `measured.rs`, `spread.rs` | what came out of one run, and of several |
//! | `told.rs`, `compare.rs`, `reality.rs` | the reports |

#![forbid(unsafe_code)]

mod assertion;
pub mod builtin;
mod compare;
mod configuration;
mod measured;
mod model;
mod reading;
mod real;
mod reality;
mod simulate;
mod spread;
mod told;
mod words;

pub use assertion::{Assertion, Metric};
pub use compare::{Side, compare};
pub use measured::{Attacked, Measured, Moment, On, Outcome, Trial};
pub use model::{Algorithm, Assault, Attack, Endpoint, Load, Scenario, Service};
pub use reading::{Read, read};
pub use real::{Calibration, Ground, NotRun, calibrate, measure};
pub use simulate::{Unfit, simulate};
pub use spread::Spread;
pub use told::report;
