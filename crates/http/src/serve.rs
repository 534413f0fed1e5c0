//! From an accepted connection to the protocol it speaks.

use std::io;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use subak_message::Scheme;
use subak_net::tls::{HandshakeError, TlsFacts};
use subak_net::{Accepted, Deadline, Stream, now};
use subak_telemetry::Turned;

use crate::announced::announced;
use crate::h1;
use crate::h2;
use crate::key::Ends;
use crate::seats::{Seated, Seats};
use crate::service::{Admitted, Service};
use crate::worker::{InForce, Listener, Worker};

/// One client connection, whatever it speaks.
pub(crate) struct ClientConnection {
    pub(crate) stream: Stream,
    pub(crate) ends: Ends,
    pub(crate) listener: Rc<Listener>,
    pub(crate) worker: Rc<Worker>,
    pub(crate) deadline: Deadline,
    pub(crate) seat: Seated,
    /// Whether the client speaks TLS with the proxy before us.
    pub(crate) is_announced_tls: bool,
    /// How long the TLS handshake took; the first request behind it takes the time away.
    pub(crate) handshake: Duration,
    /// What was agreed on by TLS, where endpoints want to hear of it.
    pub(crate) facts: Option<Rc<TlsFacts>>,
    /// By which rules its client was verified in the handshake; 0: by none.
    pub(crate) verification: u64,
}

impl ClientConnection {
    /// What the client takes the scheme of its requests to be.
    pub(crate) fn scheme(&self) -> Scheme {
        match self.is_announced_tls || self.stream.is_tls() {
            true => Scheme::Https,
            false => Scheme::Http,
        }
    }
}

/// What serves a client's connection to its end; none when it is closed at once.
#[must_use = "nothing is served until it is polled"]
pub fn serve(
    accepted: Accepted,
    listener: Rc<Listener>,
    worker: Rc<Worker>,
) -> Option<impl Future<Output = ()>> {
    let Accepted { stream, peer, listener: _, guard } = accepted;
    let service = listener.service();
    let index = worker.index();
    if let Some(gate) = &service.gate
        && let Err(turned) = gate.admits(peer.ip())
    {
        turn_away(&service, index, turned);
        return None;
    }
    let Some(admitted) = service.admit().or_else(|| instead_of_idle(&service, &worker)) else {
        service.metrics.refused(index);
        // A client that is closed at once can try elsewhere; one that waits cannot.
        tracing::debug!(
            listener = service.name(),
            "closed a connection: limits.connections reached"
        );
        return None;
    };
    let deadline = Deadline::new();
    let seat = Seats::take(&worker, &listener, &deadline);
    let local = service.wants_local_addresses.then(|| stream.local_address()).flatten();
    let ends = Ends { peer, local };
    let (is_announced_tls, handshake, facts) = (false, Duration::ZERO, None);
    // In a box, and made out here, or the task would keep a place for it for each of those it passes
    // through.
    let connection = Box::new(ClientConnection {
        stream,
        ends,
        listener,
        worker,
        deadline,
        seat,
        is_announced_tls,
        handshake,
        facts,
        verification: 0,
    });
    Some(async move {
        attend(connection, service).await;
        drop((admitted, guard));
    })
}

/// A connection that there is room for: whom it comes from, what it is secured by, what it speaks.
async fn attend(mut connection: Box<ClientConnection>, service: Rc<InForce>) {
    let (peer, index) = (connection.ends.peer, connection.worker.index());
    if let Some(accept) = &service.proxy_protocol {
        let ClientConnection { stream, ends, deadline, .. } = &mut *connection;
        match Box::pin(announced(stream, ends, accept, deadline)).await {
            Ok(is_tls) => connection.is_announced_tls = is_tls,
            Err(reason) => {
                service.metrics.turned(index, reason.turned());
                tracing::debug!(listener = service.name(), ?peer, %reason, "closed a connection");
                return;
            }
        }
    }
    let client = connection.ends.peer;
    if client != peer
        && let Some(gate) = &service.gate
        && let Err(turned) = gate.admits(client.ip())
    {
        return turn_away(&service, index, turned);
    }
    let guest = match service.gate.as_ref().map_or(Ok(None), |gate| gate.hold(client.ip())) {
        Ok(guest) => guest,
        Err(turned) => return turn_away(&service, index, turned),
    };
    service.metrics.accepted(index);
    let is_tls = service.tls.is_some();
    let secured = match is_tls {
        true => Box::pin(secure(connection, &service)).await,
        false => Some(connection),
    };
    drop(service);
    let Some(connection) = secured else { return };
    let by_alpn = connection.stream.tls().is_some_and(|tls| tls.alpn == Some("h2"));
    let http2 = match by_alpn {
        true => Some(connection),
        false => h1::serve(connection).await,
    };
    if let Some(connection) = http2 {
        Box::pin(h2::serve(connection)).await;
    }
    drop(guest);
}

/// The place of a connection that has been idle longest, where the listener has as many as it may have.
#[cold]
fn instead_of_idle(service: &InForce, worker: &Worker) -> Option<Admitted> {
    service.metrics.crowded(worker.index());
    let is_evicted = worker.seats.evict(Some(service.house()), worker.index());
    is_evicted.then(|| service.admit_instead())
}

/// Closes a connection because of its client. Nothing is said: nothing was asked.
#[cold]
fn turn_away(service: &Service, worker: usize, why: Turned) {
    service.metrics.turned(worker, why);
    tracing::debug!(listener = service.name(), why = why.name(), "closed a connection at once");
}

/// The TLS handshake, within the time a head may take. Who speaks HTTP in clear stays in clear, to be
/// told so.
async fn secure(
    mut connection: Box<ClientConnection>,
    service: &Service,
) -> Option<Box<ClientConnection>> {
    let tls = service.tls.as_ref()?;
    connection.deadline.set(service.timeouts.head);
    let began = now();
    connection.verification = tls.verification();
    let mut shaking = std::pin::pin!(tls.accept(connection.stream));
    let accepted = std::future::poll_fn(|context| match shaking.as_mut().poll(context) {
        Poll::Ready(accepted) => Poll::Ready(accepted),
        Poll::Pending if connection.deadline.expired(context) => {
            Poll::Ready(Err(HandshakeError::Failed(io::ErrorKind::TimedOut.into())))
        }
        Poll::Pending => Poll::Pending,
    })
    .await;
    connection.stream = match accepted {
        Ok(stream) => stream,
        Err(HandshakeError::Challenge) => return None,
        Err(reason) => {
            service.metrics.handshake_failed(connection.worker.index());
            let peer = &connection.ends.peer;
            tracing::debug!(listener = service.name(), ?peer, %reason, "no TLS");
            match reason {
                HandshakeError::Cleartext(stream) => *stream,
                reason => {
                    connection.stream = reason.into_told()?;
                    h1::linger(&mut connection).await;
                    return None;
                }
            }
        }
    };
    connection.facts = match service.announces {
        true => connection.stream.tls().cloned().map(Rc::new),
        false => None,
    };
    connection.handshake = now().since(began);
    Some(connection)
}
