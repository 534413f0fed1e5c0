//! The endpoints' one thread: accept, read, answer; at once, or after the service that an endpoint is
//! said to need.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use socket2::SockRef;

use super::place::{Arrival, Behaviour, Counters, Ended, Job, Place};
use super::request::{self, Own, Parsed, Request};
use super::stats;
use super::works::{MOST_THREADS, Works};
use super::{EndpointSpec, LARGE_BODY, NAME_HEADER};
use crate::epoll::{Epoll, Interest};
use crate::machine;

/// Room for what one `recv` takes; a request with a large body comes in pieces of it.
const READ_BUFFER: usize = 64 * 1024;
/// Send buffer asked for, so that a 64 KiB answer leaves in one `send`.
const SEND_BUFFER: usize = 256 * 1024;
/// Sent when a client asked for it before its body.
const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";
/// Sent to what cannot be read.
const BAD_REQUEST: &[u8] =
    b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";

/// Sent to who wants a WebSocket by the key of RFC 6455's own example, as [`crate::idle`] does.
const SWITCHED: &[u8] = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\
    Connection: Upgrade\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";

/// What a connection may send while it waits for an answer.
const MOST_AHEAD: usize = 1 << 20;

/// The token of the descriptor whose end means stop. Listeners and connections follow.
const STOP: u64 = 0;
/// The token of the descriptor by which threads say that work is done.
const WORKED: u64 = u64::MAX;

/// What an endpoint says, made once.
struct Answers {
    usual: Kinds,
    /// To HTTP/1.0, where a client has to be told that its connection stays.
    kept: Kinds,
    refused: Box<[u8]>,
}

struct Kinds {
    small: Box<[u8]>,
    small_head: usize,
    large: Box<[u8]>,
    large_head: usize,
    failed: Box<[u8]>,
}

impl Answers {
    fn new(name: &str, body: Option<usize>) -> Answers {
        let small = body.map_or_else(|| format!("{name}\n").into_bytes(), |size| vec![b'x'; size]);
        let kinds = |more: &str| {
            let make = |status: &str, body: &[u8]| made(&format!("{status}{more}"), name, body);
            let (small, small_head) = make("200 OK", &small);
            let (large, large_head) = make("200 OK", &[b'x'; LARGE_BODY]);
            let (failed, _) = make("500 Internal Server Error", b"");
            Kinds { small, small_head, large, large_head, failed }
        };
        let (refused, _) = made("503 Service Unavailable\r\nConnection: close", name, b"");
        Answers { usual: kinds(""), kept: kinds("\r\nConnection: keep-alive"), refused }
    }

    fn kinds(&self, request: &Request) -> &Kinds {
        if request.old && !request.close { &self.kept } else { &self.usual }
    }

    /// The bytes to send for a request.
    fn choose(&self, request: &Request) -> &[u8] {
        let kinds = self.kinds(request);
        let (answer, head) = match request.large {
            true => (&kinds.large, kinds.large_head),
            false => (&kinds.small, kinds.small_head),
        };
        if request.head_only { &answer[..head] } else { answer }
    }
}

/// An answer, and the length of its head.
fn made(status: &str, name: &str, body: &[u8]) -> (Box<[u8]>, usize) {
    let mut answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {}\r\n\
         {NAME_HEADER}: {name}\r\n\r\n",
        body.len()
    )
    .into_bytes();
    let head = answer.len();
    answer.extend_from_slice(body);
    (answer.into_boxed_slice(), head)
}

/// One accepted connection.
struct Connection {
    stream: TcpStream,
    endpoint: usize,
    interest: Interest,
    /// Received and not yet dealt with: a part of a head, or requests behind an
    /// answer that the client does not take.
    input: Vec<u8>,
    /// Tells it from others that had its place before.
    generation: u64,
    /// The request whose body is being read.
    current: Option<Request>,
    /// The request that is in service or in line; no other is looked at before it is answered.
    pending: Option<Request>,
    /// It has arrived where it is served.
    queued: bool,
    /// It has asked for the counters, or for another condition.
    asks: Option<Own>,
    /// The part of an answer that did not fit the socket.
    unsent: Vec<u8>,
    /// It is a WebSocket: what comes is thrown away.
    switched: bool,
    /// Ends once `unsent` is empty.
    closing: bool,
}

/// What a connection waits for next.
enum Next {
    Input,
    Room,
    End,
}

/// All listeners and connections of the thread.
pub(super) struct Server {
    epoll: Epoll,
    answers: Vec<Answers>,
    listeners: Vec<TcpListener>,
    counters: Arc<[Counters]>,
    places: Vec<Place>,
    works: Vec<Option<Works>>,
    /// Whoever is served, by when: the end, the endpoint, the request.
    served: BinaryHeap<Reverse<(u64, usize, Job)>>,
    origin: Instant,
    /// Connections so far.
    generation: u64,
    connections: Vec<Option<Connection>>,
    free: Vec<usize>,
    buffer: Box<[u8]>,
    names: Vec<String>,
    worked: UnixStream,
    /// The other end of `worked`, kept: the end of the last one would be readable for ever, and nobody
    /// works for an endpoint that only waits.
    _wake: UnixStream,
    _stopped: UnixStream,
}

impl Server {
    /// Registers the listeners; `stopped` ends [`Server::run`] when its other end closes.
    pub(super) fn new(
        specs: Vec<EndpointSpec>,
        listeners: Vec<TcpListener>,
        counters: Arc<[Counters]>,
        stopped: UnixStream,
    ) -> io::Result<Server> {
        let epoll = Epoll::new()?;
        epoll.add(&stopped, STOP, Interest::Read)?;
        for (index, listener) in listeners.iter().enumerate() {
            listener.set_nonblocking(true)?;
            epoll.add(listener, STOP + 1 + index as u64, Interest::Read)?;
        }
        let (worked, wake) = UnixStream::pair()?;
        worked.set_nonblocking(true)?;
        wake.set_nonblocking(true)?;
        epoll.add(&worked, WORKED, Interest::Read)?;
        let works = |behaviour: &Behaviour| match behaviour.works {
            false => Ok(None),
            true => {
                let usual = std::thread::available_parallelism().map_or(1, usize::from);
                Works::start(behaviour.concurrency.unwrap_or(usual), &wake).map(Some)
            }
        };
        // Work is served by as many threads as there are, no more.
        let behaviours = specs.iter().map(|spec| match &spec.behaviour {
            behaviour if behaviour.works => {
                let usual = std::thread::available_parallelism().map_or(1, usize::from);
                let threads = behaviour.concurrency.unwrap_or(usual).clamp(1, MOST_THREADS);
                Behaviour { concurrency: Some(threads), ..behaviour.clone() }
            }
            behaviour => behaviour.clone(),
        });
        let behaviours: Vec<_> = behaviours.collect();
        Ok(Server {
            epoll,
            answers: specs
                .iter()
                .map(|spec| Answers::new(&spec.name, spec.behaviour.body))
                .collect(),
            works: behaviours.iter().map(works).collect::<io::Result<_>>()?,
            places: behaviours.into_iter().map(Place::new).collect(),
            served: BinaryHeap::new(),
            origin: Instant::now(),
            generation: 0,
            names: specs.into_iter().map(|spec| spec.name).collect(),
            worked,
            _wake: wake,
            listeners,
            counters,
            connections: Vec::new(),
            free: Vec::new(),
            buffer: vec![0; READ_BUFFER].into_boxed_slice(),
            _stopped: stopped,
        })
    }

    /// Serves until told to stop.
    pub(super) fn run(mut self) -> io::Result<()> {
        let first_connection = STOP + 1 + self.listeners.len() as u64;
        machine::exact_timers();
        loop {
            let limit = self.served.peek().map(|Reverse((due_ns, ..))| {
                Duration::from_nanos(due_ns.saturating_sub(self.now_ns()))
            });
            let ready = self.epoll.wait(limit)?;
            // A slot freed in this batch is not used again before the next one, so that
            // an old readiness never reaches a new connection.
            let mut freed = Vec::new();
            for index in 0..ready {
                match self.epoll.token(index) {
                    STOP => return Ok(()),
                    WORKED => self.take_worked(),
                    token if token < first_connection => {
                        self.accept((token - STOP - 1) as usize)?
                    }
                    token => {
                        let slot = (token - first_connection) as usize;
                        if !self.serve(slot)? {
                            self.connections[slot] = None;
                            freed.push(slot);
                        }
                    }
                }
            }
            self.end_services(&mut freed)?;
            self.free.append(&mut freed);
        }
    }

    fn now_ns(&self) -> u64 {
        u64::try_from(self.origin.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// Takes a request to where it is served, if this connection has one.
    fn arrive(&mut self, slot: usize) -> io::Result<bool> {
        let Some(connection) = self.connections[slot].as_mut() else { return Ok(true) };
        if connection.pending.is_none() || connection.queued {
            return Ok(true);
        }
        connection.queued = true;
        let (endpoint, generation) = (connection.endpoint, connection.generation);
        let object = connection.pending.map_or(0, |request| request.object);
        let job = Job { slot, generation, object };
        match self.places[endpoint].arrive(job, &self.counters[endpoint]) {
            Arrival::Waits => Ok(true),
            Arrival::Serve(time) => {
                self.serve_for(endpoint, job, time);
                Ok(true)
            }
            Arrival::Refused => self.answer(slot, Outcome::Refused),
            Arrival::Fails => self.answer(slot, Outcome::Failed),
        }
    }

    fn serve_for(&mut self, endpoint: usize, job: Job, time: Duration) {
        match &self.works[endpoint] {
            Some(works) => works.begin(job, time),
            None => {
                let due_ns = self.now_ns() + time.as_nanos() as u64;
                self.served.push(Reverse((due_ns, endpoint, job)));
            }
        }
    }

    /// Work that threads have done is due now.
    fn take_worked(&mut self) {
        let mut bytes = [0; 256];
        while self.worked.read(&mut bytes).is_ok_and(|count| count == bytes.len()) {}
        let works = self.works.iter().enumerate();
        let done = works.filter_map(|(endpoint, works)| Some((endpoint, works.as_ref()?.done())));
        for (endpoint, jobs) in done {
            let due = jobs.into_iter().map(|job| Reverse((0, endpoint, job)));
            self.served.extend(due);
        }
    }

    /// Answers those whose service is over, and begins to serve the next in line.
    fn end_services(&mut self, freed: &mut Vec<usize>) -> io::Result<()> {
        while let Some(Reverse((due_ns, endpoint, job))) = self.served.peek().copied()
            && let now_ns = self.now_ns()
            && due_ns <= now_ns
        {
            self.served.pop();
            let counters = &self.counters[endpoint];
            // What threads have worked on is due whenever it is done.
            let late_ns = if due_ns == 0 { 0 } else { now_ns - due_ns };
            counters.late_ns.fetch_add(late_ns, Ordering::Relaxed);
            let (next, ended) = self.places[endpoint].served(job, counters);
            let (slot, generation) = (job.slot, job.generation);
            if let Some((job, time)) = next {
                self.serve_for(endpoint, job, time);
            }
            let there = self.connections[slot].as_ref();
            if there.is_none_or(|connection| connection.generation != generation) {
                continue;
            }
            let goes_on = match ended {
                Ended::Good => self.answer(slot, Outcome::Good)?,
                Ended::Failed => self.answer(slot, Outcome::Failed)?,
                Ended::Broken => false,
            };
            if !goes_on {
                self.connections[slot] = None;
                freed.push(slot);
            }
        }
        Ok(())
    }

    /// Answers the request that waits for it, and goes on; false when the connection is over.
    fn answer(&mut self, slot: usize, outcome: Outcome) -> io::Result<bool> {
        let Some(connection) = self.connections[slot].as_mut() else { return Ok(true) };
        let Some(request) = connection.pending.take() else { return Ok(true) };
        connection.queued = false;
        let answers = &self.answers[connection.endpoint];
        let bytes = match outcome {
            Outcome::Good => answers.choose(&request),
            Outcome::Failed => &answers.kinds(&request).failed,
            Outcome::Refused => &answers.refused,
        };
        if connection.send(bytes).is_none() {
            return Ok(false);
        }
        // Who sends ahead of a full line is not answered 503 for ever.
        connection.closing |= matches!(outcome, Outcome::Refused);
        let counters = &self.counters[connection.endpoint];
        let place = &self.places[connection.endpoint];
        let site = Site { answers, counters, plain: place.is_plain(), keeps: place.keeps() };
        let next = match connection.unsent.is_empty() && !connection.closing {
            true => connection.answer_kept(&site),
            false => connection.next(),
        };
        self.go_on(slot, next)
    }

    /// Waits for what the connection needs next; false when it is over.
    fn go_on(&mut self, slot: usize, next: Next) -> io::Result<bool> {
        if let Some(connection) = self.connections[slot].as_mut()
            && let Some(own) = connection.asks.take()
        {
            if let Own::Set(condition) = own {
                self.places[connection.endpoint].set(condition);
            }
            let stats = stats::answer(&self.names, &self.counters);
            if connection.send(&stats).is_none() {
                return Ok(false);
            }
            let next = connection.next();
            return self.go_on(slot, next);
        }
        let first_connection = STOP + 1 + self.listeners.len() as u64;
        let Some(connection) = self.connections[slot].as_mut() else { return Ok(true) };
        let interest = match next {
            Next::End => return Ok(false),
            Next::Room => Interest::Write,
            Next::Input => Interest::Read,
        };
        if connection.interest != interest {
            connection.interest = interest;
            self.epoll.modify(&connection.stream, first_connection + slot as u64, interest)?;
        }
        self.arrive(slot)
    }

    fn accept(&mut self, endpoint: usize) -> io::Result<()> {
        let first_connection = STOP + 1 + self.listeners.len() as u64;
        loop {
            let stream = match self.listeners[endpoint].accept() {
                Ok((stream, _)) => stream,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::ConnectionAborted => continue,
                // Without descriptors the connection stays in the queue and is offered again.
                Err(error) if error.raw_os_error() == Some(libc::EMFILE) => return Ok(()),
                Err(error) => return Err(error),
            };
            stream.set_nonblocking(true)?;
            stream.set_nodelay(true)?;
            SockRef::from(&stream).set_send_buffer_size(SEND_BUFFER)?;
            self.counters[endpoint].connections.fetch_add(1, Ordering::Relaxed);
            let slot = self.free.pop().unwrap_or(self.connections.len());
            self.epoll.add(&stream, first_connection + slot as u64, Interest::Read)?;
            let connection = Connection {
                stream,
                endpoint,
                interest: Interest::Read,
                input: Vec::new(),
                generation: self.generation,
                current: None,
                pending: None,
                queued: false,
                asks: None,
                unsent: Vec::new(),
                switched: false,
                closing: false,
            };
            self.generation += 1;
            if slot == self.connections.len() {
                self.connections.push(Some(connection));
            } else {
                self.connections[slot] = Some(connection);
            }
        }
    }

    /// Does what a ready connection allows; false when it is over.
    fn serve(&mut self, slot: usize) -> io::Result<bool> {
        let Some(connection) = self.connections[slot].as_mut() else { return Ok(true) };
        let site = Site {
            answers: &self.answers[connection.endpoint],
            counters: &self.counters[connection.endpoint],
            plain: self.places[connection.endpoint].is_plain(),
            keeps: self.places[connection.endpoint].keeps(),
        };
        let next = if connection.unsent.is_empty() {
            connection.receive(&site, &mut self.buffer)
        } else {
            connection.flush(&site)
        };
        self.go_on(slot, next)
    }
}

/// What a connection needs to know of its endpoint.
struct Site<'a> {
    answers: &'a Answers,
    counters: &'a Counters,
    /// Answers are given at once.
    plain: bool,
    /// It matters what is asked for.
    keeps: bool,
}

/// What a service ends with.
enum Outcome {
    Good,
    Failed,
    Refused,
}

impl Connection {
    fn receive(&mut self, site: &Site<'_>, buffer: &mut [u8]) -> Next {
        let count = match self.stream.read(buffer) {
            Ok(0) => return Next::End,
            Ok(count) => count,
            Err(error) if would_wait(&error) => return Next::Input,
            Err(_) => return Next::End,
        };
        if self.pending.is_some() && self.input.len() + count > MOST_AHEAD {
            return Next::End;
        }
        if self.input.is_empty() {
            // The usual case: whole requests, answered out of the thread's buffer.
            match self.answer_all(&buffer[..count], site) {
                Some(taken) => self.input.extend_from_slice(&buffer[taken..count]),
                None => return Next::End,
            }
            self.next()
        } else {
            self.input.extend_from_slice(&buffer[..count]);
            self.answer_kept(site)
        }
    }

    fn flush(&mut self, site: &Site<'_>) -> Next {
        match self.stream.write(&self.unsent) {
            Ok(count) => drop(self.unsent.drain(..count)),
            Err(error) if would_wait(&error) => {}
            Err(_) => return Next::End,
        }
        if self.unsent.is_empty() && !self.closing { self.answer_kept(site) } else { self.next() }
    }

    fn answer_kept(&mut self, site: &Site<'_>) -> Next {
        let mut input = std::mem::take(&mut self.input);
        let Some(taken) = self.answer_all(&input, site) else { return Next::End };
        input.drain(..taken);
        self.input = input;
        self.next()
    }

    fn next(&self) -> Next {
        match (self.unsent.is_empty(), self.closing) {
            (false, _) => Next::Room,
            (true, true) if self.pending.is_none() && self.asks.is_none() => Next::End,
            (true, _) => Next::Input,
        }
    }

    /// Answers the requests in `bytes` until one is not whole, an answer does not fit
    /// the socket, or the connection is to end. Returns how many bytes are dealt with;
    /// `None` when the connection is broken.
    fn answer_all(&mut self, bytes: &[u8], site: &Site<'_>) -> Option<usize> {
        let mut taken = 0;
        while self.unsent.is_empty()
            && !self.closing
            && self.pending.is_none()
            && self.asks.is_none()
        {
            if self.switched {
                return Some(bytes.len());
            }
            let Some(request) = &mut self.current else {
                match request::parse(&bytes[taken..]) {
                    Parsed::Partial => break,
                    Parsed::Bad => self.refuse()?,
                    Parsed::Head(mut request, length) => {
                        if site.keeps {
                            request.object = request::object(&bytes[taken..taken + length]);
                        }
                        taken += length;
                        self.current = Some(request);
                        if request.expects && bytes.len() == taken {
                            self.send(CONTINUE)?;
                        }
                    }
                }
                continue;
            };
            let Some(skipped) = request.body.skip(&bytes[taken..]) else {
                self.refuse()?;
                break;
            };
            taken += skipped;
            if !request.body.is_done() {
                break;
            }
            let request = *request;
            self.current = None;
            self.closing = request.close;
            match request.own {
                Own::No => {}
                Own::Health => {
                    self.send(site.answers.choose(&request))?;
                    continue;
                }
                own => {
                    self.closing = true;
                    self.asks = Some(own);
                    break;
                }
            }
            site.counters.hits.fetch_add(1, Ordering::Relaxed);
            self.switched = request.upgrade;
            match request.upgrade {
                true => self.send(SWITCHED)?,
                false if site.plain => {
                    self.send(site.answers.choose(&request))?;
                }
                false => self.pending = Some(request),
            }
        }
        Some(taken)
    }

    fn refuse(&mut self) -> Option<()> {
        self.closing = true;
        self.send(BAD_REQUEST)
    }

    /// Sends, and keeps what the socket does not take.
    fn send(&mut self, bytes: &[u8]) -> Option<()> {
        if !self.unsent.is_empty() {
            self.unsent.extend_from_slice(bytes);
            return Some(());
        }
        match self.stream.write(bytes) {
            Ok(count) => self.unsent.extend_from_slice(&bytes[count..]),
            Err(error) if would_wait(&error) => self.unsent.extend_from_slice(bytes),
            Err(_) => return None,
        }
        Some(())
    }
}

fn would_wait(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}
