//! What the API has changed, laid upon what the files say.
//!
//! What is in force = files ⊕ names resolved ⊕ this layer. The rules, each decided here alone:
//!
//! - a value set by API wins until it is taken back or saved;
//! - an endpoint added by API stays over reloads, until it is removed, or the files list it: then it
//!   is the files' own;
//! - an endpoint removed by API stays away for as long as the files list it;
//! - when an endpoint leaves what is below, whatever was set on it is forgotten; so it is with a pool.
//!
//! Endpoints are known by their address. Pure values: O(log n) for a change, O(n) to be laid upon a
//! configuration of n endpoints.

mod masked;
mod written;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::SystemTime;

use subak_base::{Tick, Weight};
use subak_health::Admin;

use crate::Address;
use crate::model::{Config, Endpoint, Name, Pool};

pub use masked::Masked;
pub use written::{NotWritten, Written, written};

/// Endpoints that the API can add to a pool, and remove from it.
pub const MAX_CHANGED_ENDPOINTS: usize = 10_000;

/// Everything that was changed by API.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Layer {
    /// Pools of which something was changed.
    pub pools: BTreeMap<Name, PoolLayer>,
}

/// What was changed of one pool.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct PoolLayer {
    /// In the order in which they came.
    pub added: Vec<Made<Added>>,
    /// Endpoints of the files that are not to be.
    pub removed: BTreeMap<Address, Made<()>>,
    /// What was set on endpoints, wherever these come from.
    pub set: BTreeMap<Address, Set>,
    /// Picks to be kept; `Some` of nothing: none, whatever the file says.
    pub pick_log: Option<Made<Option<NonZeroUsize>>>,
}

/// A change with who made it, and when.
#[derive(Clone, PartialEq, Debug)]
pub struct Made<T> {
    /// What.
    pub value: T,
    /// Who.
    pub by: Arc<str>,
    /// When.
    pub at: SystemTime,
}

/// An endpoint that was added.
#[derive(Clone, PartialEq, Debug)]
pub struct Added {
    /// As it would stand in a file.
    pub text: Arc<str>,
    /// What that means.
    pub endpoint: Endpoint,
}

/// What was set on an endpoint.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Set {
    /// Its weight.
    pub weight: Option<Made<Weight>>,
    /// The state wanted of it.
    pub state: Option<Made<Wanted>>,
}

/// A state that was set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Wanted {
    /// Which.
    pub state: Admin,
    /// When a drain becomes maintenance.
    pub deadline: Option<Tick>,
}

impl Layer {
    /// Whether nothing is changed.
    pub fn is_empty(&self) -> bool {
        self.pools.is_empty()
    }

    /// What is in force when this is laid upon `below`.
    pub fn apply(&self, below: &Config) -> Config {
        let mut config = below.clone();
        for pool in &mut config.pools {
            let Some(layer) = self.pools.get(&pool.name) else { continue };
            pool.endpoints.retain(|endpoint| !layer.removed.contains_key(&endpoint.address));
            pool.endpoints.extend(layer.added.iter().map(|added| added.value.endpoint.clone()));
            if let Some(pick_log) = &layer.pick_log {
                pool.pick_log = pick_log.value;
            }
        }
        config
    }

    /// Forgets what has nothing below it any more. To be called before it is laid upon another
    /// configuration.
    pub fn settle(&mut self, below: &Config) {
        let pools: BTreeMap<&Name, &Pool> =
            below.pools.iter().map(|pool| (&pool.name, pool)).collect();
        self.pools.retain(|name, layer| {
            let Some(pool) = pools.get(name) else { return false };
            layer.settle(pool);
            !layer.is_empty()
        });
    }

    /// What was changed of this pool.
    pub fn pool(&self, name: &str) -> Option<&PoolLayer> {
        self.pools.get(name)
    }

    /// Changes something of this pool.
    pub fn change<T>(&mut self, name: &Name, change: impl FnOnce(&mut PoolLayer) -> T) -> T {
        let layer = self.pools.entry(name.clone()).or_default();
        let changed = change(layer);
        if layer.is_empty() {
            self.pools.remove(name);
        }
        changed
    }

    /// The same without what was set on endpoints.
    pub fn without_settings(&self) -> Layer {
        let mut layer = self.clone();
        layer.pools.retain(|_, pool| {
            pool.set.clear();
            !pool.is_empty()
        });
        layer
    }

    /// Takes over what `other` sets on endpoints, where nothing is set here.
    pub fn inherit_settings(&mut self, other: &Layer) {
        for (name, theirs) in other.pools.iter().filter(|(_, pool)| !pool.set.is_empty()) {
            let own = &mut self.pools.entry(name.clone()).or_default().set;
            for (address, set) in &theirs.set {
                let own = own.entry(address.clone()).or_default();
                own.weight = own.weight.take().or_else(|| set.weight.clone());
                own.state = own.state.take().or_else(|| set.state.clone());
            }
        }
    }

    /// How many changes there are.
    pub fn len(&self) -> usize {
        self.pools.values().map(PoolLayer::len).sum()
    }
}

impl PoolLayer {
    /// Whether nothing is changed.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn len(&self) -> usize {
        let values =
            |set: &Set| usize::from(set.weight.is_some()) + usize::from(set.state.is_some());
        self.added.len()
            + self.removed.len()
            + self.set.values().map(values).sum::<usize>()
            + usize::from(self.pick_log.is_some())
    }

    /// Adds an endpoint. Whether it is one of the files' that was removed does not matter: this one
    /// takes its place. The caller has seen to it that no such endpoint is in force.
    pub fn add(&mut self, added: Made<Added>) {
        self.added.push(added);
    }

    /// Removes an endpoint with what was set on it; `below` says whether the files list it.
    pub fn remove(&mut self, address: &Address, is_below: bool, made: Made<()>) {
        self.added.retain(|added| added.value.endpoint.address != *address);
        self.set.remove(address);
        if is_below {
            self.removed.entry(address.clone()).or_insert(made);
        }
    }

    /// Changes what is set on an endpoint.
    pub fn set(&mut self, address: &Address, change: impl FnOnce(&mut Set)) {
        let set = self.set.entry(address.clone()).or_default();
        change(set);
        if *set == Set::default() {
            self.set.remove(address);
        }
    }

    fn settle(&mut self, pool: &Pool) {
        let below: HashSet<&Address> =
            pool.endpoints.iter().map(|endpoint| &endpoint.address).collect();
        self.removed.retain(|address, _| below.contains(address));
        self.added.retain(|added| {
            let address = &added.value.endpoint.address;
            !below.contains(address) || self.removed.contains_key(address)
        });
        let added: BTreeSet<Address> =
            self.added.iter().map(|added| added.value.endpoint.address.clone()).collect();
        let is_there = |address: &Address| {
            added.contains(address)
                || (below.contains(address) && !self.removed.contains_key(address))
        };
        self.set.retain(|address, set| is_there(address) && *set != Set::default());
    }
}
