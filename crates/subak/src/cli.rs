//! Commands and their options. One declaration; help comes from it.

use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use subak_balance::catalogue;
use subak_console::{ctl, top};

use crate::agent;
use crate::demo;
use crate::exit_status;
use crate::explain;
use crate::files;
use crate::lab;
use crate::logging::LogFormat;
use crate::manual;
use crate::serve;
use crate::signpost;
use crate::version;

/// All went well.
pub(crate) const OK: u8 = 0;
/// Something failed while running: a port was taken, a file could not be written.
pub(crate) const FAILED: u8 = 1;
/// The command line or the configuration is wrong. clap uses it too.
pub(crate) const WRONG: u8 = 2;

/// Columns of a terminal that nobody has made wider.
const WIDTH: usize = 80;

const EXAMPLES: &str = "\
Examples:
  subak demo                          see it balance, nothing to configure
  subak check subak.toml              all errors at once, with their places
  subak serve subak.toml              serve; HUP reloads, TERM stops gently";

const DEMO_EXAMPLES: &str = "\
One endpoint after the other is stopped for a while and comes back; no request
fails by it. Without a terminal it prints a line a second and ends after 10 s.

Examples:
  subak demo
  subak demo --tls
  subak demo --algorithm least_connections --requests-per-second 200
  subak demo --seconds 5 --port 0 > demo.log";

#[derive(Parser, Debug)]
#[command(name = "subak", version, long_version = version::long(), about, long_about = None)]
#[command(after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Serve by a configuration until a signal comes
    #[command(after_help = "\
Signals:
  HUP         reload the configuration; a bad one changes nothing and says why
  TERM, INT, QUIT
              stop: no new connections, requests under way finish, as long as
              shutdown_timeout; a second one ends at once
  USR1        open access logs anew, after they were moved away

Examples:
  subak serve
  subak serve subak.toml
  kill -HUP $(pidof subak)")]
    Serve {
        /// The configuration [default: /etc/subak/subak.toml]
        #[arg(value_name = "FILE", conflicts_with = "config")]
        file: Option<PathBuf>,
        /// The same
        #[arg(short, long, value_name = "FILE")]
        config: Option<PathBuf>,
        /// What is logged to standard error: error, warn, info, debug, or a filter such as
        /// "info,subak_http=debug"
        #[arg(long, value_name = "FILTER", default_value = "info")]
        log: String,
        /// How it is logged [default: journal where systemd's journal listens, else text]
        #[arg(long, value_name = "FORMAT", value_enum)]
        log_format: Option<LogFormat>,
    },
    /// Check configurations: every error at once, with its place and its remedy
    #[command(after_help = "\
Examples:
  subak check subak.toml
  subak check --json subak.toml | jq .")]
    Check {
        /// Configurations; - is standard input
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
        /// Findings as JSON, one array for each file
        #[arg(long)]
        json: bool,
        /// Colours
        #[arg(long, value_enum, default_value_t = Color::Auto)]
        color: Color,
    },
    /// Format configurations in place, keeping comments and meaning
    #[command(after_help = "\
Examples:
  subak fmt subak.toml
  subak fmt --check *.toml      names those that are not formatted, status 1
  subak fmt - < subak.toml      to standard output")]
    Fmt {
        /// Configurations; - reads standard input and writes standard output
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
        /// Change nothing; name the files that would change
        #[arg(long)]
        check: bool,
    },
    /// See it balance: three endpoints, real requests, nothing to configure
    #[command(after_help = demo_help())]
    Demo {
        /// How long it runs [default: until Ctrl-C; 10 without a terminal]
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=86_400))]
        seconds: Option<u32>,
        /// The balancing algorithm, as a configuration names it
        #[arg(long, value_name = "NAME", default_value = "round_robin")]
        algorithm: String,
        /// How many requests are sent
        #[arg(long, value_name = "N", default_value_t = 50)]
        #[arg(value_parser = clap::value_parser!(u32).range(1..=5000))]
        requests_per_second: u32,
        /// The port on 127.0.0.1, 0 for any [default: 8080, or any where that is taken]
        #[arg(long, value_name = "PORT")]
        port: Option<u16>,
        /// Serve by TLS, with a certificate made for this run
        #[arg(long)]
        tls: bool,
    },
    /// See and change what runs: states, weights, endpoints, the configuration
    #[command(after_help = ctl::EXAMPLES)]
    Ctl(Box<ctl::Arguments>),
    /// See it live: pools, endpoints, hits, rates, latency, states, problems
    #[command(after_help = top::EXAMPLES)]
    Top(Box<top::Arguments>),
    /// Why does a request go where it goes? Of what runs, or of a configuration
    #[command(after_help = explain::EXAMPLES)]
    Explain(Box<explain::Arguments>),
    /// Measure this machine and tell a balancer how loaded it is
    #[command(after_help = agent::EXAMPLES)]
    Agent(Box<agent::Arguments>),
    /// The laboratory: experiments, replays of logs, load, test endpoints
    #[command(after_help = lab::EXAMPLES)]
    Lab(Box<lab::Arguments>),
    /// Print completions for a shell
    #[command(after_help = "\
Examples:
  subak completions bash > /etc/bash_completion.d/subak
  subak completions zsh > \"${fpath[1]}/_subak\"
  subak completions fish > ~/.config/fish/completions/subak.fish")]
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Print a manual page
    #[command(after_help = "\
Examples:
  subak man | man -l -
  subak man serve | man -l -
  subak man subak.toml | man -l -      the configuration
  subak man --directory /usr/local/share/man/man1")]
    Man {
        /// A command, or subak.toml for the configuration [default: subak itself]
        page: Option<String>,
        /// Write all pages to this directory instead
        #[arg(long, value_name = "DIRECTORY", conflicts_with = "page")]
        directory: Option<PathBuf>,
    },
    /// Print which version this is, what it was built for and what it can do
    #[command(after_help = "\
Examples:
  subak version
  subak version --json | jq -r .version")]
    Version {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Print the JSON Schema of the configuration, for editors
    Schema,
}

/// When to use colours.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Color {
    /// On a terminal, unless NO_COLOR is set.
    Auto,
    Always,
    Never,
}

impl Color {
    pub(crate) fn is_on(self) -> bool {
        match self {
            Color::Auto => {
                std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none()
            }
            Color::Always => true,
            Color::Never => false,
        }
    }
}

/// The declaration: help, manual pages and completions come from it.
fn command() -> clap::Command {
    exit_status::documented(Cli::command())
}

/// Parses the command line and does what it says.
pub(crate) fn run() -> ExitCode {
    let parsed = command().try_get_matches().and_then(|matches| Cli::from_arg_matches(&matches));
    let cli = match parsed {
        Ok(cli) => cli,
        Err(error) => {
            let words = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned());
            signpost::at(&command(), &words.collect::<Vec<_>>(), error).exit()
        }
    };
    let status = match cli.command {
        Command::Serve { file, config, log, log_format } => {
            let path = file.or(config).unwrap_or_else(|| signpost::CONFIGURATION.into());
            serve::run(&path, &log, log_format)
        }
        Command::Check { files, json, color } => files::check(&files, json, color.is_on()),
        Command::Fmt { files, check } => files::format(&files, check),
        Command::Demo { seconds, algorithm, requests_per_second, port, tls } => {
            demo::run(&demo::Options { seconds, algorithm, requests_per_second, port, tls })
        }
        Command::Ctl(arguments) => return ctl::run(*arguments),
        Command::Top(arguments) => return top::run(*arguments),
        Command::Explain(arguments) => explain::run(&arguments),
        Command::Agent(arguments) => agent::run(*arguments),
        Command::Lab(arguments) => lab::run(*arguments),
        Command::Completions { shell } => manual::completions(command(), shell),
        Command::Man { page, directory } => match directory {
            Some(directory) => manual::man_into(command(), &directory),
            None => manual::man(command(), page.as_deref()),
        },
        Command::Version { json } => version::print(json),
        Command::Schema => files::schema(),
    };
    ExitCode::from(status)
}

/// What follows the options of `subak demo`: the catalogue of algorithms, and examples.
fn demo_help() -> String {
    let listed = catalogue::all().iter().map(|entry| listed(entry.name, entry.summary));
    format!("Algorithms:\n{}\n{DEMO_EXAMPLES}", listed.collect::<String>())
}

/// A name, and beside it what it is, on as many lines of a terminal as that needs.
fn listed(name: &str, summary: &str) -> String {
    let (mut text, mut line) = (String::new(), format!("  {name:<20}"));
    for word in summary.split(' ') {
        if line.chars().count() + 1 + word.chars().count() > WIDTH {
            text += &line;
            text += "\n";
            line = " ".repeat(22);
        }
        line += " ";
        line += word;
    }
    format!("{text}{line}\n")
}

#[cfg(test)]
mod tests {
    use super::{WIDTH, command, demo_help};
    use subak_balance::catalogue;

    #[test]
    fn the_command_line_is_consistent() {
        command().debug_assert();
    }

    /// A line that is wider is broken once more, in the middle of lines that were set by hand.
    #[test]
    fn what_stands_below_the_options_fits_a_terminal() {
        let (mut left, mut wide) = (vec![command()], Vec::new());
        while let Some(one) = left.pop() {
            let after = one.get_after_help().map(ToString::to_string).unwrap_or_default();
            let lines = after.lines().filter(|line| line.chars().count() > WIDTH);
            wide.extend(lines.map(|line| format!("{}: {line}", one.get_name())));
            left.extend(one.get_subcommands().cloned());
        }
        assert!(wide.is_empty(), "{wide:#?}");
    }

    #[test]
    fn the_help_of_the_demonstration_lists_every_algorithm() {
        let help = demo_help();
        for entry in catalogue::all() {
            assert!(help.contains(&format!("  {} ", entry.name)), "{}", entry.name);
        }
    }
}
