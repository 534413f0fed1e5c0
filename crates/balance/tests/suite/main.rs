//! What every algorithm promises, each held to an oracle, and nginx's own choices.

#[path = "../support/mod.rs"]
mod support;

mod choices;
mod conformance;
mod documents;
mod golden;
mod hash;
mod ip_hash;
mod latency;
mod least_connections;
mod least_packets;
mod maglev;
mod new_hash;
mod purity;
mod round_robin;
mod scores;
