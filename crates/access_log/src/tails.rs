//! The end of each log as one worker holds it: lines that have not been handed over yet.
//!
//! A worker writes to memory of its own and hands whole buffers over: when one is full, and when the
//! sink's `flush` has passed. Belongs to one thread; what is left is handed over when it ends.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use subak_base::Tick;

use crate::compiled::Compiled;
use crate::encode;
use crate::entry::Entry;
use crate::page::Page;
use crate::sink::{Buffer, Sink};
use crate::wall::Wall;

/// A buffer of so many bytes is handed over.
const FULL: usize = 64 * 1024;
/// How often a worker looks, where no sink wants it sooner.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// One worker's buffers.
#[derive(Debug, Default)]
pub struct Tails {
    inner: RefCell<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    /// By the sinks' slots.
    tails: Vec<Option<Tail>>,
    wall: Wall,
}

#[derive(Debug)]
struct Tail {
    sink: Arc<Sink>,
    page: Page,
    lines: u64,
    /// When its oldest line was written.
    since: Tick,
}

impl Tails {
    /// Writes the line of `entry` to the end of a log.
    #[inline]
    pub fn append(&self, sink: &Arc<Sink>, compiled: &Compiled, entry: &Entry<'_>) {
        let inner = &mut *self.inner.borrow_mut();
        let slot = sink.slot;
        if !matches!(inner.tails.get(slot), Some(Some(tail)) if Arc::ptr_eq(&tail.sink, sink)) {
            begin(&mut inner.tails, sink);
        }
        let Some(Some(tail)) = inner.tails.get_mut(slot) else { return };
        if tail.lines == 0 {
            tail.since = entry.ended;
        }
        encode::line(compiled, entry, &mut inner.wall, &mut tail.page);
        tail.lines += 1;
        if tail.page.len() >= FULL {
            tail.hand_over();
        }
    }

    /// Hands over what is old enough; answers when to look again.
    pub fn look(&self, now: Tick) -> Duration {
        let inner = &mut *self.inner.borrow_mut();
        let mut again = LOOK_EVERY;
        for slot in &mut inner.tails {
            let Some(tail) = slot else { continue };
            let flush = tail.sink.flush();
            let retired = tail.sink.retired.load(Ordering::Relaxed);
            if tail.lines > 0 && (retired || now.since(tail.since) >= flush / 2) {
                tail.hand_over();
            }
            if retired {
                // The last of its holders lets its writer end.
                *slot = None;
            } else {
                again = again.min(flush / 2);
            }
        }
        again
    }
}

/// Makes room for a sink. What another one has left in its slot goes first.
#[cold]
fn begin(tails: &mut Vec<Option<Tail>>, sink: &Arc<Sink>) {
    if tails.len() <= sink.slot {
        tails.resize_with(sink.slot + 1, || None);
    }
    let tail = Tail { sink: sink.clone(), page: Page::default(), lines: 0, since: Tick(0) };
    if let Some(mut before) = tails[sink.slot].replace(tail) {
        before.hand_over();
    }
}

impl Tail {
    /// A buffer that is as good as full goes as it is; of a smaller one the lines alone, so that an
    /// idle worker does not give away 64 KiB for a line.
    fn hand_over(&mut self) {
        if self.lines == 0 {
            return;
        }
        let bytes = if self.page.len() > FULL / 2 {
            self.page.exchange(self.sink.state.spent())
        } else {
            let lines = self.page.written().to_vec();
            self.page.clear();
            lines
        };
        self.sink.hand_over(Buffer { bytes, lines: std::mem::take(&mut self.lines) });
    }
}

impl Drop for Tails {
    fn drop(&mut self) {
        self.inner.get_mut().tails.iter_mut().flatten().for_each(Tail::hand_over);
    }
}
