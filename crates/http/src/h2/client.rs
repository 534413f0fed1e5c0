//! The client's side of one exchange on an HTTP/2 stream.

use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use h2::server::SendResponse;
use h2::{Reason, RecvStream, SendStream};
use http::{HeaderValue, Response, StatusCode, header};
use subak_message::{BodyLength, Fields, Known, ResponseHead};
use subak_net::{Chunk, Deadline, now};
use subak_telemetry::{Cause, Flood};

use super::fields;
use super::outgoing::Outgoing;
use super::stalls::PACE;
use super::watched::{TINY, Watch};
use crate::access_log::Moved;
use crate::exchange::{BodyPart, ClientSide, Look, is_full};
use crate::failure::{ClientFault, Failure};

/// How long, and how much, is read of a request that was answered before it ended.
const LINGER: Duration = Duration::from_secs(2);
const LINGER_BYTES: usize = 1024 * 1024;
/// Pieces of a few bytes among it; more are a flood.
const LINGER_TINY: u32 = 1000;

/// Whether a request has started, and whether its client takes the answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Progress {
    /// It has not started.
    Waits,
    /// The client takes what it is given.
    Flows,
    /// The client takes nothing now.
    Stalled {
        /// As many others as may be stalled were stalled before.
        beyond: bool,
    },
}

/// A client's stream, lent to one exchange.
pub(crate) struct H2Client {
    receive: RecvStream,
    /// Received bytes that have been given on and not yet allowed for again.
    unreleased: usize,
    allowance: u64,
    /// What is missing of a body whose length was announced.
    left: Option<u64>,
    /// The last of a body as long as announced, until the stream ends there.
    held: Option<Bytes>,
    respond: SendResponse<Bytes>,
    send: Option<SendStream<Bytes>>,
    outgoing: Outgoing,
    received: u64,
    failed: bool,
    watch: Rc<Watch>,
    /// Until the client waits no longer for the beginning of an answer, where it says so itself; then,
    /// until an answer that is stalled beyond what the connection may have has to end.
    patience: Option<Deadline>,
    progress: Progress,
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
            left: None,
            held: None,
            respond,
            send: None,
            outgoing: Outgoing::new(),
            received: 0,
            failed: false,
            watch,
            patience: None,
            progress: Progress::Waits,
        }
    }

    /// The body is to be so long.
    pub(super) fn announced(&mut self, body: BodyLength) {
        if let BodyLength::Known(length) = body {
            self.left = Some(length);
        }
    }

    /// Waits for the end of a stream that announced no bytes and did not end with its head: should some
    /// come all the same, nobody must have taken the request for complete.
    pub(super) async fn end_of_nothing(
        &mut self,
        deadline: &Deadline,
        limit: Duration,
    ) -> Result<(), Failure> {
        deadline.set(limit);
        std::future::poll_fn(|context| match self.poll_body(context) {
            Poll::Ready(Ok(BodyPart::End(_))) => Poll::Ready(Ok(())),
            Poll::Ready(Ok(BodyPart::Data(_))) => Poll::Ready(Err(ClientFault::Gone.into())),
            Poll::Ready(Err(fault)) => Poll::Ready(Err(fault.into())),
            Poll::Pending if deadline.expired(context) => {
                Poll::Ready(Err(Failure::ClientSlow { sending: true }))
            }
            Poll::Pending => Poll::Pending,
        })
        .await
    }

    /// That the request has not been taken back before anybody has looked at it.
    pub(super) async fn still_wanted(&mut self) -> Result<(), Failure> {
        std::future::poll_fn(|context| match self.poll_gone(context, Look::Glance) {
            Poll::Ready(fault) => Poll::Ready(Err(fault.into())),
            Poll::Pending => Poll::Ready(Ok(())),
        })
        .await
    }

    /// Starts the request, unless it has to wait until the client takes the answers to others.
    pub(super) fn starts_at_once(&mut self) -> bool {
        let starts = self.watch.stalls().start(now);
        if starts {
            self.progress = Progress::Flows;
        }
        starts
    }

    /// Waits until the client takes the answers to its other requests, for at most so long.
    pub(super) async fn wait_to_start(
        &mut self,
        deadline: &Deadline,
        limit: Duration,
    ) -> Result<(), Failure> {
        let watch = self.watch.clone();
        let mut waiter = watch.stalls().join().ok_or(Failure::QueueFull)?;
        let since = now();
        loop {
            let moment = now();
            if watch.stalls().start_first(&waiter, moment) {
                self.progress = Progress::Flows;
                deadline.clear();
                return Ok(());
            }
            let left = limit.saturating_sub(moment.since(since));
            if left.is_zero() {
                return Err(Failure::ClientSlow { sending: false });
            }
            // Only the first has a reason to look before it is told.
            deadline.set(if waiter.is_first() { PACE.min(left) } else { left });
            std::future::poll_fn(|context| match waiter.poll_notified(context) {
                Poll::Ready(()) => Poll::Ready(Ok(())),
                Poll::Pending => match self.poll_gone(context, Look::Glance) {
                    Poll::Ready(fault) => Poll::Ready(Err(fault)),
                    Poll::Pending if deadline.expired(context) => Poll::Ready(Ok(())),
                    Poll::Pending => Poll::Pending,
                },
            })
            .await?;
        }
    }

    /// The client has stopped taking the answer, or takes it again.
    #[inline(never)]
    fn progress_changed(&mut self, is_stalled: bool) {
        let stalls = self.watch.stalls();
        if is_stalled {
            let beyond = stalls.stall(now);
            self.progress = Progress::Stalled { beyond };
            if beyond {
                let left = stalls.patience(now());
                self.patience.get_or_insert_default().set(left);
            }
        } else {
            stalls.go_on();
            self.progress = Progress::Flows;
        }
    }

    /// Whether an answer that is stalled beyond what the connection may have has to end.
    fn is_out_of_patience(&self, patience: &Deadline, context: &mut Context<'_>) -> bool {
        if self.progress != (Progress::Stalled { beyond: true }) || !patience.expired(context) {
            return false;
        }
        // There may have been progress meanwhile.
        let left = self.watch.stalls().patience(now());
        patience.set(left);
        left.is_zero() || patience.expired(context)
    }

    /// The client waits so long for the beginning of an answer.
    pub(crate) fn waits_at_most(&mut self, limit: Duration) {
        let patience = Deadline::new();
        patience.set(limit);
        self.patience = Some(patience);
    }

    /// The bytes of both bodies; heads are compressed together with those of other streams.
    pub(crate) fn moved(&self) -> Moved {
        Moved { bytes_in: self.received, bytes_out: self.taken(), head_bytes_out: 0 }
    }

    /// Whether Subak has reset the stream because of what the client sent on it.
    pub(crate) fn was_made_to_reset(&mut self, context: &mut Context<'_>) -> bool {
        match self.receive.poll_data(context) {
            Poll::Ready(Some(Err(error))) => error.is_reset() && error.is_library(),
            _ => false,
        }
    }

    /// Reads on for a while what the client still sends of a request that was answered early. The library
    /// resets the stream when it is let go, and a client that reads the answer's end together with the
    /// reset may take the answer for lost (curl 7.88 does).
    pub(super) async fn linger(&mut self, deadline: &Deadline) {
        deadline.set(LINGER);
        let (mut left, mut tiny) = (LINGER_BYTES, 0);
        std::future::poll_fn(|context| {
            loop {
                let released = std::mem::take(&mut self.unreleased);
                if self.receive.flow_control().release_capacity(released).is_err() {
                    return Poll::Ready(());
                }
                match self.receive.poll_data(context) {
                    Poll::Ready(Some(Ok(data))) if data.len() < left => {
                        left -= data.len();
                        tiny += u32::from(data.len() < TINY);
                        if tiny > LINGER_TINY {
                            // The library finds those that nobody reads.
                            self.watch.found_to_be(Flood::SmallData);
                            return Poll::Ready(());
                        }
                        self.unreleased = data.len();
                    }
                    Poll::Ready(_) => return Poll::Ready(()),
                    Poll::Pending if deadline.expired(context) => return Poll::Ready(()),
                    Poll::Pending => return Poll::Pending,
                }
            }
        })
        .await;
    }

    /// Whether the client may still send some of its request.
    pub(super) fn must_linger(&self) -> bool {
        !self.receive.is_end_stream()
    }

    /// Cuts the stream off, so that nobody takes the answer for complete.
    pub(crate) fn cut_off(&mut self, cause: Cause) {
        let reason = match (cause, self.progress) {
            // Nobody has looked at it: the client may send it again.
            (Cause::ClientSlow, Progress::Waits) if self.send.is_none() => Reason::REFUSED_STREAM,
            (Cause::ClientSlow, _) => Reason::ENHANCE_YOUR_CALM,
            _ => Reason::INTERNAL_ERROR,
        };
        match &mut self.send {
            Some(send) => send.send_reset(reason),
            None => self.respond.send_reset(reason),
        }
    }
}

impl Drop for H2Client {
    fn drop(&mut self) {
        let stalls = self.watch.stalls();
        if let Progress::Stalled { .. } = self.progress {
            stalls.go_on();
        }
        if self.progress != Progress::Waits {
            stalls.over();
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
                    if let Some(left) = &mut self.left {
                        *left = left.saturating_sub(data.len() as u64);
                        // With its last byte an endpoint of HTTP/1 takes a body for complete.
                        if *left == 0 && !self.receive.is_end_stream() {
                            self.held = Some(data);
                            continue;
                        }
                    }
                    return Poll::Ready(Ok(BodyPart::Data(Chunk::shared(data))));
                }
                Some(Err(_)) => return Poll::Ready(Err(ClientFault::Gone)),
                None => break,
            }
        }
        if let Some(held) = self.held.take() {
            return Poll::Ready(Ok(BodyPart::Data(Chunk::shared(held))));
        }
        let trailers =
            ready!(self.receive.poll_trailers(context)).map_err(|_| ClientFault::Gone)?;
        let trailers = trailers.map(|map| fields::received(&map)).transpose();
        Poll::Ready(trailers.map(BodyPart::End).map_err(ClientFault::Trailers))
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
            *response.headers_mut() = fields::map(&head.fields, |_| false);
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
        let mut map =
            fields::map(&head.fields, |known| is_tunnel && known == Known::SecWebSocketAccept);
        let announced = head.fields.get(Known::ContentLength).map(HeaderValue::from_bytes);
        let announced = match body {
            BodyLength::Known(length) => Some(fields::length(length)),
            BodyLength::None if head.status != 204 => announced.and_then(Result::ok),
            _ => None,
        };
        if let Some(length) = announced {
            map.append(header::CONTENT_LENGTH, length);
        }
        *response.headers_mut() = map;
        // Without a body the head is the end too: clients take an empty DATA frame behind a 304 with a
        // length for a body that is too short.
        let ended = body.is_empty() && !is_tunnel;
        match self.respond.send_response(response, ended) {
            Ok(send) => self.send = Some(send),
            Err(_) => self.failed = true,
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

    fn poll_flush(&mut self, context: &mut Context<'_>) -> Poll<Result<(), ClientFault>> {
        if self.failed {
            return Poll::Ready(Err(ClientFault::Gone));
        }
        let Some(send) = &mut self.send else { return Poll::Ready(Ok(())) };
        let was_stalled = matches!(self.progress, Progress::Stalled { .. });
        let sent = |length, is_cut| self.watch.sent(length, is_cut, was_stalled);
        let flushed = self.outgoing.poll_flush(send, context, sent);
        if flushed.is_pending() != was_stalled && self.progress != Progress::Waits {
            self.progress_changed(!was_stalled);
        }
        flushed.map_err(|_| ClientFault::Gone)
    }

    fn is_full(&self) -> bool {
        is_full(self.outgoing.waiting())
    }

    fn taken(&self) -> u64 {
        self.outgoing.taken()
    }

    /// A reset stream counts no longer against those a client may have open: what it asked for must
    /// end with it, or a client could have any number of requests under way.
    fn poll_gone(&mut self, context: &mut Context<'_>, _: Look) -> Poll<ClientFault> {
        let reset = match &mut self.send {
            Some(send) => send.poll_reset(context),
            None => self.respond.poll_reset(context),
        };
        match &self.patience {
            _ if reset.is_ready() => Poll::Ready(ClientFault::Gone),
            Some(patience) if self.send.is_none() && patience.expired(context) => {
                Poll::Ready(ClientFault::Late)
            }
            Some(patience) if self.is_out_of_patience(patience, context) => {
                Poll::Ready(ClientFault::Stalled)
            }
            _ => Poll::Pending,
        }
    }

    fn become_tunnel(&mut self) {
        self.allowance = u64::MAX;
    }
}
