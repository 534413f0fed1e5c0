//! What one connection of the generator does: connect, shake hands, send, receive.

use std::io::{self, ErrorKind};

use super::answer::{self, Answer, Length, Parsed};
use super::check::{self, MAX_CHECKED_BODY};
use super::engine::Engine;
use super::plan::Shape;
use super::recorder::{Answered, Times};
use super::report::Failure;
use super::timetable::Due;
use super::transport::{Shaken, Transport, would_wait};
use crate::body::Body;
use crate::epoll::Interest;

/// What a connection is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Not there.
    Absent,
    /// TCP's handshake is under way.
    Connecting,
    /// TLS's is.
    Shaking,
    /// There, with nothing asked.
    Idle,
    /// Sending the request.
    Asking,
    /// The request is sent, the answer's head is not there.
    Awaiting,
    /// The body is coming.
    Body,
}

/// One connection, again and again.
pub(super) struct Slot {
    transport: Option<Transport>,
    pub(super) state: State,
    interest: Interest,
    /// The place of whom it is to.
    pub(super) target: usize,
    /// There is a request that has not ended.
    working: bool,
    /// Closed loop: a user who goes on.
    pub(super) active: bool,
    /// Closed loop: when the user has thought.
    pub(super) wakes_ns: Option<u64>,
    /// Whether the request belongs to the window.
    pub(super) counted: bool,
    pub(super) times: Times,
    question: usize,
    /// The request, where it is this slot's own: with X-Forwarded-For.
    own: Vec<u8>,
    /// Bytes of the request that are sent.
    sent: usize,
    /// The start of an answer's head that is not whole; all of the answer where checks want it.
    head: Vec<u8>,
    /// The answer whose body is coming: its head, what is left of it, a line of chunks that is not
    /// whole, bytes so far.
    answer: Option<Answer>,
    body: Body,
    line: Vec<u8>,
    body_bytes: u64,
    failed_checks: u32,
}

impl Slot {
    pub(super) fn new(target: usize) -> Slot {
        Slot {
            transport: None,
            state: State::Absent,
            interest: Interest::Read,
            target,
            working: false,
            active: false,
            wakes_ns: None,
            counted: false,
            times: Times::default(),
            question: 0,
            own: Vec::new(),
            sent: 0,
            head: Vec::new(),
            answer: None,
            body: Body::Bytes(0),
            line: Vec::new(),
            body_bytes: 0,
            failed_checks: 0,
        }
    }

    pub(super) fn is_under_way(&self) -> bool {
        self.working
    }

    /// Whether the user neither asks nor waits for an answer.
    pub(super) fn rests(&self) -> bool {
        !self.working
    }

    pub(super) fn forget_traffic(&mut self) {
        if let Some(transport) = &mut self.transport {
            (transport.received, transport.sent) = (0, 0);
        }
    }
}

/// What to do after a look at a connection.
enum Step {
    /// Wait for readiness.
    Wait,
    /// There may be more already.
    Again,
    /// The answer is whole.
    Whole,
    Failed(Failure),
}

impl Engine<'_> {
    /// Makes the next request for this slot: what a timetable says, or what is drawn.
    pub(super) fn question(
        &mut self,
        slot: usize,
        intended_ns: u64,
        now_ns: u64,
        said: Option<Due>,
    ) {
        let question = said.map_or_else(|| self.questions.next(), |due| due.request as usize);
        let counted = self.belongs(intended_ns);
        let connection = &mut self.slots[slot];
        connection.question = question;
        connection.working = true;
        connection.counted = counted;
        connection.sent = 0;
        connection.head.clear();
        connection.times =
            Times { intended: intended_ns, asked: now_ns, ready: now_ns, ..Times::default() };
        let forwarded = &self.plan.sources.forwarded;
        if forwarded.is_empty() {
            return;
        }
        let who = match (said, &self.plan.shape) {
            (Some(due), _) => due.client as usize,
            (None, Shape::Users { .. }) => slot % forwarded.len(),
            (None, _) => {
                self.next_forwarded += 1;
                (self.next_forwarded - 1) % forwarded.len()
            }
        };
        connection.own.clear();
        if let Some(address) = forwarded.get(who) {
            let encoded = self.questions.of(question);
            let (fields, rest) = encoded.bytes.split_at(encoded.fields);
            connection.own.extend_from_slice(fields);
            connection.own.extend_from_slice(format!("X-Forwarded-For: {address}\r\n").as_bytes());
            connection.own.extend_from_slice(rest);
        }
    }

    /// Opens the slot's connection; what it is to ask follows when that is there.
    pub(super) fn connect(&mut self, slot: usize) {
        let sources = &self.plan.sources.bind;
        let source = (!sources.is_empty()).then(|| sources[self.next_source % sources.len()]);
        self.next_source += 1;
        let target = self.plan.targets[self.slots[slot].target];
        let opened = Transport::open(target, source, self.secured.as_ref());
        let opened = opened.and_then(|(transport, is_there)| {
            let interest = if is_there { Interest::Read } else { Interest::Write };
            self.epoll.add(&transport, slot as u64, interest)?;
            Ok((transport, is_there, interest))
        });
        let connection = &mut self.slots[slot];
        match opened {
            Ok((transport, is_there, interest)) => {
                connection.transport = Some(transport);
                connection.interest = interest;
                connection.state = State::Connecting;
                if is_there {
                    self.connected(slot);
                }
            }
            Err(error) => self.unconnected(slot, &error),
        }
    }

    /// TCP's handshake is over.
    fn connected(&mut self, slot: usize) {
        let now_ns = if self.recorder.has_phases() { self.now() } else { 0 };
        let connection = &mut self.slots[slot];
        let Some(transport) = &mut connection.transport else { return };
        if let Err(error) = transport.take_error() {
            return self.unconnected(slot, &error);
        }
        self.recorder.connections += 1;
        connection.times.connecting = now_ns.saturating_sub(connection.times.asked);
        if transport.is_secured() {
            connection.state = State::Shaking;
            return self.shake(slot);
        }
        connection.times.ready = now_ns;
        self.is_there(slot);
    }

    fn shake(&mut self, slot: usize) {
        let Some(transport) = &mut self.slots[slot].transport else { return };
        match transport.shake() {
            Ok(Shaken::Waits(interest)) => self.wait_for(slot, interest),
            Ok(Shaken::Done) => {
                let now_ns = if self.recorder.has_phases() { self.now() } else { 0 };
                let times = &mut self.slots[slot].times;
                times.tls = now_ns.saturating_sub(times.asked + times.connecting);
                times.ready = now_ns;
                self.is_there(slot);
            }
            Err(error) if error.kind() == ErrorKind::ConnectionReset => {
                self.unconnected(slot, &error);
            }
            Err(_) => self.broke(slot, Failure::Tls),
        }
    }

    /// The connection can be used.
    fn is_there(&mut self, slot: usize) {
        self.slots[slot].state = State::Idle;
        if self.slots[slot].working {
            return self.send(slot);
        }
        self.wait_for(slot, Interest::Read);
        self.rest(slot);
    }

    pub(super) fn send(&mut self, slot: usize) {
        let connection = &mut self.slots[slot];
        let Some(transport) = connection.transport.as_mut() else { return };
        let request = match connection.own.is_empty() {
            true => &self.questions.of(connection.question).bytes[..],
            false => &connection.own[..],
        };
        if connection.sent < request.len() {
            match transport.write(&request[connection.sent..]) {
                Ok(count) => connection.sent += count,
                Err(error) if would_wait(&error) => {}
                Err(_) => return self.fail(slot, Failure::Closed),
            }
        }
        let all = connection.sent == request.len();
        let flushed = match transport.flush() {
            Ok(flushed) => flushed,
            Err(_) => return self.fail(slot, Failure::Closed),
        };
        let sent = all && flushed;
        connection.state = if sent { State::Awaiting } else { State::Asking };
        if sent && self.recorder.has_phases() {
            self.slots[slot].times.sent = self.now();
        }
        self.wait_for(slot, if sent { Interest::Read } else { Interest::Write });
    }

    fn wait_for(&mut self, slot: usize, interest: Interest) {
        let connection = &mut self.slots[slot];
        let Some(transport) = &connection.transport else { return };
        if connection.interest != interest {
            connection.interest = interest;
            if self.epoll.modify(transport, slot as u64, interest).is_err() {
                self.broke(slot, Failure::Closed);
            }
        }
    }

    /// Something can be done with the connection.
    pub(super) fn ready(&mut self, slot: usize) {
        match self.slots[slot].state {
            State::Absent => {}
            State::Connecting => self.connected(slot),
            State::Shaking => self.shake(slot),
            State::Idle => self.idle_ready(slot),
            State::Asking => self.send(slot),
            State::Awaiting | State::Body => loop {
                let step = match self.slots[slot].state {
                    State::Awaiting => self.receive_head(slot),
                    _ => self.receive_body(slot),
                };
                match step {
                    Step::Wait => return,
                    Step::Again => {}
                    Step::Whole => return self.finish(slot),
                    Step::Failed(kind) => return self.fail(slot, kind),
                }
            },
        }
    }

    /// Something happens though nothing was asked: the other side has ended the connection, which is
    /// its right, talks TLS among itself, or talks out of turn.
    fn idle_ready(&mut self, slot: usize) {
        let Some(transport) = self.slots[slot].transport.as_mut() else { return };
        match transport.read(&mut self.buffer) {
            Err(error) if would_wait(&error) => return,
            Ok(0) | Err(_) => {}
            Ok(_) => {
                if self.counting {
                    let now_ns = self.now();
                    let times = Times { intended: now_ns, asked: now_ns, ..Times::default() };
                    let target = self.slots[slot].target;
                    self.recorder.failed(target, &times, now_ns, Failure::Framing);
                }
            }
        }
        self.close(slot);
        self.ended_idle(slot);
    }

    fn receive_head(&mut self, slot: usize) -> Step {
        let connection = &mut self.slots[slot];
        let Some(transport) = connection.transport.as_mut() else { return Step::Wait };
        let count = match transport.read(&mut self.buffer) {
            Ok(0) => return Step::Failed(Failure::Closed),
            Ok(count) => count,
            Err(error) if would_wait(&error) => return Step::Wait,
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
                return Step::Failed(Failure::Connect);
            }
            Err(_) => return Step::Failed(Failure::Closed),
        };
        let again = transport.is_secured() || count == self.buffer.len();
        if self.recorder.has_phases() && self.slots[slot].times.first == 0 {
            self.slots[slot].times.first = self.now();
        }
        let connection = &mut self.slots[slot];
        let mut bytes = if connection.head.is_empty() && !self.keeps {
            &self.buffer[..count]
        } else {
            connection.head.extend_from_slice(&self.buffer[..count]);
            &connection.head[..]
        };
        let bodiless = self.questions.of(connection.question).bodiless;
        let answer = loop {
            match answer::parse(bytes, bodiless) {
                Parsed::Interim(length) => bytes = &bytes[length..],
                Parsed::Partial => {
                    let left = bytes.to_vec();
                    connection.head = left;
                    return if again { Step::Again } else { Step::Wait };
                }
                Parsed::Bad => return Step::Failed(Failure::Framing),
                Parsed::Head(answer) => break answer,
            }
        };
        let (head, rest) = bytes.split_at(answer.head);
        connection.failed_checks = 0;
        if self.checks_heads {
            for (index, one) in self.plan.checks.iter().enumerate() {
                let holds = one.holds(answer.status, |name| check::field(head, name), &[]);
                connection.failed_checks |= u32::from(!holds) << index;
            }
        }
        connection.answer = Some(answer);
        connection.body = match answer.body {
            Length::Bytes(length) => Body::Bytes(length),
            Length::Chunked => Body::Size,
            Length::Close => Body::Bytes(u64::MAX),
        };
        connection.body_bytes = 0;
        connection.line.clear();
        let (mut body, until_close) = (connection.body, answer.body == Length::Close);
        let Some(taken) = body.skip(rest) else { return Step::Failed(Failure::Framing) };
        connection.body_bytes += rest.len() as u64;
        if body.is_done() && !until_close {
            let whole = taken == rest.len();
            self.keep_rest(slot, answer.head);
            return if whole { Step::Whole } else { Step::Failed(Failure::Framing) };
        }
        connection.line.extend_from_slice(&rest[taken..]);
        connection.body = body;
        connection.state = State::Body;
        self.keep_rest(slot, answer.head);
        if again { Step::Again } else { Step::Wait }
    }

    /// Leaves the body's first bytes in `head` where checks want them, and nothing otherwise.
    fn keep_rest(&mut self, slot: usize, head: usize) {
        let connection = &mut self.slots[slot];
        match self.keeps {
            true => drop(connection.head.drain(..head.min(connection.head.len()))),
            false => connection.head.clear(),
        }
    }

    fn receive_body(&mut self, slot: usize) -> Step {
        let connection = &mut self.slots[slot];
        let (Some(transport), Some(answer)) = (connection.transport.as_mut(), connection.answer)
        else {
            return Step::Wait;
        };
        let secured = transport.is_secured();
        let received = match connection.body {
            Body::Bytes(left) if !secured && !self.keeps => {
                let most = left.min(self.dropped.len() as u64) as usize;
                transport.skip(&mut self.dropped[..most])
            }
            _ => transport.read(&mut self.buffer),
        };
        let count = match received {
            Ok(0) if answer.body == Length::Close => return Step::Whole,
            Ok(0) => return Step::Failed(Failure::Closed),
            Ok(count) => count,
            Err(error) if would_wait(&error) => return Step::Wait,
            Err(_) => return Step::Failed(Failure::Closed),
        };
        connection.body_bytes += count as u64;
        if self.keeps && connection.head.len() < MAX_CHECKED_BODY {
            connection.head.extend_from_slice(&self.buffer[..count]);
        }
        if let Body::Bytes(left) = &mut connection.body {
            if count as u64 > *left {
                return Step::Failed(Failure::Framing);
            }
            *left -= count as u64;
        } else {
            connection.line.extend_from_slice(&self.buffer[..count]);
            let Some(taken) = connection.body.skip(&connection.line) else {
                return Step::Failed(Failure::Framing);
            };
            connection.line.drain(..taken);
            if connection.body.is_done() && !connection.line.is_empty() {
                return Step::Failed(Failure::Framing);
            }
        }
        match (connection.body.is_done(), secured) {
            (true, _) => Step::Whole,
            (false, true) => Step::Again,
            (false, false) => Step::Wait,
        }
    }

    /// The answer is whole.
    fn finish(&mut self, slot: usize) {
        let now_ns = self.now();
        let counts = self.counts(slot);
        let connection = &mut self.slots[slot];
        let Some(answer) = connection.answer.take() else { return };
        if self.keeps {
            let chunked = answer.body == Length::Chunked;
            let unchunked = if chunked { check::unchunked(&connection.head) } else { Vec::new() };
            let body = if chunked { &unchunked } else { &connection.head };
            for (index, one) in self.plan.checks.iter().enumerate().filter(|(_, c)| c.wants_body())
            {
                let holds = one.holds(answer.status, |_| None, body);
                connection.failed_checks &= !(u32::from(holds) << index);
            }
        }
        if counts {
            let answered = Answered {
                status: answer.status,
                body: connection.body_bytes,
                failed_checks: connection.failed_checks,
            };
            self.recorder.answered(connection.target, &connection.times, now_ns, answered);
        }
        connection.working = false;
        connection.state = State::Idle;
        if answer.close || self.plan.new_connections {
            self.close(slot);
        }
        self.done(slot, now_ns, false);
    }

    /// There is no connection, and why.
    fn unconnected(&mut self, slot: usize, error: &io::Error) {
        self.recorder.unconnected(error);
        self.broke(slot, Failure::Connect);
    }

    /// The connection broke: whatever it was to be used for failed.
    fn broke(&mut self, slot: usize, kind: Failure) {
        if self.slots[slot].working {
            return self.fail(slot, kind);
        }
        self.close(slot);
        self.ended_idle(slot);
    }

    pub(super) fn fail(&mut self, slot: usize, kind: Failure) {
        let now_ns = self.now();
        if self.counts(slot) {
            let failed = &self.slots[slot];
            self.recorder.failed(failed.target, &failed.times, now_ns, kind);
        }
        self.slots[slot].working = false;
        self.close(slot);
        self.done(slot, now_ns, true);
    }

    pub(super) fn close(&mut self, slot: usize) {
        let connection = &mut self.slots[slot];
        if let Some(transport) = connection.transport.take() {
            self.recorder.received += transport.received;
            self.recorder.sent += transport.sent;
        }
        connection.state = State::Absent;
    }
}
