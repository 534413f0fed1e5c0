//! The endpoint's side of one exchange on a stream of a shared HTTP/2 connection.
//!
//! Memory: of the request at most [`SEND_BUFFER`](super::connection) bytes wait in the library beside
//! the chunk that waits here; of the answer at most the stream's window. The window opens again only
//! when what was received has been given on, so a slow client slows its endpoint down and no other.

use std::task::{Context, Poll, ready};

use bytes::Bytes;
use h2::client::ResponseFuture;
use h2::ext::Protocol;
use h2::{Reason, RecvStream, SendStream};
use http::uri::{Authority, Parts, PathAndQuery, Scheme};
use http::{HeaderMap, HeaderValue, Request, Uri};
use subak_message::{
    BodyLength, Fault, Fields, HeadError, Known, Method, RequestHead, ResponseHead, h2 as grammar,
};
use subak_net::{Chunk, Counters};

use super::connection::StreamLease;
use super::fields;
use super::outgoing::Outgoing;
use crate::exchange::{BodyPart, EndpointSide, RequestOutline};
use crate::failure::EndpointFault;
use crate::websocket::{self, PROOF_LENGTH};

/// Interim answers (1xx) to one request; more is an endpoint gone wild.
const MOST_INTERIM: u8 = 16;

/// A stream to an endpoint. Dropping it before its end resets it (CANCEL).
pub(crate) struct H2Endpoint {
    answer: Option<ResponseFuture>,
    send: Option<SendStream<Bytes>>,
    receive: Option<RecvStream>,
    /// Received bytes that have been given on and not yet allowed for again.
    unreleased: usize,
    /// What is still to come of a body whose length was announced.
    left: Option<u64>,
    /// The last of a body as long as announced, until the stream ends there.
    held: Option<Bytes>,
    /// The head of an answer without a body was received; it is given when the stream has ended.
    awaits_end: bool,
    method: Method,
    outgoing: Outgoing,
    body_ended: bool,
    /// What proves to the client that a WebSocket is spoken, where it asked for one.
    proof: Option<[u8; PROOF_LENGTH]>,
    /// Why the head could not be sent.
    unsent: Option<EndpointFault>,
    /// The endpoint said that it has not looked at the request.
    unprocessed: bool,
    interim: u8,
    received: bool,
    written_before: u64,
    /// After the stream's handles, so that its place is free when it is.
    lease: StreamLease,
}

impl H2Endpoint {
    /// A side that has sent nothing yet.
    pub(crate) fn new(lease: StreamLease) -> H2Endpoint {
        H2Endpoint {
            answer: None,
            send: None,
            receive: None,
            unreleased: 0,
            left: None,
            held: None,
            awaits_end: false,
            method: Method::Get,
            outgoing: Outgoing::new(),
            body_ended: false,
            proof: None,
            unsent: None,
            unprocessed: false,
            interim: 0,
            received: false,
            written_before: lease.connection().written(),
            lease,
        }
    }

    /// The endpoint said that it has not looked at the request: it can be sent again, whatever it is.
    pub(crate) fn is_unprocessed(&self) -> bool {
        self.unprocessed
    }

    /// The stream's place on its connection.
    pub(crate) fn lease(&self) -> &StreamLease {
        &self.lease
    }

    fn fault(&mut self, error: h2::Error) -> EndpointFault {
        // Streams above the last that a GOAWAY names have not been looked at, and no others get that
        // error of the endpoint's.
        let refused = error.is_reset() && error.reason() == Some(Reason::REFUSED_STREAM);
        if error.is_remote() && (error.is_go_away() || refused) {
            self.unprocessed = true;
        }
        if error.is_remote() && error.is_reset() {
            self.lease.connection().count_reset();
        }
        if error.is_library() && error.is_reset() {
            self.lease.connection().complain(&error);
        }
        fault(error)
    }

    fn take_head(
        &mut self,
        head: &mut ResponseHead,
        (status, fields): (u16, &HeaderMap),
        ended: bool,
    ) -> Result<BodyLength, EndpointFault> {
        let malformed = |fault| EndpointFault::Head(HeadError { fault, offset: 0 });
        self.received = true;
        head.begin(status);
        if fields.len() > subak_message::h1::MAX_FIELDS {
            return Err(malformed(Fault::TooManyFields));
        }
        for (name, value) in fields {
            grammar::push(&mut head.fields, name.as_str().as_bytes(), value.as_bytes())
                .map_err(malformed)?;
        }
        let body = grammar::finish_answer(head, self.method, ended).map_err(EndpointFault::Head)?;
        match &self.proof {
            Some(proof) if (200..300).contains(&status) => {
                websocket::switch(head, proof).map_err(|_| malformed(Fault::ValueControl))?;
                Ok(BodyLength::None)
            }
            Some(_) if status >= 200 => {
                self.end_request();
                Ok(body)
            }
            _ => Ok(body),
        }
    }

    /// No WebSocket: nothing will be sent that the endpoint has to wait for.
    fn end_request(&mut self) {
        self.outgoing.has_ended();
        if let Some(send) = &mut self.send
            && let Err(error) = send.send_data(Bytes::new(), true)
        {
            tracing::debug!(%error, "a refused WebSocket was over before it was ended");
        }
    }

    fn poll_interim(
        &mut self,
        context: &mut Context<'_>,
        head: &mut ResponseHead,
    ) -> Poll<Option<Result<BodyLength, EndpointFault>>> {
        let Some(answer) = &mut self.answer else { return Poll::Ready(None) };
        match ready!(answer.poll_informational(context)) {
            None => Poll::Ready(None),
            Some(Err(error)) => Poll::Ready(Some(Err(self.fault(error)))),
            Some(Ok(interim)) => {
                self.interim += 1;
                if self.interim > MOST_INTERIM {
                    return Poll::Ready(Some(Err(EndpointFault::Broken(None))));
                }
                let parts = (interim.status().as_u16(), interim.headers());
                Poll::Ready(Some(self.take_head(head, parts, false)))
            }
        }
    }

    /// An answer that says it is empty, once it has ended so: before, a client of HTTP/1 would take it
    /// for complete though bytes may follow.
    fn poll_end_of_nothing(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<BodyLength, EndpointFault>> {
        match ready!(self.poll_body(context))? {
            BodyPart::Data(_) => Poll::Ready(Err(EndpointFault::TooLong)),
            BodyPart::End(_) => Poll::Ready(Ok(BodyLength::Known(0))),
        }
    }

    /// An endpoint that has answered completely may refuse the rest of the request (RFC 9113, 8.1),
    /// which may overtake the end of its answer.
    fn ends_answer(&self, error: &h2::Error) -> bool {
        error.is_reset()
            && error.is_remote()
            && error.reason() == Some(Reason::NO_ERROR)
            && !self.outgoing.is_ended()
            && self.left.is_none_or(|left| left == 0)
    }

    fn poll_trailers(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<BodyPart, EndpointFault>> {
        let Some(receive) = &mut self.receive else {
            return Poll::Ready(Err(EndpointFault::Broken(None)));
        };
        match ready!(receive.poll_trailers(context)) {
            Ok(trailers) => {
                self.end_body()?;
                let trailers = trailers.map(|map| fields::received(&map)).transpose();
                Poll::Ready(trailers.map(BodyPart::End).map_err(EndpointFault::Head))
            }
            Err(error) => Poll::Ready(Err(self.fault(error))),
        }
    }

    fn end_body(&mut self) -> Result<(), EndpointFault> {
        self.body_ended = true;
        match self.left {
            Some(1..) => Err(EndpointFault::Cut),
            _ => Ok(()),
        }
    }
}

impl EndpointSide for H2Endpoint {
    fn send_head(&mut self, head: &RequestHead, request: &RequestOutline<'_>) {
        self.method = head.method;
        if request.upgrade {
            self.proof = head.fields.get(Known::SecWebSocketKey).map(websocket::proof);
        }
        // The stream of a WebSocket stays open.
        let ended = request.body.is_empty() && !request.upgrade;
        let asked = asked(head, request, self.lease.connection().is_tls());
        let sent = asked.map_err(|fault| EndpointFault::Unsendable(HeadError { fault, offset: 0 }));
        match sent.and_then(|asked| self.lease.connection().send(asked, ended).map_err(fault)) {
            Ok((answer, send)) => {
                self.answer = Some(answer);
                self.send = Some(send);
            }
            Err(fault) => {
                self.unprocessed = !matches!(fault, EndpointFault::Unsendable(_));
                self.unsent = Some(fault);
            }
        }
        if ended {
            self.outgoing.has_ended();
        }
    }

    fn send_data(&mut self, data: Chunk) {
        self.outgoing.push(data);
    }

    fn send_end(&mut self, trailers: Option<&Fields>) {
        self.outgoing.finish(trailers);
    }

    fn poll_flush(&mut self, context: &mut Context<'_>) -> Poll<Result<(), EndpointFault>> {
        if let Some(fault) = self.unsent.take() {
            return Poll::Ready(Err(fault));
        }
        let Some(send) = &mut self.send else { return Poll::Ready(Ok(())) };
        let flushed = self.outgoing.poll_flush(send, context, |_, _| {});
        flushed.map_err(|error| self.fault(error))
    }

    fn poll_head(
        &mut self,
        context: &mut Context<'_>,
        head: &mut ResponseHead,
    ) -> Poll<Result<BodyLength, EndpointFault>> {
        if self.awaits_end {
            return self.poll_end_of_nothing(context);
        }
        if let Some(interim) = ready!(self.poll_interim(context, head)) {
            return Poll::Ready(interim);
        }
        let Some(answer) = &mut self.answer else {
            return Poll::Ready(Err(EndpointFault::Broken(None)));
        };
        let (parts, receive) = match ready!(std::pin::Pin::new(answer).poll(context)) {
            Ok(answer) => answer.into_parts(),
            Err(error) => return Poll::Ready(Err(self.fault(error))),
        };
        self.answer = None;
        let ended = receive.is_end_stream();
        let body = self.take_head(head, (parts.status.as_u16(), &parts.headers), ended);
        if let Err(EndpointFault::Head(error)) = &body {
            self.lease.connection().complain(error);
        }
        self.body_ended = ended;
        self.receive = Some(receive);
        if let Ok(BodyLength::Known(length)) = body {
            self.left = Some(length);
        }
        if !ended && body.as_ref().is_ok_and(|body| *body == BodyLength::None) {
            self.left = Some(0);
        }
        if !ended && body.as_ref().is_ok_and(|body| *body == BodyLength::Known(0)) {
            self.awaits_end = true;
            return self.poll_end_of_nothing(context);
        }
        Poll::Ready(body)
    }

    fn poll_body(&mut self, context: &mut Context<'_>) -> Poll<Result<BodyPart, EndpointFault>> {
        if self.body_ended {
            return Poll::Ready(Ok(BodyPart::End(None)));
        }
        let Some(receive) = &mut self.receive else {
            return Poll::Ready(Err(EndpointFault::Broken(None)));
        };
        // What was given before has been taken by now: the endpoint may send as much again.
        let released = std::mem::take(&mut self.unreleased);
        if released > 0
            && let Err(error) = receive.flow_control().release_capacity(released)
        {
            return Poll::Ready(Err(self.fault(error)));
        }
        let is_over = loop {
            match ready!(receive.poll_data(context)) {
                Some(Ok(data)) if data.is_empty() => {}
                Some(Ok(data)) => {
                    let ended = receive.is_end_stream();
                    self.unreleased = data.len();
                    if let Some(left) = &mut self.left {
                        match left.checked_sub(data.len() as u64) {
                            Some(rest) => *left = rest,
                            None => return Poll::Ready(Err(EndpointFault::TooLong)),
                        }
                    }
                    if ended {
                        self.end_body()?;
                    } else if self.left == Some(0) {
                        // With its last byte a client of HTTP/1 takes an answer for complete.
                        self.held = Some(data);
                        continue;
                    }
                    return Poll::Ready(Ok(BodyPart::Data(Chunk::shared(data))));
                }
                Some(Err(error)) if self.ends_answer(&error) => break true,
                Some(Err(error)) => return Poll::Ready(Err(self.fault(error))),
                None => break false,
            }
        };
        if let Some(held) = self.held.take() {
            return Poll::Ready(Ok(BodyPart::Data(Chunk::shared(held))));
        }
        match is_over {
            true => {
                self.end_body()?;
                Poll::Ready(Ok(BodyPart::End(None)))
            }
            false => self.poll_trailers(context),
        }
    }

    fn body_ended(&self) -> bool {
        self.body_ended
    }

    fn taken(&self) -> u64 {
        self.outgoing.taken()
    }

    fn counters(&self) -> Counters {
        self.lease.connection().counters()
    }

    /// Whether anything has left on the connection since the request was queued. The library writes in
    /// order, so nothing of the request has left while nothing has.
    fn has_sent(&self) -> bool {
        !self.unprocessed && self.lease.connection().written() > self.written_before
    }

    fn has_received(&self) -> bool {
        self.received
    }

    fn become_tunnel(&mut self) {
        self.left = None;
    }
}

/// What the library reports, by whose doing it was.
fn fault(error: h2::Error) -> EndpointFault {
    match error.reason() {
        _ if error.is_io() => EndpointFault::Broken(error.into_io()),
        Some(reason) if error.is_reset() && error.is_remote() => EndpointFault::Reset(reason),
        Some(reason) if error.is_go_away() && error.is_remote() => EndpointFault::Leaving(reason),
        Some(reason) => EndpointFault::Protocol(reason),
        None => EndpointFault::Broken(None),
    }
}

/// The request as the library wants it. Its URI is put together from what our own grammar has checked;
/// what it refuses all the same (`<` in a path) cannot be sent.
fn asked(
    head: &RequestHead,
    request: &RequestOutline<'_>,
    is_tls: bool,
) -> Result<Request<()>, Fault> {
    let host = head.fields.get(Known::Host).unwrap_or(request.default_host);
    let mut parts = Parts::default();
    parts.scheme = Some(if is_tls { Scheme::HTTPS } else { Scheme::HTTP });
    parts.authority = Some(Authority::try_from(host).map_err(|_| Fault::HostInvalid)?);
    let path = PathAndQuery::try_from(request.target).map_err(|_| Fault::TargetCharacter)?;
    parts.path_and_query = Some(path);
    let mut asked = Request::new(());
    *asked.method_mut() = match request.upgrade {
        true => http::Method::CONNECT,
        false => http::Method::from_bytes(head.method_text()).map_err(|_| Fault::Method)?,
    };
    *asked.uri_mut() = Uri::from_parts(parts).map_err(|_| Fault::TargetForm)?;
    *asked.version_mut() = http::Version::HTTP_2;
    let mut map = fields::map(&head.fields, |known| match known {
        Known::Host => true,
        Known::Expect => !request.expect_continue,
        Known::SecWebSocketKey => request.upgrade,
        _ => false,
    });
    if request.upgrade {
        asked.extensions_mut().insert(Protocol::from_static(websocket::PROTOCOL));
    }
    if grammar::takes_trailers(&head.fields) {
        map.append(http::header::TE, HeaderValue::from_static("trailers"));
    }
    if let BodyLength::Known(length) = request.body {
        map.append(http::header::CONTENT_LENGTH, fields::length(length));
    }
    *asked.headers_mut() = map;
    Ok(asked)
}
