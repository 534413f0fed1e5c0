//! Where the latest requests went: what pick logs hold, in plain values. The JSON of `GET /v1/picks`.
//!
//! A record names endpoints as they were called then, whatever has been reloaded since.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use subak_base::{DecisionId, Tick};
use subak_pool::{Outcome, PickRecord, PickedBy, Pool, RecordedKey};

use crate::pick::{decider, number};
use crate::recorded::{RecordedBalancer, RecordedPick};

/// Picks that are told of at once.
pub const PICKS_MAX: usize = 1000;

/// Endpoints that are told of with one pick: those that were compared, the best first.
const COMPARED_MAX: usize = 10;

/// Which picks are wanted.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Search {
    /// Of this pool; none: of every pool that has a log.
    pub pool: Option<String>,
    /// Of this request.
    pub id: Option<DecisionId>,
    /// Of this client.
    pub client: Option<IpAddr>,
    /// So many, the newest.
    pub count: usize,
    /// With all that they were decided by.
    pub whole: bool,
}

/// The latest picks.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Picks {
    /// The newest first.
    pub picks: Vec<NamedPick>,
    /// The pools that keep a log.
    pub pools_with_log: Vec<String>,
    /// The pools that keep none.
    pub pools_without_log: Vec<String>,
    /// What the balancers of these picks were compiled from, where the picks are wanted whole.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub balancers: Vec<RecordedBalancer>,
}

/// One pick, as it was written down.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct NamedPick {
    /// Of this pool.
    pub pool: String,
    /// Counts the records of its log.
    pub number: u64,
    /// The request's, 16 hexadecimal digits; picks of one request have the same.
    pub decision: Option<String>,
    /// Of the pool.
    pub generation: u64,
    /// Of the balancer in that generation.
    pub version: u64,
    /// How long ago.
    pub age_s: f64,
    /// Who asked.
    pub client: Option<String>,
    /// What the client was recognised by, where the algorithm wanted to know.
    pub key: Option<String>,
    /// Who decided: `algorithm`, `stickiness` or `last_resort`.
    pub by: String,
    /// The endpoint; none: nobody was left.
    pub endpoint: Option<String>,
    /// The ticket, where one was drawn.
    pub ticket: Option<u64>,
    /// The random word, 16 hexadecimal digits.
    pub random: String,
    /// Endpoints that were excluded for this request: tried, or found full.
    pub tried: Vec<String>,
    /// How many were eligible.
    pub eligible: usize,
    /// What scores count, and which way is better.
    pub unit: Option<String>,
    /// Endpoints that were compared: some of them, where there were many.
    pub compared: Vec<Compared>,
    /// How many were compared.
    pub compared_count: usize,
    /// `answered`, `failed`, `unreachable` or `cancelled`; none while it is under way, and where the
    /// endpoint was passed over after all.
    pub outcome: Option<String>,
    /// The status that the endpoint answered.
    pub status: Option<u16>,
    /// What went wrong.
    pub failure: Option<String>,
    /// From the pick to its end.
    pub took_ms: Option<f64>,
    /// Whether the balancer, asked again, picks the same; none where it did not pick.
    pub replays: Option<bool>,
    /// All that it was decided by, where that is wanted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recorded: Option<RecordedPick>,
}

/// An endpoint and what was compared of it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Compared {
    /// As it was written.
    pub endpoint: String,
    /// In force.
    pub weight: u16,
    /// In the pick's unit.
    pub score: f64,
}

impl Picks {
    /// What the logs of these pools hold of what is wanted.
    pub fn find<'a>(pools: impl Iterator<Item = &'a Pool>, search: &Search, now: Tick) -> Picks {
        let mut found = Vec::new();
        let (mut with, mut without) = (Vec::new(), Vec::new());
        let count = search.count.min(PICKS_MAX);
        let is_wanted = |record: &PickRecord| {
            search.id.is_none_or(|id| record.decision == Some(id))
                && search.client.is_none_or(|client| record.from == Some(client))
        };
        for pool in pools {
            match pool.latest_picks(count, is_wanted) {
                None => without.push(pool.name().to_owned()),
                Some(records) => {
                    with.push(pool.name().to_owned());
                    let is_asked = search.pool.as_deref().is_none_or(|name| name == pool.name());
                    if is_asked {
                        let owned = records.into_iter().map(|record| (pool.name(), record));
                        found.extend(owned);
                    }
                }
            }
        }
        found.sort_by_key(|(_, record)| std::cmp::Reverse((record.now, record.number)));
        found.truncate(count);
        let mut picks: Vec<NamedPick> =
            found.iter().map(|(pool, record)| NamedPick::of(pool, record, now)).collect();
        let mut balancers = Vec::new();
        if search.whole {
            let mut known = HashMap::new();
            for (pick, (pool, record)) in picks.iter_mut().zip(&found) {
                let place =
                    *known.entry((*pool, record.generation, record.version)).or_insert_with(|| {
                        balancers.push(RecordedBalancer::of(pool, record));
                        balancers.len() - 1
                    });
                pick.recorded = Some(RecordedPick::of(record, place));
            }
        }
        Picks { picks, pools_with_log: with, pools_without_log: without, balancers }
    }
}

impl NamedPick {
    /// A record of this pool, looked at now.
    pub fn of(pool: &str, record: &PickRecord, now: Tick) -> NamedPick {
        let names: Vec<&str> = record.endpoints().map(|(name, _)| name).collect();
        let name = |index: usize| names.get(index).map(|name| (*name).to_owned());
        let scores = record.scores();
        let unit = scores.iter().flatten().next().map(|score| score.unit.to_owned());
        let known = record.endpoints().zip(&scores).enumerate();
        let mut compared: Vec<(usize, Compared)> = known
            .filter_map(|(index, ((name, weight), score))| {
                let compared = Compared {
                    endpoint: name.to_owned(),
                    weight: weight.0,
                    score: number((*score)?),
                };
                Some((index, compared))
            })
            .collect();
        let compared_count = compared.len();
        if compared_count > COMPARED_MAX {
            // The picked one is among the best, whatever it is that is compared.
            compared.sort_by(|(one, left), (other, right)| {
                let is_other = |index: &usize| record.picked != Some(*index);
                (is_other(one).cmp(&is_other(other))).then(left.score.total_cmp(&right.score))
            });
            compared.truncate(COMPARED_MAX);
        }
        NamedPick {
            pool: pool.to_owned(),
            number: record.number,
            decision: record.decision.map(|id| id.to_string()),
            generation: record.generation,
            version: record.version,
            age_s: now.since(record.now).as_secs_f64(),
            client: record.from.map(|client| client.to_string()),
            key: match &record.key {
                RecordedKey::None => None,
                RecordedKey::Address(address) => Some(address.to_string()),
                RecordedKey::Bytes(bytes) => Some(bytes.escape_ascii().to_string()),
            },
            by: decider(record.by).to_owned(),
            endpoint: record.picked.and_then(name),
            ticket: record.ticket,
            random: format!("{:016x}", record.random),
            tried: record.tried.iter().filter_map(name).collect(),
            eligible: record.eligible().count(),
            unit,
            compared: compared.into_iter().map(|(_, compared)| compared).collect(),
            compared_count,
            outcome: record.outcome.map(|outcome| said(outcome).to_owned()),
            status: record.ending.status,
            failure: record.ending.failure.as_deref().map(str::to_owned),
            took_ms: record.settled.map(|end| millis(end.since(record.now))),
            replays: (record.by == PickedBy::Balancer)
                .then(|| record.replay() == Some(record.picked)),
            recorded: None,
        }
    }
}

fn millis(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1e6).round() / 1e3
}

fn said(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Completed(_) => "answered",
        Outcome::Unreachable => "unreachable",
        Outcome::Broken => "broken",
        Outcome::Late => "late",
        Outcome::Failed => "failed",
        Outcome::Cancelled => "cancelled",
    }
}
