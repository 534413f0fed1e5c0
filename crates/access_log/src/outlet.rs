//! An open destination: a file, standard output, or a socket that takes a datagram for each line.
//!
//! Used by a writer's own thread, which may wait. A named pipe is opened without waiting for a reader;
//! sockets wait a second at most.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::net::UdpSocket;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixDatagram;
use std::time::Duration;

use crate::destination::{Destination, Server};

/// How long a socket may take a datagram.
const PATIENCE: Duration = Duration::from_secs(1);
/// What is sent of one line: the most that UDP carries, less the headers.
const MOST_DATAGRAM: usize = 65_000;
/// `O_NONBLOCK` of Linux, for opening a pipe that nobody reads.
const NONBLOCK: i32 = 0o4000;

/// An open destination.
#[derive(Debug)]
pub(crate) enum Outlet {
    File(File),
    Stdout,
    Udp(UdpSocket),
    Unix(UnixDatagram),
}

impl Outlet {
    pub(crate) fn open(destination: &Destination) -> io::Result<Outlet> {
        Ok(match destination {
            Destination::File(path) => {
                let mut options = OpenOptions::new();
                options.append(true).create(true).mode(0o640).custom_flags(NONBLOCK);
                Outlet::File(options.open(path)?)
            }
            Destination::Stdout => Outlet::Stdout,
            Destination::Syslog(Server::Udp(server)) => {
                let any = if server.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
                let socket = UdpSocket::bind(any)?;
                socket.connect(server)?;
                socket.set_write_timeout(Some(PATIENCE))?;
                Outlet::Udp(socket)
            }
            Destination::Syslog(Server::Unix(path)) => {
                let socket = UnixDatagram::unbound()?;
                socket.connect(path)?;
                socket.set_write_timeout(Some(PATIENCE))?;
                Outlet::Unix(socket)
            }
        })
    }

    /// Whether each line is sent by itself.
    pub(crate) fn is_by_line(&self) -> bool {
        matches!(self, Outlet::Udp(_) | Outlet::Unix(_))
    }

    /// Whether an error tells of what was sent before.
    pub(crate) fn is_told_late(&self) -> bool {
        matches!(self, Outlet::Udp(_))
    }

    /// Writes whole lines, or as much of them as is taken; answers how much.
    pub(crate) fn write(&mut self, lines: &[u8]) -> io::Result<usize> {
        match self {
            Outlet::File(file) => some(file.write(lines)),
            Outlet::Stdout => some(io::stdout().lock().write_all(lines).map(|()| lines.len())),
            Outlet::Udp(socket) => datagram(lines, |line| socket.send(line)),
            Outlet::Unix(socket) => datagram(lines, |line| socket.send(line)),
        }
    }
}

fn some(written: io::Result<usize>) -> io::Result<usize> {
    match written {
        Ok(0) => Err(ErrorKind::WriteZero.into()),
        written => written,
    }
}

/// The first of the lines, without its end.
fn datagram(lines: &[u8], send: impl FnOnce(&[u8]) -> io::Result<usize>) -> io::Result<usize> {
    let length = lines.iter().position(|byte| *byte == b'\n').unwrap_or(lines.len());
    send(&lines[..length.min(MOST_DATAGRAM)])?;
    Ok((length + 1).min(lines.len()))
}
