//! From what a pool says of a pick to what is shown of it.

use std::time::Duration;

use subak_balance::Score;
use subak_base::Tick;
use subak_pool::{Exclusion, PickTrace, PickedBy, Pool, Refusal, ShadowTrace};

use crate::explanation::{Candidate, Home, Key, Outcome, PoolTold, ShadowTold};

/// In 1/1024.
const WHOLE_RAMP: f64 = 1024.0;

impl PoolTold {
    /// What a pool says of a pick at this moment.
    pub fn of(pool: &Pool, trace: &PickTrace, key: Option<Key>, now: Tick) -> PoolTold {
        let name = |index: usize| trace.candidates.get(index).map(|one| one.name.clone());
        let picked = trace.given.ok().map(|(index, _)| index);
        let candidate = |(index, one): (usize, &subak_pool::Candidate)| Candidate {
            endpoint: one.name.clone(),
            is_picked: picked == Some(index),
            weight: one.weight.0,
            is_backup: one.is_backup,
            in_flight: one.in_flight,
            max_in_flight: one.max_in_flight,
            score: one.score.map(number),
            ramp: f64::from(one.ramp) / WHOLE_RAMP,
            excluded: one.excluded.as_ref().map(|excluded| reason(excluded, now)),
        };
        let scores = trace.candidates.iter().find_map(|one| one.score);
        let home = trace.home.and_then(|home| {
            let by = if home.by_cookie { "cookie" } else { "table" };
            Some(Home { endpoint: name(home.index)?, by: by.into(), stays: home.stays })
        });
        let shadow = |shadow: &ShadowTrace| ShadowTold {
            name: shadow.name.clone(),
            picked: shadow.picked.and_then(name),
            is_stopped: shadow.is_stopped,
        };
        let listing = pool.algorithm().listing();
        PoolTold {
            name: pool.name().to_owned(),
            algorithm: listing.name.to_owned(),
            generation: trace.generation,
            version: trace.version,
            because: trace.because.to_string(),
            waiting: trace.waiting,
            key,
            home,
            by: trace.given.ok().map(|(_, by)| decider(by).to_owned()),
            picked: picked.and_then(name),
            passed: trace.passed.iter().filter_map(|index| name(*index)).collect(),
            ticket: trace.ticket,
            unit: scores.map(|score| score.unit.to_owned()),
            ties: listing.ties.to_owned(),
            candidates: trace.candidates.iter().enumerate().map(candidate).collect(),
            shadows: trace.shadows.iter().map(shadow).collect(),
        }
    }

    /// What becomes of the request.
    pub fn outcome(&self, refusal: Option<Refusal>) -> Outcome {
        match (&self.picked, refusal) {
            (Some(_), _) if self.waiting > 0 => {
                let reason = format!("{} requests stand in line before it", self.waiting);
                Outcome::Waits { reason }
            }
            (Some(endpoint), _) => Outcome::Sent { endpoint: endpoint.clone() },
            (None, Some(Refusal::Saturated)) => {
                let reason = "all endpoints that could take it have as much as they may have";
                Outcome::Waits { reason: reason.into() }
            }
            (None, _) => {
                let reason = "no endpoint of the pool may take it";
                Outcome::Answered { status: 503, reason: reason.into() }
            }
        }
    }
}

/// Who decided, as JSON has it.
pub(crate) fn decider(by: PickedBy) -> &'static str {
    match by {
        PickedBy::Balancer => "algorithm",
        PickedBy::Stickiness => "stickiness",
        PickedBy::LastResort => "last_resort",
    }
}

/// A score as a number for people.
pub(crate) fn number(score: Score) -> f64 {
    score.amount as f64 / score.per as f64
}

/// Why an endpoint cannot be picked, in words.
fn reason(excluded: &Exclusion, now: Tick) -> String {
    match excluded {
        Exclusion::Tried => "this request has tried it".into(),
        Exclusion::State { state, reason } => format!("{state}: {reason}"),
        Exclusion::BackOff { until, why } => {
            let left = until.since(now).max(Duration::from_millis(1)).as_secs_f64();
            let why = why.as_deref().unwrap_or("it refused or timed out");
            format!("in back-off for another {left:.1} s: {why}")
        }
        Exclusion::NoWeight => "its weight is 0".into(),
        Exclusion::NotNeeded => "a backup, and primaries are ready".into(),
        Exclusion::Full => "it has as many requests as it may have".into(),
        Exclusion::NotYet => "it comes in again within a moment".into(),
    }
}
