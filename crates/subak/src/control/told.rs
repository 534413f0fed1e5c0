//! What the Admin API is told of the control side, and what it may change there.

use std::collections::HashMap;

use subak_admin::{Change, Command, EndpointTold, ListenerView, NotChanged, Overview, PoolView};
use subak_balance::weigher::Weigher;
use subak_net::now;
use subak_pool::Pool;

use super::Control;

impl Control {
    /// Carries a command out. Whoever gave it may have left.
    pub(crate) fn obey(&mut self, command: Command) {
        match command {
            Command::Look { reply } => _ = reply.send(self.overview()),
            Command::Endpoint { pool, endpoint, change, reply } => {
                _ = reply.send(self.endpoint(&pool, &endpoint, change));
            }
        }
    }

    fn overview(&mut self) -> Overview {
        let now = now();
        let services = self.snapshot.services.values();
        let services: HashMap<_, _> = services.map(|service| (service.name(), service)).collect();
        let listeners = self.config.listeners.iter().filter_map(|listener| {
            let service = services.get(&*listener.name)?;
            Some(ListenerView {
                name: listener.name.to_string(),
                addresses: listener.bind.iter().map(ToString::to_string).collect(),
                tls: service.is_tls(),
                connections: service.connections(),
                totals: self.telemetry.listener(&listener.name).totals(),
            })
        });
        let listeners = listeners.collect();
        let pools = self.config.pools.iter().filter_map(|pool| {
            let weigher = self.weighing.of(&pool.name);
            Some(PoolView {
                status: self.snapshot.pools.get(&*pool.name)?.status(now),
                totals: self.telemetry.pool(&pool.name).totals(),
                weighed: weigher.map(|weigher| weigher.weighed().to_vec()),
                imbalance_ppm: weigher.and_then(Weigher::imbalance_ppm),
            })
        });
        Overview {
            now,
            version: env!("CARGO_PKG_VERSION"),
            generation: self.snapshot.generation,
            reloads: self.reloads,
            reloads_refused: self.reloads_refused,
            workers: self.fleet.workers(),
            connections: self.fleet.connections(),
            stopping: self.stopping,
            problems: self.problems.list(),
            listeners,
            pools: pools.collect(),
        }
    }

    fn endpoint(
        &mut self,
        pool: &str,
        endpoint: &str,
        change: Option<Change>,
    ) -> Result<EndpointTold, NotChanged> {
        let pools = &self.snapshot.pools;
        let Some(pool) = pools.get(pool) else {
            let known = self.config.pools.iter().map(|pool| pool.name.to_string()).collect();
            return Err(NotChanged::NoPool { known });
        };
        let no_endpoint = || {
            let known = pool.status(now()).endpoints.into_iter().map(|one| one.name).collect();
            NotChanged::NoEndpoint { known }
        };
        let index = pool.find(endpoint).ok_or_else(no_endpoint)?;
        if let Some(change) = change {
            set(pool, endpoint, change, self.random.next_u64()).map_err(|_| no_endpoint())?;
        }
        let now = now();
        let status = pool.status(now).endpoints.into_iter().nth(index).ok_or_else(no_endpoint)?;
        let weigher = self.weighing.of(pool.name());
        let weighed = weigher.and_then(|weigher| weigher.weighed().get(index).copied());
        Ok(EndpointTold { now, status, weighed })
    }
}

/// Sets what is to be set. The name was found a moment ago, on the only thread that changes pools.
fn set(
    pool: &Pool,
    endpoint: &str,
    change: Change,
    random: u64,
) -> Result<(), subak_pool::UnknownEndpoint> {
    let now = now();
    if let Some(weight) = change.weight {
        pool.set_weight(endpoint, weight, now)?;
    }
    if let Some(state) = change.state
        && let Some(event) = pool.set_admin(endpoint, state, now, random)?
    {
        tracing::info!(pool = pool.name(), "{event}");
    }
    Ok(())
}
