//! One endpoint's verdict over time: every change of its layers, and every transition that follows.
//!
//! Several changes between two looks are one transition. A change of reason within a state is none;
//! the verdict shows the reason in force. An ejection that runs out is over at its own moment, however
//! late somebody looks. O(1) a step.

use subak_base::Tick;

use crate::transition::Transition;
use crate::verdict::{Layers, Reason, State, Verdict};

/// One endpoint, from all layers.
#[derive(Clone, Debug)]
pub struct Availability {
    layers: Layers,
    verdict: Verdict,
    ramps_since: Option<Tick>,
}

impl Availability {
    /// An endpoint of which this is said when it becomes known.
    pub fn new(layers: Layers, now: Tick) -> Availability {
        let (state, reason) = layers.judge(now);
        let reason = reason.unwrap_or(Reason::Nothing);
        Availability { layers, verdict: Verdict { state, reason, since: now }, ramps_since: None }
    }

    /// What is said of it.
    pub fn layers(&self) -> &Layers {
        &self.layers
    }

    /// The verdict as of the last look.
    pub fn verdict(&self) -> &Verdict {
        &self.verdict
    }

    /// Since when it grows into its share: the moment it last became ready after it was not. None for
    /// one that has been ready as long as it is known.
    pub fn ramps_since(&self) -> Option<Tick> {
        self.ramps_since
    }

    /// Changes what is said of it.
    pub fn change(
        &mut self,
        now: Tick,
        change: impl FnOnce(&mut Layers),
    ) -> Option<Transition<State, Reason>> {
        change(&mut self.layers);
        self.look(now)
    }

    /// Looks again: an ejection may have run out. For the control side, as often as it likes.
    pub fn look(&mut self, now: Tick) -> Option<Transition<State, Reason>> {
        let (state, reason) = self.layers.judge(now);
        // Over by time alone: it was over then, not now.
        let at = match (&self.verdict.reason, state) {
            (Reason::Ejected { until, .. }, State::Ready | State::Drain) => (*until).min(now),
            _ => now,
        };
        self.forget_what_is_over(now);
        let from = self.verdict.state;
        if state == from {
            if let Some(reason) = reason {
                self.verdict.reason = reason;
            }
            return None;
        }
        let reason = reason.unwrap_or_else(|| self.layers.lifted(&self.verdict.reason));
        self.verdict = Verdict { state, reason: reason.clone(), since: at };
        if state == State::Ready {
            self.ramps_since = Some(at);
        }
        Some(Transition { from, to: state, reason, at })
    }

    fn forget_what_is_over(&mut self, now: Tick) {
        if self.layers.ejection.is_some_and(|(until, _)| now >= until) {
            self.layers.ejection = None;
        }
    }
}
