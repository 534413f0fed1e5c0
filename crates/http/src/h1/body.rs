//! A body on an HTTP/1 connection, read and written, the same on both sides.

use std::io;
use std::task::{Context, Poll, ready};

use subak_message::h1::{
    ChunkedDecoder, ChunkedError, write_chunk_end, write_chunk_prefix, write_last_chunk,
};
use subak_message::{BodyLength, Fields};
use subak_net::{Chunk, Stream, body_chunk};

use crate::exchange::BodyPart;

/// Reads a body off a stream.
#[derive(Debug)]
pub(crate) enum Reader {
    /// Bytes that are still to come.
    Known(u64),
    /// Chunks that are still to come.
    Chunked(Box<ChunkedDecoder>),
    /// Whatever comes until the stream ends.
    UntilClose,
    /// Everything was given but the end with its trailers.
    Ending(Option<Box<Fields>>),
    /// Everything was given.
    Ended,
}

/// Why a body could not be read to its end.
#[derive(Debug)]
pub(crate) enum ReadFault {
    /// The stream failed.
    Broken(io::Error),
    /// The stream ended before the body did.
    Cut,
    /// The chunks cannot be read.
    Chunked(ChunkedError),
}

impl Reader {
    /// A reader at the start of a body.
    pub(crate) fn new(length: BodyLength) -> Reader {
        match length {
            BodyLength::None | BodyLength::Known(0) => Reader::Ended,
            BodyLength::Known(length) => Reader::Known(length),
            BodyLength::Chunked => Reader::Chunked(Box::default()),
            BodyLength::UntilClose => Reader::UntilClose,
        }
    }

    /// Whether no byte of the stream belongs to the body any more.
    #[inline]
    pub(crate) fn has_ended(&self) -> bool {
        matches!(self, Reader::Ended | Reader::Ending(_))
    }

    /// The next part of the body.
    pub(crate) fn poll_next(
        &mut self,
        stream: &mut Stream,
        context: &mut Context<'_>,
    ) -> Poll<Result<BodyPart, ReadFault>> {
        loop {
            if let Reader::Ended | Reader::Ending(_) = self {
                let Reader::Ending(trailers) = std::mem::replace(self, Reader::Ended) else {
                    return Poll::Ready(Ok(BodyPart::End(None)));
                };
                return Poll::Ready(Ok(BodyPart::End(trailers)));
            }
            if stream.buffered().is_empty() {
                let polled = stream.poll_fill(context, body_chunk());
                if ready!(polled).map_err(ReadFault::Broken)? == 0 {
                    if !matches!(self, Reader::UntilClose) {
                        return Poll::Ready(Err(ReadFault::Cut));
                    }
                    *self = Reader::Ended;
                    continue;
                }
            }
            let buffered = stream.buffered().len();
            match self {
                Reader::Known(left) => {
                    let count = usize::try_from(*left).unwrap_or(usize::MAX).min(buffered);
                    *left -= count as u64;
                    if *left == 0 {
                        *self = Reader::Ended;
                    }
                    return Poll::Ready(Ok(BodyPart::Data(stream.take_buffered(count, count))));
                }
                Reader::UntilClose => {
                    return Poll::Ready(Ok(BodyPart::Data(
                        stream.take_buffered(buffered, buffered),
                    )));
                }
                Reader::Chunked(decoder) => {
                    let decoded =
                        decoder.decode(stream.buffered_mut()).map_err(ReadFault::Chunked)?;
                    if decoded.finished {
                        let trailers = decoder.trailers();
                        let trailers = (!trailers.is_empty()).then(|| Box::new(trailers.clone()));
                        *self = Reader::Ending(trailers);
                    }
                    if decoded.data > 0 {
                        let data = stream.take_buffered(decoded.data, decoded.consumed);
                        return Poll::Ready(Ok(BodyPart::Data(data)));
                    }
                    stream.consume(decoded.consumed);
                }
                Reader::Ending(_) | Reader::Ended => unreachable!("answered above"),
            }
        }
    }
}

/// Writes a body onto a stream.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Writer {
    /// Nothing may be written.
    Nothing,
    /// As it is: the length was announced, or the end of the stream ends it.
    Plain,
    /// In chunks.
    Chunked,
}

impl Writer {
    /// A writer for a body that was announced like this.
    pub(crate) fn new(length: BodyLength) -> Writer {
        match length {
            BodyLength::None => Writer::Nothing,
            BodyLength::Known(_) | BodyLength::UntilClose => Writer::Plain,
            BodyLength::Chunked => Writer::Chunked,
        }
    }

    /// Queues a part.
    #[inline]
    pub(crate) fn data(self, stream: &mut Stream, data: Chunk) {
        match self {
            Writer::Nothing => {}
            Writer::Plain => stream.queue(data),
            Writer::Chunked => {
                write_chunk_prefix(stream.append(), data.len());
                stream.queue(data);
                write_chunk_end(stream.append());
            }
        }
    }

    /// Queues the end.
    #[inline]
    pub(crate) fn end(self, stream: &mut Stream, trailers: Option<&Fields>) {
        if let Writer::Chunked = self {
            match trailers {
                Some(trailers) => write_last_chunk(stream.append(), trailers),
                None => stream.append().extend_from_slice(b"0\r\n\r\n"),
            }
        }
    }
}
