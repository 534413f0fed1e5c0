//! One connection to an endpoint: what it has sent is read, request by request, and answered.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::Ordering;

use super::answers::{Answers, BAD_REQUEST, CONTINUE, SWITCHED};
use super::place::Counters;
use super::request::{self, Own, Parsed, Request};
use crate::epoll::Interest;

/// What a connection may send while it waits for an answer.
const MOST_AHEAD: usize = 1 << 20;

/// One accepted connection.
pub(super) struct Connection {
    pub(super) stream: TcpStream,
    pub(super) endpoint: usize,
    pub(super) interest: Interest,
    /// Received and not yet dealt with: a part of a head, or requests behind an
    /// answer that the client does not take.
    input: Vec<u8>,
    /// Tells it from others that had its place before.
    pub(super) generation: u64,
    /// The request whose body is being read.
    current: Option<Request>,
    /// The request that is in service or in line; no other is looked at before it is answered.
    pub(super) pending: Option<Request>,
    /// It has arrived where it is served.
    pub(super) queued: bool,
    /// It has asked for the counters, or for another condition.
    pub(super) asks: Option<Own>,
    /// The part of an answer that did not fit the socket.
    pub(super) unsent: Vec<u8>,
    /// It is a WebSocket: what comes is thrown away.
    switched: bool,
    /// Ends once `unsent` is empty.
    pub(super) closing: bool,
}

/// What a connection waits for next.
pub(super) enum Next {
    Input,
    Room,
    End,
}

/// What a connection needs to know of its endpoint.
pub(super) struct Site<'a> {
    pub(super) answers: &'a Answers,
    pub(super) counters: &'a Counters,
    /// Answers are given at once.
    pub(super) plain: bool,
    /// It matters what is asked for.
    pub(super) keeps: bool,
}

impl Connection {
    /// One that has just been accepted, is watched for input, and has this number.
    pub(super) fn new(stream: TcpStream, endpoint: usize, generation: u64) -> Connection {
        Connection {
            stream,
            endpoint,
            interest: Interest::Read,
            input: Vec::new(),
            generation,
            current: None,
            pending: None,
            queued: false,
            asks: None,
            unsent: Vec::new(),
            switched: false,
            closing: false,
        }
    }

    pub(super) fn receive(&mut self, site: &Site<'_>, buffer: &mut [u8]) -> Next {
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

    pub(super) fn flush(&mut self, site: &Site<'_>) -> Next {
        match self.stream.write(&self.unsent) {
            Ok(count) => drop(self.unsent.drain(..count)),
            Err(error) if would_wait(&error) => {}
            Err(_) => return Next::End,
        }
        if self.unsent.is_empty() && !self.closing { self.answer_kept(site) } else { self.next() }
    }

    pub(super) fn answer_kept(&mut self, site: &Site<'_>) -> Next {
        let mut input = std::mem::take(&mut self.input);
        let Some(taken) = self.answer_all(&input, site) else { return Next::End };
        input.drain(..taken);
        self.input = input;
        self.next()
    }

    pub(super) fn next(&self) -> Next {
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
                    self.send(site.answers.good(&request))?;
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
                    self.send(site.answers.good(&request))?;
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
    pub(super) fn send(&mut self, bytes: &[u8]) -> Option<()> {
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
