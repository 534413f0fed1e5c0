//! The state machines of health, driven by a clock of the tests' own.

mod agent_check;
mod availability;
mod ejections;
mod probe;
mod purity;
mod tiers;
