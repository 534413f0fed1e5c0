//! Endpoints that drain: what is left on them, when the last of it has gone, and what happens when
//! their time is over.
//!
//! An endpoint is empty when no request is under way on it and no client of the pool's table belongs
//! to it. (Clients that carry a cookie are not known to anybody but themselves.) In flight is looked at
//! with every tick, the table once a second: that takes O(its entries).

use std::collections::HashMap;
use std::time::Duration;

use subak_base::{EndpointId, Tick};
use subak_pool::Pool;

use crate::events::Events;

/// Between two looks at a table.
const LOOK: Duration = Duration::from_secs(1);

/// What is known of each endpoint that drains.
#[derive(Debug, Default)]
pub(super) struct Drains {
    known: HashMap<EndpointId, Drain>,
    looked: HashMap<String, Tick>,
}

#[derive(Clone, Copy, Debug)]
struct Drain {
    since: Tick,
    sessions: Option<usize>,
    empty_since: Option<Tick>,
    /// Once is enough: a client that comes back does not make it news again.
    is_told: bool,
}

impl Drains {
    /// Looks at a pool. Called with every tick.
    pub(super) fn attend(&mut self, pool: &Pool, now: Tick, events: &Events) {
        let draining: Vec<usize> = pool.draining().collect();
        let ids = pool.endpoints().map(|endpoint| endpoint.id());
        if !self.known.is_empty() {
            let stays: Vec<EndpointId> = ids
                .enumerate()
                .filter(|(index, id)| {
                    self.known.contains_key(id) && draining.binary_search(index).is_err()
                })
                .map(|(_, id)| id)
                .collect();
            stays.iter().for_each(|id| _ = self.known.remove(id));
        }
        if draining.is_empty() {
            self.looked.remove(pool.name());
            return;
        }
        let is_due = self.looked.get(pool.name()).is_none_or(|last| now.since(*last) >= LOOK);
        let counts = if is_due { pool.sessions(now) } else { None };
        if is_due {
            self.looked.insert(pool.name().to_owned(), now);
        }
        for index in draining {
            let Some(endpoint) = pool.endpoint(index) else { continue };
            let new = Drain { since: now, sessions: None, empty_since: None, is_told: false };
            let drain = self.known.entry(endpoint.id()).or_insert(new);
            if let Some(counts) = &counts {
                drain.sessions = Some(counts.get(&endpoint.stick_key()).copied().unwrap_or(0));
            }
            let waits_for_table = pool.spec().stick_table.is_some() && drain.sessions.is_none();
            let is_empty =
                endpoint.in_flight() == 0 && drain.sessions.unwrap_or(0) == 0 && !waits_for_table;
            if !is_empty {
                drain.empty_since = None;
            } else if drain.empty_since.is_none() {
                drain.empty_since = Some(now);
                if !drain.is_told {
                    drain.is_told = true;
                    let took = now.since(drain.since).as_secs_f64();
                    let text = format!("drained after {took:.1} s: nothing is left on it");
                    events.of_endpoint(pool.name(), &pool.spec().endpoints[index].name, text);
                }
            }
        }
    }

    /// Forgets endpoints that are gone.
    pub(super) fn keep(&mut self, pools: &HashMap<String, std::sync::Arc<Pool>>) {
        let there: std::collections::HashSet<EndpointId> = pools
            .values()
            .flat_map(|pool| pool.endpoints().map(|endpoint| endpoint.id()))
            .collect();
        self.known.retain(|id, _| there.contains(id));
        self.looked.retain(|pool, _| pools.contains_key(pool));
    }

    /// Since when nothing is left on this one.
    pub(super) fn empty_since(&self, id: EndpointId) -> Option<Tick> {
        self.known.get(&id)?.empty_since
    }
}
