//! A connection for one question: opened, used once, thrown away.
//!
//! - Where we speak first, the acknowledgement that ends the handshake is held back, so that it goes
//!   with the request, or is never sent: then a TCP probe is SYN, SYN-ACK, RST, and wakes nobody on
//!   the endpoint.
//! - Closing resets (`SO_LINGER` 0), so that no local port is held in TIME_WAIT by an answer that has
//!   been read. At one probe a millisecond that would be 60,000 of them.

use std::io::{self, ErrorKind};
use std::path::Path;
use std::time::Duration;

use socket2::SockRef;
use subak_base::Address;
use subak_health::ProbeFailure;
use subak_net::tls::client::TlsTarget;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream, UnixStream};
use tokio_rustls::client::TlsStream;

use crate::miss::Miss;

/// A unix socket whose queue is full says so at once; it is asked again after so long.
const FULL_QUEUE_PAUSE: Duration = Duration::from_millis(20);

/// Who sends the first byte on a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum First {
    /// We do, or nobody does.
    Us,
    /// They do, as soon as they know of the connection: the handshake is ended at once.
    Them,
}

#[derive(Debug)]
pub(crate) enum Connection {
    Tcp(TcpStream),
    Unix(UnixStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl Connection {
    /// Connects. For how long is up to the caller.
    pub(crate) async fn open(to: &Address, first: First) -> io::Result<Connection> {
        match to {
            Address::Inet(address) => {
                let socket =
                    if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() };
                let socket = socket?;
                socket.set_zero_linger()?;
                if first == First::Us {
                    SockRef::from(&socket).set_tcp_quickack(false)?;
                }
                socket.connect(*address).await.map(Connection::Tcp)
            }
            Address::Unix(path) => open_unix(path).await.map(Connection::Unix),
        }
    }

    /// Makes it secure; nothing has been received yet.
    pub(crate) async fn secure(self, target: &TlsTarget) -> Result<Connection, Miss> {
        let Connection::Tcp(stream) = self else {
            return Err(ProbeFailure::Tls("TLS needs a network address".into()).into());
        };
        match target.wrap(stream).await {
            Ok(stream) => Ok(Connection::Tls(Box::new(stream))),
            Err(failure) => Err(ProbeFailure::Tls(failure.to_string().into()).into()),
        }
    }

    /// Whether TLS has agreed on HTTP/2.
    pub(crate) fn agreed_on_http2(&self) -> bool {
        match self {
            Connection::Tcp(_) | Connection::Unix(_) => false,
            Connection::Tls(stream) => stream.get_ref().1.alpn_protocol() == Some(b"h2"),
        }
    }

    pub(crate) async fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Connection::Tcp(stream) => stream.write_all(bytes).await,
            Connection::Unix(stream) => stream.write_all(bytes).await,
            Connection::Tls(stream) => {
                stream.write_all(bytes).await?;
                stream.flush().await
            }
        }
    }

    /// Appends what comes next to `buffer`; 0 bytes are the end.
    pub(crate) async fn receive(&mut self, buffer: &mut Vec<u8>) -> io::Result<usize> {
        match self {
            Connection::Tcp(stream) => stream.read_buf(buffer).await,
            Connection::Unix(stream) => stream.read_buf(buffer).await,
            Connection::Tls(stream) => stream.read_buf(buffer).await,
        }
    }
}

async fn open_unix(path: &Path) -> io::Result<UnixStream> {
    loop {
        match UnixStream::connect(path).await {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                tokio::time::sleep(FULL_QUEUE_PAUSE).await;
            }
            connected => return connected,
        }
    }
}
