//! Configurations, their history and events, as JSON.

use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};
use subak_config::{Layer, Set};

use crate::command::Overview;
use crate::diff::unified;
use crate::moment::rfc3339;
use crate::status::Detail;
use crate::wish::{ConfigTold, Done, Files, Happened, Past, Version};

/// `GET /v1/config`. Reads the files to say whether somebody has changed them.
pub(crate) fn config(told: &ConfigTold) -> Value {
    let files: Vec<Value> = told
        .version
        .files
        .iter()
        .map(|(path, _)| json!({ "path": path.to_string_lossy() }))
        .collect();
    let has_changed =
        told.on_disk.iter().any(|(path, text)| read(path).as_deref() != Some(&**text));
    json!({
        "generation": told.generation,
        "files": files,
        "changes": changes(&told.version.layer),
        "differs_from_file": told.differs_from_file,
        "file_changed_on_disk": has_changed,
    })
}

/// Everything that was changed by API, pool by pool.
fn changes(layer: &Layer) -> Vec<Value> {
    let mut changes = Vec::new();
    for (pool, layer) in &layer.pools {
        let mut push = |endpoint: Option<String>, what: &str, value: Value, by: &Arc<str>, at| {
            changes.push(json!({
                "pool": &**pool, "endpoint": endpoint, "what": what, "value": value,
                "by": &**by, "at": rfc3339(at),
            }));
        };
        if let Some(made) = &layer.pick_log {
            let picks = made.value.map_or(0, |picks| picks.get());
            push(None, "pick_log", json!(picks), &made.by, made.at);
        }
        for made in &layer.added {
            let endpoint = Some(made.value.endpoint.name.to_string());
            push(endpoint, "added", json!(&*made.value.text), &made.by, made.at);
        }
        for (address, made) in &layer.removed {
            push(Some(address.to_string()), "removed", Value::Null, &made.by, made.at);
        }
        for (address, Set { weight, state }) in &layer.set {
            if let Some(made) = weight {
                push(Some(address.to_string()), "weight", json!(made.value.0), &made.by, made.at);
            }
            if let Some(made) = state {
                let state = made.value.state.to_string();
                push(Some(address.to_string()), "state", json!(state), &made.by, made.at);
            }
        }
    }
    changes
}

/// `GET /v1/config/text`: what is in force; of several files one after the other, each with its name.
pub(crate) fn text(version: &Version) -> String {
    let files = texts(version);
    match &files[..] {
        [(_, text)] => text.to_string(),
        files => files
            .iter()
            .map(|(path, text)| format!("# {}\n{}\n", path.display(), text.trim_end()))
            .collect::<Vec<_>>()
            .join("\n"),
    }
}

/// `GET /v1/config/diff`: from what stands on disk at this moment to what is in force.
pub(crate) fn diff(told: &ConfigTold) -> String {
    let on_disk = told.on_disk.iter().map(|(path, _)| path);
    let in_force = told.version.files.iter().map(|(path, _)| path);
    let mut paths: Vec<&std::path::PathBuf> = on_disk.chain(in_force).collect();
    paths.dedup();
    let files: Files = paths
        .into_iter()
        .map(|path| (path.clone(), read(path).unwrap_or_default().into()))
        .collect();
    unified(&files, &texts(&told.version), ("on disk", "in force"))
}

/// What a change has done.
pub(crate) fn done(done: &Done) -> Value {
    let (before, after) = &done.versions;
    let diff = between(before, after);
    let masked: Vec<String> = done.masked.iter().map(ToString::to_string).collect();
    json!({
        "generation": done.generation,
        "changed": !diff.is_empty(),
        "diff": diff,
        "masked": masked,
    })
}

/// What was saved.
pub(crate) fn saved(done: &Done) -> Value {
    let files: Vec<_> = done.saved.iter().map(|path| path.to_string_lossy()).collect();
    json!({ "generation": done.generation, "files": files, "left": done.left })
}

/// `GET /v1/config/history`.
pub(crate) fn history(past: &[Past]) -> Value {
    past.iter().enumerate().map(|(index, one)| entry(one, index == 0)).collect()
}

/// `GET /v1/config/history/{generation}`.
pub(crate) fn one_of_history(past: &[Past], generation: u64) -> Option<Value> {
    let index = past.iter().position(|one| one.generation == generation)?;
    let one = &past[index];
    let mut value = entry(one, index == 0);
    let nothing = Version { files: Vec::new(), layer: Arc::default() };
    value["diff"] = json!(between(one.before.as_ref().unwrap_or(&nothing), &one.version));
    value["text"] = json!(text(&one.version));
    Some(value)
}

fn entry(past: &Past, is_current: bool) -> Value {
    json!({
        "generation": past.generation,
        "at": rfc3339(past.at),
        "by": &*past.by,
        "cause": past.cause,
        "summary": &*past.summary,
        "is_current": is_current,
    })
}

/// `GET /v1/events`.
pub(crate) fn events(next: u64, events: &[Happened]) -> Value {
    let event = |event: &Happened| {
        json!({
            "number": event.number, "at": rfc3339(event.at), "level": event.level,
            "listener": event.listener, "pool": event.pool, "endpoint": event.endpoint,
            "text": event.text,
        })
    };
    json!({ "next": next, "events": events.iter().map(event).collect::<Vec<_>>() })
}

/// `GET /v1/pools`: pools with counts in place of their endpoints.
pub(crate) fn pools(overview: &Overview) -> Value {
    json!({ "pools": crate::status::of_pools(overview, Detail::Short) })
}

fn between(before: &Version, after: &Version) -> String {
    unified(&texts(before), &texts(after), ("before", "after"))
}

/// The texts; where they could not be written, as they were read.
fn texts(version: &Version) -> Files {
    version.texts().unwrap_or_else(|error| {
        tracing::error!("{error}");
        version.files.clone()
    })
}

fn read(path: &Path) -> Option<String> {
    std::fs::read_to_string(path).ok()
}
