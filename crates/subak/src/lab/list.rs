//! `subak lab list`: the scenarios that come with Subak.

use std::path::Path;

use clap::Args;
use serde_json::json;
use subak_scenario::builtin;

use crate::files;

pub(crate) const EXAMPLES: &str = "\
Examples:
  subak lab list
  subak lab list --json
  subak lab list --show slow-endpoint > mine.toml";

/// The options of the command.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// Names, titles and questions as JSON
    #[arg(long)]
    json: bool,
    /// Print this scenario's file, to make one of one's own of it
    #[arg(long, value_name = "NAME", conflicts_with = "json")]
    show: Option<String>,
}

/// Prints the scenarios; answers with the exit status.
pub(crate) fn run(arguments: Arguments) -> u8 {
    if let Some(name) = &arguments.show {
        return match builtin::find(name) {
            Some(one) => files::told(files::print(one.text)),
            None => super::unknown(name),
        };
    }
    let all = builtin::ALL.iter().filter_map(|one| {
        let scenario = subak_scenario::read(one.text, Path::new(one.name)).scenario?;
        Some((one.name, scenario.title, scenario.question))
    });
    let text = if arguments.json {
        let all = all.map(
            |(name, title, question)| json!({ "name": name, "title": title, "question": question }),
        );
        format!("{:#}\n", serde_json::Value::Array(all.collect()))
    } else {
        all.map(|(name, _, question)| format!("{name:<15} {question}\n")).collect()
    };
    files::told(files::print(&text))
}
