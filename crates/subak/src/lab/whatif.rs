//! `subak lab whatif`: a changed configuration against the running one, on the traffic of a log.

use std::path::{Path, PathBuf};

use clap::Args;
use subak_config::{Config, Outcome, Pool};
use subak_http::pool_spec;
use subak_sim::{Patience, Retry};
use subak_trace::{Candidate, Log, Question};

use super::replay::{Source, stem, unread, wrong};
use crate::files;

pub(crate) const EXAMPLES: &str = "\
Examples:
  subak lab whatif --config new.toml --running subak.toml --log access.json
  subak lab whatif --config new.toml --log access.json --made-by round_robin";

/// The options of the command.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// The configuration that is to be
    #[arg(short, long, value_name = "FILE")]
    config: PathBuf,
    /// The access log, plain or packed by gzip or zstd; - is standard input
    #[arg(long, value_name = "LOG")]
    log: PathBuf,
    /// The configuration that made the log [default: the log's endpoints, with the algorithm that its
    /// picks show]
    #[arg(long, value_name = "FILE", conflicts_with = "made_by")]
    running: Option<PathBuf>,
    /// The pool of the configurations [default: the log's, or the only one]
    #[arg(long, value_name = "POOL")]
    of: Option<String>,
    #[command(flatten)]
    source: Source,
}

/// Compares; answers with the exit status.
pub(crate) fn run(arguments: Arguments) -> u8 {
    let (new, running) = match configurations(&arguments) {
        Ok(both) => both,
        Err(message) => return wrong(message.trim_end()),
    };
    let log = match arguments.source.read(&arguments.log) {
        Ok(log) => log,
        Err(error) => return unread(&error),
    };
    match question(&arguments, &log, &new, running.as_ref()) {
        Ok(question) => {
            let name = format!("whatif-{}", stem(&arguments.config));
            arguments.source.answer(&log, &question, &name)
        }
        Err(message) => wrong(message.trim_end()),
    }
}

/// The one that is to be, and the running one.
fn configurations(arguments: &Arguments) -> Result<(Config, Option<Config>), String> {
    let running = arguments.running.as_deref().map(configuration).transpose()?;
    Ok((configuration(&arguments.config)?, running))
}

fn question(
    arguments: &Arguments,
    log: &Log,
    new: &Config,
    running: Option<&Config>,
) -> Result<Question, String> {
    let wanted = arguments.of.as_deref().or(log.pool.as_deref());
    let new = candidate(&arguments.config, pool(new, wanted, &arguments.config)?);
    let running = match (&arguments.running, running) {
        (Some(path), Some(config)) => candidate(path, pool(config, wanted, path)?),
        _ => {
            let running = arguments.source.running(log);
            running.map_err(|why| format!("{why}, or give --running FILE"))?
        }
    };
    Ok(Question::WhatIf { running: Box::new(running), new: Box::new(new) })
}

fn configuration(path: &Path) -> Result<Config, String> {
    let text = files::read(path)?;
    let outcome = subak_config::parse(&text, path);
    let Outcome { config, diagnostics, sources } = &outcome;
    config.clone().ok_or_else(|| {
        format!("{} cannot be in force:\n{}", path.display(), sources.render(diagnostics, false))
    })
}

fn pool<'a>(config: &'a Config, wanted: Option<&str>, path: &Path) -> Result<&'a Pool, String> {
    let path = path.display();
    let names: Vec<&str> = config.pools.iter().map(|pool| &*pool.name).collect();
    let names = names.join(", ");
    match (wanted.and_then(|name| config.pool(name)), config.pools.as_slice()) {
        (Some(pool), _) => Ok(pool),
        (None, [only]) => Ok(only),
        (None, []) => Err(format!("{path} has no pool")),
        (None, _) => Err(format!("which pool of {path} is it? Say --of with one of: {names}")),
    }
}

fn candidate(path: &Path, pool: &Pool) -> Candidate {
    Candidate {
        patience: Patience {
            queue: Some(pool.queue.timeout),
            answer: Some(pool.timeouts.first_byte),
            client: None,
        },
        retry: Retry {
            attempts: pool.retry.attempts.get(),
            on_reset: pool.retry.on.reset,
            on_timeout: pool.retry.on.timeout,
            on_error: !pool.retry.on.statuses.is_empty(),
        },
        ..Candidate::new(format!("{} ({})", path.display(), pool.name), pool_spec(pool))
    }
}
