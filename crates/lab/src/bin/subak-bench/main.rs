//! `subak-bench`: what a balancer costs, beside the ones its users have today.
//!
//! A developer tool, not shipped. `subak-bench run` (`make bench`) compares Subak
//! with nginx and HAProxy; `endpoint` and `load` are the two ends by themselves.
//! How it measures, and what the last measurement found: docs/PERFORMANCE.md.

mod balancer;
mod case;
mod compare;
mod figures;
mod h2load;
mod report;
mod single;
mod soak;
mod stage;

use std::io;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// What a balancer costs, beside the ones its users have today.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Compare balancers, round by round, on two cores
    Run(compare::Options),
    /// Keep one balancer busy for long and watch whether its memory grows
    Soak(soak::Options),
    /// Run test endpoints until interrupted, printing their hits
    Endpoint(single::EndpointOptions),
    /// Put load on an address and print what came back
    Load(single::LoadOptions),
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().command {
        Command::Run(options) => compare::run(&options),
        Command::Soak(options) => soak::run(&options),
        Command::Endpoint(options) => single::endpoint(&options).map(|()| ExitCode::SUCCESS),
        Command::Load(options) => single::load(&options).map(|()| ExitCode::SUCCESS),
    };
    outcome.unwrap_or_else(|error| {
        eprintln!("subak-bench: {error}");
        ExitCode::FAILURE
    })
}

/// Says what was being done when `error` happened.
fn during(what: impl std::fmt::Display) -> impl FnOnce(io::Error) -> io::Error {
    move |error| io::Error::new(error.kind(), format!("{what}: {error}"))
}

/// An error of our own.
fn failure(what: impl Into<String>) -> io::Error {
    io::Error::other(what.into())
}
