//! Where results are: a directory with `result.json` (what was measured), `report.json`,
//! `report.html` and `report.md`.

use std::fs;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::{Instant, SystemTime};

use subak_report::Report;
use subak_scenario::Outcome;

use super::keep;
use super::line::{Line, bar};

/// Now, as people read it.
pub(crate) fn now() -> String {
    let text = subak_admin::rfc3339(SystemTime::now());
    format!("{} UTC", text.get(..16).unwrap_or(&text).replace('T', " "))
}

/// The three forms of a report.
pub(crate) fn forms(report: &Report) -> [(&'static str, String); 3] {
    [
        ("report.html", report.html()),
        ("report.md", report.markdown()),
        ("report.json", report.json()),
    ]
}

/// A file in a result's directory; or the file itself, if it is one; or of the result of this name.
fn file(place: &str, name: &str) -> PathBuf {
    match Path::new(place) {
        place if place.is_file() => place.to_owned(),
        place if place.is_dir() => place.join(name),
        place => Path::new(keep::RESULTS).join(place).join(name),
    }
}

/// The report of a result. Commands whose result is the report keep it as `result.json` alone.
pub(crate) fn report(place: &str) -> Result<Report, String> {
    let path = match file(place, "report.json") {
        path if path.exists() => path,
        _ => file(place, "result.json"),
    };
    let text = read(&path)?;
    Report::from_json(&text).map_err(|error| {
        format!("{}: this is not a report of the laboratory: {error}", path.display())
    })
}

/// What was measured in a run.
pub(crate) fn outcome(place: &str) -> Result<Outcome, String> {
    let text = read(&file(place, "result.json"))?;
    let wrong = |why: String| {
        format!("{place}: this is not what `subak lab run` writes as result.json: {why}")
    };
    let outcome: Outcome = serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
    match FASTER.contains(&outcome.faster) {
        true => Ok(outcome),
        false => Err(wrong(format!("nothing runs {} times as fast", outcome.faster))),
    }
}

/// How many times as fast as its file says a scenario may run.
pub(crate) const FASTER: RangeInclusive<f64> = 0.01..=100.0;

fn read(path: &Path) -> Result<String, String> {
    let remedy = "is it a directory that `subak lab run` has written, or a name in lab-results?";
    fs::read_to_string(path)
        .map_err(|error| format!("cannot read {}: {error}\n  {remedy}", path.display()))
}

/// How far a command has come: so many of all runs, on a terminal.
pub(crate) struct Progress {
    began: Instant,
    line: Line,
}

impl Progress {
    pub(crate) fn new() -> Progress {
        Progress { began: Instant::now(), line: Line::new(false) }
    }

    /// `done` of `all`, and what is going on; the last one takes the line away.
    pub(crate) fn tell(&self, done: usize, all: usize, what: &str) {
        if done >= all {
            return self.line.clear();
        }
        let seconds = self.began.elapsed().as_secs();
        let share = done as f64 / all as f64;
        self.line.show(|| format!("{} {done}/{all} {what} {seconds} s", bar(share)));
    }
}
