//! What a pick that is written down, repeated or explained looks at, in place of the live pool.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

use subak_balance::{LoadView, Tickets};

use super::{Read, ReadKind};
use crate::pool::View;

/// The pool's counter, with a note of what was drawn.
pub(super) struct Noted<'a> {
    pub(super) counter: &'a AtomicU64,
    pub(super) drawn: Cell<Option<u64>>,
}

impl Tickets for Noted<'_> {
    fn draw(&self) -> u64 {
        let ticket = self.counter.fetch_add(1, Ordering::Relaxed);
        self.drawn.set(Some(ticket));
        ticket
    }
}

/// The ticket of a record.
pub(super) struct Ticket {
    pub(super) ticket: Option<u64>,
    pub(super) drawn: Cell<bool>,
}

impl Tickets for Ticket {
    fn draw(&self) -> u64 {
        self.drawn.set(true);
        self.ticket.unwrap_or(0)
    }
}

/// A view that writes down what is read of it.
pub(super) struct Watched<'a> {
    pub(super) view: View<'a>,
    pub(super) reads: RefCell<Vec<Read>>,
}

impl Watched<'_> {
    fn note(&self, index: usize, kind: ReadKind, value: u64) -> u64 {
        self.reads.borrow_mut().push(Read { index, kind, value });
        value
    }
}

impl LoadView for Watched<'_> {
    fn in_flight(&self, index: usize) -> u32 {
        self.note(index, ReadKind::InFlight, u64::from(self.view.in_flight(index))) as u32
    }

    fn cell(&self, index: usize) -> u64 {
        self.note(index, ReadKind::Cell, self.view.cell(index))
    }

    fn packets(&self, index: usize) -> u64 {
        self.note(index, ReadKind::Packets, self.view.packets(index))
    }

    fn bytes(&self, index: usize) -> u64 {
        self.note(index, ReadKind::Bytes, self.view.bytes(index))
    }

    fn ramp(&self, index: usize) -> u16 {
        self.note(index, ReadKind::Ramp, u64::from(self.view.ramp(index))) as u16
    }

    fn summary(&self) -> u64 {
        self.note(0, ReadKind::Summary, self.view.summary())
    }
}

/// A view that shows what was read then, in any order, for the score of one endpoint. A score may look
/// at others too, but only where a pick did so as far as it was concerned with them.
pub(super) struct Recall {
    pub(super) values: HashMap<(usize, ReadKind), u64>,
    pub(super) index: Cell<usize>,
    pub(super) is_missing: Cell<bool>,
}

impl Recall {
    fn value(&self, index: usize, kind: ReadKind) -> u64 {
        self.values.get(&(index, kind)).copied().unwrap_or_else(|| {
            if index == self.index.get() || kind == ReadKind::Summary {
                self.is_missing.set(true);
            }
            0
        })
    }
}

impl LoadView for Recall {
    fn in_flight(&self, index: usize) -> u32 {
        self.value(index, ReadKind::InFlight) as u32
    }

    fn cell(&self, index: usize) -> u64 {
        self.value(index, ReadKind::Cell)
    }

    fn packets(&self, index: usize) -> u64 {
        self.value(index, ReadKind::Packets)
    }

    fn bytes(&self, index: usize) -> u64 {
        self.value(index, ReadKind::Bytes)
    }

    fn ramp(&self, index: usize) -> u16 {
        self.value(index, ReadKind::Ramp) as u16
    }

    fn summary(&self) -> u64 {
        self.value(0, ReadKind::Summary)
    }
}

/// A view that shows what was read then, in that order.
pub(super) struct Replay<'a> {
    pub(super) left: RefCell<std::slice::Iter<'a, Read>>,
    pub(super) has_diverged: Cell<bool>,
}

impl Replay<'_> {
    fn next(&self, index: usize, kind: ReadKind) -> u64 {
        match self.left.borrow_mut().next() {
            Some(read) if (read.index, read.kind) == (index, kind) => read.value,
            _ => {
                self.has_diverged.set(true);
                0
            }
        }
    }
}

impl LoadView for Replay<'_> {
    fn in_flight(&self, index: usize) -> u32 {
        self.next(index, ReadKind::InFlight) as u32
    }

    fn cell(&self, index: usize) -> u64 {
        self.next(index, ReadKind::Cell)
    }

    fn packets(&self, index: usize) -> u64 {
        self.next(index, ReadKind::Packets)
    }

    fn bytes(&self, index: usize) -> u64 {
        self.next(index, ReadKind::Bytes)
    }

    fn ramp(&self, index: usize) -> u16 {
        self.next(index, ReadKind::Ramp) as u16
    }

    fn summary(&self) -> u64 {
        self.next(0, ReadKind::Summary)
    }
}
