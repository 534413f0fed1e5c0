//! Where one request would go, in plain values. The JSON of `POST /v1/explain`.

use serde::{Deserialize, Serialize};

use crate::question::Question;

/// Where a request would go, and why.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Explanation {
    /// What was asked.
    pub request: Question,
    /// Of a process that serves, rather than of a configuration.
    pub is_live: bool,
    /// Of the configuration in force; 0 where nothing is.
    pub generation: u64,
    /// Whom the listener takes for the client, after trusted proxies; none: a process without a name.
    pub client: Option<String>,
    /// Where it arrives.
    pub listener: ListenerTold,
    /// The listener's routes in order, its own pool last.
    pub routes: Vec<RouteTold>,
    /// The limits of the listener and of the route, in the order in which they are asked.
    #[serde(default)]
    pub limits: Vec<LimitTold>,
    /// What the route does; none where none takes it.
    pub action: Option<Action>,
    /// What becomes of it.
    pub outcome: Outcome,
    /// The pick, where the route has a pool.
    pub pool: Option<PoolTold>,
    /// Changes on the way, one sentence each.
    pub edits: Vec<String>,
    /// What to keep in mind, one sentence each.
    pub notes: Vec<String>,
}

/// A limit, and what it says of the request.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LimitTold {
    /// Its name.
    pub name: String,
    /// `rate` or `in_flight`.
    pub kind: String,
    /// What it allows.
    pub allows: String,
    /// Who is counted together.
    pub by: String,
    /// Whom the request is counted with.
    pub key: String,
    /// Tokens left, or how many more there may be, without this request.
    pub left: u32,
    /// Until a token is there, where there is none.
    pub retry_after_ms: Option<u64>,
    /// Whether the request is more than it allows.
    pub refuses: bool,
    /// Whether it refuses nobody all the same.
    pub is_dry_run: bool,
}

/// A listener.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ListenerTold {
    /// As configured.
    pub name: String,
    /// Why this one.
    pub why: String,
}

/// A route, and whether it takes the request.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct RouteTold {
    /// Its place in the file, from 1; none for the listener's own pool.
    pub index: Option<usize>,
    /// What it asks for.
    pub conditions: Vec<Condition>,
    /// Whether it takes the request.
    pub verdict: Verdict,
    /// What it does.
    pub action: Action,
}

/// One thing that a route asks for.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Condition {
    /// As it stands in the file, in words.
    pub text: String,
    /// Whether it holds.
    pub holds: bool,
}

/// Whether a route takes the request.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The first of which everything holds.
    Taken,
    /// Of several conditions all but one hold.
    Close,
    /// Something does not hold.
    Not,
    /// It would, but another comes first.
    Late,
}

impl Verdict {
    /// Of a route of which these conditions hold, after one `is_taken` already or not.
    pub fn of(conditions: &[Condition], is_taken: bool) -> Verdict {
        let broken = conditions.iter().filter(|condition| !condition.holds).count();
        match broken {
            0 if is_taken => Verdict::Late,
            0 => Verdict::Taken,
            1 if conditions.len() > 1 => Verdict::Close,
            _ => Verdict::Not,
        }
    }
}

/// What a route does.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "does")]
pub enum Action {
    /// Balances over a pool.
    Pool {
        /// Its name.
        pool: String,
    },
    /// Balances over one of several pools.
    Split {
        /// Their names.
        pools: Vec<String>,
    },
    /// Sends the client elsewhere.
    Redirect {
        /// How.
        status: u16,
        /// Where to, as configured.
        to: String,
    },
    /// Answers at once.
    Respond {
        /// With this.
        status: u16,
    },
}

/// What becomes of a request.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "is")]
pub enum Outcome {
    /// It is sent to this endpoint of the pool.
    Sent {
        /// As it is written.
        endpoint: String,
    },
    /// It stands in line.
    Waits {
        /// Why.
        reason: String,
    },
    /// Its connection is closed before it is read.
    Closed {
        /// Why.
        reason: String,
    },
    /// Subak answers it.
    Answered {
        /// With this status.
        status: u16,
        /// Why.
        reason: String,
    },
}

/// A pick, without it having been made.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct PoolTold {
    /// The pool's name.
    pub name: String,
    /// The algorithm's name in the catalogue.
    pub algorithm: String,
    /// Counts the pools of this name.
    pub generation: u64,
    /// Counts the balancers compiled in this generation.
    pub version: u64,
    /// The rule by which endpoints are eligible.
    pub because: String,
    /// Requests that stand in line before it.
    pub waiting: usize,
    /// What the client is recognised by, where the algorithm wants to know.
    pub key: Option<Key>,
    /// Where the client belongs, if it does.
    pub home: Option<Home>,
    /// Who decides: `algorithm`, `stickiness` or `last_resort`; none where there is no endpoint.
    pub by: Option<String>,
    /// The endpoint.
    pub picked: Option<String>,
    /// Endpoints that would be picked first and cannot take it, in order.
    pub passed: Vec<String>,
    /// The next ticket of the pool, where the algorithm draws one.
    pub ticket: Option<u64>,
    /// What scores count, and which way is better.
    pub unit: Option<String>,
    /// What decides between equals.
    pub ties: String,
    /// All endpoints, in configured order.
    pub candidates: Vec<Candidate>,
    /// What the pool's shadows would choose; empty where its algorithm does not decide.
    #[serde(default)]
    pub shadows: Vec<ShadowTold>,
}

/// What an algorithm would choose that decides beside the pool's own.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ShadowTold {
    /// The algorithm, and options that are not at their default.
    pub name: String,
    /// The endpoint; none: it finds nobody.
    pub picked: Option<String>,
    /// It has failed, and is asked no more.
    pub is_stopped: bool,
}

/// What a client is recognised by.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Key {
    /// As configured: `source`, `header:X-Tenant`.
    pub source: String,
    /// What was found; none: such a request is served in turn.
    pub value: Option<String>,
}

/// The endpoint that a sticky client belongs to.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Home {
    /// As it is written.
    pub endpoint: String,
    /// `cookie` or `table`.
    pub by: String,
    /// Whether the client may stay there.
    pub stays: bool,
}

/// One endpoint, as a pick sees it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Candidate {
    /// As it is written.
    pub endpoint: String,
    /// Whether it is the one.
    pub is_picked: bool,
    /// In force.
    pub weight: u16,
    /// Whether it is a backup.
    pub is_backup: bool,
    /// Requests under way.
    pub in_flight: u32,
    /// Of which there may be so many.
    pub max_in_flight: Option<u32>,
    /// What the algorithm compares, in `unit`; none where it does not look at it.
    pub score: Option<f64>,
    /// How much of its share it takes after it came back, where that thins keys; 1 is the whole.
    pub ramp: f64,
    /// Why it cannot be picked; none: it can.
    pub excluded: Option<String>,
}
