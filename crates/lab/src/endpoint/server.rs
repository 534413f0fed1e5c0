//! The endpoints' one thread: accept, read, answer.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use socket2::SockRef;

use super::request::{self, Parsed, Request};
use super::{Counters, LARGE_BODY, NAME_HEADER};
use crate::epoll::{Epoll, Interest};

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

/// The token of the descriptor whose end means stop. Listeners and connections follow.
const STOP: u64 = 0;

/// What one endpoint says, made once.
struct Answers {
    small: Box<[u8]>,
    small_head: usize,
    large: Box<[u8]>,
    large_head: usize,
}

impl Answers {
    fn new(name: &str) -> Answers {
        let make = |body: &[u8]| {
            let mut answer = format!(
                "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {}\r\n\
                 {NAME_HEADER}: {name}\r\n\r\n",
                body.len()
            )
            .into_bytes();
            let head = answer.len();
            answer.extend_from_slice(body);
            (answer.into_boxed_slice(), head)
        };
        let (small, small_head) = make(format!("{name}\n").as_bytes());
        let (large, large_head) = make(&[b'x'; LARGE_BODY]);
        Answers { small, small_head, large, large_head }
    }

    /// The bytes to send for a request.
    fn choose(&self, large: bool, head_only: bool) -> &[u8] {
        let (answer, head) =
            if large { (&self.large, self.large_head) } else { (&self.small, self.small_head) };
        if head_only { &answer[..head] } else { answer }
    }
}

/// One accepted connection.
struct Connection {
    stream: TcpStream,
    endpoint: usize,
    /// Received and not yet dealt with: a part of a head, or requests behind an
    /// answer that the client does not take.
    input: Vec<u8>,
    /// The request whose body is being read.
    current: Option<Request>,
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
    connections: Vec<Option<Connection>>,
    free: Vec<usize>,
    buffer: Box<[u8]>,
    _stopped: UnixStream,
}

impl Server {
    /// Registers the listeners; `stopped` ends [`Server::run`] when its other end closes.
    pub(super) fn new(
        names: Vec<String>,
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
        Ok(Server {
            epoll,
            answers: names.iter().map(|name| Answers::new(name)).collect(),
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
        loop {
            let ready = self.epoll.wait(None)?;
            // A slot freed in this batch is not used again before the next one, so that
            // an old readiness never reaches a new connection.
            let mut freed = Vec::new();
            for index in 0..ready {
                match self.epoll.token(index) {
                    STOP => return Ok(()),
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
            self.free.append(&mut freed);
        }
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
                input: Vec::new(),
                current: None,
                unsent: Vec::new(),
                switched: false,
                closing: false,
            };
            if slot == self.connections.len() {
                self.connections.push(Some(connection));
            } else {
                self.connections[slot] = Some(connection);
            }
        }
    }

    /// Does what a ready connection allows; false when it is over.
    fn serve(&mut self, slot: usize) -> io::Result<bool> {
        let first_connection = STOP + 1 + self.listeners.len() as u64;
        let Some(connection) = self.connections[slot].as_mut() else { return Ok(true) };
        let answers = &self.answers[connection.endpoint];
        let hits = &self.counters[connection.endpoint].hits;
        let waited_for_room = !connection.unsent.is_empty();
        let next = if waited_for_room {
            connection.flush(answers, hits)
        } else {
            connection.receive(answers, hits, &mut self.buffer)
        };
        let interest = match next {
            Next::End => return Ok(false),
            Next::Room => Interest::Write,
            Next::Input => Interest::Read,
        };
        if waited_for_room != (interest == Interest::Write) {
            let token = first_connection + slot as u64;
            self.epoll.modify(&connection.stream, token, interest)?;
        }
        Ok(true)
    }
}

impl Connection {
    fn receive(&mut self, answers: &Answers, hits: &AtomicU64, buffer: &mut [u8]) -> Next {
        let count = match self.stream.read(buffer) {
            Ok(0) => return Next::End,
            Ok(count) => count,
            Err(error) if would_wait(&error) => return Next::Input,
            Err(_) => return Next::End,
        };
        if self.input.is_empty() {
            // The usual case: whole requests, answered out of the thread's buffer.
            match self.answer_all(&buffer[..count], answers, hits) {
                Some(taken) => self.input.extend_from_slice(&buffer[taken..count]),
                None => return Next::End,
            }
            self.next()
        } else {
            self.input.extend_from_slice(&buffer[..count]);
            self.answer_kept(answers, hits)
        }
    }

    fn flush(&mut self, answers: &Answers, hits: &AtomicU64) -> Next {
        match self.stream.write(&self.unsent) {
            Ok(count) => drop(self.unsent.drain(..count)),
            Err(error) if would_wait(&error) => {}
            Err(_) => return Next::End,
        }
        if self.unsent.is_empty() && !self.closing {
            self.answer_kept(answers, hits)
        } else {
            self.next()
        }
    }

    fn answer_kept(&mut self, answers: &Answers, hits: &AtomicU64) -> Next {
        let mut input = std::mem::take(&mut self.input);
        let Some(taken) = self.answer_all(&input, answers, hits) else { return Next::End };
        input.drain(..taken);
        self.input = input;
        self.next()
    }

    fn next(&self) -> Next {
        match (self.unsent.is_empty(), self.closing) {
            (false, _) => Next::Room,
            (true, true) => Next::End,
            (true, false) => Next::Input,
        }
    }

    /// Answers the requests in `bytes` until one is not whole, an answer does not fit
    /// the socket, or the connection is to end. Returns how many bytes are dealt with;
    /// `None` when the connection is broken.
    fn answer_all(&mut self, bytes: &[u8], answers: &Answers, hits: &AtomicU64) -> Option<usize> {
        let mut taken = 0;
        while self.unsent.is_empty() && !self.closing {
            if self.switched {
                return Some(bytes.len());
            }
            let Some(request) = &mut self.current else {
                match request::parse(&bytes[taken..]) {
                    Parsed::Partial => break,
                    Parsed::Bad => self.refuse()?,
                    Parsed::Head(request, length) => {
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
            hits.fetch_add(1, Ordering::Relaxed);
            self.closing = request.close;
            self.switched = request.upgrade;
            match request.upgrade {
                true => self.send(SWITCHED)?,
                false => self.send(answers.choose(request.large, request.head_only))?,
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
