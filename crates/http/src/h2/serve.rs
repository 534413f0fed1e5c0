//! A client's HTTP/2 connection: each request on a task of its own.

use std::cell::Cell;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use h2::ext::Protocol;
use h2::server::{Builder, Connection, SendResponse};
use h2::{Reason, RecvStream};
use http::Request;
use subak_message::{
    BodyLength, Fault, HeadError, HeadLimits, Known, Method, RequestHead, Scheme, h2 as grammar,
};
use subak_net::{Deadline, Stream, spawn};

use super::client::H2Client;
use crate::access_log::{Through, Went};
use crate::failure::Failure;
use crate::key::Ends;
use crate::life::{Arrived, Place, fail, finish, live, over};
use crate::serve::ClientConnection;
use crate::service::Service;
use crate::websocket;
use crate::worker::{Listener, Worker};

/// Streams a client may have open at once.
const MOST_STREAMS: u32 = 100;
/// Exchanges one connection may have under way, streams that were reset and have not ended yet
/// included; a client that needs more is up to no good.
const MOST_UNDER_WAY: usize = 2 * MOST_STREAMS as usize;
/// Bytes a client may send ahead on one stream and on the connection.
const STREAM_WINDOW: u32 = 64 * 1024;
const CONNECTION_WINDOW: u32 = 1024 * 1024;
/// Bytes of answers kept for one stream while the client's window is open and its socket is not.
const SEND_BUFFER: usize = 64 * 1024;
/// How long a client may take to hear the goodbye.
const GOODBYE: Duration = Duration::from_secs(2);

/// What streams of one connection share.
struct Shared {
    listener: Rc<Listener>,
    worker: Rc<Worker>,
    ends: Ends,
    scheme: Scheme,
    /// The TLS version, where a log wants it.
    tls: Option<&'static str>,
    /// Until the connection has been idle too long.
    deadline: Deadline,
    /// Requests under way. What `h2` has still to send of finished ones does not count, for a client
    /// that takes nothing could keep it for ever.
    exchanges: Cell<usize>,
}

/// Counts one request as under way until it is dropped.
struct UnderWay(Rc<Shared>);

impl UnderWay {
    fn begin(shared: &Rc<Shared>) -> UnderWay {
        shared.exchanges.update(|count| count + 1);
        UnderWay(shared.clone())
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        let shared = &self.0;
        shared.exchanges.update(|count| count - 1);
        if shared.exchanges.get() == 0 {
            shared.deadline.set(match shared.listener.is_draining() {
                true => GOODBYE,
                false => shared.listener.service().timeouts.keep_alive,
            });
        }
    }
}

/// Serves a connection until its end.
pub(crate) async fn serve(connection: ClientConnection) {
    let ClientConnection { stream, ends, listener, worker, deadline } = connection;
    let scheme = if stream.is_tls() { Scheme::Https } else { Scheme::Http };
    let service = listener.service();
    let tls = stream.tls().map(|tls| tls.version);
    let mut builder = Builder::new();
    builder
        .max_concurrent_streams(MOST_STREAMS)
        .initial_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_send_buffer_size(SEND_BUFFER)
        .max_header_list_size(service.head_limits.max_bytes as u32)
        .enable_connect_protocol();
    deadline.set(service.timeouts.head);
    let mut handshake = std::pin::pin!(builder.handshake::<_, Bytes>(stream));
    let shaken = std::future::poll_fn(|context| match handshake.as_mut().poll(context) {
        Poll::Ready(shaken) => Poll::Ready(shaken.ok()),
        Poll::Pending if deadline.expired(context) => Poll::Ready(None),
        Poll::Pending => Poll::Pending,
    });
    let Some(mut connection) = shaken.await else { return };
    deadline.set(service.timeouts.keep_alive);
    drop(service);
    let exchanges = Cell::new(0);
    let shared = Rc::new(Shared { listener, worker, ends, scheme, tls, deadline, exchanges });
    while let Some((request, respond)) = next_request(&mut connection, &shared).await {
        if shared.exchanges.get() >= MOST_UNDER_WAY {
            return turn_away(connection).await;
        }
        spawn(exchange(request, respond, UnderWay::begin(&shared)));
    }
}

/// The next request; none when the connection is over. Says goodbye when the listener drains, or
/// nothing has been asked for too long.
async fn next_request(
    connection: &mut Connection<Stream, Bytes>,
    shared: &Shared,
) -> Option<(Request<RecvStream>, SendResponse<Bytes>)> {
    let mut goodbye = false;
    std::future::poll_fn(|context| {
        loop {
            match connection.poll_accept(context) {
                Poll::Ready(Some(Ok(request))) => return Poll::Ready(Some(request)),
                Poll::Ready(_) => return Poll::Ready(None),
                Poll::Pending => {}
            }
            let mut expired = shared.deadline.expired(context);
            if expired && shared.exchanges.get() > 0 {
                // Not idle after all. Goes on to wait with a limit, so that a drain finds it.
                shared.deadline.set(shared.listener.service().timeouts.keep_alive);
                expired = shared.deadline.expired(context);
            }
            let idle = expired && shared.exchanges.get() == 0;
            if goodbye && idle {
                return Poll::Ready(None);
            }
            if goodbye || !(idle || shared.listener.is_draining()) {
                return Poll::Pending;
            }
            goodbye = true;
            shared.deadline.set(GOODBYE);
            connection.graceful_shutdown();
        }
    })
    .await
}

/// Ends a connection at once, and says why if the client takes it.
async fn turn_away(mut connection: Connection<Stream, Bytes>) {
    connection.abrupt_shutdown(Reason::ENHANCE_YOUR_CALM);
    let deadline = Deadline::new();
    deadline.set(GOODBYE);
    std::future::poll_fn(|context| match connection.poll_closed(context) {
        Poll::Pending if !deadline.expired(context) => Poll::Pending,
        _ => Poll::Ready(()),
    })
    .await;
}

/// One request and its answer.
async fn exchange(request: Request<RecvStream>, respond: SendResponse<Bytes>, under_way: UnderWay) {
    let Shared { listener, worker, ends, scheme, tls, .. } = &*under_way.0;
    let service = listener.service();
    let deadline = Deadline::new();
    let mut heads = worker.take_heads();
    heads.request.scheme = *scheme;
    let (parts, receive) = request.into_parts();
    let head = read_head(&mut heads.request, &parts, &service, || worker.handle.random());
    let ended = receive.is_end_stream();
    let went = Went::default();
    let mut client = H2Client::new(receive, respond, service.limits.body_bytes);
    let lived = match head {
        Ok((body, upgrade)) => {
            let body = if ended { absent_body(&heads.request, body) } else { body };
            let expects = heads.request.fields.has(Known::Expect);
            let expect_continue = expects && !body.is_empty();
            let arrived = Arrived { body, upgrade, expect_continue, ends: *ends };
            let place = Place { service: &service, worker, deadline: &deadline, went: &went };
            live(&mut client, arrived, &mut heads, place).await
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
    if let Err(cause) = finished {
        heads.story.failure.get_or_insert(cause);
        client.cut_off();
    }
    let through = Through { worker, ends, is_tls: *scheme == Scheme::Https, tls: *tls };
    over((&service, &went), &heads, client.moved(), through);
    worker.put_heads(heads);
}

/// How long a body is that ended with its head. Methods that usually have one say that it is empty:
/// some endpoints insist on a length.
fn absent_body(head: &RequestHead, announced: BodyLength) -> BodyLength {
    let usual = matches!(head.method, Method::Post | Method::Put | Method::Patch);
    match usual || announced == BodyLength::Known(0) {
        true => BodyLength::Known(0),
        false => BodyLength::None,
    }
}

/// Reads a request's head: the announced length of its body, and whether it asks for a WebSocket, which
/// is then asked for as HTTP/1.1 does it.
fn read_head(
    head: &mut RequestHead,
    parts: &http::request::Parts,
    service: &Service,
    random: impl Fn() -> u64,
) -> Result<(BodyLength, bool), HeadError> {
    let fail = |fault| Err(HeadError { fault, offset: 0 });
    let protocol = parts.extensions.get::<Protocol>();
    let method = match protocol {
        Some(protocol) if protocol.as_str() == websocket::PROTOCOL => "GET",
        Some(_) => return fail(Fault::StreamProtocol),
        None => parts.method.as_str(),
    };
    let authority = parts.uri.authority().map(|authority| authority.as_str().as_bytes());
    let path = match parts.uri.path_and_query() {
        Some(path) => path.as_str().as_bytes(),
        // Only CONNECT has none.
        None => authority.unwrap_or_default(),
    };
    let HeadLimits { max_fields, path: rules, .. } = service.head_limits;
    grammar::begin(head, method.as_bytes(), authority, path, rules)?;
    if parts.headers.len() > max_fields {
        return fail(Fault::TooManyFields);
    }
    for (name, value) in &parts.headers {
        let pushed = head.fields.push_received(name.as_str().as_bytes(), value.as_bytes());
        pushed.map_err(|_| HeadError { fault: Fault::ValueControl, offset: 0 })?;
    }
    let body = grammar::finish(head)?;
    if protocol.is_none() {
        return Ok((body, false));
    }
    if let BodyLength::Known(_) = body {
        return fail(Fault::BodyForbidden);
    }
    head.fields.remove(Known::Expect);
    let begun = websocket::begin(head, [random(), random()]);
    begun.map_err(|_| HeadError { fault: Fault::ValueControl, offset: 0 })?;
    Ok((BodyLength::None, true))
}
