//! The way of the log's lines to standard error: a bounded queue, and a thread that writes.
//!
//! A pipe that nobody reads, or a terminal that is held, blocks its writer. That is this thread alone:
//! workers and the control side hand a line over and go on, or drop and count it when the queue is
//! full. When lines are taken again, a line of the log says how many are missing.
//!
//! Until [`Queue::write_by_thread`] is called a line is written where it is logged: a thread that exists
//! before the process gives up root's rights would keep them.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use tracing_subscriber::fmt::MakeWriter;

/// Lines that may wait, and their bytes.
const MOST_LINES: usize = 4096;
const MOST_BYTES: usize = 1 << 20;
/// How long the last lines may take when the process ends.
const LAST_LINES: Duration = Duration::from_secs(1);
/// How soon a standard error that does not block is tried again.
const AGAIN: Duration = Duration::from_millis(20);

thread_local! {
    /// Whether this is the thread that writes the log. It may wait, and does not queue up behind itself.
    static IS_WRITER: Cell<bool> = const { Cell::new(false) };
}

/// The queue, as everything that logs sees it.
#[derive(Clone, Debug)]
pub(crate) struct Queue {
    lines: SyncSender<Message>,
    counts: Arc<Counts>,
    /// Standard error itself: without the standard library's lock, which a blocked writer would hold.
    direct: Arc<File>,
    /// The other end, until a thread has it.
    messages: Arc<Mutex<Option<Receiver<Message>>>>,
}

#[derive(Debug)]
enum Message {
    Line(Vec<u8>),
    /// The process ends; answered by dropping it.
    Flush(mpsc::Sender<()>),
}

#[derive(Debug, Default)]
struct Counts {
    has_thread: AtomicBool,
    waiting_bytes: AtomicUsize,
    dropped: AtomicU64,
}

/// Flushes the log when it is dropped, for [`LAST_LINES`] at most.
#[must_use = "the log is flushed when this is dropped"]
#[derive(Debug)]
pub(crate) struct Flush(Queue);

impl Queue {
    /// A queue in front of standard error, and what flushes it at the end.
    ///
    /// # Errors
    /// Standard error cannot be duplicated.
    pub(crate) fn new() -> io::Result<(Queue, Flush)> {
        let stderr = io::stderr().as_fd().try_clone_to_owned()?;
        Ok(Queue::before(stderr.into()))
    }

    fn before(file: File) -> (Queue, Flush) {
        let (lines, messages) = mpsc::sync_channel(MOST_LINES);
        let (counts, messages) = (Arc::default(), Arc::new(Mutex::new(Some(messages))));
        let queue = Queue { lines, counts, direct: Arc::new(file), messages };
        (queue.clone(), Flush(queue))
    }

    /// Starts the thread that writes from now on.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub(crate) fn write_by_thread(&self) -> io::Result<()> {
        let messages = self.messages.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(messages) = messages else { return Ok(()) };
        let (file, counts) = (self.direct.clone(), self.counts.clone());
        let body = move || write_for_ever(&file, &messages, &counts);
        thread::Builder::new().name("log".into()).spawn(body)?;
        self.counts.has_thread.store(true, Ordering::Release);
        Ok(())
    }

    /// Lines dropped so far.
    pub(crate) fn dropped(&self) -> u64 {
        self.counts.dropped.load(Ordering::Relaxed)
    }

    /// Hands a line over, or drops and counts it. Never waits.
    fn hand_over(&self, line: Vec<u8>) {
        let (bytes, waiting) = (line.len(), &self.counts.waiting_bytes);
        // A line of any length fits into an empty queue.
        let before = waiting.fetch_add(bytes, Ordering::Relaxed);
        let fits = before == 0 || before + bytes <= MOST_BYTES;
        if !fits || self.lines.try_send(Message::Line(line)).is_err() {
            waiting.fetch_sub(bytes, Ordering::Relaxed);
            self.counts.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Drop for Flush {
    fn drop(&mut self) {
        if !self.0.counts.has_thread.load(Ordering::Acquire) {
            return;
        }
        let (written, wait) = mpsc::channel();
        let until = Instant::now() + LAST_LINES;
        let mut message = Message::Flush(written);
        // A full queue has room as soon as a line is taken.
        while let Err(mpsc::TrySendError::Full(back)) = self.0.lines.try_send(message) {
            if Instant::now() >= until {
                return;
            }
            message = back;
            thread::park_timeout(AGAIN);
        }
        let left = until.saturating_duration_since(Instant::now());
        let _: Result<(), RecvTimeoutError> = wait.recv_timeout(left);
    }
}

/// Writes line after line, as long as the process lives.
fn write_for_ever(file: &File, messages: &Receiver<Message>, counts: &Counts) {
    IS_WRITER.set(true);
    let mut told = 0;
    while let Ok(message) = messages.recv() {
        let line = match message {
            Message::Line(line) => line,
            Message::Flush(written) => {
                drop(written);
                continue;
            }
        };
        // The room is free when the line has left: what is being written counts.
        let taken = write_whole(file, &line);
        counts.waiting_bytes.fetch_sub(line.len(), Ordering::Relaxed);
        let dropped = counts.dropped.load(Ordering::Relaxed);
        if taken && dropped > told {
            let lines = dropped - told;
            tracing::warn!(
                lines,
                "lines of this log were dropped: its reader took them too slowly"
            );
            told = dropped;
        }
    }
}

/// Writes a line to its end, however long that takes; whether it was possible.
fn write_whole(mut file: &File, mut line: &[u8]) -> bool {
    while !line.is_empty() {
        match file.write(line) {
            Ok(0) => return false,
            Ok(count) => line = &line[count..],
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            // Somebody who shares it has made it non-blocking.
            Err(error) if error.kind() == ErrorKind::WouldBlock => thread::park_timeout(AGAIN),
            Err(_) => return false,
        }
    }
    true
}

/// One event on its way: collected, then handed over as a whole.
pub(crate) struct Line<'a> {
    queue: &'a Queue,
    bytes: Vec<u8>,
}

impl Write for Line<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Line<'_> {
    fn drop(&mut self) {
        let bytes = std::mem::take(&mut self.bytes);
        if IS_WRITER.get() || !self.queue.counts.has_thread.load(Ordering::Acquire) {
            write_whole(&self.queue.direct, &bytes);
        } else if !bytes.is_empty() {
            self.queue.hand_over(bytes);
        }
    }
}

impl<'a> MakeWriter<'a> for Queue {
    type Writer = Line<'a>;

    fn make_writer(&'a self) -> Line<'a> {
        Line { queue: self, bytes: Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};

    use super::*;

    #[test]
    fn a_reader_that_stops_costs_lines_and_nobody_waits() {
        let (reader, writer) = io::pipe().expect("a pipe");
        let file = File::from(std::os::fd::OwnedFd::from(writer));
        let (queue, flush) = Queue::before(file);
        queue.write_by_thread().expect("a thread");
        let lines = 3 * MOST_LINES as u64;
        for number in 0..lines {
            let mut line = queue.make_writer();
            writeln!(line, "{number} {}", "x".repeat(100)).expect("memory");
        }
        let dropped = queue.dropped();
        assert!(dropped > 0 && dropped < lines, "{dropped}");
        // What has not been dropped comes in order, when somebody reads again.
        let reader = thread::spawn(move || {
            let lines = BufReader::new(reader).lines().map_while(Result::ok);
            let number = |line: String| line.split(' ').next().and_then(|word| word.parse().ok());
            lines.filter_map(number).collect::<Vec<u64>>()
        });
        drop((flush, queue));
        let read = reader.join().expect("a reader");
        assert_eq!(read.len() as u64, lines - dropped);
        assert!(read.is_sorted());
    }

    #[test]
    fn the_queue_is_bounded_by_bytes_too_and_takes_one_long_line() {
        let (_reader, writer) = io::pipe().expect("a pipe");
        let file = File::from(std::os::fd::OwnedFd::from(writer));
        let (queue, _flush) = Queue::before(file);
        queue.write_by_thread().expect("a thread");
        queue.hand_over(vec![b'x'; 2 * MOST_BYTES]);
        assert_eq!(queue.dropped(), 0);
        queue.hand_over(vec![b'x'; 1]);
        assert_eq!(queue.dropped(), 1);
    }
}
