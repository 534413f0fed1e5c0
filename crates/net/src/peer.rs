//! Who is at the other end of a connection.

use std::net::{IpAddr, SocketAddr};

/// Who is at the other end of an accepted connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PeerAddress {
    /// A network address; an IPv4 address that arrived on an IPv6 socket is given as IPv4.
    Inet(SocketAddr),
    /// A process on this machine, by unix socket.
    Unix,
}

impl PeerAddress {
    /// The network address without its port; none for a unix socket.
    pub fn ip(self) -> Option<IpAddr> {
        match self {
            PeerAddress::Inet(address) => Some(address.ip()),
            PeerAddress::Unix => None,
        }
    }
}
