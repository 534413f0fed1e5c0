//! `subak explain`: why does a request go there? Of a process that serves by its Admin API, or of a
//! configuration alone, by the code that would serve it.

use std::collections::HashMap;
use std::fmt;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use subak_access_log::Sinks;
use subak_base::{Rng, Tick};
use subak_config::Config;
use subak_console::ask::Method;
use subak_console::{Client, Reach};
use subak_explain::text::{self, Style};
use subak_explain::{BadQuestion, Door, Explanation, NamedPick, Picks, Question, choose};
use subak_http::{Circumstances, Logging, Service};
use subak_pool::EndpointIds;
use subak_telemetry::{Problems, Registry};

use crate::cli::{Color, FAILED, OK, WRONG};
use crate::control::{Loaded, NotInForce};

/// Picks that are shown where `--recent` names no number.
const RECENT: &str = "20";

/// What follows the options in the help.
pub(crate) const EXAMPLES: &str = "\
Examples:
  subak explain http://shop.example.com/cart         where would it go now?
  subak explain http://shop.example.com/ --client 192.0.2.7 -H 'X-Tenant: blue'
  subak explain --config new.toml https://shop.example.com/
                                                     nothing needs to run
  subak explain --recent                             where did the latest go?
  subak explain --recent 50 --pool app --from 192.0.2.7
  subak explain --id 00c0ffee00c0ffee                by X-Subak-Decision";

/// The options.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// Of which request: http://HOST[:PORT]/PATH
    #[arg(value_name = "URL", required_unless_present_any = ["recent", "id"])]
    request: Option<String>,
    /// The method
    #[arg(short = 'X', long, default_value = "GET")]
    method: String,
    /// A header, 'Name: value'; may be given several times
    #[arg(short = 'H', long = "header", value_name = "HEADER")]
    headers: Vec<String>,
    /// The client's address, with or without a port [default: 127.0.0.1]
    #[arg(long, value_name = "IP[:PORT]")]
    client: Option<String>,
    /// The listener, where the URL does not say it
    #[arg(long, value_name = "NAME")]
    listener: Option<String>,
    /// Explain by this configuration, as it would be at its start; nothing needs to run
    #[arg(short, long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The latest picks, from the pick logs
    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = RECENT,
          value_parser = clap::value_parser!(u16).range(1..=1000), conflicts_with_all = ["request", "config"])]
    recent: Option<u16>,
    /// One request's picks, by its decision id
    #[arg(long, value_name = "HEX", conflicts_with_all = ["request", "config", "recent"])]
    id: Option<subak_base::DecisionId>,
    /// Only picks of this pool
    #[arg(long, value_name = "POOL")]
    pool: Option<String>,
    /// Only picks for this client
    #[arg(long, value_name = "IP")]
    from: Option<std::net::IpAddr>,
    #[command(flatten)]
    reach: Reach,
    /// The answer as JSON
    #[arg(long)]
    json: bool,
    /// Colours
    #[arg(long, value_enum, default_value_t = Color::Auto)]
    color: Color,
}

/// Why there is no explanation.
enum NotExplained {
    /// The question is wrong: exit status 2.
    Wrong(String),
    /// It failed: exit status 1.
    Failed(String),
}

impl From<BadQuestion> for NotExplained {
    fn from(bad: BadQuestion) -> NotExplained {
        NotExplained::Wrong(bad.to_string())
    }
}

impl From<NotInForce> for NotExplained {
    fn from(not: NotInForce) -> NotExplained {
        NotExplained::Wrong(not.to_string())
    }
}

impl From<subak_console::AskError> for NotExplained {
    fn from(error: subak_console::AskError) -> NotExplained {
        match error.is_wrong_question() {
            true => NotExplained::Wrong(error.to_string()),
            false => NotExplained::Failed(error.to_string()),
        }
    }
}

/// Explains, and says how that went.
pub(crate) fn run(arguments: &Arguments) -> u8 {
    let style = match arguments.color {
        Color::Auto if !std::io::stdout().is_terminal() => Style::Plain,
        color if color.is_on() => Style::Color,
        _ => Style::Plain,
    };
    let text = match &arguments.request {
        Some(url) => one_request(arguments, url, style),
        None => latest(arguments, style),
    };
    let (status, message) = match text {
        Ok(text) => match write(&text) {
            Ok(()) => return OK,
            Err(error) => (FAILED, format!("cannot write to standard output: {error}")),
        },
        Err(NotExplained::Wrong(message)) => (WRONG, message),
        Err(NotExplained::Failed(message)) => (FAILED, message),
    };
    let _ = writeln!(std::io::stderr(), "error: {}", message.trim_end());
    status
}

/// That nobody reads on is no error.
fn write(text: &str) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error),
        _ => Ok(()),
    }
}

fn one_request(arguments: &Arguments, url: &str, style: Style) -> Result<String, NotExplained> {
    let question = question(arguments, url)?;
    let told: Explanation = match &arguments.config {
        Some(path) => offline(path, &question)?,
        None => {
            let body = serde_json::to_value(&question).map_err(|error| failed(&error))?;
            Client::reach(&arguments.reach)?.send(Method::POST, "/v1/explain", &body)?.json()?
        }
    };
    match arguments.json {
        true => json(&told),
        false => Ok(text::explanation(&told, style)),
    }
}

fn question(arguments: &Arguments, url: &str) -> Result<Question, BadQuestion> {
    let header = |text: &String| {
        let (name, value) = text.split_once(':').ok_or_else(|| {
            BadQuestion::new(format!("{text:?} is no header"), "write it as 'Name: value'")
        })?;
        Ok((name.trim().to_owned(), value.trim().to_owned()))
    };
    let headers: Result<Vec<_>, BadQuestion> = arguments.headers.iter().map(header).collect();
    let question = Question {
        method: arguments.method.clone(),
        client: arguments.client.clone(),
        headers: headers?,
        listener: arguments.listener.clone(),
        ..Question::get(url)
    };
    // Before anybody is asked.
    question.peer()?;
    question.head(&question.url()?)?;
    Ok(question)
}

/// By what a configuration makes of itself when it starts.
fn offline(path: &Path, question: &Question) -> Result<Explanation, NotExplained> {
    let mut config = Loaded::load(path)?.config;
    // Nobody's log is opened, let alone written to.
    config.listeners.iter_mut().for_each(|listener| listener.access_logs.clear());
    let now = Tick::from_millis(1);
    let mut telemetry = Registry::new(1);
    let mut sinks = Sinks::new(Problems::default());
    let mut logging = Logging { sinks: &mut sinks, generation: 0 };
    let pools = subak_http::pools(&config, &mut EndpointIds::new(), &HashMap::new(), now);
    // As the control side does before the first request.
    for pool in pools.values() {
        pool.tick(now, 0);
    }
    let endpoint_tls =
        subak_http::endpoint_tls(&config, &HashMap::new()).map_err(NotInForce::Service)?;
    let mut services = Vec::new();
    for listener in &config.listeners {
        let counted = (&mut telemetry, &mut logging);
        let service = Service::build(listener, &config, (&pools, &endpoint_tls), None, counted);
        services.push(service.map_err(NotInForce::Service)?);
    }
    let services = services.iter().map(|service| (service.name(), service)).collect();
    // The same answer every time.
    let random = Rng::new(1).next_u64();
    let ground =
        Ground { config: &config, services: &services, generation: 0, is_live: false, random, now };
    let mut told = explain(&ground, question)?;
    let pool = told.pool.as_ref().and_then(|pool| config.pool(&pool.name));
    if pool.is_some_and(|pool| !pool.names.is_empty()) {
        let note = "Endpoints that are given by name are not among those shown: no name is resolved \
                    here.";
        told.notes.push(note.into());
    }
    Ok(told)
}

/// What an explanation stands on.
pub(crate) struct Ground<'a> {
    /// What is in force, or would be.
    pub(crate) config: &'a Config,
    /// By the names of their listeners.
    pub(crate) services: &'a HashMap<&'a str, &'a Service>,
    /// Of the configuration in force.
    pub(crate) generation: u64,
    /// Whether a process serves by it.
    pub(crate) is_live: bool,
    /// What algorithms draw by.
    pub(crate) random: u64,
    /// The moment.
    pub(crate) now: Tick,
}

/// Where a request goes: finds the listener, and asks it.
pub(crate) fn explain(
    ground: &Ground<'_>,
    question: &Question,
) -> Result<Explanation, BadQuestion> {
    let listeners = &ground.config.listeners;
    let doors = listeners.iter().map(|listener| Door {
        name: &listener.name,
        is_tls: listener.tls.is_some(),
        bind: &listener.bind,
    });
    let doors: Vec<Door<'_>> = doors.collect();
    let url = question.url()?;
    let choice = choose(&doors, question.listener.as_deref(), &url)
        .map_err(|none| BadQuestion::new(none.error, none.hint))?;
    let name = doors[choice.index].name;
    let Some(service) = ground.services.get(name) else {
        return Err(BadQuestion::new(format!("listener {name:?} does not serve"), "try again"));
    };
    let circumstances = Circumstances {
        why: choice.why,
        is_live: ground.is_live,
        generation: ground.generation,
        random: ground.random,
        now: ground.now,
    };
    service.explain(question, &url, &circumstances)
}

/// The latest picks, or those of one request.
fn latest(arguments: &Arguments, style: Style) -> Result<String, NotExplained> {
    let mut path = format!("/v1/picks?n={}", arguments.recent.unwrap_or(100));
    let pairs: [(&str, Option<String>); 3] = [
        ("pool", arguments.pool.as_deref().map(encode)),
        ("id", arguments.id.map(|id| id.to_string())),
        ("client", arguments.from.map(|ip| ip.to_string())),
    ];
    for (name, value) in pairs {
        if let Some(value) = value {
            path += &format!("&{name}={value}");
        }
    }
    if arguments.json {
        path += "&whole=true";
    }
    let told: Picks = Client::reach(&arguments.reach)?.get(&path)?.json()?;
    if arguments.json {
        return json(&told);
    }
    if told.picks.is_empty() {
        return Err(NotExplained::Wrong(nothing_found(arguments, &told)));
    }
    if arguments.id.is_none() {
        return Ok(text::picks(&told, style));
    }
    let shown = told.picks.iter().rev().map(|pick: &NamedPick| text::one_pick(pick, style));
    Ok(shown.collect::<Vec<_>>().join("\n"))
}

/// Why there is nothing to show, and what to do.
fn nothing_found(arguments: &Arguments, told: &Picks) -> String {
    let is_logged = match &arguments.pool {
        Some(pool) => told.pools_with_log.contains(pool),
        None => !told.pools_with_log.is_empty(),
    };
    if is_logged {
        let what = match arguments.id {
            Some(id) => format!("no pick of the decision {id} is in the logs any more"),
            None => "no pick is in the logs yet, or none of those that are meant".to_owned(),
        };
        let logs = told.pools_with_log.join(", ");
        return format!(
            "{what}\n  logged are: {logs}; a larger pick_log goes back further, and a request that no \
             pool took is in none"
        );
    }
    let pool = arguments.pool.as_ref().or(told.pools_without_log.first());
    let pool = pool.map_or("NAME", String::as_str);
    format!(
        "no pick is written down: pick_log is off\n  switch it on with `subak ctl picks {pool} 1000`; for \
         good, in the configuration under [pool.{pool}]: pick_log = 1000"
    )
}

/// A value for a query.
fn encode(text: &str) -> String {
    let encoded = text.bytes().map(|byte| match byte.is_ascii_alphanumeric() {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02X}"),
    });
    encoded.collect()
}

fn json(value: &impl serde::Serialize) -> Result<String, NotExplained> {
    let text = serde_json::to_string_pretty(value).map_err(|error| failed(&error))?;
    Ok(text + "\n")
}

fn failed(error: &impl fmt::Display) -> NotExplained {
    NotExplained::Failed(error.to_string())
}
