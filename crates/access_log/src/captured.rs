//! What a format wants of a request, as the client wrote it.
//!
//! Copied when the head has arrived, because what follows may change it: headers are set and removed,
//! cookies taken out, paths rewritten. One copy of some hundred bytes into a buffer that stays.

/// Parts of a request, by slot. Reused.
#[derive(Clone, Debug, Default)]
pub struct Captured {
    bytes: Vec<u8>,
    /// Where each slot's part stands, from and to.
    spans: Vec<(u32, u32)>,
}

/// The method.
pub(crate) const METHOD: usize = 0;
/// The path.
pub(crate) const PATH: usize = 1;
/// The query.
pub(crate) const QUERY: usize = 2;
/// The host.
pub(crate) const HOST: usize = 3;
/// The first of the headers that are wanted.
pub(crate) const HEADERS: usize = 4;

/// Where a part stands that is not there: nowhere.
const NOWHERE: (u32, u32) = (u32::MAX, 0);

/// A buffer that has grown beyond this gives its memory back.
const KEPT_BYTES: usize = 4096;

impl Captured {
    /// Begins with the parts that every request has.
    pub fn begin(&mut self, method: &[u8], path: &[u8], query: Option<&[u8]>, host: &[u8]) {
        self.clear();
        let some = |text| Some(text).filter(|text: &&[u8]| !text.is_empty());
        for part in [some(method), some(path), query, some(host)] {
            self.push(part);
        }
    }

    /// Appends a header's value; in the order of [`Wanted::request_headers`](crate::Wanted).
    pub fn push(&mut self, part: Option<&[u8]>) {
        let Some(part) = part else { return self.spans.push(NOWHERE) };
        // A head is bounded by far less than 4 GiB.
        let start = self.bytes.len();
        self.spans.push((start as u32, (start + part.len()) as u32));
        self.bytes.extend_from_slice(part);
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.bytes.clear();
        if self.bytes.capacity() > KEPT_BYTES {
            self.bytes.shrink_to(KEPT_BYTES);
        }
        self.spans.clear();
    }

    /// The part in a slot.
    #[inline]
    pub(crate) fn get(&self, slot: usize) -> Option<&[u8]> {
        let (start, end) = *self.spans.get(slot)?;
        self.bytes.get(start as usize..end as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_found_by_slot_and_those_that_are_not_there_are_not() {
        let mut captured = Captured::default();
        assert_eq!(captured.get(METHOD), None);
        captured.begin(b"GET", b"/", None, b"");
        captured.push(None);
        captured.push(Some(b""));
        captured.push(Some(b"agent"));
        assert_eq!(captured.get(METHOD), Some(&b"GET"[..]));
        assert_eq!((captured.get(QUERY), captured.get(HOST)), (None, None));
        assert_eq!((captured.get(HEADERS), captured.get(HEADERS + 1)), (None, Some(&b""[..])));
        assert_eq!(captured.get(HEADERS + 2), Some(&b"agent"[..]));
        captured.begin(b"PUT", b"/a", Some(b""), b"h");
        assert_eq!((captured.get(QUERY), captured.get(HEADERS)), (Some(&b""[..]), None));
    }
}
