//! Edits of files that change nothing because the API has set something else.

use std::fmt;
use std::num::NonZeroUsize;

use subak_base::Weight;
use subak_health::Admin;

use super::Layer;
use crate::Address;
use crate::model::{Config, Endpoint, Name, Pool};

/// A value that was edited in the files and is not in force.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Masked {
    /// The pool.
    pub pool: Name,
    /// The endpoint as it is written; `None` for what is set on the whole pool.
    pub endpoint: Option<String>,
    /// The key: `weight`, `state`, `pick_log`; `endpoints` for an endpoint that the API has removed.
    pub key: &'static str,
    /// What the files say now.
    pub in_file: String,
    /// What the API has set and what stays in force.
    pub by_api: String,
}

/// An endpoint in one string, with the options that are not at their default.
fn written(endpoint: &Endpoint) -> String {
    let mut text = endpoint.name.to_string();
    let mut option = |name: &str, value: Option<String>| {
        text.extend(value.map(|value| format!(" {name}={value}")));
    };
    option("weight", (endpoint.weight != Weight::ONE).then(|| endpoint.weight.0.to_string()));
    option("max_in_flight", endpoint.max_in_flight.map(|most| most.to_string()));
    option("max_connections", endpoint.max_connections.map(|most| most.to_string()));
    option("backup", endpoint.backup.then(|| "true".to_owned()));
    option("state", (endpoint.state != Admin::Ready).then(|| endpoint.state.to_string()));
    text
}

impl Masked {
    /// The command that puts the files' value in force.
    pub fn remedy(&self) -> String {
        let pool = &self.pool;
        match (self.key, &self.endpoint) {
            ("endpoints", _) => format!("subak ctl add {pool} '{}'", self.in_file),
            (key, Some(endpoint)) => format!("subak ctl reset {pool} {endpoint} --{key}"),
            (_, None) => format!("subak ctl picks {pool} default"),
        }
    }
}

/// `weight of 10.0.0.2:8080 (pool app) is 3 in the file; 5, set by the API, stays in force until …`
impl fmt::Display for Masked {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Masked { pool, endpoint, key, in_file, by_api } = self;
        let remedy = self.remedy();
        match endpoint {
            Some(endpoint) if *key == "endpoints" => write!(
                out,
                "{endpoint} of pool {pool} was edited in the file; the API has removed it, and it stays away \
                 until `{remedy}`"
            ),
            Some(endpoint) => write!(
                out,
                "{key} of {endpoint} (pool {pool}) is {in_file} in the file; {by_api}, set by the API, stays in \
                 force until `{remedy}`"
            ),
            None => write!(
                out,
                "{key} of pool {pool} is {in_file} in the file; {by_api}, set by the API, stays in force until \
                 `{remedy}`"
            ),
        }
    }
}

impl Layer {
    /// What the files say otherwise `now` than `before`, without effect because of this layer.
    pub fn masked(&self, before: &Config, now: &Config) -> Vec<Masked> {
        let mut masked = Vec::new();
        for (name, layer) in &self.pools {
            let (Some(old), Some(new)) = (before.pool(name), now.pool(name)) else { continue };
            let of = |endpoint: Option<&Endpoint>, key, in_file, by_api| Masked {
                pool: name.clone(),
                endpoint: endpoint.map(|endpoint| endpoint.name.to_string()),
                key,
                in_file,
                by_api,
            };
            for (address, set) in &layer.set {
                let Some((was, is)) = both(old, new, address) else { continue };
                if let Some(made) = &set.weight
                    && was.weight != is.weight
                    && made.value != is.weight
                {
                    let (in_file, by_api) = (is.weight.0.to_string(), made.value.0.to_string());
                    masked.push(of(Some(is), "weight", in_file, by_api));
                }
                if let Some(made) = &set.state
                    && was.state != is.state
                    && made.value.state != is.state
                {
                    let (in_file, by_api) = (is.state.to_string(), made.value.state.to_string());
                    masked.push(of(Some(is), "state", in_file, by_api));
                }
            }
            for address in layer.removed.keys() {
                if let Some((_, is)) = both(old, new, address).filter(|(was, is)| was != is) {
                    masked.push(of(Some(is), "endpoints", written(is), "removed".into()));
                }
            }
            if let Some(made) = &layer.pick_log
                && old.pick_log != new.pick_log
                && made.value != new.pick_log
            {
                let picks = |picks: Option<NonZeroUsize>| picks.map_or(0, NonZeroUsize::get);
                let (in_file, by_api) = (picks(new.pick_log), picks(made.value));
                masked.push(of(None, "pick_log", in_file.to_string(), by_api.to_string()));
            }
        }
        masked
    }
}

/// The endpoint of this address before and now, if the files had it and have it.
fn both<'a>(
    before: &'a Pool,
    now: &'a Pool,
    address: &Address,
) -> Option<(&'a Endpoint, &'a Endpoint)> {
    let find = |pool: &'a Pool| pool.endpoints.iter().find(|one| one.address == *address);
    find(before).zip(find(now))
}
