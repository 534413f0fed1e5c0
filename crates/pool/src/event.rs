//! What happened to a pool that somebody may want to know: for the log, metrics and the status page.

use std::fmt;
use std::sync::Arc;

use subak_base::Tick;
use subak_health::{Because, Reason, State, Transition};

/// A change, with its reason and its moment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// An endpoint's state has changed.
    Endpoint {
        /// Its place in the pool.
        index: usize,
        /// Its name as it is written.
        name: Arc<str>,
        /// What changed.
        transition: Transition<State, Reason>,
    },
    /// An endpoint's state is what it was, and its agent now gives another reason for it.
    Reason {
        /// Its place in the pool.
        index: usize,
        /// Its name as it is written.
        name: Arc<str>,
        /// Its state.
        state: State,
        /// The reason now.
        reason: Reason,
    },
    /// Another rule than before decides who takes new work.
    Selection {
        /// The rule before.
        from: Because,
        /// The rule now.
        to: Because,
        /// Since when.
        at: Tick,
    },
}

impl fmt::Display for Event {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Event::Endpoint { name, transition, .. } => write!(out, "{name}: {transition}"),
            Event::Reason { name, state, reason, .. } => {
                write!(out, "{name}: still {state}: {reason}")
            }
            Event::Selection { to, .. } => to.fmt(out),
        }
    }
}
