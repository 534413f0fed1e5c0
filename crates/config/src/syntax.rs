//! Syntax errors, made better: a bracket that is never closed hides nothing behind it, a key given
//! twice names both places, a value without quotes is shown with them.

use std::borrow::Cow;

use toml_parser::Source;
use toml_parser::lexer::{Token, TokenKind};
use toml_parser::parser::{Event, EventKind, parse_document};

use crate::diagnostic::{Diagnostic, MAX_DIAGNOSTICS, Span};

/// A text with its missing brackets put in, so that what follows them can be read.
pub(crate) struct Repaired {
    pub(crate) text: String,
    /// One error for each bracket that was missing.
    pub(crate) errors: Vec<Diagnostic>,
    /// Where in `text` something was put in, how many bytes, and how many before.
    inserted: Vec<(usize, usize, usize)>,
}

impl Repaired {
    /// Closes each bracket that is still open where a line begins a new key or table.
    pub(crate) fn new(text: &str) -> Repaired {
        let tokens = Source::new(text).lex().into_vec();
        let mut repaired = Repaired {
            text: String::with_capacity(text.len()),
            errors: Vec::new(),
            inserted: Vec::new(),
        };
        let mut copied = 0;
        let mut open: Vec<Token> = Vec::new();
        let mut in_value = false;
        let mut line_begins = true;
        let mut last_end = 0;
        for (index, token) in tokens.iter().enumerate() {
            let kind = token.kind();
            let ends = kind == TokenKind::Eof;
            let begins_line =
                line_begins && !matches!(kind, TokenKind::Whitespace | TokenKind::Newline);
            if ends || begins_line && begins_statement(text, &tokens[index..], open.last()) {
                if !open.is_empty() {
                    repaired.text.push_str(&text[copied..last_end]);
                    copied = last_end;
                    repaired.close(&open, token.span().start(), ends);
                    open.clear();
                }
                in_value = false;
            }
            match kind {
                TokenKind::Newline => {
                    line_begins = true;
                    in_value &= !open.is_empty();
                    continue;
                }
                TokenKind::Whitespace | TokenKind::Comment | TokenKind::Eof => {}
                TokenKind::Equals if open.is_empty() => in_value = true,
                TokenKind::LeftSquareBracket | TokenKind::LeftCurlyBracket if in_value => {
                    open.push(*token)
                }
                TokenKind::RightSquareBracket => pop(&mut open, TokenKind::LeftSquareBracket),
                TokenKind::RightCurlyBracket => pop(&mut open, TokenKind::LeftCurlyBracket),
                _ => {}
            }
            if !matches!(kind, TokenKind::Whitespace | TokenKind::Comment) {
                last_end = token.span().end();
            }
            line_begins &= kind == TokenKind::Whitespace;
        }
        repaired.text.push_str(&text[copied..]);
        repaired
    }

    fn close(&mut self, open: &[Token], next: usize, at_end: bool) {
        let at = self.text.len();
        for token in open.iter().rev() {
            let (what, close) = match token.kind() {
                TokenKind::LeftSquareBracket => ("array", ']'),
                _ => ("table", '}'),
            };
            let span = Span::new(token.span().start(), token.span().end());
            let error =
                Diagnostic::error(span, format!("not valid TOML: this {what} is not closed"))
                    .label(format!("expected `{close}` for this one"));
            let reached = if at_end { "the text ends here" } else { "something new begins here" };
            if self.errors.len() <= MAX_DIAGNOSTICS {
                self.errors.push(error.related(Span::new(next, next), reached));
            }
            self.text.push(close);
        }
        let before = self.inserted.last().map_or(0, |(_, bytes, before)| bytes + before);
        self.inserted.push((at, open.len(), before));
    }

    /// The place in the original text.
    pub(crate) fn original(&self, at: usize) -> usize {
        let count = self.inserted.partition_point(|(place, _, _)| *place < at);
        match self.inserted[..count].last() {
            Some((place, bytes, before)) => at - before - (*bytes).min(at - place),
            None => at,
        }
    }
}

/// Closes the innermost bracket of that kind, and those inside of it.
fn pop(open: &mut Vec<Token>, kind: TokenKind) {
    if let Some(at) = open.iter().rposition(|token| token.kind() == kind) {
        open.truncate(at);
    }
}

/// Whether these tokens, at the beginning of a line, are a table's header or a key with its `=`.
/// Inside of an inline table a key is nothing new.
fn begins_statement(text: &str, tokens: &[Token], innermost: Option<&Token>) -> bool {
    let mut rest = tokens.iter().filter(|token| token.kind() != TokenKind::Whitespace).peekable();
    let Some(first) = rest.peek() else { return false };
    let word = |token: &Token| {
        let bytes = text.as_bytes();
        token.kind() == TokenKind::Atom
            && bytes.get(token.span().start()).is_some_and(u8::is_ascii_alphabetic)
    };
    if first.kind() == TokenKind::LeftSquareBracket {
        let mut header =
            rest.skip_while(|token| token.kind() == TokenKind::LeftSquareBracket).peekable();
        if !header.peek().is_some_and(|token| word(token)) {
            return false;
        }
        let mut after = header
            .skip_while(|token| is_key_part(token.kind()))
            .skip_while(|token| token.kind() == TokenKind::RightSquareBracket);
        let ends = [TokenKind::Newline, TokenKind::Comment, TokenKind::Eof];
        return after.next().is_some_and(|token| ends.contains(&token.kind()));
    }
    let in_table = innermost.is_some_and(|token| token.kind() == TokenKind::LeftCurlyBracket);
    if in_table || !is_key_part(first.kind()) {
        return false;
    }
    let mut after = rest.skip_while(|token| is_key_part(token.kind()));
    after.next().is_some_and(|token| token.kind() == TokenKind::Equals)
}

fn is_key_part(kind: TokenKind) -> bool {
    matches!(
        kind,
        TokenKind::Atom | TokenKind::Dot | TokenKind::BasicString | TokenKind::LiteralString
    )
}

/// Errors of the parser, with what can be added to them.
pub(crate) struct Improver<'a> {
    /// What the errors refer to.
    text: &'a str,
    /// Made when first asked for.
    definitions: Option<Definitions>,
}

impl<'a> Improver<'a> {
    pub(crate) fn new(text: &'a str) -> Improver<'a> {
        Improver { text, definitions: None }
    }

    pub(crate) fn improve(&mut self, message: &str, span: Span) -> Diagnostic {
        let (what, expected) = match message.split_once(", expected ") {
            Some((what, "nothing")) => (what, String::new()),
            Some((what, expected)) => (what, format!("expected {expected}")),
            None => (message, String::new()),
        };
        let diagnostic = Diagnostic::error(span, format!("not valid TOML: {what}")).label(expected);
        if what == "duplicate key" {
            let diagnostic = diagnostic.label("given before");
            let definitions = self.definitions.get_or_insert_with(|| Definitions::new(self.text));
            return match definitions.first(span) {
                Some(first) => diagnostic.related(first, "first here"),
                None => diagnostic,
            };
        }
        let of_scalar = ["invalid ", "string values", "unexpected ", "redundant ", "integers with"];
        if of_scalar.iter().any(|start| what.starts_with(start))
            && let Some((token, word)) = bare_word(self.text, span)
        {
            let help = match &*word.to_ascii_lowercase() {
                "true" | "yes" | "on" => format!("for {word} write true"),
                "false" | "no" | "off" => format!("for {word} write false"),
                _ => format!("in quotes: \"{word}\""),
            };
            return Diagnostic::error(token, "not valid TOML: this value needs quotes")
                .label("expected a string in quotes, a number, true or false")
                .help(help);
        }
        diagnostic
    }
}

/// The unquoted value around a place, when it looks like a string that lacks its quotes.
fn bare_word(text: &str, span: Span) -> Option<(Span, &str)> {
    let delimiter = |byte: &u8| b" \t\r\n,[]{}=\"'#".contains(byte);
    let bytes = text.as_bytes();
    let start = bytes.get(..span.start)?.iter().rposition(delimiter).map_or(0, |at| at + 1);
    let length = bytes.get(start..)?.iter().position(delimiter).unwrap_or(bytes.len() - start);
    let word = text.get(start..start + length)?;
    let value = text[..start].trim_end_matches([' ', '\t']).ends_with(['=', ',', '[']);
    let number = |byte: u8| byte.is_ascii_digit() || b"+-_.".contains(&byte);
    let dots = word.matches('.').count();
    let number = word.bytes().all(number) && dots < 2;
    (value && !word.is_empty() && !number).then_some((Span::new(start, start + length), word))
}

/// Every key and table header with its full path, in order.
struct Definitions {
    list: Vec<(Vec<String>, Span)>,
}

impl Definitions {
    /// Where the key that is defined at `span` was defined before.
    fn first(&self, span: Span) -> Option<Span> {
        let at = self.list.iter().position(|(_, place)| *place == span)?;
        let (path, _) = &self.list[at];
        self.list[..at].iter().rev().find(|(known, _)| known == path).map(|(_, place)| *place)
    }

    fn new(text: &str) -> Definitions {
        let source = Source::new(text);
        let mut events: Vec<Event> = Vec::new();
        parse_document(&source.lex().into_vec(), &mut events, &mut ());
        let mut found: Vec<(Vec<String>, Span)> = Vec::new();
        let mut outer: Vec<Vec<String>> = vec![Vec::new()];
        let mut keys: Vec<String> = Vec::new();
        let mut place = Span::default();
        for event in &events {
            match event.kind() {
                EventKind::StdTableOpen | EventKind::ArrayTableOpen => {
                    outer = vec![Vec::new()];
                    keys.clear();
                }
                EventKind::SimpleKey => {
                    let mut decoded = Cow::Borrowed("");
                    if let Some(raw) = source.get(event) {
                        raw.decode_key(&mut decoded, &mut ());
                    }
                    keys.push(decoded.into_owned());
                    place = Span::new(event.span().start(), event.span().end());
                }
                EventKind::KeyValSep | EventKind::StdTableClose | EventKind::ArrayTableClose => {
                    let mut path = outer.last().cloned().unwrap_or_default();
                    path.append(&mut keys);
                    found.push((path.clone(), place));
                    match event.kind() {
                        EventKind::StdTableClose => outer = vec![path],
                        // Each element of an array is a table of its own.
                        EventKind::ArrayTableClose => outer = vec![unique(path, event)],
                        _ => {}
                    }
                }
                EventKind::InlineTableOpen | EventKind::ArrayOpen => {
                    let path = found.last().map(|(path, _)| path.clone()).unwrap_or_default();
                    outer.push(unique(path, event));
                }
                EventKind::InlineTableClose | EventKind::ArrayClose => {
                    outer.pop();
                }
                _ => {}
            }
        }
        Definitions { list: found }
    }
}

/// A path that no other place has.
fn unique(mut path: Vec<String>, event: &Event) -> Vec<String> {
    path.push(format!("\0{}", event.span().start()));
    path
}

#[cfg(test)]
mod tests {
    use super::Repaired;

    #[test]
    fn closes_what_a_new_statement_shows_to_be_open() {
        for (text, expected) in [
            ("a = [1", "a = [1]"),
            ("a = [1,\nb = 2\n", "a = [1,]\nb = 2\n"),
            ("a = [ # why\n 1 # x\n[t]\n", "a = [ # why\n 1] # x\n[t]\n"),
            ("a = { b = [1,\n[[t.u]] # x\n", "a = { b = [1,]}\n[[t.u]] # x\n"),
            ("a = {\n b = 1\n", "a = {\n b = 1}\n"),
        ] {
            let repaired = Repaired::new(text);
            assert_eq!(repaired.text, expected);
            assert!(!repaired.errors.is_empty());
            let kept: String = expected
                .char_indices()
                .filter(|(at, _)| repaired.original(*at) != repaired.original(at + 1))
                .map(|(_, character)| character)
                .collect();
            assert_eq!(kept, text, "places map back");
        }
    }

    #[test]
    fn leaves_what_is_closed_alone() {
        for text in [
            "",
            "a = [\n  [1, 2],\n  [3]\n]\nb = 1\n",
            "a = {\n  b = 1,\n  c = [\n    \"x\"\n  ]\n}\n[t]\n[[u]]\n",
            "a = [\"x = 1\",\n\"y\"]\n",
            "[a]\nb = '['\n",
        ] {
            let repaired = Repaired::new(text);
            assert_eq!(repaired.text, text);
            assert!(repaired.errors.is_empty());
        }
    }
}
