//! What the control side counts of a pool: answers to its questions, and changes of endpoints' states.

use subak_health::{ProbeResult, State, Transition};

/// What was counted since the pool's name has been known.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Tally {
    /// Probes.
    pub probes: Answers,
    /// Agent checks.
    pub agents: Answers,
    /// Changes of endpoints' states, by the state they led to, in the order of [`State::ALL`].
    pub transitions: [u64; State::ALL.len()],
}

/// Questions by how they ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Answers {
    /// As they should.
    pub ok: u64,
    /// Otherwise, or not at all.
    pub failed: u64,
    /// Nothing was learnt, for want of something on this machine.
    pub inconclusive: u64,
}

impl Tally {
    /// A probe has ended.
    pub(crate) fn probed(&mut self, result: &ProbeResult) {
        let Answers { ok, failed, inconclusive } = &mut self.probes;
        *match result {
            ProbeResult::Passed => ok,
            ProbeResult::Failed(_) => failed,
            ProbeResult::Inconclusive(_) => inconclusive,
        } += 1;
    }

    /// An agent has answered, or not.
    pub(crate) fn agent_answered(&mut self, is_answered: bool) {
        let Answers { ok, failed, .. } = &mut self.agents;
        *if is_answered { ok } else { failed } += 1;
    }

    /// An endpoint's state, or its reason alone, has changed.
    pub(crate) fn changed<R>(&mut self, transition: &Transition<State, R>) {
        let Transition { from, to, .. } = transition;
        if let Some(place) = State::ALL.iter().position(|state| state == to && from != to) {
            self.transitions[place] += 1;
        }
    }
}
