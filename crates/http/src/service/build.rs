//! How a service is compiled from the configuration.

use std::collections::HashMap;
use std::sync::Arc;

use subak_config as config;
use subak_config::{ErrorPages, ForwardPath};
use subak_message::HeadLimits;
use subak_pool::Pool;
use subak_telemetry::{Registry, RouteMetrics};

use super::{Service, ServiceError};
use crate::access_log::{AccessLogs, Logging};
use crate::decision::Decisions;
use crate::edit::some_edits;
use crate::endpoints::PoolTls;
use crate::guard::Guard;
use crate::identity::Identities;
use crate::limits::{Bounds, Gate, Limit};
use crate::plan::{Parts, PoolPlan};
use crate::pools::ByName;
use crate::route::{Action, Route, Summary};
use crate::split::Split;
use crate::stick::{NoRandomness, Stick};
use crate::tls;
use crate::trust::Trust;

impl Service {
    /// Compiles what `listener` does, over pools built by [`pools`](crate::pools()). `previous` is the service
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
        let parts = Parts { config, listener, pools, tls: endpoint_tls, sticks: &sticks };
        let mut plan = |name: &str, route: Option<&config::Route>| {
            Arc::new(PoolPlan::new(name, route, &parts, telemetry))
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
            half_close: listener.half_close,
            head_limits: HeadLimits {
                max_bytes: listener.limits.head_bytes,
                max_fields: listener.limits.fields,
                path: listener.path.rules(),
            },
            limits: listener.limits,
            http2_limits: listener.http2,
            bounds: Bounds::of_listener(listener, &limits_before),
            gate: Gate::of(listener, &limits_before),
            timeouts: listener.timeouts,
            least_rate: listener.min_rate,
            proxy_protocol: listener.proxy_protocol.clone(),
            trust: Trust::new(&listener.trusted_proxies),
            guard: Guard::of(listener, config),
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
}

/// The pools that requests can go to.
fn listener_pools<'a>(
    routes: &'a [Route],
    fallback: &'a Option<Route>,
) -> impl Iterator<Item = &'a PoolPlan> {
    routes.iter().chain(fallback).flat_map(|route| route.action.plans())
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
