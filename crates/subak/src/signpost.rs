//! Signposts on the command line: a word that another program has, or that stands elsewhere here, is
//! answered with the whole command that does it. And suggestions that would do harm are not made: a
//! similar word can be the opposite.

use std::path::Path;

use clap::Command;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use subak_config::is_opposite;

/// What is read where no configuration is named.
pub(crate) const CONFIGURATION: &str = "/etc/subak/subak.toml";

/// What clap's error becomes: a signpost if there is one, else the same with harmless suggestions.
pub(crate) fn at(command: &Command, words: &[String], error: clap::Error) -> clap::Error {
    let kind = match error.kind() {
        ErrorKind::InvalidSubcommand => ContextKind::InvalidSubcommand,
        ErrorKind::UnknownArgument => ContextKind::InvalidArg,
        _ => return error,
    };
    let Some(ContextValue::String(word)) = error.get(kind) else { return error };
    let Some(place) = words.iter().position(|one| one == word) else { return harmless(error) };
    let (before, after) = (&words[..place], &words[place + 1..]);
    let commands: Vec<_> = before.iter().filter(|word| !word.starts_with('-')).collect();
    let signpost = match commands.first().map(|first| first.as_str()) {
        Some("ctl") => of_ctl(word, before, after),
        // `subak -c FILE -t`: what is wanted stands behind what is not known.
        None => of_subak(command, words),
        Some(_) => None,
    };
    match signpost {
        Some((what, commands)) => {
            let commands: String = commands.iter().map(|line| format!("\n    {line}")).collect();
            let asked = words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ");
            let message = format!("there is no `subak {asked}`; {what}:\n{commands}\n");
            clap::Error::raw(error.kind(), message)
        }
        None => harmless(error),
    }
}

type Signpost = (&'static str, Vec<String>);

/// For what stands behind `subak` itself.
fn of_subak(command: &Command, words: &[String]) -> Option<Signpost> {
    let flag = |names: &[&str]| words.iter().any(|word| names.contains(&word.as_str()));
    let (first, rest) = words.split_first()?;
    let signal = words.iter().position(|word| word == "-s" || word == "--signal");
    if let Some(signal) = signal.and_then(|place| words.get(place + 1)) {
        return of_process(signal, &[]);
    }
    if flag(&["-t", "-T", "--test", "--check", "--validate"]) {
        return Some(("a configuration is checked by", vec![with_file("check", words)]));
    }
    match first.as_str() {
        "test" | "configtest" | "config-test" | "validate" | "verify" | "lint" => {
            Some(("a configuration is checked by", vec![with_file("check", rest)]))
        }
        "start" | "run" | "server" | "-c" | "-f" | "--config" => {
            Some(("it serves by", vec![with_file("serve", words)]))
        }
        "-v" => Some(("the version is told by", vec!["subak version".into()])),
        word => of_process(word, rest).or_else(|| {
            let ctl = command.find_subcommand("ctl")?;
            match ctl.find_subcommand(word) {
                Some(_) => {
                    Some(("what runs is seen and changed by", vec![line("subak ctl", words)]))
                }
                None => of_ctl(word, &["ctl".to_owned()], rest),
            }
        }),
    }
}

/// For words about the process that runs.
fn of_process(word: &str, rest: &[String]) -> Option<Signpost> {
    let both = |unit: &str, signal: &str| {
        vec![
            format!("systemctl {unit} subak"),
            format!("kill -{signal} $(pidof subak)        without systemd"),
        ]
    };
    Some(match word {
        "stop" | "quit" | "shutdown" | "kill" | "halt" | "terminate" | "exit" => {
            ("what runs is stopped by, once requests under way have finished", both("stop", "TERM"))
        }
        "restart" => (
            "what runs is stopped and started again by; another configuration needs a reload only \
             (`subak ctl reload`)",
            vec!["systemctl restart subak".into()],
        ),
        "reopen" | "rotate" | "logrotate" => {
            ("access logs are opened anew by", vec!["kill -USR1 $(pidof subak)".into()])
        }
        "reload" | "hup" => (
            "what runs reads its configuration again by",
            vec![line("subak ctl reload", rest), "kill -HUP $(pidof subak)".into()],
        ),
        _ => return None,
    })
}

/// For what stands behind `subak ctl`: words of other programs.
fn of_ctl(word: &str, before: &[String], after: &[String]) -> Option<Signpost> {
    let (what, meant) = match word {
        "undrain" | "enable" | "resume" | "activate" | "up" | "start" => {
            ("an endpoint is given work again by", "ready")
        }
        "disable" | "maint" | "down" | "suspend" => {
            ("an endpoint is taken out of work by", "maintenance")
        }
        "delete" | "rm" | "del" => ("an endpoint is taken out of its pool by", "remove"),
        "unset" | "clear" | "undo" | "revert" => {
            ("what was set on an endpoint is taken back by", "reset")
        }
        "list" | "ls" | "ps" => ("endpoints are listed by", "endpoints"),
        "health" | "info" | "show" => ("everything at a glance is shown by", "status"),
        "history" | "save" | "diff" | "rollback" => {
            let meant = ["config".to_owned(), word.to_owned()];
            let command = line("subak", &[before, &meant, after].concat());
            return Some(("the configuration in force is seen and changed by", vec![command]));
        }
        "top" | "check" | "explain" | "serve" | "version" => {
            return Some((
                "it is a command of its own",
                vec![line("subak", &[&[word.to_owned()], after].concat())],
            ));
        }
        _ => return of_process(word, after),
    };
    let words = [before, &[meant.to_owned()], after].concat();
    Some((what, vec![line("subak", &words)]))
}

/// A command about a configuration: the file that the words name, or the usual one.
fn with_file(command: &str, words: &[String]) -> String {
    let is_file = |word: &&String| {
        !word.starts_with('-')
            && (word.ends_with(".toml") || word.contains('/') || Path::new(word).is_file())
    };
    let file = words.iter().find(is_file).map_or(CONFIGURATION, |file| file.as_str());
    format!("subak {command} {}", quoted(file))
}

fn line(command: &str, words: &[String]) -> String {
    let words = words.iter().filter(|word| !word.is_empty());
    words.fold(command.to_owned(), |line, word| format!("{line} {}", quoted(word)))
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let is_plain =
        |character: char| character.is_ascii_alphanumeric() || "-_./:@=,+%[]".contains(character);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// Takes suggestions away that are the opposite of what was written, or begin otherwise: `top` for `stopp`.
fn harmless(mut error: clap::Error) -> clap::Error {
    for (invalid, suggested) in [
        (ContextKind::InvalidSubcommand, ContextKind::SuggestedSubcommand),
        (ContextKind::InvalidArg, ContextKind::SuggestedArg),
        (ContextKind::InvalidValue, ContextKind::SuggestedValue),
    ] {
        let Some(ContextValue::String(word)) = error.get(invalid) else { continue };
        let word = word.trim_start_matches('-').to_owned();
        let is_harmless = |near: &String| {
            let near = near.trim_start_matches('-');
            near.chars().next() == word.chars().next() && !is_opposite(&word, near)
        };
        match error.remove(suggested) {
            Some(ContextValue::Strings(mut near)) => {
                near.retain(is_harmless);
                if !near.is_empty() {
                    error.insert(suggested, ContextValue::Strings(near));
                }
            }
            Some(ContextValue::String(near)) if is_harmless(&near) => {
                error.insert(suggested, ContextValue::String(near));
            }
            _ => {}
        }
    }
    error
}
