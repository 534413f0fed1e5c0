//! HTTP messages as values: what is a request, what is an answer, and where does each end?
//!
//! Nothing here reads or writes a socket, looks at a clock or allocates per message: heads are
//! filled in place, and [`RequestHead::clear`] keeps the buffers. The protocol-neutral part
//! ([`RequestHead`], [`ResponseHead`], [`Fields`], [`path`]) serves every version of HTTP; [`h1`]
//! is the strict grammar of HTTP/1.0 and HTTP/1.1 (RFC 9112), [`h2`] the few rules by which a
//! decoded HTTP/2 head becomes the same value (RFC 9113).
//!
//! Strict means: whatever two implementations could read in two ways (where a body ends, which
//! host is meant, which path) is an error with a status, never a guess. `docs/http-strictness.md`
//! lists each decision; the messages that prove it are data, in the hidden module `ambiguous`, so
//! that tests over real sockets can replay them.

#![forbid(unsafe_code)]

#[doc(hidden)]
pub mod ambiguous;
mod authority;
mod claims;
mod cookie;
mod error;
mod fields;
mod framing;
pub mod grpc;
pub mod h1;
pub mod h2;
mod known;
mod method;
pub mod path;
pub mod proxy_header;
mod request;
mod response;
mod spelling;
mod version;

pub use authority::Authority;
pub use error::{BadField, Fault, HeadError};
pub use fields::{Field, Fields};
pub use framing::{BodyLength, ConnectionOptions};
pub use known::Known;
pub use method::Method;
pub use path::{EncodedSlashes, PathRules};
pub use request::{Form, RequestHead};
pub use response::{ResponseHead, reason_phrase};
pub use spelling::is_alike;
pub use version::{Scheme, Version};

/// How much of a head is read before it is refused with 431 (or 414 while still in its first line).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HeadLimits {
    /// Bytes from the first byte of the head to the end of its empty line, both included.
    pub max_bytes: usize,
    /// Field lines in one head, at most [`h1::MAX_FIELDS`].
    pub max_fields: usize,
    /// How the path is normalised before routing.
    pub path: PathRules,
}

impl Default for HeadLimits {
    /// 32 KiB and 100 fields, as generous as the common servers are.
    fn default() -> Self {
        HeadLimits { max_bytes: 32 * 1024, max_fields: 100, path: PathRules::default() }
    }
}
