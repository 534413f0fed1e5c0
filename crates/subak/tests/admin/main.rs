//! The Admin API, the metrics and the explanations of the running binary.

#[path = "../support/mod.rs"]
mod support;

mod config;
mod explain;
mod explain_ids;
mod metrics;
mod openapi;
mod race;
mod replay;
mod scale;
mod set;
mod status;
mod tcp;
