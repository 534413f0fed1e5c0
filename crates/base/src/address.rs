//! Where something listens: the part of an endpoint's identity that is not its protocol.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

/// An address that can be bound or connected to.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Address {
    /// IPv4 or IPv6, with a port.
    Inet(SocketAddr),
    /// A unix stream socket in the file system.
    Unix(PathBuf),
}

impl Address {
    /// An internet address in its canonical form: v4-mapped IPv6 becomes IPv4.
    pub fn inet(address: SocketAddr) -> Address {
        match address.ip().to_canonical() {
            ip @ IpAddr::V4(_) => Address::Inet(SocketAddr::new(ip, address.port())),
            IpAddr::V6(_) => Address::Inet(address),
        }
    }
}

/// Equal exactly for equal canonical addresses, so it serves as an identity.
impl fmt::Display for Address {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Inet(address) => address.fmt(out),
            Address::Unix(path) => write!(out, "unix:{}", path.display()),
        }
    }
}
