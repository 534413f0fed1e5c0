//! The client's side of one exchange on an HTTP/1 connection.

use std::task::{Context, Poll, ready};

use subak_message::h1::{ConnectionOut, RequestFraming, ResponseOut, write_response_head};
use subak_message::{BodyLength, Fields, Method, RequestHead, ResponseHead, Version};
use subak_net::{Chunk, Stream};

use super::body::{ReadFault, Reader, Writer};
use crate::exchange::{BodyPart, ClientSide, Look, is_full};
use crate::failure::ClientFault;
use crate::worker::Listener;

/// A client's connection, lent to one exchange.
#[derive(Debug)]
pub(crate) struct H1Client<'s> {
    stream: &'s mut Stream,
    reader: Reader,
    writer: Writer,
    /// Bytes the request's body may still have.
    allowance: u64,
    version: Version,
    persistent: bool,
    /// A client that ends its side still waits for its response (`half_close`).
    half_close: bool,
    /// While it drains, every response is the last of its connection.
    listener: Option<&'s Listener>,
    /// The answer ends with the connection.
    ends_with_close: bool,
    head_sent: bool,
    /// Bytes of the answer's heads.
    head_bytes: usize,
    end_sent: bool,
    tunnel: bool,
    /// The end of a tunnel is passed on by ending our side too.
    shut: bool,
}

impl<'s> H1Client<'s> {
    /// The side for a request whose head has just been read. `persistent` is false when this is to
    /// be the connection's last request, whatever the client wants.
    pub(crate) fn new(
        stream: &'s mut Stream,
        head: &RequestHead,
        framing: &RequestFraming,
        body_limit: Option<u64>,
        persistent: bool,
    ) -> H1Client<'s> {
        H1Client {
            stream,
            reader: Reader::new(framing.body),
            writer: Writer::Nothing,
            allowance: body_limit.unwrap_or(u64::MAX),
            version: head.version,
            persistent: framing.keep_alive && persistent && head.method != Method::Connect,
            half_close: false,
            listener: None,
            ends_with_close: false,
            head_sent: false,
            head_bytes: 0,
            end_sent: false,
            tunnel: false,
            shut: false,
        }
    }

    /// Makes this exchange the connection's last if `listener` drains by the time its response begins.
    pub(crate) fn until_drained(self, listener: &'s Listener) -> H1Client<'s> {
        H1Client { listener: Some(listener), ..self }
    }

    /// The side for an answer to something that is no request: the connection's last.
    pub(crate) fn refusing(stream: &'s mut Stream) -> H1Client<'s> {
        let framing = RequestFraming {
            body: BodyLength::None,
            keep_alive: false,
            expect_continue: false,
            upgrade: false,
            nominates: false,
        };
        H1Client::new(stream, &RequestHead::default(), &framing, None, false)
    }

    /// Serves a client that ends its side of the connection behind its request, where `allowed`.
    pub(crate) fn half_close(mut self, allowed: bool) -> H1Client<'s> {
        self.half_close = allowed;
        self
    }

    /// The answer stays unfinished: where only the end of the connection tells its end, that must not
    /// look like one.
    pub(crate) fn cut_off(&mut self) {
        if self.ends_with_close {
            self.stream.reset_on_close();
        }
    }

    fn write_head(&mut self, head: &ResponseHead, out: &ResponseOut) {
        let buffer = self.stream.append();
        let before = buffer.len();
        write_response_head(buffer, head, out);
        self.head_bytes += buffer.len() - before;
    }

    /// Bytes of the answer's heads, interim ones included.
    pub(crate) fn head_bytes(&self) -> u64 {
        self.head_bytes as u64
    }

    /// Whether the connection can carry another request.
    pub(crate) fn can_continue(&self) -> bool {
        self.persistent && self.end_sent && self.reader.has_ended() && !self.tunnel
    }

    /// Whether the client may still be sending, so that closing at once would lose the answer.
    pub(crate) fn must_linger(&self) -> bool {
        !self.reader.has_ended() || !self.stream.buffered().is_empty()
    }
}

impl ClientSide for H1Client<'_> {
    fn poll_body(&mut self, context: &mut Context<'_>) -> Poll<Result<BodyPart, ClientFault>> {
        if let Reader::Known(left) = self.reader
            && left > self.allowance
        {
            return Poll::Ready(Err(ClientFault::BodyTooLarge));
        }
        let part =
            ready!(self.reader.poll_next(self.stream, context)).map_err(|fault| match fault {
                ReadFault::Broken(_) => ClientFault::Gone,
                ReadFault::Cut => ClientFault::Cut,
                ReadFault::Chunked(error) => ClientFault::Chunked(error),
            })?;
        if let BodyPart::Data(data) = &part
            && !self.tunnel
        {
            match self.allowance.checked_sub(data.len() as u64) {
                Some(left) => self.allowance = left,
                None => return Poll::Ready(Err(ClientFault::BodyTooLarge)),
            }
        }
        Poll::Ready(Ok(part))
    }

    fn limit_body(&mut self, most: Option<u64>) {
        self.allowance = most.unwrap_or(u64::MAX);
    }

    fn is_answered(&self) -> bool {
        self.head_sent
    }

    fn send_interim(&mut self, head: &ResponseHead) {
        // RFC 9110, 15.2: a 1.0 client does not know them.
        if self.version == Version::Http11 {
            let out = ResponseOut { body: BodyLength::None, connection: ConnectionOut::Implied };
            self.write_head(head, &out);
        }
    }

    fn send_head(&mut self, head: &ResponseHead, body: BodyLength) {
        let body = match body {
            BodyLength::Chunked | BodyLength::UntilClose if self.version == Version::Http10 => {
                BodyLength::UntilClose
            }
            BodyLength::UntilClose => BodyLength::Chunked,
            known => known,
        };
        self.ends_with_close = body == BodyLength::UntilClose;
        // What is left of a body would be read as the next request.
        let is_draining = self.listener.is_some_and(Listener::is_draining);
        if self.ends_with_close || is_draining || !self.reader.has_ended() {
            self.persistent = false;
        }
        let connection = match () {
            () if head.status == 101 => ConnectionOut::Upgrade,
            () if !self.persistent => ConnectionOut::Close,
            () if self.version == Version::Http10 => ConnectionOut::KeepAlive,
            () => ConnectionOut::Implied,
        };
        self.write_head(head, &ResponseOut { body, connection });
        self.writer = Writer::new(body);
        self.head_sent = true;
    }

    fn send_data(&mut self, data: Chunk) {
        self.writer.data(self.stream, data);
    }

    fn send_end(&mut self, trailers: Option<&Fields>) {
        self.writer.end(self.stream, trailers);
        self.end_sent = true;
    }

    fn poll_flush(&mut self, context: &mut Context<'_>) -> Poll<Result<(), ClientFault>> {
        ready!(self.stream.poll_flush(context)).map_err(|_| ClientFault::Gone)?;
        if self.tunnel && self.end_sent && !self.shut {
            ready!(self.stream.poll_shutdown(context)).map_err(|_| ClientFault::Gone)?;
            self.shut = true;
        }
        Poll::Ready(Ok(()))
    }

    fn is_full(&self) -> bool {
        is_full(self.stream.queued())
    }

    fn taken(&self) -> u64 {
        self.stream.sent()
    }

    /// The end of its side counts unless the listener says otherwise: a client that closes its connection
    /// and one that only sends no more look the same. In a tunnel an end is passed on.
    #[inline]
    fn poll_gone(&mut self, context: &mut Context<'_>, look: Look) -> Poll<ClientFault> {
        let gone = match look {
            Look::Glance => return Poll::Pending,
            Look::End if !self.half_close && !self.tunnel => self.stream.poll_end(context),
            Look::End | Look::Reset => self.stream.poll_reset(context),
        };
        gone.map(|()| ClientFault::Gone)
    }

    fn become_tunnel(&mut self) {
        self.tunnel = true;
        self.end_sent = false;
        self.reader = Reader::UntilClose;
        self.writer = Writer::Plain;
    }
}
