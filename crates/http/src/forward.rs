//! Forwarding: both directions of one exchange, carried by one task.
//!
//! What the other side does not take at once stays queued with its connection, and nothing more is
//! read of the source until it has left: back-pressure from end to end, with at most two chunks of
//! memory each way. A head waits in the queue for the first bytes of its body, so that a short answer
//! leaves in one write.

use std::task::{Context, Poll, ready};
use std::time::Duration;

use subak_base::Tick;
use subak_config::{HeaderEdits, MinRate};
use subak_message::grpc::{Code, Codes};
use subak_message::{Fault, HeadError, RequestHead, ResponseHead};
use subak_net::{Deadline, now};
use subak_pool::Pool;

use crate::decision::Named;
use crate::edit;
use crate::exchange::{BodyPart, ClientSide, EndpointSide, RequestOutline};
use crate::failure::{ClientFault, EndpointFault, Failure};
use crate::identity::Identities;
use crate::limits::Told;
use crate::meter::Metering;
use crate::pace::Pace;
use crate::replay::Replay;
use crate::split::SplitCookie;
use crate::stick::NewCookie;
use crate::websocket;

/// After so long without a byte in either direction it is looked whether the client is still there,
/// however that is found out: most exchanges are over long before and should not pay for it.
const QUIET: Duration = Duration::from_secs(2);

/// The terms under which an exchange is forwarded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms<'a> {
    /// Between two pieces of the request's body.
    pub(crate) client_sends: Duration,
    /// While the client takes nothing of the answer.
    pub(crate) client_takes: Duration,
    /// The client's least throughput.
    pub(crate) least_rate: Option<MinRate>,
    /// From the end of the request to the first byte of the answer.
    pub(crate) first_byte: Duration,
    /// Between two pieces of the answer, and while the endpoint takes nothing of the request.
    pub(crate) endpoint_idle: Duration,
    /// While neither side of a tunnel sends.
    pub(crate) tunnel_idle: Duration,
    /// Answers with one of these statuses are not forwarded while another endpoint can be tried:
    /// while the body can be sent again and the pool's budget lasts.
    pub(crate) retry_statuses: &'a [u16],
    /// Which fields a client may not write, in trailers either.
    pub(crate) identities: Identities,
    /// Whether it is a gRPC call, which has a status of its own.
    pub(crate) is_call: bool,
    /// The same for calls that end in one of these ways before their first message.
    pub(crate) retry_codes: Codes,
    /// The pool that pays for it.
    pub(crate) pool: &'a Pool,
    /// Whether anybody wants to know when the answer began.
    pub(crate) times_first_byte: bool,
    /// Changes to the answer's fields, in order.
    pub(crate) answer_edits: &'a [HeaderEdits],
    /// What the answer tells the client to come back with.
    pub(crate) new_cookie: Option<NewCookie<'a>>,
    /// And of its side of a split.
    pub(crate) side: Option<SplitCookie<'a>>,
    /// The name of the decision, where the answer shows it.
    pub(crate) named: Option<Named<'a>>,
    /// What is told of a rate.
    pub(crate) told: Option<&'a Told>,
}

/// What is known of an exchange that was forwarded to its end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Forwarded {
    /// When the endpoint began to answer, where its pool wants to know.
    pub(crate) first_byte: Option<Tick>,
    /// How a gRPC call ended, where the endpoint said so.
    pub(crate) code: Option<Code>,
}

/// Sends a request to an endpoint and its answer to the client.
///
/// # Errors
/// [`Failure`]; whether something of the answer has left is for the client side to tell.
pub(crate) async fn forward<C: ClientSide, E: EndpointSide>(
    client: &mut C,
    endpoint: &mut E,
    (request, outline): (&RequestHead, &RequestOutline<'_>),
    body: &mut Replay,
    answer: &mut ResponseHead,
    (terms, metering): (&Terms<'_>, Option<Metering<'_>>),
    deadline: &Deadline,
) -> Result<Forwarded, Failure> {
    endpoint.send_head(request, outline);
    let mut carrier = Carrier {
        request: if body.is_given() { Sending::Flushing } else { Sending::Body },
        request_fault: None,
        answer_stage: Stage::Head,
        waiting_for: WaitingFor::EndpointTakes,
        progressed: true,
        is_quiet: false,
        client_sends: Pace::default(),
        client_takes: Pace::default(),
        tunnel: false,
        first_byte: None,
        code: None,
        metering,
        asked: request,
        client,
        endpoint,
        body,
        answer,
        terms,
        deadline,
    };
    std::future::poll_fn(|context| carrier.poll(context)).await?;
    Ok(Forwarded { first_byte: carrier.first_byte, code: carrier.code })
}

struct Carrier<'a, C, E> {
    asked: &'a RequestHead,
    client: &'a mut C,
    endpoint: &'a mut E,
    body: &'a mut Replay,
    answer: &'a mut ResponseHead,
    terms: &'a Terms<'a>,
    deadline: &'a Deadline,
    request: Sending,
    /// The endpoint takes no more of the request; it may have answered all the same.
    request_fault: Option<EndpointFault>,
    answer_stage: Stage,
    waiting_for: WaitingFor,
    progressed: bool,
    /// Nothing has moved for [`QUIET`].
    is_quiet: bool,
    client_sends: Pace,
    client_takes: Pace,
    tunnel: bool,
    /// When the endpoint began to answer.
    first_byte: Option<Tick>,
    /// How the call ended.
    code: Option<Code>,
    metering: Option<Metering<'a>>,
}

/// How far the request has come.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sending {
    /// There is more of the body to come.
    Body,
    /// All of it is queued.
    Flushing,
    /// All of it has left, or no more of it will.
    Done,
}

/// How far the answer has come.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Head,
    Body,
    /// A part of the body is queued; no more is read until it has left.
    BodyFlushing,
    EndFlushing,
    Done,
}

/// Who is waited for, for what: decides the time limit and the blame.
#[derive(Clone, Copy, PartialEq, Eq)]
enum WaitingFor {
    ClientSends,
    ClientTakes,
    EndpointTakes,
    FirstByte,
    EndpointSends,
}

impl<C: ClientSide, E: EndpointSide> Carrier<'_, C, E> {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Failure>> {
        self.carry_request(context)?;
        if self.poll_answer(context)?.is_ready() && (!self.tunnel || self.request == Sending::Done)
        {
            return Poll::Ready(Ok(()));
        }
        if let Some(metering) = &mut self.metering {
            metering.look(now(), || self.endpoint.counters());
        }
        loop {
            if let Poll::Ready(fault) = self.client.poll_gone(context, self.is_quiet) {
                return Poll::Ready(Err(fault.into()));
            }
            if std::mem::take(&mut self.progressed) {
                self.is_quiet = false;
                self.deadline.set(self.limit().min(QUIET));
            }
            if !self.deadline.expired(context) {
                return Poll::Pending;
            }
            let rest = self.limit().saturating_sub(QUIET);
            if self.is_quiet || rest.is_zero() {
                return Poll::Ready(Err(self.late()));
            }
            self.is_quiet = true;
            self.deadline.set(rest);
        }
    }

    fn limit(&self) -> Duration {
        match self.waiting_for {
            // One side has ended: the other has had its reason to end too.
            _ if self.tunnel
                && (self.request == Sending::Done || self.answer_stage == Stage::Done) =>
            {
                self.terms.endpoint_idle
            }
            _ if self.tunnel => self.terms.tunnel_idle,
            WaitingFor::ClientSends => self.terms.client_sends,
            WaitingFor::ClientTakes => self.terms.client_takes,
            WaitingFor::FirstByte => self.terms.first_byte,
            WaitingFor::EndpointTakes | WaitingFor::EndpointSends => self.terms.endpoint_idle,
        }
    }

    fn late(&self) -> Failure {
        match self.waiting_for {
            WaitingFor::ClientSends => Failure::ClientSlow { sending: true },
            WaitingFor::ClientTakes => Failure::ClientSlow { sending: false },
            WaitingFor::FirstByte => Failure::FirstByteTimeout,
            WaitingFor::EndpointTakes | WaitingFor::EndpointSends => Failure::EndpointIdle,
        }
    }

    /// Moves as much of the request as both sides allow now.
    fn carry_request(&mut self, context: &mut Context<'_>) -> Result<(), Failure> {
        while self.request != Sending::Done {
            let before = self.endpoint.taken();
            let flushed = self.endpoint.poll_flush(context);
            self.progressed |= self.endpoint.taken() > before;
            match flushed {
                Poll::Pending => {
                    self.waiting_for = WaitingFor::EndpointTakes;
                    return Ok(());
                }
                Poll::Ready(Err(fault)) => {
                    // It may have answered before it stopped listening: see what there is.
                    self.request_fault = Some(fault);
                    self.request = Sending::Done;
                    return Ok(());
                }
                Poll::Ready(Ok(())) => {}
            }
            if self.request == Sending::Flushing {
                self.request = Sending::Done;
                self.waiting_for = WaitingFor::FirstByte;
                self.progressed = true;
                return Ok(());
            }
            let polled = match self.tunnel {
                true => self.client.poll_body(context),
                false => self.body.poll_next(self.client, context),
            };
            match polled {
                Poll::Pending => {
                    self.client_sends.waits(now);
                    self.waiting_for = WaitingFor::ClientSends;
                    return Ok(());
                }
                Poll::Ready(part) => self.take_of_client(part?)?,
            }
        }
        Ok(())
    }

    fn take_of_client(&mut self, part: BodyPart) -> Result<(), Failure> {
        self.progressed = true;
        match part {
            BodyPart::Data(data) => {
                self.client_sends.moved(data.len() as u64, now);
                if !self.tunnel && self.client_sends.is_too_slow(self.terms.least_rate) {
                    return Err(Failure::ClientSlow { sending: true });
                }
                self.endpoint.send_data(data);
            }
            BodyPart::End(mut trailers) => {
                if let Some(trailers) = &mut trailers {
                    self.terms.identities.guard(trailers);
                }
                self.endpoint.send_end(trailers.as_deref());
                self.request = Sending::Flushing;
            }
        }
        Ok(())
    }

    /// Moves as much of the answer as both sides allow now; ready when the client has all of it.
    fn poll_answer(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Failure>> {
        loop {
            match self.answer_stage {
                Stage::Head => ready!(self.poll_head(context))?,
                Stage::Body => match self.endpoint.poll_body(context) {
                    Poll::Ready(part) => {
                        self.progressed = true;
                        self.give_to_client(part?);
                    }
                    Poll::Pending => {
                        ready!(self.poll_client_takes(context))?;
                        self.waiting_for = WaitingFor::EndpointSends;
                        return Poll::Pending;
                    }
                },
                Stage::BodyFlushing => {
                    ready!(self.poll_client_takes(context))?;
                    self.answer_stage = Stage::Body;
                }
                Stage::EndFlushing => {
                    ready!(self.poll_client_takes(context))?;
                    self.answer_stage = Stage::Done;
                }
                Stage::Done => return Poll::Ready(Ok(())),
            }
        }
    }

    fn poll_head(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Failure>> {
        let body = match self.endpoint.poll_head(context, self.answer) {
            Poll::Ready(Ok(body)) => body,
            Poll::Ready(Err(fault)) => {
                let fault = self.request_fault.take().unwrap_or(fault);
                return Poll::Ready(Err(fault.into()));
            }
            Poll::Pending => {
                // Interim answers do not wait for the final one.
                ready!(self.poll_client_takes(context))?;
                if self.request == Sending::Done {
                    self.waiting_for = WaitingFor::FirstByte;
                }
                return Poll::Pending;
            }
        };
        self.progressed = true;
        if self.first_byte.is_none() && self.terms.times_first_byte {
            self.first_byte = Some(now());
        }
        if !self.answer.is_final() {
            self.client.send_interim(self.answer);
            return Poll::Ready(Ok(()));
        }
        if self.terms.retry_statuses.contains(&self.answer.status)
            && self.body.can_rewind()
            && self.terms.pool.withdraw_retry(now())
        {
            return Poll::Ready(Err(Failure::RetryStatus(self.answer.status)));
        }
        if self.terms.is_call {
            self.code = Code::of(&self.answer.fields);
            if let Some(code) = self.code
                && self.terms.retry_codes.contains(code)
                && self.body.can_rewind()
                && self.terms.pool.withdraw_retry(now())
            {
                return Poll::Ready(Err(Failure::RetryCall(code)));
            }
        }
        if self.answer.status == 101 && !websocket::is_proven(self.asked, self.answer) {
            let unproven = HeadError { fault: Fault::UnprovenUpgrade, offset: 0 };
            return Poll::Ready(Err(EndpointFault::Head(unproven).into()));
        }
        edit::apply(&mut self.answer.fields, self.terms.answer_edits);
        if let Some(cookie) = &self.terms.new_cookie {
            cookie.set(&mut self.answer.fields);
        }
        if let Some(side) = &self.terms.side {
            side.set(&mut self.answer.fields);
        }
        if let Some(told) = self.terms.told {
            told.set(&mut self.answer.fields);
        }
        if let Some(named) = self.terms.named {
            named.set(&mut self.answer.fields);
        }
        self.client.send_head(self.answer, body);
        self.answer_stage = Stage::Body;
        if self.answer.status == 101 {
            self.client.become_tunnel();
            self.endpoint.become_tunnel();
            self.tunnel = true;
            self.request = Sending::Body;
            // The head must not wait for the endpoint's first bytes; and the other direction, which
            // had nothing to do until now, is looked at again.
            self.answer_stage = Stage::BodyFlushing;
            context.waker().wake_by_ref();
        }
        Poll::Ready(Ok(()))
    }

    fn give_to_client(&mut self, part: BodyPart) {
        match part {
            BodyPart::Data(data) => {
                self.client.send_data(data);
                // The end is known already: it leaves together with the last bytes.
                if !self.endpoint.body_ended() && self.client.is_full() {
                    self.answer_stage = Stage::BodyFlushing;
                }
            }
            BodyPart::End(trailers) => {
                if let (true, Some(trailers)) = (self.terms.is_call, &trailers) {
                    self.code = Code::of(trailers).or(self.code);
                }
                self.client.send_end(trailers.as_deref());
                self.answer_stage = Stage::EndFlushing;
            }
        }
    }

    fn poll_client_takes(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Failure>> {
        let before = self.client.taken();
        let polled = self.client.poll_flush(context);
        let taken = self.client.taken() - before;
        if taken > 0 {
            self.progressed = true;
            self.client_takes.moved(taken, now);
            if !self.tunnel && self.client_takes.is_too_slow(self.terms.least_rate) {
                return Poll::Ready(Err(Failure::ClientSlow { sending: false }));
            }
        }
        match polled {
            Poll::Ready(Ok(())) => Poll::Ready(Ok(())),
            Poll::Ready(Err(fault)) => Poll::Ready(Err(ClientFault::into(fault))),
            Poll::Pending => {
                self.client_takes.waits(now);
                self.waiting_for = WaitingFor::ClientTakes;
                Poll::Pending
            }
        }
    }
}
