//! One connection: TCP, with TLS in it or not. Non-blocking; TLS is rustls without its own I/O, so
//! that one engine drives both.

use std::io::{self, ErrorKind, Read, Write};
use std::mem::MaybeUninit;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection};
use socket2::SockRef;

use crate::connect;
use crate::epoll::Interest;

/// TLS as this load speaks it.
#[derive(Clone, Debug)]
pub(super) struct Secured {
    pub(super) config: Arc<ClientConfig>,
    pub(super) name: ServerName<'static>,
}

/// How far a handshake is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shaken {
    Done,
    Waits(Interest),
}

/// A connection and what went over it.
pub(super) struct Transport {
    stream: TcpStream,
    tls: Option<Box<ClientConnection>>,
    /// Bytes as they were on the connection.
    pub(super) received: u64,
    pub(super) sent: u64,
}

impl Transport {
    /// Starts one; says whether it is there already.
    pub(super) fn open(
        target: SocketAddr,
        source: Option<IpAddr>,
        tls: Option<&Secured>,
    ) -> io::Result<(Transport, bool)> {
        let (stream, is_there) = connect::open_now(target, source)?;
        let tls = match tls {
            None => None,
            Some(Secured { config, name }) => {
                let made = ClientConnection::new(config.clone(), name.clone());
                let mut made = made.map_err(io::Error::other)?;
                made.set_buffer_limit(None);
                Some(Box::new(made))
            }
        };
        Ok((Transport { stream, tls, received: 0, sent: 0 }, is_there))
    }

    pub(super) fn is_secured(&self) -> bool {
        self.tls.is_some()
    }

    /// Why it could not be made, once the kernel says that something happened.
    pub(super) fn take_error(&self) -> io::Result<()> {
        self.stream.take_error()?.map_or(Ok(()), Err)
    }

    /// Goes on with the handshake.
    pub(super) fn shake(&mut self) -> io::Result<Shaken> {
        loop {
            if !self.flush()? {
                return Ok(Shaken::Waits(Interest::Write));
            }
            let Some(tls) = &mut self.tls else { return Ok(Shaken::Done) };
            if !tls.is_handshaking() {
                return Ok(Shaken::Done);
            }
            match tls.read_tls(&mut self.stream) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(count) => self.received += count as u64,
                Err(error) if would_wait(&error) => return Ok(Shaken::Waits(Interest::Read)),
                Err(error) => return Err(error),
            }
            if let Err(error) = tls.process_new_packets() {
                // The alert that says why.
                let _ = tls.write_tls(&mut self.stream);
                return Err(io::Error::other(error));
            }
        }
    }

    /// Takes bytes to send; by TLS all of them, to be flushed.
    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.tls {
            None => {
                let count = self.stream.write(bytes)?;
                self.sent += count as u64;
                Ok(count)
            }
            Some(tls) => tls.writer().write(bytes),
        }
    }

    /// Whether everything taken is on its way.
    pub(super) fn flush(&mut self) -> io::Result<bool> {
        let Some(tls) = &mut self.tls else { return Ok(true) };
        while tls.wants_write() {
            match tls.write_tls(&mut self.stream) {
                Ok(count) => self.sent += count as u64,
                Err(error) if would_wait(&error) => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    /// Reads; 0 is the other side's end. By TLS, read until it would wait: what is decrypted
    /// already wakes nobody.
    pub(super) fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Some(tls) = &mut self.tls else {
            let count = self.stream.read(buffer)?;
            self.received += count as u64;
            return Ok(count);
        };
        loop {
            match tls.reader().read(buffer) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                // An end without goodbye; whether that was too early, lengths say.
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(0),
                other => return other,
            }
            let count = tls.read_tls(&mut self.stream)?;
            self.received += count as u64;
            tls.process_new_packets().map_err(io::Error::other)?;
        }
    }

    /// Takes bytes and drops them in the kernel. Not by TLS.
    pub(super) fn skip(&mut self, room: &mut [MaybeUninit<u8>]) -> io::Result<usize> {
        let count = SockRef::from(&self.stream).recv_with_flags(room, libc::MSG_TRUNC)?;
        self.received += count as u64;
        Ok(count)
    }
}

impl AsFd for Transport {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

pub(super) fn would_wait(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted | ErrorKind::NotConnected)
}
