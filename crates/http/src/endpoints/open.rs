//! New connections to endpoints: a place in the endpoint's books, then the connection itself.

use std::io;
use std::task::Poll;
use std::time::Duration;

use subak_net::tls::TlsFailure;
use subak_net::tls::client::Offer;
use subak_net::{ConnectError, Deadline, connect, now};
use subak_pool::{ConnectionSlot, Lease};

use super::announce::Header;
use super::{Connection, Slot, prelude};
use crate::failure::Failure;
use crate::meter::Meter;
use crate::plan::PoolPlan;
use crate::worker::{Message, Worker};

/// Requests that may wait for a connection to one endpoint.
pub(super) const MOST_WAITING: usize = 10_000;

/// A new connection to the lease's endpoint.
pub(super) async fn open(
    worker: &Worker,
    lease: &Lease<'_>,
    plan: &PoolPlan,
    (header, offer): (Option<Header>, Offer),
    deadline: &Deadline,
) -> Result<Box<Connection>, Failure> {
    let slot = match lease.endpoint().open_connection(lease.max_connections()) {
        Some(slot) => slot,
        None => Box::pin(wait_for_slot(worker, lease, plan.queue_timeout, deadline)).await?,
    };
    open_on(slot, worker, lease, plan, (header, offer), deadline).await
}

/// A new connection in a place that is held already.
pub(super) async fn open_on(
    of_endpoint: ConnectionSlot,
    worker: &Worker,
    lease: &Lease<'_>,
    plan: &PoolPlan,
    (header, offer): (Option<Header>, Offer),
    deadline: &Deadline,
) -> Result<Box<Connection>, Failure> {
    let mut tries = 2;
    loop {
        tries -= 1;
        let descriptor = worker.handle.descriptors().endpoint();
        deadline.set(lease.connect_limit().unwrap_or(plan.connect));
        let connected = match descriptor {
            Some(descriptor) => connect(lease.endpoint().address(), deadline)
                .await
                .map(|stream| (stream, descriptor)),
            // The rest is for clients.
            None => Err(ConnectError::Exhausted(io::Error::other(
                "as many connections to endpoints as the limit of open files leaves room for",
            ))),
        };
        return match connected {
            Ok((mut stream, descriptor)) => {
                let slot = Slot { of_endpoint, _descriptor: descriptor };
                if let Some(header) = &header {
                    prelude::announce(&mut stream, header, deadline).await?;
                }
                let mut secured_in = Duration::ZERO;
                let (stream, target) = match &plan.tls {
                    None => (stream, None),
                    Some(tls) => {
                        let target = tls.target(lease.endpoint().address()).cloned();
                        let target = target.ok_or(Failure::Tls(TlsFailure::NoTcp))?;
                        let about = (plan.pool.name(), lease);
                        let secured = prelude::secure(stream, (&target, offer), about, deadline);
                        let began = now();
                        let stream = Box::pin(secured).await?;
                        secured_in = now().since(began);
                        (stream, Some(target))
                    }
                };
                let meter = Meter::default();
                let reused = false;
                Ok(Box::new(Connection { stream, meter, target, secured_in, header, reused, slot }))
            }
            Err(ConnectError::Refused(error)) => Err(Failure::Connect(error)),
            Err(ConnectError::TimedOut) => Err(Failure::ConnectTimeout),
            Err(ConnectError::NoPort(error)) => {
                plan.metrics.no_port(worker.index());
                Err(Failure::NoPort(error))
            }
            Err(ConnectError::Exhausted(_)) if tries > 0 => {
                // Idle connections are worth less than a request.
                worker.close_idle();
                worker.handle.tell_others(Message::CloseIdle);
                continue;
            }
            Err(ConnectError::Exhausted(error)) => Err(Failure::Exhausted(error)),
        };
    }
}

/// The endpoint has all the connections it may have, some of them perhaps idle on other workers: asks
/// for one to be closed and stands in line for its place.
async fn wait_for_slot(
    worker: &Worker,
    lease: &Lease<'_>,
    limit: Duration,
    deadline: &Deadline,
) -> Result<ConnectionSlot, Failure> {
    let endpoint = lease.endpoint();
    let mut waiter = endpoint.connection_line().join(MOST_WAITING).ok_or(Failure::QueueFull)?;
    deadline.set(limit);
    loop {
        if let Some(slot) = endpoint.open_connection(lease.max_connections()) {
            return Ok(slot);
        }
        worker.idle.close_one(endpoint.id());
        worker.handle.tell_others(Message::CloseOneIdle(endpoint.id()));
        std::future::poll_fn(|context| match waiter.poll_notified(context) {
            Poll::Ready(()) => Poll::Ready(Ok(())),
            Poll::Pending if deadline.expired(context) => Poll::Ready(Err(Failure::QueueTimeout)),
            Poll::Pending => Poll::Pending,
        })
        .await?;
    }
}
