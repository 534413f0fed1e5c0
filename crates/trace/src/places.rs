//! Where does a key belong? For algorithms that keep a client, or a path, at one endpoint.

use std::cell::Cell;

use subak_balance::catalogue::Share;
use subak_balance::{
    Algorithm, Balancer, Endpoints, Entry, Key, LoadView, PickRequest, Recipe, Tickets,
};
use subak_base::{BitSet, Tick};
use subak_pool::PoolSpec;

use crate::address::address;
use crate::log::Log;
use crate::objects::{Part, object};

/// Keys that are asked about.
const MOST_KEYS: usize = 10_000;

/// What an algorithm recognises a request by, of what logs have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum KeyOf {
    Client,
    Object(Part),
}

/// What keys of this algorithm are made from. An error names what no log has.
pub(crate) fn key_of(algorithm: &Algorithm) -> Result<Option<KeyOf>, String> {
    use subak_balance::KeySource;
    let is_by_key = algorithm.traits().share == Share::ByKey;
    match algorithm.key() {
        None => Ok(is_by_key.then_some(KeyOf::Client)),
        Some(KeySource::Source) => Ok(Some(KeyOf::Client)),
        Some(KeySource::Uri) => Ok(Some(KeyOf::Object(Part::Uri))),
        Some(KeySource::Path) => Ok(Some(KeyOf::Object(Part::Path))),
        Some(other) => Err(other.to_string()),
    }
}

/// The keys of the log that are asked for oftenest come first in none of it: they are taken as they
/// came, each once.
fn keys(log: &Log, of: KeyOf) -> Vec<u32> {
    let mut seen = match of {
        KeyOf::Client => vec![false; log.clients.len()],
        KeyOf::Object(_) => vec![false; log.uris.len()],
    };
    let mut keys = Vec::new();
    for request in &log.requests {
        let key = number(request, of);
        if !std::mem::replace(&mut seen[key as usize], true) {
            keys.push(key);
            if keys.len() == MOST_KEYS {
                break;
            }
        }
    }
    keys
}

fn number(request: &crate::log::Request, of: KeyOf) -> u32 {
    match of {
        KeyOf::Client => request.client,
        KeyOf::Object(_) => request.uri,
    }
}

/// A balancer over a pool's endpoints, with nothing in flight.
pub(crate) struct Places {
    balancer: Balancer,
    eligible: BitSet,
    tickets: Counter,
}

struct Counter(Cell<u64>);

impl Tickets for Counter {
    fn draw(&self) -> u64 {
        self.0.replace(self.0.get() + 1)
    }
}

struct Idle;

impl LoadView for Idle {
    fn in_flight(&self, _: usize) -> u32 {
        0
    }
}

impl Places {
    /// None where the pool's list cannot be: configuration refuses that.
    pub(crate) fn new(pool: &PoolSpec, without: Option<usize>) -> Option<Places> {
        let entry = |endpoint: &subak_pool::EndpointSpec| {
            Entry::new(endpoint.identity(), endpoint.name.clone(), endpoint.weight)
        };
        let endpoints = Endpoints::new(pool.endpoints.iter().map(entry).collect()).ok()?;
        let mut eligible = BitSet::full(endpoints.len());
        if let Some(without) = without {
            eligible.remove(without);
        }
        let recipe = Recipe {
            algorithm: &pool.algorithm,
            endpoints: &endpoints,
            eligible: &eligible,
            previous: None,
        };
        let balancer = Balancer::build(recipe);
        Some(Places { balancer, eligible, tickets: Counter(Cell::new(0)) })
    }

    /// The endpoint that a key belongs to.
    pub(crate) fn of(&self, log: &Log, of: KeyOf, key: u32) -> Option<usize> {
        let key = match of {
            KeyOf::Client => Key::Address(address(log.clients.text(key))),
            KeyOf::Object(part) => Key::Bytes(object(log.uris.text(key), part)),
        };
        let request = PickRequest {
            tickets: &self.tickets,
            random: 0,
            now: Tick(0),
            key,
            eligible: &self.eligible,
            tried: &BitSet::EMPTY,
        };
        self.balancer.pick(&Idle, &request)
    }
}

/// Of the keys that belong to others how many move, in thousandths, when the endpoint at `without`
/// fails; none for algorithms without places.
pub(crate) fn moved_per_mille(log: &Log, pool: &PoolSpec, without: usize) -> Option<u64> {
    let of = key_of(&pool.algorithm).ok()??;
    let (before, after) = (Places::new(pool, None)?, Places::new(pool, Some(without))?);
    let (mut others, mut moved) = (0, 0);
    for key in keys(log, of) {
        let place = before.of(log, of, key);
        if place != Some(without) {
            others += 1;
            moved += u64::from(after.of(log, of, key) != place);
        }
    }
    (others > 0).then(|| (moved * 1000 + others / 2) / others)
}

/// Of the log's requests how many are where this pool's algorithm puts their keys, in thousandths;
/// none for algorithms without places.
pub(crate) fn agreement_per_mille(log: &Log, pool: &PoolSpec) -> Option<u64> {
    let of = key_of(&pool.algorithm).ok()??;
    let places = Places::new(pool, None)?;
    let step = (log.requests.len() / MOST_KEYS).max(1);
    let (mut count, mut same) = (0, 0);
    for request in log.requests.iter().step_by(step) {
        count += 1;
        let place = places.of(log, of, number(request, of));
        same += u64::from(place == Some(usize::from(request.endpoint)));
    }
    (count > 0).then(|| same * 1000 / count)
}
