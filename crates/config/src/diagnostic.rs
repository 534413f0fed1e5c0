//! What is wrong with a configuration, where, and what was expected instead.

use std::path::Path;

use serde_json::{Value, json};

use crate::sources::Sources;

/// Diagnostics kept of one file; what comes after is counted, not shown.
pub const MAX_DIAGNOSTICS: usize = 200;

/// A range of bytes of the text, on character boundaries.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub struct Span {
    /// The first byte.
    pub start: usize,
    /// One past the last byte; not below `start`.
    pub end: usize,
}

impl Span {
    /// The bytes `start..end`.
    pub const fn new(start: usize, end: usize) -> Span {
        Span { start, end }
    }

    /// The same bytes of several texts, of which theirs begins at `base`.
    pub(crate) const fn shifted(self, base: usize) -> Span {
        Span { start: self.start + base, end: self.end + base }
    }
}

/// How bad it is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Severity {
    /// The configuration is not used.
    Error,
    /// It is used, and is probably not what was meant.
    Warning,
}

impl Severity {
    /// `error` or `warning`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
        }
    }
}

/// One thing that is wrong.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Diagnostic {
    /// How bad it is.
    pub severity: Severity,
    /// What is wrong, in one line.
    pub message: String,
    /// Where.
    pub span: Span,
    /// Said beside the place: what was expected. May be empty.
    pub label: String,
    /// Other places that have to do with it, each with what it is.
    pub related: Vec<(Span, String)>,
    /// What to do.
    pub help: Option<String>,
    /// It follows from something being absent or from several places together, and so cannot be
    /// trusted when the text as a whole could not be read.
    pub(crate) derived: bool,
}

impl Diagnostic {
    /// An error at `span`.
    pub fn error(span: Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic {
            severity: Severity::Error,
            message: message.into(),
            span,
            label: String::new(),
            related: Vec::new(),
            help: None,
            derived: false,
        }
    }

    /// A warning at `span`.
    pub fn warning(span: Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic { severity: Severity::Warning, ..Diagnostic::error(span, message) }
    }

    /// With words beside the place.
    pub fn label(mut self, label: impl Into<String>) -> Diagnostic {
        self.label = label.into();
        self
    }

    /// With what to do.
    pub fn help(mut self, help: impl Into<String>) -> Diagnostic {
        self.help = Some(help.into());
        self
    }

    /// With what to do, if there is something.
    pub(crate) fn maybe_help(mut self, help: Option<String>) -> Diagnostic {
        self.help = help.or(self.help);
        self
    }

    /// With another place.
    pub fn related(mut self, span: Span, label: impl Into<String>) -> Diagnostic {
        self.related.push((span, label.into()));
        self
    }

    /// As part of several texts, of which this one's begins at `base`.
    pub(crate) fn shift(&mut self, base: usize) {
        self.span = self.span.shifted(base);
        self.related.iter_mut().for_each(|(span, _)| *span = span.shifted(base));
    }

    /// Not to be trusted when the text could not be read as a whole.
    pub(crate) fn derived(mut self) -> Diagnostic {
        self.derived = true;
        self
    }
}

/// Where lines begin, to turn bytes into lines and columns.
pub(crate) struct Lines<'a> {
    text: &'a str,
    starts: Vec<usize>,
}

impl<'a> Lines<'a> {
    /// The text they are lines of.
    pub(crate) fn text(&self) -> &'a str {
        self.text
    }

    pub(crate) fn new(text: &'a str) -> Lines<'a> {
        let breaks = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let starts = std::iter::once(0).chain(breaks.map(|(at, _)| at + 1)).collect();
        Lines { text, starts }
    }

    /// The line that holds a byte, from 0.
    pub(crate) fn line_of(&self, at: usize) -> usize {
        self.starts.partition_point(|start| *start <= at).saturating_sub(1)
    }

    /// A line's bytes without its end.
    pub(crate) fn span(&self, line: usize) -> Span {
        let start = self.starts[line];
        let next = self.starts.get(line + 1).map_or(self.text.len(), |next| next - 1);
        let text = &self.text[start..next];
        Span::new(start, start + text.strip_suffix('\r').unwrap_or(text).len())
    }

    /// Line and column of a byte, both from 1; columns count characters.
    pub(crate) fn position(&self, at: usize) -> (usize, usize) {
        let line = self.line_of(at);
        let start = self.starts[line];
        let before = self.text.get(start..at.min(self.text.len())).unwrap_or("");
        (line + 1, before.chars().count() + 1)
    }
}

/// The diagnostics as JSON: a list of objects with `severity`, `message`, `file`, `line`, `column`,
/// `end_line`, `end_column` (all from 1, columns in characters, the end exclusive), `expected`,
/// `help` and `related`, each of which has a `file` where it is another one.
pub fn to_json(diagnostics: &[Diagnostic], text: &str, origin: &Path) -> String {
    json_of(diagnostics, &Sources::new(text, origin))
}

/// The same for several texts.
pub(crate) fn json_of(diagnostics: &[Diagnostic], sources: &Sources) -> String {
    let lines = sources.lines();
    let place = |span: Span| {
        let index = sources.index_of(span);
        let (path, lines) = &lines[index];
        (index, path.to_string_lossy(), place(lines, sources.local(index, span)))
    };
    let list: Vec<Value> = diagnostics
        .iter()
        .map(|diagnostic| {
            let (file, path, mut value) = place(diagnostic.span);
            value["severity"] = json!(diagnostic.severity.as_str());
            value["file"] = json!(path);
            value["message"] = json!(diagnostic.message);
            if !diagnostic.label.is_empty() {
                value["expected"] = json!(diagnostic.label);
            }
            if let Some(help) = &diagnostic.help {
                value["help"] = json!(help);
            }
            if !diagnostic.related.is_empty() {
                let related = diagnostic.related.iter().map(|(span, label)| {
                    let (other, path, mut value) = place(*span);
                    value["message"] = json!(label);
                    if other != file {
                        value["file"] = json!(path);
                    }
                    value
                });
                value["related"] = related.collect();
            }
            value
        })
        .collect();
    format!("{:#}", Value::Array(list))
}

fn place(lines: &Lines<'_>, span: Span) -> Value {
    let (line, column) = lines.position(span.start);
    let (end_line, end_column) = lines.position(span.end);
    json!({ "line": line, "column": column, "end_line": end_line, "end_column": end_column })
}
