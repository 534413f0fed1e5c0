//! Probes, ejection, tiers, and the agent that reports load.

#[path = "../support/mod.rs"]
mod support;

mod agent_check;
mod agent_load;
mod agent_reports;
mod cost;
mod ejection;
mod probes;
mod tiers;
