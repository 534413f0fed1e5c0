//! What one listener does, compiled from the configuration: everything a request needs is resolved
//! here, off the hot path.

use std::collections::HashMap;
use std::fmt;
use std::net::IpAddr;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use subak_balance::KeySource;
use subak_base::{Address, Tick};
use subak_certificate::CertificateError;
use subak_config as config;
use subak_config::{
    AcceptProxy, EndpointProtocol, ErrorPages, ForwardPath, ForwardedHeaders, HeaderEdits,
    HostForward, Http2, ListenerLimits, ListenerTimeouts, MinRate, RetryOn, Rewrite, SendProxy,
    Streams, TrustedProxies,
};
use subak_message::grpc::Codes;
use subak_message::{HeadLimits, PathRules, RequestHead};
use subak_net::tls::{ServerTls, TlsSetupError};
use subak_pool::{
    BackOffSpec, EndpointIds, EndpointSpec, Pool, PoolSpec, RetrySpec, ShadowSpec, StickTableSpec,
};
use subak_telemetry::{ListenerMetrics, PoolMetrics, Registry, RouteMetrics};

use crate::access_log::{AccessLogs, Logging};
use crate::acme::AcmeAnswers;
use crate::decision::Decisions;
use crate::endpoints::PoolTls;
use crate::identity::Identities;
use crate::limits::{Bounds, Gate, Limit};
use crate::route::{Action, Route, Summary};
use crate::split::Split;
use crate::stick::{NoRandomness, Stick};
use crate::tls;

/// What one listener does. Immutable; a reload makes a new one.
#[derive(Debug)]
pub struct Service {
    pub(crate) name: String,
    /// Goes on over reloads that do not change it.
    pub(crate) tls: Option<Arc<ServerTls>>,
    /// What that was made of.
    pub(crate) tls_made_of: Option<(config::Tls, config::Protocols)>,
    pub(crate) identities: Identities,
    pub(crate) http1: bool,
    pub(crate) http2: bool,
    pub(crate) head_limits: HeadLimits,
    pub(crate) limits: ListenerLimits,
    pub(crate) http2_limits: Http2,
    /// What it asks of every request; none: nothing.
    pub(crate) bounds: Option<Box<Bounds>>,
    /// What it asks of every connection; none: nothing.
    pub(crate) gate: Option<Box<Gate>>,
    pub(crate) timeouts: ListenerTimeouts,
    pub(crate) least_rate: Option<MinRate>,
    /// Whose headers of the PROXY protocol are believed; none: none is read.
    pub(crate) proxy_protocol: Option<AcceptProxy>,
    pub(crate) trusted: TrustedProxies,
    pub(crate) forwarded: ForwardedHeaders,
    pub(crate) forward_normalized: bool,
    /// Whether any of its pools recognises clients by both ends of their connection.
    pub(crate) wants_local_addresses: bool,
    /// Whether any of its pools tells endpoints of clients by the PROXY protocol.
    pub(crate) announces: bool,
    pub(crate) allow_trace: bool,
    /// For an authority that asks; none: no certificate is wanted by ACME.
    pub(crate) acme_answers: Option<Arc<AcmeAnswers>>,
    pub(crate) decisions: Decisions,
    /// None: no access log.
    pub(crate) logs: Option<AccessLogs>,
    pub(crate) error_pages: ErrorPages,
    /// The listener's own changes to answers that no route has made.
    pub(crate) answer_edits: Vec<HeaderEdits>,
    /// Connections now, over all workers; goes on over reloads.
    connections: Arc<AtomicUsize>,
    pub(crate) metrics: Arc<ListenerMetrics>,
    routes: Vec<Route>,
    fallback: Option<Route>,
}

/// A pool as one route uses it.
#[derive(Debug)]
pub struct PoolPlan {
    pub(crate) pool: Arc<Pool>,
    pub(crate) metrics: Arc<PoolMetrics>,
    /// How endpoints hear of clients by the PROXY protocol; none: they do not.
    pub(crate) proxy: Option<SendProxy>,
    /// How TLS is spoken with its endpoints; none: it is not.
    pub(crate) tls: Option<Arc<PoolTls>>,
    /// How clients are recognised; none: they are not.
    pub(crate) stick: Option<Arc<Stick>>,
    pub(crate) connect: Duration,
    pub(crate) first_byte: Duration,
    pub(crate) idle: Duration,
    pub(crate) keep_alive: Duration,
    pub(crate) protocol: EndpointProtocol,
    pub(crate) streams: Streams,
    pub(crate) tunnel_idle: Duration,
    pub(crate) most_idle: usize,
    pub(crate) queue_timeout: Duration,
    pub(crate) attempts: u32,
    pub(crate) retry_on: RetryOn,
    /// How gRPC calls end that count as failures of the endpoint.
    pub(crate) grpc_failures: Codes,
    pub(crate) kept_body: usize,
    pub(crate) host: HostForward,
    /// Another path for the endpoint.
    pub(crate) rewrite: Option<Rewrite>,
    /// The listener's, the route's and the pool's, in this order.
    pub(crate) request_edits: Vec<HeaderEdits>,
    /// The pool's, the route's and the listener's, in this order.
    pub(crate) answer_edits: Vec<HeaderEdits>,
}

impl PoolPlan {
    fn is_by_five_tuple(&self) -> bool {
        let own = self.pool.algorithm().key();
        let mut keys = self.pool.shadow_keys().chain([own]);
        keys.any(|key| key == Some(&KeySource::FiveTuple))
    }
}

/// Why a configuration cannot be put in force.
#[derive(Debug)]
pub enum ServiceError {
    /// A listener cannot speak TLS as it is wanted.
    Tls {
        /// This listener.
        listener: String,
        /// Why.
        error: TlsSetupError,
    },
    /// TLS to endpoints cannot be spoken as it is wanted.
    Endpoints {
        /// Of this pool.
        pool: String,
        /// Why.
        error: CertificateError,
    },
    /// The system gives no random bytes for a key of our own.
    NoStickKey,
}

impl fmt::Display for ServiceError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ServiceError::Tls { listener, error } => write!(out, "listener {listener}: {error}"),
            ServiceError::Endpoints { pool, error } => write!(out, "pool {pool}: {error}"),
            ServiceError::NoStickKey => out.write_str(
                "sticky cookies: the system gives no random bytes for a key; name a keys_file",
            ),
        }
    }
}

impl std::error::Error for ServiceError {}

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

/// What pools of a configuration have, by their names.
type ByName<T> = HashMap<String, Arc<T>>;

impl Service {
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
            let tls = tls
                .map_err(|error| ServiceError::Endpoints { pool: pool.name.to_string(), error })?;
            built.insert(pool.name.to_string(), Arc::new(tls));
        }
        Ok(built)
    }

    /// Compiles what `listener` does, over pools built by [`Service::pools`]. `previous` is the service
    /// of the same name in the snapshot before; what is counted is found in `telemetry` by name.
    ///
    /// # Errors
    /// [`ServiceError`], when a certificate cannot be used, or a key for cookies cannot be made.
    pub fn build(
        listener: &config::Listener,
        config: &config::Config,
        (pools, endpoint_tls): (&ByName<Pool>, &ByName<PoolTls>),
        previous: Option<&Service>,
        (telemetry, logging): (&mut Registry, &mut Logging<'_>),
    ) -> Result<Service, ServiceError> {
        let logs = AccessLogs::build(&listener.access_logs, &listener.name, logging);
        let shows_decisions = logs.as_ref().is_some_and(|logs| logs.wanted().decision);
        let tls = tls::listener(listener, previous)?;
        let sticks =
            sticks(listener, config, pools).map_err(|NoRandomness| ServiceError::NoStickKey)?;
        let is_tls = tls.is_some();
        let workers = telemetry.workers();
        let mut plan = |name: &str, route: Option<&config::Route>| {
            let tls = endpoint_tls.get(name).cloned();
            Arc::new(PoolPlan {
                tls,
                ..plan(name, listener, route, config, pools, &sticks, telemetry)
            })
        };
        let split = |split: &config::Split, plans| Action::Split(Split::new(split, plans, is_tls));
        let mut counting = previous.map(Service::counting).unwrap_or_default();
        let mut counted = |route: Option<&config::Route>, action: &config::Action| {
            let summary = Summary::new(route, action);
            let metrics = counting.remove(&summary);
            (summary, metrics.unwrap_or_else(|| Arc::new(RouteMetrics::new(workers))))
        };
        let mut compile = |route: &config::Route| {
            let mut plans: Vec<_> =
                route.action.pools().map(|name| plan(name, Some(route))).collect();
            let action = match &route.action {
                config::Action::Pool(_) => Action::Pool(plans.remove(0)),
                config::Action::Split(sides) => split(sides, plans),
                config::Action::Redirect(redirect) => Action::Redirect(redirect.clone()),
                config::Action::Respond(respond) => Action::Respond(respond.clone()),
            };
            let edits = some_edits([&route.response_headers, &listener.response_headers]);
            let counted = counted(Some(route), &route.action);
            Route::new(Some(route), action, route.error_pages.clone(), edits, counted)
        };
        let limits_before: Vec<Limit> = previous.into_iter().flat_map(Service::limits).collect();
        let bounds = |numbered| Bounds::of_route(listener, numbered, &limits_before);
        let routes: Vec<_> = (1..)
            .zip(&listener.routes)
            .map(|(number, route)| compile(route).within(bounds((number, route))))
            .collect();
        let own = match (&listener.pool, &listener.split) {
            (Some(name), _) => {
                Some((Action::Pool(plan(name, None)), config::Action::Pool(name.clone())))
            }
            (None, Some(sides)) => {
                let plans = listener.own_pools().map(|name| plan(name, None)).collect();
                Some((split(sides, plans), config::Action::Split(sides.clone())))
            }
            (None, None) => None,
        };
        let fallback = own.map(|(action, configured)| {
            let edits = some_edits([&listener.response_headers]);
            let counted = counted(None, &configured);
            Route::new(None, action, ErrorPages::default(), edits, counted)
        });
        let announces = listener_pools(&routes, &fallback).any(|plan| plan.proxy.is_some());
        let wants_local_addresses =
            announces || listener_pools(&routes, &fallback).any(PoolPlan::is_by_five_tuple);
        Ok(Service {
            name: listener.name.to_string(),
            tls,
            tls_made_of: listener.tls.clone().map(|tls| (tls, listener.protocols)),
            identities: Identities::of(listener, config),
            http1: listener.protocols.http1,
            http2: listener.protocols.http2,
            head_limits: HeadLimits {
                max_bytes: listener.limits.head_bytes,
                max_fields: listener.limits.fields,
                path: PathRules { merge_slashes: listener.path.merge_slashes },
            },
            limits: listener.limits,
            http2_limits: listener.http2,
            bounds: Bounds::of_listener(listener, &limits_before),
            gate: Gate::of(listener, &limits_before),
            timeouts: listener.timeouts,
            least_rate: listener.min_rate,
            proxy_protocol: listener.proxy_protocol.clone(),
            trusted: listener.trusted_proxies.clone(),
            forwarded: listener.forwarded_headers,
            forward_normalized: listener.path.forward == ForwardPath::Normalized,
            wants_local_addresses,
            announces,
            allow_trace: listener.allow_trace,
            acme_answers: config.acme.is_some().then(|| {
                previous.and_then(|service| service.acme_answers.clone()).unwrap_or_default()
            }),
            decisions: Decisions::of(listener, config).also_for_logs(shows_decisions),
            logs,
            error_pages: listener.error_pages.clone(),
            answer_edits: some_edits([&listener.response_headers]),
            connections: previous.map_or_else(Arc::default, |service| service.connections.clone()),
            metrics: telemetry.listener(&listener.name),
            routes,
            fallback,
        })
    }

    /// The listener's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Connections of this listener now.
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }

    /// Its limits, and those of its routes.
    pub fn limits(&self) -> impl Iterator<Item = Limit> {
        let gate = self.gate.iter().filter_map(|gate| gate.limit());
        let routes = self.routes.iter().flat_map(|route| &route.bounds);
        gate.chain(self.bounds.iter().chain(routes).flat_map(|bounds| bounds.all()))
    }

    /// What it answers an ACME authority, if any certificate is wanted from one.
    pub fn acme_answers(&self) -> Option<&AcmeAnswers> {
        self.acme_answers.as_deref()
    }

    /// Whether it speaks TLS.
    pub fn is_tls(&self) -> bool {
        self.tls.is_some()
    }

    /// Its TLS, with its certificates; none: it does not speak it.
    pub fn tls(&self) -> Option<&Arc<ServerTls>> {
        self.tls.as_ref()
    }

    /// What it speaks, as ALPN names it, the preferred first.
    pub fn protocols(&self) -> impl Iterator<Item = &'static str> {
        let all = [("h2", self.http2), ("http/1.1", self.http1)];
        all.into_iter().filter_map(|(name, is_spoken)| is_spoken.then_some(name))
    }

    /// The routes with their places from 1 and how many requests each has taken; last, without a place,
    /// what takes the rest.
    pub fn counted_routes(&self) -> impl Iterator<Item = (Option<usize>, &Summary, u64)> {
        let routes = (1..).map(Some).zip(&self.routes);
        let all = routes.chain(self.fallback.as_ref().map(|route| (None, route)));
        all.map(|(place, route)| (place, &route.summary, route.metrics.hits()))
    }

    /// What counts the requests of each route. Of two that are the same the second takes none.
    fn counting(&self) -> HashMap<Summary, Arc<RouteMetrics>> {
        let routes = self.routes.iter().chain(&self.fallback).rev();
        routes.map(|route| (route.summary.clone(), route.metrics.clone())).collect()
    }

    /// A place among the connections of this listener; none when there are as many as allowed.
    pub(crate) fn admit(&self) -> Option<Admitted> {
        let limit = self.limits.connections.map_or(usize::MAX, NonZeroUsize::get);
        let below = |now: usize| (now < limit).then(|| now + 1);
        let counter = &self.connections;
        counter.fetch_update(Ordering::Relaxed, Ordering::Relaxed, below).ok()?;
        Some(Admitted { connections: counter.clone() })
    }

    /// The routes in order, and what takes the rest.
    pub(crate) fn all_routes(&self) -> (&[Route], Option<&Route>) {
        (&self.routes, self.fallback.as_ref())
    }

    /// The place of one of its routes in the file; none: it is the listener's own pool.
    pub(crate) fn place_of(&self, route: &Route) -> Option<usize> {
        let offset = std::ptr::from_ref(route).addr().checked_sub(self.routes.as_ptr().addr())?;
        let place = offset / size_of::<Route>();
        (place < self.routes.len()).then_some(place)
    }

    /// The route that takes the request; none means 404.
    #[inline]
    pub(crate) fn route(&self, head: &RequestHead, client: Option<IpAddr>) -> Option<&Route> {
        self.routes.iter().find(|route| route.matches(head, client)).or(self.fallback.as_ref())
    }
}

/// One connection in the books of its listener.
#[derive(Debug)]
pub(crate) struct Admitted {
    connections: Arc<AtomicUsize>,
}

impl Drop for Admitted {
    fn drop(&mut self) {
        self.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The pools that requests can go to.
fn listener_pools<'a>(
    routes: &'a [Route],
    fallback: &'a Option<Route>,
) -> impl Iterator<Item = &'a PoolPlan> {
    routes.iter().chain(fallback).flat_map(|route| route.action.plans())
}

/// The edits that change anything, in order.
fn some_edits<'a>(edits: impl IntoIterator<Item = &'a HeaderEdits>) -> Vec<HeaderEdits> {
    edits.into_iter().filter(|edits| !edits.is_empty()).cloned().collect()
}

/// How the clients of each pool are recognised that this listener uses, where they are.
fn sticks<'a>(
    listener: &'a config::Listener,
    config: &config::Config,
    pools: &ByName<Pool>,
) -> Result<HashMap<&'a str, Arc<Stick>>, NoRandomness> {
    let by_routes = listener.routes.iter().flat_map(|route| route.action.pools());
    let mut sticks = HashMap::new();
    for name in by_routes.chain(listener.own_pools()) {
        if !sticks.contains_key(&**name)
            && let (Some(pool), Some(built)) = (config.pool(name), pools.get(&**name))
            && let Some(stick) = Stick::build(pool, built, listener.tls.is_some())?
        {
            sticks.insert(&**name, Arc::new(stick));
        }
    }
    Ok(sticks)
}

fn plan(
    name: &str,
    listener: &config::Listener,
    route: Option<&config::Route>,
    config: &config::Config,
    pools: &ByName<Pool>,
    sticks: &HashMap<&str, Arc<Stick>>,
    telemetry: &mut Registry,
) -> PoolPlan {
    let (Some(pool), Some(built)) = (config.pool(name), pools.get(name)) else {
        unreachable!("the configuration has checked that pool {name} exists")
    };
    let route_requests = route.map(|route| &route.request_headers);
    let route_answers = route.map(|route| &route.response_headers);
    PoolPlan {
        pool: built.clone(),
        metrics: telemetry.pool(name),
        proxy: pool.proxy_protocol,
        tls: None,
        stick: sticks.get(name).cloned(),
        connect: pool.timeouts.connect,
        first_byte: pool.timeouts.first_byte,
        idle: pool.timeouts.idle,
        keep_alive: pool.timeouts.keep_alive,
        protocol: pool.protocol,
        streams: pool.streams,
        tunnel_idle: pool.timeouts.tunnel,
        most_idle: pool.keep_alive_connections,
        queue_timeout: pool.queue.timeout,
        attempts: pool.retry.attempts.get(),
        retry_on: pool.retry.on.clone(),
        grpc_failures: pool.grpc_failures,
        kept_body: pool.retry.body_bytes,
        host: pool.host.clone(),
        rewrite: route.and_then(|route| route.rewrite.clone()),
        request_edits: some_edits(
            [Some(&listener.request_headers), route_requests, Some(&pool.request_headers)]
                .into_iter()
                .flatten(),
        ),
        answer_edits: some_edits(
            [Some(&pool.response_headers), route_answers, Some(&listener.response_headers)]
                .into_iter()
                .flatten(),
        ),
    }
}

/// What endpoints are offered by ALPN, the preferred first.
fn offered(protocol: EndpointProtocol) -> &'static [&'static [u8]] {
    match protocol {
        EndpointProtocol::Http1 => &[b"http/1.1"],
        EndpointProtocol::Http2 => &[b"h2"],
        EndpointProtocol::Auto => &[b"h2", b"http/1.1"],
    }
}

/// The Host an endpoint is known by.
pub(crate) fn endpoint_host(address: &Address) -> String {
    match address {
        Address::Inet(address) => address.to_string(),
        Address::Unix(_) => "localhost".into(),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

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
        assert!(plain.probe.is_none() && plain.agent.is_none() && plain.eject.is_none());
        assert!(plain.stick_table.is_none() && plain.pick_log.is_none());
    }
}
