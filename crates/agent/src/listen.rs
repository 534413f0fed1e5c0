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

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::time::timeout;

    use super::*;

    fn run<F: Future>(test: F) -> F::Output {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(test)
    }

    #[test]
    fn both_families_can_have_the_same_port() {
        run(async {
            let v4 = bind((Ipv4Addr::UNSPECIFIED, 0).into()).unwrap();
            let port = v4.local_addr().unwrap().port();
            match bind((Ipv6Addr::UNSPECIFIED, port).into()) {
                Err(error) if error.kind() == io::ErrorKind::AddrNotAvailable => {
                    eprintln!("SKIPPED: this machine has no IPv6");
                }
                bound => assert_eq!(bound.unwrap().local_addr().unwrap().port(), port),
            }
            let again = bind((Ipv4Addr::UNSPECIFIED, port).into()).unwrap_err();
            assert_eq!(again.kind(), io::ErrorKind::AddrInUse);
        });
    }

    #[test]
    fn who_finds_no_place_waits_until_there_is_one() {
        run(async {
            let listener = bind((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
            let address = listener.local_addr().unwrap();
            let echo = |mut stream: TcpStream| async move {
                let mut byte = [0];
                if let Ok(1) = stream.read(&mut byte).await {
                    let _ = stream.write_all(&byte).await;
                }
            };
            let accepting = tokio::spawn(accept(listener, Arc::new(Semaphore::new(1)), echo));
            let mut first = TcpStream::connect(address).await.unwrap();
            let mut second = TcpStream::connect(address).await.unwrap();
            second.write_all(b"2").await.unwrap();
            let mut answer = [0];
            let early = timeout(Duration::from_millis(50), second.read(&mut answer)).await;
            assert!(early.is_err(), "the only place is taken: {early:?}");
            first.write_all(b"1").await.unwrap();
            assert_eq!(first.read(&mut answer).await.unwrap(), 1);
            let patience = Duration::from_secs(10);
            let answered = timeout(patience, second.read(&mut answer)).await;
            assert_eq!((answered.unwrap().unwrap(), answer), (1, *b"2"));
            accepting.abort();
        });
    }
}
