//! What only several tables together can tell.

use std::collections::HashMap;

use super::listener::Read;
use super::{Reader, View, split};
use crate::address::Address;
use crate::defaults::MAX_NAMES;
use crate::diagnostic::{Diagnostic, Span};
use crate::model::{Name, Pool};
use crate::tree::{Entry, Node, Value};
use crate::vocabulary::{LISTENER, ROUTE, SPLIT_SIDE};

/// Two listeners, or one twice, on the same address; no listener at all.
pub(crate) fn listeners(reader: &mut Reader<'_>, root: &View<'_>, listeners: &[Read]) {
    if let (Some(entry), []) = (root.entry("listener"), listeners) {
        let diagnostic = Diagnostic::error(entry.key_span, "there is no listener");
        reader.push(diagnostic.label("expected [listener.NAME]").derived());
    }
    let mut taken: HashMap<&Address, (Span, &Name)> = HashMap::new();
    for read in listeners {
        let name = &read.listener.name;
        for (address, span) in read.listener.bind.iter().zip(&read.bind_spans) {
            if let Some((first, owner)) = taken.insert(address, (*span, name)) {
                let message = if owner == name {
                    format!("{address} is listed twice")
                } else {
                    format!("`{owner}` and `{name}` cannot both listen on {address}")
                };
                reader.push(
                    Diagnostic::error(*span, message)
                        .label("the same address again")
                        .related(first, "first here"),
                );
            }
        }
    }
}

/// More names than can be asked again and again.
pub(crate) fn names(reader: &mut Reader<'_>, root: &View<'_>, pools: &[Pool]) {
    let names: usize = pools.iter().map(|pool| pool.names.len()).sum();
    if let (Some(entry), true) = (root.entry("pool"), names > MAX_NAMES) {
        let message =
            format!("at most {MAX_NAMES} endpoints can be given by name, here are {names}");
        reader.push(Diagnostic::error(entry.key_span, message));
    }
}

/// The names of the pools that a listener itself or a route leads to.
fn leads_to<'a>(view: &View<'a>) -> Vec<&'a Node> {
    let sides = view.node("split").map_or(&[][..], split::sides);
    let sides = sides.iter().filter_map(|item| View::of(item, &SPLIT_SIDE).node("pool"));
    view.node("pool").into_iter().chain(sides).collect()
}

/// Pools that nothing leads to. Not said while a name leads nowhere: it may mean one of them.
pub(crate) fn unused_pools(reader: &mut Reader<'_>, pools: &[Entry], listeners: &[Entry]) {
    let mut nodes = Vec::new();
    for entry in listeners {
        let view = View::of(&entry.node, &LISTENER);
        nodes.extend(leads_to(&view));
        nodes.extend(view.items("route").iter().flat_map(|item| leads_to(&View::of(item, &ROUTE))));
    }
    let mut used: Vec<&str> = Vec::new();
    for node in nodes {
        match &node.value {
            Value::String(name) if pools.iter().any(|entry| entry.key == *name) => used.push(name),
            _ => return,
        }
    }
    for entry in pools.iter().filter(|entry| !used.contains(&&*entry.key)) {
        let message = format!("the pool `{}` is never used", entry.key);
        let warning = Diagnostic::warning(entry.key_span, message);
        reader.push(warning.label("no listener and no route leads to it").derived());
    }
}
