//! What the Admin API answers, as far as it is shown. Everything may be missing: another version may
//! tell less, and what it tells beyond this is ignored.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::paint::Tone;
use crate::written::age;

/// The status without the endpoints of its pools, where the process can leave them out.
pub const BRIEF: &str = "/v1/status?endpoints=false";

/// `/v1/status`.
#[derive(Clone, Deserialize, Default, Debug)]
#[serde(default)]
#[allow(missing_docs)] // docs/admin.md says what each means.
pub struct Status {
    pub version: String,
    pub pid: u32,
    pub uptime_s: f64,
    pub stopping: bool,
    pub generation: u64,
    pub reloads: u64,
    pub reloads_refused: u64,
    pub workers: usize,
    pub connections: usize,
    pub problems: Vec<Problem>,
    pub config: Option<Config>,
    pub listeners: Vec<Listener>,
    pub pools: Vec<Pool>,
}

/// Something that is wrong now.
#[derive(Clone, Deserialize, Default, Debug)]
#[serde(default)]
#[allow(missing_docs)]
pub struct Problem {
    pub kind: String,
    pub what: String,
    pub detail: String,
    pub for_s: f64,
}

/// Of the configuration in force.
#[derive(Clone, Deserialize, Default, Debug)]
#[serde(default)]
#[allow(missing_docs)]
pub struct Config {
    pub path: Option<String>,
    pub differs_from_file: bool,
    pub changes: u64,
}

/// One listener.
#[derive(Clone, Deserialize, Default, Debug)]
#[serde(default)]
#[allow(missing_docs)]
pub struct Listener {
    pub name: String,
    pub addresses: Vec<String>,
    pub tls: bool,
    pub certificates: Vec<Certificate>,
    pub connections: usize,
    pub streams: u64,
    pub accepted: u64,
    pub requests: BTreeMap<String, u64>,
    pub routes: Vec<Route>,
}

/// One certificate that is served.
#[derive(Clone, Deserialize, Default, Debug)]
#[serde(default)]
#[allow(missing_docs)]
pub struct Certificate {
    pub source: String,
    pub names: Vec<String>,
    pub key: String,
    pub expires_at: String,
    pub expires_in_s: f64,
}

impl Certificate {
    /// Seconds before its end from which people are warned: 14 days.
    const SOON_S: f64 = 14.0 * 86_400.0;

    /// Whether it has to be renewed now.
    pub fn is_urgent(&self) -> bool {
        self.expires_in_s < Certificate::SOON_S
    }

    /// When it expires, in words.
    pub fn expiry(&self) -> String {
        match self.expires_in_s {
            left if left < 0.0 => format!("expired {} ago", age(-left)),
            left => format!("expires in {}", age(left)),
        }
    }
}

/// One route; without an index, what the listener says itself.
#[derive(Clone, Deserialize, Default, Debug)]
#[serde(default)]
#[allow(missing_docs)]
pub struct Route {
    pub index: Option<usize>,
    #[serde(rename = "match")]
    pub matches: String,
    pub action: String,
    pub hits: u64,
}

/// One pool.
#[derive(Clone, Deserialize, Default, Debug)]
#[serde(default)]
#[allow(missing_docs)]
pub struct Pool {
    pub name: String,
    pub algorithm: String,
    pub because: String,
    pub eligible: Option<usize>,
    pub waiting: usize,
    pub requests: BTreeMap<String, u64>,
    pub retries: u64,
    pub durations: Option<Durations>,
    pub shadows: Option<Shadows>,
    pub endpoints: Endpoints,
}

/// What decides beside a pool's algorithm.
#[derive(Clone, Deserialize, Default, Debug)]
#[serde(default)]
#[allow(missing_docs)]
pub struct Shadows {
    pub caution: String,
    pub algorithms: Vec<Shadow>,
}

/// One algorithm that decides beside a pool's own.
#[derive(Clone, Deserialize, Default, Debug)]
#[serde(default)]
#[allow(missing_docs)]
pub struct Shadow {
    pub name: String,
    pub decisions: u64,
    pub agreement: Option<f64>,
    pub refusals: u64,
    pub imbalance: Option<f64>,
    pub pool_imbalance: Option<f64>,
    pub stopped: bool,
}

/// How long requests took.
#[derive(Clone, Deserialize, Default, Debug)]
#[serde(default)]
#[allow(missing_docs)]
pub struct Durations {
    pub count: u64,
    pub p50_ms: Option<f64>,
    pub p90_ms: Option<f64>,
    pub p99_ms: Option<f64>,
    pub mean_ms: Option<f64>,
}

/// The endpoints of a pool, or how many there are.
#[derive(Clone, Deserialize, Debug)]
#[serde(untagged)]
pub enum Endpoints {
    /// Each of them.
    Listed(Vec<Endpoint>),
    /// How many.
    Counted(Counts),
}

impl Default for Endpoints {
    fn default() -> Endpoints {
        Endpoints::Counted(Counts::default())
    }
}

/// How many endpoints a pool has.
#[derive(Clone, Copy, Deserialize, Default, Debug)]
#[serde(default)]
#[allow(missing_docs)]
pub struct Counts {
    pub total: usize,
    pub eligible: usize,
    pub down: usize,
    pub drain: usize,
    pub maintenance: usize,
    pub back_off: usize,
}

/// One endpoint.
#[derive(Clone, Deserialize, Default, Debug)]
#[serde(default)]
#[allow(missing_docs)]
pub struct Endpoint {
    pub id: u32,
    pub name: String,
    pub identity: String,
    pub address: String,
    pub origin: Option<String>,
    pub source: Option<String>,
    pub tier: String,
    pub state: String,
    pub reason: String,
    pub state_for_s: f64,
    pub wanted: Wanted,
    pub eligible: bool,
    pub back_off_for_s: Option<f64>,
    pub refusal: Option<String>,
    pub hits: u64,
    pub failures: u64,
    pub in_flight: u32,
    pub max_in_flight: Option<u32>,
    pub connections: u32,
    pub streams: u32,
    pub latency_ms: Option<f64>,
    pub latency: Option<Latency>,
    pub sessions: Option<u64>,
    pub weight: Weight,
    pub probe: Option<Probe>,
    pub drain: Option<Drain>,
}

/// The state that is wanted, and by whom: the file, the API, the agent.
#[derive(Clone, Deserialize, Default, Debug)]
#[serde(default)]
#[allow(missing_docs)]
pub struct Wanted {
    pub state: String,
    pub by: String,
}

/// How long an endpoint's answers took.
#[derive(Clone, Copy, Deserialize, Default, Debug)]
#[serde(default)]
#[allow(missing_docs)]
pub struct Latency {
    pub p50_ms: Option<f64>,
    pub p90_ms: Option<f64>,
    pub p99_ms: Option<f64>,
}

/// The layers of a weight.
#[derive(Clone, Copy, Deserialize, Debug)]
#[serde(default)]
#[allow(missing_docs)]
pub struct Weight {
    pub configured: u16,
    pub operator: Option<u16>,
    pub weigher: f64,
    pub agent: f64,
    pub slow_start: f64,
    pub in_force: u16,
}

impl Default for Weight {
    fn default() -> Weight {
        Weight {
            configured: 1,
            operator: None,
            weigher: 1.0,
            agent: 1.0,
            slow_start: 1.0,
            in_force: 1,
        }
    }
}

/// The last probe.
#[derive(Clone, Deserialize, Default, Debug)]
#[serde(default)]
#[allow(missing_docs)]
pub struct Probe {
    pub result: String,
    pub s_ago: f64,
}

/// How far a drain has come.
#[derive(Clone, Copy, Deserialize, Default, Debug)]
#[serde(default)]
#[allow(missing_docs)]
pub struct Drain {
    pub for_s: f64,
    pub deadline_in_s: Option<f64>,
    pub sessions_left: Option<u64>,
    pub in_flight: u32,
    pub connections: u32,
    pub is_empty: bool,
    pub empty_for_s: Option<f64>,
}

/// Something that has happened.
#[derive(Clone, Deserialize, Default, Debug)]
#[serde(default)]
#[allow(missing_docs)]
pub struct Event {
    pub number: u64,
    pub at: String,
    pub level: String,
    pub listener: Option<String>,
    pub pool: Option<String>,
    pub endpoint: Option<String>,
    pub text: String,
}

/// `/v1/events`.
#[derive(Clone, Deserialize, Default, Debug)]
#[serde(default)]
#[allow(missing_docs)]
pub struct Events {
    pub next: u64,
    pub events: Vec<Event>,
}

impl Status {
    /// The pool of this name.
    pub fn pool(&self, name: &str) -> Option<&Pool> {
        self.pools.iter().find(|pool| pool.name == name)
    }
}

impl Pool {
    /// Its endpoints, where they were told.
    pub fn listed(&self) -> Option<&[Endpoint]> {
        match &self.endpoints {
            Endpoints::Listed(endpoints) => Some(endpoints),
            Endpoints::Counted(_) => None,
        }
    }

    /// How many endpoints there are, in which state.
    pub fn counts(&self) -> Counts {
        let endpoints = match &self.endpoints {
            Endpoints::Counted(counts) => return *counts,
            Endpoints::Listed(endpoints) => endpoints,
        };
        let in_state =
            |state: &str| endpoints.iter().filter(|endpoint| endpoint.state == state).count();
        Counts {
            total: endpoints.len(),
            eligible: endpoints.iter().filter(|endpoint| endpoint.eligible).count(),
            down: in_state("down"),
            drain: in_state("drain"),
            maintenance: in_state("maintenance"),
            back_off: in_state("back_off"),
        }
    }
}

impl Counts {
    /// Whether somebody must look. Where all are down a pool may be told to try them all the same.
    pub(crate) fn tone(self) -> Tone {
        match self.eligible {
            0 => Tone::Bad,
            _ if self.down == self.total => Tone::Bad,
            eligible if eligible < self.total => Tone::Warn,
            _ => Tone::Good,
        }
    }
}

impl Endpoint {
    /// How long its answers take, as far as that is known.
    pub fn typical_ms(&self) -> Option<f64> {
        self.latency.and_then(|latency| latency.p50_ms).or(self.latency_ms)
    }
}

/// All requests that were answered, whatever by.
pub fn total(requests: &BTreeMap<String, u64>) -> u64 {
    requests.values().sum()
}

/// A path's segment: an endpoint on a unix socket has slashes in its name.
pub fn segment(name: &str) -> String {
    let mut segment = String::with_capacity(name.len());
    for byte in name.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b':' => {
                segment.push(char::from(byte));
            }
            _ => segment += &format!("%{byte:02X}"),
        }
    }
    segment
}

/// The path of a pool.
pub fn pool_path(pool: &str) -> String {
    format!("/v1/pools/{}", segment(pool))
}

/// The path of a key of a limit.
pub(crate) fn limit_key_path(limit: &str, key: &str) -> String {
    format!("/v1/limits/{}/keys/{}", segment(limit), segment(key))
}

/// The path of an endpoint.
pub fn endpoint_path(pool: &str, endpoint: &str) -> String {
    format!("{}/endpoints/{}", pool_path(pool), segment(endpoint))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_of_another_version_is_read_as_far_as_it_goes() {
        let text = r#"{"version":"9","news":7,"pools":[
            {"name":"a","endpoints":[{"name":"x","state":"down","hits":3},{"name":"y","eligible":true}]},
            {"name":"b","endpoints":{"total":5,"eligible":4,"down":1}}]}"#;
        let status: Status = serde_json::from_str(text).expect("a status");
        let counts = status.pool("a").expect("a").counts();
        assert_eq!((counts.total, counts.eligible, counts.down), (2, 1, 1));
        let pool = status.pool("b").expect("b");
        assert_eq!((pool.counts().total, pool.listed().is_none()), (5, true));
    }

    #[test]
    fn a_name_is_one_segment() {
        assert_eq!(segment("10.0.0.2:8080"), "10.0.0.2:8080");
        assert_eq!(segment("unix:/run/a b%.sock"), "unix:%2Frun%2Fa%20b%25.sock");
        assert_eq!(endpoint_path("app", "[::1]:80"), "/v1/pools/app/endpoints/%5B::1%5D:80");
    }
}
