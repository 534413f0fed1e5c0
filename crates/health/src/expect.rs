//! What an HTTP probe must answer: a status of a set and, if wanted, a body.
//!
//! A body is matched as plain text, by a part of it or as a whole. There are no regular expressions:
//! they would be the only reason for a large dependency in a crate that has none, and an endpoint that
//! knows whether it is well can say so in one word.
//!
//! Only the first [`BODY_MAX`] bytes of an answer are looked at, so that no endpoint makes its probe
//! dear; the search costs O(body · text) at worst, with a text of at most [`TEXT_MAX`] bytes.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use crate::probe_result::ProbeFailure;
use crate::status_set::StatusSet;

/// Bytes of an answer's body that are looked at.
pub const BODY_MAX: usize = 16 * 1024;

/// The longest text to look for, in bytes.
pub const TEXT_MAX: usize = 256;

/// What makes an answer a good one.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Expect {
    /// Its status is one of these.
    pub status: StatusSet,
    /// Its body matches.
    pub body: Option<BodyMatch>,
}

impl Expect {
    /// Whether the answer is good: its status, and its body as far as it was read (the whole, or the
    /// first [`BODY_MAX`] bytes; nothing where no body is expected).
    pub fn judge(&self, status: u16, body: &[u8]) -> Result<(), ProbeFailure> {
        if !self.status.contains(status) {
            return Err(ProbeFailure::Status { got: status, expected: self.status });
        }
        match &self.body {
            Some(expected) if !expected.matches(body) => Err(ProbeFailure::Body(expected.clone())),
            _ => Ok(()),
        }
    }

    /// Whether the body has to be read at all.
    pub fn needs_body(&self) -> bool {
        self.body.is_some()
    }
}

/// What a body must be.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BodyMatch {
    text: Arc<str>,
    whole: bool,
}

impl BodyMatch {
    /// A body with this text somewhere in it.
    pub fn contains(text: &str) -> Result<BodyMatch, BodyMatchError> {
        BodyMatch::new(text, false)
    }

    /// A body that is this text and nothing else, but for line ends behind it: most programs print one.
    pub fn exact(text: &str) -> Result<BodyMatch, BodyMatchError> {
        BodyMatch::new(text.trim_end_matches(['\r', '\n']), true)
    }

    fn new(text: &str, whole: bool) -> Result<BodyMatch, BodyMatchError> {
        match text.len() {
            0 => Err(BodyMatchError::Empty),
            length if length > TEXT_MAX => Err(BodyMatchError::TooLong(length)),
            _ => Ok(BodyMatch { text: text.into(), whole }),
        }
    }

    /// The text that is looked for.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether the body must be the text, rather than have it.
    pub fn is_exact(&self) -> bool {
        self.whole
    }

    /// Whether this body, as far as it was read, is as expected.
    pub fn matches(&self, body: &[u8]) -> bool {
        let body = &body[..body.len().min(BODY_MAX)];
        let text = self.text.as_bytes();
        if !self.whole {
            return body.windows(text.len()).any(|window| window == text);
        }
        let rest = body.strip_prefix(text);
        rest.is_some_and(|rest| rest.iter().all(|byte| b"\r\n".contains(byte)))
    }

    /// What to say of a body that does not match.
    pub(crate) fn missing(&self) -> impl fmt::Display {
        let verb = if self.whole { "is not" } else { "does not contain" };
        format!("{verb} {:?}", self.text)
    }
}

/// Why a text cannot be looked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BodyMatchError {
    /// Every body has it.
    Empty,
    /// It has so many bytes.
    TooLong(usize),
}

impl fmt::Display for BodyMatchError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BodyMatchError::Empty => {
                out.write_str("an empty text is in every body; leave the key out to accept any")
            }
            BodyMatchError::TooLong(length) => {
                write!(out, "a text to look for has at most {TEXT_MAX} bytes, this has {length}")
            }
        }
    }
}

impl Error for BodyMatchError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_found_anywhere_and_nowhere_else() {
        let expected = BodyMatch::contains("ok").unwrap();
        for body in ["ok", "all is ok.", "ook", "{\"state\":\"ok\"}\n"] {
            assert!(expected.matches(body.as_bytes()), "{body}");
        }
        for body in ["", "o", "OK", "o k", "not well"] {
            assert!(!expected.matches(body.as_bytes()), "{body}");
        }
    }

    #[test]
    fn a_whole_body_may_have_line_ends_behind_it_and_nothing_else() {
        let expected = BodyMatch::exact("ok").unwrap();
        for body in ["ok", "ok\n", "ok\r\n\r\n"] {
            assert!(expected.matches(body.as_bytes()), "{body:?}");
        }
        for body in ["", "o", "ok.", "not ok", " ok", "ok \n"] {
            assert!(!expected.matches(body.as_bytes()), "{body:?}");
        }
        assert_eq!(BodyMatch::exact("ok\n"), BodyMatch::exact("ok"));
    }

    #[test]
    fn what_lies_behind_the_first_bytes_is_not_seen() {
        let expected = BodyMatch::contains("ok").unwrap();
        let mut body = vec![b'.'; BODY_MAX];
        body.extend(b"ok");
        assert!(!expected.matches(&body));
        body[BODY_MAX - 2..BODY_MAX].copy_from_slice(b"ok");
        assert!(expected.matches(&body));
    }

    #[test]
    fn texts_that_cannot_be_meant_are_refused() {
        assert_eq!(BodyMatch::contains(""), Err(BodyMatchError::Empty));
        assert_eq!(BodyMatch::exact("\n"), Err(BodyMatchError::Empty));
        assert!(BodyMatch::contains(&"x".repeat(TEXT_MAX)).is_ok());
        let long = BodyMatch::contains(&"x".repeat(300)).unwrap_err();
        assert_eq!(long.to_string(), "a text to look for has at most 256 bytes, this has 300");
    }

    #[test]
    fn the_reason_says_what_was_expected() {
        let body = Some(BodyMatch::contains("ok").unwrap());
        let expect = Expect { status: "200-399".parse().unwrap(), body };
        assert_eq!(expect.judge(200, b"ok"), Ok(()));
        let why = |status, body: &[u8]| expect.judge(status, body).unwrap_err().to_string();
        assert_eq!(why(503, b"ok"), "status 503 is not in 200-399");
        assert_eq!(why(200, b"no"), "the body does not contain \"ok\"");
        let exact = Expect { body: BodyMatch::exact("ok").ok(), ..expect.clone() };
        assert_eq!(exact.judge(204, b"").unwrap_err().to_string(), "the body is not \"ok\"");
        assert!(expect.needs_body() && !Expect::default().needs_body());
    }
}
