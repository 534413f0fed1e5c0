//! The client's side of one exchange on an HTTP/2 stream.

use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use h2::server::SendResponse;
use h2::{Reason, RecvStream, SendStream};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, header};
use subak_message::{BodyLength, Fields, Known, ResponseHead};
use subak_net::{Chunk, Deadline};

use super::watched::Watch;
use crate::access_log::Moved;
use crate::exchange::{BodyPart, ClientSide, MOST_QUEUED};
use crate::failure::ClientFault;

/// A client's stream, lent to one exchange.
pub(crate) struct H2Client {
    receive: RecvStream,
    /// Received bytes that have been given on and not yet allowed for again.
    unreleased: usize,
    allowance: u64,
    respond: SendResponse<Bytes>,
    send: Option<SendStream<Bytes>>,
    queued: Vec<Bytes>,
    end: End,
    taken: u64,
    received: u64,
    failed: bool,
    watch: Rc<Watch>,
    /// Until the client waits no longer for the beginning of an answer, where it says so itself.
    patience: Option<Deadline>,
}

/// How far the end of the answer has come.
enum End {
    NotYet,
    Queued(Option<HeaderMap>),
    Sent,
}

impl H2Client {
    /// The side for a request whose head has just been received.
    pub(crate) fn new(
        receive: RecvStream,
        respond: SendResponse<Bytes>,
        body_limit: Option<u64>,
        watch: Rc<Watch>,
    ) -> H2Client {
        H2Client {
            receive,
            unreleased: 0,
            allowance: body_limit.unwrap_or(u64::MAX),
            respond,
            send: None,
            queued: Vec::new(),
            end: End::NotYet,
            taken: 0,
            received: 0,
            failed: false,
            watch,
            patience: None,
        }
    }

    /// The client waits so long for the beginning of an answer.
    pub(crate) fn waits_at_most(&mut self, limit: Duration) {
        let patience = Deadline::new();
        patience.set(limit);
        self.patience = Some(patience);
    }

    /// The bytes of both bodies; heads are compressed together with those of other streams.
    pub(crate) fn moved(&self) -> Moved {
        Moved { bytes_in: self.received, bytes_out: self.taken, head_bytes_out: 0 }
    }

    /// Whether Subak has reset the stream because of what the client sent on it.
    pub(crate) fn was_made_to_reset(&mut self, context: &mut Context<'_>) -> bool {
        match self.receive.poll_data(context) {
            Poll::Ready(Some(Err(error))) => error.is_reset() && error.is_library(),
            _ => false,
        }
    }

    /// Cuts the stream off, so that nobody takes the answer for complete.
    pub(crate) fn cut_off(&mut self) {
        match &mut self.send {
            Some(send) => send.send_reset(Reason::INTERNAL_ERROR),
            None => self.respond.send_reset(Reason::INTERNAL_ERROR),
        }
    }
}

impl ClientSide for H2Client {
    fn poll_body(&mut self, context: &mut Context<'_>) -> Poll<Result<BodyPart, ClientFault>> {
        // What was given before has left by now: the client may send as much again.
        let released = std::mem::take(&mut self.unreleased);
        if released > 0 && self.receive.flow_control().release_capacity(released).is_err() {
            return Poll::Ready(Err(ClientFault::Gone));
        }
        loop {
            match ready!(self.receive.poll_data(context)) {
                Some(Ok(data)) if data.is_empty() => {}
                Some(Ok(data)) => {
                    self.unreleased = data.len();
                    self.received += data.len() as u64;
                    match self.allowance.checked_sub(data.len() as u64) {
                        Some(left) => self.allowance = left,
                        None => return Poll::Ready(Err(ClientFault::BodyTooLarge)),
                    }
                    return Poll::Ready(Ok(BodyPart::Data(Chunk::shared(data))));
                }
                Some(Err(_)) => return Poll::Ready(Err(ClientFault::Gone)),
                None => break,
            }
        }
        let trailers =
            ready!(self.receive.poll_trailers(context)).map_err(|_| ClientFault::Gone)?;
        Poll::Ready(Ok(BodyPart::End(trailers.map(|map| Box::new(fields(&map))))))
    }

    fn limit_body(&mut self, most: Option<u64>) {
        self.allowance = most.unwrap_or(u64::MAX);
    }

    fn is_answered(&self) -> bool {
        self.send.is_some()
    }

    fn send_interim(&mut self, head: &ResponseHead) {
        let mut response = Response::new(());
        // 101 does not exist in HTTP/2, and h2 refuses what is no interim status.
        if let Ok(status) = StatusCode::from_u16(head.status) {
            *response.status_mut() = status;
            *response.headers_mut() = map(&head.fields);
            self.failed |= self.respond.send_informational(response).is_err();
        }
    }

    fn send_head(&mut self, head: &ResponseHead, body: BodyLength) {
        let is_tunnel = head.status == 101;
        let mut response = Response::new(());
        // What HTTP/1 calls a switch of protocols is a CONNECT that succeeds here (RFC 8441, 5).
        *response.status_mut() = match is_tunnel {
            true => StatusCode::OK,
            false => StatusCode::from_u16(head.status).unwrap_or(StatusCode::BAD_GATEWAY),
        };
        *response.headers_mut() = map(&head.fields);
        if is_tunnel {
            response.headers_mut().remove(http::header::SEC_WEBSOCKET_ACCEPT);
        }
        let announced = head.fields.get(Known::ContentLength).map(HeaderValue::from_bytes);
        let announced = match body {
            BodyLength::Known(length) => Some(HeaderValue::from(length)),
            BodyLength::None if head.status != 204 => announced.and_then(Result::ok),
            _ => None,
        };
        if let Some(length) = announced {
            response.headers_mut().insert(http::header::CONTENT_LENGTH, length);
        }
        // Without a body the head is the end too: clients take an empty DATA frame behind a 304 with a
        // length for a body that is too short.
        let ended = body.is_empty() && !is_tunnel;
        match self.respond.send_response(response, ended) {
            Ok(send) => self.send = Some(send),
            Err(_) => self.failed = true,
        }
        if ended {
            self.end = End::Sent;
        }
    }

    fn send_data(&mut self, data: Chunk) {
        if !data.is_empty() {
            self.queued.push(data.into_bytes());
        }
    }

    fn send_end(&mut self, trailers: Option<&Fields>) {
        if let End::NotYet = self.end {
            self.end = End::Queued(trailers.map(map));
        }
    }

    fn poll_flush(&mut self, context: &mut Context<'_>) -> Poll<Result<(), ClientFault>> {
        if self.failed {
            return Poll::Ready(Err(ClientFault::Gone));
        }
        let Some(send) = &mut self.send else { return Poll::Ready(Ok(())) };
        while !self.queued.is_empty() {
            let first = &mut self.queued[0];
            send.reserve_capacity(first.len());
            let capacity = if send.capacity() > 0 {
                send.capacity()
            } else {
                match ready!(send.poll_capacity(context)) {
                    Some(Ok(capacity)) => capacity,
                    _ => return Poll::Ready(Err(ClientFault::Gone)),
                }
            };
            let part = first.split_to(capacity.min(first.len()));
            self.watch.sent(part.len(), !first.is_empty());
            self.taken += part.len() as u64;
            if first.is_empty() {
                self.queued.remove(0);
            }
            // The last piece carries the end: an empty frame less.
            let ends = self.queued.is_empty() && matches!(self.end, End::Queued(None));
            send.send_data(part, ends).map_err(|_| ClientFault::Gone)?;
            if ends {
                self.end = End::Sent;
            }
        }
        if let End::Queued(trailers) = &mut self.end {
            let ended = match trailers.take() {
                Some(trailers) => send.send_trailers(trailers),
                None => send.send_data(Bytes::new(), true),
            };
            self.end = End::Sent;
            ended.map_err(|_| ClientFault::Gone)?;
        }
        Poll::Ready(Ok(()))
    }

    fn is_full(&self) -> bool {
        self.queued.iter().map(Bytes::len).sum::<usize>() >= MOST_QUEUED
    }

    fn taken(&self) -> u64 {
        self.taken
    }

    /// A reset stream counts no longer against those a client may have open: what it asked for must
    /// end with it, or a client could have any number of requests under way.
    fn poll_gone(&mut self, context: &mut Context<'_>, _: bool) -> Poll<ClientFault> {
        let reset = match &mut self.send {
            Some(send) => send.poll_reset(context),
            None => self.respond.poll_reset(context),
        };
        match &self.patience {
            _ if reset.is_ready() => Poll::Ready(ClientFault::Gone),
            Some(patience) if self.send.is_none() && patience.expired(context) => {
                Poll::Ready(ClientFault::Late)
            }
            _ => Poll::Pending,
        }
    }

    fn become_tunnel(&mut self) {
        self.allowance = u64::MAX;
    }
}

/// Fields as `h2` wants them: lower case, without what belongs to an HTTP/1 connection, by its name or
/// because `Connection` says so.
fn map(fields: &Fields) -> HeaderMap {
    let stripped;
    let fields = match fields.has(Known::Connection) {
        true => {
            let mut rest = fields.clone();
            rest.strip_hop_by_hop();
            stripped = rest;
            &stripped
        }
        false => fields,
    };
    let mut map = HeaderMap::with_capacity(fields.len());
    for field in fields.iter() {
        if field.known.is_hop_by_hop() || field.known == Known::ContentLength {
            continue;
        }
        let name = name_of(field.known).or_else(|| HeaderName::from_bytes(field.name).ok());
        if let (Some(name), Ok(value)) = (name, HeaderValue::from_bytes(field.value)) {
            map.append(name, value);
        }
    }
    map
}

/// The names most answers have, which need not be told apart a second time.
fn name_of(known: Known) -> Option<HeaderName> {
    Some(match known {
        Known::Server => header::SERVER,
        Known::Date => header::DATE,
        Known::ContentType => header::CONTENT_TYPE,
        Known::ContentEncoding => header::CONTENT_ENCODING,
        Known::CacheControl => header::CACHE_CONTROL,
        Known::ETag => header::ETAG,
        Known::LastModified => header::LAST_MODIFIED,
        Known::Expires => header::EXPIRES,
        Known::Vary => header::VARY,
        Known::SetCookie => header::SET_COOKIE,
        Known::AcceptRanges => header::ACCEPT_RANGES,
        Known::Location => header::LOCATION,
        Known::StrictTransportSecurity => header::STRICT_TRANSPORT_SECURITY,
        _ => return None,
    })
}

/// Trailers as the rest of Subak has them.
pub(super) fn fields(map: &HeaderMap) -> Fields {
    let mut fields = Fields::new();
    for (name, value) in map {
        if let Err(error) = fields.push_received(name.as_str().as_bytes(), value.as_bytes()) {
            tracing::debug!(%error, "a trailer was left out");
        }
    }
    fields
}
