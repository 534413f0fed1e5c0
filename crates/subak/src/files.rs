//! `subak check`, `fmt` and `schema`: configurations as files.

use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use subak_config::{Outcome, Severity};

use crate::cli::{FAILED, OK, WRONG};

/// Reads a configuration's text; `-` is standard input.
///
/// # Errors
/// A message that names the file and says what to do.
pub(crate) fn read(path: &Path) -> Result<String, String> {
    let read = if path == Path::new("-") {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).map(|_| text)
    } else {
        std::fs::read_to_string(path)
    };
    read.map_err(|error| {
        let remedy = match error.kind() {
            std::io::ErrorKind::NotFound => {
                "\n  is that the right path? docs/configuration.md has a first configuration to copy"
            }
            std::io::ErrorKind::PermissionDenied => "\n  who runs subak must be able to read it: `chgrp` it to that user's group, `chmod g+r` it",
            std::io::ErrorKind::InvalidData => "\n  a configuration is text in UTF-8",
            _ => "",
        };
        format!("cannot read {}: {error}{remedy}", path.display())
    })
}

/// Prints the JSON Schema.
pub(crate) fn schema() -> u8 {
    told(print(&format!("{}\n", subak_config::schema())))
}

/// Writes to standard output. That nobody reads it any more (`subak schema | head`) is no error.
pub(crate) fn print(text: &str) -> Result<(), String> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(format!("cannot write to standard output: {error}"))
        }
        _ => Ok(()),
    }
}

/// A report's columns: those of the terminal that standard output is, or of `COLUMNS`. Without both, in a
/// pipe, lines stay whole.
pub(crate) fn columns() -> usize {
    let said = std::env::var("COLUMNS").ok().and_then(|text| text.trim().parse::<usize>().ok());
    let of_terminal = || {
        let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
        Some(usize::from(size.ws_col))
    };
    let found = said.or_else(of_terminal).filter(|columns| *columns > 0);
    found.map_or(usize::MAX, |columns| columns.max(NARROWEST))
}

/// Columns below which nothing is wrapped any further.
const NARROWEST: usize = 40;

/// The exit status, after telling what failed.
pub(crate) fn told(done: Result<(), String>) -> u8 {
    match done {
        Ok(()) => OK,
        Err(message) => {
            tell(&format!("error: {message}\n"));
            FAILED
        }
    }
}

/// Writes to standard error; where that takes nothing, the exit status has to do.
pub(crate) fn tell(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

/// Checks files and prints every finding.
pub(crate) fn check(paths: &[PathBuf], json: bool, color: bool) -> u8 {
    let mut status = OK;
    for path in paths {
        let text = match read(path) {
            Ok(text) => text,
            Err(message) => {
                status = status.max(told(Err(message)));
                continue;
            }
        };
        let outcome = subak_config::parse(&text, path);
        let Outcome { config, diagnostics, sources } = &outcome;
        let printed = if json {
            print(&format!("{}\n", sources.to_json(diagnostics)))
        } else {
            tell(&outcome.render(color));
            match (config, subak_config::summary(diagnostics)) {
                (_, Some(summary)) => {
                    tell(&format!("{}: {summary}\n", path.display()));
                    Ok(())
                }
                (Some(config), None) => print(&format!(
                    "{}: ok ({} listeners, {} pools)\n",
                    path.display(),
                    config.listeners.len(),
                    config.pools.len()
                )),
                (None, None) => Ok(()),
            }
        };
        status = status.max(told(printed));
        if diagnostics.iter().any(|finding| finding.severity == Severity::Error) {
            status = status.max(WRONG);
        }
    }
    status
}

/// Formats files in place, or says which are not formatted.
pub(crate) fn format(paths: &[PathBuf], check: bool) -> u8 {
    let status = |path: &PathBuf| match format_one(path, check) {
        Ok(true) => OK,
        Ok(false) => FAILED,
        Err(NotFormatted::Failed(message)) => told(Err(message)),
        Err(NotFormatted::NotToml(message)) => {
            tell(&format!("error: {message}\n"));
            WRONG
        }
    };
    paths.iter().map(status).max().unwrap_or(OK)
}

enum NotFormatted {
    Failed(String),
    NotToml(String),
}

/// False when the file is to be formatted and `check` forbids it.
fn format_one(path: &Path, check: bool) -> Result<bool, NotFormatted> {
    let text = read(path).map_err(NotFormatted::Failed)?;
    let formatted = subak_config::format(&text).map_err(|diagnostics| {
        let rendered = subak_config::render(&diagnostics, &text, path, false);
        let message = format!("{} is not TOML; nothing was changed\n{rendered}", path.display());
        NotFormatted::NotToml(message.trim_end().to_owned())
    })?;
    if path == Path::new("-") && !check {
        print(&formatted).map_err(NotFormatted::Failed)?;
        return Ok(true);
    }
    if formatted == text {
        return Ok(true);
    }
    if check {
        print(&format!("{}\n", path.display())).map_err(NotFormatted::Failed)?;
        return Ok(false);
    }
    replace(path, &formatted).map_err(|error| {
        NotFormatted::Failed(format!("cannot write {}: {error}", path.display()))
    })?;
    Ok(true)
}

/// Writes a file as a whole or not at all: a full disk leaves the old one. Of an old one owner and
/// permissions stay; before they are set nobody else can read the new one.
pub(crate) fn replace(path: &Path, text: &str) -> io::Result<()> {
    let (path, before) = match std::fs::canonicalize(path) {
        Ok(path) => {
            let before = std::fs::metadata(&path)?;
            (path, Some(before))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => (path.to_owned(), None),
        Err(error) => return Err(error),
    };
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.new", std::process::id()));
    let beside = path.with_file_name(name);
    let mode = if before.is_some() { 0o600 } else { 0o666 };
    let write = || {
        let mut options = std::fs::OpenOptions::new();
        let mut file = options.write(true).create_new(true).mode(mode).open(&beside)?;
        file.write_all(text.as_bytes())?;
        if let Some(before) = &before {
            let after = file.metadata()?;
            if (after.uid(), after.gid()) != (before.uid(), before.gid()) {
                std::os::unix::fs::fchown(&file, Some(before.uid()), Some(before.gid()))?;
            }
            file.set_permissions(before.permissions())?;
        }
        // A disk may find out only now that it is full.
        file.sync_all()?;
        std::fs::rename(&beside, &path)
    };
    let written = write();
    if written.is_err() {
        let _ = std::fs::remove_file(&beside);
    }
    written
}
