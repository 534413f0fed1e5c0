//! Is an endpoint fit for work, and why not?
//!
//! Four layers say something about an endpoint, each a state machine of its own:
//!
//! - **Probe** ([`ProbeState`]): Subak asks the endpoint itself, every few seconds. What an answer must
//!   be is an [`Expect`].
//! - **Ejection** ([`Ejections`]): what the traffic showed: failures in a row, a share of failures, an
//!   endpoint that is much slower than the others of its pool.
//! - **Agent check** ([`Agent`]): a small program on the endpoint says a line ([`AgentReply`]).
//! - **Admin** ([`Admin`]): what people (and the agent) want: ready, drain, maintenance.
//!
//! [`Availability`] puts them together to one [`Verdict`] and tells every [`Transition`] with its
//! reason. [`select`] decides over a whole pool who takes new work: primaries, backups, or what
//! [`OnAllDown`] says. [`SlowStart`] is the share of an endpoint that has just come back.
//!
//! Everything here is pure: no clock, no randomness, no input or output. `now` and random words are
//! passed in, so that the simulator and the tests run the same code under a clock of their own. What
//! asks, connects and waits is elsewhere. docs/health.md says the same in an operator's words.
//!
//! ```
//! use subak_base::Tick;
//! use subak_health::{Health, ProbeFailure, ProbeResult, ProbeSpec, ProbeState};
//!
//! let spec = ProbeSpec::default();
//! let mut state = ProbeState::new(&spec, Tick(0), 0);
//! assert_eq!(state.health(), Health::AssumedUp);
//!
//! let now = state.next_due();
//! let run = state.started(&spec, now);
//! let refused = ProbeResult::Failed(ProbeFailure::Refused);
//! let transition = state.finished(&spec, run, refused, now, 0).unwrap();
//! assert_eq!(transition.to_string(), "assumed up to down: 1 probe failed: connection refused");
//! ```

#![forbid(unsafe_code)]

mod agent;
mod agent_check;
mod availability;
mod ejection;
mod ejections;
mod expect;
mod probe;
mod probe_result;
mod schedule;
mod slow_start;
mod status_set;
mod suspicion;
mod tiers;
mod transition;
mod verdict;
mod window;

pub use agent::{Agent, AgentSpec};
pub use agent_check::{AgentReply, AgentWarning, LINE_MAX, Operational, line_is_complete};
pub use availability::Availability;
pub use ejection::{EjectionReason, EjectionSpec, LatencySpec, Standing};
pub use ejections::{Ejected, EjectionChange, Ejections, Sample};
pub use expect::{BODY_MAX, BodyMatch, BodyMatchError, Expect, TEXT_MAX};
pub use probe::{Health, ProbeReason, ProbeSpec, ProbeState};
pub use probe_result::{Obstacle, ProbeFailure, ProbeResult};
pub use schedule::{JITTER_MAX_PER_MILLE, PERIOD_MIN, Run};
pub use slow_start::{FULL_SHARE, SlowStart};
pub use status_set::{StatusProblem, StatusSet, StatusSetError};
pub use suspicion::{
    BROKEN_IN_A_ROW, CLIENT_WINDOW, CLIENTS_KEPT, Client, Others, Scene, Suspects,
};
pub use tiers::{Because, Candidate, OnAllDown, Selection, Tier, select};
pub use transition::Transition;
pub use verdict::{Admin, Fault, Layers, Reason, Source, State, Verdict};
