//! Where the Admin API listens.

use std::net::SocketAddr;
use std::path::PathBuf;

use super::Token;

/// `admin`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Admin {
    /// Nowhere.
    Off,
    /// On a unix socket; `None`: in the usual place.
    Socket(Option<PathBuf>),
    /// At an address, for whoever has the token.
    Tcp {
        /// Not one of a listener.
        address: SocketAddr,
        /// What is asked for.
        token: Token,
        /// Names it may be asked by besides IP addresses and `localhost`, in lower case.
        hosts: Vec<String>,
        /// Whether the API may add endpoints on unix sockets.
        unix_endpoints: bool,
    },
}
