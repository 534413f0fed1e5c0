//! Sockets that listen, and taking connections off them no faster than they are served.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

/// Connections the kernel may hold before they are taken.
const BACKLOG: i32 = 128;
/// How long a listener waits that could not take a connection: out of descriptors, mostly.
const PAUSE: Duration = Duration::from_millis(200);

/// A socket that listens; an IPv6 one for IPv6 only, so that both families can have the same port.
pub(crate) fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    TcpListener::from_std(socket.into())
}

/// Takes connections for ever, each answered by a task of its own; while `places` are taken, those
/// who come wait in the kernel's queue.
pub(crate) async fn accept<F>(
    listener: TcpListener,
    places: Arc<Semaphore>,
    answer: impl Fn(TcpStream) -> F,
) where
    F: Future<Output = ()> + Send + 'static,
{
    // The semaphore is never closed.
    while let Ok(place) = places.clone().acquire_owned().await {
        match listener.accept().await {
            Ok((stream, _)) => {
                let answered = answer(stream);
                tokio::spawn(async move {
                    answered.await;
                    drop(place);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "cannot take a connection");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}
