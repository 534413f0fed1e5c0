//! Texts as numbers: each is kept once, up to a bound.

use std::collections::HashMap;

use subak_balance::hash64;

/// Texts in the order in which they were first seen.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    numbers: HashMap<u64, u32>,
    bytes: Vec<u8>,
    ends: Vec<u32>,
}

/// Bytes of texts that are kept. Past this a text is known by its hash, which is as good for all but
/// the exact place that a balancer would give it.
const BYTES_MAX: usize = 64 * 1024 * 1024;

impl Names {
    /// The number of `text`, from 0.
    pub(crate) fn number(&mut self, text: &[u8]) -> u32 {
        self.number_within(text, usize::MAX).unwrap_or(u32::MAX)
    }

    /// The same, but none for one more than `most` texts.
    pub(crate) fn number_within(&mut self, text: &[u8], most: usize) -> Option<u32> {
        let hash = hash64(text, 0);
        if let Some(number) = self.numbers.get(&hash) {
            return Some(*number);
        }
        if self.ends.len() >= most {
            return None;
        }
        let number = self.ends.len() as u32;
        if self.bytes.len() + text.len() <= BYTES_MAX {
            self.bytes.extend_from_slice(text);
        } else {
            self.bytes.extend_from_slice(&hash.to_le_bytes());
        }
        self.ends.push(self.bytes.len() as u32);
        self.numbers.insert(hash, number);
        Some(number)
    }

    /// The text with this number.
    pub(crate) fn text(&self, number: u32) -> &[u8] {
        let begin = match number {
            0 => 0,
            _ => self.ends[number as usize - 1],
        };
        &self.bytes[begin as usize..self.ends[number as usize] as usize]
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }
}

#[cfg(test)]
mod tests {
    use super::Names;

    #[test]
    fn a_text_has_one_number_and_a_number_one_text() {
        let mut names = Names::default();
        let numbers: Vec<_> =
            [&b"a"[..], b"", b"bc", b"a", b"bc"].map(|text| names.number(text)).into();
        assert_eq!(numbers, [0, 1, 2, 0, 2]);
        assert_eq!([names.text(0), names.text(1), names.text(2)], [&b"a"[..], b"", b"bc"]);
        assert_eq!(names.len(), 3);
    }
}
