//! `subak lab compare`: two algorithms of one run, or two runs.

use std::path::PathBuf;

use clap::Args;
use subak_scenario::{Outcome, Side, Trial};

use super::{keep, result};
use crate::cli::{FAILED, OK, WRONG};
use crate::files;

pub(crate) const EXAMPLES: &str = "\
Each side is a run (a directory that `subak lab run` has written, or its name in
lab-results), or one algorithm of a run: RUN:ALGORITHM. Two whole runs are
compared algorithm by algorithm. Runs of the same seed are compared with each
other.

Examples:
  subak lab compare slow-endpoint:round_robin slow-endpoint:peak_ewma
  subak lab compare before after --output difference";

/// The options of the command.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// The first side
    #[arg(value_name = "A")]
    one: String,
    /// The second side
    #[arg(value_name = "B")]
    other: String,
    /// Write the report there too
    #[arg(long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// The report as JSON, instead of tables
    #[arg(long)]
    json: bool,
}

/// One side as it was asked for.
struct Asked {
    name: String,
    outcome: Outcome,
    algorithm: Option<String>,
}

impl Asked {
    fn read(text: &str) -> Result<Asked, String> {
        let (place, algorithm) = match text.rsplit_once(':') {
            Some((place, algorithm)) => (place, Some(algorithm.to_owned())),
            None => (text, None),
        };
        let outcome = result::outcome(place)?;
        let names: Vec<&str> =
            outcome.trials.iter().map(|trial| trial.algorithm.as_str()).collect();
        if let Some(algorithm) = algorithm.as_deref().filter(|name| !names.contains(name)) {
            let names = names.join(", ");
            return Err(format!("{place} has no {algorithm}; it has {names}"));
        }
        Ok(Asked { name: text.to_owned(), outcome, algorithm })
    }

    fn trials(&self) -> impl Iterator<Item = &Trial> {
        let wanted = |trial: &&Trial| {
            self.algorithm.as_deref().is_none_or(|algorithm| algorithm == trial.algorithm)
        };
        self.outcome.trials.iter().filter(wanted)
    }
}

/// Compares them; answers with the exit status.
pub(crate) fn run(arguments: Arguments) -> u8 {
    let sides = Asked::read(&arguments.one)
        .and_then(|one| Asked::read(&arguments.other).map(|other| (one, other)));
    let (one, other) = match sides {
        Ok(sides) => sides,
        Err(message) => {
            files::tell(&format!("error: {message}\n"));
            return WRONG;
        }
    };
    // Two algorithms are compared as they are; in two whole runs those of one name are.
    let by_name = one.algorithm.is_none() || other.algorithm.is_none();
    let mut named = Vec::new();
    for left in one.trials() {
        for right in other.trials().filter(|right| right.on == left.on) {
            if !by_name || left.algorithm == right.algorithm {
                let whole = |asked: &Asked| match by_name && asked.algorithm.is_none() {
                    true => format!("{} of {}", left.algorithm, asked.name),
                    false => asked.name.clone(),
                };
                named.push((whole(&one), left, whole(&other), right));
            }
        }
    }
    if named.is_empty() {
        files::tell("error: the two have no algorithm in common that ran in the same place\n");
        return WRONG;
    }
    let pairs: Vec<(Side<'_>, Side<'_>)> = named
        .iter()
        .map(|(left, left_trial, right, right_trial)| {
            let left = Side { name: left, outcome: &one.outcome, trial: left_trial };
            (left, Side { name: right, outcome: &other.outcome, trial: right_trial })
        })
        .collect();
    let mut report = match subak_scenario::compare(&pairs, &result::now()) {
        Ok(report) => report,
        Err(message) => {
            files::tell(&message);
            return FAILED;
        }
    };
    report.repeat = vec![format!("subak lab compare {} {}", arguments.one, arguments.other)];
    if let Some(directory) = &arguments.output {
        let written = keep::directory(Some(directory), "")
            .and_then(|directory| keep::write(&directory, &result::forms(&report)));
        let written = files::told(written);
        if written != OK {
            return written;
        }
    }
    let text = if arguments.json { report.json() } else { report.text_within(files::columns()) };
    files::told(files::print(&text))
}
