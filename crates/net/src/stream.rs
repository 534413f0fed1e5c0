//! A connected byte stream that owns its buffers.
//!
//! Reading: [`poll_fill`](Stream::poll_fill) brings more bytes into the stream's own chunk,
//! [`buffered`](Stream::buffered) shows them, [`consume`](Stream::consume) drops them,
//! [`take_buffered`](Stream::take_buffered) hands them on without a copy. A chunk is taken from the
//! worker's pool only when the socket is readable and goes back when it is empty: an idle stream
//! holds none.
//!
//! Writing: bytes are queued as owned chunks and written by [`poll_flush`](Stream::poll_flush), which
//! tries the socket before it waits. What the other end does not take stays here; whoever feeds the
//! stream must not read more of the source until the flush is ready. That is all the back-pressure
//! there is, and all that is needed.
#![allow(unsafe_code)]

mod output;

use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};

use crate::chunk::{Chunk, ChunkSize};
use crate::counters::{self, Counters};
use crate::socket;
use crate::tls::TlsFacts;
use output::Output;

/// Slices given to one vectored write.
const SLICES: usize = 8;

/// A connection to a client or an endpoint.
#[derive(Debug)]
pub struct Stream {
    io: Io,
    input: Option<Chunk>,
    output: Output,
    received: u64,
    sent: u64,
}

#[derive(Debug)]
enum Io {
    Tcp(TcpStream),
    Unix(UnixStream),
    Tls(Box<Secured>),
}

/// A connection that is encrypted, and what was agreed on.
#[derive(Debug)]
struct Secured {
    stream: tokio_rustls::TlsStream<TcpStream>,
    facts: TlsFacts,
}

impl Secured {
    /// The socket below.
    fn tcp(&self) -> &TcpStream {
        self.stream.get_ref().0
    }

    /// Sends what TLS itself answers to what was read: alerts, new keys. Nobody else may write for a
    /// long time. An error comes up again when something is written.
    #[inline]
    fn answer(&mut self, context: &mut Context<'_>) {
        if self.stream.get_ref().1.wants_write() {
            self.flush(context);
        }
    }

    #[cold]
    fn flush(&mut self, context: &mut Context<'_>) {
        let _ = Pin::new(&mut self.stream).poll_flush(context);
    }
}

impl From<TcpStream> for Stream {
    fn from(stream: TcpStream) -> Stream {
        Stream::new(Io::Tcp(stream))
    }
}

impl From<UnixStream> for Stream {
    fn from(stream: UnixStream) -> Stream {
        Stream::new(Io::Unix(stream))
    }
}

impl Stream {
    fn new(io: Io) -> Stream {
        Stream { io, input: None, output: Output::default(), received: 0, sent: 0 }
    }

    /// A stream over TLS.
    pub(crate) fn secured(stream: tokio_rustls::TlsStream<TcpStream>, facts: TlsFacts) -> Stream {
        Stream::new(Io::Tls(Box::new(Secured { stream, facts })))
    }

    /// The TCP stream itself, to wrap it in TLS, and what it has received. None when it is not TCP.
    pub(crate) fn into_tcp(self) -> Option<(TcpStream, Option<Chunk>)> {
        match self.io {
            Io::Tcp(stream) => Some((stream, self.input)),
            _ => None,
        }
    }

    /// What was agreed on, where the bytes on the wire are encrypted.
    #[inline]
    pub fn tls(&self) -> Option<&TlsFacts> {
        match &self.io {
            Io::Tls(secured) => Some(&secured.facts),
            _ => None,
        }
    }

    /// Whether the bytes on the wire are encrypted.
    #[inline]
    pub fn is_tls(&self) -> bool {
        matches!(self.io, Io::Tls(_))
    }

    /// Bytes received so far, as the reader sees them (after TLS).
    #[inline]
    pub fn received(&self) -> u64 {
        self.received
    }

    /// Bytes handed to the socket so far (before TLS).
    #[inline]
    pub fn sent(&self) -> u64 {
        self.sent
    }

    /// The address the other end has connected to; none on a unix socket.
    pub fn local_address(&self) -> Option<SocketAddr> {
        let address = match &self.io {
            Io::Tcp(stream) => stream.local_addr(),
            Io::Tls(secured) => secured.tcp().local_addr(),
            Io::Unix(_) => return None,
        };
        address.ok()
    }

    /// What the kernel has counted of the connection so far. On a unix socket it counts no packets,
    /// and the bytes are those that were read and written here.
    pub fn counters(&self) -> Counters {
        let of_kernel = match &self.io {
            Io::Tcp(stream) => counters::of_tcp(stream),
            Io::Tls(secured) => counters::of_tcp(secured.tcp()),
            Io::Unix(_) => None,
        };
        of_kernel.unwrap_or(Counters { packets: None, bytes: self.received + self.sent })
    }

    /// What has been received and not yet consumed.
    #[inline]
    pub fn buffered(&self) -> &[u8] {
        self.input.as_ref().map_or(&[], Chunk::filled)
    }

    /// As [`Stream::buffered`], to decode in place.
    #[inline]
    pub fn buffered_mut(&mut self) -> &mut [u8] {
        self.input.as_mut().map_or(&mut [], Chunk::filled_mut)
    }

    /// Drops the first `count` buffered bytes.
    #[inline]
    pub fn consume(&mut self, count: usize) {
        if let Some(chunk) = &mut self.input {
            chunk.consume(count);
            if chunk.is_empty() {
                self.input = None;
            }
        }
    }

    /// Takes the first `data` buffered bytes out and drops the `consumed − data` behind them. The
    /// chunk itself moves when nothing is left behind; else the smaller of the two parts is copied.
    pub fn take_buffered(&mut self, data: usize, consumed: usize) -> Chunk {
        let Some(mut chunk) = self.input.take() else { return Chunk::copied(&[]) };
        let left = chunk.len() - consumed;
        if left == 0 {
            chunk.truncate(data);
            return chunk;
        }
        if data < left {
            let taken = Chunk::copied(&chunk.filled()[..data]);
            chunk.consume(consumed);
            self.input = Some(chunk);
            return taken;
        }
        self.input = Some(Chunk::copied(&chunk.filled()[consumed..]));
        chunk.truncate(data);
        chunk
    }

    /// Receives once, into a chunk of the given size if none is held. Ready with the number of new
    /// bytes; 0 means that the other end will send no more.
    ///
    /// # Errors
    /// What the socket reports; `OutOfMemory` when the held chunk is full (the caller reads messages
    /// that are larger than its own limit).
    #[inline]
    pub fn poll_fill(
        &mut self,
        context: &mut Context<'_>,
        size: ChunkSize,
    ) -> Poll<io::Result<usize>> {
        let mut chunk = match self.input.take() {
            Some(mut chunk) => {
                if chunk.spare() == 0 {
                    chunk.compact();
                    chunk.grow(size);
                }
                chunk
            }
            None => {
                ready!(self.poll_readable(context))?;
                Chunk::take(size)
            }
        };
        if chunk.spare() == 0 {
            self.input = Some(chunk);
            return Poll::Ready(Err(io::ErrorKind::OutOfMemory.into()));
        }
        let polled = match &mut self.io {
            Io::Tcp(stream) => socket::poll_receive(stream, context, &mut chunk),
            Io::Unix(stream) => socket::poll_receive(stream, context, &mut chunk),
            Io::Tls(secured) => {
                let polled = poll_read(&mut secured.stream, context, &mut chunk);
                secured.answer(context);
                polled
            }
        };
        if !chunk.is_empty() {
            self.input = Some(chunk);
        }
        let count = ready!(polled)?;
        self.received += count as u64;
        Poll::Ready(Ok(count))
    }

    /// Ready when a read would not wait. TLS is asked by reading.
    #[inline]
    fn poll_readable(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &self.io {
            Io::Tcp(stream) => stream.poll_read_ready(context),
            Io::Unix(stream) => stream.poll_read_ready(context),
            Io::Tls(_) => Poll::Ready(Ok(())),
        }
    }

    /// Whether an idle stream is still good: nothing has arrived and it is not closed. Costs a system
    /// call only when something has happened to it.
    pub fn is_quiet(&mut self) -> bool {
        if self.input.is_some() {
            return false;
        }
        // A task that has had its share is told that nothing is ready, whatever is.
        if !tokio::task::coop::has_budget_remaining() {
            return false;
        }
        let mut context = Context::from_waker(Waker::noop());
        matches!(self.poll_fill(&mut context, ChunkSize::Small), Poll::Pending)
    }

    /// Whether bytes have arrived that were not read: asks the system, by one call. For the moment before
    /// an idle connection is closed, because a request may be there that the runtime has not told of.
    pub fn has_arrived(&self) -> bool {
        match &self.io {
            Io::Tcp(stream) => socket::has_arrived(stream),
            Io::Unix(stream) => socket::has_arrived(stream),
            Io::Tls(secured) => socket::has_arrived(secured.tcp()),
        }
    }

    /// Ready when the other end has reset the connection; that it has ended its side is no reset. The
    /// task is woken by a reset while nothing waits to be read; else a reset is found when something
    /// else wakes the task. No system call, but some 130 instructions.
    pub fn poll_reset(&self, context: &mut Context<'_>) -> Poll<()> {
        match &self.io {
            Io::Tcp(stream) => socket::poll_reset(stream, context),
            Io::Unix(stream) => socket::poll_reset(stream, context),
            Io::Tls(secured) => socket::poll_reset(secured.tcp(), context),
        }
    }

    /// Ready when the other end has reset the connection or ended its side (by FIN, or close_notify of
    /// TLS). Reads ahead what arrives meanwhile, as far as the held chunk has room: an end behind more
    /// than that is found when some of it has been consumed. The task is woken by the end.
    pub fn poll_end(&mut self, context: &mut Context<'_>) -> Poll<()> {
        loop {
            if self.input.as_ref().is_some_and(|chunk| chunk.spare() == 0) {
                return self.poll_reset(context);
            }
            match self.poll_fill(context, ChunkSize::Small) {
                Poll::Ready(Ok(1..)) => {}
                Poll::Ready(_) => return Poll::Ready(()),
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    /// Appends to what is queued, in place.
    #[inline]
    pub fn append(&mut self) -> &mut Vec<u8> {
        self.output.append()
    }

    /// Queues a chunk behind what is queued. Short ones are copied, long ones move.
    #[inline]
    pub fn queue(&mut self, chunk: Chunk) {
        self.output.push(chunk);
    }

    /// Bytes that wait to be written.
    #[inline]
    pub fn queued(&self) -> usize {
        let first = self.output.first.as_ref().map_or(0, Chunk::len);
        first + self.output.rest.iter().map(Chunk::len).sum::<usize>()
    }

    /// Whether everything queued has been handed to the socket.
    #[inline]
    pub fn is_flushed(&self) -> bool {
        self.output.first.is_none()
    }

    /// Writes what is queued; ready when the socket has taken all of it.
    ///
    /// # Errors
    /// What the socket reports.
    #[inline]
    pub fn poll_flush(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.output.first.is_some() {
            let count = ready!(self.poll_write(context))?;
            if count == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.sent += count as u64;
            self.output.consume(count);
        }
        match &mut self.io {
            Io::Tls(secured) => Pin::new(&mut secured.stream).poll_flush(context),
            Io::Tcp(_) | Io::Unix(_) => Poll::Ready(Ok(())),
        }
    }

    #[inline]
    fn poll_write(&mut self, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let Some(first) = &self.output.first else { return Poll::Ready(Ok(0)) };
        if self.output.rest.is_empty() {
            return match &mut self.io {
                Io::Tcp(stream) => socket::poll_send(stream, context, first.filled()),
                Io::Unix(stream) => socket::poll_send(stream, context, first.filled()),
                Io::Tls(secured) => {
                    Pin::new(&mut secured.stream).poll_write(context, first.filled())
                }
            };
        }
        let mut slices = [IoSlice::new(&[]); SLICES];
        let chunks = std::iter::once(first).chain(&self.output.rest);
        let used = slices.iter_mut().zip(chunks).fold(0, |used, (slice, chunk)| {
            *slice = IoSlice::new(chunk.filled());
            used + 1
        });
        let slices = &slices[..used];
        match &mut self.io {
            Io::Tcp(stream) => Pin::new(stream).poll_write_vectored(context, slices),
            Io::Unix(stream) => Pin::new(stream).poll_write_vectored(context, slices),
            Io::Tls(secured) => Pin::new(&mut secured.stream).poll_write_vectored(context, slices),
        }
    }

    /// Makes closing a reset, so that the other end cannot take what it has for everything. A unix
    /// socket knows no reset.
    pub fn reset_on_close(&self) {
        let linger = Some(std::time::Duration::ZERO);
        let set = match &self.io {
            Io::Tcp(stream) => socket2::SockRef::from(stream).set_linger(linger),
            Io::Tls(secured) => socket2::SockRef::from(secured.tcp()).set_linger(linger),
            Io::Unix(_) => Ok(()),
        };
        if let Err(error) = set {
            tracing::debug!(%error, "a connection cannot be reset");
        }
    }

    /// Says to the other end that nothing more will come. Flush first.
    ///
    /// # Errors
    /// What the socket reports.
    pub fn poll_shutdown(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.io {
            Io::Tcp(stream) => Pin::new(stream).poll_shutdown(context),
            Io::Unix(stream) => Pin::new(stream).poll_shutdown(context),
            Io::Tls(secured) => Pin::new(&mut secured.stream).poll_shutdown(context),
        }
    }
}

/// Reads through TLS into the room of a chunk.
fn poll_read(
    stream: &mut (impl AsyncRead + Unpin),
    context: &mut Context<'_>,
    chunk: &mut Chunk,
) -> Poll<io::Result<usize>> {
    let mut buffer = ReadBuf::uninit(chunk.room());
    let polled = Pin::new(stream).poll_read(context, &mut buffer);
    let count = buffer.filled().len();
    // SAFETY: `ReadBuf` has initialised the `count` bytes it calls filled, inside the room.
    unsafe { chunk.advance(count) };
    polled.map_ok(|()| count)
}

/// The way in for libraries that want an `AsyncRead + AsyncWrite` (HTTP/2, and TLS to endpoints).
impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if this.buffered().is_empty() {
            let polled = match &mut this.io {
                Io::Tcp(stream) => Pin::new(stream).poll_read(context, buffer),
                Io::Unix(stream) => Pin::new(stream).poll_read(context, buffer),
                Io::Tls(secured) => {
                    let polled = Pin::new(&mut secured.stream).poll_read(context, buffer);
                    secured.answer(context);
                    polled
                }
            };
            return polled;
        }
        let count = this.buffered().len().min(buffer.remaining());
        buffer.put_slice(&this.buffered()[..count]);
        this.consume(count);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match &mut self.io {
            Io::Tcp(stream) => Pin::new(stream).poll_write(context, bytes),
            Io::Unix(stream) => Pin::new(stream).poll_write(context, bytes),
            Io::Tls(secured) => Pin::new(&mut secured.stream).poll_write(context, bytes),
        }
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match &mut self.io {
            Io::Tcp(stream) => Pin::new(stream).poll_write_vectored(context, slices),
            Io::Unix(stream) => Pin::new(stream).poll_write_vectored(context, slices),
            Io::Tls(secured) => Pin::new(&mut secured.stream).poll_write_vectored(context, slices),
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Stream::poll_flush(&mut self, context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Stream::poll_shutdown(&mut self, context)
    }
}

#[cfg(test)]
mod tests;
