//! What is wrong with one string, before it is known where the string stands.

use std::ops::Range;

/// What is wrong with a string.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Problem {
    /// What is wrong, in one line.
    pub(crate) message: String,
    /// What was expected; may be empty.
    pub(crate) expected: String,
    /// What to do.
    pub(crate) help: Option<String>,
    /// The part of the string it is about; `None`: all of it.
    pub(crate) at: Option<Range<usize>>,
}

impl Problem {
    pub(crate) fn new(message: impl Into<String>) -> Problem {
        Problem { message: message.into(), expected: String::new(), help: None, at: None }
    }

    pub(crate) fn expected(message: impl Into<String>, expected: impl Into<String>) -> Problem {
        Problem { expected: expected.into(), ..Problem::new(message) }
    }

    pub(crate) fn help(mut self, help: impl Into<String>) -> Problem {
        self.help = Some(help.into());
        self
    }

    pub(crate) fn maybe_help(mut self, help: Option<String>) -> Problem {
        self.help = help.or(self.help);
        self
    }

    /// About these bytes only, unless something narrower is known.
    pub(crate) fn at(mut self, at: Range<usize>) -> Problem {
        self.at.get_or_insert(at);
        self
    }

    /// As part of a longer string, in which this one begins at `offset`.
    pub(crate) fn shifted(mut self, offset: usize, length: usize) -> Problem {
        let at = self.at.unwrap_or(0..length);
        self.at = Some(at.start + offset..at.end + offset);
        self
    }
}
