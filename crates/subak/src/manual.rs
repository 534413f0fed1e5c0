//! `subak man` and `subak completions`: manual pages and shell completions, from the declaration that
//! the command line is parsed by, and subak.toml(5) from the vocabulary that configurations are.

mod configuration;

use std::io;
use std::path::Path;

use clap::Command;
use clap_complete::Shell;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, roman};

use crate::cli::{FAILED, OK, WRONG};
use crate::files;

/// The page of the configuration, as `subak man` takes it.
pub(crate) const CONFIGURATION: &str = "subak.toml";

const MANUAL: &str = "Subak";
const SOURCE: &str = concat!("subak ", env!("CARGO_PKG_VERSION"));

/// Prints the page of a command, or of the configuration; without one that of `subak` itself.
pub(crate) fn man(command: Command, page: Option<&str>) -> u8 {
    let pages = pages(command);
    let wanted = match page {
        None => "subak.1".to_owned(),
        Some(CONFIGURATION) => "subak.toml.5".to_owned(),
        Some(name) => format!("subak-{name}.1"),
    };
    match pages.iter().find(|(name, _)| *name == wanted) {
        Some((_, text)) => files::told(files::print(text)),
        None => {
            let known = pages.iter().filter_map(|(name, _)| name.strip_prefix("subak-"));
            let known: Vec<_> = known.filter_map(|name| name.strip_suffix(".1")).collect();
            files::tell(&format!(
                "error: there is no page {}\n  one of {}, {CONFIGURATION}\n",
                page.unwrap_or_default(),
                known.join(", ")
            ));
            WRONG
        }
    }
}

/// Writes every page to a directory.
pub(crate) fn man_into(command: Command, directory: &Path) -> u8 {
    for (name, text) in pages(command) {
        let path = directory.join(name);
        if let Err(error) = std::fs::write(&path, text) {
            files::tell(&format!("error: cannot write {}: {error}\n", path.display()));
            return FAILED;
        }
    }
    OK
}

/// Prints the completions for a shell.
pub(crate) fn completions(mut command: Command, shell: Shell) -> u8 {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut command, "subak", &mut text);
    files::told(files::print(&String::from_utf8_lossy(&text)))
}

/// All pages, by the names of their files.
fn pages(mut command: Command) -> Vec<(String, String)> {
    command.build();
    let mut pages = vec![("subak.toml.5".to_owned(), configuration::page(SOURCE, MANUAL))];
    let mut next = vec![command];
    while let Some(command) = next.pop() {
        next.extend(command.get_subcommands().filter(|one| one.get_name() != "help").cloned());
        let name = command.get_display_name().unwrap_or(command.get_name());
        let file = format!("{name}.1");
        pages.push((file, page(command)));
    }
    pages.sort();
    pages
}

/// The page of one command.
fn page(command: Command) -> String {
    let after = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let has_commands = command.has_subcommands();
    let man = Man::new(command).section("1").source(SOURCE).manual(MANUAL);
    let mut out = Vec::new();
    let written = || -> io::Result<Vec<u8>> {
        man.render_title(&mut out)?;
        man.render_name_section(&mut out)?;
        man.render_synopsis_section(&mut out)?;
        man.render_description_section(&mut out)?;
        man.render_options_section(&mut out)?;
        if has_commands {
            man.render_subcommands_section(&mut out)?;
        }
        sections(&after).to_writer(&mut out)?;
        Ok(out)
    };
    // Writing to memory cannot fail.
    String::from_utf8_lossy(&written().unwrap_or_default()).into_owned()
}

/// What follows the options in `--help`, block by block: `Examples:` and indented lines below it become
/// a section whose lines stay as they are, everything else a paragraph.
fn sections(text: &str) -> Roff {
    let mut roff = Roff::new();
    let mut has_notes = false;
    for block in text.split("\n\n").filter(|block| !block.trim().is_empty()) {
        let mut lines = block.lines();
        let title = lines.clone().next().and_then(|first| first.strip_suffix(':'));
        if let Some(title) = title {
            lines.next();
            roff.control("SH", [title.to_uppercase().as_str()]);
            roff.control("nf", []);
            for line in lines {
                roff.text([roman(line.strip_prefix("  ").unwrap_or(line))]);
            }
            roff.control("fi", []);
            continue;
        }
        match has_notes {
            false => roff.control("SH", ["NOTES"]),
            true => roff.control("PP", []),
        };
        has_notes = true;
        roff.text([roman(block)]);
    }
    roff
}
