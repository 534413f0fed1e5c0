//! From TOML to a scenario. What the text itself gets wrong (syntax, unknown keys, types) is one
//! error; what the values get wrong is told all at once.

mod load;

use std::path::Path;
use std::time::Duration;

use serde::Deserialize;
use subak_config::{Diagnostic, Sources, Span};
use subak_sim::{Balancers, Fault, Herd, Sees, Trouble};
use toml::Spanned;

use crate::assertion::Assertion;
use crate::model::{Algorithm, Attack, Endpoint, Scenario, Service};
use crate::words;
use load::RawLoad;

/// Endpoints of one scenario, at most.
const MAX_ENDPOINTS: usize = 1_000;
/// Seeds, repetitions.
const MAX_RUNS: u32 = 1_000;
/// Balancers.
const MAX_BALANCERS: u32 = 64;
/// Of one attacker: requests or connections a second.
const MAX_ATTACK_RATE: f64 = 10_000.0;
/// A text is not longer.
const MAX_BYTES: usize = 1 << 20;

/// What became of a text.
#[derive(Debug)]
pub struct Read {
    /// Present when there is no diagnostic.
    pub scenario: Option<Scenario>,
    /// What is wrong.
    pub diagnostics: Vec<Diagnostic>,
    /// What the diagnostics refer to; renders them.
    pub sources: Sources,
}

/// Reads a scenario; `origin` is what errors call the text.
pub fn read(text: &str, origin: &Path) -> Read {
    let sources = Sources::new(text, origin);
    let wrong = |error| Read {
        scenario: None,
        diagnostics: vec![error],
        sources: Sources::new(text, origin),
    };
    if text.len() > MAX_BYTES {
        let message = format!("a scenario has at most {MAX_BYTES} bytes");
        return wrong(Diagnostic::error(Span::default(), message));
    }
    match toml::from_str::<Raw>(text) {
        Err(error) => {
            let span = error.span().map_or(Span::default(), |span| Span::new(span.start, span.end));
            wrong(Diagnostic::error(span, error.message().replace('\n', " ")))
        }
        Ok(raw) => {
            let mut reader = Reader { found: Vec::new() };
            let scenario = reader.scenario(raw);
            let diagnostics = reader.found;
            let scenario = diagnostics.is_empty().then_some(scenario);
            Read { scenario, diagnostics, sources }
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
struct Raw {
    title: String,
    question: String,
    lasts: Spanned<String>,
    warm_up: Option<Spanned<String>>,
    seeds: Option<Spanned<u32>>,
    repetitions: Option<Spanned<u32>>,
    algorithms: Spanned<Vec<Spanned<toml::Value>>>,
    load: Spanned<RawLoad>,
    #[serde(default)]
    listener: toml::Table,
    #[serde(default)]
    pool: toml::Table,
    endpoint: Spanned<Vec<RawEndpoint>>,
    balancers: Option<Spanned<RawBalancers>>,
    #[serde(default)]
    fault: Vec<RawFault>,
    #[serde(default)]
    herd: Vec<RawHerd>,
    #[serde(default)]
    attack: Vec<RawAttack>,
    trouble: Option<RawTrouble>,
    #[serde(default)]
    assert: Vec<Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "a number, or { count = …, sees = …, every = … }")]
enum RawBalancers {
    Count(u32),
    Manner { count: u32, sees: Option<String>, every: Option<String> },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawEndpoint {
    count: Option<usize>,
    weight: Option<Spanned<u16>>,
    service: Spanned<String>,
    concurrency: Option<Spanned<u32>>,
    queue: Option<u32>,
    cache: Option<RawCache>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawCache {
    objects: u32,
    hit: Spanned<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFault {
    endpoints: Spanned<Vec<usize>>,
    at: Spanned<String>,
    lasts: Spanned<String>,
    what: Spanned<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawHerd {
    at: Spanned<String>,
    requests: u32,
    within: Spanned<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawAttack {
    what: Spanned<String>,
    at: Spanned<String>,
    lasts: Spanned<String>,
    rate: Spanned<f64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawTrouble {
    from: Spanned<String>,
    until: Spanned<String>,
}

struct Reader {
    found: Vec<Diagnostic>,
}

fn span<T>(at: &Spanned<T>) -> Span {
    Span::new(at.span().start, at.span().end)
}

impl Reader {
    fn wrong(&mut self, at: Span, message: impl Into<String>) {
        self.found.push(Diagnostic::error(at, message));
    }

    fn word<T>(
        &mut self,
        text: &Spanned<String>,
        read: fn(&str) -> Result<T, String>,
    ) -> Option<T> {
        read(text.get_ref()).map_err(|message| self.wrong(span(text), message)).ok()
    }

    fn time(&mut self, text: &Spanned<String>) -> Duration {
        self.word(text, words::duration).unwrap_or_default()
    }

    /// What is tried in several ways has no place of its own.
    fn time_in(&mut self, text: &str, place: Span) -> Duration {
        words::duration(text).map_err(|message| self.wrong(place, message)).unwrap_or_default()
    }

    fn within(&mut self, given: Option<Spanned<u32>>, default: u32, least: u32, most: u32) -> u32 {
        let Some(given) = given else { return default };
        if !(least..=most).contains(given.get_ref()) {
            self.wrong(span(&given), format!("from {least} to {most}"));
        }
        given.into_inner()
    }

    fn scenario(&mut self, raw: Raw) -> Scenario {
        let lasts = self.time(&raw.lasts);
        let warm_up = raw.warm_up.as_ref().map_or(Duration::ZERO, |text| self.time(text));
        if warm_up >= lasts
            && let Some(text) = &raw.warm_up
        {
            self.wrong(span(text), "nothing is left to measure after the warm-up");
        }
        let algorithms = self.algorithms(&raw.algorithms);
        let load = self.load(raw.load, lasts);
        let endpoints = self.endpoints(raw.endpoint);
        let faults = raw.fault.into_iter().filter_map(|fault| self.fault(fault, endpoints.len()));
        let faults: Vec<Fault> = faults.collect();
        let herd = |raw: &RawHerd, reader: &mut Reader| Herd {
            at: reader.time(&raw.at),
            requests: raw.requests,
            within: reader.time(&raw.within),
        };
        let herds: Vec<Herd> = raw.herd.iter().map(|raw| herd(raw, self)).collect();
        let attacks: Vec<Attack> =
            raw.attack.iter().filter_map(|attack| self.attack(attack)).collect();
        let trouble = match &raw.trouble {
            Some(raw) => {
                let (from, until) = (self.time(&raw.from), self.time(&raw.until));
                if until < from {
                    self.wrong(span(&raw.until), "the trouble ends before it begins");
                }
                Some((from, until))
            }
            None => {
                let faults = faults.iter().map(|fault| (fault.from, fault.until));
                let herds = herds.iter().map(|herd| (herd.at, herd.at + herd.within));
                let attacks = attacks.iter().map(|attack| (attack.from, attack.until));
                faults
                    .chain(herds)
                    .chain(attacks)
                    .reduce(|one, other| (one.0.min(other.0), one.1.max(other.1)))
            }
        };
        let mut assertions = Vec::new();
        for text in &raw.assert {
            match Assertion::read(text.get_ref(), &algorithms) {
                Ok(assertion) => assertions.push(assertion),
                Err(message) => self.wrong(span(text), message),
            }
        }
        for key in ["balance", "endpoints"].iter().filter(|key| raw.pool.contains_key(**key)) {
            let instead = if *key == "balance" { "algorithms" } else { "[[endpoint]]" };
            self.wrong(Span::default(), format!("[pool] has no {key} here: {instead} says it"));
        }
        for key in ["bind", "pool", "trusted_proxies"] {
            if raw.listener.contains_key(key) {
                self.wrong(Span::default(), format!("[listener] has no {key} here: it is made"));
            }
        }
        Scenario {
            title: raw.title,
            question: raw.question,
            lasts,
            warm_up,
            seeds: self.within(raw.seeds, 5, 2, MAX_RUNS),
            repetitions: self.within(raw.repetitions, 3, 2, MAX_RUNS),
            algorithms,
            load,
            listener: raw.listener,
            pool: raw.pool,
            endpoints,
            balancers: raw.balancers.map_or_else(Balancers::default, |raw| self.balancers(&raw)),
            faults,
            herds,
            attacks,
            trouble,
            assertions,
        }
    }

    fn algorithms(&mut self, list: &Spanned<Vec<Spanned<toml::Value>>>) -> Vec<Algorithm> {
        let mut algorithms: Vec<Algorithm> = Vec::new();
        for entry in list.get_ref() {
            match Algorithm::of(entry.get_ref().clone()) {
                Ok(one) if algorithms.iter().any(|other| other.name == one.name) => {
                    self.wrong(span(entry), format!("{} stands here twice", one.name));
                }
                Ok(one) => algorithms.push(one),
                Err(message) => self.wrong(span(entry), message),
            }
        }
        if list.get_ref().is_empty() {
            self.wrong(span(list), "at least one algorithm");
        }
        algorithms
    }

    fn endpoints(&mut self, raw: Spanned<Vec<RawEndpoint>>) -> Vec<Endpoint> {
        let at = span(&raw);
        let mut endpoints = Vec::new();
        for raw in raw.into_inner() {
            let cache = raw.cache.and_then(|cache| {
                Some((cache.objects.max(1), self.word(&cache.hit, words::service)?))
            });
            let concurrency = self.within(raw.concurrency, 1, 1, 100_000);
            if let Some(weight) = raw.weight.as_ref().filter(|weight| *weight.get_ref() == 0) {
                self.wrong(span(weight), "a weight is at least 1");
            }
            // One whose work is not understood still counts, so that others keep their places.
            let service = self.word(&raw.service, words::service);
            let service = service.unwrap_or(Service::Constant(Duration::ZERO));
            let endpoint = Endpoint {
                weight: raw.weight.map_or(1, Spanned::into_inner),
                service,
                concurrency,
                queue: raw.queue.unwrap_or(1_000),
                cache,
            };
            if raw.count == Some(0) {
                self.wrong(at, "no endpoint at all: `count` is at least 1");
            }
            let count = raw.count.unwrap_or(1).min(MAX_ENDPOINTS + 1);
            endpoints.extend(std::iter::repeat_n(endpoint, count));
            endpoints.truncate(MAX_ENDPOINTS + 1);
        }
        if endpoints.len() > MAX_ENDPOINTS {
            self.wrong(at, format!("a scenario has at most {MAX_ENDPOINTS} endpoints"));
        }
        endpoints
    }

    fn balancers(&mut self, raw: &Spanned<RawBalancers>) -> Balancers {
        let (count, sees, every) = match raw.get_ref() {
            RawBalancers::Count(count) => (*count, None, None),
            RawBalancers::Manner { count, sees, every } => {
                (*count, sees.as_deref(), every.as_deref())
            }
        };
        if !(1..=MAX_BALANCERS).contains(&count) {
            self.wrong(span(raw), format!("from 1 to {MAX_BALANCERS} balancers"));
        }
        let sees = match sees {
            None | Some("own") => Sees::Own,
            Some("all") => Sees::All,
            Some(other) => {
                let said = "a balancer sees its own requests (\"own\") or everybody's (\"all\")";
                self.wrong(span(raw), format!("{said}, not {other:?}"));
                Sees::Own
            }
        };
        let every = every.map_or(Duration::ZERO, |text| self.time_in(text, span(raw)));
        Balancers { count, sees, every }
    }

    fn attack(&mut self, raw: &RawAttack) -> Option<Attack> {
        let from = self.time(&raw.at);
        let until = from + self.time(&raw.lasts);
        if !(0.1..=MAX_ATTACK_RATE).contains(raw.rate.get_ref()) {
            let message = format!("an attack's rate is from 0.1 to {MAX_ATTACK_RATE} a second");
            self.wrong(span(&raw.rate), message);
        }
        let what = self.word(&raw.what, words::assault)?;
        Some(Attack { what, from, until, rate: *raw.rate.get_ref() })
    }

    fn fault(&mut self, raw: RawFault, endpoints: usize) -> Option<Fault> {
        if raw.endpoints.get_ref().iter().any(|place| *place >= endpoints) {
            let last = endpoints.saturating_sub(1);
            self.wrong(span(&raw.endpoints), format!("endpoints are counted from 0 to {last}"));
        }
        let from = self.time(&raw.at);
        let until = from + self.time(&raw.lasts);
        let trouble = self.word(&raw.what, words::trouble)?;
        if let Trouble::Deploy { drain, away } = trouble {
            let takes = (drain + away).saturating_mul(raw.endpoints.get_ref().len() as u32);
            if takes > until - from {
                let lasts = until - from;
                let said = format!(
                    "the endpoints go one after the other: all of them take {takes:?}, and the fault \
                     lasts {lasts:?}"
                );
                self.wrong(span(&raw.what), said);
            }
        }
        Some(Fault { endpoints: raw.endpoints.into_inner(), from, until, trouble })
    }
}

impl Algorithm {
    /// From the value of `balance` in a configuration.
    ///
    /// # Errors
    /// It is neither a name nor a table with one.
    pub fn of(balance: toml::Value) -> Result<Algorithm, String> {
        let name = match &balance {
            toml::Value::String(name) => name.clone(),
            toml::Value::Table(options) => {
                let name = options.get("algorithm").and_then(toml::Value::as_str);
                let Some(name) = name else { return Err("which algorithm?".to_owned()) };
                let others = options.iter().filter(|(key, _)| *key != "algorithm");
                let others: Vec<String> = others
                    .map(|(key, value)| {
                        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                        format!("{key} {value}")
                    })
                    .collect();
                if others.is_empty() {
                    name.to_owned()
                } else {
                    format!("{name} ({})", others.join(", "))
                }
            }
            _ => return Err("an algorithm is a name, or a table with its options".to_owned()),
        };
        let plain = name.split(' ').next().unwrap_or_default();
        if subak_balance::catalogue::find(plain).is_none() {
            let near = subak_config::nearest(plain, subak_balance::catalogue::names());
            let near = near.map_or(String::new(), |near| format!("; did you mean {near}?"));
            return Err(format!("the catalogue has no {plain}{near}"));
        }
        Ok(Algorithm { name, balance })
    }
}
