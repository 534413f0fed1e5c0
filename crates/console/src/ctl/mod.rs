//! `subak ctl`: everything that the Admin API does, typed.

mod config;
mod drain;
mod events;
mod last;
mod limits;
mod names;
mod set;
mod show;

pub(crate) use drain::progress;
pub(crate) use events::told;
pub(crate) use show::{because, expected_share, overview, percent, state_word, times};

use std::fmt;
use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use serde_json::Value;

use crate::ask::{Answer, AskError, Client};
use crate::paint::{Paint, wants_colours};
use crate::reach::Reach;

/// What `subak ctl --help` ends with.
pub const EXAMPLES: &str = "\
POOL may be left out where there is only one. ENDPOINT is its name, its address,
or the beginning of a name that no other endpoint of the pool has.

Examples:
  subak ctl status
  subak ctl endpoints app
  subak ctl drain app 10.0.0.4:8080 --wait      waits until nobody is left
  subak ctl set app 10.0.0.4:8080 --weight 5
  subak ctl reset app 10.0.0.4:8080             takes back what was set
  subak ctl config diff                         what differs from the file
  subak ctl --json status | jq .pools[].name";

/// The options of the command.
#[derive(Args, Debug)]
pub struct Arguments {
    #[command(flatten)]
    reach: Reach,
    /// The answer as JSON, as the Admin API gives it
    #[arg(long, global = true)]
    json: bool,
    /// Colours
    #[arg(long, value_enum, value_name = "WHEN", default_value_t = Colours::Auto, global = true)]
    color: Colours,
    #[command(subcommand)]
    command: Command,
}

/// When to use colours.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Colours {
    /// On a terminal, unless NO_COLOR is set.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Everything at a glance: problems, listeners, pools
    #[command(
        after_help = "Examples:\n  subak ctl status\n  subak ctl status --json | jq .problems"
    )]
    Status,
    /// The routes of each listener: what they ask, what they do, how many requests they took
    #[command(
        after_help = "Examples:\n  subak ctl routes\n  subak ctl routes --json | jq .[].routes"
    )]
    Routes,
    /// The pools, one in a line
    #[command(after_help = "Examples:\n  subak ctl pools")]
    Pools,
    /// The endpoints of one pool, or of all
    #[command(
        after_help = "Examples:\n  subak ctl endpoints\n  subak ctl endpoints app --json | jq ."
    )]
    Endpoints {
        /// The pool [default: all]
        pool: Option<String>,
    },
    /// One endpoint: its state and why, its weight's layers, what was counted
    #[command(
        after_help = "Examples:\n  subak ctl endpoint app 10.0.0.4:8080\n  subak ctl endpoint 10.0.0.4"
    )]
    Endpoint {
        #[command(flatten)]
        named: names::Named,
    },
    /// Set the weight or the state of an endpoint
    #[command(after_help = "\
What is set holds over reloads until it is taken back (subak ctl reset) or saved
(subak ctl config save).

Examples:
  subak ctl set app 10.0.0.4:8080 --weight 5
  subak ctl set app 10.0.0.4:8080 --weight 0            no new work
  subak ctl set app 10.0.0.4:8080 --state maintenance --weight 2")]
    Set {
        #[command(flatten)]
        named: names::Named,
        /// 0 (no new work) to 65535, relative to the pool's others
        #[arg(long, value_name = "N")]
        weight: Option<u16>,
        /// The state wanted
        #[arg(long, value_enum, value_name = "STATE", required_unless_present = "weight")]
        state: Option<set::State>,
        #[command(flatten)]
        consent: last::Consent,
    },
    /// Give an endpoint nothing new; what is under way finishes, sticky sessions may go on
    #[command(after_help = drain::EXAMPLES)]
    Drain(drain::Arguments),
    /// Give an endpoint no work at all, and probe it no more
    #[command(after_help = "Examples:\n  subak ctl maintenance app 10.0.0.4:8080")]
    Maintenance {
        #[command(flatten)]
        named: names::Named,
        #[command(flatten)]
        consent: last::Consent,
    },
    /// Let an endpoint work, whatever the file or its agent want; ends an ejection
    #[command(after_help = "Examples:\n  subak ctl ready app 10.0.0.4:8080")]
    Ready {
        #[command(flatten)]
        named: names::Named,
    },
    /// Take back the state and the weight that were set on an endpoint
    #[command(
        after_help = "Examples:\n  subak ctl reset app 10.0.0.4:8080\n  subak ctl reset app 10.0.0.4:8080 --weight"
    )]
    Reset {
        #[command(flatten)]
        named: names::Named,
        /// The weight alone
        #[arg(long, conflicts_with = "state")]
        weight: bool,
        /// The state alone
        #[arg(long)]
        state: bool,
    },
    /// Add an endpoint to a pool
    #[command(after_help = "\
Examples:
  subak ctl add app 10.0.0.5:8080
  subak ctl add app \"10.0.0.5:8080 weight=2\"")]
    Add {
        /// The pool, and the endpoint as a configuration has it
        #[arg(required = true, num_args = 1..=2, value_names = ["POOL", "ENDPOINT"])]
        words: Vec<String>,
    },
    /// Take an endpoint out of a pool; requests under way finish
    #[command(after_help = "Examples:\n  subak ctl remove app 10.0.0.5:8080")]
    Remove {
        #[command(flatten)]
        named: names::Named,
        #[command(flatten)]
        consent: last::Consent,
    },
    /// How many of a pool's last picks are kept to be explained
    #[command(
        after_help = "Examples:\n  subak ctl picks app 1000\n  subak ctl picks app default        as the file says\n  subak explain --recent"
    )]
    Picks {
        /// The pool, and how many; default takes back what was set
        #[arg(required = true, num_args = 1..=2, value_names = ["POOL", "N"])]
        words: Vec<String>,
    },
    /// Read the configuration again, as SIGHUP does; a wrong one changes nothing and says why
    #[command(after_help = "Examples:\n  subak check subak.toml && subak ctl reload")]
    Reload,
    /// The configuration in force: show, compare, save, go back
    #[command(after_help = config::EXAMPLES)]
    Config {
        #[command(subcommand)]
        command: config::Command,
    },
    /// What has happened: states, reloads, changes, problems
    #[command(after_help = "Examples:\n  subak ctl events\n  subak ctl events --follow --json")]
    Events {
        /// Goes on with what happens from now
        #[arg(short, long)]
        follow: bool,
        /// How many of the last ones
        #[arg(short = 'n', long, value_name = "N", default_value_t = 20)]
        count: usize,
    },
    /// What is limited, and who is nearest to a limit
    #[command(after_help = limits::EXAMPLES)]
    Limits {
        #[command(subcommand)]
        command: Option<limits::Command>,
    },
    /// The metrics, as Prometheus reads them
    #[command(after_help = "Examples:\n  subak ctl metrics | grep subak_pool")]
    Metrics,
    /// Ask for any path of the Admin API
    #[command(
        after_help = "Examples:\n  subak ctl get /v1/openapi.json\n  subak ctl get /v1/config/text"
    )]
    Get {
        /// Such as /v1/status
        #[arg(value_name = "PATH")]
        path: String,
    },
}

/// Does what the command line says; answers with the exit status.
pub fn run(arguments: Arguments) -> ExitCode {
    let Arguments { reach, json, color, command } = arguments;
    let paint = match color {
        Colours::Auto => Paint::of_output(),
        Colours::Always => Paint { colours: true },
        Colours::Never => Paint { colours: false },
    };
    let ran = Client::reach(&reach)
        .map_err(Failure::from)
        .and_then(|client| command.run(&Context { client, json, paint }));
    match ran {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever read the output has left: `subak ctl status | head`.
        Err(Failure::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
            ExitCode::SUCCESS
        }
        Err(failure) => {
            failure.tell(json);
            ExitCode::from(if failure.is_wrong_question() { 2 } else { 1 })
        }
    }
}

impl Command {
    fn run(self, context: &Context) -> Result<(), Failure> {
        match self {
            Command::Status => show::status(context),
            Command::Routes => show::routes(context),
            Command::Pools => show::pools(context),
            Command::Endpoints { pool } => show::endpoints(context, pool.as_deref()),
            Command::Endpoint { named } => show::endpoint(context, &named),
            Command::Set { named, weight, state, consent } => {
                set::set(context, &named, (weight, state), consent)
            }
            Command::Drain(arguments) => drain::run(context, &arguments),
            Command::Maintenance { named, consent } => {
                set::set(context, &named, (None, Some(set::State::Maintenance)), consent)
            }
            Command::Ready { named } => {
                let consent = last::Consent::default();
                set::set(context, &named, (None, Some(set::State::Ready)), consent)
            }
            Command::Reset { named, weight, state } => set::reset(context, &named, weight, state),
            Command::Add { words } => set::add(context, &words),
            Command::Remove { named, consent } => set::remove(context, &named, consent),
            Command::Picks { words } => set::picks(context, &words),
            Command::Reload => config::reload(context),
            Command::Config { command } => config::run(context, &command),
            Command::Events { follow, count } => events::run(context, follow, count),
            Command::Limits { command } => limits::run(context, command.as_ref()),
            Command::Metrics => context.raw("/metrics"),
            Command::Get { path } => context.raw(&path),
        }
    }
}

/// What every command works with.
struct Context {
    client: Client,
    json: bool,
    paint: Paint,
}

impl Context {
    /// Prints one line, or several.
    fn say(&self, text: &str) -> Result<(), Failure> {
        let mut out = io::stdout().lock();
        out.write_all(text.as_bytes())
            .and_then(|()| if text.ends_with('\n') { Ok(()) } else { out.write_all(b"\n") })
            .and_then(|()| out.flush())
            .map_err(Failure::Output)
    }

    /// Prints the answer itself where JSON is wanted, else what is made of it.
    fn answer(
        &self,
        answer: &Answer,
        words: impl FnOnce() -> Result<String, Failure>,
    ) -> Result<(), Failure> {
        let text = if self.json { answer.text() } else { words()? };
        self.say(&text)
    }

    fn raw(&self, path: &str) -> Result<(), Failure> {
        self.say(&self.client.get(path)?.text())
    }

    /// A text that the Admin API gives as it is; in JSON as `{"text": …}`.
    fn text(&self, text: &str, shown: String) -> Result<(), Failure> {
        match self.json {
            true => self.say(&serde_json::json!({ "text": text }).to_string()),
            false => self.say(&shown),
        }
    }
}

/// Why a command did not do what it should.
#[derive(Debug)]
enum Failure {
    Ask(AskError),
    /// The command line means nothing that is there.
    Wrong(String),
    /// What was waited for has not come.
    Waited(String, Duration),
    Output(io::Error),
}

impl Failure {
    fn is_wrong_question(&self) -> bool {
        match self {
            Failure::Ask(error) => error.is_wrong_question(),
            Failure::Wrong(_) => true,
            Failure::Waited(..) | Failure::Output(_) => false,
        }
    }

    fn tell(&self, json: bool) {
        if json && let Failure::Ask(AskError::Refused { said: said @ Value::Object(_), .. }) = self
        {
            eprintln!("{said}");
            return;
        }
        let mark = Paint { colours: io::IsTerminal::is_terminal(&io::stderr()) && wants_colours() };
        eprintln!("{} {self}", mark.text(crate::paint::Tone::Bad, "error:"));
    }
}

impl From<AskError> for Failure {
    fn from(error: AskError) -> Failure {
        Failure::Ask(error)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Ask(error) => {
                error.fmt(out)?;
                config::diagnostics(error).iter().try_for_each(|line| write!(out, "\n{line}"))
            }
            Failure::Wrong(what) => out.write_str(what),
            Failure::Waited(what, limit) => write!(out, "{what} after {limit:?}"),
            Failure::Output(error) => write!(out, "cannot print: {error}"),
        }
    }
}
