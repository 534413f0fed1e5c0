//! What the Admin API is told of single requests: where one would go, and where the latest went.

use std::collections::HashMap;

use subak_admin::{NotChanged, PickLogs};
use subak_explain::{BadQuestion, Explanation, Question, Search};
use subak_net::now;

use super::Control;
use crate::explain::{Ground, explain};

impl Control {
    /// Where a request would go now.
    pub(super) fn explain(&mut self, question: &Question) -> Result<Explanation, BadQuestion> {
        let services = self.snapshot.services.values();
        let services: HashMap<_, _> =
            services.map(|service| (service.name(), &**service)).collect();
        let ground = Ground {
            config: &self.config,
            services: &services,
            generation: self.snapshot.generation,
            is_live: true,
            random: self.random.next_u64(),
            now: now(),
        };
        explain(&ground, question)
    }

    /// The logs in which picks are to be found.
    pub(super) fn picks(&self, search: Search) -> Result<PickLogs, NotChanged> {
        let names = self.config.pools.iter().map(|pool| &*pool.name);
        if let Some(name) = &search.pool
            && self.config.pool(name).is_none()
        {
            return Err(NotChanged::NoPool { known: names.map(str::to_owned).collect() });
        }
        let pools = names.filter_map(|name| self.snapshot.pools.get(name).cloned()).collect();
        Ok(PickLogs { search, pools, now: now() })
    }
}
