//! Reading answers: the status, and where the answer ends.

use memchr::{memchr, memmem};

/// The longest answer head taken.
pub(super) const HEAD_LIMIT: usize = 64 * 1024;

/// The head of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Answer {
    /// Bytes of the head, its empty line included.
    pub(super) head: usize,
    /// How the body's end is known.
    pub(super) body: Length,
    /// 200, 404, …
    pub(super) status: u16,
    /// Whether the other side ends the connection after this answer.
    pub(super) close: bool,
}

/// How the end of a body is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Length {
    /// It has this many bytes.
    Bytes(u64),
    /// By its last chunk.
    Chunked,
    /// The connection ends with it.
    Close,
}

/// What the start of a buffer holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Parsed {
    /// Not a whole head yet.
    Partial,
    /// A head.
    Head(Answer),
    /// An interim answer (1xx) of so many bytes: the real one follows.
    Interim(usize),
    /// Nothing whose end could be known.
    Bad,
}

/// Reads the head at the start of `bytes`; `bodiless` when the request was a HEAD.
pub(super) fn parse(bytes: &[u8], bodiless: bool) -> Parsed {
    let Some(end) = memmem::find(bytes, b"\r\n\r\n") else {
        return if bytes.len() > HEAD_LIMIT { Parsed::Bad } else { Parsed::Partial };
    };
    let head = &bytes[..end];
    let Some(rest) = head.strip_prefix(b"HTTP/1.") else { return Parsed::Bad };
    let &[minor @ (b'0' | b'1'), b' ', hundreds @ b'1'..=b'5', tens, ones, ..] = rest else {
        return Parsed::Bad;
    };
    let digit = |byte: u8| u16::from(byte.wrapping_sub(b'0'));
    if !tens.is_ascii_digit() || !ones.is_ascii_digit() {
        return Parsed::Bad;
    }
    let status = digit(hundreds) * 100 + digit(tens) * 10 + digit(ones);
    if hundreds == b'1' && status != 101 {
        return Parsed::Interim(end + 4);
    }
    let mut close = minor == b'0';
    let mut length = None;
    let mut chunked = false;
    let mut lines = head;
    while let Some(at) = memchr(b'\n', lines) {
        lines = &lines[at + 1..];
        let line = &lines[..memchr(b'\r', lines).unwrap_or(lines.len())];
        match line.first() {
            Some(b'c' | b'C') => {}
            Some(b't' | b'T') if starts(line, b"transfer-encoding:") => {
                chunked = true;
                continue;
            }
            _ => continue,
        }
        if starts(line, b"content-length:") {
            let value = line[b"content-length:".len()..].trim_ascii();
            length = std::str::from_utf8(value).ok().and_then(|value| value.parse().ok());
            if length.is_none() {
                return Parsed::Bad;
            }
        } else if starts(line, b"connection:") {
            let value = line[b"connection:".len()..].trim_ascii();
            if value.eq_ignore_ascii_case(b"close") {
                close = true;
            } else if value.eq_ignore_ascii_case(b"keep-alive") {
                close = false;
            }
        }
    }
    let empty = bodiless || matches!(status, 101 | 204 | 304);
    let body = match (empty, chunked, length) {
        (true, ..) => Length::Bytes(0),
        (false, true, None) => Length::Chunked,
        (false, false, Some(length)) => Length::Bytes(length),
        // Two ends: whom to believe?
        (false, true, Some(_)) => return Parsed::Bad,
        (false, false, None) => {
            close = true;
            Length::Close
        }
    };
    Parsed::Head(Answer { head: end + 4, body, status, close })
}

fn starts(line: &[u8], name: &[u8]) -> bool {
    line.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(text: &str) -> Answer {
        match parse(text.as_bytes(), false) {
            Parsed::Head(answer) => answer,
            other => panic!("{text:?} is {other:?}"),
        }
    }

    #[test]
    fn status_length_and_connection() {
        let text = "HTTP/1.1 200 OK\r\nServer: x\r\ncontent-length:  5\r\n\r\n";
        let plain = Answer { head: text.len(), body: Length::Bytes(5), status: 200, close: false };
        assert_eq!(head(text), plain);
        assert_eq!(head("HTTP/1.1 503 x\r\nContent-Length: 5\r\n\r\nhello").status, 503);
        assert!(head("HTTP/1.1 200 x\r\nConnection: close\r\nContent-Length: 0\r\n\r\n").close);
        assert!(head("HTTP/1.0 200 x\r\nContent-Length: 0\r\n\r\n").close);
        let kept = "HTTP/1.0 200 x\r\nConnection: Keep-Alive\r\nContent-Length: 0\r\n\r\n";
        assert!(!head(kept).close);
    }

    #[test]
    fn answers_without_a_body() {
        assert_eq!(head("HTTP/1.1 204 No Content\r\n\r\n").body, Length::Bytes(0));
        assert_eq!(
            head("HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n").body,
            Length::Bytes(0)
        );
        let text = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n";
        let Parsed::Head(answer) = parse(text, true) else { panic!("no head") };
        assert_eq!(answer.body, Length::Bytes(0));
    }

    #[test]
    fn ends_by_chunks_and_by_the_connection() {
        let chunked = head("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
        assert_eq!((chunked.body, chunked.close), (Length::Chunked, false));
        let open = head("HTTP/1.1 200 OK\r\n\r\n");
        assert_eq!((open.body, open.close), (Length::Close, true));
        let text = b"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\n\r\n";
        assert_eq!(parse(text, false), Parsed::Interim(28));
    }

    #[test]
    fn what_has_no_known_end_is_refused() {
        for text in [
            "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
            "HTTP/1.1 2x0 OK\r\nContent-Length: 0\r\n\r\n",
            "HTTP/2 200 OK\r\nContent-Length: 0\r\n\r\n",
            "SSH-2.0-OpenSSH\r\n\r\n",
        ] {
            assert_eq!(parse(text.as_bytes(), false), Parsed::Bad, "{text:?}");
        }
        assert_eq!(parse(b"HTTP/1.1 200 OK\r\nContent-", false), Parsed::Partial);
    }
}
