//! What a command's exit status means: one table, for `--help`, manual pages and docs/service.md.

use std::fmt::Write;

use clap::Command;

/// The meanings of 0, 1 and 2.
type Meanings = [&'static str; 3];

const USUAL: Meanings =
    ["all went well", "it failed while running", "the command line or the configuration is wrong"];

/// Where it can be said more exactly.
const OF_COMMANDS: &[(&str, Meanings)] = &[
    (
        "serve",
        [
            "ended by a signal",
            "not started: a file cannot be read, an address is taken, a right is missing",
            "not started: command line or configuration is wrong, or a user is unknown",
        ],
    ),
    (
        "check",
        [
            "no errors; there may be warnings",
            "a file cannot be read, or the findings cannot be written",
            "the command line is wrong, or a configuration has errors",
        ],
    ),
    (
        "fmt",
        [
            "all files are formatted",
            "a file cannot be read or written, or with --check one is not formatted",
            "the command line is wrong, or a file is not TOML",
        ],
    ),
    (
        "ctl",
        [
            "all went well",
            "nobody answers, or what was waited for has not come",
            "the command line is wrong, or what was asked was refused",
        ],
    ),
    (
        "lab",
        [
            "all went well",
            "it failed while running, or what was asked of the result does not hold",
            "the command line is wrong",
        ],
    ),
    (
        "explain",
        [
            "it is explained",
            "nobody answered",
            "the command line, the configuration or the question is wrong",
        ],
    ),
    (
        "top",
        [
            "ended by q or a signal",
            "nobody answers",
            "the command line is wrong, or there is no terminal to draw on",
        ],
    ),
];

/// What the statuses of a command mean.
pub(crate) fn meanings(command: &str) -> &'static Meanings {
    let found = OF_COMMANDS.iter().find(|(name, _)| *name == command);
    found.map_or(&USUAL, |(_, meanings)| meanings)
}

/// The same declaration, with the exit status after each command's help.
pub(crate) fn documented(command: Command) -> Command {
    let with_usual = after(command, &USUAL);
    with_usual.mut_subcommands(|command| {
        let meanings = meanings(command.get_name());
        // Those of the laboratory are commands in their own right.
        let command = match command.get_name() {
            "lab" => command.mut_subcommands(|command| after(command, meanings)),
            _ => command,
        };
        after(command, meanings)
    })
}

fn after(command: Command, meanings: &Meanings) -> Command {
    let mut text = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    if !text.is_empty() {
        text += "\n\n";
    }
    text += "Exit status:";
    for (status, meaning) in meanings.iter().enumerate() {
        // Writing to a String cannot fail.
        let _ = write!(text, "\n  {status}  {meaning}");
    }
    command.after_help(text)
}
