//! The binary: reads the command line and hands over to the crate that does the work.

#![forbid(unsafe_code)]

mod admin;
mod agent;
mod application;
mod certificates;
mod checks;
mod cli;
mod control;
mod demo;
mod events;
mod exit_status;
mod explain;
mod files;
mod lab;
mod logging;
mod manual;
mod names;
mod serve;
mod service_manager;
mod settle;
mod signpost;
mod version;
mod weighing;

use std::process::ExitCode;

/// Of a new connection's cost, the system's allocator took a tenth: each worker's arena grew and
/// shrank all the time.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    subak_service::use_small_pages();
    cli::run()
}
