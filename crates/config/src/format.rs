//! One layout for every configuration: `subak fmt`.
//!
//! Comments, the order of keys and what the text says stay; spacing, quotes, blank lines and the
//! breaking of arrays become canonical:
//! - `key = value`, without indentation; bare keys where a key may be bare;
//! - one empty line before a table's header and its comment, none after it, never two in a row;
//! - `"…"` where a `'…'` string has nothing that needs escaping;
//! - an array on one line where it fits into [`MAX_COLUMNS`], else an item a line and a comma after
//!   the last; one whose first item was on a line of its own stays broken.
//!
//! Formatting a formatted text changes nothing.

use std::borrow::Cow;

use toml_parser::parser::{Event, EventKind, parse_document};
use toml_parser::{Raw, Source};

use crate::diagnostic::Diagnostic;
use crate::tree;

/// The longest line that an array is put on.
pub const MAX_COLUMNS: usize = 100;
const INDENT: usize = 4;

/// The text in canonical layout.
///
/// # Errors
/// What keeps the text from being TOML. Whether it is a valid configuration does not matter.
pub fn format(text: &str) -> Result<String, Vec<Diagnostic>> {
    let (_, errors) = tree::read(text);
    if !errors.is_empty() {
        return Err(errors);
    }
    let source = Source::new(text);
    let mut events: Vec<Event> = Vec::new();
    parse_document(&source.lex().into_vec(), &mut events, &mut ());
    let mut reader = Reader { source, events: &events, at: 0 };
    Ok(layout(&reader.lines()))
}

/// A line of a document, or several when a value is broken.
enum Line {
    Blank,
    Comment(String),
    /// `[…]` or `[[…]]` and a comment after it.
    Header(String, Option<String>),
    /// Key, value and a comment after it.
    Pair(String, Value, Option<String>),
}

enum Value {
    /// As it is written.
    Scalar(String),
    Array(Items),
    Table(Items),
}

/// What stands between brackets or braces.
struct Items {
    list: Vec<Item>,
    /// A line break came directly after the opening.
    broken: bool,
}

enum Item {
    Blank,
    /// On a line of its own.
    Comment(String),
    /// Key (in tables), value and a comment after it.
    Value(Option<String>, Value, Option<String>),
}

struct Reader<'a> {
    source: Source<'a>,
    events: &'a [Event],
    at: usize,
}

impl<'a> Reader<'a> {
    fn next(&mut self) -> Option<&'a Event> {
        let event = self.events.get(self.at)?;
        self.at += 1;
        Some(event)
    }

    fn raw(&self, event: &Event) -> Option<Raw<'a>> {
        self.source.get(event)
    }

    fn comment(&self, event: &Event) -> String {
        self.raw(event).map_or("", |raw| raw.as_str()).trim_end().to_string()
    }

    fn lines(&mut self) -> Vec<Line> {
        let mut lines = Vec::new();
        let mut key = String::new();
        let mut fresh = true;
        while let Some(event) = self.next() {
            match event.kind() {
                EventKind::Newline => {
                    if fresh {
                        lines.push(Line::Blank);
                    }
                    fresh = true;
                    continue;
                }
                EventKind::Whitespace => continue,
                EventKind::Comment => {
                    let comment = self.comment(event);
                    match lines.last_mut() {
                        Some(Line::Header(_, after) | Line::Pair(_, _, after)) if !fresh => {
                            *after = Some(comment);
                        }
                        _ => lines.push(Line::Comment(comment)),
                    }
                }
                EventKind::SimpleKey | EventKind::KeySep => key.push_str(&self.key(event)),
                EventKind::StdTableClose => {
                    lines.push(Line::Header(format!("[{}]", std::mem::take(&mut key)), None));
                }
                EventKind::ArrayTableClose => {
                    lines.push(Line::Header(format!("[[{}]]", std::mem::take(&mut key)), None));
                }
                EventKind::Scalar | EventKind::ArrayOpen | EventKind::InlineTableOpen => {
                    let value = self.value(event);
                    lines.push(Line::Pair(std::mem::take(&mut key), value, None));
                }
                _ => {}
            }
            fresh = false;
        }
        lines
    }

    /// A key, or the dot between two.
    fn key(&self, event: &Event) -> String {
        let Some(raw) = self.raw(event) else { return String::new() };
        if event.kind() == EventKind::KeySep {
            return ".".to_string();
        }
        let mut decoded = Cow::Borrowed("");
        raw.decode_key(&mut decoded, &mut ());
        let bare = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
        let begins =
            decoded.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_');
        if begins && decoded.bytes().all(bare) {
            return decoded.into_owned();
        }
        plain_quotes(raw.as_str(), &decoded)
    }

    fn value(&mut self, event: &Event) -> Value {
        match event.kind() {
            EventKind::ArrayOpen => Value::Array(self.items(EventKind::ArrayClose)),
            EventKind::InlineTableOpen => Value::Table(self.items(EventKind::InlineTableClose)),
            _ => Value::Scalar(self.scalar(event)),
        }
    }

    fn scalar(&self, event: &Event) -> String {
        let Some(raw) = self.raw(event) else { return String::new() };
        let mut decoded = Cow::Borrowed("");
        let _kind = raw.decode_scalar(&mut decoded, &mut ());
        plain_quotes(raw.as_str(), &decoded)
    }

    fn items(&mut self, close: EventKind) -> Items {
        let mut list: Vec<Item> = Vec::new();
        let mut key = String::new();
        let (mut broken, mut started, mut fresh) = (false, false, false);
        while let Some(event) = self.next() {
            match event.kind() {
                kind if kind == close => break,
                EventKind::Newline => {
                    broken |= !started;
                    if fresh && matches!(list.last(), Some(Item::Value(..) | Item::Comment(_))) {
                        list.push(Item::Blank);
                    }
                    fresh = true;
                    started = true;
                    continue;
                }
                EventKind::Comment => {
                    let comment = self.comment(event);
                    match list.last_mut() {
                        Some(Item::Value(_, _, after @ None)) if !fresh && key.is_empty() => {
                            *after = Some(comment);
                        }
                        _ => list.push(Item::Comment(comment)),
                    }
                }
                EventKind::SimpleKey | EventKind::KeySep => key.push_str(&self.key(event)),
                EventKind::Scalar | EventKind::ArrayOpen | EventKind::InlineTableOpen => {
                    let value = self.value(event);
                    let key = (!key.is_empty()).then(|| std::mem::take(&mut key));
                    list.push(Item::Value(key, value, None));
                }
                _ => continue,
            }
            started = true;
            fresh = false;
        }
        if let Some(Item::Blank) = list.last() {
            list.pop();
        }
        Items { list, broken }
    }
}

/// `'…'` as `"…"` when nothing in it needs an escape.
fn plain_quotes(raw: &str, decoded: &str) -> String {
    let needs_escape = |character: char| matches!(character, '"' | '\\') || character.is_control();
    if raw.starts_with('\'') && !raw.starts_with("'''") && !decoded.contains(needs_escape) {
        return format!("\"{decoded}\"");
    }
    raw.to_string()
}

fn layout(lines: &[Line]) -> String {
    let mut blocks: Vec<Option<String>> = Vec::new();
    for line in lines {
        match line {
            Line::Blank => {
                if !matches!(blocks.last(), None | Some(None)) {
                    blocks.push(None);
                }
            }
            Line::Comment(comment) => blocks.push(Some(comment.clone())),
            Line::Header(header, after) => {
                // Comments directly above belong to the table.
                let is_comment = |block: &Option<String>| {
                    block.as_ref().is_some_and(|block| block.starts_with('#'))
                };
                let above = blocks.iter().rev().take_while(|block| is_comment(block)).count();
                let at = blocks.len() - above;
                if at > 0 && blocks[at - 1].is_some() {
                    blocks.insert(at, None);
                }
                blocks.push(Some(with_comment(header.clone(), after.as_deref())));
            }
            Line::Pair(key, value, after) => {
                let mut out = format!("{key} = ");
                put(&mut out, value, 0);
                blocks.push(Some(with_comment(out, after.as_deref())));
            }
        }
    }
    while let Some(None) = blocks.last() {
        blocks.pop();
    }
    let mut out = String::new();
    let mut after_header = false;
    for block in &blocks {
        match block {
            None if after_header => {}
            None => out.push('\n'),
            Some(block) => {
                out.push_str(block);
                out.push('\n');
            }
        }
        after_header = block.as_ref().is_some_and(|block| block.starts_with('['));
    }
    out
}

fn with_comment(mut line: String, comment: Option<&str>) -> String {
    if let Some(comment) = comment {
        line.push(' ');
        line.push_str(comment);
    }
    line
}

/// Appends a value to a line that is indented by `indent`.
fn put(out: &mut String, value: &Value, indent: usize) {
    if let Some(flat) = flat(value)
        && (columns(out) + columns(&flat) <= MAX_COLUMNS || !can_break(value))
    {
        out.push_str(&flat);
        return;
    }
    match value {
        Value::Scalar(raw) => out.push_str(raw),
        Value::Array(items) => put_broken(out, items, ['[', ']'], indent),
        Value::Table(items) if items.must_break() => put_broken(out, items, ['{', '}'], indent),
        Value::Table(items) => {
            let mut separator = "{ ";
            for item in &items.list {
                let Item::Value(key, value, _) = item else { continue };
                out.push_str(separator);
                if let Some(key) = key {
                    out.push_str(&format!("{key} = "));
                }
                put(out, value, indent);
                separator = ", ";
            }
            out.push_str(" }");
        }
    }
}

fn put_broken(out: &mut String, items: &Items, [open, close]: [char; 2], indent: usize) {
    out.push(open);
    for item in &items.list {
        out.push('\n');
        let margin = " ".repeat(indent + INDENT);
        match item {
            Item::Blank => {}
            Item::Comment(comment) => out.push_str(&format!("{margin}{comment}")),
            Item::Value(key, value, after) => {
                out.push_str(&margin);
                if let Some(key) = key {
                    out.push_str(&format!("{key} = "));
                }
                put(out, value, indent + INDENT);
                out.push(',');
                if let Some(comment) = after {
                    out.push_str(&format!(" {comment}"));
                }
            }
        }
    }
    out.push_str(&format!("\n{}{close}", " ".repeat(indent)));
}

/// A value on one line; `None` when it cannot or shall not stand there.
fn flat(value: &Value) -> Option<String> {
    let join = |items: &Items| -> Option<String> {
        if items.must_break() {
            return None;
        }
        let parts = items.list.iter().filter_map(|item| match item {
            Item::Value(Some(key), value, _) => {
                Some(flat(value).map(|flat| format!("{key} = {flat}")))
            }
            Item::Value(None, value, _) => Some(flat(value)),
            Item::Blank | Item::Comment(_) => None,
        });
        parts.collect::<Option<Vec<String>>>().map(|parts| parts.join(", "))
    };
    Some(match value {
        Value::Scalar(raw) => raw.clone(),
        Value::Array(items) => format!("[{}]", join(items)?),
        Value::Table(items) if items.list.is_empty() => "{}".to_string(),
        Value::Table(items) => format!("{{ {} }}", join(items)?),
    })
}

/// Whether a value has an array in it that can go over several lines.
fn can_break(value: &Value) -> bool {
    match value {
        Value::Scalar(_) => false,
        Value::Array(items) => !items.list.is_empty(),
        Value::Table(items) => items.list.iter().any(|item| match item {
            Item::Value(_, value, _) => can_break(value),
            Item::Blank | Item::Comment(_) => false,
        }),
    }
}

impl Items {
    fn must_break(&self) -> bool {
        let comment = |item: &Item| matches!(item, Item::Comment(_) | Item::Value(_, _, Some(_)));
        (self.broken && !self.list.is_empty()) || self.list.iter().any(comment)
    }
}

/// Characters of the last line.
fn columns(text: &str) -> usize {
    text.rsplit('\n').next().unwrap_or(text).chars().count()
}
