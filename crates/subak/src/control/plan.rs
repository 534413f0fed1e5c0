//! The next snapshot: built whole, with its sockets bound, before anything that runs is touched.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use subak_access_log::Sinks;
use subak_base::Address;
use subak_config::Config;
use subak_http::{Logging, Service};
use subak_net::{
    Allowance, ListenSocket, ListenerId, Sockets, keep_kernel_buffers_small, limit_buffers, now,
};
use subak_pool::EndpointIds;
use subak_telemetry::Registry;

use super::NotInForce;
use crate::application::Snapshot;

/// How long a port may need to become free. At start, another Subak may be closing it; during a reload
/// the control side waits for it, and no worker.
const START_PATIENCE: Duration = Duration::from_secs(1);
const RELOAD_PATIENCE: Duration = Duration::from_millis(200);

/// What a configuration makes of what is there.
pub(super) struct Plan {
    pub(super) snapshot: Snapshot,
    pub(super) listening: HashMap<Address, ListenerId>,
    pub(super) opened: Vec<(ListenerId, Vec<ListenSocket>)>,
    pub(super) closed: Vec<ListenerId>,
    pub(super) next_listener: u32,
}

/// Works out the next snapshot and binds what it needs. Nothing of what runs is touched.
pub(super) fn plan(
    config: &Config,
    before: &Snapshot,
    (listening_before, mut next_listener): (&HashMap<Address, ListenerId>, u32),
    workers: usize,
    ids: &mut EndpointIds,
    (telemetry, sinks): (&mut Registry, &mut Sinks),
) -> Result<Plan, NotInForce> {
    let pools = subak_http::pools(config, ids, &before.pools, now());
    let endpoint_tls =
        subak_http::endpoint_tls(config, &before.endpoint_tls).map_err(NotInForce::Service)?;
    let mut services = HashMap::new();
    let mut listening = HashMap::new();
    let mut opened = Vec::new();
    let patience = if before.generation == 0 { START_PATIENCE } else { RELOAD_PATIENCE };
    let mut own: Vec<_> = listening_before.keys().cloned().collect();
    for listener in &config.listeners {
        let previous = before.services.values().find(|service| service.name() == &*listener.name);
        let previous = previous.map(|service| &**service);
        let mut logging = Logging { sinks: &mut *sinks, generation: before.generation + 1 };
        let counted = (&mut *telemetry, &mut logging);
        let service = Service::build(listener, config, (&pools, &endpoint_tls), previous, counted);
        let service = Arc::new(service.map_err(NotInForce::Service)?);
        for address in &listener.bind {
            let id = match listening_before.get(address) {
                Some(id) => *id,
                None => {
                    let id = ListenerId(next_listener);
                    next_listener += 1;
                    let bound = Sockets { workers, own: &own, patience }.bind(address);
                    opened.push((id, bound.map_err(NotInForce::Bind)?));
                    own.push(address.clone());
                    id
                }
            };
            listening.insert(address.clone(), id);
            services.insert(id, service.clone());
        }
    }
    let gone = listening_before.iter().filter(|(address, _)| !listening.contains_key(*address));
    let closed = gone.map(|(_, id)| *id).collect();
    let generation = before.generation + 1;
    let snapshot = Snapshot { generation, services, pools, endpoint_tls };
    Ok(Plan { snapshot, listening, opened, closed, next_listener })
}

/// Memory below which the kernel's own buffers are kept small, too.
const LITTLE_MEMORY: usize = 128 << 20;

/// Bounds what messages may hold, in this process and in the kernel for it.
pub(super) fn bound_memory(config: &Config, workers: usize) {
    let memory = subak_service::memory_limit().and_then(|bytes| usize::try_from(bytes).ok());
    let half = memory.map_or(usize::MAX, |memory| memory / 2);
    let buffers = config.buffers.map_or(half, std::num::NonZeroUsize::get);
    limit_buffers(buffers, workers);
    keep_kernel_buffers_small(buffers < LITTLE_MEMORY / 2);
}

/// Room for fewer clients than this is rarely meant.
const FEW_CLIENTS: usize = 1000;
/// What is recommended then: some 49,000 clients.
const ENOUGH_FILES: usize = 65_536;

/// What clients may hold. The log hears of a limit of open files that leaves little room.
pub(super) fn allowance(
    config: &Config,
    (limit, is_start): (usize, bool),
    workers: usize,
) -> Allowance {
    let allowance = Allowance {
        limit,
        workers,
        addresses: config.listeners.iter().map(|listener| listener.bind.len()).sum(),
        configured: config.max_connections.map(std::num::NonZeroUsize::get),
    };
    let room = allowance.room();
    if let Some(configured) = allowance.configured.filter(|configured| *configured > room) {
        tracing::warn!(
            "max_connections = {configured}, but the limit of {limit} open files leaves room for \
             {room} clients; raise it: `ulimit -n`, LimitNOFILE in systemd"
        );
    } else if is_start && allowance.configured.is_none() && room < FEW_CLIENTS {
        tracing::warn!(
            "the limit of {limit} open files leaves room for {room} clients only, and {left} \
             connections to endpoints; raise it: `ulimit -n {ENOUGH_FILES}` before the start, \
             LimitNOFILE={ENOUGH_FILES} in systemd, `--ulimit nofile={ENOUGH_FILES}` of a container; \
             or say that few are meant: max_connections = {room}",
            left = room / 3
        );
    }
    allowance
}
