//! The configuration that Subak runs with under a scenario: the same text for the simulator, which
//! takes its pool, and for `subak serve`.

use std::path::Path;

use subak_config::Pool;
use toml::Value;

use crate::model::{Algorithm, Scenario};

/// The name of the pool.
pub(crate) const POOL: &str = "scenario";

/// As text. `listen` is where clients arrive, `addresses` are the endpoints'.
pub(crate) fn text(
    scenario: &Scenario,
    algorithm: &Algorithm,
    listen: &str,
    addresses: &[String],
) -> String {
    let mut pool = scenario.pool.clone();
    pool.insert("balance".to_owned(), algorithm.balance.clone());
    let endpoints = scenario.endpoints.iter().zip(addresses);
    let endpoints = endpoints.map(|(endpoint, address)| match endpoint.weight {
        1 => Value::String(address.clone()),
        weight => Value::String(format!("{address} weight={weight}")),
    });
    pool.insert("endpoints".to_owned(), Value::Array(endpoints.collect()));
    let mut listener = scenario.listener.clone();
    listener.extend(table([
        ("bind", Value::String(listen.to_owned())),
        ("pool", Value::String(POOL.to_owned())),
        // Clients are told apart by what the load generator says of them.
        ("trusted_proxies", Value::Array(vec![Value::String("127.0.0.0/8".to_owned())])),
    ]));
    let root = table([
        ("workers", Value::Integer(1)),
        ("listener", Value::Table(table([("web", Value::Table(listener))]))),
        ("pool", Value::Table(table([(POOL, Value::Table(pool))]))),
    ]);
    root.to_string()
}

/// The pool of a configuration, or what is wrong with it, for people.
pub(crate) fn pool(text: &str) -> Result<Pool, String> {
    let outcome = subak_config::parse(text, Path::new("the scenario's configuration"));
    let errors = outcome.render(false);
    match outcome.config.as_ref().and_then(|config| config.pool(POOL)) {
        Some(pool) => Ok(pool.clone()),
        None => Err(errors),
    }
}

fn table<const N: usize>(entries: [(&str, Value); N]) -> toml::Table {
    entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}
