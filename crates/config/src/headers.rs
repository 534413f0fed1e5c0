//! Header fields that a configuration sets, adds or removes.

use std::fmt;

use crate::problem::Problem;

/// The longest value.
const MAX_VALUE_BYTES: usize = 8 * 1024;

/// A field name: an HTTP token (RFC 9110, 5.6.2), in the case it was written in.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HeaderName(Box<str>);

impl HeaderName {
    /// A name that is written here and not in a configuration.
    pub(crate) fn of(text: &'static str) -> HeaderName {
        debug_assert!(is_name(text));
        HeaderName(text.into())
    }

    /// As it was written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A field value: visible ASCII, space, tab and bytes from 0x80 (RFC 9110, 5.5), without space at
/// either end.
#[derive(Clone)]
pub struct HeaderValue {
    text: Box<str>,
    /// It came from outside and may be a secret: `Debug` does not show it.
    hidden: bool,
}

impl PartialEq for HeaderValue {
    fn eq(&self, other: &HeaderValue) -> bool {
        self.text == other.text
    }
}

impl Eq for HeaderValue {}

impl fmt::Debug for HeaderValue {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = if self.hidden { "…" } else { &self.text };
        out.debug_tuple("HeaderValue").field(&shown).finish()
    }
}

impl HeaderValue {
    /// A value that is made here, of visible ASCII and spaces.
    pub(crate) fn of(text: &str) -> HeaderValue {
        HeaderValue { text: text.into(), hidden: false }
    }

    /// As it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The same, not shown by `Debug` if `hidden`.
    pub(crate) fn hide(self, hidden: bool) -> HeaderValue {
        HeaderValue { hidden, ..self }
    }
}

impl fmt::Display for HeaderName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl fmt::Display for HeaderValue {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.text)
    }
}

/// Changes to a message's fields, in this order: remove, set, add.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct HeaderEdits {
    /// Every field of these names goes.
    pub remove: Vec<HeaderName>,
    /// Replaces all fields of that name by one; names are unique, whatever their case.
    pub set: Vec<(HeaderName, HeaderValue)>,
    /// One more field.
    pub add: Vec<(HeaderName, HeaderValue)>,
}

impl HeaderEdits {
    /// Whether nothing is changed.
    pub fn is_empty(&self) -> bool {
        self.remove.is_empty() && self.set.is_empty() && self.add.is_empty()
    }
}

/// Which way the message goes whose fields are changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Direction {
    Request,
    Response,
}

/// Fields that a configuration may not touch, in lower case, each with the reason.
const RESERVED: &[(&str, &str)] = &[
    ("connection", "it belongs to one connection, and Subak writes it itself"),
    ("content-length", "it frames the message, and Subak writes it itself"),
    ("http2-settings", "it belongs to one connection"),
    ("keep-alive", "it belongs to one connection"),
    ("proxy-connection", "it belongs to one connection"),
    ("te", "it belongs to one connection"),
    ("trailer", "it frames the message"),
    ("transfer-encoding", "it frames the message, and Subak writes it itself"),
    ("upgrade", "it belongs to one connection, and Subak writes it itself"),
];

/// A field name that may be changed.
pub(crate) fn name(text: &str, direction: Direction) -> Result<HeaderName, Problem> {
    if !is_name(text) {
        let expected = "expected letters, digits and any of !#$%&'*+-.^_`|~";
        let problem = Problem::expected("this is no header name", expected);
        let trimmed = text.trim().trim_end_matches(':').trim_end();
        let help = (trimmed != text && !trimmed.is_empty()).then(|| format!("write \"{trimmed}\""));
        return Err(problem.maybe_help(help));
    }
    let lower = text.to_ascii_lowercase();
    if let Some((_, reason)) = RESERVED.iter().find(|(name, _)| *name == lower) {
        return Err(Problem::expected(format!("{text} cannot be changed"), *reason));
    }
    if lower == "host" && direction == Direction::Request {
        return Err(Problem::expected(
            "Host cannot be changed here",
            "it says which site is asked for",
        )
        .help("the key `host` of the pool says which Host endpoints see"));
    }
    Ok(HeaderName(text.into()))
}

/// A field name that is only looked for.
pub(crate) fn any_name(text: &str) -> Option<HeaderName> {
    is_name(text).then(|| HeaderName(text.into()))
}

/// A field value.
pub(crate) fn value(text: &str) -> Result<HeaderValue, Problem> {
    let control = |character: char| character.is_control() && character != '\t';
    if let Some((at, character)) = text.char_indices().find(|(_, character)| control(*character)) {
        let what = match character {
            '\r' | '\n' => "a header value cannot hold a line break",
            _ => "a header value cannot hold a control character",
        };
        let expected = "expected visible characters, spaces and tabs";
        return Err(Problem::expected(what, expected).at(at..at + character.len_utf8()));
    }
    let trimmed = text.trim_matches([' ', '\t']);
    if trimmed != text {
        return Err(Problem::new("a header value has no space at its ends")
            .help(format!("write \"{trimmed}\"")));
    }
    if text.len() > MAX_VALUE_BYTES {
        return Err(Problem::new(format!("a header value has at most {MAX_VALUE_BYTES} bytes")));
    }
    Ok(HeaderValue { text: text.into(), hidden: false })
}

/// A media type such as `text/html; charset=utf-8` (RFC 9110, 8.3.1; parameters are not read).
pub(crate) fn media_type(text: &str) -> Result<HeaderValue, Problem> {
    let essence = text.split(';').next().unwrap_or(text).trim_end();
    let token = |part: &str| !part.is_empty() && part.bytes().all(is_token);
    match essence.split_once('/') {
        Some((kind, subtype)) if token(kind) && token(subtype) => value(text),
        _ => Err(Problem::expected("this is no media type", "expected one such as \"text/html\"")),
    }
}

/// The media type that a file's name stands for.
pub(crate) fn media_type_of(path: &std::path::Path) -> HeaderValue {
    let extension =
        path.extension().map(|extension| extension.to_string_lossy().to_ascii_lowercase());
    HeaderValue::fixed(match extension.as_deref().unwrap_or("") {
        "html" | "htm" => "text/html; charset=utf-8",
        "json" => "application/json",
        "xml" => "application/xml",
        "svg" => "image/svg+xml",
        "css" => "text/css; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "ico" => "image/x-icon",
        "png" => "image/png",
        _ => "text/plain; charset=utf-8",
    })
}

impl HeaderValue {
    /// A value that is known to be valid.
    pub(crate) fn fixed(text: &'static str) -> HeaderValue {
        HeaderValue { text: text.into(), hidden: false }
    }
}

/// Whether a text can be a field name at all.
pub(crate) fn is_name(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(is_token)
}

/// RFC 9110, 5.6.2.
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::{Direction, media_type, name, value};

    #[test]
    fn names_are_tokens_that_may_be_changed() {
        for text in ["X-Env", "x", "X_Y", "!#$%&'*+-.^_`|~", "Server", "Via"] {
            assert!(name(text, Direction::Request).is_ok(), "{text}");
        }
        for text in [
            "",
            "X Env",
            "X-Env:",
            "X:Y",
            "é",
            "X\r\n",
            "(x)",
            "Content-Length",
            "TE",
            "cOnnection",
        ] {
            assert!(name(text, Direction::Request).is_err(), "{text}");
        }
        assert!(name("Host", Direction::Request).is_err());
        assert!(name("Host", Direction::Response).is_ok());
    }

    #[test]
    fn values_cannot_break_out_of_their_line() {
        for text in ["", "a", "a b\tc", "ü", "{json: 1}"] {
            assert!(value(text).is_ok(), "{text:?}");
        }
        for text in ["a\nb", "a\rb", "a\0", "\x7f", " a", "a ", "\u{85}"] {
            assert!(value(text).is_err(), "{text:?}");
        }
        assert!(value(&"a".repeat(8192)).is_ok());
        assert!(value(&"a".repeat(8193)).is_err());
    }

    #[test]
    fn media_types_have_two_parts() {
        for text in ["text/html", "text/html; charset=utf-8", "application/vnd.api+json"] {
            assert!(media_type(text).is_ok(), "{text}");
        }
        for text in ["", "html", "text/", "/html", "text/ht ml", "text/html;\n"] {
            assert!(media_type(text).is_err(), "{text:?}");
        }
    }
}
