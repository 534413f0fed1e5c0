//! Do two pools fight over one cookie?
//!
//! A browser keeps one cookie for a host, a path and a name. Where two pools that share a host both
//! set it, a request to one makes the other forget the client.

use std::collections::HashSet;

use super::listener::Read;
use super::route::covers_host;
use super::{Reader, View};
use crate::diagnostic::{Diagnostic, Span};
use crate::model::{Action, Pool, Stick, StickCookie};
use crate::pattern::HostPattern;
use crate::tree::Entry;
use crate::vocabulary::{POOL, STICK};

/// Warns of pools that a listener reaches by the same hosts and that set the same cookie.
pub(super) fn shared(
    reader: &mut Reader<'_>,
    listeners: &[Read],
    pools: &[Pool],
    entries: &[Entry],
) {
    let mut reported: HashSet<(usize, usize)> = HashSet::new();
    for read in listeners {
        let uses = uses(read, pools);
        for (index, earlier) in uses.iter().enumerate() {
            // Whatever it shares with a later one, the later one never sees.
            if earlier.takes_every_path {
                continue;
            }
            for later in &uses[index + 1..] {
                let pair = (earlier.pool.min(later.pool), earlier.pool.max(later.pool));
                if pair.0 != pair.1
                    && (&earlier.cookie.name, &earlier.cookie.path)
                        == (&later.cookie.name, &later.cookie.path)
                    && overlap(earlier.hosts, later.hosts)
                    && reported.insert(pair)
                {
                    report(reader, read, pools, pair, entries);
                }
            }
        }
    }
}

/// A route, or the listener's own pool, that leads to a pool with a cookie.
struct Use<'a> {
    hosts: &'a [HostPattern],
    takes_every_path: bool,
    /// Its place among the pools.
    pool: usize,
    cookie: &'a StickCookie,
}

fn uses<'a>(read: &'a Read, pools: &'a [Pool]) -> Vec<Use<'a>> {
    let listener = &read.listener;
    let routes = listener.routes.iter().flat_map(|route| {
        // The pools of a split leave requests to each other.
        let takes_every_path =
            route.takes_every_path() && !matches!(route.action, Action::Split(_));
        route.action.pools().map(move |name| (&*route.hosts, takes_every_path, name))
    });
    let own = listener.own_pools().map(|name| (&[][..], listener.pool.is_some(), name));
    let to_use = |(hosts, takes_every_path, name): (&'a [HostPattern], bool, &_)| {
        let pool = pools.iter().position(|pool| pool.name == *name)?;
        match &pools[pool].stick {
            Some(Stick::Cookie(cookie)) => Some(Use { hosts, takes_every_path, pool, cookie }),
            _ => None,
        }
    };
    routes.chain(own).filter_map(to_use).collect()
}

/// Whether a host fits both; no hosts are all hosts.
fn overlap(one: &[HostPattern], other: &[HostPattern]) -> bool {
    let fit = |one, other| covers_host(one, other) || covers_host(other, one);
    one.is_empty()
        || other.is_empty()
        || one.iter().any(|one| other.iter().any(|other| fit(one, other)))
}

fn report(
    reader: &mut Reader<'_>,
    read: &Read,
    pools: &[Pool],
    (first, second): (usize, usize),
    entries: &[Entry],
) {
    let place = |pool: usize| -> Option<Span> {
        let view = View::of(&entries.get(pool)?.node, &POOL);
        view.table("stick", &STICK).node("cookie").map(|node| node.span)
    };
    let (Some(first_place), Some(second_place)) = (place(first), place(second)) else { return };
    let (first, second, listener) = (&pools[first].name, &pools[second].name, &read.listener.name);
    let message = format!("`{first}` and `{second}` set the same cookie on `{listener}`");
    reader.push(
        Diagnostic::warning(second_place, message)
            .label("a request to one makes the other forget its client")
            .related(first_place, "the same name")
            .help("give each a name of its own, or another `path`")
            .derived(),
    );
}
