//! A client's HTTP/2 connection: each request on a task of its own.

use std::cell::Cell;
use std::num::NonZeroU32;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use h2::server::{Builder, Connection, SendResponse};
use h2::{Reason, RecvStream};
use http::Request;
use subak_certificate::ClientIdentity;
use subak_message::{BodyLength, Fault, HeadError, Known, Scheme, grpc};
use subak_net::tls::TlsFacts;
use subak_net::{Deadline, now, place, spawn};
use subak_telemetry::{Cause, Flood, ListenerMetrics};

use super::client::H2Client;
use super::head::{absent_body, read_head};
use super::watched::{Watch, Watched};
use crate::access_log::{Through, Went};
use crate::failure::Failure;
use crate::key::Ends;
use crate::life::{Arrived, Place, fail, finish, live, over};
use crate::seats::Seated;
use crate::serve::ClientConnection;
use crate::service::Service;
use crate::worker::{Listener, Worker};

/// Exchanges one connection may have under way for each stream it may have open, streams that were
/// reset and have not ended yet included; a client that needs more is up to no good.
const UNDER_WAY_PER_STREAM: usize = 2;
/// Bytes of answers kept for one stream while the client's window is open and its socket is not.
const SEND_BUFFER: usize = 64 * 1024;
/// How long a client may take to hear the goodbye.
const GOODBYE: Duration = Duration::from_secs(2);

/// What streams of one connection share.
struct Shared {
    listener: Rc<Listener>,
    worker: Rc<Worker>,
    /// Of the listener: the same over reloads.
    metrics: Arc<ListenerMetrics>,
    ends: Ends,
    scheme: Scheme,
    /// The TLS version, where a log wants it.
    tls: Option<&'static str>,
    /// How long the handshake took; the first request takes the time away.
    handshake: Cell<Duration>,
    /// Who the client is, where it has shown a certificate.
    client: Option<Arc<ClientIdentity>>,
    /// By which rules it was verified.
    verification: u64,
    /// All of it, where endpoints want to hear of it.
    facts: Option<Rc<TlsFacts>>,
    /// Until the connection has been idle too long.
    deadline: Deadline,
    seat: Seated,
    /// What the client does besides.
    watch: Rc<Watch>,
    /// While the client is waited for in the middle of something.
    patience: Deadline,
    /// Whether the client has been told that no more requests are wanted.
    goodbye: Cell<bool>,
    /// Requests that may still come.
    requests_left: Cell<u32>,
    /// Requests under way. What `h2` has still to send of finished ones does not count, for a client
    /// that takes nothing could keep it for ever.
    exchanges: Cell<usize>,
}

/// Counts one request as under way until it is dropped.
struct UnderWay(Rc<Shared>);

impl UnderWay {
    fn begin(shared: &Rc<Shared>) -> UnderWay {
        shared.metrics.stream_opened(shared.worker.index());
        shared.exchanges.update(|count| count + 1);
        shared.seat.busy();
        UnderWay(shared.clone())
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        let shared = &self.0;
        shared.metrics.stream_closed(shared.worker.index());
        shared.exchanges.update(|count| count - 1);
        if shared.exchanges.get() == 0 {
            shared.seat.idle();
            shared.deadline.set(match shared.listener.is_draining() {
                true => GOODBYE,
                false => shared.listener.service().timeouts.keep_alive,
            });
        }
    }
}

/// Serves a connection until its end.
pub(crate) async fn serve(connection: Box<ClientConnection>) {
    let scheme = connection.scheme();
    let ClientConnection { verification, facts, handshake, .. } = *connection;
    let ClientConnection { stream, ends, listener, worker, deadline, seat, .. } = *connection;
    let service = listener.service();
    let tls = stream.tls().map(|tls| tls.version);
    let client = stream.tls().and_then(|tls| tls.client.clone());
    let limits = service.http2_limits;
    let watch = Watch::new(limits);
    let mut builder = Builder::new();
    builder
        .max_concurrent_streams(limits.streams)
        .initial_window_size(limits.stream_window)
        .initial_connection_window_size(limits.connection_window)
        .max_send_buffer_size(SEND_BUFFER)
        // Up to here a head that is too large is answered as any other, and logged.
        .max_header_list_size(2 * service.head_limits.max_bytes as u32)
        .enable_connect_protocol();
    deadline.set(service.timeouts.head);
    let watched = Watched::new(stream, watch.clone());
    // Boxes of their own, here and below: what a beginning and an end need must not stay with each
    // idle connection (5 KiB).
    let shaken = Box::pin(shake_hands(builder, watched, &watch, &deadline)).await;
    let Some(mut connection) = shaken else { return };
    deadline.set(service.timeouts.keep_alive);
    let most_requests = service.limits.requests_per_connection;
    let most_requests = most_requests.map_or(u32::MAX, NonZeroU32::get);
    let metrics = service.metrics.clone();
    drop(service);
    let shared = Rc::new(Shared {
        listener,
        worker,
        metrics,
        ends,
        scheme,
        tls,
        handshake: Cell::new(handshake),
        client,
        verification,
        facts,
        deadline,
        seat,
        watch,
        patience: Deadline::new(),
        goodbye: Cell::new(false),
        requests_left: Cell::new(most_requests),
        exchanges: Cell::new(0),
    });
    let most_under_way = UNDER_WAY_PER_STREAM * limits.streams as usize;
    match requests(&mut connection, &shared, most_under_way).await {
        End::TooMuch(flood) => Box::pin(turn_away(connection, flood, &shared)).await,
        End::Over(Some(flood)) => count(flood, &shared),
        End::Over(None) => {}
    }
}

/// The settings of both sides, within the time that is set.
async fn shake_hands(
    builder: Builder,
    stream: Watched,
    watch: &Watch,
    deadline: &Deadline,
) -> Option<Box<Connection<Watched, Bytes>>> {
    let mut handshake = std::pin::pin!(builder.handshake(stream));
    std::future::poll_fn(|context| {
        watch.look_again();
        match handshake.as_mut().poll(context) {
            Poll::Ready(shaken) => Poll::Ready(shaken.ok().map(Box::new)),
            Poll::Pending if deadline.expired(context) => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}

/// Why no more requests come.
enum End {
    /// The client did too much of something and is to be told so.
    TooMuch(Flood),
    /// The connection is over; the library may have ended it for that reason.
    Over(Option<Flood>),
}

/// Begins one request after another, each on a task of its own, until no more come. Says goodbye when
/// the listener drains, when there have been as many requests as allowed, or nothing has been asked for
/// too long.
async fn requests(
    connection: &mut Connection<Watched, Bytes>,
    shared: &Rc<Shared>,
    most_under_way: usize,
) -> End {
    std::future::poll_fn(|context| {
        shared.watch.look_again();
        loop {
            match connection.poll_accept(context) {
                Poll::Ready(Some(Ok(_))) if shared.exchanges.get() >= most_under_way => {
                    return Poll::Ready(End::TooMuch(Flood::Resets));
                }
                Poll::Ready(Some(Ok((request, respond)))) => {
                    shared.requests_left.update(|left| left.saturating_sub(1));
                    // The runtime moves what it is given ten times, and this is some KiB: a tenth of
                    // what a request costs here outside the kernel.
                    spawn(place(|| exchange(request, respond, UnderWay::begin(shared))));
                    continue;
                }
                Poll::Ready(Some(Err(error))) => {
                    return Poll::Ready(End::Over(flood_of(&error, &shared.watch)));
                }
                Poll::Ready(None) => return Poll::Ready(End::Over(None)),
                Poll::Pending => {}
            }
            if let Some(flood) = shared.watch.found() {
                return Poll::Ready(End::TooMuch(flood));
            }
            if shared.watch.is_waiting()
                && let Poll::Ready(flood) = be_patient(shared, context)
            {
                return Poll::Ready(End::TooMuch(flood));
            }
            let mut expired = shared.deadline.expired(context);
            if expired && shared.exchanges.get() > 0 {
                // Not idle after all. Goes on to wait with a limit, so that a drain finds it.
                shared.deadline.set(shared.listener.service().timeouts.keep_alive);
                expired = shared.deadline.expired(context);
            }
            let idle = expired && shared.exchanges.get() == 0;
            let goodbye = shared.goodbye.get();
            if goodbye && idle {
                return Poll::Ready(End::Over(None));
            }
            let is_last = shared.listener.is_draining()
                || shared.requests_left.get() == 0
                || shared.listener.service().is_outdated(shared.verification);
            if goodbye || !(idle || is_last) {
                return Poll::Pending;
            }
            shared.goodbye.set(true);
            let is_evicted = shared.seat.is_evicted();
            shared.deadline.set(if is_evicted { Duration::ZERO } else { GOODBYE });
            connection.graceful_shutdown();
        }
    })
    .await
}

/// Ready with what the client, which is waited for in the middle of something, is too slow with.
fn be_patient(shared: &Shared, context: &Context<'_>) -> Poll<Flood> {
    let service = shared.listener.service();
    match shared.watch.left(&service.timeouts, service.least_rate, now()) {
        Err(flood) => return Poll::Ready(flood),
        Ok(left) => shared.patience.set(left),
    }
    // It has just been set: asking tells the wheel whom to wake.
    let is_over = shared.patience.expired(context);
    debug_assert!(!is_over);
    Poll::Pending
}

/// What the library has ended a connection for, where that is a flood.
fn flood_of(error: &h2::Error, watch: &Watch) -> Option<Flood> {
    let is_flood = error.is_library() && error.reason() == Some(Reason::ENHANCE_YOUR_CALM);
    watch.told().filter(|_| is_flood)
}

/// Counts and logs why a connection ends before its time.
fn count(flood: Flood, shared: &Shared) {
    let service = shared.listener.service();
    service.metrics.flooded(shared.worker.index(), flood);
    tracing::debug!(
        listener = %service.name(),
        client = ?shared.ends.peer,
        kind = flood.name(),
        meaning = flood.meaning(),
        "an HTTP/2 connection was ended"
    );
}

/// Ends a connection at once, and says why if the client takes it.
async fn turn_away(mut connection: Box<Connection<Watched, Bytes>>, flood: Flood, shared: &Shared) {
    count(flood, shared);
    connection.abrupt_shutdown(Reason::ENHANCE_YOUR_CALM);
    let deadline = Deadline::new();
    deadline.set(GOODBYE);
    std::future::poll_fn(|context| {
        shared.watch.look_again();
        match connection.poll_closed(context) {
            Poll::Pending if !deadline.expired(context) => Poll::Pending,
            _ => Poll::Ready(()),
        }
    })
    .await;
}

/// One request and its answer.
async fn exchange(request: Request<RecvStream>, respond: SendResponse<Bytes>, under_way: UnderWay) {
    let Shared { listener, worker, ends, scheme, tls, facts, .. } = &*under_way.0;
    let service = listener.service();
    let deadline = Deadline::new();
    let mut heads = worker.take_heads();
    heads.request.scheme = *scheme;
    let (parts, receive) = request.into_parts();
    let head = read_head(&mut heads.request, &parts, &service, || worker.handle.random());
    let identity = under_way.0.client.as_deref();
    let head = head.and_then(|head| {
        if service.is_outdated(under_way.0.verification) {
            return Err(HeadError { fault: Fault::Outdated, offset: 0 });
        }
        let told = service.identities.tell(&mut heads.request.fields, identity);
        // A client whose certificate cannot be told to endpoints gets nowhere.
        told.map(|()| head).map_err(|_| HeadError { fault: Fault::HeadTooLarge, offset: 0 })
    });
    let ended = receive.is_end_stream();
    let went = Went::default();
    let watch = under_way.0.watch.clone();
    let mut client = H2Client::new(receive, respond, service.limits.body_bytes, watch.clone());
    let lived = match head {
        Ok((body, upgrade)) => {
            let body = if ended { absent_body(&heads.request, body) } else { body };
            client.announced(body);
            let expects = heads.request.fields.has(Known::Expect);
            let expect_continue = expects && !body.is_empty();
            heads.story.is_call = grpc::is_call(&heads.request);
            if heads.story.is_call
                && let Some(limit) = grpc::timeout(&heads.request.fields)
            {
                client.waits_at_most(limit);
            }
            let arrived = Arrived { body, upgrade, expect_continue, ends: *ends };
            let facts = facts.as_deref();
            let place =
                Place { service: &service, worker, deadline: &deadline, went: &went, facts };
            let wanted = may_start(&mut client, (ended, body), &service, &deadline).await;
            match wanted {
                Ok(()) => live(&mut client, &arrived, &mut heads, &place).await,
                Err(failure) => fail(&mut client, failure, &mut heads, (&service, None), worker),
            }
        }
        Err(error) => {
            let failure = Failure::BadHead(error);
            fail(&mut client, failure, &mut heads, (&service, None), worker)
        }
    };
    let finished = match lived {
        Ok(()) => finish(&mut client, &service, &deadline).await,
        Err(failure) => Err(failure.cause()),
    };
    let mut must_linger = false;
    match finished {
        Ok(()) => {
            watch.answered();
            must_linger = client.must_linger();
        }
        Err(cause) => {
            heads.story.failure.get_or_insert(cause);
            if cause == Cause::ClientGone && was_made_to_reset(&mut client).await {
                watch.count(Flood::MadeResets);
            }
            client.cut_off(cause);
        }
    }
    let handshake = under_way.0.handshake.take();
    let through = Through { worker, ends, is_tls: *scheme == Scheme::Https, tls: *tls, handshake };
    over((&service, &went), &heads, client.moved(), through);
    worker.put_heads(heads);
    if must_linger {
        Box::pin(client.linger(&deadline)).await;
    }
}

/// Waits until a request may start, unless it is taken back first.
async fn may_start(
    client: &mut H2Client,
    (ended, body): (bool, BodyLength),
    service: &Service,
    deadline: &Deadline,
) -> Result<(), Failure> {
    if !ended && body == BodyLength::Known(0) {
        Box::pin(client.end_of_nothing(deadline, service.timeouts.body_idle)).await?;
    } else {
        // What a rapid reset costs is what is begun for it.
        client.still_wanted().await?;
    }
    if client.starts_at_once() {
        return Ok(());
    }
    Box::pin(client.wait_to_start(deadline, service.timeouts.write_idle)).await
}

async fn was_made_to_reset(client: &mut H2Client) -> bool {
    std::future::poll_fn(|context| Poll::Ready(client.was_made_to_reset(context))).await
}
