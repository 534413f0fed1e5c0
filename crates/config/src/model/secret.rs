//! What is read from files that nobody else should read. `Debug` shows none of it.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

/// A bearer token: 16 to 1024 characters of visible ASCII.
#[derive(Clone, PartialEq, Eq)]
pub struct Token {
    /// Where it was read from, for messages.
    pub path: PathBuf,
    text: Arc<str>,
}

impl Token {
    pub(crate) fn new(path: PathBuf, text: &str) -> Token {
        Token { path, text: Arc::from(text) }
    }

    /// The secret itself.
    pub fn secret(&self) -> &str {
        &self.text
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Token").field("path", &self.path).finish_non_exhaustive()
    }
}

/// Keys that sign cookies, at least one: the first signs, all verify.
#[derive(Clone, PartialEq, Eq)]
pub struct SessionKeys {
    /// Where they were read from, for messages.
    pub path: PathBuf,
    keys: Arc<[Arc<[u8]>]>,
}

impl SessionKeys {
    pub(crate) fn new(path: PathBuf, keys: Vec<Arc<[u8]>>) -> SessionKeys {
        SessionKeys { path, keys: keys.into() }
    }

    /// The secrets themselves, each of at least 16 bytes, without duplicates.
    pub fn secrets(&self) -> &[Arc<[u8]>] {
        &self.keys
    }
}

impl fmt::Debug for SessionKeys {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.keys.len();
        out.debug_struct("SessionKeys")
            .field("path", &self.path)
            .field("count", &count)
            .finish_non_exhaustive()
    }
}
