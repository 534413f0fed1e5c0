//! Endpoints that drain: what is left on them, when the last of it has gone, and what happens when
//! their time is over.
//!
//! An endpoint is empty when no request is under way on it and no client of the pool's table belongs
//! to it. (Clients that carry a cookie are not known to anybody but themselves.) In flight is looked at
//! with every tick, the table once a second: that takes O(its entries).
//!
//! A worker may be in the middle of a pick, by the state of before, when an endpoint begins to drain: it
//! counts as empty only after it has been without a request, and without a new hit, for [`QUIET`].

use std::collections::HashMap;
use std::time::Duration;

use subak_base::{EndpointId, Tick};
use subak_pool::Pool;

use crate::events::Events;

/// Between two looks at a table.
const LOOK: Duration = Duration::from_secs(1);

/// How long nothing may have come before an endpoint is called empty: far longer than a pick takes.
const QUIET: Duration = Duration::from_millis(250);

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
    /// Hits at the last look, and since when there are no more of them and nothing is under way.
    hits: u64,
    quiet_since: Option<Tick>,
    empty_since: Option<Tick>,
    /// Once is enough: a client that comes back does not make it news again.
    is_told: bool,
}

impl Drain {
    fn begun(now: Tick, hits: u64) -> Self {
        Self {
            since: now,
            sessions: None,
            hits,
            quiet_since: None,
            empty_since: None,
            is_told: false,
        }
    }

    /// Something is on it or not, and it has had so many hits.
    fn look(&mut self, is_in_use: bool, hits: u64, now: Tick) {
        let is_quiet = !is_in_use && hits == self.hits;
        self.hits = hits;
        self.quiet_since = is_quiet.then(|| self.quiet_since.unwrap_or(now));
        self.empty_since = self.quiet_since.filter(|since| now.since(*since) >= QUIET);
    }
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
            let drain = self
                .known
                .entry(endpoint.id())
                .or_insert_with(|| Drain::begun(now, endpoint.hits()));
            if let Some(counts) = &counts {
                drain.sessions = Some(counts.get(&endpoint.stick_key()).copied().unwrap_or(0));
            }
            let waits_for_table = pool.spec().stick_table.is_some() && drain.sessions.is_none();
            let has_sessions = waits_for_table || drain.sessions.unwrap_or(0) > 0;
            drain.look(endpoint.in_flight() > 0 || has_sessions, endpoint.hits(), now);
            if let Some(empty) = drain.empty_since
                && !drain.is_told
            {
                drain.is_told = true;
                let took = empty.since(drain.since).as_secs_f64();
                let text = format!("drained after {took:.1} s: nothing is left on it");
                events.of_endpoint(pool.name(), &pool.spec().endpoints[index].name, text);
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

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Tick {
        Tick::from_millis(ms)
    }

    #[test]
    fn a_pick_that_was_under_way_when_the_drain_began_is_waited_for() {
        let mut drain = Drain::begun(at(0), 7);
        drain.look(false, 7, at(0));
        assert_eq!(
            drain.empty_since, None,
            "nothing is on it, but a worker may still be picking it"
        );
        drain.look(true, 8, at(50));
        drain.look(false, 8, at(100));
        assert_eq!((drain.quiet_since, drain.empty_since), (Some(at(100)), None));
        drain.look(false, 9, at(200));
        drain.look(false, 9, at(300));
        drain.look(false, 9, at(549));
        assert_eq!(drain.empty_since, None, "a request came and went between two looks");
        drain.look(false, 9, at(550));
        assert_eq!(
            drain.empty_since,
            Some(at(300)),
            "it tells when the last left, not when it was sure"
        );
    }
}
