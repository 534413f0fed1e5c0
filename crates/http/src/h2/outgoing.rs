//! A body on its way out on a stream, to either side: what waits for the stream's window, and the end.

use std::task::{Context, Poll, ready};

use bytes::Bytes;
use h2::{Reason, SendStream};
use http::HeaderMap;
use subak_message::Fields;
use subak_net::Chunk;

use super::fields;
use super::queue::Queue;

/// What is to be sent behind a head.
pub(super) struct Outgoing {
    queued: Queue,
    end: End,
    taken: u64,
}

/// How far the end has come.
enum End {
    NotYet,
    Queued(Option<HeaderMap>),
    Sent,
}

impl Outgoing {
    pub(super) fn new() -> Outgoing {
        Outgoing { queued: Queue::default(), end: End::NotYet, taken: 0 }
    }

    /// Queues a piece.
    #[inline]
    pub(super) fn push(&mut self, data: Chunk) {
        self.queued.push(data);
    }

    /// Queues the end, the first time.
    pub(super) fn finish(&mut self, trailers: Option<&Fields>) {
        if let End::NotYet = self.end {
            self.end = End::Queued(trailers.map(|trailers| fields::map(trailers, |_| false)));
        }
    }

    /// The end has left by another way: with the head, or as a frame of its own.
    pub(super) fn has_ended(&mut self) {
        self.end = End::Sent;
    }

    /// Whether the end has left.
    pub(super) fn is_ended(&self) -> bool {
        matches!(self.end, End::Sent)
    }

    /// How many bytes wait.
    #[inline]
    pub(super) fn waiting(&self) -> usize {
        self.queued.len()
    }

    /// Bytes that the library has taken.
    #[inline]
    pub(super) fn taken(&self) -> u64 {
        self.taken
    }

    /// Ready when the library has taken everything. `sent` hears of each piece how long it is and
    /// whether the window had no room for more.
    ///
    /// # Errors
    /// The stream's end; NO_ERROR, when its receiver only wants no more.
    #[inline]
    pub(super) fn poll_flush(
        &mut self,
        send: &mut SendStream<Bytes>,
        context: &mut Context<'_>,
        mut sent: impl FnMut(usize, bool),
    ) -> Poll<Result<(), h2::Error>> {
        while !self.queued.is_empty() {
            send.reserve_capacity(self.queued.first_len());
            let capacity = match send.capacity() {
                0 => match ready!(send.poll_capacity(context)) {
                    Some(capacity) => capacity?,
                    None => return Poll::Ready(Err(Reason::NO_ERROR.into())),
                },
                capacity => capacity,
            };
            let is_cut = capacity < self.queued.first_len();
            let part = self.queued.take(capacity);
            sent(part.len(), is_cut);
            self.taken += part.len() as u64;
            // The last piece carries the end: an empty frame less.
            let ends = self.queued.is_empty() && matches!(self.end, End::Queued(None));
            if ends {
                self.end = End::Sent;
            }
            send.send_data(part, ends)?;
        }
        if let End::Queued(trailers) = &mut self.end {
            let trailers = trailers.take();
            self.end = End::Sent;
            match trailers {
                Some(trailers) => send.send_trailers(trailers)?,
                None => send.send_data(Bytes::new(), true)?,
            }
        }
        Poll::Ready(Ok(()))
    }
}
