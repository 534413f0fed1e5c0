//! `subak lab`: which algorithm, with which weights, survives what? Evidence from the very code that
//! serves traffic.

mod cells;
mod compare;
mod endpoint;
mod keep;
mod line;
mod list;
mod load;
mod papers;
mod picks;
mod reading;
mod replay;
mod report;
mod result;
mod run;
mod whatif;

use clap::{Args, Subcommand};

pub(crate) const EXAMPLES: &str = "\
Examples:
  subak lab run slow-endpoint
  subak lab load http://127.0.0.1:8080/ --rate 2000/s --for 10s
  subak lab endpoint 127.0.0.1:9001 --service exponential:5ms --concurrency 4
  subak lab replay access.json
  subak lab whatif --config new.toml --log access.json
  subak lab picks picks.json --config subak.toml
  subak lab papers P5 --only single";

/// The options of the command.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

/// One line here, one file beside this one, for each command of the laboratory.
#[derive(Subcommand, Debug)]
enum Command {
    /// Put load on an address, and measure what comes back
    #[command(after_help = load::EXAMPLES)]
    Load(Box<load::Arguments>),
    /// Endpoints to balance over, as fast or as slow as they are told to be
    #[command(after_help = endpoint::EXAMPLES)]
    Endpoint(endpoint::Arguments),
    /// Run every algorithm on the traffic of an access log, and recommend one, or none
    #[command(after_help = replay::EXAMPLES)]
    Replay(Box<replay::Arguments>),
    /// Try a changed configuration on the traffic of an access log, against the running one
    #[command(after_help = whatif::EXAMPLES)]
    Whatif(Box<whatif::Arguments>),
    /// Make the picks of a log once more: are they the same?
    #[command(after_help = picks::EXAMPLES)]
    Picks(picks::Arguments),
    /// Run a scenario and report what came out
    #[command(after_help = run::EXAMPLES)]
    Run(run::Arguments),
    /// List the scenarios that come with Subak
    #[command(after_help = list::EXAMPLES)]
    List(list::Arguments),
    /// Compare two algorithms of a run, or two runs
    #[command(after_help = compare::EXAMPLES)]
    Compare(compare::Arguments),
    /// Show a result again, as HTML, Markdown or JSON
    #[command(after_help = report::EXAMPLES)]
    Report(report::Arguments),
    /// Run the experiments of five papers again, with a verdict on each claim
    #[command(after_help = papers::EXAMPLES)]
    Papers(papers::Arguments),
}

/// Does what the command says; answers with the exit status.
pub(crate) fn run(arguments: Arguments) -> u8 {
    match arguments.command {
        Command::Load(arguments) => load::run(*arguments),
        Command::Endpoint(arguments) => endpoint::run(arguments),
        Command::Replay(arguments) => replay::run(*arguments),
        Command::Whatif(arguments) => whatif::run(*arguments),
        Command::Picks(arguments) => picks::run(&arguments),
        Command::Run(arguments) => run::run(arguments),
        Command::List(arguments) => list::run(arguments),
        Command::Compare(arguments) => compare::run(arguments),
        Command::Report(arguments) => report::run(arguments),
        Command::Papers(arguments) => papers::run(arguments),
    }
}

/// There is no such scenario; says which there are.
fn unknown(name: &str) -> u8 {
    let names = subak_scenario::builtin::ALL.iter().map(|one| one.name);
    let near = subak_config::nearest(name, names);
    let near = near.map_or(String::new(), |near| format!("; did you mean {near}?"));
    crate::files::tell(&format!(
        "error: there is no scenario {name}{near}\n  = `subak lab list` has all; a file has an ending\n"
    ));
    crate::cli::WRONG
}
