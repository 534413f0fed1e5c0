//! `/v1/limits`: what is limited, who is nearest to a limit, and how a key gets its tokens back.

use std::fmt;
use std::sync::Arc;

use http::StatusCode;
use serde::Serialize;
use subak_base::Tick;

use crate::answer::{Answer, Refusal, json_answer};
use crate::command::Overview;

/// Keys that are shown of each limit.
const SHOWN: usize = 20;

/// A limit at one moment.
#[derive(Clone, Debug)]
pub struct LimitView {
    /// Its name.
    pub name: String,
    /// The listener's.
    pub listener: String,
    /// `rate`, `in_flight` or `connections`.
    pub kind: &'static str,
    /// Who is counted together.
    pub by: String,
    /// How much, in words.
    pub allows: String,
    /// Whether nobody is refused.
    pub is_dry_run: bool,
    /// How many were refused, or would have been.
    pub refused: u64,
    /// Keys that were forgotten too early, or not counted, for want of room.
    pub forgotten: u64,
    /// Its keys.
    pub keys: Arc<dyn Keys>,
}

/// The keys of a limit. Looking at them takes as long as its table is large.
pub trait Keys: fmt::Debug + Send + Sync {
    /// The keys nearest to the limit, at most so many, and how many there are.
    fn nearest(&self, most: usize, now: Tick) -> (Vec<KeyView>, usize, usize);

    /// Gives a key its tokens back; false where it misses none.
    fn clear(&self, key: &str, now: Tick) -> bool;
}

/// One key of a limit.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct KeyView {
    /// Who it is; `#` and a hash where that was not noted.
    pub key: String,
    /// Tokens left, or how many more there may be.
    pub left: u32,
    /// Of so many.
    pub most: u32,
    /// Until the bucket is full.
    pub full_in_s: Option<f64>,
}

/// A limit, in short.
#[derive(Serialize, Debug)]
pub(crate) struct Brief<'a> {
    name: &'a str,
    listener: &'a str,
    kind: &'a str,
    by: &'a str,
    allows: &'a str,
    dry_run: bool,
    refused: u64,
    forgotten: u64,
}

/// A limit with its keys.
#[derive(Serialize, Debug)]
struct Whole<'a> {
    #[serde(flatten)]
    brief: Brief<'a>,
    keys: usize,
    places: usize,
    nearest: Vec<KeyView>,
}

/// A limit, to be shown in the status.
pub(crate) fn brief(view: &LimitView) -> Brief<'_> {
    Brief {
        name: &view.name,
        listener: &view.listener,
        kind: view.kind,
        by: &view.by,
        allows: &view.allows,
        dry_run: view.is_dry_run,
        refused: view.refused,
        forgotten: view.forgotten,
    }
}

/// `GET /v1/limits`.
pub(crate) fn all(overview: &Overview) -> Answer {
    let now = overview.now;
    let all: Vec<Whole<'_>> = overview.limits.iter().map(|view| whole(view, now)).collect();
    json_answer(StatusCode::OK, &all)
}

fn whole(view: &LimitView, now: Tick) -> Whole<'_> {
    let (nearest, keys, places) = view.keys.nearest(SHOWN, now);
    Whole { brief: brief(view), keys, places, nearest }
}

/// `DELETE /v1/limits/{limit}/keys/{key}`.
pub(crate) fn clear(overview: &Overview, (limit, key): (&str, &str), by: &str) -> Answer {
    let named = || overview.limits.iter().filter(|view| view.name == limit);
    let not_found = |error: String, hint: String| {
        Refusal::new(StatusCode::NOT_FOUND, error, hint).into_answer()
    };
    if named().next().is_none() {
        let known: Vec<&str> = overview.limits.iter().map(|view| &*view.name).take(20).collect();
        let hint = match known.is_empty() {
            true => "nothing is limited".to_owned(),
            false => format!("there are {}", known.join(", ")),
        };
        return not_found(format!("there is no limit {limit:?}"), hint);
    }
    let cleared = named().filter(|view| view.keys.clear(key, overview.now)).count();
    if cleared == 0 {
        let hint = "its bucket is full, or nobody has asked by it; GET /v1/limits names the keys that \
                    have used most. What is under way ends by itself";
        return not_found(
            format!("limit {limit} has nothing to give back to {key:?}"),
            hint.into(),
        );
    }
    tracing::info!(limit, key, by, "a key of a limit has its tokens back");
    json_answer(StatusCode::OK, &serde_json::json!({ "limit": limit, "key": key, "cleared": true }))
}
