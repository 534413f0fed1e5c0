//! TOML as a tree whose every key and value knows its place.
//!
//! What the parser could not read is left out of the tree
//! and reported; the rest is still there, so that one run finds what else is wrong.

use serde_json::Number;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::diagnostic::{Diagnostic, Lines, MAX_DIAGNOSTICS, Span};
use crate::syntax::{Improver, Repaired};

/// A value and its place.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) span: Span,
    pub(crate) value: Value,
    /// Something from outside was put into the string that is or was here.
    pub(crate) expanded: bool,
}

#[derive(Clone, Debug)]
pub(crate) enum Value {
    String(String),
    Integer(i64),
    Float(f64),
    Boolean(bool),
    Datetime(String),
    Array(Vec<Node>),
    Table(Vec<Entry>),
}

/// A key with its value, in the order of the text.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) key_span: Span,
    pub(crate) node: Node,
}

impl Entry {
    /// As part of several texts, of which this one begins at `base`.
    pub(crate) fn shift(&mut self, base: usize) {
        self.key_span = self.key_span.shifted(base);
        self.node.shift(base);
    }
}

impl Node {
    fn shift(&mut self, base: usize) {
        self.span = self.span.shifted(base);
        match &mut self.value {
            Value::Array(items) => items.iter_mut().for_each(|item| item.shift(base)),
            Value::Table(entries) => entries.iter_mut().for_each(|entry| entry.shift(base)),
            _ => {}
        }
    }
}

impl Value {
    /// The TOML type, as a message says it.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Value::String(_) => "a string",
            Value::Integer(_) => "an integer",
            Value::Float(_) => "a float",
            Value::Boolean(_) => "a boolean",
            Value::Datetime(_) => "a date or time",
            Value::Array(_) => "an array",
            Value::Table(_) => "a table",
        }
    }

    /// The same data as JSON. Numbers that JSON does not know become null.
    pub(crate) fn to_json(&self) -> serde_json::Value {
        match self {
            Value::String(text) | Value::Datetime(text) => text.clone().into(),
            Value::Integer(number) => (*number).into(),
            Value::Float(number) => Number::from_f64(*number).into(),
            Value::Boolean(truth) => (*truth).into(),
            Value::Array(items) => items.iter().map(|item| item.value.to_json()).collect(),
            Value::Table(entries) => serde_json::Value::Object(
                entries
                    .iter()
                    .map(|entry| (entry.key.clone(), entry.node.value.to_json()))
                    .collect(),
            ),
        }
    }
}

/// Reads a text; the entries of its root, and what could not be read.
pub(crate) fn read(text: &str) -> (Vec<Entry>, Vec<Diagnostic>) {
    let (root, errors) = DeTable::parse_recoverable(text);
    if errors.is_empty() {
        let mut converter = Converter { place: |at| at, diagnostics: Vec::new() };
        let entries = converter.table(root.get_ref());
        return (entries, converter.diagnostics);
    }
    drop(root);
    let repaired = Repaired::new(text);
    let (root, errors) = DeTable::parse_recoverable(&repaired.text);
    let place = |at: usize| repaired.original(at).min(text.len());
    let mut diagnostics = repaired.errors.clone();
    let mut improver = Improver::new(&repaired.text);
    for error in errors.iter().take(MAX_DIAGNOSTICS) {
        let span = error.span().unwrap_or(repaired.text.len()..repaired.text.len());
        let mut error = improver.improve(error.message(), Span::new(span.start, span.end));
        error.span = Span::new(place(error.span.start), place(error.span.end));
        for (span, _) in &mut error.related {
            *span = Span::new(place(span.start), place(span.end));
        }
        diagnostics.push(error);
    }
    // A parser that loses its footing says more than once that it did: once a line is enough.
    let lines = Lines::new(text);
    diagnostics.sort_by_key(|diagnostic| diagnostic.span);
    diagnostics.dedup_by_key(|diagnostic| lines.line_of(diagnostic.span.start));
    let mut converter = Converter { place, diagnostics };
    let entries = converter.table(root.get_ref());
    (entries, converter.diagnostics)
}

/// From the parser's tree to ours.
struct Converter<P: Fn(usize) -> usize> {
    /// From a place in what was parsed to the place in the text.
    place: P,
    diagnostics: Vec<Diagnostic>,
}

impl<P: Fn(usize) -> usize> Converter<P> {
    fn span(&self, range: std::ops::Range<usize>) -> Span {
        Span::new((self.place)(range.start), (self.place)(range.end))
    }

    fn table(&mut self, table: &DeTable<'_>) -> Vec<Entry> {
        let mut entries: Vec<Entry> = table
            .iter()
            .filter_map(|(key, value)| {
                let key_span = self.span(key.span());
                Some(Entry { key: key.get_ref().to_string(), key_span, node: self.node(value)? })
            })
            .collect();
        entries.sort_by_key(|entry| entry.key_span);
        entries
    }

    fn node(&mut self, value: &Spanned<DeValue<'_>>) -> Option<Node> {
        let span = self.span(value.span());
        let value = match value.get_ref() {
            DeValue::String(string) => Value::String(string.to_string()),
            DeValue::Integer(integer) => {
                let Ok(number) = i64::from_str_radix(integer.as_str(), integer.radix()) else {
                    self.out_of_range(span);
                    return None;
                };
                Value::Integer(number)
            }
            DeValue::Float(float) => Value::Float(float.as_str().parse().ok()?),
            DeValue::Boolean(truth) => Value::Boolean(*truth),
            DeValue::Datetime(datetime) => Value::Datetime(datetime.to_string()),
            DeValue::Array(array) => {
                Value::Array(array.iter().filter_map(|item| self.node(item)).collect())
            }
            DeValue::Table(table) => Value::Table(self.table(table)),
        };
        Some(Node { span, value, expanded: false })
    }

    /// An integer that does not fit, unless the parser has already refused it.
    fn out_of_range(&mut self, span: Span) {
        let known =
            |known: &Diagnostic| known.span.start <= span.end && span.start <= known.span.end;
        if !self.diagnostics.iter().any(known) {
            let error = Diagnostic::error(span, "this integer is out of range");
            self.diagnostics.push(error.label(format!("expected at most {}", i64::MAX)));
        }
    }
}
