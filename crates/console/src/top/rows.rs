//! The rows of the table: pools and, below each that is open, its endpoints, sorted and filtered, and
//! what decides beside its algorithm.

use std::cmp::Ordering;

use super::state::State;
use crate::status::{Endpoint, Pool, Shadow, total};

/// What a row is, whatever its place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Key {
    pub(crate) pool: String,
    pub(crate) of: Of,
}

/// What of a pool a row is about.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Of {
    Pool,
    Endpoint(u32),
    /// By its name.
    Shadow(String),
}

/// A row.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Row<'a> {
    Pool(&'a Pool),
    Endpoint(&'a Pool, &'a Endpoint),
    Shadow(&'a Pool, &'a Shadow),
}

impl<'a> Row<'a> {
    pub(crate) fn key(&self) -> Key {
        match self {
            Row::Pool(pool) => Key { pool: pool.name.clone(), of: Of::Pool },
            Row::Endpoint(pool, endpoint) => {
                Key { pool: pool.name.clone(), of: Of::Endpoint(endpoint.id) }
            }
            Row::Shadow(pool, shadow) => {
                Key { pool: pool.name.clone(), of: Of::Shadow(shadow.name.clone()) }
            }
        }
    }

    pub(crate) fn pool(&self) -> &'a Pool {
        match self {
            Row::Pool(pool) | Row::Endpoint(pool, _) | Row::Shadow(pool, _) => pool,
        }
    }
}

/// What rows are sorted by. Pools and the endpoints of each pool are sorted by the same.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Sort {
    Configured,
    Name,
    Hits,
    Rate,
    InFlight,
    Latency,
    Failed,
    State,
}

/// Each, in the order in which a key goes through them.
const SORTS: [Sort; 8] = [
    Sort::Configured,
    Sort::Name,
    Sort::Hits,
    Sort::Rate,
    Sort::InFlight,
    Sort::Latency,
    Sort::Failed,
    Sort::State,
];

impl Sort {
    pub(crate) fn next(self) -> Sort {
        let at = SORTS.iter().position(|sort| *sort == self).unwrap_or(0);
        SORTS[(at + 1) % SORTS.len()]
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Sort::Configured => "order of the file",
            Sort::Name => "name",
            Sort::Hits => "hits",
            Sort::Rate => "rate",
            Sort::InFlight => "in flight",
            Sort::Latency => "latency",
            Sort::Failed => "failed",
            Sort::State => "state",
        }
    }
}

/// All rows that the filter leaves, sorted.
pub(crate) fn all(state: &State) -> Vec<Row<'_>> {
    let Some(status) = &state.status else { return Vec::new() };
    let filter = state.filter.to_lowercase();
    let mut pools: Vec<&Pool> = status.pools.iter().collect();
    pools.sort_by(|one, two| ordered(state, compare_pools(state, one, two)));
    let mut rows = Vec::new();
    for pool in pools {
        let whole = contains(&pool.name, &filter);
        let listed = pool.listed().unwrap_or_default().iter();
        let mut endpoints: Vec<&Endpoint> =
            listed.filter(|endpoint| whole || matches(endpoint, &filter)).collect();
        let shadows = pool.shadows.iter().flat_map(|shadows| &shadows.algorithms);
        let shadows: Vec<&Shadow> =
            shadows.filter(|shadow| whole || contains(&shadow.name, &filter)).collect();
        if !whole && endpoints.is_empty() && shadows.is_empty() {
            continue;
        }
        rows.push(Row::Pool(pool));
        if state.is_open(pool) {
            let by =
                |one: &&Endpoint, two: &&Endpoint| ordered(state, compare(state, pool, one, two));
            endpoints.sort_by(by);
            rows.extend(endpoints.into_iter().map(|endpoint| Row::Endpoint(pool, endpoint)));
            rows.extend(shadows.into_iter().map(|shadow| Row::Shadow(pool, shadow)));
        }
    }
    rows
}

fn ordered(state: &State, ordering: Ordering) -> Ordering {
    if state.reversed { ordering.reverse() } else { ordering }
}

/// The largest first, names and states from the front.
fn compare(state: &State, pool: &Pool, one: &Endpoint, two: &Endpoint) -> Ordering {
    let rate = |endpoint: &Endpoint| {
        state.track(pool, endpoint).and_then(|track| track.hits.per_second()).unwrap_or(0.0)
    };
    let latency = |endpoint: &Endpoint| endpoint.typical_ms().unwrap_or(-1.0);
    match state.sort {
        Sort::Configured => Ordering::Equal,
        Sort::Name => one.name.cmp(&two.name),
        Sort::Hits => two.hits.cmp(&one.hits),
        Sort::Rate => rate(two).total_cmp(&rate(one)),
        Sort::InFlight => two.in_flight.cmp(&one.in_flight),
        Sort::Latency => latency(two).total_cmp(&latency(one)),
        Sort::Failed => two.failures.cmp(&one.failures),
        Sort::State => badness(one).cmp(&badness(two)).then(one.name.cmp(&two.name)),
    }
}

/// What needs somebody's attention comes first.
fn badness(endpoint: &Endpoint) -> u8 {
    match (&*endpoint.state, endpoint.eligible) {
        ("down", _) => 0,
        ("back_off", _) | ("ready", false) => 1,
        ("drain", _) => 2,
        ("ready", true) => 4,
        _ => 3,
    }
}

fn compare_pools(state: &State, one: &Pool, two: &Pool) -> Ordering {
    let rate = |pool: &Pool| state.pool_rate(&pool.name).unwrap_or(0.0);
    let latency = |pool: &Pool| {
        pool.durations.as_ref().and_then(|durations| durations.p50_ms).unwrap_or(-1.0)
    };
    let failed = |pool: &Pool| pool.requests.get("5xx").copied().unwrap_or(0);
    let missing =
        |pool: &Pool| pool.counts().total - pool.counts().eligible.min(pool.counts().total);
    match state.sort {
        Sort::Configured => Ordering::Equal,
        Sort::Name => one.name.cmp(&two.name),
        Sort::Hits => total(&two.requests).cmp(&total(&one.requests)),
        Sort::Rate => rate(two).total_cmp(&rate(one)),
        Sort::InFlight => in_flight(two).cmp(&in_flight(one)),
        Sort::Latency => latency(two).total_cmp(&latency(one)),
        Sort::Failed => failed(two).cmp(&failed(one)),
        Sort::State => missing(two).cmp(&missing(one)).then(one.name.cmp(&two.name)),
    }
}

/// Requests under way at the endpoints that are known.
pub(crate) fn in_flight(pool: &Pool) -> u64 {
    let endpoints = pool.listed().unwrap_or_default();
    endpoints.iter().map(|endpoint| u64::from(endpoint.in_flight)).sum()
}

fn matches(endpoint: &Endpoint, filter: &str) -> bool {
    [&endpoint.name, &endpoint.state, &endpoint.reason]
        .into_iter()
        .any(|text| contains(text, filter))
        || endpoint.origin.as_deref().is_some_and(|origin| contains(origin, filter))
}

fn contains(text: &str, filter: &str) -> bool {
    filter.is_empty() || text.to_lowercase().contains(filter)
}
