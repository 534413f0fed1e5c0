//! One destination as workers see it: a bounded queue of full buffers, and what became of their lines.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, TrySendError};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::destination::Destination;
use crate::page::ROOM;

/// Buffers that may wait to be written. With 64 KiB each some 4 MiB, about 10,000 lines.
pub(crate) const MOST_BUFFERS: usize = 64;

/// Buffers that have been written and wait for a worker to fill them again, 272 KiB: so a page need not
/// be found, initialised and freed on another thread for every 400 lines.
const MOST_SPENT: usize = 4;

/// Whole lines on their way.
#[derive(Debug)]
pub(crate) struct Buffer {
    pub(crate) bytes: Vec<u8>,
    pub(crate) lines: u64,
}

/// What a writer is told.
#[derive(Debug)]
pub(crate) enum Message {
    /// Write this.
    Write(Buffer),
    /// Look at the flags.
    Look,
}

/// One destination.
#[derive(Debug)]
pub struct Sink {
    pub(crate) destination: Destination,
    /// Its place in each worker's [`Tails`](crate::Tails).
    pub(crate) slot: usize,
    /// How long a line may stay with its worker, in ns.
    pub(crate) flush_ns: AtomicU64,
    /// No configuration names it any more.
    pub(crate) retired: AtomicBool,
    queue: SyncSender<Message>,
    pub(crate) state: std::sync::Arc<State>,
}

/// What workers, writer and control side share of one destination.
#[derive(Debug, Default)]
pub(crate) struct State {
    written_lines: AtomicU64,
    written_bytes: AtomicU64,
    dropped_lines: AtomicU64,
    /// The file is to be opened again.
    pub(crate) reopen: AtomicBool,
    /// The process ends: what cannot be written at once is dropped.
    pub(crate) closing: AtomicBool,
    /// What keeps lines from being written.
    trouble: Mutex<Option<String>>,
    /// Memory of buffers that have been written.
    spent: Mutex<Vec<Vec<u8>>>,
}

/// What became of a destination's lines so far.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Totals {
    /// Where they went.
    pub destination: String,
    /// Lines that were written.
    pub written_lines: u64,
    /// And their bytes.
    pub written_bytes: u64,
    /// Lines that were dropped.
    pub dropped_lines: u64,
}

impl Sink {
    pub(crate) fn new(destination: Destination, slot: usize, queue: SyncSender<Message>) -> Sink {
        Sink {
            destination,
            slot,
            flush_ns: AtomicU64::new(u64::MAX),
            retired: AtomicBool::new(false),
            queue,
            state: std::sync::Arc::default(),
        }
    }

    /// Where it leads.
    pub fn destination(&self) -> &Destination {
        &self.destination
    }

    /// How long a line may stay with its worker.
    pub(crate) fn flush(&self) -> Duration {
        Duration::from_nanos(self.flush_ns.load(Ordering::Relaxed))
    }

    /// Hands lines over, or drops and counts them.
    pub(crate) fn hand_over(&self, buffer: Buffer) {
        match self.queue.try_send(Message::Write(buffer)) {
            Ok(()) => {}
            Err(TrySendError::Full(message) | TrySendError::Disconnected(message)) => {
                if let Message::Write(buffer) = message {
                    self.state.dropped(buffer.lines);
                }
            }
        }
    }

    /// Wakes the writer, if it waits for something to do.
    pub(crate) fn wake(&self) {
        let _ = self.queue.try_send(Message::Look);
    }
}

impl State {
    pub(crate) fn written(&self, lines: u64, bytes: u64) {
        self.written_lines.fetch_add(lines, Ordering::Relaxed);
        self.written_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn dropped(&self, lines: u64) {
        self.dropped_lines.fetch_add(lines, Ordering::Relaxed);
    }

    pub(crate) fn dropped_lines(&self) -> u64 {
        self.dropped_lines.load(Ordering::Relaxed)
    }

    pub(crate) fn totals(&self, destination: &Destination) -> Totals {
        Totals {
            destination: destination.to_string(),
            written_lines: self.written_lines.load(Ordering::Relaxed),
            written_bytes: self.written_bytes.load(Ordering::Relaxed),
            dropped_lines: self.dropped_lines(),
        }
    }

    /// A buffer has been written: its memory may be used again.
    pub(crate) fn spend(&self, bytes: Vec<u8>) {
        let mut spent = self.spent.lock().unwrap_or_else(PoisonError::into_inner);
        // Small ones are not worth it, and what one long line has made large is to go.
        if spent.len() < MOST_SPENT && (ROOM..2 * ROOM).contains(&bytes.capacity()) {
            spent.push(bytes);
        }
    }

    /// Memory for more lines, where there is some at hand. A worker waits for nobody.
    pub(crate) fn spent(&self) -> Vec<u8> {
        self.spent.try_lock().ok().and_then(|mut spent| spent.pop()).unwrap_or_default()
    }

    pub(crate) fn set_trouble(&self, trouble: Option<String>) {
        *self.trouble() = trouble;
    }

    pub(crate) fn trouble(&self) -> MutexGuard<'_, Option<String>> {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_of_a_few_full_buffers_is_used_again() {
        let state = State::default();
        for capacity in [0, 100, 10 * ROOM] {
            state.spend(Vec::with_capacity(capacity));
        }
        assert_eq!(state.spent().capacity(), 0, "too small, or too large");
        (0..10).for_each(|_| state.spend(Vec::with_capacity(ROOM)));
        let used = (0..10).filter(|_| state.spent().capacity() >= ROOM).count();
        assert_eq!(used, MOST_SPENT);
    }
}
