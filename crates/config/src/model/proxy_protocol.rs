//! The PROXY protocol, on both sides.

use std::time::Duration;

use ipnet::IpNet;
use subak_message::proxy_header::Version;

/// `proxy_protocol` of a listener.
#[derive(Clone, PartialEq, Debug)]
pub struct AcceptProxy {
    /// Whose headers are believed.
    pub from: Vec<IpNet>,
    /// Whether those of unix sockets are.
    pub unix: bool,
    /// Whether connections without a header are served.
    pub optional: bool,
    /// How long the header may take.
    pub timeout: Duration,
}

/// `proxy_protocol` of a pool.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SendProxy {
    /// How it is written.
    pub version: Version,
    /// Whether it tells of the client's TLS.
    pub tls: bool,
    /// Whether it has a checksum.
    pub checksum: bool,
}
