//! A connected socket of either family, blocking, with deadlines.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use super::PATIENCE;

/// A connected socket.
#[derive(Debug)]
pub(crate) enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Socket {
    pub(crate) fn tcp(stream: TcpStream) -> Socket {
        stream.set_nodelay(true).expect("nodelay");
        Socket::Tcp(stream).patient()
    }

    pub(crate) fn unix(stream: UnixStream) -> Socket {
        Socket::Unix(stream).patient()
    }

    fn patient(self) -> Socket {
        self.set_read_timeout(PATIENCE);
        match &self {
            Socket::Tcp(stream) => stream.set_write_timeout(Some(PATIENCE)),
            Socket::Unix(stream) => stream.set_write_timeout(Some(PATIENCE)),
        }
        .expect("write timeout");
        self
    }

    pub(crate) fn set_read_timeout(&self, limit: Duration) {
        match self {
            Socket::Tcp(stream) => stream.set_read_timeout(Some(limit)),
            Socket::Unix(stream) => stream.set_read_timeout(Some(limit)),
        }
        .expect("read timeout");
    }

    /// Another handle on the same connection, for another thread.
    pub(crate) fn another(&self) -> Socket {
        match self {
            Socket::Tcp(stream) => Socket::Tcp(stream.try_clone().expect("clone")),
            Socket::Unix(stream) => Socket::Unix(stream.try_clone().expect("clone")),
        }
    }

    /// Says that nothing more will be sent; reading goes on.
    pub(crate) fn end_sending(&self) {
        // A connection that is gone already has ended too.
        let _ = match self {
            Socket::Tcp(stream) => stream.shutdown(Shutdown::Write),
            Socket::Unix(stream) => stream.shutdown(Shutdown::Write),
        };
    }

    /// Lets the kernel hold little of what this side has not read.
    pub(crate) fn small_buffers(&self) {
        if let Socket::Tcp(stream) = self {
            let socket = socket2::SockRef::from(stream);
            socket.set_recv_buffer_size(8192).expect("a buffer size");
        }
    }

    /// Closes by a reset as soon as the last handle is gone.
    pub(crate) fn reset_on_close(&self) {
        if let Socket::Tcp(stream) = self {
            let socket = socket2::SockRef::from(stream);
            socket.set_linger(Some(Duration::ZERO)).expect("linger");
        }
    }
}

impl Read for Socket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        uninterrupted(|| match self {
            Socket::Tcp(stream) => stream.read(buffer),
            Socket::Unix(stream) => stream.read(buffer),
        })
    }
}

/// Reads again where it was interrupted: a read with a time limit is when the process is stopped
/// for a moment, as where the machine it runs in is.
pub(crate) fn uninterrupted(mut read: impl FnMut() -> io::Result<usize>) -> io::Result<usize> {
    loop {
        match read() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            done => return done,
        }
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Socket::Tcp(stream) => stream.write(bytes),
            Socket::Unix(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
