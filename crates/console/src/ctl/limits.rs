//! `limits`: what is limited and who is nearest to it; `limits clear`.

use clap::Subcommand;
use hyper::Method;
use serde::Deserialize;

use super::{Context, Failure};
use crate::paint::Tone;
use crate::status::limit_key_path;
use crate::table::Table;
use crate::written::count;

/// What `subak ctl limits --help` ends with.
pub(super) const EXAMPLES: &str = "\
Examples:
  subak ctl limits
  subak ctl limits clear web.rate.1 192.0.2.7      it may ask again at once
  subak ctl limits --json | jq '.[].nearest[0]'";

#[derive(Subcommand, Debug)]
pub(super) enum Command {
    /// Give a key its tokens back
    Clear {
        /// The limit's name
        limit: String,
        /// The key, as the list shows it
        key: String,
    },
}

/// A limit of `/v1/limits`.
#[derive(Deserialize, Default, Debug)]
#[serde(default)]
struct Limit {
    name: String,
    by: String,
    allows: String,
    dry_run: bool,
    refused: u64,
    forgotten: u64,
    keys: u64,
    nearest: Vec<Key>,
}

#[derive(Deserialize, Default, Debug)]
#[serde(default)]
struct Key {
    key: String,
    left: u32,
    most: u32,
}

pub(super) fn run(context: &Context, command: Option<&Command>) -> Result<(), Failure> {
    match command {
        None => show(context),
        Some(Command::Clear { limit, key }) => {
            let path = limit_key_path(limit, key);
            let answer = context.client.ask(Method::DELETE, &path, "")?;
            context.answer(&answer, || Ok(format!("{key} has its tokens of {limit} back")))
        }
    }
}

fn show(context: &Context) -> Result<(), Failure> {
    let answer = context.client.get("/v1/limits")?;
    context.answer(&answer, || {
        let limits: Vec<Limit> = answer.json()?;
        if limits.is_empty() {
            return Ok("nothing is limited".to_owned());
        }
        let mut table = Table::new(&[
            "limit",
            "by",
            "allows",
            ">refused",
            ">forgotten",
            ">keys",
            "nearest to it",
        ]);
        for limit in &limits {
            let nearest = limit.nearest.first();
            let nearest =
                nearest.map(|key| format!("{}: {} of {} left", key.key, key.left, key.most));
            let dry = if limit.dry_run { " (dry run)" } else { "" };
            table.row([
                (Tone::Strong, format!("{}{dry}", limit.name)),
                (Tone::Plain, limit.by.clone()),
                (Tone::Plain, limit.allows.clone()),
                (if limit.refused > 0 { Tone::Warn } else { Tone::Plain }, count(limit.refused)),
                (Tone::Plain, count(limit.forgotten)),
                (Tone::Plain, count(limit.keys)),
                (Tone::Plain, nearest.unwrap_or_default()),
            ]);
        }
        Ok(table.lines(context.paint).join("\n"))
    })
}
