//! Answers to an ACME authority that asks over HTTP whether a name is ours (RFC 8555, 8.3).
//!
//! While nothing waits, a request costs one relaxed load; where ACME is not configured, one branch.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arc_swap::ArcSwap;
use bytes::Bytes;

/// Where authorities ask.
const PLACE: &[u8] = b"/.well-known/acme-challenge/";

/// The answers of one listener; set while it serves, and kept over reloads.
#[derive(Debug, Default)]
pub struct AcmeAnswers {
    is_asked: AtomicBool,
    by_token: ArcSwap<HashMap<Box<str>, Bytes>>,
}

impl AcmeAnswers {
    /// Replaces all answers; none: nobody asks any more.
    pub fn set<'a>(&self, answers: impl IntoIterator<Item = (&'a str, &'a str)>) {
        let answers = answers.into_iter();
        let by_token: HashMap<Box<str>, Bytes> = answers
            .map(|(token, answer)| (token.into(), Bytes::copy_from_slice(answer.as_bytes())))
            .collect();
        let is_asked = !by_token.is_empty();
        self.by_token.store(Arc::new(by_token));
        self.is_asked.store(is_asked, Ordering::Release);
    }

    /// The answer for this path, while one waits.
    #[inline]
    pub(crate) fn find(&self, path: &[u8]) -> Option<Bytes> {
        if !self.is_asked.load(Ordering::Acquire) {
            return None;
        }
        let token = std::str::from_utf8(path.strip_prefix(PLACE)?).ok()?;
        self.by_token.load().get(token).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::AcmeAnswers;

    #[test]
    fn answers_are_there_only_while_somebody_asks() {
        let answers = AcmeAnswers::default();
        let path = b"/.well-known/acme-challenge/abc";
        assert_eq!(answers.find(path), None);
        answers.set([("abc", "abc.thumb")]);
        assert_eq!(answers.find(path).as_deref(), Some(&b"abc.thumb"[..]));
        assert_eq!(answers.find(b"/.well-known/acme-challenge/abcd"), None);
        assert_eq!(answers.find(b"/.well-known/acme-challenge/"), None);
        assert_eq!(answers.find(b"/abc"), None);
        answers.set([]);
        assert_eq!(answers.find(path), None);
    }
}
