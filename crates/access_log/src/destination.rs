//! Where lines go.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Where lines go. Two logs with one destination share its sink.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Destination {
    /// To the end of a file, or into a named pipe.
    File(PathBuf),
    /// To standard output.
    Stdout,
    /// To a syslog server, a datagram for each line.
    Syslog(Server),
}

/// A syslog server.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Server {
    /// By UDP.
    Udp(SocketAddr),
    /// By a unix datagram socket such as `/dev/log`.
    Unix(PathBuf),
}

impl fmt::Display for Destination {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Destination::File(path) => path.display().fmt(out),
            Destination::Stdout => out.write_str("stdout"),
            Destination::Syslog(Server::Udp(address)) => write!(out, "syslog udp:{address}"),
            Destination::Syslog(Server::Unix(path)) => {
                write!(out, "syslog unix:{}", path.display())
            }
        }
    }
}
