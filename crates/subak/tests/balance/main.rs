//! Where requests go: shares, stickiness, weights that follow what endpoints report.

#[path = "../support/mod.rs"]
mod support;

mod cookie;
mod packets;
mod resource;
mod shadow;
mod shares;
mod table;
