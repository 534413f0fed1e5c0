//! Writing heads and chunks: what goes on, in canonical form.
//!
//! Left out are the fields that concern the other connection only: `Connection` and everything it
//! names (except [guarded names](Known::is_guarded) and what was appended here, so that a client can
//! not strip what Subak adds), `Keep-Alive`, `Proxy-Connection`, `TE`, `Transfer-Encoding`,
//! `HTTP2-Settings`, `Upgrade` unless the connection is to become a tunnel, `Trailer` unless the body
//! is chunked, and [look-alikes](Known::Lookalike). Framing and `Connection` are written from what
//! the caller says, never copied.
//!
//! Cost: fields that were received as `Name: value` stand in one arena and are copied in runs; a
//! typical head is three or four copies.

use crate::fields::{CANONICAL, Fields};
use crate::framing::{self, BodyLength, ConnectionOptions};
use crate::known::Known;
use crate::request::RequestHead;
use crate::response::ResponseHead;

/// What is said about the connection that the head is written to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ConnectionOut {
    /// Nothing: persistent, as HTTP/1.1 is by itself.
    #[default]
    Implied,
    /// `keep-alive`, which HTTP/1.0 needs.
    KeepAlive,
    /// `close`
    Close,
    /// `upgrade`, with the `Upgrade` fields of the head.
    Upgrade,
}

/// How a request goes to an endpoint.
#[derive(Clone, Copy, Debug)]
pub struct RequestOut<'a> {
    /// The target, usually [`RequestHead::forward_target`].
    pub target: &'a [u8],
    /// The Host to write when the head has none (HTTP/1.0 clients).
    pub default_host: &'a [u8],
    /// The framing to announce. [`BodyLength::None`] and [`BodyLength::UntilClose`] announce
    /// nothing, which means no body.
    pub body: BodyLength,
    /// The connection.
    pub connection: ConnectionOut,
    /// Forward `Expect: 100-continue`, so that the endpoint decides.
    pub expect_continue: bool,
}

/// How an answer goes to a client.
#[derive(Clone, Copy, Debug)]
pub struct ResponseOut {
    /// The framing to announce. [`BodyLength::None`] keeps the Content-Length the head has, which
    /// answers to HEAD and 304 may have without a body; 1xx and 204 never have one.
    pub body: BodyLength,
    /// The connection.
    pub connection: ConnectionOut,
}

/// Never copied: they concern the other connection, or are written anew, or imitate.
const DROPPED: u64 = Known::Connection.bit()
    | Known::KeepAlive.bit()
    | Known::ProxyConnection.bit()
    | Known::TransferEncoding.bit()
    | Known::Te.bit()
    | Known::Upgrade.bit()
    | Known::Http2Settings.bit()
    | Known::Trailer.bit()
    | Known::ContentLength.bit()
    | Known::Lookalike.bit();

/// Appends a request head, its empty line included.
pub fn write_request_head(out: &mut Vec<u8>, head: &RequestHead, to: &RequestOut<'_>) {
    let fields = &head.fields;
    out.reserve(head.method_text().len() + to.target.len() + to.default_host.len() + room(fields));
    out.extend_from_slice(head.method_text());
    out.push(b' ');
    out.extend_from_slice(to.target);
    out.extend_from_slice(b" HTTP/1.1\r\n");
    if !fields.has(Known::Host) {
        out.extend_from_slice(b"Host: ");
        out.extend_from_slice(to.default_host);
        out.extend_from_slice(b"\r\n");
    }
    let mut dropped = DROPPED;
    if !to.expect_continue {
        dropped |= Known::Expect.bit();
    }
    write_fields(out, fields, keep_special(dropped, to.body, to.connection));
    // Only this member of TE means something beyond one connection, and it is a field named by
    // Connection (RFC 9110, 10.1.4).
    let trailers = framing::lists(fields, Known::Te, b"trailers");
    if trailers {
        out.extend_from_slice(b"TE: trailers\r\n");
    }
    write_connection(out, to.connection, trailers);
    write_framing(out, to.body);
    out.extend_from_slice(b"\r\n");
}

/// Appends an answer's head, its empty line included. The version written is always HTTP/1.1
/// (RFC 9110, 2.5), also towards HTTP/1.0 clients.
pub fn write_response_head(out: &mut Vec<u8>, head: &ResponseHead, to: &ResponseOut) {
    let fields = &head.fields;
    let reason = head.reason();
    out.reserve(reason.len() + room(fields));
    out.extend_from_slice(b"HTTP/1.1 ");
    write_decimal(out, u64::from(head.status));
    out.push(b' ');
    out.extend_from_slice(reason);
    out.extend_from_slice(b"\r\n");
    let mut dropped = keep_special(DROPPED, to.body, to.connection);
    if to.body == BodyLength::None && head.status >= 200 && head.status != 204 {
        dropped &= !Known::ContentLength.bit();
    }
    write_fields(out, fields, dropped);
    write_connection(out, to.connection, false);
    write_framing(out, to.body);
    out.extend_from_slice(b"\r\n");
}

/// Appends what precedes the bytes of a chunk. A chunk of 0 bytes would end the body: do not write
/// one, see [`write_last_chunk`].
pub fn write_chunk_prefix(out: &mut Vec<u8>, len: usize) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = [0; 16];
    let mut at = text.len();
    let mut rest = len;
    loop {
        at -= 1;
        text[at] = DIGITS[rest & 15];
        rest >>= 4;
        if rest == 0 {
            break;
        }
    }
    out.extend_from_slice(&text[at..]);
    out.extend_from_slice(b"\r\n");
}

/// Appends what follows the bytes of a chunk.
pub fn write_chunk_end(out: &mut Vec<u8>) {
    out.extend_from_slice(b"\r\n");
}

/// Appends the end of a chunked body with its trailers, if any.
pub fn write_last_chunk(out: &mut Vec<u8>, trailers: &Fields) {
    out.reserve(room(trailers));
    out.extend_from_slice(b"0\r\n");
    write_fields(out, trailers, DROPPED);
    out.extend_from_slice(b"\r\n");
}

/// Enough for all fields and everything that is added to a head.
fn room(fields: &Fields) -> usize {
    fields.bytes().len() + 192
}

fn keep_special(mut dropped: u64, body: BodyLength, connection: ConnectionOut) -> u64 {
    if body == BodyLength::Chunked {
        dropped &= !Known::Trailer.bit();
    }
    if connection == ConnectionOut::Upgrade {
        dropped &= !Known::Upgrade.bit();
    }
    dropped
}

fn write_connection(out: &mut Vec<u8>, connection: ConnectionOut, te: bool) {
    out.extend_from_slice(match (connection, te) {
        (ConnectionOut::Implied, false) => b"",
        (ConnectionOut::Implied, true) => b"Connection: TE\r\n",
        (ConnectionOut::KeepAlive, false) => b"Connection: keep-alive\r\n",
        (ConnectionOut::KeepAlive, true) => b"Connection: keep-alive, TE\r\n",
        (ConnectionOut::Close, false) => b"Connection: close\r\n",
        (ConnectionOut::Close, true) => b"Connection: close, TE\r\n",
        (ConnectionOut::Upgrade, false) => b"Connection: upgrade\r\n",
        (ConnectionOut::Upgrade, true) => b"Connection: upgrade, TE\r\n",
    });
}

fn write_framing(out: &mut Vec<u8>, body: BodyLength) {
    match body {
        BodyLength::None | BodyLength::UntilClose => {}
        BodyLength::Chunked => out.extend_from_slice(b"Transfer-Encoding: chunked\r\n"),
        BodyLength::Known(length) => {
            out.extend_from_slice(b"Content-Length: ");
            write_decimal(out, length);
            out.extend_from_slice(b"\r\n");
        }
    }
}

fn write_decimal(out: &mut Vec<u8>, mut number: u64) {
    let mut text = [0; 20];
    let mut at = text.len();
    loop {
        at -= 1;
        text[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(&text[at..]);
}

/// Appends the fields whose bit is not in `dropped` and which no received `Connection` names.
fn write_fields(out: &mut Vec<u8>, fields: &Fields, dropped: u64) {
    let strip = fields.has(Known::Connection) && ConnectionOptions::of(fields).names;
    let bytes = fields.bytes();
    let (mut run, mut run_end) = (0, 0);
    for entry in fields.entries() {
        if dropped & entry.known.bit() != 0 || (strip && fields.connection_removes(entry)) {
            continue;
        }
        let start = entry.name_start as usize;
        if entry.flags & CANONICAL == 0 {
            out.extend_from_slice(&bytes[run..run_end]);
            (run, run_end) = (0, 0);
            out.extend_from_slice(fields.name(entry));
            out.extend_from_slice(b": ");
            out.extend_from_slice(fields.value(entry));
            out.extend_from_slice(b"\r\n");
            continue;
        }
        if start != run_end {
            out.extend_from_slice(&bytes[run..run_end]);
            run = start;
        }
        run_end = entry.value_start as usize + entry.value_len as usize + 2;
    }
    out.extend_from_slice(&bytes[run..run_end]);
}
