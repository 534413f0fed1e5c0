//! What operators change by API: recorded in the layer with who and when, and put in force.

use std::sync::Arc;
use std::time::SystemTime;

use subak_admin::Change;
use subak_base::{Address, Tick};
use subak_config::{Made, Wanted};
use subak_health::Admin;
use subak_net::now;
use subak_pool::UnknownEndpoint;

use super::Control;

impl Control {
    /// Sets what is to be set on an endpoint, at once: no snapshot is needed for that. Answers with its
    /// place in the pool.
    pub(super) fn set(
        &mut self,
        pool: &str,
        endpoint: &str,
        change: Change,
        by: &Arc<str>,
    ) -> Result<usize, UnknownEndpoint> {
        let now = now();
        let pool = self.snapshot.pools.get(pool).cloned().ok_or(UnknownEndpoint)?;
        let index = pool.find(endpoint).ok_or(UnknownEndpoint)?;
        let address = pool.endpoint(index).ok_or(UnknownEndpoint)?.address().clone();
        if let Some(weight) = change.weight {
            pool.set_weight(endpoint, weight, now)?;
        }
        if let Some(state) = change.state
            && let Some(event) = pool.set_admin(endpoint, state, now, self.random.next_u64())?
        {
            self.events.of_pool(pool.name(), &event);
        }
        let Some(name) = self.config.pool(pool.name()).map(|pool| pool.name.clone()) else {
            return Err(UnknownEndpoint);
        };
        let name_of_endpoint = pool.spec().endpoints[index].name.clone();
        let text = format!("set by the API: {change}, by {by}");
        self.events.of_endpoint(pool.name(), &name_of_endpoint, text);
        let at = SystemTime::now();
        Arc::make_mut(&mut self.desired.layer).change(&name, |layer| {
            layer.set(&address, |set| {
                if let Some(weight) = change.weight {
                    set.weight = weight.map(|value| Made { value, by: by.clone(), at });
                }
                if let Some(state) = change.state {
                    let deadline = change.deadline.map(|after| now.after(after));
                    let wanted = |state| Wanted { state, deadline };
                    set.state =
                        state.map(|state| Made { value: wanted(state), by: by.clone(), at });
                }
            });
        });
        Ok(index)
    }

    /// Sends endpoints into maintenance whose time to drain is over. Called with every tick.
    pub(super) fn end_drains(&mut self, now: Tick) {
        let mut over: Vec<(String, Address, Arc<str>)> = Vec::new();
        for (name, layer) in &self.desired.layer.pools {
            for (address, set) in &layer.set {
                if let Some(Made { value: Wanted { deadline: Some(deadline), .. }, by, .. }) =
                    &set.state
                    && *deadline <= now
                {
                    over.push((name.to_string(), address.clone(), by.clone()));
                }
            }
        }
        for (pool, address, by) in over {
            let state = Some(Some(Admin::Maintenance));
            let change = Change { state, weight: None, deadline: None };
            let endpoint = address.to_string();
            if self.set(&pool, &endpoint, change, &by).is_ok() {
                let text = "its time to drain is over: maintenance".to_owned();
                self.events.of_endpoint(&pool, &endpoint, text);
            }
        }
    }
}
