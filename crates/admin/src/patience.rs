//! A connection whose other end must do something now and then.
//!
//! hyper has a limit for heads and none for a client that stops reading: it would keep its answer, and
//! its place among the connections, for ever.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

/// Gives up when nothing was read, or nothing of what is to be written was taken, for some time.
pub(crate) struct Patient<S> {
    stream: S,
    reads: Wait,
    writes: Wait,
}

struct Wait {
    limit: Duration,
    until: Option<Pin<Box<Sleep>>>,
}

impl<S> Patient<S> {
    /// Waits so long for bytes, and so long for the other end to take some.
    pub(crate) fn new(stream: S, reads: Duration, writes: Duration) -> Patient<S> {
        let wait = |limit| Wait { limit, until: None };
        Patient { stream, reads: wait(reads), writes: wait(writes) }
    }
}

impl Wait {
    /// Passes on what happened, and fails if nothing has for too long.
    fn judge<T>(
        &mut self,
        polled: Poll<io::Result<T>>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<T>> {
        if polled.is_ready() {
            self.until = None;
            return polled;
        }
        let limit = self.limit;
        let until = self.until.get_or_insert_with(|| Box::pin(sleep(limit)));
        match until.as_mut().poll(context) {
            Poll::Ready(()) => {
                until.as_mut().reset(Instant::now() + limit);
                Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
            }
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Patient<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_read(context, buffer);
        self.reads.judge(polled, context)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Patient<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.writes.judge(polled, context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.writes.judge(polled, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_flush(context);
        self.writes.judge(polled, context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::Patient;
    use std::io::ErrorKind;
    use std::time::Duration;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    #[tokio::test]
    async fn an_end_that_neither_sends_nor_takes_is_given_up() {
        let limit = Duration::from_millis(50);
        let (near, mut far) = duplex(16);
        let mut near = Patient::new(near, limit, limit);
        let late = near.read_u8().await.expect_err("nothing was sent");
        assert_eq!(late.kind(), ErrorKind::TimedOut);
        let late = near.write_all(&[0; 100]).await.expect_err("nothing is taken");
        assert_eq!(late.kind(), ErrorKind::TimedOut);
        far.write_all(b"x").await.expect("room");
        assert_eq!(near.read_u8().await.expect("a byte"), b'x', "it may still be tried");
    }

    #[tokio::test]
    async fn one_that_is_slow_and_steady_is_not() {
        let limit = Duration::from_secs(1);
        let (near, mut far) = duplex(1);
        let mut near = Patient::new(near, limit, limit);
        let reads = async move {
            for _ in 0..30 {
                tokio::time::sleep(Duration::from_millis(50)).await;
                far.read_u8().await.expect("a byte");
            }
        };
        let (written, ()) = tokio::join!(near.write_all(&[7; 30]), reads);
        written.expect("every byte was taken within the limit, all of them after it");
    }
}
