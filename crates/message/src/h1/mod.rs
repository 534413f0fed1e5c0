//! The grammar of HTTP/1.0 and HTTP/1.1 (RFC 9112), read strictly and written canonically.
//!
//! [`parse_request`] and [`parse_response`] read a head from the start of a buffer, [`ChunkedDecoder`]
//! reads chunked bodies wherever they are cut, [`write_request_head`] and [`write_response_head`]
//! write what goes on: without the fields that concern one connection only, with framing and
//! `Connection` as the caller decides.

mod block;
mod chunked;
mod diagnose;
mod request;
mod response;
mod write;

pub use chunked::{
    ChunkedDecoder, ChunkedError, ChunkedFault, Decoded, MAX_EXTENSION_BYTES, MAX_TRAILER_BYTES,
    MAX_TRAILER_FIELDS, Step,
};
pub use request::{RequestFraming, parse_request};
pub use response::{Asked, ResponseFraming, parse_response};
pub use write::{
    ConnectionOut, RequestOut, ResponseOut, write_chunk_end, write_chunk_prefix, write_last_chunk,
    write_request_head, write_response_head,
};

/// The most field lines a head may have, whatever the limits say.
pub const MAX_FIELDS: usize = 128;

/// How far a parser came.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Progress<T> {
    /// The head is not complete; nothing was consumed. Call again with more bytes.
    Partial,
    /// The head is complete.
    Complete {
        /// Bytes of the buffer that belong to it.
        consumed: usize,
        /// How the body and the connection go on.
        framing: T,
    },
}
