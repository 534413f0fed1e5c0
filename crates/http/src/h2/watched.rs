//! A client's connection with an eye on its frames: the library below decodes them and tells nobody
//! that there were too many.
//!
//! Only the beginnings of frames are looked at, as the bytes pass by. What is too much is noted; from
//! then on nothing is read any more, and [`serve`](super::serve()) ends the connection. What the library
//! bounds itself is left to it: empty DATA frames (100 a connection) and tiny ones that nobody reads,
//! CONTINUATION frames, the size of a decompressed head, streams that are reset before they were
//! looked at, stream errors (1024 a connection).

use std::cell::{Cell, RefCell};
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use subak_base::Tick;
use subak_config::{Http2, ListenerTimeouts, MinRate};
use subak_message::h2::{FrameHead, FrameHeads};
use subak_net::{Stream, end_turn, now};
use subak_telemetry::Flood;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::account::Account;
use super::stalls::Stalls;
use super::turn::Turn;
use crate::pace::Pace;

/// Answers that leave in pieces below this size, because the client's window has no more room, cost
/// more than they move.
pub(super) const TINY: usize = 128;
/// The most that the library puts into one frame of data, unless the client allows more.
const DATA_FRAME: usize = 16 * 1024;

/// What the library tells a client, as the last thing that it writes, when it ends the connection for
/// one of its own limits. To us it only says that it did.
const TOLD: [(&[u8], Flood); 5] = [
    (b"too_many_data_frames", Flood::SmallData),
    (b"too_many_continuations", Flood::Continuations),
    (b"header_list_way_too_large", Flood::HeaderBomb),
    (b"too_many_internal_resets", Flood::MadeResets),
    (b"too_many_resets", Flood::Resets),
];

/// What is known of a connection: shared by those who see a part of it.
#[derive(Debug)]
pub(super) struct Watch {
    account: RefCell<Account>,
    found: Cell<Option<Flood>>,
    /// What the library may have ended the connection for.
    told: Cell<Option<Flood>>,
    /// Since when the client owes the rest of a frame or of a head.
    owes: Cell<Option<Tick>>,
    /// How fast the client empties its socket.
    pace: RefCell<Pace>,
    /// Responses that the client does not take.
    stalls: Stalls,
    /// There was nothing more to read in this turn of the connection's task.
    is_dry: Cell<bool>,
    turn: Turn,
}

impl Watch {
    pub(super) fn new(limits: Http2) -> Rc<Watch> {
        Rc::new(Watch {
            account: RefCell::new(Account::new(limits, now())),
            found: Cell::new(None),
            told: Cell::new(None),
            owes: Cell::new(None),
            pace: RefCell::default(),
            stalls: Stalls::new(limits.stalled_streams),
            is_dry: Cell::new(false),
            turn: Turn::default(),
        })
    }

    /// One more of this.
    #[inline]
    pub(super) fn count(&self, flood: Flood) {
        if self.account.borrow_mut().is_too_much(flood, now) {
            self.found.set(Some(flood));
        }
    }

    /// That is too much of it, found where it passes by.
    #[cold]
    pub(super) fn found_to_be(&self, flood: Flood) {
        self.found.set(Some(flood));
    }

    /// A request was answered completely.
    #[inline]
    pub(super) fn answered(&self) {
        self.account.borrow_mut().answered();
        self.stalls.took_all();
    }

    /// Responses that the client does not take.
    #[inline]
    pub(super) fn stalls(&self) -> &Stalls {
        &self.stalls
    }

    /// A piece of an answer of so many bytes leaves; `is_cut`: the client's window had no room for more;
    /// `was_stalled`: the answer had to wait for it.
    #[inline]
    pub(super) fn sent(&self, length: usize, is_cut: bool, was_stalled: bool) {
        if was_stalled {
            self.stalls.took_of_stalled(length as u64, now);
        } else if !is_cut {
            self.stalls.took_all();
        }
        let frames = length.div_ceil(DATA_FRAME) as u32;
        self.account.borrow_mut().sent(frames);
        if is_cut && length < TINY {
            self.count(Flood::TinyWindows);
        }
    }

    /// The connection's task has another turn: there may be something to read. Whoever polls the
    /// connection says so first. The library looks again for each request that it gives out, which
    /// costs 300 instructions each.
    #[inline]
    pub(super) fn look_again(&self) {
        self.is_dry.set(false);
        self.turn.begin();
    }

    /// What the client did too much of.
    #[inline]
    pub(super) fn found(&self) -> Option<Flood> {
        self.found.get()
    }

    /// What the library has ended the connection for, if it says that it was too much of something.
    pub(super) fn told(&self) -> Option<Flood> {
        self.told.get()
    }

    /// Whether the client is waited for, so that time counts.
    #[inline]
    pub(super) fn is_waiting(&self) -> bool {
        self.owes.get().is_some() || self.pace.borrow().since().is_some()
    }

    /// How long the client may still be waited for.
    ///
    /// # Errors
    /// What it is too slow with.
    pub(super) fn left(
        &self,
        timeouts: &ListenerTimeouts,
        least: Option<MinRate>,
        now: Tick,
    ) -> Result<Duration, Flood> {
        let left = |since: Option<Tick>, limit: Duration| match since {
            Some(since) => limit.checked_sub(now.since(since)).filter(|left| !left.is_zero()),
            None => Some(Duration::MAX),
        };
        let pace = self.pace.borrow();
        let head = left(self.owes.get(), timeouts.head).ok_or(Flood::SlowHead)?;
        let write = left(pace.since(), timeouts.write_idle).ok_or(Flood::StalledReader)?;
        match pace.is_too_slow(least) {
            true => Err(Flood::StalledReader),
            false => Ok(head.min(write)),
        }
    }

    fn frame(&self, head: FrameHead) {
        match head.kind {
            FrameHead::DATA | FrameHead::HEADERS | FrameHead::CONTINUATION => {}
            FrameHead::RST_STREAM => self.count(Flood::Resets),
            FrameHead::WINDOW_UPDATE => self.count(Flood::WindowUpdates),
            FrameHead::PING => self.count(Flood::Pings),
            FrameHead::SETTINGS => self.count(Flood::Settings),
            FrameHead::PRIORITY => self.count(Flood::Priorities),
            _ => self.count(Flood::Unknown),
        }
    }

    fn wrote(&self, last: &[u8], polled: &Poll<io::Result<usize>>) {
        if let Some((_, flood)) = TOLD.iter().find(|(text, _)| last.ends_with(text)) {
            self.told.set(Some(*flood));
        }
        match polled {
            Poll::Ready(Ok(count)) => self.pace.borrow_mut().moved(*count as u64, now),
            Poll::Ready(Err(_)) => {}
            Poll::Pending => self.pace.borrow_mut().waits(now),
        }
    }
}

/// A connection that is watched.
#[derive(Debug)]
pub(super) struct Watched {
    stream: Stream,
    heads: FrameHeads,
    /// The kind of the frame that has begun last.
    kind: u8,
    /// A head has begun, and more frames of it are to come.
    is_amid_head: bool,
    watch: Rc<Watch>,
}

impl Watched {
    pub(super) fn new(stream: Stream, watch: Rc<Watch>) -> Watched {
        let heads = FrameHeads::of_client();
        Watched { stream, heads, kind: FrameHead::SETTINGS, is_amid_head: false, watch }
    }

    fn see(&mut self, mut news: &[u8]) {
        let (bytes, mut frames) = (news.len(), 0);
        while let Some(head) = self.heads.next(&mut news) {
            self.kind = head.kind;
            frames += 1;
            if matches!(head.kind, FrameHead::HEADERS | FrameHead::CONTINUATION) {
                self.is_amid_head = head.flags & FrameHead::END_HEADERS == 0;
            }
            self.watch.frame(head);
        }
        self.watch.turn.took(bytes, frames);
        // Bodies have time limits of their own.
        let owes = self.is_amid_head || (self.heads.is_amid() && self.kind != FrameHead::DATA);
        match owes {
            true if self.watch.owes.get().is_none() => self.watch.owes.set(Some(now())),
            true => {}
            false => self.watch.owes.set(None),
        }
    }
}

impl AsyncRead for Watched {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.watch.is_dry.get() {
            return Poll::Pending;
        }
        let Some(portion) = self.watch.turn.portion() else {
            self.watch.is_dry.set(true);
            end_turn(context);
            return Poll::Pending;
        };
        let before = buffer.filled().len();
        let polled = match portion < buffer.remaining() {
            false => Pin::new(&mut self.stream).poll_read(context, buffer),
            true => {
                let mut part = ReadBuf::new(buffer.initialize_unfilled_to(portion));
                let polled = Pin::new(&mut self.stream).poll_read(context, &mut part);
                let count = part.filled().len();
                buffer.advance(count);
                polled
            }
        };
        self.watch.is_dry.set(polled.is_pending());
        ready!(polled)?;
        self.see(&buffer.filled()[before..]);
        if self.watch.found().is_some() {
            // Whoever polls looks for this next.
            buffer.set_filled(before);
            return Poll::Pending;
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Watched {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.watch.wrote(bytes, &polled);
        polled
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.watch.wrote(slices.last().map_or(&[], |slice| slice), &polled);
        polled
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
