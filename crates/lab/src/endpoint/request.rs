//! Reading requests: just enough to know what to answer and where the next begins.
//!
//! Lenient on purpose: what an endpoint must refuse is the balancer's matter, and
//! tested there against a strict reader.

use memchr::{memchr, memmem};

use super::condition::Condition;
use crate::body::Body;

/// The longest request head taken; a longer one is answered 400.
pub(super) const HEAD_LIMIT: usize = 64 * 1024;

/// What begins like this is for the endpoint itself: no hit, and no service.
const OWN: &[u8] = b"/__";

/// What a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Request {
    /// The 64 KiB body and not the small one.
    pub(super) large: bool,
    /// It is for the endpoint itself.
    pub(super) own: Own,
    /// What is asked for: a number made of method and target, where a cache wants it.
    pub(super) object: u64,
    /// `HEAD`: no body in the answer.
    pub(super) head_only: bool,
    /// HTTP/1.0.
    pub(super) old: bool,
    /// The connection ends after the answer.
    pub(super) close: bool,
    /// It asks for another protocol: the connection becomes a WebSocket.
    pub(super) upgrade: bool,
    /// The client waits for `100 Continue` before it sends the body.
    pub(super) expects: bool,
    /// What follows the head.
    pub(super) body: Body,
}

/// What is asked of the endpoint itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Own {
    /// Nothing: it is a usual request.
    No,
    /// Whether it lives.
    Health,
    /// The counters.
    Stats,
    /// To be in this condition from now on; answered with the counters.
    Set(Condition),
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
    let old = match version {
        b"HTTP/1.1" => false,
        b"HTTP/1.0" => true,
        _ => return Parsed::Bad,
    };
    let mut request = Request {
        large: is_large(target),
        own: match target.starts_with(OWN) {
            true => match own(method, target) {
                Some(own) => own,
                None => return Parsed::Bad,
            },
            false => Own::No,
        },
        object: 0,
        head_only: method == b"HEAD",
        old,
        close: old,
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

fn own(method: &[u8], target: &[u8]) -> Option<Own> {
    match (method, &target[OWN.len()..]) {
        (_, b"health") => Some(Own::Health),
        (_, b"stats") => Some(Own::Stats),
        (b"PUT", target) => {
            let query = target.strip_prefix(b"condition?")?;
            Condition::read(query).map(Own::Set)
        }
        _ => Some(Own::No),
    }
}

/// Tells objects apart: FNV-1a over method and target, the words before the version.
pub(super) fn object(head: &[u8]) -> u64 {
    let line = &head[..memchr(b'\r', head).unwrap_or(head.len())];
    line.iter().fold(0xCBF2_9CE4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01B3)
    })
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

#[cfg(test)]
mod tests {
    use super::*;

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
            own: Own::No,
            object: 0,
            head_only: false,
            old: false,
            close: false,
            upgrade: false,
            expects: false,
            body: none,
        };
        assert_eq!(plain, same);
        assert_eq!(head("GET /__health HTTP/1.1\r\n\r\n").own, Own::Health);
        assert_eq!(head("GET /__condition?slow=2 HTTP/1.1\r\n\r\n").own, Own::No);
        let slow = Condition { slow: 2000, ..Condition::WELL };
        assert_eq!(head("PUT /__condition?slow=2 HTTP/1.1\r\n\r\n").own, Own::Set(slow));
        assert_eq!(parse(b"PUT /__condition?fast=2 HTTP/1.1\r\n\r\n"), Parsed::Bad);
        assert_ne!(object(b"GET /a HTTP/1.1\r\nHost: a"), object(b"GET /b HTTP/1.1\r\nHost: a"));
        assert_eq!(object(b"GET /a HTTP/1.1\r\nHost: a"), object(b"GET /a HTTP/1.1\r\nHost: b"));
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
}
