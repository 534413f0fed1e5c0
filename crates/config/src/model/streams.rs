//! What is spoken to endpoints, and how requests share connections where that is HTTP/2.

use std::num::NonZeroU32;
use std::time::Duration;

/// `protocol` of a pool.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum EndpointProtocol {
    /// HTTP/1.1: one request at a time on a connection.
    #[default]
    Http1,
    /// HTTP/2: by ALPN with TLS, by prior knowledge without.
    Http2,
    /// What the endpoint chooses by ALPN; without TLS HTTP/1.1.
    Auto,
}

impl EndpointProtocol {
    /// As it is written.
    pub fn name(self) -> &'static str {
        match self {
            EndpointProtocol::Http1 => "http/1.1",
            EndpointProtocol::Http2 => "h2",
            EndpointProtocol::Auto => "auto",
        }
    }

    /// Whether requests may share a connection.
    pub fn may_share(self) -> bool {
        self != EndpointProtocol::Http1
    }
}

/// `streams` of a pool.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Streams {
    /// Requests at once on one connection; an endpoint may allow fewer.
    pub per_connection: NonZeroU32,
    /// Connections that each worker opens to an endpoint before requests share any.
    pub connections: NonZeroU32,
    /// Bytes of an answer that an endpoint may send ahead.
    pub window_bytes: u32,
    /// Silence after which an endpoint that has requests is asked for a sign of life; `None`: only when
    /// a request has timed out.
    pub ping: Option<Duration>,
}
