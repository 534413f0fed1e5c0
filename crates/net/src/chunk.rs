//! Owned buffers that come from the worker's pool and return to it.
//!
//! A chunk is what a socket is read into and what is written to one; a body travels from one side to
//! the other as the very chunk it was received in. Two sizes: 16 KiB for heads, 68 KiB for bodies
//! (bodies of 64 KiB through 16 KiB chunks cost 1.5 times as much). Each worker keeps a bounded
//! number of free ones, last used first, so a busy worker stays in its cache and an idle connection
//! holds none.
//!
//! The process has a limit of bytes in chunks ([`limit_buffers`]), which each worker has its share of.
//! From an eighth of it on bodies are read by small chunks, one for each exchange ([`are_scarce`]): who
//! takes little holds 16 KiB instead of 136. From the whole of it on nothing new is begun
//! ([`are_used_up`]).
#![allow(unsafe_code)]

use std::cell::RefCell;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;

/// How many free chunks of each size a worker keeps; 4 MiB of either.
const KEPT_SMALL: usize = 256;
const KEPT_LARGE: usize = 64;

/// Bytes that are sooner copied than a buffer is held for them.
const COPY_UP_TO: usize = 4096;

/// The capacity of a chunk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ChunkSize {
    /// 16 KiB: heads and small messages.
    Small,
    /// 68 KiB: bodies. An answer of 64 KiB fits with its head.
    Large,
}

impl ChunkSize {
    /// The capacity in bytes.
    pub const fn bytes(self) -> usize {
        match self {
            ChunkSize::Small => 16 * 1024,
            ChunkSize::Large => 68 * 1024,
        }
    }
}

/// An owned buffer with a filled part `start..end`.
#[derive(Debug)]
pub struct Chunk {
    storage: Storage,
    start: usize,
}

#[derive(Debug)]
enum Storage {
    Pooled(Vec<u8>),
    Shared(Bytes),
}

thread_local! {
    static FREE: RefCell<Free> =
        const { RefCell::new(Free { small: Vec::new(), large: Vec::new(), held: 0 }) };
}

/// Bytes of chunks that a worker may hold.
static MOST: AtomicUsize = AtomicUsize::new(usize::MAX);
/// Chunks are scarce from this share of [`MOST`] on: one in so many.
const SCARCE: usize = 8;

struct Free {
    small: Vec<Vec<u8>>,
    large: Vec<Vec<u8>>,
    /// Bytes of all chunks of this thread, the free ones included.
    held: usize,
}

impl Free {
    fn is_scarce(&self) -> bool {
        self.held > MOST.load(Ordering::Relaxed) / SCARCE
    }

    /// A chunk that nobody has used before. Where they are scarce, large ones that are free go.
    #[cold]
    fn allocate(&mut self, size: ChunkSize) -> Vec<u8> {
        if self.is_scarce() {
            self.held = self.held.saturating_sub(self.large.len() * ChunkSize::Large.bytes());
            self.large = Vec::new();
        }
        self.held += size.bytes();
        Vec::with_capacity(size.bytes())
    }

    /// A chunk is not kept. One that grew was a small one: only heads grow, and none to twice a large one.
    #[cold]
    fn release(&mut self, capacity: usize) {
        let size = match capacity {
            capacity if capacity == ChunkSize::Large.bytes() => ChunkSize::Large,
            capacity if capacity >= 2 * ChunkSize::Large.bytes() => ChunkSize::Large,
            _ => ChunkSize::Small,
        };
        self.held = self.held.saturating_sub(size.bytes());
    }
}

/// Bounds the bytes of all chunks of so many workers together.
pub fn limit_buffers(bytes: usize, workers: usize) {
    MOST.store(bytes / workers.max(1), Ordering::Relaxed);
}

/// Whether this worker holds so much that each exchange should hold little.
#[inline]
pub fn are_scarce() -> bool {
    FREE.with_borrow(Free::is_scarce)
}

/// Whether this worker holds as much as it may.
#[inline]
pub fn are_used_up() -> bool {
    FREE.with_borrow(|free| free.held > MOST.load(Ordering::Relaxed))
}

/// How a body is best read now.
#[inline]
pub fn body_chunk() -> ChunkSize {
    if are_scarce() { ChunkSize::Small } else { ChunkSize::Large }
}

impl Chunk {
    /// An empty chunk of the given size, from this thread's pool.
    pub fn take(size: ChunkSize) -> Chunk {
        let storage = FREE.with_borrow_mut(|free| {
            let kept = match size {
                ChunkSize::Small => free.small.pop(),
                ChunkSize::Large => free.large.pop(),
            };
            kept.unwrap_or_else(|| free.allocate(size))
        });
        Chunk { storage: Storage::Pooled(storage), start: 0 }
    }

    /// A chunk that shows bytes somebody else owns, without a copy.
    pub fn shared(bytes: Bytes) -> Chunk {
        Chunk { storage: Storage::Shared(bytes), start: 0 }
    }

    /// A chunk with a copy of `bytes`: pooled when they fit one, else shared.
    pub fn copied(bytes: &[u8]) -> Chunk {
        let mut chunk = match bytes.len() {
            len if len <= ChunkSize::Small.bytes() => Chunk::take(ChunkSize::Small),
            len if len <= ChunkSize::Large.bytes() => Chunk::take(ChunkSize::Large),
            _ => return Chunk::shared(Bytes::copy_from_slice(bytes)),
        };
        chunk.tail().extend_from_slice(bytes);
        chunk
    }

    /// The filled part.
    #[inline]
    pub fn filled(&self) -> &[u8] {
        match &self.storage {
            Storage::Pooled(bytes) => &bytes[self.start..],
            Storage::Shared(bytes) => &bytes[self.start..],
        }
    }

    /// The filled part, to decode in place. Shared bytes are copied first.
    pub fn filled_mut(&mut self) -> &mut [u8] {
        let start = self.start;
        &mut self.tail()[start..]
    }

    /// Length of the filled part in bytes.
    #[inline]
    pub fn len(&self) -> usize {
        self.filled().len()
    }

    /// Whether nothing is filled.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes that still fit behind the filled part without growing.
    pub fn spare(&self) -> usize {
        match &self.storage {
            Storage::Pooled(bytes) => bytes.capacity() - bytes.len(),
            Storage::Shared(_) => 0,
        }
    }

    /// Drops the first `count` filled bytes.
    #[inline]
    pub fn consume(&mut self, count: usize) {
        debug_assert!(count <= self.len());
        self.start += count;
    }

    /// Keeps the first `count` filled bytes.
    pub fn truncate(&mut self, count: usize) {
        let end = self.start + count;
        match &mut self.storage {
            Storage::Pooled(bytes) => bytes.truncate(end),
            Storage::Shared(bytes) => bytes.truncate(end),
        }
    }

    /// Moves the filled part to the front, so that all the capacity behind it is spare.
    pub fn compact(&mut self) {
        let start = self.start;
        if let Storage::Pooled(bytes) = &mut self.storage
            && start > 0
        {
            let len = bytes.len() - start;
            bytes.copy_within(start.., 0);
            bytes.truncate(len);
            self.start = 0;
        }
    }

    /// Moves the filled part into a larger buffer of the given size when it has less.
    pub fn grow(&mut self, size: ChunkSize) {
        if self.len() + self.spare() < size.bytes() {
            let mut larger = Chunk::take(size);
            larger.tail().extend_from_slice(self.filled());
            *self = larger;
        }
    }

    /// The buffer to append to. What stands before the filled part is in it too.
    pub fn tail(&mut self) -> &mut Vec<u8> {
        if let Storage::Shared(bytes) = &self.storage {
            *self = Chunk::copied(&bytes[self.start..]);
        }
        match &mut self.storage {
            Storage::Pooled(bytes) => bytes,
            Storage::Shared(_) => unreachable!("replaced by a copy above"),
        }
    }

    /// The filled part as shared bytes. Up to [`COPY_UP_TO`] bytes are copied, so that the buffer is free
    /// for the next at once: a client that takes its time must not hold 68 KiB for an answer of a few
    /// bytes. Of more, the buffer itself goes on and returns to the pool of the thread that drops the
    /// last of them.
    pub fn into_bytes(mut self) -> Bytes {
        if let Storage::Shared(bytes) = &mut self.storage {
            return std::mem::take(bytes).split_off(self.start);
        }
        match self.len() {
            0..=COPY_UP_TO => Bytes::copy_from_slice(self.filled()),
            _ => Bytes::from_owner(Owner(self)),
        }
    }

    /// The uninitialised room behind the filled part.
    pub(crate) fn room(&mut self) -> &mut [MaybeUninit<u8>] {
        self.tail().spare_capacity_mut()
    }

    /// Says that the first `count` bytes of [`Chunk::room`] are now filled.
    ///
    /// # Safety
    /// They must have been initialised, and `count` must not exceed the room.
    pub(crate) unsafe fn advance(&mut self, count: usize) {
        let bytes = self.tail();
        // SAFETY: the caller has initialised `count` bytes behind `len`, within the capacity.
        unsafe { bytes.set_len(bytes.len() + count) };
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        let Storage::Pooled(bytes) = &mut self.storage else { return };
        let mut bytes = std::mem::take(bytes);
        bytes.clear();
        // Without its thread's pool (at thread end) a chunk is simply freed.
        let _ = FREE.try_with(|free| {
            let mut free = free.borrow_mut();
            let free = &mut *free;
            let is_scarce = free.is_scarce();
            let (list, kept) = match bytes.capacity() {
                capacity if capacity == ChunkSize::Small.bytes() => (&mut free.small, KEPT_SMALL),
                capacity if capacity == ChunkSize::Large.bytes() => (&mut free.large, KEPT_LARGE),
                capacity => return free.release(capacity),
            };
            if list.len() < kept && !is_scarce {
                list.push(bytes);
            } else {
                let capacity = bytes.capacity();
                free.release(capacity);
            }
        });
    }
}

struct Owner(Chunk);

impl AsRef<[u8]> for Owner {
    fn as_ref(&self) -> &[u8] {
        self.0.filled()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunk_returns_to_its_pool_and_comes_back_empty() {
        let mut chunk = Chunk::take(ChunkSize::Small);
        chunk.tail().extend_from_slice(b"abc");
        let address = chunk.filled().as_ptr();
        drop(chunk);
        let again = Chunk::take(ChunkSize::Small);
        assert!(again.is_empty());
        assert_eq!(again.filled().as_ptr(), address);
    }

    #[test]
    fn consume_compact_and_truncate_keep_the_right_bytes() {
        let mut chunk = Chunk::copied(b"0123456789");
        chunk.consume(3);
        assert_eq!(chunk.filled(), b"3456789");
        chunk.compact();
        chunk.truncate(4);
        assert_eq!(chunk.filled(), b"3456");
        assert_eq!(chunk.spare(), ChunkSize::Small.bytes() - 4);
    }

    #[test]
    fn shared_bytes_are_copied_only_when_written() {
        let mut chunk = Chunk::shared(Bytes::from_static(b"hello"));
        chunk.consume(1);
        assert_eq!(chunk.filled(), b"ello");
        chunk.tail().extend_from_slice(b"!");
        assert_eq!(chunk.filled(), b"ello!");
        assert_eq!(&chunk.into_bytes()[..], b"ello!");
    }

    #[test]
    fn shared_bytes_hold_a_buffer_only_when_they_are_many() {
        for length in [0, 1, COPY_UP_TO, COPY_UP_TO + 1, ChunkSize::Large.bytes()] {
            let content: Vec<u8> = (0..length).map(|at| at as u8).collect();
            let mut chunk = Chunk::take(ChunkSize::Large);
            chunk.tail().extend_from_slice(b"head");
            chunk.tail().extend_from_slice(&content);
            chunk.consume(4);
            let buffer = chunk.filled().as_ptr();
            let bytes = chunk.into_bytes();
            assert_eq!(bytes, content);
            assert_eq!(bytes.as_ptr() == buffer, length > COPY_UP_TO, "{length}");
        }
    }

    #[test]
    fn growing_keeps_what_was_received() {
        let mut chunk = Chunk::copied(&[7; 16 * 1024]);
        assert_eq!(chunk.spare(), 0);
        chunk.grow(ChunkSize::Large);
        assert_eq!(chunk.len(), 16 * 1024);
        assert_eq!(chunk.spare(), 52 * 1024);
    }

    #[test]
    fn chunks_are_counted_until_they_are_freed_and_none_is_kept_where_they_are_scarce() {
        let held = || FREE.with_borrow(|free| free.held);
        let worker = std::thread::spawn(move || {
            let (small, large) = (ChunkSize::Small.bytes(), ChunkSize::Large.bytes());
            let mut chunks = vec![Chunk::take(ChunkSize::Small), Chunk::take(ChunkSize::Large)];
            assert_eq!(held(), small + large);
            // A head that grew beyond its chunk.
            chunks[0].tail().extend_from_slice(&[0; 20 * 1024]);
            chunks.clear();
            // The large one is kept, and counts.
            assert_eq!((held(), are_used_up()), (large, false));
            let full: Vec<_> = (0..1000).map(|_| Chunk::take(ChunkSize::Large)).collect();
            assert_eq!(held(), 1000 * large);
            drop(full);
            assert_eq!(held(), KEPT_LARGE * large);
        });
        worker.join().expect("a worker");
    }
}
