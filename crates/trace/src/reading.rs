//! How a log is read, line by line: its format is given, or found by its first lines.

use std::fmt;
use std::io::{self, BufRead, Cursor};
use std::path::{Path, PathBuf};

use crate::format::Format;
use crate::pattern::Stamp;
use crate::source::{self, Next};

/// Lines that are looked at to find the format.
const FIRST_LINES: usize = 100;

/// Of a line that is shown.
const SHOWN: usize = 300;

/// What is asked of a log.
#[derive(Clone, Default, Debug)]
pub struct Reading {
    /// None: found out.
    pub format: Option<Format>,
    /// None: as the format has it.
    pub stamp: Option<Stamp>,
    /// None: the pool with the most requests.
    pub pool: Option<String>,
}

/// Why a log cannot be read.
#[derive(Debug)]
pub enum LogError {
    /// The file.
    Io(PathBuf, io::Error),
    /// No line fits.
    Format(String),
    /// There is nothing in it.
    Empty(String),
}

impl fmt::Display for LogError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LogError::Io(path, error) => write!(f, "{}: {error}", path.display()),
            LogError::Format(why) | LogError::Empty(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for LogError {}

/// A log whose lines can be read.
pub(crate) struct Opened {
    /// As errors call it.
    name: PathBuf,
    from: Box<dyn BufRead>,
}

impl Opened {
    /// A file; `-` is standard input.
    pub(crate) fn file(path: &Path) -> Result<Opened, LogError> {
        let failed = |error| LogError::Io(path.to_owned(), error);
        Ok(Opened { name: path.to_owned(), from: source::open(path).map_err(failed)? })
    }

    /// What is in memory, plain or compressed.
    pub(crate) fn bytes(bytes: Vec<u8>) -> Result<Opened, LogError> {
        let name = PathBuf::from("the log");
        match source::decompressed(Cursor::new(bytes)) {
            Ok(from) => Ok(Opened { name, from }),
            Err(error) => Err(LogError::Io(name, error)),
        }
    }
}

/// Hands every line of a log to `take`: whether it is whole, how it is written, and what its time says.
/// `seen` hears now and then of how many lines there were. Says the format.
pub(crate) fn each_line(
    log: Opened,
    reading: &Reading,
    mut seen: impl FnMut(u64),
    mut take: impl FnMut(&[u8], bool, &Format, Stamp),
) -> Result<Format, LogError> {
    let Opened { name, mut from } = log;
    let failed = |error| LogError::Io(name.clone(), error);
    let mut first = Vec::new();
    let mut line = Vec::new();
    let mut format = reading.format.clone();
    let mut is_over = false;
    while !is_over && format.is_none() {
        match source::next_line(&mut *from, &mut line).map_err(failed)? {
            Next::End => is_over = true,
            Next::Line | Next::TooLong => first.push(line.clone()),
        }
        if first.len() == FIRST_LINES || is_over {
            let found = Format::detect(first.iter().map(Vec::as_slice));
            format = Some(found.ok_or_else(|| no_format(&first))?);
        }
    }
    let format = format.ok_or_else(|| LogError::Empty("the log is empty".into()))?;
    let stamp = reading.stamp.unwrap_or(format.stamp());
    for line in &first {
        take(line, true, &format, stamp);
    }
    let mut lines = first.len() as u64;
    while !is_over {
        match source::next_line(&mut *from, &mut line).map_err(failed)? {
            Next::End => is_over = true,
            Next::Line => take(&line, true, &format, stamp),
            Next::TooLong => take(&line, false, &format, stamp),
        }
        lines += 1;
        if lines.is_multiple_of(16_384) {
            seen(lines);
        }
    }
    Ok(format)
}

/// There is no line that can be used; the first of them, with its number.
pub(crate) fn nothing_fits(format: &Format, first: Option<&(u64, String)>) -> LogError {
    let Some((number, line)) = first else {
        return LogError::Empty("the log is empty".to_owned());
    };
    LogError::Format(format!(
        "no line fits the format ({}) and tells when the request was. Line {number}:\n  {line}",
        format.name()
    ))
}

fn no_format(first: &[Vec<u8>]) -> LogError {
    let Some(line) = first.iter().find(|line| !line.is_empty()) else {
        return LogError::Empty("the log is empty".into());
    };
    LogError::Format(format!(
        "this log is in none of the known formats (Subak's JSON, combined, common, HAProxy's \
         httplog). Its first line:\n  {}\nGive its format with --format, in the words of nginx's \
         log_format or of HAProxy's log-format.",
        shown(line)
    ))
}

pub(crate) fn shown(line: &[u8]) -> String {
    let end = line.len().min(SHOWN);
    let text = String::from_utf8_lossy(&line[..end]);
    text.chars().map(|letter| if letter.is_control() { '\u{fffd}' } else { letter }).collect()
}
