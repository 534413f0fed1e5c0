//! The endpoint's side of one exchange on an HTTP/1 connection.

use std::task::{Context, Poll, ready};

use subak_message::h1::{
    Asked, ConnectionOut, Progress, RequestOut, parse_response, write_request_head,
};
use subak_message::{BodyLength, Fields, HeadLimits, Method, RequestHead, ResponseHead};
use subak_net::{Chunk, ChunkSize, Counters, Stream, body_chunk};

use super::body::{ReadFault, Reader, Writer};
use crate::exchange::{BodyPart, EndpointSide, RequestOutline};
use crate::failure::EndpointFault;

/// Interim answers (1xx) to one request; more is an endpoint gone wild.
const MOST_INTERIM: u8 = 16;

/// A connection to an endpoint, lent to one exchange.
#[derive(Debug)]
pub(crate) struct H1Endpoint<'s> {
    stream: &'s mut Stream,
    reader: Reader,
    writer: Writer,
    asked: Asked,
    /// Bytes of an incomplete head that have been parsed already.
    parsed: usize,
    sent_before: u64,
    received_before: u64,
    request_ended: bool,
    persistent: bool,
    answered: bool,
    interim: u8,
    tunnel: bool,
    shut: bool,
}

impl<'s> H1Endpoint<'s> {
    /// The side on a connection that is idle or new.
    pub(crate) fn new(stream: &'s mut Stream) -> H1Endpoint<'s> {
        H1Endpoint {
            sent_before: stream.sent(),
            received_before: stream.received(),
            stream,
            reader: Reader::Ended,
            writer: Writer::Nothing,
            asked: Asked { method: Method::Get, upgrade: false },
            parsed: 0,
            request_ended: false,
            persistent: false,
            answered: false,
            interim: 0,
            tunnel: false,
            shut: false,
        }
    }

    /// Whether the connection can carry another exchange: both messages are complete, nothing
    /// follows, and nobody said close.
    pub(crate) fn can_continue(&self) -> bool {
        self.persistent
            && self.answered
            && !self.tunnel
            && self.request_ended
            && self.reader.has_ended()
            && self.stream.is_flushed()
            && self.stream.buffered().is_empty()
    }
}

impl EndpointSide for H1Endpoint<'_> {
    fn send_head(&mut self, head: &RequestHead, request: &RequestOutline<'_>) {
        let connection = match request.upgrade {
            true => ConnectionOut::Upgrade,
            false => ConnectionOut::Implied,
        };
        let out = RequestOut {
            target: request.target,
            default_host: request.default_host,
            body: request.body,
            connection,
            expect_continue: request.expect_continue,
        };
        write_request_head(self.stream.append(), head, &out);
        self.writer = Writer::new(request.body);
        self.asked = Asked { method: head.method, upgrade: request.upgrade };
        self.request_ended = request.body.is_empty();
    }

    fn send_data(&mut self, data: Chunk) {
        self.writer.data(self.stream, data);
    }

    fn send_end(&mut self, trailers: Option<&Fields>) {
        self.writer.end(self.stream, trailers);
        self.request_ended = true;
    }

    fn poll_flush(&mut self, context: &mut Context<'_>) -> Poll<Result<(), EndpointFault>> {
        let broken = |error| EndpointFault::Broken(Some(error));
        ready!(self.stream.poll_flush(context)).map_err(broken)?;
        if self.tunnel && self.request_ended && !self.shut {
            ready!(self.stream.poll_shutdown(context)).map_err(broken)?;
            self.shut = true;
        }
        Poll::Ready(Ok(()))
    }

    fn poll_head(
        &mut self,
        context: &mut Context<'_>,
        head: &mut ResponseHead,
    ) -> Poll<Result<BodyLength, EndpointFault>> {
        const LIMITS: HeadLimits = HeadLimits {
            max_bytes: ChunkSize::Large.bytes(),
            max_fields: subak_message::h1::MAX_FIELDS,
            path: subak_message::PathRules::DEFAULT,
        };
        loop {
            let buffered = self.stream.buffered();
            let news = &buffered[self.parsed..];
            let is_first = self.parsed == 0 && !news.is_empty();
            // A head that comes byte by byte is parsed when a line of it has ended.
            if is_first || news.contains(&b'\n') || buffered.len() >= LIMITS.max_bytes {
                let parsed = parse_response(buffered, &LIMITS, &self.asked, head)
                    .map_err(EndpointFault::Head)?;
                if let Progress::Complete { consumed, framing } = parsed {
                    self.stream.consume(consumed);
                    self.parsed = 0;
                    if head.is_final() {
                        self.answered = true;
                        self.persistent = framing.keep_alive;
                        self.reader = Reader::new(framing.body);
                    } else {
                        self.interim += 1;
                        if self.interim > MOST_INTERIM {
                            return Poll::Ready(Err(EndpointFault::Broken(None)));
                        }
                    }
                    return Poll::Ready(Ok(framing.body));
                }
            }
            self.parsed = self.stream.buffered().len();
            // With the head comes the beginning of the body; a head that needs more room gets it.
            let size = match self.stream.buffered().is_empty() {
                true => body_chunk(),
                false => ChunkSize::Large,
            };
            let polled = self.stream.poll_fill(context, size);
            match ready!(polled) {
                Ok(0) => return Poll::Ready(Err(EndpointFault::Broken(None))),
                Ok(_) => {}
                Err(error) => return Poll::Ready(Err(EndpointFault::Broken(Some(error)))),
            }
        }
    }

    fn poll_body(&mut self, context: &mut Context<'_>) -> Poll<Result<BodyPart, EndpointFault>> {
        self.reader.poll_next(self.stream, context).map_err(|fault| match fault {
            ReadFault::Broken(error) => EndpointFault::Broken(Some(error)),
            ReadFault::Cut => EndpointFault::Cut,
            ReadFault::Chunked(error) => EndpointFault::Chunked(error),
        })
    }

    fn body_ended(&self) -> bool {
        self.reader.has_ended()
    }

    fn taken(&self) -> u64 {
        self.stream.sent()
    }

    fn counters(&self) -> Counters {
        self.stream.counters()
    }

    fn has_sent(&self) -> bool {
        self.stream.sent() > self.sent_before
    }

    fn has_received(&self) -> bool {
        self.stream.received() > self.received_before
    }

    fn become_tunnel(&mut self) {
        self.tunnel = true;
        self.request_ended = false;
        self.reader = Reader::UntilClose;
        self.writer = Writer::Plain;
    }
}
