//! How often a route took a request.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::shards::Shards;

/// The counter of one route: 128 bytes a worker, one addition a request.
#[derive(Debug)]
pub struct RouteMetrics {
    shards: Shards<AtomicU64>,
}

impl RouteMetrics {
    /// For so many workers.
    pub fn new(workers: usize) -> RouteMetrics {
        RouteMetrics { shards: Shards::new(workers) }
    }

    /// It takes a request.
    #[inline]
    pub fn hit(&self, worker: usize) {
        self.shards.of(worker).fetch_add(1, Ordering::Relaxed);
    }

    /// How many it has taken so far.
    pub fn hits(&self) -> u64 {
        self.shards.iter().map(|shard| shard.load(Ordering::Relaxed)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::RouteMetrics;

    #[test]
    fn workers_add_up() {
        let route = RouteMetrics::new(2);
        [0, 1, 1, 9].into_iter().for_each(|worker| route.hit(worker));
        assert_eq!(route.hits(), 4);
    }
}
