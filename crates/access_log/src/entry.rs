//! What is known of a request when its line is written.

use std::net::IpAddr;
use std::time::Duration;

use subak_base::Tick;
use subak_telemetry::Cause;

use crate::captured::Captured;

/// One request that is over.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a> {
    /// When it began.
    pub began: Tick,
    /// When it was over: now, or a moment ago.
    pub ended: Tick,
    /// The client, whoever brought its request.
    pub client: Option<IpAddr>,
    /// The connection's other end.
    pub peer: Option<(IpAddr, u16)>,
    /// What the client wrote.
    pub request: &'a Captured,
    /// Whether it came by TLS.
    pub is_tls: bool,
    /// The TLS version, where it did.
    pub tls: Option<&'static str>,
    /// The protocol, as in a request line.
    pub protocol: &'static str,
    /// What the client was answered; 0: nothing.
    pub status: u16,
    /// How a gRPC call ended.
    pub grpc_status: Option<u8>,
    /// The answer's headers, where there was one.
    pub answer: &'a dyn Headers,
    /// Bytes of the request.
    pub bytes_in: u64,
    /// Bytes of the answer,
    pub bytes_out: u64,
    /// of which those of its head.
    pub head_bytes_out: u64,
    /// The route's place; none: no route took it.
    pub route: Option<usize>,
    /// The pool's name.
    pub pool: Option<&'a str>,
    /// The endpoint that was tried last.
    pub endpoint: Option<&'a str>,
    /// How many were tried.
    pub tries: u32,
    /// Where it went, where the pool is sticky.
    pub stick: Option<Sticking>,
    /// How long its head took, if it did not come at once.
    pub head: Duration,
    /// How long it stood in line.
    pub queue: Duration,
    /// How long the client's handshake took, if this is the first request behind it.
    pub handshake: Duration,
    /// How long it took to connect,
    pub connect: Duration,
    /// of which the handshake with the endpoint.
    pub endpoint_handshake: Duration,
    /// When the endpoint that was tried last was picked.
    pub picked: Option<Tick>,
    /// When it began to answer.
    pub first_byte: Option<Tick>,
    /// Why it was not served, or not to its end.
    pub failure: Option<Cause>,
    /// The decision's id, if one was drawn.
    pub decision: Option<u64>,
}

/// Where a request went whose pool is sticky.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sticking {
    /// Where its client belongs.
    Kept,
    /// Elsewhere.
    Moved,
    /// Its client belonged nowhere.
    New,
}

impl Sticking {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Sticking::Kept => "kept",
            Sticking::Moved => "moved",
            Sticking::New => "new",
        }
    }
}

/// Headers by name.
pub trait Headers: std::fmt::Debug {
    /// The value of the first one of this name, in any case.
    fn get(&self, name: &[u8]) -> Option<&[u8]>;
}
