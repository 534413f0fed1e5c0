//! Connections to endpoints: one worker's idle ones, those that requests share, and how new ones are
//! made.

mod announce;
mod idle;
mod open;
mod prelude;
mod shared;
mod tls;

use std::sync::Arc;
use std::time::Duration;

use subak_config::EndpointProtocol;
use subak_net::tls::client::{Offer, TlsTarget};
use subak_net::{Deadline, EndpointDescriptor, Stream};
use subak_pool::{ConnectionSlot, Endpoint, Lease};

use crate::failure::Failure;
use crate::h2::StreamLease;
use crate::meter::Meter;
use crate::plan::PoolPlan;
use crate::worker::Worker;

pub(crate) use announce::{Header, header};
pub(crate) use idle::{IdleConnections, sweep_for_ever};
pub(crate) use shared::SharedConnections;
pub use tls::PoolTls;

/// A connection to an endpoint, with its place in the endpoint's books.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) stream: Stream,
    pub(crate) meter: Meter,
    /// How it is secured; none: it is not.
    pub(crate) target: Option<Arc<TlsTarget>>,
    /// How long the handshake took that secured it.
    pub(crate) secured_in: Duration,
    /// Whom it announces; none: nobody.
    header: Option<Header>,
    /// Whether it has carried an exchange before.
    pub(crate) reused: bool,
    /// After the stream, so that it is closed before its place is free.
    pub(crate) slot: Slot,
}

/// A connection's places: in the books of its endpoint, and among the descriptors of the process.
#[derive(Debug)]
pub(crate) struct Slot {
    of_endpoint: ConnectionSlot,
    _descriptor: EndpointDescriptor,
}

impl Slot {
    pub(crate) fn endpoint(&self) -> &Arc<Endpoint> {
        self.of_endpoint.endpoint()
    }
}

/// What an exchange is given of an endpoint.
#[derive(Debug)]
pub(crate) enum Lent {
    /// A connection for itself (HTTP/1).
    Exclusive(Box<Connection>),
    /// A stream of a connection that others use too (HTTP/2).
    Stream(StreamLease),
}

impl Lent {
    /// How long TLS took with a connection that has just been made; 0 for all that is lent later.
    pub(crate) fn take_secured_in(&mut self) -> Duration {
        match self {
            Lent::Exclusive(connection) => std::mem::take(&mut connection.secured_in),
            Lent::Stream(stream) => stream.connection().take_secured_in(),
        }
    }
}

/// What is there already.
#[inline]
pub(crate) fn at_hand(
    worker: &Worker,
    lease: &Lease<'_>,
    plan: &PoolPlan,
    header: Option<&[u8]>,
) -> Option<Lent> {
    let endpoint = lease.endpoint();
    if plan.protocol.may_share() {
        if let Some(stream) = worker.shared.take(endpoint, plan) {
            return Some(Lent::Stream(stream));
        }
        // Idle ones may be left from before a reload.
        if plan.protocol == EndpointProtocol::Http2 {
            return None;
        }
    }
    worker.idle.take(endpoint, plan, header).map(Lent::Exclusive)
}

/// An idle connection of HTTP/1, for what the endpoint's HTTP/2 cannot carry.
pub(crate) fn http1_at_hand(worker: &Worker, lease: &Lease<'_>, plan: &PoolPlan) -> Option<Lent> {
    worker.idle.take(lease.endpoint(), plan, None).map(Lent::Exclusive)
}

/// A new connection to the lease's endpoint, or a stream on one that has room by now.
pub(crate) async fn open(
    worker: &Worker,
    lease: &Lease<'_>,
    plan: &PoolPlan,
    (header, offer): (Option<Header>, Offer),
    deadline: &Deadline,
) -> Result<Lent, Failure> {
    match plan.protocol.may_share() && offer == Offer::All {
        // What is shared announces nobody: the configuration sees to it.
        true => shared::lend(worker, lease, plan, deadline).await,
        false => {
            let opened = open::open(worker, lease, plan, (header, offer), deadline).await;
            opened.map(Lent::Exclusive)
        }
    }
}

/// Whether HTTP/2 is spoken on a new connection.
fn is_http2(stream: &Stream, plan: &PoolPlan) -> bool {
    match plan.protocol {
        EndpointProtocol::Http1 => false,
        EndpointProtocol::Http2 => true,
        EndpointProtocol::Auto => stream.tls().and_then(|facts| facts.alpn) == Some("h2"),
    }
}
