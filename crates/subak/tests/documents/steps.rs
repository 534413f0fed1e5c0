//! What is done, in order, to run a document.

use std::time::Duration;

use crate::blocks::Block;

/// Something that is done.
pub(crate) enum Step {
    /// A file is written, and checked where it is a configuration.
    File {
        /// Of the block's fence.
        line: usize,
        name: String,
        text: String,
        is: Content,
    },
    Command(Command),
}

/// What a file is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Content {
    Configuration,
    /// One that `subak check` has to refuse.
    WrongConfiguration,
    /// What a command of the laboratory reads; nothing checks it before.
    Scenario,
}

/// A command and what it prints.
pub(crate) struct Command {
    /// Where it stands.
    pub(crate) line: usize,
    pub(crate) text: String,
    /// What stands below it.
    pub(crate) expected: Vec<String>,
    /// Lines of the document that `expected` and the exit status take.
    pub(crate) expected_at: std::ops::Range<usize>,
    pub(crate) status: i32,
    /// How long it is repeated until it prints what is expected.
    pub(crate) retry: Duration,
}

/// The steps that the blocks of a document ask for. Blocks that are at fault ask for none.
pub(crate) fn of(blocks: &[Block]) -> Vec<Step> {
    let mut steps = Vec::new();
    for block in blocks {
        if block.fault().is_some() || block.option("not-run").is_some() {
            continue;
        }
        match (block.language.as_str(), block.option("file")) {
            ("console", _) => commands(block, &mut steps),
            ("toml", Some(name)) => steps.push(Step::File {
                line: block.line,
                name: name.to_owned(),
                text: block.text(),
                is: match (block.option("scenario"), block.option("wrong")) {
                    (Some(_), _) => Content::Scenario,
                    (None, Some(_)) => Content::WrongConfiguration,
                    (None, None) => Content::Configuration,
                },
            }),
            _ => {}
        }
    }
    steps
}

fn commands(block: &Block, steps: &mut Vec<Step>) {
    let seconds = block.option("retry").and_then(|value| value.trim_end_matches('s').parse().ok());
    let retry = Duration::from_secs(seconds.unwrap_or(0));
    let mut lines = block.lines.iter().enumerate().peekable();
    while let Some((index, line)) = lines.next() {
        let mut text = line.strip_prefix("$ ").unwrap_or(line).to_owned();
        // A command goes on as a shell shows it: behind "> ", or behind a backslash.
        loop {
            let is_open = text.ends_with('\\');
            let next = lines.next_if(|(_, line)| is_open || line.starts_with("> "));
            let Some((_, next)) = next else { break };
            text = text + "\n" + next.strip_prefix("> ").unwrap_or(next);
        }
        let begin = lines.peek().map_or(block.lines.len(), |(index, _)| *index);
        let mut expected = Vec::new();
        while let Some((_, line)) = lines.next_if(|(_, line)| !line.starts_with("$ ")) {
            expected.push(line.clone());
        }
        let end = begin + expected.len();
        let last = expected.last().and_then(|line| line.strip_prefix("[exit "));
        let status = last.and_then(|line| line.strip_suffix(']')?.parse().ok());
        if status.is_some() {
            expected.pop();
        }
        // The block's first line stands below its fence.
        let at = |index: usize| block.line + 1 + index;
        steps.push(Step::Command(Command {
            line: at(index),
            text,
            expected,
            expected_at: at(begin)..at(end),
            status: status.unwrap_or(0),
            retry,
        }));
    }
}
