//! How many frames of a client may be read before other connections have their turn?
//!
//! The library handles whatever there is to read at once, and a tiny frame costs it as much as a large
//! one: some 0.3 µs for 10 bytes, so what fits a socket's buffer would keep everybody else waiting for
//! milliseconds. A portion that has been read has to be handled: it is small until frames are not.

use std::cell::Cell;

/// Frames that end a turn.
const FRAMES: u32 = 64;
/// Frames are large that have as many bytes on average, their heads of 9 bytes included.
const LARGE: usize = 256;
/// Bytes that are read at once of others.
const PORTION: usize = 2048;

/// What a connection's task has read in its turn.
#[derive(Debug, Default)]
pub(super) struct Turn {
    frames: Cell<u32>,
    /// The last portion was of large frames.
    is_large: Cell<bool>,
}

impl Turn {
    /// Another turn begins.
    #[inline]
    pub(super) fn begin(&self) {
        self.frames.set(0);
    }

    /// How many bytes may be read at once; none: the turn is over.
    #[inline]
    pub(super) fn portion(&self) -> Option<usize> {
        let most = if self.is_large.get() { usize::MAX } else { PORTION };
        (self.frames.get() < FRAMES).then_some(most)
    }

    /// So many bytes were read, in which so many frames have begun.
    #[inline]
    pub(super) fn took(&self, bytes: usize, frames: u32) {
        self.frames.update(|before| before.saturating_add(frames));
        self.is_large.set(bytes >= LARGE * frames as usize);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_ends_with_many_frames_and_small_ones_are_read_in_small_portions() {
        let turn = Turn::default();
        turn.begin();
        assert_eq!(turn.portion(), Some(PORTION), "nothing is known of it");
        turn.took(2048, 20);
        assert_eq!(turn.portion(), Some(PORTION), "they were requests");
        turn.took(2048, 1);
        turn.took(8192, 0);
        assert_eq!(turn.portion(), Some(usize::MAX), "of the middle of a large one");
        turn.took(8190, 819);
        assert_eq!(turn.portion(), None);
        turn.begin();
        assert_eq!(turn.portion(), Some(PORTION), "they were tiny");
        turn.took(1000, FRAMES - 1);
        assert_eq!(turn.portion(), Some(PORTION));
        turn.took(10, 1);
        assert_eq!(turn.portion(), None);
    }
}
