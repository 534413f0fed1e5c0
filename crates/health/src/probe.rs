//! The active check of one endpoint: when to probe, and what the results mean.
//!
//! An endpoint goes down after `fall` failures in a row and up after `rise` passes in a row. Until its
//! first result it counts as the spec assumes (up, by default: a restart of Subak must not be an
//! outage), and that first result decides at once, either way: nothing speaks for the assumption but
//! hope, and clients should pay for it once, not `fall` times.
//!
//! While the state is about to change, that is before the first result and while results speak
//! against the present state, probes come at the fast interval. With `I` and `F` the two intervals
//! with their jitter and `T` the timeout, an endpoint that fails from one moment on is down within
//! `max(I, T) + (fall − 1) · max(F, T) + T` ([`ProbeSpec::down_within`]), plus the step of whoever
//! keeps the time. A result that says nothing about the endpoint changes nothing and is followed by a
//! probe after the fast interval.
//!
//! The spec is passed in at every step, so that a reload changes it under a state that stays. O(1).

use std::fmt;
use std::num::NonZeroU32;
use std::time::Duration;

use subak_base::Tick;

use crate::probe_result::{ProbeFailure, ProbeResult};
use crate::schedule::{Run, Schedule, jittered, longest};
use crate::transition::Transition;

/// How an endpoint is probed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProbeSpec {
    /// From one probe's start to the next, while nothing changes.
    pub interval: Duration,
    /// The same while the state is about to change. A longer one than `interval` counts as that.
    pub fast_interval: Duration,
    /// For a whole probe, from connect to the last byte needed.
    pub timeout: Duration,
    /// Passes in a row that make an endpoint up.
    pub rise: NonZeroU32,
    /// Failures in a row that make it down.
    pub fall: NonZeroU32,
    /// How much an interval varies, either way, in thousandths of it.
    pub jitter_per_mille: u32,
    /// Whether an endpoint counts as up before its first result.
    pub assume_up: bool,
}

impl Default for ProbeSpec {
    fn default() -> ProbeSpec {
        ProbeSpec {
            interval: Duration::from_secs(2),
            fast_interval: Duration::from_millis(500),
            timeout: Duration::from_secs(1),
            rise: NonZeroU32::MIN.saturating_add(1),
            fall: NonZeroU32::MIN.saturating_add(2),
            jitter_per_mille: 100,
            assume_up: true,
        }
    }
}

impl ProbeSpec {
    /// The longest an endpoint that is up and fails from one moment on stays up.
    pub fn down_within(&self) -> Duration {
        self.within(self.fall)
    }

    /// The longest an endpoint that is down and works from one moment on stays down.
    pub fn up_within(&self) -> Duration {
        self.within(self.rise)
    }

    /// The longest from the moment an endpoint is known to its first result.
    pub fn first_within(&self) -> Duration {
        self.fast().saturating_add(self.timeout)
    }

    fn within(&self, results: NonZeroU32) -> Duration {
        let first = longest(self.interval, self.jitter_per_mille).max(self.timeout);
        let further = longest(self.fast(), self.jitter_per_mille).max(self.timeout);
        let further = further.saturating_mul(results.get() - 1);
        first.saturating_add(further).saturating_add(self.timeout)
    }

    fn fast(&self) -> Duration {
        self.fast_interval.min(self.interval)
    }

    fn assumed(&self) -> Health {
        if self.assume_up { Health::AssumedUp } else { Health::AssumedDown }
    }
}

/// What probes say of an endpoint.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Health {
    /// No result yet; counts as up.
    AssumedUp,
    /// No result yet; counts as down.
    AssumedDown,
    /// Probes pass.
    Up,
    /// Probes fail.
    Down,
}

impl Health {
    /// Whether the endpoint counts as up.
    pub fn is_up(self) -> bool {
        matches!(self, Health::AssumedUp | Health::Up)
    }

    /// Whether a result has decided.
    pub fn is_known(self) -> bool {
        matches!(self, Health::Up | Health::Down)
    }
}

impl fmt::Display for Health {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Health::AssumedUp => "assumed up",
            Health::AssumedDown => "assumed down",
            Health::Up => "up",
            Health::Down => "down",
        })
    }
}

/// What made a [`Health`] what it is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ProbeReason {
    /// There was no result yet.
    NotProbed,
    /// So many probes in a row passed.
    Passed(u32),
    /// So many probes in a row failed.
    Failed {
        /// How many it took to turn the state.
        count: u32,
        /// What was wrong the last time, which may have been later.
        last: ProbeFailure,
    },
}

impl fmt::Display for ProbeReason {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProbeReason::NotProbed => out.write_str("not probed yet"),
            ProbeReason::Passed(1) => out.write_str("1 probe passed"),
            ProbeReason::Passed(count) => write!(out, "{count} probes in a row passed"),
            ProbeReason::Failed { count: 1, last } => write!(out, "1 probe failed: {last}"),
            ProbeReason::Failed { count, last } => {
                write!(out, "{count} probes in a row failed: {last}")
            }
        }
    }
}

/// The active check of one endpoint.
#[derive(Clone, Debug)]
pub struct ProbeState {
    health: Health,
    reason: ProbeReason,
    since: Tick,
    /// Results in a row that speak against `health`.
    against: u32,
    last: Option<(ProbeResult, Tick)>,
    schedule: Schedule,
}

impl ProbeState {
    /// An endpoint nothing is known of. Its first probe is due somewhere in the first fast interval.
    pub fn new(spec: &ProbeSpec, now: Tick, random: u64) -> ProbeState {
        ProbeState {
            health: spec.assumed(),
            reason: ProbeReason::NotProbed,
            since: now,
            against: 0,
            last: None,
            schedule: Schedule::new(spec.fast(), now, random),
        }
    }

    /// What probes say now.
    pub fn health(&self) -> Health {
        self.health
    }

    /// What made it so.
    pub fn reason(&self) -> &ProbeReason {
        &self.reason
    }

    /// Since when it is so.
    pub fn since(&self) -> Tick {
        self.since
    }

    /// The last result, whether or not it changed anything, and its moment.
    pub fn last(&self) -> Option<&(ProbeResult, Tick)> {
        self.last.as_ref()
    }

    /// Whether a probe is to be made now.
    pub fn is_due(&self, now: Tick) -> bool {
        self.schedule.is_due(now)
    }

    /// When the next probe is due. While one is under way: when it is given up, because whoever made it
    /// has not come back (twice its timeout).
    pub fn next_due(&self) -> Tick {
        self.schedule.next_due()
    }

    /// Begins a probe; to be ended by [`ProbeState::finished`] with the run that is returned.
    pub fn started(&mut self, spec: &ProbeSpec, now: Tick) -> Run {
        self.schedule.start(spec.timeout, now)
    }

    /// Takes the result of a probe in. One of a run that is not the latest is ignored.
    pub fn finished(
        &mut self,
        spec: &ProbeSpec,
        run: Run,
        result: ProbeResult,
        now: Tick,
        random: u64,
    ) -> Option<Transition<Health, ProbeReason>> {
        if !self.schedule.end(run) {
            return None;
        }
        let transition = self.judge(spec, &result, now);
        let inconclusive = matches!(result, ProbeResult::Inconclusive(_));
        let settled = self.against == 0 && !inconclusive;
        let period = if settled { spec.interval } else { spec.fast() };
        self.schedule.follow(run, jittered(period, spec.jitter_per_mille, random), now);
        self.last = Some((result, now));
        transition
    }

    /// Forgets every result, as after maintenance or when what is asked has changed altogether.
    pub fn reset(
        &mut self,
        spec: &ProbeSpec,
        now: Tick,
        random: u64,
    ) -> Option<Transition<Health, ProbeReason>> {
        self.against = 0;
        self.last = None;
        self.schedule.restart(spec.fast(), now, random);
        self.turn(spec.assumed(), ProbeReason::NotProbed, now)
    }

    /// Takes a new spec in force: the next probe is due within its interval. Results so far stand.
    pub fn spec_changed(&mut self, spec: &ProbeSpec, now: Tick, random: u64) {
        self.schedule.hasten(jittered(spec.interval, spec.jitter_per_mille, random), now);
    }

    fn judge(
        &mut self,
        spec: &ProbeSpec,
        result: &ProbeResult,
        now: Tick,
    ) -> Option<Transition<Health, ProbeReason>> {
        let (to, needed) = match result {
            ProbeResult::Passed => (Health::Up, spec.rise.get()),
            ProbeResult::Failed(_) => (Health::Down, spec.fall.get()),
            ProbeResult::Inconclusive(_) => return None,
        };
        if self.health == to {
            self.against = 0;
            if let (ProbeReason::Failed { last, .. }, ProbeResult::Failed(latest)) =
                (&mut self.reason, result)
            {
                last.clone_from(latest);
            }
            return None;
        }
        self.against += 1;
        if self.health.is_known() && self.against < needed {
            return None;
        }
        let reason = match result {
            ProbeResult::Failed(last) => {
                ProbeReason::Failed { count: self.against, last: last.clone() }
            }
            _ => ProbeReason::Passed(self.against),
        };
        self.against = 0;
        self.turn(to, reason, now)
    }

    fn turn(
        &mut self,
        to: Health,
        reason: ProbeReason,
        now: Tick,
    ) -> Option<Transition<Health, ProbeReason>> {
        if self.health == to {
            return None;
        }
        let from = std::mem::replace(&mut self.health, to);
        self.reason = reason.clone();
        self.since = now;
        Some(Transition { from, to, reason, at: now })
    }
}
