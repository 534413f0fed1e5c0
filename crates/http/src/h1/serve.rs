//! A client's HTTP/1 connection: one request after another.

use std::task::Poll;
use std::time::Duration;

use subak_message::h1::{Progress, RequestFraming, parse_request};
use subak_message::{Fault, HeadError, Scheme};
use subak_net::{ChunkSize, Deadline, Stream, now, place};

use super::client::H1Client;
use crate::access_log::{Moved, Through, Went};
use crate::failure::Failure;
use crate::life::{Arrived, Place, fail, finish, live, over};
use crate::serve::ClientConnection;
use crate::service::Service;
use crate::worker::{Heads, Listener};

/// How every HTTP/2 connection begins (RFC 9113, 3.4); no HTTP/1 request can.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// How long, and how much, is read and thrown away so that a client gets to see the answer to a
/// request it has not finished.
const LINGER: Duration = Duration::from_secs(2);
const LINGER_BYTES: u64 = 1024 * 1024;

/// How long a connection to a listener that drains may still bring a request. Its response says that it
/// is the connection's last.
const LAST_REQUEST: Duration = Duration::from_secs(1);

/// A client whose certificate cannot be told to endpoints gets nowhere.
const UNSAYABLE: HeadError = HeadError { fault: Fault::HeadTooLarge, offset: 0 };

/// `Connection` names a field by which the configuration decides.
const NOMINATED: HeadError = HeadError { fault: Fault::ConnectionNames, offset: 0 };

/// The client has to show its certificate first.
const OUTDATED: HeadError = HeadError { fault: Fault::Outdated, offset: 0 };

/// How the connection goes on after an exchange.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Next {
    /// With another request.
    Request,
    /// Not at all; the client may still be sending.
    Linger,
    /// Not at all; all is said.
    End,
    /// Not at all, and not in order.
    Close,
}

/// Serves a connection until its end. Gives it back, with all it has received, when the client turns
/// out to speak HTTP/2.
pub(crate) async fn serve(mut connection: Box<ClientConnection>) -> Option<Box<ClientConnection>> {
    let mut requests = 0u32;
    loop {
        let ClientConnection { stream, listener, deadline, seat, verification, .. } =
            &mut *connection;
        deadline.set(listener.service().timeouts.keep_alive);
        if requests > 0 {
            seat.idle();
        }
        if !first_bytes(stream, (listener, *verification), deadline).await {
            let patience = if seat.is_evicted() { Duration::ZERO } else { LINGER };
            end(stream, deadline, patience).await;
            return None;
        }
        seat.busy();
        // From here to the end of the answer, one service: the one in force now.
        let service = listener.service();
        deadline.set(service.timeouts.head);
        let is_clear = service.tls.is_some() && !stream.is_tls();
        if requests == 0 && service.http2 && !is_clear && begins_like_preface(stream) {
            match whole_preface(stream, deadline).await {
                Some(true) => return Some(connection),
                Some(false) => {}
                None => return None,
            }
        }
        requests = requests.saturating_add(1);
        let most = service.limits.requests_per_connection.map_or(u32::MAX, |most| most.get());
        let mut heads = connection.worker.take_heads();
        let may_persist = requests < most;
        let next = place(|| exchange(&mut connection, &mut heads, &service, may_persist)).await;
        connection.worker.put_heads(heads);
        match next {
            Next::Request => {}
            Next::Linger => {
                linger(&mut connection).await;
                return None;
            }
            Next::End => {
                end(&mut connection.stream, &connection.deadline, LINGER).await;
                return None;
            }
            Next::Close => return None,
        }
    }
}

/// Waits for the first bytes of a request. False when there will be none, or the time for them is over.
/// A client that was not told that the connection ends may be sending a request: a listener that drains
/// waits [`LAST_REQUEST`] for it.
async fn first_bytes(
    stream: &mut Stream,
    (listener, verification): (&Listener, u64),
    deadline: &Deadline,
) -> bool {
    let mut is_last_call = false;
    std::future::poll_fn(|context| {
        if listener.is_draining() && !is_last_call {
            is_last_call = true;
            deadline.set(LAST_REQUEST);
        }
        if !stream.buffered().is_empty() {
            return Poll::Ready(true);
        }
        match stream.poll_fill(context, ChunkSize::Small) {
            Poll::Ready(filled) => Poll::Ready(filled.is_ok_and(|count| count > 0)),
            // Closing with a request unread would reset the connection. What has arrived wakes this task.
            Poll::Pending if deadline.expired(context) && !stream.has_arrived() => {
                Poll::Ready(false)
            }
            Poll::Pending if listener.service().is_outdated(verification) => Poll::Ready(false),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}

fn begins_like_preface(stream: &Stream) -> bool {
    let length = stream.buffered().len().min(PREFACE.len());
    stream.buffered()[..length] == PREFACE[..length]
}

/// Waits until it is clear whether these are the first bytes of HTTP/2; none when that never is.
async fn whole_preface(stream: &mut Stream, deadline: &Deadline) -> Option<bool> {
    std::future::poll_fn(|context| {
        loop {
            if !begins_like_preface(stream) {
                return Poll::Ready(Some(false));
            }
            if stream.buffered().len() >= PREFACE.len() {
                return Poll::Ready(Some(true));
            }
            match stream.poll_fill(context, ChunkSize::Small) {
                Poll::Ready(Ok(1..)) => {}
                Poll::Ready(_) => return Poll::Ready(None),
                Poll::Pending if deadline.expired(context) => return Poll::Ready(None),
                Poll::Pending => return Poll::Pending,
            }
        }
    })
    .await
}

/// One request and its answer.
async fn exchange(
    connection: &mut ClientConnection,
    heads: &mut Heads,
    service: &Service,
    may_persist: bool,
) -> Next {
    let scheme = connection.scheme();
    heads.request.scheme = scheme;
    let handshake = std::mem::take(&mut connection.handshake);
    let ClientConnection { stream, ends, listener, worker, deadline, facts, .. } = connection;
    let is_outdated = service.is_outdated(connection.verification);
    let is_tls = stream.is_tls();
    let before = (stream.received() - stream.buffered().len() as u64, stream.sent());
    let went = Went::default();
    let tls = service.logs.as_ref().filter(|logs| logs.wanted().tls);
    let tls = tls.and_then(|_| stream.tls()).map(|tls| tls.version);
    let through = Through { worker, ends, is_tls: scheme == Scheme::Https, tls, handshake };
    let head = match read_head(stream, service, heads, deadline).await {
        Ok(_) if !service.http1 => Err(NoHead::Failed(Failure::NotSpoken)),
        // Neither HTTP/2 nor HTTP/1: there is no language to answer in.
        Err(NoHead::Failed(Failure::BadHead(_))) if !service.http1 => Err(NoHead::Gone),
        head => head,
    };
    let head = match is_tls == service.tls.is_some() {
        true => head,
        false => match head {
            Err(NoHead::Gone) => Err(NoHead::Gone),
            _ => Err(NoHead::Failed(Failure::NoTls)),
        },
    };
    let head = if is_outdated { head.and(Err(bad(OUTDATED))) } else { head };
    let head = head.and_then(|framing| {
        if framing.nominates && service.guard.is_nominated(&heads.request.fields) {
            return Err(bad(NOMINATED));
        }
        let client = stream.tls().and_then(|tls| tls.client.as_deref());
        let told = service.identities.tell(&mut heads.request.fields, client);
        told.map(|()| framing).map_err(|_| bad(UNSAYABLE))
    });
    let framing = match head {
        Ok(framing) => framing,
        Err(NoHead::Gone) => return Next::Close,
        Err(NoHead::Failed(failure)) => {
            heads.request.clear();
            let mut client = H1Client::refusing(stream);
            let answered = fail(&mut client, failure, heads, (service, None), worker);
            let flushed = answered.is_ok() && finish(&mut client, service, deadline).await.is_ok();
            let head_bytes = client.head_bytes();
            over((service, &went), heads, moved(stream, before, head_bytes), through);
            return if flushed { Next::Linger } else { Next::Close };
        }
    };
    let mut client =
        H1Client::new(stream, &heads.request, &framing, service.limits.body_bytes, may_persist)
            .until_drained(listener)
            .half_close(service.half_close);
    let arrived = Arrived {
        body: framing.body,
        upgrade: framing.upgrade,
        expect_continue: framing.expect_continue,
        ends: *ends,
    };
    let place = Place { service, worker, deadline, went: &went, facts: facts.as_deref() };
    let mut served = live(&mut client, &arrived, heads, &place).await.is_ok();
    if served && let Err(cause) = finish(&mut client, service, deadline).await {
        heads.story.failure.get_or_insert(cause);
        served = false;
    }
    let next = match () {
        () if !served => Next::Close,
        () if client.can_continue() => Next::Request,
        () if client.must_linger() => Next::Linger,
        () => Next::End,
    };
    if !served {
        client.cut_off();
    }
    let head_bytes = client.head_bytes();
    over((service, &went), heads, moved(stream, before, head_bytes), through);
    next
}

/// What has been received and sent since.
fn moved(stream: &Stream, (received, sent): (u64, u64), head_bytes_out: u64) -> Moved {
    Moved {
        bytes_in: (stream.received() - stream.buffered().len() as u64).saturating_sub(received),
        bytes_out: stream.sent().saturating_sub(sent),
        head_bytes_out,
    }
}

/// Why there is no head.
enum NoHead {
    /// The client left in the middle of it.
    Gone,
    /// It is malformed, too large or too slow.
    Failed(Failure),
}

/// Reads a request's head. Cheap for heads that come in one piece; a head that comes byte by byte is
/// parsed at its first piece, so that what is no HTTP at all (a TLS hello) is refused at once, and again
/// only when a line has ended.
async fn read_head(
    stream: &mut Stream,
    service: &Service,
    heads: &mut Heads,
    deadline: &Deadline,
) -> Result<RequestFraming, NoHead> {
    let mut parsed = 0;
    // When the first part of it was there; none: all of it was there at once.
    let mut began = None;
    let read = std::future::poll_fn(|context| {
        loop {
            let buffered = stream.buffered();
            let news = &buffered[parsed..];
            let is_first = parsed == 0 && !news.is_empty();
            if is_first || news.contains(&b'\n') || buffered.len() >= service.head_limits.max_bytes
            {
                let head = parse_request(buffered, &service.head_limits, &mut heads.request);
                match head {
                    Ok(Progress::Complete { consumed, framing }) => {
                        stream.consume(consumed);
                        return Poll::Ready(Ok(framing));
                    }
                    Ok(Progress::Partial) => {}
                    Err(error) => return Poll::Ready(Err(bad(error))),
                }
            }
            parsed = buffered.len();
            match stream.poll_fill(context, ChunkSize::Large) {
                Poll::Ready(Ok(1..)) => {}
                Poll::Ready(_) => return Poll::Ready(Err(NoHead::Gone)),
                Poll::Pending if deadline.expired(context) => {
                    let slow = Failure::ClientSlow { sending: true };
                    return Poll::Ready(Err(NoHead::Failed(slow)));
                }
                Poll::Pending => {
                    began.get_or_insert_with(now);
                    return Poll::Pending;
                }
            }
        }
    })
    .await;
    if let Some(began) = began {
        heads.story.began = Some(began);
        heads.story.head = now().since(began);
    }
    read
}

fn bad(error: HeadError) -> NoHead {
    NoHead::Failed(Failure::BadHead(error))
}

/// Ends a connection in order. TLS has a word for that, without which the client cannot tell an end
/// from a cut; without TLS the kernel says it when the connection is closed.
async fn end(stream: &mut Stream, deadline: &Deadline, patience: Duration) {
    if !stream.is_tls() {
        return;
    }
    deadline.set(patience);
    std::future::poll_fn(|context| match stream.poll_shutdown(context) {
        Poll::Pending if !deadline.expired(context) => Poll::Pending,
        _ => Poll::Ready(()),
    })
    .await;
}

/// Ends our side and reads on for a while: closing with unread bytes makes the kernel send a reset,
/// which can overtake the answer.
pub(crate) async fn linger(connection: &mut ClientConnection) {
    let ClientConnection { stream, deadline, .. } = connection;
    deadline.set(LINGER);
    let limit = stream.received() + LINGER_BYTES;
    let mut ended = false;
    std::future::poll_fn(|context| {
        if !ended {
            match stream.poll_shutdown(context) {
                Poll::Ready(Ok(())) => ended = true,
                Poll::Ready(Err(_)) => return Poll::Ready(()),
                Poll::Pending => {}
            }
        }
        loop {
            stream.consume(stream.buffered().len());
            match stream.poll_fill(context, ChunkSize::Small) {
                Poll::Ready(Ok(1..)) if stream.received() < limit => {}
                Poll::Ready(_) => return Poll::Ready(()),
                Poll::Pending if deadline.expired(context) => return Poll::Ready(()),
                Poll::Pending => return Poll::Pending,
            }
        }
    })
    .await;
}
