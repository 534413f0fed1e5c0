//! Reading requests: just enough to know what to answer and where the next begins.
//!
//! Lenient on purpose: what an endpoint must refuse is the balancer's matter, and
//! tested there against a strict reader.

use memchr::{memchr, memmem};

/// The longest request head taken; a longer one is answered 400.
pub(super) const HEAD_LIMIT: usize = 64 * 1024;

/// What a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Request {
    /// The 64 KiB body and not the small one.
    pub(super) large: bool,
    /// `HEAD`: no body in the answer.
    pub(super) head_only: bool,
    /// The connection ends after the answer.
    pub(super) close: bool,
    /// It asks for another protocol: the connection becomes a WebSocket.
    pub(super) upgrade: bool,
    /// The client waits for `100 Continue` before it sends the body.
    pub(super) expects: bool,
    /// What follows the head.
    pub(super) body: Body,
}

/// What has yet to be read of a request's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Body {
    /// This many bytes.
    Bytes(u64),
    /// Chunks; at the start of a chunk's size line.
    Size,
    /// Within a chunk: this many bytes, its line end included.
    Chunk(u64),
    /// After the last chunk, at the start of a trailer line.
    Trailer,
}

/// What the start of a buffer holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Parsed {
    /// Not a whole head yet.
    Partial,
    /// A head of this many bytes.
    Head(Request, usize),
    /// Not HTTP/1.x.
    Bad,
}

/// Reads the head at the start of `bytes`.
pub(super) fn parse(bytes: &[u8]) -> Parsed {
    let Some(end) = memmem::find(bytes, b"\r\n\r\n") else {
        return if bytes.len() > HEAD_LIMIT { Parsed::Bad } else { Parsed::Partial };
    };
    let head = &bytes[..end];
    let line_end = memchr(b'\r', head).unwrap_or(head.len());
    let mut words = head[..line_end].split(|byte| *byte == b' ');
    let (Some(method), Some(target), Some(version), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return Parsed::Bad;
    };
    let close = match version {
        b"HTTP/1.1" => false,
        b"HTTP/1.0" => true,
        _ => return Parsed::Bad,
    };
    let mut request = Request {
        large: is_large(target),
        head_only: method == b"HEAD",
        close,
        upgrade: false,
        expects: false,
        body: Body::Bytes(0),
    };
    let mut rest = &head[line_end..];
    while rest.len() > 2 {
        rest = &rest[2..];
        let end = memmem::find(rest, b"\r\n").unwrap_or(rest.len());
        if !header(&rest[..end], &mut request) {
            return Parsed::Bad;
        }
        rest = &rest[end..];
    }
    Parsed::Head(request, end + 4)
}

fn is_large(target: &[u8]) -> bool {
    target.strip_prefix(b"/64k").is_some_and(|rest| matches!(rest.first(), None | Some(b'?')))
}

/// Takes from a header line what matters; false when its value cannot be read.
fn header(line: &[u8], request: &mut Request) -> bool {
    // Most lines are none of these five: one look at the first letter settles it.
    if !matches!(line.first(), Some(b'c' | b'C' | b't' | b'T' | b'e' | b'E' | b'u' | b'U')) {
        return true;
    }
    let Some(colon) = memchr(b':', line) else { return false };
    let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
    if name.eq_ignore_ascii_case(b"content-length") {
        let Some(length) = std::str::from_utf8(value).ok().and_then(|v| v.parse().ok()) else {
            return false;
        };
        request.body = Body::Bytes(length);
    } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
        request.body = Body::Size;
    } else if name.eq_ignore_ascii_case(b"connection") {
        if value.eq_ignore_ascii_case(b"close") {
            request.close = true;
        } else if value.eq_ignore_ascii_case(b"keep-alive") {
            request.close = false;
        }
    } else if name.eq_ignore_ascii_case(b"expect") {
        request.expects = true;
    } else if name.eq_ignore_ascii_case(b"upgrade") {
        request.upgrade = true;
    }
    true
}

impl Body {
    /// Whether nothing is left to read.
    pub(super) fn is_done(self) -> bool {
        self == Body::Bytes(0)
    }

    /// Takes what it can from the start of `bytes` and says how much that was;
    /// `None` when a chunk's size cannot be read. Call again with the rest until
    /// [`Body::is_done`]: a line that is not whole yet is left where it is.
    pub(super) fn skip(&mut self, bytes: &[u8]) -> Option<usize> {
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
                        return (rest.len() <= HEAD_LIMIT).then_some(taken);
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

    fn head(text: &str) -> Request {
        match parse(text.as_bytes()) {
            Parsed::Head(request, length) => {
                assert_eq!(length, text.len());
                request
            }
            other => panic!("{text:?} is {other:?}"),
        }
    }

    #[test]
    fn what_is_asked_for() {
        let plain = head("GET / HTTP/1.1\r\nHost: a\r\nAccept: */*\r\n\r\n");
        let none = Body::Bytes(0);
        let same = Request {
            large: false,
            head_only: false,
            close: false,
            upgrade: false,
            expects: false,
            body: none,
        };
        assert_eq!(plain, same);
        assert!(head("GET /64k HTTP/1.1\r\nHost: a\r\n\r\n").large);
        assert!(head("GET /64k?x=1 HTTP/1.1\r\nHost: a\r\n\r\n").large);
        assert!(!head("GET /64kb HTTP/1.1\r\nHost: a\r\n\r\n").large);
        assert!(head("HEAD / HTTP/1.1\r\nHost: a\r\n\r\n").head_only);
        assert!(head("GET / HTTP/1.1\r\nconnection: Close\r\n\r\n").close);
        assert!(head("GET / HTTP/1.0\r\n\r\n").close);
        assert!(!head("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n").close);
        let post = head("POST / HTTP/1.1\r\nContent-Length: 12\r\nExpect: 100-continue\r\n\r\n");
        assert_eq!((post.body, post.expects), (Body::Bytes(12), true));
        let chunked = head("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n");
        assert_eq!(chunked.body, Body::Size);
    }

    #[test]
    fn what_is_not_a_request() {
        assert_eq!(parse(b"GET / HTTP/1.1\r\nHost: a\r\n"), Parsed::Partial);
        assert_eq!(parse(b"PRI * HTTP/2.0\r\n\r\n"), Parsed::Bad);
        assert_eq!(parse(b"GET /\r\n\r\n"), Parsed::Bad);
        assert_eq!(parse(b"GET / HTTP/1.1\r\nContent-Length: x\r\n\r\n"), Parsed::Bad);
        assert_eq!(parse(&vec![b'a'; HEAD_LIMIT + 1]), Parsed::Bad);
    }

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
