//! `config` and `reload`: the configuration in force, how it came to be, and back.

use clap::Subcommand;
use hyper::Method;
use serde_json::{Value, json};

use super::{Context, Failure};
use crate::ask::AskError;
use crate::paint::Tone;
use crate::table::Table;
use crate::written::{UNKNOWN, harmless, several};

pub(super) const EXAMPLES: &str = "\
Examples:
  subak ctl config show                the configuration in force
  subak ctl config changes             what was set by the API, by whom and when
  subak ctl config diff                what differs from the file
  subak ctl config save                writes that into the file; comments stay
  subak ctl config history             the last configurations
  subak ctl config history 7           one of them: what it changed
  subak ctl config rollback            one step back
  subak ctl config reset               takes back all that was set by the API";

#[derive(Subcommand, Debug)]
pub(super) enum Command {
    /// The configuration in force, as a file would have it
    Show,
    /// What differs between the file and what is in force
    Diff,
    /// What was set by the API since the file was read
    Changes,
    /// Write what was set by the API into the file; its comments stay
    Save,
    /// Take back everything that was set by the API
    Reset,
    /// The last configurations: when, by whom, why
    History {
        /// One of them alone, with what it changed
        generation: Option<u64>,
    },
    /// Put an earlier configuration in force again
    Rollback {
        /// Which one [default: the one before]
        generation: Option<u64>,
    },
}

pub(super) fn run(context: &Context, command: &Command) -> Result<(), Failure> {
    match command {
        Command::Show => {
            let text = context.client.get("/v1/config/text")?.text();
            context.text(&text, text.clone())
        }
        Command::Diff => {
            let diff = context.client.get("/v1/config/diff")?.text();
            let shown = match diff.trim() {
                "" => "nothing differs from the file".to_owned(),
                _ => context.paint.diff(&diff),
            };
            context.text(&diff, shown)
        }
        Command::Changes => changes(context),
        Command::Save => {
            let answer = context.client.send(Method::POST, "/v1/config/save", &json!({}))?;
            context.answer(&answer, || {
                let said: Value = answer.json()?;
                let files: Vec<&str> = list(&said, "files").iter().filter_map(path_of).collect();
                Ok(match &files[..] {
                    [] => "nothing had to be written".to_owned(),
                    files => format!("written: {}", files.join(", ")),
                })
            })
        }
        Command::Reset => {
            let answer = context.client.ask(Method::DELETE, "/v1/config/changes", "")?;
            context.answer(&answer, || Ok("the file alone is in force".to_owned()))
        }
        Command::History { generation: None } => history(context),
        Command::History { generation: Some(generation) } => one(context, *generation),
        Command::Rollback { generation } => {
            let body = generation.map_or(json!({}), |to| json!({ "to": to }));
            let answer = context.client.send(Method::POST, "/v1/config/rollback", &body)?;
            context.answer(&answer, || put_in_force(context, &answer.json()?))
        }
    }
}

pub(super) fn reload(context: &Context) -> Result<(), Failure> {
    let answer = context.client.send(Method::POST, "/v1/config/reload", &json!({}))?;
    context.answer(&answer, || {
        let said: Value = answer.json()?;
        let done = if said["changed"] == false {
            format!("nothing has changed; generation {}", said["generation"])
        } else {
            put_in_force(context, &said)?
        };
        let masked = list(&said, "masked").iter().filter_map(Value::as_str);
        let masked = masked.map(|text| {
            let text = format!("without effect: {}", harmless(text));
            format!("\n{}", context.paint.text(Tone::Warn, &text))
        });
        Ok(done + &masked.collect::<String>())
    })
}

fn put_in_force(context: &Context, said: &Value) -> Result<String, Failure> {
    let diff = context.paint.diff(word(said, "diff"));
    Ok(format!("{diff}generation {} is in force", said["generation"]))
}

fn changes(context: &Context) -> Result<(), Failure> {
    let answer = context.client.get("/v1/config")?;
    context.answer(&answer, || {
        let said: Value = answer.json()?;
        let changes = list(&said, "changes");
        let mut lines = Vec::new();
        if said["file_changed_on_disk"] == true {
            let text = "the file was changed on disk since it was read: subak ctl reload";
            lines.push(context.paint.text(Tone::Warn, text));
        }
        if changes.is_empty() {
            lines.push("nothing is set by the API".to_owned());
            return Ok(lines.join("\n"));
        }
        let mut table = Table::new(&["pool", "endpoint", "what", "value", "by", "at"]);
        for change in changes {
            let columns = ["pool", "endpoint", "what", "value", "by", "at"];
            table.row(columns.map(|key| (Tone::Plain, cell(change, key))));
        }
        lines.extend(table.lines(context.paint));
        lines.push(format!(
            "{}; subak ctl config save writes them into the file, config reset takes them back",
            several(changes.len() as u64, "change")
        ));
        Ok(lines.join("\n"))
    })
}

fn history(context: &Context) -> Result<(), Failure> {
    let answer = context.client.get("/v1/config/history")?;
    context.answer(&answer, || {
        let said: Value = answer.json()?;
        let mut table = Table::new(&["", ">generation", "at", "by", "because", "what"]);
        for entry in said.as_array().map_or_else(|| list(&said, "history"), Vec::as_slice) {
            let is_current = entry["is_current"] == true;
            let tone = if is_current { Tone::Strong } else { Tone::Plain };
            let mark = if is_current { "*" } else { "" };
            let columns = ["generation", "at", "by", "cause", "summary"];
            let cells = columns.map(|key| (tone, cell(entry, key)));
            table.row(std::iter::once((Tone::Good, mark.to_owned())).chain(cells));
        }
        Ok(table.lines(context.paint).join("\n"))
    })
}

fn one(context: &Context, generation: u64) -> Result<(), Failure> {
    let answer = context.client.get(&format!("/v1/config/history/{generation}"))?;
    context.answer(&answer, || {
        let said: Value = answer.json()?;
        let told = ["at", "by", "cause", "summary"].map(|key| cell(&said, key)).join("  ");
        Ok(format!("generation {generation}  {told}\n{}", context.paint.diff(word(&said, "diff"))))
    })
}

/// The findings of a configuration that was refused, one in a line.
pub(super) fn diagnostics(error: &AskError) -> Vec<String> {
    let AskError::Refused { said, .. } = error else { return Vec::new() };
    let line = |finding: &Value| {
        let place = [cell(finding, "file"), cell(finding, "line"), cell(finding, "column")];
        let place = place.iter().filter(|part| *part != UNKNOWN).map(String::as_str);
        let place = place.collect::<Vec<_>>().join(":");
        let help = finding["help"].as_str().map(|help| format!("\n    {help}"));
        format!("  {place}: {}{}", cell(finding, "message"), help.unwrap_or_default())
    };
    list(said, "diagnostics").iter().map(line).collect()
}

fn cell(value: &Value, key: &str) -> String {
    match &value[key] {
        Value::Null => UNKNOWN.to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn word<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().map_or(&[], Vec::as_slice)
}

/// A file is named by its path, or is an object that has one.
fn path_of(file: &Value) -> Option<&str> {
    file.as_str().or_else(|| file["path"].as_str())
}
