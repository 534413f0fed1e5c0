//! Receiving and sending on a socket of the runtime, by system calls of our own.
//!
//! The C library's `recv` and `send` are cancellation points: in a process with threads each call
//! pays two locked instructions for that, 2.5 % of a small request. And the runtime's own `poll_read`
//! asks for readiness a second time. So readiness is the runtime's, the system call is made directly.

use std::io;
use std::os::fd::AsFd;
use std::task::{Context, Poll, ready};

use rustix::buffer::spare_capacity;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use tokio::io::Interest;
use tokio::net::{TcpStream, UnixStream};

use crate::chunk::Chunk;

/// A socket whose readiness the runtime knows.
pub(crate) trait Socket: AsFd {
    /// Ready when a read might not wait.
    fn poll_readable(&self, context: &mut Context<'_>) -> Poll<io::Result<()>>;
    /// Ready when a write might not wait.
    fn poll_writable(&self, context: &mut Context<'_>) -> Poll<io::Result<()>>;
    /// Runs `call`, and forgets the readiness when it says that it would block.
    fn attempt(&self, interest: Interest, call: impl FnOnce() -> io::Result<()>) -> io::Result<()>;
}

macro_rules! socket {
    ($type:ty) => {
        impl Socket for $type {
            #[inline]
            fn poll_readable(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
                self.poll_read_ready(context)
            }

            #[inline]
            fn poll_writable(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
                self.poll_write_ready(context)
            }

            #[inline]
            fn attempt(
                &self,
                interest: Interest,
                call: impl FnOnce() -> io::Result<()>,
            ) -> io::Result<()> {
                self.try_io(interest, call)
            }
        }
    };
}

socket!(TcpStream);
socket!(UnixStream);

/// Receives once into the room of a chunk, which must have some. Ready with the number of bytes; 0
/// means that no more will come.
#[inline]
pub(crate) fn poll_receive(
    socket: &impl Socket,
    context: &mut Context<'_>,
    chunk: &mut Chunk,
) -> Poll<io::Result<usize>> {
    loop {
        ready!(socket.poll_readable(context))?;
        let room = chunk.spare();
        let mut received = None;
        let attempted = socket.attempt(Interest::READABLE, || {
            let buffer = spare_capacity(chunk.tail());
            let (_, count) = recv(socket.as_fd(), buffer, RecvFlags::empty())?;
            received = Some(count);
            drained(count < room)
        });
        match (received, attempted) {
            (Some(count), _) => return Poll::Ready(Ok(count)),
            (None, Err(error)) if is_transient(&error) => {}
            (None, attempted) => return Poll::Ready(attempted.map(|()| 0)),
        }
    }
}

/// Whether bytes wait to be read, by the system's word and not the runtime's, which is a turn old.
pub(crate) fn has_arrived(socket: &impl Socket) -> bool {
    let mut byte = [0u8; 1];
    let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
    recv(socket.as_fd(), &mut byte, flags).is_ok_and(|(_, count)| count > 0)
}

/// Ready when the runtime knows that the connection was reset.
pub(crate) fn poll_reset(socket: &impl Socket, context: &mut Context<'_>) -> Poll<()> {
    // A reset makes a socket readable too: that is the event to wait for.
    if socket.poll_readable(context).is_pending() {
        return Poll::Pending;
    }
    match socket.attempt(Interest::ERROR, || Ok(())) {
        Ok(()) => Poll::Ready(()),
        Err(_) => Poll::Pending,
    }
}

/// Sends once. Ready with the number of bytes the socket took.
#[inline]
pub(crate) fn poll_send(
    socket: &impl Socket,
    context: &mut Context<'_>,
    bytes: &[u8],
) -> Poll<io::Result<usize>> {
    loop {
        ready!(socket.poll_writable(context))?;
        let mut sent = None;
        let attempted = socket.attempt(Interest::WRITABLE, || {
            let count = send(socket.as_fd(), bytes, SendFlags::NOSIGNAL)?;
            sent = Some(count);
            drained(count < bytes.len())
        });
        match (sent, attempted) {
            (Some(count), _) => return Poll::Ready(Ok(count)),
            (None, Err(error)) if is_transient(&error) => {}
            (None, attempted) => return Poll::Ready(attempted.map(|()| 0)),
        }
    }
}

/// A short read or write says that the socket has no more: the runtime forgets its readiness, which
/// saves the system call that would find out. Should more arrive meanwhile, an event says so.
fn drained(short: bool) -> io::Result<()> {
    if short { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(()) }
}

fn is_transient(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}
