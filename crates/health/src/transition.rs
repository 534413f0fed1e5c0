//! A change of state, with its reason and its moment. No state changes without one.

use std::fmt;

use subak_base::Tick;

/// What was, what is, why, and since when.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Transition<S, R> {
    /// The state before.
    pub from: S,
    /// The state after.
    pub to: S,
    /// What made the difference.
    pub reason: R,
    /// The moment from which the new state holds.
    pub at: Tick,
}

impl<S: fmt::Display, R: fmt::Display> fmt::Display for Transition<S, R> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} to {}: {}", self.from, self.to, self.reason)
    }
}
