//! The layer written into the files: what is in force, as text. Comments, order and layout stay.
//!
//! The same code shows what is in force, says how it differs from the files, and saves it.
//!
//! Not everything can be written: what is set on an endpoint that a name stands for, or that is
//! written by a variable, has no place in a file; and a drain with a deadline is not to last. That is
//! left in the layer.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt;
use std::sync::Arc;

use subak_base::Weight;
use subak_health::Admin;
use toml_edit::{Array, ArrayOfTables, Decor, DocumentMut, Item, RawString, TableLike, Value};

use super::{Layer, PoolLayer, Set};
use crate::Address;
use crate::address::{self, Place};

/// Files with the layer in them.
#[derive(Clone, PartialEq, Debug)]
pub struct Written {
    /// One for each of the files, in their order.
    pub texts: Vec<Arc<str>>,
    /// What has no place in them.
    pub left: Layer,
}

/// A file that was read before cannot be read as TOML any more.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NotWritten(String);

impl fmt::Display for NotWritten {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "what the API has changed cannot be written into it: {}", self.0)
    }
}

impl Error for NotWritten {}

/// Writes a layer into the texts that it lies upon.
///
/// # Errors
/// [`NotWritten`], when one of them is no TOML.
pub fn written(texts: &[Arc<str>], layer: &Layer) -> Result<Written, NotWritten> {
    let mut left = layer.clone();
    let mut done = Vec::new();
    for text in texts {
        let mut document: DocumentMut =
            text.parse().map_err(|error: toml_edit::TomlError| NotWritten(error.to_string()))?;
        let mut has_changed = false;
        if !left.is_empty()
            && let Some(pools) = document.get_mut("pool").and_then(Item::as_table_like_mut)
        {
            left.pools.retain(|name, changes| {
                if let Some(pool) = pools.get_mut(name).and_then(Item::as_table_like_mut) {
                    has_changed |= write_pool(pool, changes);
                }
                !changes.is_empty()
            });
        }
        // Untouched files stay as they are, to the byte.
        done.push(if has_changed { document.to_string().into() } else { text.clone() });
    }
    Ok(Written { texts: done, left })
}

/// Writes what can be written, and leaves the rest. Answers whether anything was.
fn write_pool(pool: &mut dyn TableLike, changes: &mut PoolLayer) -> bool {
    let before = changes.clone();
    if let Some(pick_log) = changes.pick_log.take() {
        match pick_log.value {
            Some(picks) => {
                let picks = i64::try_from(picks.get()).unwrap_or(i64::MAX);
                put(pool, "pick_log", picks.into());
            }
            None => _ = pool.remove("pick_log"),
        }
    }
    if !changes.added.is_empty() && pool.get("endpoints").is_none() {
        pool.insert("endpoints", Item::Value(Array::new().into()));
    }
    let mut sets: BTreeMap<Address, Set> = BTreeMap::new();
    changes.set.retain(|address, set| {
        let lasts = |set: &Set| set.state.as_ref().is_none_or(|made| made.value.deadline.is_none());
        let mut now = set.clone();
        if lasts(set) {
            *set = Set::default();
        } else {
            now.state = None;
            set.weight = None;
        }
        sets.insert(address.clone(), now);
        *set != Set::default()
    });
    match pool.get_mut("endpoints") {
        Some(Item::Value(Value::Array(array))) => write_array(array, changes, &mut sets),
        Some(Item::ArrayOfTables(tables)) => write_tables(tables, changes, &mut sets),
        _ => {}
    }
    // What has found no place goes back.
    for (address, set) in sets {
        let own = changes.set.entry(address.clone()).or_default();
        own.weight = own.weight.take().or(set.weight);
        own.state = own.state.take().or(set.state);
        if *own == Set::default() {
            changes.set.remove(&address);
        }
    }
    *changes != before
}

fn write_array(array: &mut Array, changes: &mut PoolLayer, sets: &mut BTreeMap<Address, Set>) {
    let mut index = 0;
    while let Some(value) = array.get_mut(index) {
        let Some(address) = address_of(value) else {
            index += 1;
            continue;
        };
        if changes.removed.remove(&address).is_some() {
            take_out(array, index);
            continue;
        }
        if let Some(set) = sets.remove(&address) {
            write_set(value, &set);
        }
        index += 1;
    }
    for added in std::mem::take(&mut changes.added) {
        let mut value = Value::from(&*added.value.text);
        if let Some(set) = sets.remove(&added.value.endpoint.address) {
            write_set(&mut value, &set);
        }
        append(array, value);
    }
}

fn write_tables(
    tables: &mut ArrayOfTables,
    changes: &mut PoolLayer,
    sets: &mut BTreeMap<Address, Set>,
) {
    let mut index = 0;
    while let Some(table) = tables.get_mut(index) {
        let address = table.get("address").and_then(Item::as_str).and_then(parse);
        if let Some(address) = address {
            if changes.removed.remove(&address).is_some() {
                tables.remove(index);
                continue;
            }
            if let Some(set) = sets.remove(&address) {
                write_keys(table, &set);
            }
        }
        index += 1;
    }
    for added in std::mem::take(&mut changes.added) {
        let mut words = added.value.text.split_ascii_whitespace();
        let mut table = toml_edit::Table::new();
        table.insert("address", toml_edit::value(words.next().unwrap_or_default()));
        for (key, text) in words.filter_map(|word| word.split_once('=')) {
            let value = text.parse::<Value>().unwrap_or_else(|_| text.into());
            table.insert(key, Item::Value(value));
        }
        if let Some(set) = sets.remove(&added.value.endpoint.address) {
            write_keys(&mut table, &set);
        }
        tables.push(table);
    }
}

fn parse(text: &str) -> Option<Address> {
    match address::endpoint(text).ok()? {
        Place::Address(address) => Some(address),
        Place::Name(_) => None,
    }
}

/// The address of an endpoint as it stands in a list.
fn address_of(value: &Value) -> Option<Address> {
    match value {
        Value::String(text) => parse(text.value().split_ascii_whitespace().next()?),
        Value::InlineTable(table) => parse(table.get("address")?.as_str()?),
        _ => None,
    }
}

/// Writes what is set on an endpoint beside its address.
fn write_set(value: &mut Value, set: &Set) {
    if let Value::InlineTable(table) = value {
        write_keys(table, set);
        return;
    }
    let Some(text) = value.as_str() else { return };
    let mut words: Vec<String> = text.split_ascii_whitespace().map(str::to_owned).collect();
    for (key, text) in options(set) {
        words.retain(|word| word.split_once('=').is_none_or(|(name, _)| name != key));
        words.extend(text.map(|text| format!("{key}={text}")));
    }
    replace(value, words.join(" ").into());
}

fn write_keys(table: &mut dyn TableLike, set: &Set) {
    for (key, text) in options(set) {
        match text {
            None => _ = table.remove(key),
            Some(text) => {
                let value = text.parse::<i64>().map_or_else(|_| text.into(), Value::from);
                put(table, key, value);
            }
        }
    }
}

/// The options of what is set, and which are to go because that is the default.
fn options(set: &Set) -> impl Iterator<Item = (&'static str, Option<String>)> {
    let weight = set.weight.as_ref().map(|made| {
        let is_default = made.value == Weight::ONE;
        ("weight", (!is_default).then(|| made.value.0.to_string()))
    });
    let state = set.state.as_ref().map(|made| {
        let state = made.value.state;
        ("state", (state != Admin::Ready).then(|| state.to_string()))
    });
    weight.into_iter().chain(state)
}

fn put(table: &mut dyn TableLike, key: &str, new: Value) {
    match table.get_mut(key).and_then(Item::as_value_mut) {
        Some(value) => replace(value, new),
        None => _ = table.insert(key, Item::Value(new)),
    }
}

/// Another value with the spaces and comments of the one before.
fn replace(value: &mut Value, mut new: Value) {
    *new.decor_mut() = value.decor().clone();
    *value = new;
}

/// What stands before an item: first what ends the line of the item before, then lines of its own.
fn before(decor: &Decor) -> (String, String) {
    split(decor.prefix().and_then(RawString::as_str).unwrap_or_default())
}

fn split(text: &str) -> (String, String) {
    let end = text.find('\n').unwrap_or(if text.contains('#') { text.len() } else { 0 });
    (text[..end].to_owned(), text[end..].to_owned())
}

/// Removes an item with the comment behind it on its line; other comments stay.
fn take_out(array: &mut Array, index: usize) {
    let removed = array.remove(index);
    let (behind_other, own_lines) = before(removed.decor());
    let comments: String = match own_lines.contains('#') {
        true => own_lines.trim_end().to_owned(),
        false => String::new(),
    };
    match array.get_mut(index) {
        Some(next) => {
            let (_, lines) = before(next.decor());
            let is_first_in_line = index == 0 && !lines.contains('\n');
            let lines = if is_first_in_line { String::new() } else { lines };
            let prefix = ended(format!("{behind_other}{comments}{lines}"));
            next.decor_mut().set_prefix(prefix);
        }
        None => {
            let (_, lines) = split(array.trailing().as_str().unwrap_or_default());
            array.set_trailing(ended(format!("{behind_other}{comments}{lines}")));
        }
    }
}

/// With an end of line where a comment would take what follows with it.
fn ended(mut space: String) -> String {
    if space.rsplit('\n').next().is_some_and(|line| line.contains('#')) {
        space.push('\n');
    }
    space
}

/// Appends an item laid out like the others.
fn append(array: &mut Array, mut value: Value) {
    let trailing = array.trailing().as_str().unwrap_or_default().to_owned();
    let last = array.len().checked_sub(1).and_then(|last| array.get(last));
    let lines = last.map(|last| before(last.decor()).1).unwrap_or_default();
    let prefix = match (lines.rfind('\n'), trailing.contains('#')) {
        // One item a line.
        (Some(at), _) => format!("{}{}", trailing.trim_end(), &lines[at..]),
        (None, true) => format!("{}\n    ", trailing.trim_end()),
        (None, false) if array.is_empty() => String::new(),
        (None, false) => " ".to_owned(),
    };
    let breaks = prefix.contains('\n');
    value.decor_mut().set_prefix(prefix);
    value.decor_mut().set_suffix("");
    if let Some(last) = array.len().checked_sub(1).and_then(|last| array.get_mut(last)) {
        last.decor_mut().set_suffix("");
    }
    array.push_formatted(value);
    if breaks {
        array.set_trailing("\n");
        array.set_trailing_comma(true);
    }
}

#[cfg(test)]
mod tests;
