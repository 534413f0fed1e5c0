//! What operators change by API: recorded in the layer with who and when, and put in force.

use std::sync::Arc;
use std::time::SystemTime;

use subak_admin::Change;
use subak_base::Tick;
use subak_config::{Made, Wanted};
use subak_net::now;
use subak_pool::UnknownEndpoint;

use super::Control;
use crate::checks::log;

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
            log(pool.name(), &event);
        }
        let Some(name) = self.config.pool(pool.name()).map(|pool| pool.name.clone()) else {
            return Err(UnknownEndpoint);
        };
        let at = SystemTime::now();
        Arc::make_mut(&mut self.desired.layer).change(&name, |layer| {
            layer.set(&address, |set| {
                if let Some(weight) = change.weight {
                    set.weight = weight.map(|value| Made { value, by: by.clone(), at });
                }
                if let Some(state) = change.state {
                    let wanted = |state| Wanted { state, deadline: None::<Tick> };
                    set.state =
                        state.map(|state| Made { value: wanted(state), by: by.clone(), at });
                }
            });
        });
        Ok(index)
    }
}
