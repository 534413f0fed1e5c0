//! Chunks that wait to be written to a stream.

use std::collections::VecDeque;

use crate::chunk::{Chunk, ChunkSize};

/// Data up to this length is copied behind what is queued already: one more slice in a vectored
/// write costs more than moving a page.
const COPY_UP_TO: usize = 4096;
/// Chunks that wait to be written. One slot inside, because nearly every message needs one.
#[derive(Debug, Default)]
pub(super) struct Output {
    pub(super) first: Option<Chunk>,
    pub(super) rest: VecDeque<Chunk>,
}

impl Output {
    fn last(&mut self) -> Option<&mut Chunk> {
        self.rest.back_mut().or(self.first.as_mut())
    }

    fn add(&mut self, chunk: Chunk) {
        match &self.first {
            None => self.first = Some(chunk),
            Some(_) => self.rest.push_back(chunk),
        }
    }

    pub(super) fn append(&mut self) -> &mut Vec<u8> {
        if self.last().is_none_or(|chunk| chunk.spare() < COPY_UP_TO) {
            self.add(Chunk::take(ChunkSize::Small));
        }
        match self.rest.back_mut().or(self.first.as_mut()) {
            Some(chunk) => chunk.tail(),
            None => unreachable!("a chunk was added above"),
        }
    }

    pub(super) fn push(&mut self, chunk: Chunk) {
        if chunk.is_empty() {
            return;
        }
        let fits = |last: &mut Chunk| last.spare() >= chunk.len();
        if chunk.len() <= COPY_UP_TO
            && let Some(last) =
                self.last().filter(|last| last.spare() >= COPY_UP_TO.min(chunk.len()))
            && fits(last)
        {
            last.tail().extend_from_slice(chunk.filled());
        } else {
            self.add(chunk);
        }
    }

    pub(super) fn consume(&mut self, mut count: usize) {
        while let Some(first) = &mut self.first {
            let len = first.len();
            if count < len {
                first.consume(count);
                return;
            }
            count -= len;
            self.first = self.rest.pop_front();
        }
        // An idle stream keeps no queue memory.
        if self.rest.capacity() > 0 {
            self.rest = VecDeque::new();
        }
    }
}
