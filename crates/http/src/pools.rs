//! The pools of a configuration, and TLS to their endpoints: what all listeners share.

use std::collections::HashMap;
use std::sync::Arc;

use subak_base::Tick;
use subak_config as config;
use subak_config::EndpointProtocol;
use subak_pool::{
    BackOffSpec, EndpointIds, EndpointSpec, Pool, PoolSpec, RetrySpec, ShadowSpec, StickTableSpec,
};

use crate::endpoints::PoolTls;
use crate::service::ServiceError;

/// What pools of a configuration have, by their names.
pub(crate) type ByName<T> = HashMap<String, Arc<T>>;

/// The pools of a configuration, by name. One of `previous` that would be the same stays as it is;
/// the others hand their state over by identity.
pub fn pools(
    config: &config::Config,
    ids: &mut EndpointIds,
    previous: &ByName<Pool>,
    now: Tick,
) -> ByName<Pool> {
    let build = |pool: &config::Pool| {
        let spec = pool_spec(pool);
        let before = previous.get(&*pool.name);
        let built = match before {
            Some(before) if *before.spec() == spec => before.clone(),
            _ => Arc::new(Pool::build(&spec, ids, before.map(|pool| &**pool), now)),
        };
        (pool.name.to_string(), built)
    };
    config.pools.iter().map(build).collect()
}

/// TLS to the endpoints of a configuration's pools, by their names. Sessions of `previous` are taken
/// over where nothing else is wanted.
///
/// # Errors
/// [`ServiceError::Endpoints`].
pub fn endpoint_tls(
    config: &config::Config,
    previous: &ByName<PoolTls>,
) -> Result<ByName<PoolTls>, ServiceError> {
    let mut built = HashMap::new();
    for pool in &config.pools {
        let Some(wanted) = &pool.tls else { continue };
        let before = previous.get(&*pool.name).map(|before| &**before);
        let tls = PoolTls::build(wanted, offered(pool.protocol), &pool.endpoints, before);
        let tls =
            tls.map_err(|error| ServiceError::Endpoints { pool: pool.name.to_string(), error })?;
        built.insert(pool.name.to_string(), Arc::new(tls));
    }
    Ok(built)
}

/// What a pool of a configuration is built from.
pub fn pool_spec(pool: &config::Pool) -> PoolSpec {
    // An HTTP/1 exchange needs a connection of its own, and who may choose may choose that.
    let per_connection = match pool.protocol {
        EndpointProtocol::Http1 | EndpointProtocol::Auto => 1,
        EndpointProtocol::Http2 => pool.streams.per_connection.get(),
    };
    let endpoint = |endpoint: &config::Endpoint| EndpointSpec {
        weight: endpoint.weight,
        // No more than its connections can carry.
        max_in_flight: {
            let carried =
                endpoint.max_connections.map(|cap| cap.get().saturating_mul(per_connection));
            let own = endpoint.max_in_flight.map(|cap| cap.get());
            own.into_iter().chain(carried).min()
        },
        max_connections: endpoint.max_connections.map(|cap| cap.get()),
        backup: endpoint.backup,
        origin: endpoint.origin.clone(),
        host: endpoint.host.clone(),
        admin: endpoint.state,
        ..EndpointSpec::new(endpoint.name.to_string(), endpoint.address.clone())
    };
    let endpoints = pool.endpoints.iter().map(endpoint).collect();
    let stick_table = match &pool.stick {
        Some(config::Stick::Table(table)) => {
            Some(StickTableSpec { expire: table.expire, entries: table.entries.get() })
        }
        Some(config::Stick::Cookie(_)) | None => None,
    };
    PoolSpec {
        queue_length: pool.queue.length,
        retry: RetrySpec {
            budget_per_mille: pool.retry.budget_per_mille,
            min_per_second: pool.retry.min_per_second,
        },
        circuit: pool.circuit.clone(),
        back_off: BackOffSpec { initial: pool.back_off.initial, max: pool.back_off.max },
        probe: pool.health.as_ref().map(|health| health.spec.clone()),
        agent: pool.agent_check.as_ref().map(|agent| agent.spec.clone()),
        eject: pool.eject.clone(),
        slow_start: pool.slow_start,
        on_all_down: pool.on_all_down,
        stick_table,
        pick_log: pool.pick_log,
        shadows: pool.shadows.iter().map(shadow).collect(),
        ..PoolSpec::new(pool.name.to_string(), pool.algorithm.clone(), endpoints)
    }
}

fn shadow(shadow: &config::Shadow) -> ShadowSpec {
    ShadowSpec { name: shadow.name.clone(), algorithm: shadow.algorithm.clone() }
}

/// What endpoints are offered by ALPN, the preferred first.
fn offered(protocol: EndpointProtocol) -> &'static [&'static [u8]] {
    match protocol {
        EndpointProtocol::Http1 => &[b"http/1.1"],
        EndpointProtocol::Http2 => &[b"h2"],
        EndpointProtocol::Auto => &[b"h2", b"http/1.1"],
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroUsize;
    use std::path::Path;
    use std::time::Duration;

    use super::*;

    #[test]
    fn what_a_pool_says_of_health_reaches_its_spec() {
        let read = |pool: &str| {
            let text = format!(
                "[listener.web]\nbind = \"0.0.0.0:80\"\npool = \"app\"\n[pool.app]\n{pool}\n"
            );
            let outcome = config::parse(&text, Path::new("subak.toml"));
            assert!(outcome.config.is_some(), "{:?}", outcome.diagnostics);
            outcome.config.map(|config| config.pools[0].clone()).expect("just asserted")
        };
        let pool = read(
            "endpoints = [\"10.0.0.2:80\", \"10.0.0.3:80 backup=true state=drain\"]\n\
             health = { tcp = true, interval = \"3s\" }\nagent_check = { port = 1, interval = \"4s\" }\n\
             eject = { consecutive = 6 }\nslow_start = \"7s\"\non_all_down = \"fail_closed\"\n\
             stick = { table = \"source\", expire = \"8s\", entries = 9 }\npick_log = 10",
        );
        let spec = pool_spec(&pool);
        assert_eq!(spec.probe.as_ref(), pool.health.as_ref().map(|health| &health.spec));
        assert_eq!(spec.agent.as_ref(), pool.agent_check.as_ref().map(|agent| &agent.spec));
        assert!(spec.probe.is_some() && spec.agent.is_some() && spec.eject.is_some());
        assert_eq!((&spec.eject, spec.slow_start), (&pool.eject, pool.slow_start));
        assert!(spec.slow_start.is_some());
        assert_eq!(spec.on_all_down.name(), "fail_closed");
        let table = StickTableSpec { expire: Duration::from_secs(8), entries: 9 };
        assert_eq!((spec.stick_table, spec.pick_log), (Some(table), NonZeroUsize::new(10)));
        let states: Vec<_> = spec.endpoints.iter().map(|one| (one.backup, one.admin)).collect();
        let expected: Vec<_> = pool.endpoints.iter().map(|one| (one.backup, one.state)).collect();
        assert_eq!(states, expected);
        assert_ne!(states[0], states[1]);

        let plain = pool_spec(&read("endpoints = []\nstick = { cookie = \"A\" }"));
        assert!(plain.probe.is_none() && plain.agent.is_none());
        assert!(plain.eject.is_some_and(|eject| eject.latency.is_none()));
        assert!(plain.stick_table.is_none() && plain.pick_log.is_none());
    }
}
