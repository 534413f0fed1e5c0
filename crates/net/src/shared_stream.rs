//! A stream that a library owns and somebody else looks at: the one below an HTTP/2 connection to an
//! endpoint. The library reads and writes; how many bytes have gone and what the kernel has counted is
//! seen from here.

use std::cell::{Cell, RefCell};
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::counters::Counters;
use crate::stream::Stream;

/// A stream with two owners on one thread.
#[derive(Clone, Debug)]
pub struct SharedStream(Rc<Inner>);

#[derive(Debug)]
struct Inner {
    stream: RefCell<Stream>,
    read: Cell<u64>,
    written: Cell<u64>,
}

impl SharedStream {
    /// Takes the stream.
    pub fn new(stream: Stream) -> SharedStream {
        let (read, written) = (Cell::new(0), Cell::new(0));
        SharedStream(Rc::new(Inner { stream: RefCell::new(stream), read, written }))
    }

    /// Bytes received so far.
    pub fn read(&self) -> u64 {
        self.0.read.get()
    }

    /// Bytes handed to the socket so far.
    pub fn written(&self) -> u64 {
        self.0.written.get()
    }

    /// What the kernel has counted so far.
    pub fn counters(&self) -> Counters {
        let of_kernel = self.0.stream.borrow().counters();
        match of_kernel.packets {
            Some(_) => of_kernel,
            None => Counters { packets: None, bytes: self.read() + self.written() },
        }
    }

    fn wrote(&self, polled: &Poll<io::Result<usize>>) {
        if let Poll::Ready(Ok(count)) = polled {
            self.0.written.update(|written| written + *count as u64);
        }
    }
}

impl AsyncRead for SharedStream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut *self.0.stream.borrow_mut()).poll_read(context, buffer);
        let news = buffer.filled().len() - before;
        self.0.read.update(|read| read + news as u64);
        polled
    }
}

impl AsyncWrite for SharedStream {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut *self.0.stream.borrow_mut()).poll_write(context, bytes);
        self.wrote(&polled);
        polled
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let mut stream = self.0.stream.borrow_mut();
        let polled = AsyncWrite::poll_write_vectored(Pin::new(&mut *stream), context, slices);
        self.wrote(&polled);
        polled
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        AsyncWrite::poll_flush(Pin::new(&mut *self.0.stream.borrow_mut()), context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        AsyncWrite::poll_shutdown(Pin::new(&mut *self.0.stream.borrow_mut()), context)
    }
}
