//! Memory that lines are written into: all of it is there and initialised, and a mark says how much is
//! used.
//!
//! So a write is one comparison and a store of a size the compiler knows; it may store more than it
//! counts, because what is behind the mark says nothing.

/// What a page has room for at first.
pub(crate) const ROOM: usize = 68 * 1024;

/// Bytes with room behind them.
#[derive(Debug, Default)]
pub(crate) struct Page {
    room: Vec<u8>,
    used: usize,
}

impl Page {
    /// What has been written.
    pub(crate) fn written(&self) -> &[u8] {
        &self.room[..self.used]
    }

    /// How many bytes that are.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.used
    }

    /// Begins again, in the same memory.
    pub(crate) fn clear(&mut self) {
        self.used = 0;
    }

    /// Gives away what has been written, with its memory, and goes on in `other`'s.
    pub(crate) fn exchange(&mut self, mut other: Vec<u8>) -> Vec<u8> {
        // It was full once: hardly anything is left to be initialised.
        other.resize(other.capacity(), 0);
        let mut bytes = std::mem::replace(&mut self.room, other);
        bytes.truncate(std::mem::take(&mut self.used));
        bytes
    }

    /// Writes the first `count` of these bytes.
    #[inline(always)]
    pub(crate) fn put<const N: usize>(&mut self, bytes: &[u8; N], count: usize) {
        debug_assert!(count <= N);
        if let Some(place) = self.room.get_mut(self.used..).and_then(|room| room.first_chunk_mut())
        {
            *place = *bytes;
        } else {
            self.grow(N);
            self.room[self.used..self.used + N].copy_from_slice(bytes);
        }
        self.used += count;
    }

    /// Writes one byte.
    #[inline(always)]
    pub(crate) fn byte(&mut self, byte: u8) {
        self.put(&[byte], 1);
    }

    /// Writes all of these bytes.
    #[inline]
    pub(crate) fn extend(&mut self, bytes: &[u8]) {
        self.place(bytes.len()).copy_from_slice(bytes);
        self.used += bytes.len();
    }

    /// Writes these bytes if every one stands for itself in a line ([`escape`](crate::escape)).
    #[inline]
    pub(crate) fn extend_if_plain(&mut self, bytes: &[u8]) -> bool {
        let odd = copy(bytes, self.place(bytes.len()));
        if odd == 0 {
            self.used += bytes.len();
        }
        odd == 0
    }

    /// The next `count` bytes; they are used only when `used` says so.
    #[inline(always)]
    fn place(&mut self, count: usize) -> &mut [u8] {
        if self.room.len() - self.used < count {
            self.grow(count);
        }
        &mut self.room[self.used..self.used + count]
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self, more: usize) {
        let wanted = (self.used + more).max(ROOM);
        // A line that is longer than a page is rare; it is not to be copied at every turn.
        self.room.resize(wanted.max(self.room.len() * 2), 0);
    }
}

/// Copies `bytes` to `place`, of the same length; not 0 where one of them needs an escape. By words,
/// of which the last may overlap the one before.
#[inline(always)]
fn copy(bytes: &[u8], place: &mut [u8]) -> u64 {
    let mut odd = 0;
    if let (Some(last), Some(last_place)) = (bytes.last_chunk(), place.last_chunk_mut()) {
        *last_place = *last;
        odd = oddities(u64::from_le_bytes(*last));
        for (word, place) in bytes.as_chunks().0.iter().zip(place.as_chunks_mut().0) {
            *place = *word;
            odd |= oddities(u64::from_le_bytes(*word));
        }
    } else if let (Some(first), Some(last)) = (bytes.first_chunk(), bytes.last_chunk()) {
        if let Some(place) = place.first_chunk_mut() {
            *place = *first;
        }
        if let Some(place) = place.last_chunk_mut() {
            *place = *last;
        }
        let (first, last) = (u32::from_le_bytes(*first), u32::from_le_bytes(*last));
        odd = oddities(u64::from(first) << 32 | u64::from(last));
    } else {
        for (byte, place) in bytes.iter().zip(place) {
            *place = *byte;
            odd |= oddities(u64::from_ne_bytes([*byte; 8]));
        }
    }
    odd
}

/// Not 0 where one of eight bytes is a control character, a quote, a backslash, or no ASCII. Each
/// subtraction borrows from a byte that is found anyway, so there is no false alarm beside a true one.
#[inline(always)]
fn oddities(word: u64) -> u64 {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    let quote = word ^ (ONES * b'"' as u64);
    let backslash = word ^ (ONES * b'\\' as u64);
    (word.wrapping_sub(ONES * 0x20)
        | quote.wrapping_sub(ONES)
        | backslash.wrapping_sub(ONES)
        | word.wrapping_add(ONES)
        | word)
        & (ONES * 0x80)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_is_judged_alike_wherever_it_stands() {
        let mut page = Page::default();
        for byte in 0..=255u8 {
            let is_plain = (0x20..0x7f).contains(&byte) && byte != b'"' && byte != b'\\';
            // Lengths and places that every branch sees; neighbours that borrow and carry most easily.
            for (length, around) in (1..20).zip([b' ', b'!', b'#', b'[', b']', b'~'].repeat(4)) {
                for place in 0..length {
                    let mut bytes = [around; 20];
                    bytes[place] = byte;
                    page.clear();
                    page.byte(b'>');
                    let was_taken = page.extend_if_plain(&bytes[..length]);
                    assert_eq!(was_taken, is_plain, "{byte:#x} at {place} of {length}");
                    let written = page.written().split_first().map(|(_, rest)| rest);
                    assert_eq!(written, Some(if is_plain { &bytes[..length] } else { &[] }));
                }
            }
        }
    }

    #[test]
    fn a_page_grows_and_begins_anew() {
        let mut page = Page::default();
        let mut expected = Vec::new();
        for turn in 0..20_000 {
            let word = [b'a' + (turn % 26) as u8; 32];
            page.put(&word, turn % 33);
            page.extend(&word[..turn % 7]);
            expected.extend_from_slice(&word[..turn % 33]);
            expected.extend_from_slice(&word[..turn % 7]);
        }
        assert!(page.len() > 4 * ROOM && page.written() == expected);
        assert!(page.exchange(Vec::new()) == expected && page.len() == 0);
        page.byte(b'x');
        page.clear();
        page.byte(b'y');
        assert_eq!(page.written(), b"y");
        let mut other = Vec::with_capacity(ROOM);
        other.extend_from_slice(b"what was there before");
        let address = other.as_ptr();
        assert_eq!(page.exchange(other), b"y");
        page.byte(b'z');
        assert_eq!((page.written(), page.written().as_ptr()), (&b"z"[..], address));
    }
}
