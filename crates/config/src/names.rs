//! Endpoints by name: a configuration with the addresses that names stand for at the moment.
//!
//! Pure: whoever asks DNS hands the answers over. Addresses that stand in the configuration themselves
//! come before those of names, and names in their order: of two that lead to one address the first
//! gives the endpoint. A pool is never left without endpoints by a name that has not been answered yet:
//! it keeps those it had until the first answer is there.

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::sync::Arc;

use subak_balance::{Endpoints, Entry};
use subak_base::Weight;

use crate::address::Address;
use crate::defaults::MAX_ENDPOINTS;
use crate::model::{ByName, Config, Endpoint, Name, Origin, Pool};

/// An address that a name leads to.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Found {
    /// Whether the records put others first.
    pub backup: bool,
    /// Where it is.
    pub address: SocketAddr,
    /// Its share, where the records say one.
    pub weight: Option<Weight>,
    /// The host that a service's records name.
    pub target: Option<Arc<str>>,
}

/// What names stand for. A name that has never been answered is not in it.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Answers(pub BTreeMap<Origin, Arc<[Found]>>);

/// A configuration with the endpoints that names lead to.
#[derive(Clone, PartialEq, Debug)]
pub struct Resolved {
    /// As it can be put in force.
    pub config: Config,
    /// What somebody should look at.
    pub oddities: Vec<Oddity>,
}

/// What is odd about a pool's names.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Oddity {
    /// The pool.
    pub pool: Name,
    /// The name it is about, as configurations write it.
    pub origin: String,
    /// What is odd, and what to do.
    pub what: String,
}

impl Answers {
    /// A configuration with the addresses of its names; `before` is what the last one came to.
    pub fn apply(&self, config: &Config, before: Option<&Config>) -> Resolved {
        let mut resolved = config.clone();
        let mut oddities = Vec::new();
        for pool in resolved.pools.iter_mut().filter(|pool| !pool.names.is_empty()) {
            let before = before.and_then(|before| before.pool(&pool.name));
            let endpoints = self.endpoints(pool, before, &mut oddities);
            pool.endpoints = endpoints;
        }
        Resolved { config: resolved, oddities }
    }

    fn endpoints(
        &self,
        pool: &Pool,
        before: Option<&Pool>,
        oddities: &mut Vec<Oddity>,
    ) -> Vec<Endpoint> {
        let mut taken: HashMap<Address, Arc<str>> = HashMap::new();
        for endpoint in &pool.endpoints {
            taken.insert(endpoint.address.clone(), endpoint.name.clone());
        }
        let mut endpoints = Vec::new();
        let mut written = pool.endpoints.iter().cloned();
        let mut oddity = |by_name: &ByName, what| {
            let pool = pool.name.clone();
            oddities.push(Oddity { pool, origin: by_name.origin.to_string(), what });
        };
        let mut passed = 0;
        for by_name in &pool.names {
            endpoints.extend(written.by_ref().take(by_name.place - passed));
            passed = by_name.place;
            let origin: Arc<str> = by_name.origin.to_string().into();
            for found in self.0.get(&by_name.origin).map_or(&[][..], |found| found) {
                let endpoint = endpoint(by_name, &origin, found);
                if let Some(first) = taken.get(&endpoint.address) {
                    let address = &endpoint.address;
                    oddity(by_name, format!("its {address} is already there by {first}"));
                    continue;
                }
                if taken.len() >= MAX_ENDPOINTS {
                    oddity(by_name, format!("a pool has at most {MAX_ENDPOINTS} endpoints"));
                    break;
                }
                taken.insert(endpoint.address.clone(), origin.clone());
                endpoints.push(endpoint);
            }
        }
        endpoints.extend(written);
        let kept = before.map_or(&[][..], |before| &before.endpoints);
        let is_answered = |by_name: &ByName| self.0.contains_key(&by_name.origin);
        if endpoints.is_empty() && !pool.names.iter().any(is_answered) {
            return kept.to_vec();
        }
        if let Some(unfit) = unfit(pool, &endpoints) {
            let algorithm = pool.algorithm.listing().name;
            let first = &pool.names[0];
            oddity(first, format!("{algorithm} cannot work on what it leads to: {unfit}"));
            return kept.to_vec();
        }
        endpoints
    }
}

fn endpoint(by_name: &ByName, origin: &Arc<str>, found: &Found) -> Endpoint {
    let address = Address::inet(found.address);
    let host = match (&by_name.origin, &found.target) {
        (Origin::Host { host, .. }, _) | (_, Some(host)) => {
            let port = found.address.port();
            Some(if port == 80 { host.clone() } else { format!("{host}:{port}").into() })
        }
        (Origin::Service(_), None) => None,
    };
    Endpoint {
        name: address.to_string().into(),
        address,
        origin: Some(origin.clone()),
        host,
        weight: found.weight.unwrap_or(by_name.weight),
        max_in_flight: by_name.max_in_flight,
        max_connections: by_name.max_connections,
        backup: by_name.backup || found.backup,
        state: by_name.state,
    }
}

/// Why the pool's algorithm cannot have these endpoints, if it cannot.
fn unfit(pool: &Pool, endpoints: &[Endpoint]) -> Option<String> {
    let entry = |endpoint: &Endpoint| {
        Entry::new(endpoint.address.to_string(), &*endpoint.name, endpoint.weight)
    };
    let list = Endpoints::new(endpoints.iter().map(entry).collect()).ok()?;
    pool.algorithm.check(&list).err().map(|unfit| unfit.to_string())
}

#[cfg(test)]
mod tests;
