//! The commands, as somebody at a terminal sees them.

#[path = "../support/mod.rs"]
mod support;

mod ctl;
mod demo;
mod files;
mod manual;
mod papers;
mod signposts;
mod top;
