//! `set`, `maintenance`, `ready`, `reset`, `add`, `remove`, `picks`: what operators change.

use clap::ValueEnum;
use hyper::Method;
use serde_json::{Map, Value, json};

use super::last::Consent;
use super::names::{Named, find, pool_and_word};
use super::show::changed;
use super::{Context, Failure};
use crate::status::pool_path;

/// A state that can be wanted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum State {
    /// Let it work.
    Ready,
    /// Nothing new.
    Drain,
    /// No work at all.
    Maintenance,
}

impl State {
    pub(crate) fn word(self) -> &'static str {
        match self {
            State::Ready => "ready",
            State::Drain => "drain",
            State::Maintenance => "maintenance",
        }
    }
}

pub(super) fn set(
    context: &Context,
    named: &Named,
    (weight, state): (Option<u16>, Option<State>),
    consent: Consent,
) -> Result<(), Failure> {
    let (found, _) = find(context, named)?;
    if weight == Some(0) || state.is_some_and(|state| state != State::Ready) {
        consent.to_lose(context, &found)?;
    }
    let mut body = Map::new();
    if let Some(weight) = weight {
        body.insert("weight".to_owned(), json!(weight));
    }
    if let Some(state) = state {
        body.insert("state".to_owned(), json!(state.word()));
    }
    let answer = context.client.send(Method::PATCH, &found.path(), &Value::Object(body))?;
    changed(context, &found.pool, &answer)
}

/// Takes back the weight, the state, or both.
pub(super) fn reset(
    context: &Context,
    named: &Named,
    weight: bool,
    state: bool,
) -> Result<(), Failure> {
    let (found, _) = find(context, named)?;
    let body = match (weight, state) {
        (true, false) => json!({ "weight": null }),
        (false, true) => json!({ "state": null }),
        _ => json!({ "weight": null, "state": null }),
    };
    let answer = context.client.send(Method::PATCH, &found.path(), &body)?;
    changed(context, &found.pool, &answer)
}

pub(super) fn add(context: &Context, words: &[String]) -> Result<(), Failure> {
    let (pool, endpoint) = pool_and_word(context, words)?;
    let path = format!("{}/endpoints", pool_path(&pool));
    let answer = context.client.send(Method::POST, &path, &json!({ "endpoint": endpoint }))?;
    changed(context, &pool, &answer)
}

pub(super) fn remove(context: &Context, named: &Named, consent: Consent) -> Result<(), Failure> {
    let (found, _) = find(context, named)?;
    consent.to_lose(context, &found)?;
    let answer = context.client.ask(Method::DELETE, &found.path(), "")?;
    context.answer(&answer, || {
        Ok(format!("{} is no longer in pool {}; its requests finish", found.endpoint, found.pool))
    })
}

pub(super) fn picks(context: &Context, words: &[String]) -> Result<(), Failure> {
    let (pool, word) = pool_and_word(context, words)?;
    let number = match &*word {
        "default" => None,
        word => Some(word.parse::<u64>().map_err(|_| {
            Failure::Wrong(format!(
                "{word:?} is no number of picks; 0 keeps none, default as the file says"
            ))
        })?),
    };
    let body = json!({ "pick_log": number });
    let answer = context.client.send(Method::PATCH, &pool_path(&pool), &body)?;
    context.answer(&answer, || {
        Ok(match number {
            Some(number) => format!("pool {pool} keeps its last {number} picks"),
            None => format!("pool {pool} keeps as many picks as its file says"),
        })
    })
}
