//! Reading answers: the status, and where the answer ends.

use memchr::{memchr, memmem};

/// The longest answer head taken.
pub(super) const HEAD_LIMIT: usize = 64 * 1024;

/// The head of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Answer {
    /// Bytes of the head, its empty line included.
    pub(super) head: usize,
    /// Bytes of the body that follows.
    pub(super) body: u64,
    /// Whether the status is 2xx.
    pub(super) good: bool,
    /// Whether the other side ends the connection after this answer.
    pub(super) close: bool,
}

/// What the start of a buffer holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Parsed {
    /// Not a whole head yet.
    Partial,
    /// A head.
    Head(Answer),
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
    let mut close = minor == b'0';
    let mut length = None;
    let mut lines = head;
    while let Some(at) = memchr(b'\n', lines) {
        lines = &lines[at + 1..];
        let line = &lines[..memchr(b'\r', lines).unwrap_or(lines.len())];
        match line.first() {
            Some(b'c' | b'C') => {}
            Some(b't' | b'T') if starts(line, b"transfer-encoding:") => return Parsed::Bad,
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
    let empty =
        bodiless || hundreds == b'1' || matches!((hundreds, tens, ones), (b'2' | b'3', b'0', b'4'));
    let body = match (empty, length) {
        (true, _) => 0,
        (false, Some(length)) => length,
        (false, None) => return Parsed::Bad,
    };
    Parsed::Head(Answer { head: end + 4, body, good: hundreds == b'2', close })
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
        let plain = Answer { head: text.len(), body: 5, good: true, close: false };
        assert_eq!(head(text), plain);
        assert!(!head("HTTP/1.1 503 x\r\nContent-Length: 5\r\n\r\nhello").good);
        assert!(head("HTTP/1.1 200 x\r\nConnection: close\r\nContent-Length: 0\r\n\r\n").close);
        assert!(head("HTTP/1.0 200 x\r\nContent-Length: 0\r\n\r\n").close);
        let kept = "HTTP/1.0 200 x\r\nConnection: Keep-Alive\r\nContent-Length: 0\r\n\r\n";
        assert!(!head(kept).close);
    }

    #[test]
    fn answers_without_a_body() {
        assert_eq!(head("HTTP/1.1 204 No Content\r\n\r\n").body, 0);
        assert_eq!(head("HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n").body, 0);
        let text = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n";
        let Parsed::Head(answer) = parse(text, true) else { panic!("no head") };
        assert_eq!(answer.body, 0);
    }

    #[test]
    fn what_has_no_known_end_is_refused() {
        for text in [
            "HTTP/1.1 200 OK\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
            "HTTP/2 200 OK\r\nContent-Length: 0\r\n\r\n",
            "SSH-2.0-OpenSSH\r\n\r\n",
        ] {
            assert_eq!(parse(text.as_bytes(), false), Parsed::Bad, "{text:?}");
        }
        assert_eq!(parse(b"HTTP/1.1 200 OK\r\nContent-", false), Parsed::Partial);
    }
}
