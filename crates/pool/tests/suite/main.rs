//! Pools: endpoints that come, go, fall ill and are told so, on a clock of the tests' own.

#[path = "../support/mod.rs"]
mod support;

mod blame;
mod ejection;
mod explain;
mod health;
mod lives;
mod outage;
mod pick_log;
mod reload;
mod shadow;
mod stickiness;
mod threads;
mod traffic;
