//! Outgoing connections, from a chosen address where that matters.
#![allow(unsafe_code)]

use std::io;
use std::mem;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::fd::AsRawFd;

use socket2::{Domain, Protocol, Socket, Type};

/// A connection that is there when this returns.
pub(crate) fn open(target: SocketAddr, source: Option<IpAddr>) -> io::Result<TcpStream> {
    let socket = socket(target, source, Type::STREAM)?;
    socket.connect(&target.into())?;
    Ok(socket.into())
}

/// Starts a connection that does not block, and says whether it is there already: on loopback the
/// handshake is over when `connect` returns.
pub(crate) fn open_now(
    target: SocketAddr,
    source: Option<IpAddr>,
) -> io::Result<(TcpStream, bool)> {
    let socket = socket(target, source, Type::STREAM.nonblocking())?;
    let is_there = match socket.connect(&target.into()) {
        Ok(()) => true,
        Err(error) if error.raw_os_error() == Some(libc::EINPROGRESS) => false,
        Err(error) => return Err(error),
    };
    Ok((socket.into(), is_there))
}

fn socket(target: SocketAddr, source: Option<IpAddr>, kind: Type) -> io::Result<Socket> {
    let socket = Socket::new_raw(Domain::for_address(target), kind.cloexec(), Some(Protocol::TCP))?;
    if let Some(source) = source {
        choose_port_at_connect(&socket)?;
        socket.bind(&SocketAddr::new(source, 0).into())?;
    }
    Ok(socket)
}

/// Lets `bind` fix the address and `connect` the port, so that a port serves as many
/// connections as there are targets.
fn choose_port_at_connect(socket: &Socket) -> io::Result<()> {
    let yes: libc::c_int = 1;
    // SAFETY: the descriptor is open, the value is a live int and its size is passed.
    let code = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_IP,
            libc::IP_BIND_ADDRESS_NO_PORT,
            std::ptr::from_ref(&yes).cast(),
            mem::size_of_val(&yes) as libc::socklen_t,
        )
    };
    if code < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
