//! The two sides of one exchange, whatever protocol they speak.
//!
//! Everything that may wait is a `poll_…` on `&mut self`, so that one task can carry both directions
//! at once without locks or splitting. Everything that is sent is queued by a `send_…`, which never
//! waits, and leaves with the next `poll_flush`; while that is pending, the sender reads no more of
//! the source. A head, a short body and the end of it thus leave in one write.

use std::task::{Context, Poll};
use std::time::Duration;

use subak_message::{BodyLength, Fields, RequestHead, ResponseHead};
use subak_net::{Chunk, Counters};

use crate::failure::{ClientFault, EndpointFault};

/// Bytes of an answer that may wait for a client before no more is read: what arrives in quick
/// succession leaves in one write.
const MOST_QUEUED: usize = 64 * 1024;

/// Whether so many bytes wait for a client that no more is read. Where buffers are scarce, any.
#[inline]
pub(crate) fn is_full(queued: usize) -> bool {
    queued >= MOST_QUEUED || (queued > 0 && subak_net::are_scarce())
}

/// A piece of a body.
#[derive(Debug)]
pub(crate) enum BodyPart {
    /// Bytes; never empty.
    Data(Chunk),
    /// The body is complete; its trailers, if it had any.
    End(Option<Box<Fields>>),
}

/// After so long without a byte in either direction an exchange looks closely whether its client is still
/// there: most are over long before and should not pay for it.
pub(crate) const QUIET: Duration = Duration::from_millis(500);

/// How closely an exchange looks whether its client is still there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Look {
    /// At what costs nothing to see: something may have moved a moment ago.
    Glance,
    /// For a reset too.
    Reset,
    /// For the end of the client's side too, which a client that closes leaves behind: nothing has moved
    /// for a while, or the request waits.
    End,
}

/// The client's side: gives the request's body, takes the answer.
pub(crate) trait ClientSide {
    /// The next part of the request's body. After the end, always the end.
    fn poll_body(&mut self, context: &mut Context<'_>) -> Poll<Result<BodyPart, ClientFault>>;
    /// The request's body may have so many bytes instead; none: any number. Before any of it was given.
    fn limit_body(&mut self, most: Option<u64>);
    /// Whether the answer's head has been queued, so that no other answer can be given.
    fn is_answered(&self) -> bool;
    /// Queues an interim answer (1xx but 101).
    fn send_interim(&mut self, head: &ResponseHead);
    /// Queues the answer's head; `body` is how long the endpoint says the body is.
    fn send_head(&mut self, head: &ResponseHead, body: BodyLength);
    /// Queues a part of the answer's body.
    fn send_data(&mut self, data: Chunk);
    /// Queues the end of the answer's body.
    fn send_end(&mut self, trailers: Option<&Fields>);
    /// Ready when everything queued has been taken.
    fn poll_flush(&mut self, context: &mut Context<'_>) -> Poll<Result<(), ClientFault>>;
    /// Whether so much is queued that no more of the answer should be read before some has left.
    fn is_full(&self) -> bool;
    /// Bytes the client has taken of its answers so far, for the minimum rate.
    fn taken(&self) -> u64;
    /// Ready when the client wants no response any more: it has said so, has closed its connection, or
    /// the time is over that it gave. `look` says how much may be spent to find out.
    fn poll_gone(&mut self, context: &mut Context<'_>, look: Look) -> Poll<ClientFault>;
    /// From here on both directions are plain bytes: the answer was 101.
    fn become_tunnel(&mut self);
}

/// The endpoint's side: takes the request, gives the answer. A connection lent for one exchange.
pub(crate) trait EndpointSide {
    /// Queues the request's head.
    fn send_head(&mut self, head: &RequestHead, request: &RequestOutline<'_>);
    /// Queues a part of the request's body.
    fn send_data(&mut self, data: Chunk);
    /// Queues the end of the request's body.
    fn send_end(&mut self, trailers: Option<&Fields>);
    /// Ready when everything queued has been taken.
    fn poll_flush(&mut self, context: &mut Context<'_>) -> Poll<Result<(), EndpointFault>>;
    /// The next head of an answer, interim ones included, and how long its body is.
    fn poll_head(
        &mut self,
        context: &mut Context<'_>,
        head: &mut ResponseHead,
    ) -> Poll<Result<BodyLength, EndpointFault>>;
    /// The next part of the answer's body. After the end, always the end.
    fn poll_body(&mut self, context: &mut Context<'_>) -> Poll<Result<BodyPart, EndpointFault>>;
    /// Whether the answer's body has been given completely.
    fn body_ended(&self) -> bool;
    /// Bytes the endpoint has taken so far.
    fn taken(&self) -> u64;
    /// What the kernel has counted of the connection so far.
    fn counters(&self) -> Counters;
    /// Whether any byte of this exchange has left.
    fn has_sent(&self) -> bool;
    /// Whether any byte of an answer has come.
    fn has_received(&self) -> bool;
    /// From here on both directions are plain bytes: the answer was 101.
    fn become_tunnel(&mut self);
}

/// What an endpoint is told beside the head itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestOutline<'a> {
    /// Path and query, or `*`.
    pub(crate) target: &'a [u8],
    /// The Host to send where the request has none.
    pub(crate) default_host: &'a [u8],
    /// How long the body is.
    pub(crate) body: BodyLength,
    /// The client asks to switch protocols.
    pub(crate) upgrade: bool,
    /// The client waits for 100 (Continue).
    pub(crate) expect_continue: bool,
}
