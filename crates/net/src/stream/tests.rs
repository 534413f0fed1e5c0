//! Resets and ends of the other side.

use std::net::{Shutdown, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Wake;
use std::time::Duration;

use super::*;

/// Who waits, and whether it has been woken.
#[derive(Default)]
struct Waiting(AtomicBool);

impl Wake for Waiting {
    fn wake(self: Arc<Waiting>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

impl Waiting {
    fn new() -> (Arc<Waiting>, Waker) {
        let waiting = Arc::new(Waiting::default());
        (waiting.clone(), waiting.into())
    }

    async fn is_woken(&self) {
        let woken = async {
            while !self.0.load(Ordering::SeqCst) {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(10), woken).await.expect("woken in time");
    }
}

fn with_runtime(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("runtime").block_on(test);
}

/// A stream that knows that nothing has arrived, and its other end.
async fn connected() -> (Stream, std::net::TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("bind");
    let address = listener.local_addr().expect("address");
    let other = std::net::TcpStream::connect(address).expect("connect");
    let (accepted, _) = listener.accept().expect("accept");
    accepted.set_nonblocking(true).expect("non-blocking");
    let mut stream = Stream::from(TcpStream::from_std(accepted).expect("register"));
    // Writing tells the runtime that the socket is there.
    stream.append().push(b'x');
    std::future::poll_fn(|context| stream.poll_flush(context)).await.expect("sent");
    assert!(stream.is_quiet());
    (stream, other)
}

#[test]
fn a_reset_wakes_who_looks_for_it_and_an_end_is_none() {
    with_runtime(async {
        let (mut stream, other) = connected().await;
        let (waiting, waker) = Waiting::new();
        let context = &mut Context::from_waker(&waker);
        assert!(stream.poll_reset(context).is_pending());
        other.shutdown(Shutdown::Write).expect("shutdown");
        waiting.is_woken().await;
        assert!(stream.poll_reset(context).is_pending(), "an end was taken for a reset");
        assert!(matches!(stream.poll_fill(context, ChunkSize::Small), Poll::Ready(Ok(0))));

        let (stream, reset) = connected().await;
        let (waiting, waker) = Waiting::new();
        let context = &mut Context::from_waker(&waker);
        assert!(stream.poll_reset(context).is_pending());
        socket2::SockRef::from(&reset).set_linger(Some(Duration::ZERO)).expect("linger");
        drop(reset);
        waiting.is_woken().await;
        assert!(stream.poll_reset(context).is_ready());
    });
}

#[test]
fn an_end_is_found_behind_what_is_read_ahead() {
    with_runtime(async {
        let (mut stream, mut other) = connected().await;
        let (waiting, waker) = Waiting::new();
        let context = &mut Context::from_waker(&waker);
        assert!(stream.poll_end(context).is_pending());
        std::io::Write::write_all(&mut other, b"ahead").expect("sent");
        waiting.is_woken().await;
        assert!(stream.poll_end(context).is_pending(), "bytes were taken for an end");
        let (waiting, waker) = Waiting::new();
        let context = &mut Context::from_waker(&waker);
        assert!(stream.poll_end(context).is_pending());
        other.shutdown(Shutdown::Write).expect("shutdown");
        waiting.is_woken().await;
        assert!(stream.poll_end(context).is_ready());
        assert_eq!(stream.buffered(), b"ahead");
    });
}
