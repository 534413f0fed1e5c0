//! One worker's shared connections to endpoints (HTTP/2): which of them carries the next stream, and
//! when another one is opened.
//!
//! A stream goes to the connection with the fewest. Another connection is opened while there are fewer
//! than `streams.connections`, or when all are full; requests that come meanwhile wait for those being
//! opened as far as these will have room, so that a burst does not open one each. Whoever waits stands
//! in one line for each endpoint, notified by every stream that ends and every connection that comes or
//! goes; a connection that could not be made fails all that waited for it, so that a dead endpoint
//! costs each of them one time limit and not one after the other.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::io;
use std::rc::Rc;
use std::task::Poll;

use subak_base::{EndpointId, Tick};
use subak_net::Deadline;
use subak_net::tls::TlsFailure;
use subak_net::tls::client::Offer;
use subak_pool::{ConnectionSlot, Endpoint, Lease, WaitQueue};

use super::idle::{IdHash, is_secured_as};
use super::open::{MOST_WAITING, open_on};
use super::{Lent, is_http2};
use crate::failure::Failure;
use crate::h2::{self, H2Connection, StreamLease};
use crate::plan::PoolPlan;
use crate::worker::{Message, Worker};

/// One worker's shared connections.
#[derive(Debug, Default)]
pub(crate) struct SharedConnections {
    by_endpoint: RefCell<HashMap<EndpointId, Rc<Group>, IdHash>>,
}

/// The connections to one endpoint.
#[derive(Debug, Default)]
struct Group {
    connections: RefCell<Vec<Rc<H2Connection>>>,
    /// Being opened.
    opening: Cell<usize>,
    /// How often one could not be made, and why the last time.
    failures: Cell<u64>,
    last_failure: RefCell<Option<NotMade>>,
    /// The endpoint chose HTTP/1 the last time: nothing will be shared.
    is_exclusive: Cell<bool>,
    line: Rc<WaitQueue>,
}

/// Why a connection could not be made, for those who waited for it.
#[derive(Debug)]
enum NotMade {
    Refused(io::ErrorKind, String),
    TimedOut,
    NotSecured(String),
}

impl SharedConnections {
    /// A stream on a connection that has room.
    pub(crate) fn take(&self, endpoint: &Endpoint, plan: &PoolPlan) -> Option<StreamLease> {
        let by_endpoint = self.by_endpoint.borrow();
        let group = by_endpoint.get(&endpoint.id())?;
        // Others came first.
        if group.line.waiting() > 0 {
            return None;
        }
        group.take_beyond_floor(endpoint, plan)
    }

    fn group(&self, endpoint: EndpointId) -> Rc<Group> {
        self.by_endpoint.borrow_mut().entry(endpoint).or_default().clone()
    }

    /// Lets go of what has been idle too long, and of endpoints that nobody asks for.
    pub(crate) fn sweep(&self, now: Tick) {
        self.by_endpoint.borrow_mut().retain(|_, group| {
            group.let_go(|connection| connection.is_idle_since(now));
            Rc::strong_count(group) > 1 || !group.connections.borrow().is_empty()
        });
    }

    /// Lets go of connections to endpoints that `used` does not know; their streams go on.
    pub(crate) fn keep(&self, used: impl Fn(EndpointId) -> bool) {
        self.by_endpoint.borrow_mut().retain(|endpoint, _| used(*endpoint));
    }

    /// Makes room for another worker's connection to an endpoint: closes an idle one, or else gives the
    /// one with the fewest streams no more of them.
    pub(crate) fn make_room(&self, endpoint: EndpointId) {
        let by_endpoint = self.by_endpoint.borrow();
        let Some(group) = by_endpoint.get(&endpoint) else { return };
        let fewest = group.connections.borrow().iter().min_by_key(|one| one.streams()).cloned();
        if let Some(connection) = fewest {
            connection.leave();
        }
        group.let_go(|_| false);
    }

    /// Closes all idle ones.
    pub(crate) fn close_idle(&self) {
        for group in self.by_endpoint.borrow().values() {
            group.let_go(|connection| connection.streams() == 0);
        }
    }
}

impl Group {
    /// As [`Group::take`], unless another connection is to be opened first.
    fn take_beyond_floor(&self, endpoint: &Endpoint, plan: &PoolPlan) -> Option<StreamLease> {
        let open = self.connections.borrow().len() + self.opening.get();
        if open < plan.streams.connections.get() as usize {
            None
        } else {
            self.take(endpoint, plan)
        }
    }

    fn take(&self, endpoint: &Endpoint, plan: &PoolPlan) -> Option<StreamLease> {
        let connections = self.connections.borrow();
        let with_room = connections.iter().filter(|one| room(one, endpoint, plan) > 0);
        let fewest = with_room.min_by_key(|one| one.streams())?;
        Some(StreamLease::new(fewest, plan.keep_alive))
    }

    /// Whether there will not be room for one more that waits: neither on those being opened nor on
    /// those that are open, whose places belong to who waits already.
    fn wants_another(&self, endpoint: &Endpoint, plan: &PoolPlan) -> bool {
        self.let_go(|_| false);
        let connections = self.connections.borrow();
        let opening = self.opening.get();
        let free: usize = connections.iter().map(|one| room(one, endpoint, plan)).sum();
        let coming = opening * plan.streams.per_connection.get() as usize;
        self.is_exclusive.get()
            || connections.len() + opening < plan.streams.connections.get() as usize
            || self.line.waiting() + opening >= coming + free
    }

    fn let_go(&self, is_over: impl Fn(&H2Connection) -> bool) {
        let mut connections = self.connections.borrow_mut();
        connections.retain(|connection| !connection.is_leaving() && !is_over(connection));
    }

    fn note(&self, failure: &Failure) {
        let not_made = match failure {
            Failure::Connect(error) => NotMade::Refused(error.kind(), error.to_string()),
            Failure::ConnectTimeout => NotMade::TimedOut,
            Failure::Tls(failure) => NotMade::NotSecured(failure.to_string()),
            // Says nothing about the endpoint.
            _ => return,
        };
        self.failures.update(|failures| failures + 1);
        *self.last_failure.borrow_mut() = Some(not_made);
    }

    fn failure(&self) -> Failure {
        match &*self.last_failure.borrow() {
            Some(NotMade::Refused(kind, text)) => {
                Failure::Connect(io::Error::new(*kind, text.clone()))
            }
            Some(NotMade::NotSecured(text)) => Failure::Tls(TlsFailure::Protocol(text.clone())),
            Some(NotMade::TimedOut) | None => Failure::ConnectTimeout,
        }
    }
}

/// How many more streams a connection takes. What was made before a reload that wants TLS otherwise
/// gets none.
fn room(connection: &H2Connection, endpoint: &Endpoint, plan: &PoolPlan) -> usize {
    match is_secured_as(connection.target(), endpoint, plan) {
        true => connection.room(plan.streams.per_connection.get()),
        false => 0,
    }
}

/// Counts a connection as being opened until it is dropped; whoever waits looks again then.
struct Opening<'a>(&'a Group);

impl<'a> Opening<'a> {
    fn begin(group: &'a Group) -> Opening<'a> {
        group.opening.update(|opening| opening + 1);
        Opening(group)
    }
}

impl Drop for Opening<'_> {
    fn drop(&mut self) {
        self.0.opening.update(|opening| opening - 1);
        self.0.line.notify();
    }
}

/// A stream to the lease's endpoint, or a connection of one's own where the endpoint does not share.
pub(super) async fn lend(
    worker: &Worker,
    lease: &Lease<'_>,
    plan: &PoolPlan,
    deadline: &Deadline,
) -> Result<Lent, Failure> {
    let endpoint = lease.endpoint();
    let group = worker.shared.group(endpoint.id());
    // Unless others came first.
    if group.line.waiting() == 0
        && let Some(stream) = group.take_beyond_floor(endpoint, plan)
    {
        return Ok(Lent::Stream(stream));
    }
    if group.wants_another(endpoint, plan)
        && let Some(slot) = endpoint.open_connection(lease.max_connections())
    {
        return open(worker, lease, plan, (&group, slot), deadline).await;
    }
    wait(worker, lease, plan, &group, deadline).await
}

/// Waits until there is room on a connection, or for another connection.
async fn wait(
    worker: &Worker,
    lease: &Lease<'_>,
    plan: &PoolPlan,
    group: &Group,
    deadline: &Deadline,
) -> Result<Lent, Failure> {
    let endpoint = lease.endpoint();
    let line = group.line.clone();
    let mut waiter = line.join(MOST_WAITING).ok_or(Failure::QueueFull)?;
    // For a place in the endpoint's books, which other workers give back.
    let mut for_slot = None;
    let failures = group.failures.get();
    deadline.set(plan.queue_timeout);
    loop {
        if group.failures.get() != failures {
            return Err(group.failure());
        }
        if let Some(stream) = group.take(endpoint, plan) {
            return Ok(Lent::Stream(stream));
        }
        // One that waits is counted among those who do.
        if group.opening.get() == 0 || group.is_exclusive.get() || for_slot.is_some() {
            if let Some(slot) = endpoint.open_connection(lease.max_connections()) {
                drop(waiter);
                drop(for_slot);
                return open(worker, lease, plan, (group, slot), deadline).await;
            }
            if for_slot.is_none() {
                let joined = endpoint.connection_line().join(MOST_WAITING);
                for_slot = Some(joined.ok_or(Failure::QueueFull)?);
                // It may have come free just before.
                continue;
            }
            worker.idle.close_one(endpoint.id());
            worker.handle.tell_others(Message::CloseOneIdle(endpoint.id()));
        }
        std::future::poll_fn(|context| {
            let slot = for_slot.as_mut().map(|waiter| waiter.poll_notified(context));
            if waiter.poll_notified(context).is_ready() || slot.is_some_and(|slot| slot.is_ready())
            {
                return Poll::Ready(Ok(()));
            }
            match deadline.expired(context) {
                true => Poll::Ready(Err(Failure::QueueTimeout)),
                false => Poll::Pending,
            }
        })
        .await?;
    }
}

/// Opens one more connection and lends of it.
async fn open(
    worker: &Worker,
    lease: &Lease<'_>,
    plan: &PoolPlan,
    (group, slot): (&Group, ConnectionSlot),
    deadline: &Deadline,
) -> Result<Lent, Failure> {
    let opening = Opening::begin(group);
    let made = async {
        let opened = open_on(slot, worker, lease, plan, (None, Offer::All), deadline).await?;
        if !is_http2(&opened.stream, plan) {
            group.is_exclusive.set(true);
            return Ok(Lent::Exclusive(opened));
        }
        group.is_exclusive.set(false);
        let line = (group.line.clone(), worker.index());
        let connection = h2::connect(opened, plan, line, deadline).await?;
        let stream = StreamLease::new(&connection, plan.keep_alive);
        group.connections.borrow_mut().push(connection);
        Ok(Lent::Stream(stream))
    };
    let made = made.await;
    if let Err(failure) = &made {
        group.note(failure);
    }
    drop(opening);
    made
}
