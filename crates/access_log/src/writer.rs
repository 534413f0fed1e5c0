//! The thread that writes one destination's lines, and waits for it as long as it has to.
//!
//! What cannot be written is tried again, first soon, then every few seconds; meanwhile full buffers
//! queue up, and when there is no more room their workers drop and count them. A line is never torn
//! apart by that: a file that takes a part of one gets the rest, and a file that is opened anew gets
//! the whole of it.

use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use crate::destination::{Destination, Server};
use crate::outlet::Outlet;
use crate::sink::{Buffer, Message, State};

/// How soon what failed is tried again, at first and at last.
const AGAIN_FIRST: Duration = Duration::from_millis(20);
const AGAIN_LAST: Duration = Duration::from_secs(2);
/// A reader that takes nothing is a trouble after so long.
const SLOW: Duration = Duration::from_secs(2);

/// Writes one destination's lines until nobody can send any more.
pub(crate) struct Writer {
    destination: Destination,
    state: Arc<State>,
    outlet: Option<Outlet>,
    pause: Duration,
    /// Since when nothing has been taken.
    stuck_since: Option<Instant>,
}

impl Writer {
    pub(crate) fn new(destination: Destination, state: Arc<State>) -> Writer {
        Writer { destination, state, outlet: None, pause: AGAIN_FIRST, stuck_since: None }
    }

    /// Until nobody can send any more.
    pub(crate) fn run(mut self, queue: &Receiver<Message>) {
        self.open_or_say_why();
        loop {
            // A destination that is not open is tried without waiting for the next line.
            let message = match &self.outlet {
                Some(_) => queue.recv().map_err(|_| RecvTimeoutError::Disconnected),
                None => queue.recv_timeout(AGAIN_LAST),
            };
            match message {
                Ok(Message::Write(buffer)) => {
                    self.write(&buffer);
                    self.state.spend(buffer.bytes);
                }
                Ok(Message::Look) => self.reopen_if_asked(),
                Err(RecvTimeoutError::Timeout) => self.open_or_say_why(),
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    fn write(&mut self, buffer: &Buffer) {
        let bytes = &buffer.bytes;
        let mut done = 0;
        let mut before = 0;
        while done < bytes.len() {
            if self.state.reopen.load(Ordering::Relaxed) {
                self.reopen_if_asked();
                done = line_start(bytes, done);
            }
            match self.try_write(&bytes[done..]) {
                Ok(count) => {
                    before = done;
                    done += count;
                    self.went_well();
                }
                Err(error) => {
                    let is_told_late = self.outlet.as_ref().is_some_and(Outlet::is_told_late);
                    if is_told_late && error.kind() == ErrorKind::ConnectionRefused {
                        // It was the line before that nobody took.
                        done = before;
                    }
                    self.went_wrong(&error);
                    if self.state.closing.load(Ordering::Relaxed) {
                        let left = lines(&bytes[done..]);
                        self.state.dropped(left);
                        self.state.written(buffer.lines.saturating_sub(left), done as u64);
                        return;
                    }
                    // Woken by a reopening, and by the end of the process.
                    thread::park_timeout(self.pause);
                    self.pause = (self.pause * 2).min(AGAIN_LAST);
                }
            }
        }
        self.state.written(buffer.lines, bytes.len() as u64);
    }

    fn try_write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.outlet.is_none() {
            self.outlet = Some(Outlet::open(&self.destination)?);
        }
        let Some(outlet) = &mut self.outlet else { return Err(ErrorKind::NotConnected.into()) };
        let written = outlet.write(bytes);
        if let Err(error) = &written
            && outlet.is_by_line()
            && !matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
        {
            // A server that was started again has a new socket.
            self.outlet = None;
        }
        if matches!(&written, Err(error) if error.kind() == ErrorKind::BrokenPipe)
            && self.destination != Destination::Stdout
        {
            self.outlet = None;
        }
        written
    }

    fn went_well(&mut self) {
        self.pause = AGAIN_FIRST;
        if self.stuck_since.take().is_some() {
            self.state.set_trouble(None);
        }
    }

    fn went_wrong(&mut self, error: &io::Error) {
        let since = *self.stuck_since.get_or_insert_with(Instant::now);
        let is_slow = matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted);
        if !is_slow || since.elapsed() >= SLOW {
            self.state.set_trouble(Some(self.explain(error)));
        }
    }

    fn open_or_say_why(&mut self) {
        match Outlet::open(&self.destination) {
            Ok(outlet) => {
                self.outlet = Some(outlet);
                self.went_well();
            }
            Err(error) => self.went_wrong(&error),
        }
    }

    fn reopen_if_asked(&mut self) {
        if self.state.reopen.swap(false, Ordering::Relaxed)
            && self.destination != Destination::Stdout
        {
            // What is open stays so while there is nothing better.
            match Outlet::open(&self.destination) {
                Ok(outlet) => {
                    self.outlet = Some(outlet);
                    self.went_well();
                }
                Err(error) => self.went_wrong(&error),
            }
        }
    }

    /// What is wrong, and what to do.
    fn explain(&self, error: &io::Error) -> String {
        let remedy = match (&self.destination, error.kind()) {
            (_, ErrorKind::StorageFull | ErrorKind::QuotaExceeded) => "make room on the disk",
            (_, ErrorKind::FileTooLarge) => "the file may not grow further: rotate it",
            (_, ErrorKind::BrokenPipe) => "nobody reads the pipe: start its reader",
            (_, ErrorKind::WouldBlock) => "its reader takes nothing: look what it waits for",
            (Destination::File(_), ErrorKind::PermissionDenied) => {
                "let the user that subak runs as write there"
            }
            (Destination::File(_), ErrorKind::NotFound) => "make its directory",
            // A pipe without a reader.
            (Destination::File(_), _) if error.raw_os_error() == Some(6) => {
                "nobody reads the pipe: start its reader"
            }
            (Destination::Syslog(Server::Udp(_)), _) => "is a syslog server listening there?",
            (Destination::Syslog(Server::Unix(_)), _) => "start the syslog server",
            _ => "it is tried again every two seconds",
        };
        format!("cannot be written: {error}; {remedy}. Lines wait, then are dropped and counted")
    }
}

/// Where the line begins that `at` is in.
fn line_start(bytes: &[u8], at: usize) -> usize {
    bytes[..at].iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1)
}

fn lines(bytes: &[u8]) -> u64 {
    bytes.iter().filter(|byte| **byte == b'\n').count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_found_and_counted() {
        let bytes = b"one\ntwo\nthree\n";
        for (at, start) in [(0, 0), (3, 0), (4, 4), (6, 4), (13, 8), (14, 14)] {
            assert_eq!(line_start(bytes, at), start, "{at}");
        }
        assert_eq!((lines(bytes), lines(&bytes[5..])), (3, 2));
    }
}
