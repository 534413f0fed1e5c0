//! What one listener does, compiled from the configuration: everything a request needs is resolved
//! here, off the hot path.

mod build;

use std::collections::HashMap;
use std::fmt;
use std::net::IpAddr;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use subak_certificate::CertificateError;
use subak_config as config;
use subak_config::{
    AcceptProxy, ErrorPages, ForwardedHeaders, HeaderEdits, Http2, ListenerLimits,
    ListenerTimeouts, MinRate,
};
use subak_message::{HeadLimits, RequestHead};
use subak_net::PeerAddress;
use subak_net::tls::{ServerTls, TlsSetupError};
use subak_telemetry::{ListenerMetrics, RouteMetrics};

use crate::access_log::AccessLogs;
use crate::acme::AcmeAnswers;
use crate::client_addr::ClientAddr;
use crate::decision::Decisions;
use crate::guard::Guard;
use crate::identity::Identities;
use crate::limits::{Bounds, Gate, Limit};
use crate::route::{Route, Summary};
use crate::trust::Trust;

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
    /// An HTTP/1 client that ends its side of the connection still waits for its response.
    pub(crate) half_close: bool,
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
    pub(crate) trust: Trust,
    /// The header names that decide something here.
    pub(crate) guard: Guard,
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

impl Service {
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

    /// A place beyond the limit, for who comes in the place of a connection that is about to end.
    #[cold]
    pub(crate) fn admit_instead(&self) -> Admitted {
        self.connections.fetch_add(1, Ordering::Relaxed);
        Admitted { connections: self.connections.clone() }
    }

    /// What tells listeners apart whose connections count together; the same over reloads.
    pub(crate) fn house(&self) -> usize {
        Arc::as_ptr(&self.connections).addr()
    }

    /// Settles who sends a request, and takes out of its head what is not believed of the sender and
    /// what an endpoint could read in place of a field that decides here. Conditions, keys and limits
    /// look at the head after that.
    #[inline]
    pub(crate) fn receive(&self, peer: PeerAddress, head: &mut RequestHead) -> ClientAddr {
        let client = ClientAddr::resolve(peer, self.trust.proxies(), head);
        self.trust.clean(&mut head.fields, client.peer_is_trusted);
        self.guard.remove_spellings(&mut head.fields);
        client
    }

    /// Whether clients are verified in another way than when a connection was let in under this number.
    #[inline]
    pub(crate) fn is_outdated(&self, verification: u64) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.is_outdated(verification))
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
