//! Connecting to an endpoint.

use std::io;
use std::net::SocketAddr;

use subak_base::Address;
use tokio::net::{TcpSocket, TcpStream, UnixStream};

use crate::deadline::Deadline;
use crate::kernel_buffers;
use crate::stream::Stream;

/// Why no connection came about.
#[derive(Debug)]
pub enum ConnectError {
    /// The endpoint or the network said no.
    Refused(io::Error),
    /// No answer within the limit.
    TimedOut,
    /// This process has no descriptor (or memory) for one more socket.
    Exhausted(io::Error),
    /// This machine has no address or port left for a connection to this endpoint (EADDRNOTAVAIL).
    /// Another endpoint may still be reached: a port is taken for one destination at a time.
    NoPort(io::Error),
}

/// Connects, with `deadline` as the limit the caller has set.
///
/// # Errors
/// See [`ConnectError`]; no byte has been sent in any of the cases.
pub async fn connect(address: &Address, deadline: &Deadline) -> Result<Stream, ConnectError> {
    let connected = match address {
        Address::Inet(address) => {
            let connecting = std::pin::pin!(connect_inet(*address));
            within(connecting, deadline).await.map(|connected| {
                connected.and_then(|stream| {
                    stream.set_nodelay(true)?;
                    Ok(Stream::from(stream))
                })
            })
        }
        Address::Unix(path) => {
            let connecting = std::pin::pin!(UnixStream::connect(path));
            within(connecting, deadline).await.map(|connected| connected.map(Stream::from))
        }
    };
    match connected {
        None => Err(ConnectError::TimedOut),
        Some(Ok(stream)) => Ok(stream),
        Some(Err(error)) if is_exhausted(&error) => Err(ConnectError::Exhausted(error)),
        Some(Err(error)) if error.raw_os_error() == Some(libc::EADDRNOTAVAIL) => {
            Err(ConnectError::NoPort(error))
        }
        Some(Err(error)) => Err(ConnectError::Refused(error)),
    }
}

async fn connect_inet(address: SocketAddr) -> io::Result<TcpStream> {
    if !kernel_buffers::are_small() {
        return TcpStream::connect(address).await;
    }
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4(),
        SocketAddr::V6(_) => TcpSocket::new_v6(),
    }?;
    socket.set_recv_buffer_size(kernel_buffers::AHEAD)?;
    socket.connect(address).await
}

/// Whether an error means that this machine or process has run out, whatever the other end is.
pub(crate) fn is_exhausted(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM))
}

/// What comes of `future`, unless the limit is over first.
pub(crate) async fn within<F: Future>(
    mut future: std::pin::Pin<&mut F>,
    limit: &Deadline,
) -> Option<F::Output> {
    std::future::poll_fn(|context| match future.as_mut().poll(context) {
        std::task::Poll::Ready(output) => std::task::Poll::Ready(Some(output)),
        std::task::Poll::Pending if limit.expired(context) => std::task::Poll::Ready(None),
        std::task::Poll::Pending => std::task::Poll::Pending,
    })
    .await
}
