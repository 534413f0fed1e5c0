//! A pool as one route uses it: what a request needs of it, resolved when the service is built.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use subak_balance::KeySource;
use subak_base::Address;
use subak_config as config;
use subak_config::{
    EndpointProtocol, HeaderEdits, HostForward, RetryOn, Rewrite, SendProxy, Streams,
};
use subak_message::grpc::Codes;
use subak_pool::Pool;
use subak_telemetry::{PoolMetrics, Registry};

use crate::edit::some_edits;
use crate::endpoints::PoolTls;
use crate::pools::ByName;
use crate::stick::Stick;

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
    /// How long a request waits while nobody can be reached.
    pub(crate) outage: Duration,
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
    /// Of the pool of this name, as `route` uses it; without one, as the listener itself does.
    pub(crate) fn new(
        name: &str,
        route: Option<&config::Route>,
        parts: &Parts<'_>,
        telemetry: &mut Registry,
    ) -> PoolPlan {
        let Parts { config, listener, pools, tls, sticks } = *parts;
        let (Some(pool), Some(built)) = (config.pool(name), pools.get(name)) else {
            unreachable!("the configuration has checked that pool {name} exists")
        };
        let route_requests = route.map(|route| &route.request_headers);
        let route_answers = route.map(|route| &route.response_headers);
        PoolPlan {
            pool: built.clone(),
            metrics: telemetry.pool(name),
            proxy: pool.proxy_protocol,
            tls: tls.get(name).cloned(),
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
            outage: pool.queue.outage,
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

    /// Whether it recognises clients by both ends of their connection.
    pub(crate) fn is_by_five_tuple(&self) -> bool {
        let own = self.pool.algorithm().key();
        let mut keys = self.pool.shadow_keys().chain([own]);
        keys.any(|key| key == Some(&KeySource::FiveTuple))
    }
}

/// What plans of one listener are made of.
#[derive(Clone, Copy)]
pub(crate) struct Parts<'a> {
    pub(crate) config: &'a config::Config,
    pub(crate) listener: &'a config::Listener,
    pub(crate) pools: &'a ByName<Pool>,
    pub(crate) tls: &'a ByName<PoolTls>,
    pub(crate) sticks: &'a HashMap<&'a str, Arc<Stick>>,
}

/// The Host an endpoint is known by.
pub(crate) fn endpoint_host(address: &Address) -> String {
    match address {
        Address::Inet(address) => address.to_string(),
        Address::Unix(_) => "localhost".into(),
    }
}
