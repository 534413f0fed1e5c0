//! What an endpoint says, as bytes made once.

use super::request::Request;
use super::{LARGE_BODY, NAME_HEADER};

/// Sent when a client asked for it before its body.
pub(super) const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";
/// Sent to what cannot be read.
pub(super) const BAD_REQUEST: &[u8] =
    b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
/// Sent by an endpoint that talks garbage: no HTTP, by its first bytes.
pub(super) const GARBAGE: &[u8] = b"\x00\x01\x02 220 this is not HTTP\r\n";
/// Sent to who wants a WebSocket by the key of RFC 6455's own example, as [`crate::idle`] does.
pub(super) const SWITCHED: &[u8] = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\
    Connection: Upgrade\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";

/// What a service ends with.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    Good,
    Failed,
    Refused,
}

/// The answers of one endpoint.
pub(super) struct Answers {
    usual: Kinds,
    /// To HTTP/1.0, where a client has to be told that its connection stays.
    kept: Kinds,
    refused: Box<[u8]>,
}

struct Kinds {
    small: Box<[u8]>,
    small_head: usize,
    large: Box<[u8]>,
    large_head: usize,
    failed: Box<[u8]>,
}

impl Answers {
    pub(super) fn new(name: &str, body: Option<usize>) -> Answers {
        let small = body.map_or_else(|| format!("{name}\n").into_bytes(), |size| vec![b'x'; size]);
        let kinds = |more: &str| {
            let make = |status: &str, body: &[u8]| made(&format!("{status}{more}"), name, body);
            let (small, small_head) = make("200 OK", &small);
            let (large, large_head) = make("200 OK", &[b'x'; LARGE_BODY]);
            let (failed, _) = make("500 Internal Server Error", b"");
            Kinds { small, small_head, large, large_head, failed }
        };
        let (refused, _) = made("503 Service Unavailable\r\nConnection: close", name, b"");
        Answers { usual: kinds(""), kept: kinds("\r\nConnection: keep-alive"), refused }
    }

    /// The bytes to send for a request whose service has ended so.
    pub(super) fn of(&self, request: &Request, outcome: Outcome) -> &[u8] {
        match outcome {
            Outcome::Good => self.good(request),
            Outcome::Failed => &self.kinds(request).failed,
            Outcome::Refused => &self.refused,
        }
    }

    fn kinds(&self, request: &Request) -> &Kinds {
        if request.old && !request.close { &self.kept } else { &self.usual }
    }

    /// The bytes to send for a request that is answered well.
    pub(super) fn good(&self, request: &Request) -> &[u8] {
        let kinds = self.kinds(request);
        let (answer, head) = match request.large {
            true => (&kinds.large, kinds.large_head),
            false => (&kinds.small, kinds.small_head),
        };
        if request.head_only { &answer[..head] } else { answer }
    }

    /// The answer with the large body, whatever is asked for, and the length of its head.
    pub(super) fn large(&self, request: &Request) -> (&[u8], usize) {
        let kinds = self.kinds(request);
        (&kinds.large, kinds.large_head)
    }
}

/// An answer, and the length of its head.
fn made(status: &str, name: &str, body: &[u8]) -> (Box<[u8]>, usize) {
    let mut answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {}\r\n\
         {NAME_HEADER}: {name}\r\n\r\n",
        body.len()
    )
    .into_bytes();
    let head = answer.len();
    answer.extend_from_slice(body);
    (answer.into_boxed_slice(), head)
}
