//! Forwarding: both directions of one exchange, carried by one task.
//!
//! What the other side does not take at once stays queued with its connection, and nothing more is
//! read of the source until it has left: back-pressure from end to end, with at most two chunks of
//! memory each way. A head waits in the queue for the first bytes of its body, so that a short answer
//! leaves in one write.

use std::task::{Context, Poll, ready};
use std::time::Duration;

use subak_base::Tick;
use subak_message::grpc::Code;
use subak_message::{Fault, HeadError, RequestHead, ResponseHead};
use subak_net::{Deadline, end_turn, now};
use subak_pool::Lease;

use crate::attempt::Attempt;
use crate::decision::Named;
use crate::edit;
use crate::exchange::{BodyPart, ClientSide, EndpointSide, Look, QUIET};
use crate::failure::{ClientFault, EndpointFault, Failure};
use crate::linger::Linger;
use crate::meter::{Meter, Metering};
use crate::pace::Pace;
use crate::plan::PoolPlan;
use crate::replay::Replay;
use crate::service::Service;
use crate::websocket;

/// Bytes that a client has to take for `write_idle` to begin anew, unless it takes all there is: a byte
/// now and then must not keep an exchange alive.
pub(crate) const PROGRESS: u64 = 4096;
/// Parts of a body that are moved, in each direction, before others have their turn: a client that sends
/// byte by byte makes as many system calls.
const PARTS_IN_A_TURN: u32 = 4;

/// The terms under which an exchange is forwarded.
#[derive(Clone, Copy)]
pub(crate) struct Terms<'a> {
    /// The client's limits.
    pub(crate) service: &'a Service,
    /// The endpoint's.
    pub(crate) plan: &'a PoolPlan,
    /// What is to become of this try.
    pub(crate) attempt: &'a Attempt<'a>,
    /// Answers with one of the pool's statuses are not forwarded while another endpoint can be tried:
    /// while the body can be sent again and the pool's budget lasts.
    pub(crate) retries_statuses: bool,
    /// The client asks for a WebSocket on a stream of HTTP/2, where every 2xx opens it.
    pub(crate) wants_stream: bool,
    /// Whether anybody wants to know when the answer began.
    pub(crate) times_first_byte: bool,
    /// The name of the decision, where the answer shows it.
    pub(crate) named: Option<Named<'a>>,
}

/// What is known of an exchange that was forwarded to its end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Forwarded {
    /// When the endpoint began to answer, where its pool wants to know.
    pub(crate) first_byte: Option<Tick>,
    /// How a gRPC call ended, where the endpoint said so.
    pub(crate) code: Option<Code>,
}

/// Sends the rest of a request, whose head is queued, to an endpoint and its answer to the client.
///
/// # Errors
/// [`Failure`]; whether something of the answer has left is for the client side to tell.
pub(crate) async fn forward<C: ClientSide, E: EndpointSide>(
    client: &mut C,
    endpoint: &mut E,
    (request, body, answer): (&mut RequestHead, &mut Replay, &mut ResponseHead),
    terms: &Terms<'_>,
    (meter, lease): (&Meter, &Lease<'_>),
    deadline: &Deadline,
) -> Result<Forwarded, Failure> {
    let mut carrier = Carrier {
        request: if body.is_given() { Sending::Flushing } else { Sending::Body },
        request_fault: None,
        answer_stage: Stage::Head,
        waiting_for: WaitingFor::EndpointTakes,
        limits: WaitingFor::EndpointTakes,
        progressed: true,
        client_took: 0,
        client_progressed: false,
        is_quiet: false,
        client_sends: Pace::default(),
        client_takes: Pace::default(),
        tunnel: false,
        first_byte: None,
        code: None,
        metering: meter.begin(lease),
        linger: Linger::begin(lease),
        asked: request,
        client,
        endpoint,
        body,
        answer,
        terms,
        deadline,
    };
    let carried = std::future::poll_fn(|context| carrier.poll(context)).await;
    if lease.is_counted() {
        meter.end(lease, carrier.endpoint.counters(), now());
    }
    carried.map(|()| Forwarded { first_byte: carrier.first_byte, code: carrier.code })
}

struct Carrier<'a, C, E> {
    asked: &'a mut RequestHead,
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
    /// Who was waited for when the limit was set.
    limits: WaitingFor,
    progressed: bool,
    /// Bytes that the client has taken since that was progress.
    client_took: u64,
    client_progressed: bool,
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
    /// How long was waited for the endpoint's body.
    linger: Linger<'a>,
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
            let look = if self.is_quiet { Look::End } else { Look::Glance };
            if let Poll::Ready(fault) = self.client.poll_gone(context, look) {
                return Poll::Ready(Err(fault.into()));
            }
            if self.begins_anew() {
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

    /// Whether the time limit begins anew. A client that is waited for to take the answer has to take
    /// some of it, whatever it sends meanwhile.
    fn begins_anew(&mut self) -> bool {
        let progressed = std::mem::take(&mut self.progressed);
        let client_progressed = std::mem::take(&mut self.client_progressed);
        let before = std::mem::replace(&mut self.limits, self.waiting_for);
        match self.waiting_for {
            WaitingFor::ClientTakes if !self.tunnel && before == WaitingFor::ClientTakes => {
                client_progressed
            }
            _ => progressed || before != self.waiting_for,
        }
    }

    fn limit(&self) -> Duration {
        match self.waiting_for {
            // One side has ended: the other has had its reason to end too.
            _ if self.tunnel
                && (self.request == Sending::Done || self.answer_stage == Stage::Done) =>
            {
                self.terms.plan.idle
            }
            _ if self.tunnel => self.terms.plan.tunnel_idle,
            WaitingFor::ClientSends => self.terms.service.timeouts.body_idle,
            WaitingFor::ClientTakes => self.terms.service.timeouts.write_idle,
            WaitingFor::FirstByte => self.terms.plan.first_byte,
            WaitingFor::EndpointTakes | WaitingFor::EndpointSends => self.terms.plan.idle,
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
        let mut moved = 0;
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
            if moved == PARTS_IN_A_TURN {
                end_turn(context);
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
            moved += 1;
        }
        Ok(())
    }

    fn take_of_client(&mut self, part: BodyPart) -> Result<(), Failure> {
        self.progressed = true;
        match part {
            BodyPart::Data(data) => {
                self.client_sends.moved(data.len() as u64, now);
                if !self.tunnel && self.client_sends.is_too_slow(self.terms.service.least_rate) {
                    return Err(Failure::ClientSlow { sending: true });
                }
                self.endpoint.send_data(data);
            }
            BodyPart::End(mut trailers) => {
                if let Some(trailers) = &mut trailers {
                    let Terms { service, plan, .. } = self.terms;
                    service.guard.clean_trailers(trailers, &plan.request_edits);
                    service.trust.clean_trailers(trailers);
                }
                // A tunnel has none, whatever HTTP/2 lets its ends say.
                self.endpoint.send_end(trailers.as_deref().filter(|_| !self.tunnel));
                self.request = Sending::Flushing;
            }
        }
        Ok(())
    }

    /// Moves as much of the answer as both sides allow now; ready when the client has all of it.
    fn poll_answer(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Failure>> {
        let mut moved = 0;
        loop {
            match self.answer_stage {
                Stage::Body if moved == PARTS_IN_A_TURN => {
                    ready!(self.poll_client_takes(context))?;
                    end_turn(context);
                    return Poll::Pending;
                }
                Stage::Head => ready!(self.poll_head(context))?,
                Stage::Body => match self.endpoint.poll_body(context) {
                    Poll::Ready(part) => {
                        self.progressed = true;
                        self.linger.moved();
                        self.give_to_client(part?);
                        moved += 1;
                    }
                    Poll::Pending => {
                        ready!(self.poll_client_takes(context))?;
                        self.waiting_for = WaitingFor::EndpointSends;
                        if !self.tunnel {
                            self.linger.waits();
                        }
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
        if self.terms.retries_statuses
            && self.terms.plan.retry_on.statuses.contains(&self.answer.status)
            && self.body.can_rewind()
            && self.terms.plan.pool.withdraw_retry(now())
        {
            return Poll::Ready(Err(Failure::RetryStatus(self.answer.status)));
        }
        if self.terms.attempt.is_call {
            self.code = Code::of(&self.answer.fields);
            if let Some(code) = self.code
                && !self.terms.attempt.keep_any
                && self.terms.plan.retry_on.grpc.contains(code)
                && self.body.can_rewind()
                && self.terms.plan.pool.withdraw_retry(now())
            {
                return Poll::Ready(Err(Failure::RetryCall(code)));
            }
        }
        if self.terms.wants_stream && (200..300).contains(&self.answer.status) {
            return Poll::Ready(Err(Failure::NotSwitched(self.answer.status)));
        }
        if self.answer.status == 101 && !websocket::is_proven(self.asked, self.answer) {
            let unproven = HeadError { fault: Fault::UnprovenUpgrade, offset: 0 };
            return Poll::Ready(Err(EndpointFault::Head(unproven).into()));
        }
        edit::apply(&mut self.answer.fields, &self.terms.plan.answer_edits);
        if let Some(cookie) = &self.terms.attempt.new_cookie {
            cookie.set(&mut self.answer.fields);
        }
        if let Some(side) = &self.terms.attempt.side {
            side.set(&mut self.answer.fields);
        }
        if let Some(told) = self.terms.attempt.told {
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
            // For hours, maybe: all that is still needed of the heads is what a log will say, and that
            // has taken what it says of the request's fields.
            if self.terms.service.logs.is_some() {
                self.asked.fields.clear();
                self.asked.shrink_to(0, 0);
            } else {
                let method = self.asked.method;
                *self.asked = RequestHead::default();
                self.asked.method = method;
                self.answer.fields.clear();
            }
            self.answer.fields.shrink_to(0, 0);
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
            BodyPart::End(mut trailers) => {
                if let (true, Some(trailers)) = (self.terms.attempt.is_call, &trailers) {
                    self.code = Code::of(trailers).or(self.code);
                }
                if let Some(trailers) = &mut trailers {
                    edit::clean_trailers(trailers, &self.terms.plan.answer_edits);
                }
                self.client.send_end(trailers.as_deref().filter(|_| !self.tunnel));
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
            self.client_took += taken;
            if polled.is_ready() || self.client_took >= PROGRESS {
                self.client_took = 0;
                self.client_progressed = true;
            }
            self.client_takes.moved(taken, now);
            if !self.tunnel && self.client_takes.is_too_slow(self.terms.service.least_rate) {
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
