//! Where the body of an HTTP/1 message ends, by its length or by chunks.

use memchr::memmem;

/// The longest line between chunks.
const LINE_LIMIT: usize = 64 * 1024;

/// What has yet to be read of a message's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Body {
    /// This many bytes.
    Bytes(u64),
    /// Chunks; at the start of a chunk's size line.
    Size,
    /// Within a chunk: this many bytes, its line end included.
    Chunk(u64),
    /// After the last chunk, at the start of a trailer line.
    Trailer,
}

impl Body {
    /// Whether nothing is left to read.
    pub(crate) fn is_done(self) -> bool {
        self == Body::Bytes(0)
    }

    /// Takes what it can from the start of `bytes` and says how much that was;
    /// `None` when a chunk's size cannot be read. Call again with the rest until
    /// [`Body::is_done`]: a line that is not whole yet is left where it is.
    pub(crate) fn skip(&mut self, bytes: &[u8]) -> Option<usize> {
        let mut taken = 0;
        loop {
            let rest = &bytes[taken..];
            match *self {
                Body::Bytes(0) => return Some(taken),
                Body::Bytes(left) | Body::Chunk(left) => {
                    let now = left.min(rest.len() as u64);
                    taken += now as usize;
                    let left = left - now;
                    let chunk = matches!(self, Body::Chunk(_));
                    *self = match (chunk, left) {
                        (true, 0) => Body::Size,
                        (true, left) => Body::Chunk(left),
                        (false, left) => Body::Bytes(left),
                    };
                    if left > 0 {
                        return Some(taken);
                    }
                }
                Body::Size | Body::Trailer => {
                    let Some(line) = memmem::find(rest, b"\r\n") else {
                        return (rest.len() <= LINE_LIMIT).then_some(taken);
                    };
                    taken += line + 2;
                    *self = if *self == Body::Trailer {
                        if line == 0 { Body::Bytes(0) } else { Body::Trailer }
                    } else {
                        match chunk_size(&rest[..line])? {
                            0 => Body::Trailer,
                            size => Body::Chunk(size + 2),
                        }
                    };
                }
            }
        }
    }
}

/// The size a chunk's first line states, extensions ignored.
fn chunk_size(line: &[u8]) -> Option<u64> {
    let digits = line.split(|byte| *byte == b';').next()?.trim_ascii();
    let size = u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    (size <= u64::MAX - 2).then_some(size)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_chunk_without_a_size_is_an_error() {
        assert_eq!(Body::Size.skip(b"no\r\n"), None);
    }

    proptest! {
        /// However the bytes of a chunked body are cut, it ends at the same place.
        #[test]
        fn a_chunked_body_ends_where_it_ends(
            chunks in proptest::collection::vec(1_usize..40, 0..6),
            trailers in 0_usize..3,
            step in 1_usize..17,
        ) {
            let mut bytes = Vec::new();
            for size in &chunks {
                bytes.extend(format!("{size:x};ext=1\r\n").bytes());
                bytes.extend(vec![b'\r'; *size]);
                bytes.extend(b"\r\n");
            }
            bytes.extend(b"0\r\n");
            bytes.extend(b"A: b\r\n".repeat(trailers));
            bytes.extend(b"\r\n");
            let length = bytes.len();
            bytes.extend(b"GET / HTTP/1.1\r\n");

            let (mut body, mut taken) = (Body::Size, 0);
            let mut seen = 0;
            while !body.is_done() {
                prop_assert!(seen < bytes.len(), "not done at the end");
                seen = (seen + step).min(bytes.len());
                taken += body.skip(&bytes[taken..seen]).expect("well formed");
            }
            prop_assert_eq!(taken, length);
        }
    }
}
