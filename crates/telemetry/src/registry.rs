//! The handles of the process by name. Belongs to the control side; the data side holds handles.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::listener::ListenerMetrics;
use crate::pool::PoolMetrics;

/// All handles, for one number of workers.
#[derive(Debug)]
pub struct Registry {
    workers: usize,
    listeners: BTreeMap<String, Arc<ListenerMetrics>>,
    pools: BTreeMap<String, Arc<PoolMetrics>>,
}

impl Registry {
    /// No handle yet.
    pub fn new(workers: usize) -> Registry {
        Registry { workers, listeners: BTreeMap::new(), pools: BTreeMap::new() }
    }

    /// That of the listener of this name; what it has counted goes on.
    pub fn listener(&mut self, name: &str) -> Arc<ListenerMetrics> {
        let new = || Arc::new(ListenerMetrics::new(self.workers));
        self.listeners.entry(name.to_owned()).or_insert_with(new).clone()
    }

    /// That of the pool of this name; what it has counted goes on.
    pub fn pool(&mut self, name: &str) -> Arc<PoolMetrics> {
        let new = || Arc::new(PoolMetrics::new(self.workers));
        self.pools.entry(name.to_owned()).or_insert_with(new).clone()
    }

    /// How many workers count.
    pub fn workers(&self) -> usize {
        self.workers
    }

    /// Forgets listeners and pools that are not in use any more: their series end, and one of the
    /// same name begins anew.
    pub fn keep(&mut self, listener: impl Fn(&str) -> bool, pool: impl Fn(&str) -> bool) {
        self.listeners.retain(|name, _| listener(name));
        self.pools.retain(|name, _| pool(name));
    }
}

#[cfg(test)]
mod tests {
    use super::Registry;
    use crate::Outcome;

    #[test]
    fn what_was_counted_stays_with_the_name_until_it_goes() {
        let mut registry = Registry::new(1);
        registry.listener("web").request(0, Outcome::Success);
        registry.pool("app").retried(0);
        registry.keep(|name| name == "web", |name| name == "app");
        assert_eq!(registry.listener("web").totals().requests[2], 1);
        assert_eq!(registry.pool("app").totals().retries, 1);
        registry.keep(|_| false, |_| false);
        assert_eq!(registry.listener("web").totals().requests[2], 0);
        assert_eq!(registry.pool("app").totals().retries, 0);
    }
}
