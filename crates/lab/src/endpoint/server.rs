//! The endpoints' one thread: accept, read, answer; at once, or after the service that an endpoint is
//! said to need.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{self, ErrorKind, Read};
use std::net::TcpListener;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use socket2::SockRef;

use super::answers::{Answers, GARBAGE, Outcome};
use super::condition::Fault;
use super::connection::{Connection, Next, Site};
use super::held::{Held, HeldRequest};
use super::place::{Arrival, Behaviour, Counters, Ended, Job, Place};
use super::request::Own;
use super::stats;
use super::works::{MOST_THREADS, Works};
use super::{EndpointSpec, LARGE_BODY};
use crate::epoll::{Epoll, Interest};
use crate::machine;

/// Room for what one `recv` takes; a request with a large body comes in pieces of it.
const READ_BUFFER: usize = 64 * 1024;
/// Send buffer asked for, so that a 64 KiB answer leaves in one `send`.
const SEND_BUFFER: usize = 256 * 1024;

/// The token of the descriptor whose end means stop. Listeners and connections follow.
const STOP: u64 = 0;
/// The token of the descriptor by which threads say that work is done.
const WORKED: u64 = u64::MAX;

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
    held: Held,
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
            held: Held::default(),
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
            let served_ns = self.served.peek().map(|Reverse((due_ns, ..))| *due_ns);
            let due_ns = served_ns.into_iter().chain(self.held.due_ns()).min();
            let limit =
                due_ns.map(|due_ns| Duration::from_nanos(due_ns.saturating_sub(self.now_ns())));
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
            self.go_on_with_held(&mut freed)?;
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
            if !self.is_there(slot, generation) {
                continue;
            }
            let goes_on = match ended {
                Ended::Good => self.answer(slot, Outcome::Good)?,
                Ended::Failed => self.answer(slot, Outcome::Failed)?,
                Ended::Ill(fault) => {
                    self.show(HeldRequest { endpoint, job, fault, sent: 0 }, now_ns)?
                }
            };
            if !goes_on {
                self.connections[slot] = None;
                freed.push(slot);
            }
        }
        Ok(())
    }

    /// Whether the connection that had this slot is still the same.
    fn is_there(&self, slot: usize, generation: u64) -> bool {
        let there = self.connections[slot].as_ref();
        there.is_some_and(|connection| connection.generation == generation)
    }

    /// Shows an endpoint's fault instead of an answer; false when the connection is over.
    fn show(&mut self, held: HeldRequest, now_ns: u64) -> io::Result<bool> {
        let slot = held.job.slot;
        let Some(connection) = self.connections[slot].as_mut() else { return Ok(true) };
        let Some(request) = connection.pending else { return Ok(true) };
        let answers = &self.answers[held.endpoint];
        let bytes = match held.fault {
            Fault::Close => return Ok(false),
            Fault::Reset => {
                SockRef::from(&connection.stream).set_linger(Some(Duration::ZERO))?;
                return Ok(false);
            }
            Fault::Trickle if request.head_only => return self.answer(slot, Outcome::Good),
            Fault::Hang => {
                self.held.hold(held, now_ns);
                return Ok(true);
            }
            Fault::Trickle => {
                let (bytes, head) = answers.large(&request);
                let sent = if held.sent == 0 { head } else { held.sent + 1 };
                self.held.hold(HeldRequest { sent, ..held }, now_ns);
                &bytes[held.sent..sent]
            }
            Fault::Garbage => GARBAGE,
            Fault::Truncate => {
                let bytes = answers.good(&request);
                &bytes[..bytes.len() - 1]
            }
        };
        if matches!(held.fault, Fault::Garbage | Fault::Truncate) {
            connection.pending = None;
            connection.closing = true;
        }
        if connection.send(bytes).is_none() {
            return Ok(false);
        }
        let next = connection.next();
        self.go_on(slot, next)
    }

    /// Goes on with requests that are held back: another byte, or the end of it when the endpoint has
    /// another condition.
    fn go_on_with_held(&mut self, freed: &mut Vec<usize>) -> io::Result<()> {
        let now_ns = self.now_ns();
        for held in self.held.take_due(now_ns) {
            let Job { slot, generation, .. } = held.job;
            if !self.is_there(slot, generation) {
                continue;
            }
            let is_ill = self.places[held.endpoint].fault() == Some(held.fault);
            let goes_on = match held.fault {
                Fault::Trickle if held.sent > LARGE_BODY => self.finish(held)?,
                Fault::Trickle if !is_ill => self.finish(held)?,
                _ if is_ill => self.show(held, now_ns)?,
                _ => self.answer(slot, Outcome::Good)?,
            };
            if !goes_on {
                self.connections[slot] = None;
                freed.push(slot);
            }
        }
        Ok(())
    }

    /// Sends the rest of an answer that has trickled; false when the connection is over.
    fn finish(&mut self, held: HeldRequest) -> io::Result<bool> {
        let slot = held.job.slot;
        let Some(connection) = self.connections[slot].as_mut() else { return Ok(true) };
        let Some(request) = connection.pending.take() else { return Ok(true) };
        connection.queued = false;
        let (bytes, _) = self.answers[held.endpoint].large(&request);
        if connection.send(&bytes[held.sent..]).is_none() {
            return Ok(false);
        }
        self.next_of(slot)
    }

    /// Answers the request that waits for it, and goes on; false when the connection is over.
    fn answer(&mut self, slot: usize, outcome: Outcome) -> io::Result<bool> {
        let Some(connection) = self.connections[slot].as_mut() else { return Ok(true) };
        let Some(request) = connection.pending.take() else { return Ok(true) };
        connection.queued = false;
        let answers = &self.answers[connection.endpoint];
        let bytes = answers.of(&request, outcome);
        if connection.send(bytes).is_none() {
            return Ok(false);
        }
        // A client that sends ahead of a full line is not answered 503 for ever.
        connection.closing |= outcome == Outcome::Refused;
        self.next_of(slot)
    }

    /// Looks at the connection's next request, behind an answer; false when the connection is over.
    fn next_of(&mut self, slot: usize) -> io::Result<bool> {
        let Some(connection) = self.connections[slot].as_mut() else { return Ok(true) };
        let answers = &self.answers[connection.endpoint];
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
            let connection = Connection::new(stream, endpoint, self.generation);
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
