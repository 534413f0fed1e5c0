//! Pieces of a body that wait for a stream's window.

use std::collections::VecDeque;

use bytes::Bytes;
use subak_net::Chunk;

/// Pieces in order, none of them empty. One has its place inside, because nearly every answer is one.
#[derive(Debug, Default)]
pub(super) struct Queue {
    first: Bytes,
    rest: VecDeque<Bytes>,
    /// Of all of them.
    bytes: usize,
}

impl Queue {
    /// Queues a piece.
    #[inline]
    pub(super) fn push(&mut self, data: Chunk) {
        if data.is_empty() {
            return;
        }
        self.bytes += data.len();
        match self.first.is_empty() {
            true => self.first = data.into_bytes(),
            false => self.rest.push_back(data.into_bytes()),
        }
    }

    /// How many bytes the first piece has; 0: there is none.
    #[inline]
    pub(super) fn first_len(&self) -> usize {
        self.first.len()
    }

    /// How many bytes wait.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.bytes
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Takes the first piece, or as much of it as `most`.
    #[inline]
    pub(super) fn take(&mut self, most: usize) -> Bytes {
        let taken = match most < self.first.len() {
            true => self.first.split_to(most),
            false => {
                let next = self.rest.pop_front().unwrap_or_default();
                std::mem::replace(&mut self.first, next)
            }
        };
        self.bytes -= taken.len();
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_come_out_in_order_and_whole_or_as_much_as_is_wanted() {
        let mut queue = Queue::default();
        for text in ["one", "", "two", "three"] {
            queue.push(Chunk::copied(text.as_bytes()));
        }
        assert_eq!((queue.first_len(), queue.len(), queue.is_empty()), (3, 11, false));
        assert_eq!(queue.take(10), "one");
        assert_eq!(queue.take(2), "tw");
        assert_eq!((queue.first_len(), queue.len()), (1, 6));
        assert_eq!(queue.take(1), "o");
        assert_eq!(queue.take(usize::MAX), "three");
        assert_eq!((queue.first_len(), queue.len(), queue.is_empty()), (0, 0, true));
    }
}
