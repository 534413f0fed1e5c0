//! What all layers together say of one endpoint: one state, by a total order.
//!
//! The first line that holds decides:
//!
//! | | state | when |
//! |---|---|---|
//! | 1 | maintenance | it is in force administratively |
//! | 2 | down | its agent says `down`, `stopped` or `fail` |
//! | 3 | down | its probes say so, or nothing is known and it is assumed down |
//! | 4 | down | it is ejected |
//! | 5 | drain | it is in force administratively |
//! | 6 | back_off | it refused or broke requests, and has answered none since |
//! | 7 | ready | otherwise |
//!
//! Maintenance comes first because nobody asks an endpoint in maintenance how it is. Drain comes last:
//! sticky sessions still go to an endpoint that drains, and they must not go to one that is down.
//!
//! Administratively, what the API says holds until it is taken back. Otherwise the stricter of what
//! the file and the agent say holds (maintenance before drain before ready), so an agent can take its
//! endpoint out of work but not out of the maintenance that somebody wrote down; and the API's `ready`
//! gets the better of an agent that errs. It does not bring an endpoint up that is down.

use std::fmt;
use std::sync::Arc;

use subak_base::Tick;

use crate::agent_check::Operational;
use crate::ejection::EjectionReason;
use crate::probe::{Health, ProbeReason};

/// What is wanted of an endpoint, the least strict first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum Admin {
    /// Let it work.
    #[default]
    Ready,
    /// No new work; sticky sessions still go there.
    Drain,
    /// No work at all, and no probes.
    Maintenance,
}

impl fmt::Display for Admin {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Admin::Ready => "ready",
            Admin::Drain => "drain",
            Admin::Maintenance => "maintenance",
        })
    }
}

/// Who wants it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Source {
    /// The configuration file.
    File,
    /// Somebody, by the Admin API.
    Api,
    /// The endpoint's own agent.
    Agent,
}

impl fmt::Display for Source {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Source::File => "the configuration",
            Source::Api => "the API",
            Source::Agent => "its agent",
        })
    }
}

/// Everything that is said of an endpoint.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Layers {
    /// What the file wants.
    pub file: Admin,
    /// What the API wants, if anything.
    pub api: Option<Admin>,
    /// What the agent wants; ready without one.
    pub agent: Admin,
    /// What the agent says of the service; none where no agent is asked, which counts as up.
    pub operational: Option<Operational>,
    /// What the agent gave as the reason.
    pub agent_reason: Option<Arc<str>>,
    /// What probes say, and why; none without probes.
    pub probe: Option<(Health, ProbeReason)>,
    /// Until when it is ejected, and why.
    pub ejection: Option<(Tick, EjectionReason)>,
    /// Why it is in back-off, if it is.
    pub back_off: Option<Fault>,
}

impl Layers {
    /// What is in force administratively, and who wants it.
    pub fn admin(&self) -> (Admin, Source) {
        match self.api {
            Some(wanted) => (wanted, Source::Api),
            None if self.agent > self.file => (self.agent, Source::Agent),
            None => (self.file, Source::File),
        }
    }

    /// The state at this moment, and what stands against the endpoint if it is not ready.
    pub(crate) fn judge(&self, now: Tick) -> (State, Option<Reason>) {
        let (admin, by) = self.admin();
        if admin == Admin::Maintenance {
            return (State::Maintenance, Some(Reason::Admin { wanted: admin, by }));
        }
        if let Some(said) = self.operational
            && said != Operational::Up
        {
            return (State::Down, Some(self.agent_says(said)));
        }
        if let Some((health, reason)) = &self.probe
            && !health.is_up()
        {
            return (State::Down, Some(Reason::Probe(reason.clone())));
        }
        if let Some((until, reason)) = self.ejection
            && now < until
        {
            return (State::Down, Some(Reason::Ejected { until, reason }));
        }
        match (admin, &self.back_off) {
            (Admin::Drain, _) => (State::Drain, Some(Reason::Admin { wanted: admin, by })),
            (_, Some(fault)) => (State::BackOff, Some(Reason::BackOff(fault.clone()))),
            (Admin::Ready | Admin::Maintenance, None) => (State::Ready, None),
        }
    }

    /// Why an endpoint is ready that was held back by `before`: what became of that.
    pub(crate) fn lifted(&self, before: &Reason) -> Reason {
        match (before, &self.probe) {
            (Reason::Admin { by: before, .. }, _) => {
                let (wanted, by) = self.admin();
                // The file said ready all along: it is the agent who took its word back, or who is
                // not there any more.
                match (*before == Source::Agent && by == Source::File, self.operational) {
                    (false, _) => Reason::Admin { wanted, by },
                    (true, Some(_)) => Reason::Admin { wanted, by: Source::Agent },
                    (true, None) => Reason::NoAgent,
                }
            }
            (Reason::Agent { .. }, _) => match self.operational {
                Some(said) => self.agent_says(said),
                None => Reason::NoAgent,
            },
            (Reason::Probe(_), Some((_, reason))) => Reason::Probe(reason.clone()),
            (Reason::Ejected { .. }, _) => Reason::EjectionOver,
            (Reason::BackOff(_), _) => Reason::Answered,
            (Reason::Probe(_), None) => Reason::NoProbes,
            (
                Reason::EjectionOver
                | Reason::Answered
                | Reason::NoProbes
                | Reason::NoAgent
                | Reason::NoWeight
                | Reason::Nothing,
                _,
            ) => Reason::Nothing,
        }
    }

    fn agent_says(&self, said: Operational) -> Reason {
        Reason::Agent { said, text: self.agent_reason.clone() }
    }
}

/// What an endpoint is for its pool.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum State {
    /// It takes new work.
    Ready,
    /// It takes sticky sessions, and finishes.
    Drain,
    /// People work on it; it takes nothing and is not probed.
    Maintenance,
    /// It does not work; it takes nothing.
    Down,
    /// It refused or broke requests a moment ago. When its back-off is over it takes one request at a
    /// time until it has answered one.
    BackOff,
}

impl State {
    /// Every state.
    pub const ALL: [State; 5] =
        [State::Ready, State::Drain, State::Maintenance, State::Down, State::BackOff];

    /// Whether it takes new work.
    pub fn is_eligible(self) -> bool {
        self == State::Ready
    }

    /// Whether a client that belongs to this endpoint is still sent to it.
    pub fn serves_sticky(self) -> bool {
        matches!(self, State::Ready | State::Drain)
    }

    /// Whether it is asked how it is.
    pub fn is_probed(self) -> bool {
        self != State::Maintenance
    }
}

impl fmt::Display for State {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            State::Ready => "ready",
            State::Drain => "drain",
            State::Maintenance => "maintenance",
            State::Down => "down",
            State::BackOff => "back_off",
        })
    }
}

/// What an endpoint did before its back-off, in words where they are known.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Fault(pub Option<Arc<str>>);

impl fmt::Display for Fault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.0.as_deref().unwrap_or("its requests failed"))
    }
}

/// Why an endpoint is in its state.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Reason {
    /// Nothing stands, or stood, against it.
    Nothing,
    /// Somebody wants it so.
    Admin {
        /// What is wanted.
        wanted: Admin,
        /// By whom.
        by: Source,
    },
    /// Its agent says so.
    Agent {
        /// The agent's word.
        said: Operational,
        /// What it added.
        text: Option<Arc<str>>,
    },
    /// Its probes say so.
    Probe(ProbeReason),
    /// It is ejected.
    Ejected {
        /// Until this moment at the latest.
        until: Tick,
        /// What for.
        reason: EjectionReason,
    },
    /// It was ejected.
    EjectionOver,
    /// It is in back-off.
    BackOff(Fault),
    /// It was in back-off, and has answered again.
    Answered,
    /// Its probes said so, and it is not probed any more.
    NoProbes,
    /// Its agent said so, and is not asked any more.
    NoAgent,
    /// It is ready and takes no new work, because its weight is 0. No layer says this: it is for
    /// whoever shows an endpoint together with its weight.
    NoWeight,
}

impl fmt::Display for Reason {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Nothing => out.write_str("nothing is held against it"),
            Reason::Admin { wanted, by } => write!(out, "set to {wanted} by {by}"),
            Reason::Agent { said, text: None } => write!(out, "its agent says {said}"),
            Reason::Agent { said, text: Some(text) } => {
                write!(out, "its agent says {said}: {text}")
            }
            Reason::Probe(reason) => reason.fmt(out),
            Reason::Ejected { reason, .. } => write!(out, "ejected: {reason}"),
            Reason::BackOff(fault) => write!(out, "in back-off: {fault}"),
            Reason::Answered => out.write_str("it answers again"),
            Reason::EjectionOver => out.write_str("its ejection is over"),
            Reason::NoProbes => out.write_str("it is not probed any more"),
            Reason::NoAgent => out.write_str("its agent is not asked any more"),
            Reason::NoWeight => out.write_str("its weight is 0"),
        }
    }
}

/// The state of an endpoint, why, and since when.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Verdict {
    /// The state.
    pub state: State,
    /// What stands against it now; in one state one reason may follow another. While it is ready: what
    /// made it so at the time.
    pub reason: Reason,
    /// Since when it is in this state.
    pub since: Tick,
}

impl Verdict {
    /// Whether the endpoint takes new work.
    pub fn is_eligible(&self) -> bool {
        self.state.is_eligible()
    }
}
