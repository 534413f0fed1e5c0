//! Runs a document and says where it is not true.

use std::fmt;
use std::fs;
use std::ops::Range;
use std::time::{Duration, Instant};

use crate::blocks;
use crate::output;
use crate::sandbox::Sandbox;
use crate::steps::{self, Command, Content, Step};

/// Between two attempts of a command that is repeated.
const PAUSE: Duration = Duration::from_millis(100);

/// A place where a document is not true.
#[derive(Debug)]
pub(crate) struct Fault {
    line: usize,
    what: String,
    /// What a command printed, and which lines of the document say otherwise.
    instead: Option<(Range<usize>, Vec<String>)>,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.line, self.what)
    }
}

/// Runs everything; what is not as the document says.
pub(crate) fn document(text: &str) -> Vec<Fault> {
    let steps = steps::of(&blocks::of(text));
    if steps.is_empty() {
        return Vec::new();
    }
    let mut sandbox = Sandbox::new();
    let mut faults = Vec::new();
    for step in steps {
        let result = match step {
            Step::File { line, name, text, is } => file(&mut sandbox, line, &name, &text, is),
            Step::Command(expected) => command(&mut sandbox, &expected),
        };
        faults.extend(result.err());
        if sandbox.left().is_zero() {
            break;
        }
    }
    faults
}

fn file(
    sandbox: &mut Sandbox,
    line: usize,
    name: &str,
    text: &str,
    is: Content,
) -> Result<(), Fault> {
    let path = sandbox.directory().join(name);
    fs::create_dir_all(path.parent().expect("a directory")).expect("make its directory");
    fs::write(path, text).expect("write the file");
    if is == Content::Scenario {
        return Ok(());
    }
    let is_wrong = is == Content::WrongConfiguration;
    let done = sandbox.run(&format!("subak check {name}"));
    let what = match done {
        Some(done) if (done.status != 0) == is_wrong => return Ok(()),
        Some(_) if is_wrong => "is said to be wrong, and is not".to_owned(),
        Some(done) => format!("subak check {name}: {}", done.printed),
        None => "subak check did not end".to_owned(),
    };
    Err(Fault { line, what, instead: None })
}

fn command(sandbox: &mut Sandbox, command: &Command) -> Result<(), Fault> {
    let until = Instant::now() + command.retry;
    loop {
        let result = attempt(sandbox, command);
        if result.is_ok() || Instant::now() >= until || sandbox.left().is_zero() {
            return result;
        }
        std::thread::sleep(PAUSE);
    }
}

fn attempt(sandbox: &mut Sandbox, command: &Command) -> Result<(), Fault> {
    let Command { line, text, expected, expected_at, status, .. } = command;
    let fault = |what, instead| Err(Fault { line: *line, what, instead });
    let Some(done) = sandbox.run(text) else {
        return fault(format!("`{text}` did not end in time"), None);
    };
    let found = output::lines(&done.printed);
    if done.status != *status {
        let difference = output::difference(&[], &found);
        let what =
            format!("`{text}`: exit status {}, {status} was expected\n{difference}", done.status);
        return fault(what, None);
    }
    if expected.is_empty() || output::is(expected, &found) {
        return Ok(());
    }
    let difference = output::difference(expected, &found);
    let mut instead = found;
    if *status != 0 {
        instead.push(format!("[exit {status}]"));
    }
    fault(format!("`{text}`:\n{difference}"), Some((expected_at.clone(), instead)))
}

/// The document with what its commands have printed.
pub(crate) fn updated(text: &str, faults: &[Fault]) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    for (at, printed) in faults.iter().rev().filter_map(|fault| fault.instead.clone()) {
        lines.splice(at.start - 1..at.end - 1, printed);
    }
    lines.join("\n") + "\n"
}
