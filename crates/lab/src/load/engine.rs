//! The generator's loop: connections, the schedule, the measured window.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::mem::MaybeUninit;
use std::net::TcpStream;
use std::time::{Duration, Instant};

use socket2::SockRef;

use super::answer::{self, Parsed};
use super::{Edge, Failure, Failures, Limit, LoadPlan, LoadReport, Mode};
use crate::connect;
use crate::epoll::{Epoll, Interest};
use crate::histogram::Histogram;
use crate::machine;

/// What the first `recv` of an answer takes: a head, and a small body with it. The
/// rest of a larger one is dropped in the kernel.
const READ_BUFFER: usize = 4096;
/// What one dropping `recv` may take.
const DROP_AT_ONCE: usize = 256 * 1024;
/// Pause before a failed connection is tried again, so that a dead target is not
/// hammered.
const PAUSE_NS: u64 = 10_000_000;
/// How often late answers are looked for.
const LATE_CHECK_NS: u64 = 100_000_000;

/// What a connection is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Not there; waits for its pause to end.
    Absent,
    /// There, with nothing asked.
    Idle,
    /// Connecting, or sending the request.
    Asking,
    /// The request is sent, the answer's head is not there.
    Awaiting,
    /// This much of the body is still to come.
    Body(u64),
}

/// One connection, again and again.
struct Slot {
    stream: Option<TcpStream>,
    state: State,
    /// When the request was to start: latency counts from here.
    intended_ns: u64,
    /// When it did start: lateness counts from here.
    asked_ns: u64,
    /// Bytes of the request that are sent.
    sent: usize,
    /// The start of an answer's head that is not whole.
    head: Vec<u8>,
    /// Of the answer whose body is coming.
    good: bool,
    close: bool,
}

/// Everything a run needs.
pub(super) struct Engine<'a> {
    plan: &'a LoadPlan,
    bodiless: bool,
    origin: Instant,
    epoll: Epoll,
    slots: Vec<Slot>,
    /// Fixed rate: connections with nothing to do, longest idle first.
    idle: VecDeque<usize>,
    /// Failed connections and when they are tried again, soonest first.
    paused: VecDeque<(u64, usize)>,
    next_source: usize,
    /// Requests begun and requests over, warm-up included.
    asked: u64,
    over: u64,
    counting: bool,
    answered: u64,
    failures: Failures,
    latency: Histogram,
    longest_backlog: u64,
    buffer: Box<[u8]>,
    dropped: Box<[MaybeUninit<u8>]>,
}

impl<'a> Engine<'a> {
    pub(super) fn new(plan: &'a LoadPlan) -> io::Result<Engine<'a>> {
        let slot = || Slot {
            stream: None,
            state: State::Absent,
            intended_ns: 0,
            asked_ns: 0,
            sent: 0,
            head: Vec::new(),
            good: false,
            close: false,
        };
        Ok(Engine {
            plan,
            bodiless: plan.request.starts_with(b"HEAD "),
            origin: Instant::now(),
            epoll: Epoll::new()?,
            slots: (0..plan.connections).map(|_| slot()).collect(),
            idle: VecDeque::with_capacity(plan.connections),
            paused: VecDeque::new(),
            next_source: 0,
            asked: 0,
            over: 0,
            counting: false,
            answered: 0,
            failures: Failures::default(),
            latency: Histogram::new(),
            longest_backlog: 0,
            buffer: vec![0; READ_BUFFER].into_boxed_slice(),
            dropped: vec![MaybeUninit::uninit(); DROP_AT_ONCE].into_boxed_slice(),
        })
    }

    pub(super) fn run(mut self, mut at: impl FnMut(Edge)) -> io::Result<LoadReport> {
        let rate = match self.plan.mode {
            Mode::Rate(rate) => Some(rate),
            Mode::KeepAlive | Mode::ConnectionPerRequest => None,
        };
        machine::exact_timers();
        let mut window: Option<u64> = None;
        if self.plan.warm_up.is_zero() {
            window = Some(self.start_counting(&mut at));
        }
        for slot in 0..self.slots.len() {
            self.begin(slot);
        }
        let first_ns = self.now();
        let warm_until_ns = first_ns + nanos(self.plan.warm_up);
        let mut next_late_check_ns = first_ns + LATE_CHECK_NS;
        loop {
            let mut now_ns = self.now();
            if window.is_none() && now_ns >= warm_until_ns {
                now_ns = self.start_counting(&mut at);
                window = Some(now_ns);
            }
            let end_ns = match (self.plan.limit, window) {
                (Limit::Time(time), Some(start_ns)) => start_ns + nanos(time),
                (Limit::Time(_), None) => warm_until_ns,
                (Limit::Requests(_), Some(_)) => u64::MAX,
                (Limit::Requests(_), None) => warm_until_ns,
            };
            let over = match self.plan.limit {
                Limit::Time(_) => window.is_some() && now_ns >= end_ns,
                Limit::Requests(requests) => self.over >= requests,
            };
            if over {
                let start_ns = window.unwrap_or(now_ns);
                at(Edge::End);
                return Ok(LoadReport {
                    answered: self.answered,
                    failures: self.failures,
                    elapsed: Duration::from_nanos(now_ns - start_ns),
                    latency: self.latency,
                    longest_backlog: self.longest_backlog,
                });
            }
            if now_ns >= next_late_check_ns {
                self.fail_late(now_ns);
                next_late_check_ns = now_ns + LATE_CHECK_NS;
            }
            while let Some((due_ns, slot)) = self.paused.front().copied()
                && due_ns <= now_ns
            {
                self.paused.pop_front();
                self.begin(slot);
            }
            let mut wake_ns = end_ns.min(next_late_check_ns);
            if let Some((due_ns, _)) = self.paused.front() {
                wake_ns = wake_ns.min(*due_ns);
            }
            if let Some(rate) = rate
                && let Some(due_ns) = self.start_due(first_ns, rate)
            {
                wake_ns = wake_ns.min(due_ns);
            }
            let limit = Duration::from_nanos(wake_ns.saturating_sub(self.now()));
            for index in 0..self.epoll.wait(Some(limit))? {
                self.ready(self.epoll.token(index) as usize);
            }
        }
    }

    /// Opens the measured window and says when that was.
    fn start_counting(&mut self, at: &mut impl FnMut(Edge)) -> u64 {
        at(Edge::Start);
        self.counting = true;
        self.now()
    }

    /// Fixed rate: starts the requests that are due, as far as connections are free.
    /// Returns when the next one is due; `None` when only a free connection helps, or
    /// no more are to be asked.
    fn start_due(&mut self, first_ns: u64, rate: f64) -> Option<u64> {
        let due = |index: u64| first_ns + (index as f64 * 1e9 / rate) as u64;
        loop {
            if !self.may_ask() {
                return None;
            }
            let (intended_ns, now_ns) = (due(self.asked), self.now());
            if intended_ns > now_ns {
                return Some(intended_ns);
            }
            let Some(slot) = self.idle.pop_front() else {
                if self.counting {
                    let behind = ((now_ns - intended_ns) as f64 * rate / 1e9) as u64 + 1;
                    self.longest_backlog = self.longest_backlog.max(behind);
                }
                return None;
            };
            self.ask(slot, intended_ns);
        }
    }

    /// Connects and, in a closed loop, asks.
    fn begin(&mut self, slot: usize) {
        let source = (!self.plan.sources.is_empty())
            .then(|| self.plan.sources[self.next_source % self.plan.sources.len()]);
        self.next_source += 1;
        let opened = connect::open(self.plan.target, source, false).and_then(|stream| {
            self.epoll.add(&stream, slot as u64, Interest::Read)?;
            Ok(stream)
        });
        match opened {
            Ok(stream) => {
                self.slots[slot].stream = Some(stream);
                self.slots[slot].state = State::Idle;
                self.next(slot);
            }
            Err(_) => {
                if self.may_ask() {
                    self.asked += 1;
                    self.fail(slot, Failure::Connect);
                }
            }
        }
    }

    /// A connection has nothing to do: asks again, or waits for its turn.
    fn next(&mut self, slot: usize) {
        match self.plan.mode {
            Mode::Rate(_) => self.idle.push_back(slot),
            Mode::KeepAlive | Mode::ConnectionPerRequest => {
                if self.may_ask() {
                    self.ask(slot, self.now());
                }
            }
        }
    }

    fn may_ask(&self) -> bool {
        match self.plan.limit {
            Limit::Time(_) => true,
            Limit::Requests(requests) => self.asked < requests,
        }
    }

    fn ask(&mut self, slot: usize, intended_ns: u64) {
        self.asked += 1;
        let now_ns = match self.plan.mode {
            Mode::Rate(_) => self.now(),
            Mode::KeepAlive | Mode::ConnectionPerRequest => intended_ns,
        };
        let connection = &mut self.slots[slot];
        connection.intended_ns = intended_ns;
        connection.asked_ns = now_ns;
        connection.sent = 0;
        connection.head.clear();
        // On loopback the handshake is over when `connect` returns, so the request can
        // nearly always be sent without waiting for room first.
        self.send(slot);
    }

    fn send(&mut self, slot: usize) {
        let connection = &mut self.slots[slot];
        let Some(stream) = connection.stream.as_mut() else { return };
        let waited = connection.state == State::Asking;
        match stream.write(&self.plan.request[connection.sent..]) {
            Ok(count) => connection.sent += count,
            Err(error) if would_wait(&error) => {}
            Err(_) => {
                let kind = if connection.sent == 0 { Failure::Connect } else { Failure::Closed };
                return self.fail(slot, kind);
            }
        }
        let all = connection.sent == self.plan.request.len();
        connection.state = if all { State::Awaiting } else { State::Asking };
        if waited == all {
            let interest = if all { Interest::Read } else { Interest::Write };
            if self.epoll.modify(&*stream, slot as u64, interest).is_err() {
                self.fail(slot, Failure::Closed);
            }
        }
    }

    fn ready(&mut self, slot: usize) {
        match self.slots[slot].state {
            State::Absent => {}
            State::Idle => self.idle_ready(slot),
            State::Asking => self.send(slot),
            State::Awaiting => self.receive_head(slot),
            State::Body(left) => self.receive_body(slot, left),
        }
    }

    /// Something happens though nothing was asked: the other side has ended the
    /// connection, which is its right, or talks out of turn.
    fn idle_ready(&mut self, slot: usize) {
        let Some(stream) = self.slots[slot].stream.as_mut() else { return };
        match stream.read(&mut self.buffer) {
            Err(error) if would_wait(&error) => return,
            Ok(0) | Err(_) => {}
            Ok(_) => {
                if self.counting {
                    self.failures.add(Failure::Framing);
                }
            }
        }
        self.close(slot);
        self.idle.retain(|idle| *idle != slot);
        self.pause(slot);
    }

    fn receive_head(&mut self, slot: usize) {
        let connection = &mut self.slots[slot];
        let Some(stream) = connection.stream.as_mut() else { return };
        let count = match stream.read(&mut self.buffer) {
            Ok(0) => return self.fail(slot, Failure::Closed),
            Ok(count) => count,
            Err(error) if would_wait(&error) => return,
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
                return self.fail(slot, Failure::Connect);
            }
            Err(_) => return self.fail(slot, Failure::Closed),
        };
        let bytes = if connection.head.is_empty() {
            &self.buffer[..count]
        } else {
            connection.head.extend_from_slice(&self.buffer[..count]);
            &connection.head[..]
        };
        match answer::parse(bytes, self.bodiless) {
            Parsed::Partial if connection.head.is_empty() => {
                connection.head.extend_from_slice(&self.buffer[..count]);
            }
            Parsed::Partial => {}
            Parsed::Bad => self.fail(slot, Failure::Framing),
            Parsed::Head(answer) => {
                let here = (bytes.len() - answer.head) as u64;
                if here > answer.body {
                    return self.fail(slot, Failure::Framing);
                }
                connection.good = answer.good;
                connection.close = answer.close;
                let left = answer.body - here;
                if left == 0 {
                    return self.finish(slot);
                }
                connection.state = State::Body(left);
                if count == self.buffer.len() {
                    self.receive_body(slot, left);
                }
            }
        }
    }

    fn receive_body(&mut self, slot: usize, left: u64) {
        let connection = &mut self.slots[slot];
        let Some(stream) = connection.stream.as_ref() else { return };
        let most = left.min(DROP_AT_ONCE as u64) as usize;
        let room = &mut self.dropped[..most];
        match SockRef::from(stream).recv_with_flags(room, libc::MSG_TRUNC) {
            Ok(0) => self.fail(slot, Failure::Closed),
            Ok(count) if count as u64 == left => self.finish(slot),
            Ok(count) => connection.state = State::Body(left - count as u64),
            Err(error) if would_wait(&error) => {}
            Err(_) => self.fail(slot, Failure::Closed),
        }
    }

    /// The answer is whole.
    fn finish(&mut self, slot: usize) {
        self.over += 1;
        let now_ns = self.now();
        let connection = &mut self.slots[slot];
        if self.counting {
            if connection.good {
                self.answered += 1;
                self.latency.record(now_ns.saturating_sub(connection.intended_ns));
            } else {
                self.failures.add(Failure::Status);
            }
        }
        connection.state = State::Idle;
        if connection.close || self.plan.mode == Mode::ConnectionPerRequest {
            self.close(slot);
            if self.may_ask() {
                self.begin(slot);
            }
        } else {
            self.next(slot);
        }
    }

    fn fail(&mut self, slot: usize, kind: Failure) {
        self.over += 1;
        if self.counting {
            self.failures.add(kind);
        }
        self.close(slot);
        self.pause(slot);
    }

    fn fail_late(&mut self, now_ns: u64) {
        let within_ns = nanos(self.plan.answer_within);
        for slot in 0..self.slots.len() {
            let connection = &self.slots[slot];
            let waiting = !matches!(connection.state, State::Absent | State::Idle);
            if waiting && now_ns.saturating_sub(connection.asked_ns) > within_ns {
                self.fail(slot, Failure::Late);
            }
        }
    }

    fn close(&mut self, slot: usize) {
        self.slots[slot].stream = None;
        self.slots[slot].state = State::Absent;
    }

    fn pause(&mut self, slot: usize) {
        self.paused.push_back((self.now() + PAUSE_NS, slot));
    }

    fn now(&self) -> u64 {
        nanos(self.origin.elapsed())
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

fn would_wait(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted | ErrorKind::NotConnected)
}
