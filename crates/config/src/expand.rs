//! Values from outside: `"${NAME}"`, `"${NAME:-default}"` and `"${file:path}"` in any string.
//!
//! A variable of the environment, or the contents of a file without white space at its end, takes the
//! place of what stands in braces. `$${` is `${` itself; no other `$` means anything. Where a number or
//! a truth value is expected, a string that was put together so is read as one. What was put in is not
//! looked at again and may hold `${`.

use std::ops::Range;
use std::path::Path;

use crate::defaults::{MAX_CONFIG_BYTES, MAX_VALUE_BYTES};
use crate::diagnostic::{Diagnostic, Span};
use crate::files::Files;
use crate::keys::{Kind, Table};
use crate::problem::Problem;
use crate::scalar;
use crate::shape;
use crate::tree::{Entry, Node, Value};

/// Expands every string below these entries. `texts` is what their places refer to; files are relative
/// to `directory`.
pub(crate) fn entries(
    entries: &mut [Entry],
    texts: &str,
    directory: &Path,
    files: &dyn Files,
    (found, room): (&mut Vec<Diagnostic>, &mut usize),
) {
    let mut expander = Expander { texts, directory, files, found, room };
    entries.iter_mut().for_each(|entry| expander.node(&mut entry.node));
}

struct Expander<'a> {
    texts: &'a str,
    directory: &'a Path,
    files: &'a dyn Files,
    found: &'a mut Vec<Diagnostic>,
    /// Bytes that may still be put in.
    room: &'a mut usize,
}

impl Expander<'_> {
    fn node(&mut self, node: &mut Node) {
        match &mut node.value {
            Value::String(text) if text.contains("${") => {
                let mut out = String::with_capacity(text.len());
                for piece in pieces(text) {
                    match piece {
                        Piece::Text(text) => out.push_str(text),
                        Piece::Inside(inside, at) => match self.value(inside) {
                            Ok(value) => match self.room.checked_sub(value.len()) {
                                Some(room) => {
                                    *self.room = room;
                                    out.push_str(&value);
                                }
                                None => {
                                    let message = "everything that is put in is too long";
                                    let size = scalar::show_size(MAX_CONFIG_BYTES as u64);
                                    let expected = format!("expected at most {size} in all");
                                    let whole = node.span;
                                    let problem = Problem::expected(message, expected);
                                    self.push(text, whole, problem.at(at));
                                }
                            },
                            Err(problem) => {
                                let whole = node.span;
                                self.push(text, whole, problem.at(at));
                            }
                        },
                        Piece::Open(at) => {
                            let problem =
                                Problem::expected("this brace is not closed", "expected `}`");
                            let help = "for these characters themselves write $${";
                            let whole = node.span;
                            self.push(text, whole, problem.help(help).at(at));
                        }
                    }
                }
                *text = out;
                node.expanded = true;
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.node(item)),
            Value::Table(entries) => {
                entries.iter_mut().for_each(|entry| self.node(&mut entry.node));
            }
            _ => {}
        }
    }

    /// What takes the place of `${inside}`.
    fn value(&self, inside: &str) -> Result<String, Problem> {
        if let Some(path) = inside.strip_prefix("file:") {
            return self.file(path);
        }
        let (name, default) = match inside.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (inside, None),
        };
        let first = name.bytes().next();
        if first.is_none_or(|byte| byte.is_ascii_digit())
            || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        {
            let expected = "expected ${NAME}, ${NAME:-default} or ${file:path}";
            return Err(Problem::expected("this names no variable", expected)
                .help("for these characters themselves write $${"));
        }
        match (self.files.variable(name), default) {
            (Some(Ok(value)), None) => Ok(value),
            // As in a shell: what is empty is as good as not set.
            (Some(Ok(value)), Some(_)) if !value.is_empty() => Ok(value),
            (Some(Err(_)), _) => {
                let message = format!("the environment variable {name} is no text");
                Err(Problem::expected(message, "expected UTF-8"))
            }
            (_, Some(default)) => Ok(default.to_owned()),
            (None, None) => {
                let message = format!("the environment variable {name} is not set");
                Err(Problem::expected(message, "expected a variable that is set")
                    .help(format!("set it, or give a default: ${{{name}:-default}}")))
            }
        }
    }

    fn file(&self, path: &str) -> Result<String, Problem> {
        let full = self.directory.join(path);
        let shown = full.display();
        let expected = "expected a readable file";
        if path.is_empty() || path.contains('\0') {
            return Err(Problem::expected("this is no path", expected));
        }
        let bytes =
            self.files.read(&full, MAX_VALUE_BYTES).map_err(|error| match error.kind() {
                std::io::ErrorKind::NotFound => {
                    Problem::expected(format!("there is no file {shown}"), expected)
                        .help("paths are relative to the file they stand in")
                }
                std::io::ErrorKind::FileTooLarge => {
                    let size = scalar::show_size(MAX_VALUE_BYTES as u64);
                    Problem::expected(format!("{shown} is larger than {size}"), expected)
                }
                _ => Problem::expected(format!("{shown} cannot be read: {error}"), expected),
            })?;
        let mut text = String::from_utf8(bytes).map_err(|_| {
            Problem::expected(format!("{shown} is no text"), "expected a text of UTF-8")
        })?;
        text.truncate(text.trim_end().len());
        Ok(text)
    }

    /// Reports what is wrong with a part of a string. The part can be pointed at when the string is
    /// written without escapes.
    fn push(&mut self, text: &str, whole: Span, problem: Problem) {
        let raw = self.texts.get(whole.start..whole.end).unwrap_or_default();
        let inner = raw.get(1..raw.len().saturating_sub(1)).unwrap_or_default();
        let span = match problem.at {
            Some(at) if inner == text => {
                Span::new(whole.start + 1 + at.start, whole.start + 1 + at.end)
            }
            _ => whole,
        };
        let error = Diagnostic::error(span, problem.message).label(problem.expected);
        self.found.push(error.maybe_help(problem.help));
    }
}

/// A piece of a string.
#[derive(PartialEq, Eq, Debug)]
enum Piece<'a> {
    Text(&'a str),
    /// What stands in braces, and where it stands with them.
    Inside(&'a str, Range<usize>),
    /// A brace without its end.
    Open(Range<usize>),
}

fn pieces(text: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut at = 0;
    while let Some(found) = text[at..].find("${").map(|found| at + found) {
        if found > at && text.as_bytes()[found - 1] == b'$' {
            // Without the first `$` of `$${`.
            pieces.push(Piece::Text(&text[at..found - 1]));
            pieces.push(Piece::Text("${"));
            at = found + 2;
            continue;
        }
        pieces.push(Piece::Text(&text[at..found]));
        let Some(end) = text[found..].find('}').map(|end| found + end) else {
            pieces.push(Piece::Open(found..text.len()));
            return pieces;
        };
        pieces.push(Piece::Inside(&text[found + 2..end], found..end + 1));
        at = end + 1;
    }
    pieces.push(Piece::Text(&text[at..]));
    pieces
}

/// Reads strings that were expanded as what the vocabulary expects in their places.
pub(crate) fn fit(entries: &mut [Entry], table: &'static Table) {
    for entry in entries {
        if let Some(key) = table.key(&entry.key) {
            fit_node(&mut entry.node, &key.kind);
        }
    }
}

fn fit_node(node: &mut Node, kind: &'static Kind) {
    match (&mut node.value, kind) {
        (Value::String(text), _) if node.expanded && !takes_text(kind, text) => {
            if let Some(value) = scalars(text).find(|value| shape::takes(kind, value)) {
                node.value = value;
            }
        }
        (Value::Array(items), Kind::List(inner) | Kind::OneOrMany(inner)) => {
            items.iter_mut().for_each(|item| fit_node(item, inner));
        }
        (Value::Table(entries), Kind::Table(table)) => fit(entries, table),
        (Value::Table(entries), Kind::Map(map)) => {
            entries.iter_mut().for_each(|entry| fit_node(&mut entry.node, &map.value));
        }
        (Value::Table(entries), Kind::Algorithm) => {
            for node in entries.iter_mut().map(|entry| &mut entry.node) {
                if let (Value::String(text), true) = (&node.value, node.expanded)
                    && let Some(value) = scalars(text).next()
                {
                    node.value = value;
                }
            }
        }
        (Value::Array(_) | Value::Table(_), Kind::Either(kinds)) => {
            if let Some(kind) = kinds.iter().find(|kind| shape::takes(kind, &node.value)) {
                fit_node(node, kind);
            }
        }
        (Value::Table(_), Kind::OneOrMany(inner)) => fit_node(node, inner),
        _ => {}
    }
}

/// Whether a text can stay one.
fn takes_text(kind: &Kind, text: &str) -> bool {
    match kind {
        Kind::Text(_) | Kind::Duration | Kind::DurationWithin { .. } | Kind::Algorithm => true,
        Kind::Choice(choices) => choices.contains(&text),
        Kind::Size { .. } => scalar::size(text).is_ok(),
        Kind::OrUnlimited(inner) => text == "unlimited" || takes_text(inner, text),
        Kind::OneOrMany(inner) => takes_text(inner, text),
        Kind::Either(kinds) => kinds.iter().any(|kind| takes_text(kind, text)),
        _ => false,
    }
}

/// What else a text can be read as.
fn scalars(text: &str) -> impl Iterator<Item = Value> + use<> {
    let text = text.trim();
    let truth = text.parse().ok().map(Value::Boolean);
    let integer = text.parse().ok().map(Value::Integer);
    let float = text.parse().ok().filter(|number: &f64| number.is_finite()).map(Value::Float);
    [truth, integer, float].into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::{Piece, pieces};

    #[test]
    fn only_braces_after_a_dollar_mean_anything() {
        let text = |text: &str| -> String {
            pieces(text)
                .into_iter()
                .map(|piece| match piece {
                    Piece::Text(text) => text.to_owned(),
                    Piece::Inside(inside, at) => {
                        assert_eq!(&text[at], format!("${{{inside}}}"));
                        format!("<{inside}>")
                    }
                    Piece::Open(at) => format!("<{}", &text[at]),
                })
                .collect()
        };
        for (written, expected) in [
            ("", ""),
            ("${A}", "<A>"),
            ("a${A}b${B}", "a<A>b<B>"),
            ("${A:-x}${file:a b}", "<A:-x><file:a b>"),
            ("$${A}", "${A}"),
            ("$$${A}", "$${A}"),
            ("${A}$${B}", "<A>${B}"),
            ("$1 $a $$ {host} /new/$1", "$1 $a $$ {host} /new/$1"),
            ("ü${A}ü", "ü<A>ü"),
            ("a${", "a<${"),
            ("${A", "<${A"),
            ("${}", "<>"),
        ] {
            assert_eq!(text(written), expected, "{written}");
        }
    }
}
