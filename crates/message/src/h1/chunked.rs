//! Chunked bodies (RFC 9112, 7.1), read wherever the bytes happen to be cut.
//!
//! Strict: sizes are 1 to 16 hex digits followed at once by CR LF or `;`, every line ends with
//! CR LF, extensions follow the grammar without spaces and are skipped, and trailers that would frame,
//! route or authenticate a message are dropped. Bounded: extensions by [`MAX_EXTENSION_BYTES`] over the
//! whole body (tiny chunks with long extensions are an attack), trailers by [`MAX_TRAILER_BYTES`] and
//! [`MAX_TRAILER_FIELDS`].

use std::fmt;

use super::{block, diagnose};
use crate::error::{Fault, HeadError};
use crate::fields::{Fields, is_token_byte};

/// Bytes of chunk extensions allowed in one body.
pub const MAX_EXTENSION_BYTES: u32 = 16 * 1024;
/// Bytes of trailer lines allowed in one body.
pub const MAX_TRAILER_BYTES: usize = 8 * 1024;
/// Trailer fields allowed in one body.
pub const MAX_TRAILER_FIELDS: usize = 64;

/// Reads one chunked body, then the next after [`ChunkedDecoder::reset`].
#[derive(Clone, Debug, Default)]
pub struct ChunkedDecoder {
    state: State,
    /// Digits read of the size, or bytes that are left of the chunk.
    size: u64,
    digits: u8,
    extension_bytes: u32,
    /// Trailer lines as received, until they are complete.
    raw_trailers: Vec<u8>,
    /// Where the last trailer line begins.
    trailer_line: usize,
    trailers: Fields,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum State {
    #[default]
    Size,
    Extension(Extension),
    /// After the CR of a size line.
    SizeLf,
    Data,
    DataCr,
    DataLf,
    Trailers,
    Finished,
}

/// Where in `;name=value` or `;name="quoted"` the decoder stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Extension {
    /// After `;`: a name must follow.
    NameStart,
    Name,
    /// After `=`: a token or a quoted string must follow.
    ValueStart,
    Token,
    Quoted,
    /// After a backslash in a quoted string.
    Escaped,
    /// After the closing quote.
    Closed,
}

/// What a call of [`ChunkedDecoder::next`] found at the start of its buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Step {
    /// Bytes of chunk syntax before the payload.
    pub skip: usize,
    /// Bytes of payload after these; the next call takes the buffer from `skip + data` on.
    pub data: usize,
    /// The body has ended with these bytes; what follows is the next message.
    pub finished: bool,
}

/// What a call of [`ChunkedDecoder::decode`] did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Decoded {
    /// Bytes of the buffer that were read; after the end of the body more may follow.
    pub consumed: usize,
    /// Bytes of payload, now at the start of the buffer.
    pub data: usize,
    /// The body has ended.
    pub finished: bool,
}

/// Why a chunked body can not be read. A request is answered 400; an answer is cut off.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ChunkedError {
    /// What is wrong.
    pub fault: ChunkedFault,
    /// Bytes from the start of the buffer of this call to the offending one.
    pub offset: usize,
}

/// What can be wrong with a chunked body.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ChunkedFault {
    /// The size is missing or has something that is no hex digit.
    Size,
    /// The size has more than 16 digits or does not fit into 63 bits.
    SizeTooLarge,
    /// A size line that does not end with CR LF.
    SizeLineEnd,
    /// An extension that is not `;name`, `;name=token` or `;name="text"`.
    Extension,
    /// More than [`MAX_EXTENSION_BYTES`].
    ExtensionsTooLarge,
    /// The bytes of a chunk are not followed by CR LF.
    DataLineEnd,
    /// A trailer line that is no field line.
    Trailer(Fault),
    /// More than [`MAX_TRAILER_BYTES`] or [`MAX_TRAILER_FIELDS`].
    TrailersTooLarge,
}

impl fmt::Display for ChunkedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let message = match self.fault {
            ChunkedFault::Size => "a chunk size is missing or not plain hexadecimal",
            ChunkedFault::SizeTooLarge => "a chunk size is too large",
            ChunkedFault::SizeLineEnd => "a chunk size line does not end with CR LF",
            ChunkedFault::Extension => "a chunk extension is malformed",
            ChunkedFault::ExtensionsTooLarge => "the chunk extensions are larger than allowed",
            ChunkedFault::DataLineEnd => "a chunk is not followed by CR LF",
            ChunkedFault::Trailer(fault) => fault.message(),
            ChunkedFault::TrailersTooLarge => "the trailers are larger than allowed",
        };
        write!(f, "chunked body: {message} (at byte {})", self.offset)
    }
}

impl std::error::Error for ChunkedError {}

impl ChunkedDecoder {
    /// A decoder at the start of a body.
    pub fn new() -> ChunkedDecoder {
        ChunkedDecoder::default()
    }

    /// Starts over and keeps the buffers.
    pub fn reset(&mut self) {
        self.state = State::Size;
        self.size = 0;
        self.digits = 0;
        self.extension_bytes = 0;
        self.raw_trailers.clear();
        self.trailer_line = 0;
        self.trailers.clear();
    }

    /// True when the body was read to its end.
    pub fn is_finished(&self) -> bool {
        self.state == State::Finished
    }

    /// Bytes of the current chunk that have not been read yet.
    pub fn chunk_remaining(&self) -> u64 {
        if self.state == State::Data { self.size } else { 0 }
    }

    /// The trailers that may be forwarded; complete when the body is finished.
    pub fn trailers(&self) -> &Fields {
        &self.trailers
    }

    /// Finds the next run of payload without moving a byte.
    ///
    /// One run per call: call again with the rest of the buffer until it is used up or the body is
    /// finished. A call that finds no payload uses up the buffer or finishes.
    ///
    /// # Errors
    /// The decoder must not be used any further.
    pub fn next(&mut self, buffer: &[u8]) -> Result<Step, ChunkedError> {
        let mut at = 0;
        while at < buffer.len() {
            match self.state {
                State::Data => {
                    let data = self.size.min((buffer.len() - at) as u64);
                    self.size -= data;
                    if self.size == 0 {
                        self.state = State::DataCr;
                    }
                    return Ok(Step { skip: at, data: data as usize, finished: false });
                }
                State::Trailers => at += self.trailer_bytes(&buffer[at..], at)?,
                State::Finished => break,
                _ => {
                    self.syntax(buffer[at]).map_err(|fault| ChunkedError { fault, offset: at })?;
                    at += 1;
                }
            }
        }
        Ok(Step { skip: at, data: 0, finished: self.is_finished() })
    }

    /// Reads the whole buffer and moves the payload to its start.
    ///
    /// # Errors
    /// As [`ChunkedDecoder::next`]; the buffer is then undefined.
    pub fn decode(&mut self, buffer: &mut [u8]) -> Result<Decoded, ChunkedError> {
        let (mut consumed, mut data) = (0, 0);
        while consumed < buffer.len() && !self.is_finished() {
            let step = self
                .next(&buffer[consumed..])
                .map_err(|error| ChunkedError { offset: consumed + error.offset, ..error })?;
            let start = consumed + step.skip;
            if step.data > 0 && start > data {
                buffer.copy_within(start..start + step.data, data);
            }
            data += step.data;
            consumed = start + step.data;
        }
        Ok(Decoded { consumed, data, finished: self.is_finished() })
    }

    /// One byte outside payload and trailers.
    fn syntax(&mut self, byte: u8) -> Result<(), ChunkedFault> {
        self.state = match self.state {
            State::Size => return self.size_byte(byte),
            State::Extension(extension) => {
                self.extension_bytes += 1;
                if self.extension_bytes > MAX_EXTENSION_BYTES {
                    return Err(ChunkedFault::ExtensionsTooLarge);
                }
                after_extension_byte(extension, byte)?
            }
            State::SizeLf if byte != b'\n' => return Err(ChunkedFault::SizeLineEnd),
            State::SizeLf if self.size == 0 => State::Trailers,
            State::SizeLf => State::Data,
            State::DataCr if byte == b'\r' => State::DataLf,
            State::DataLf if byte == b'\n' => {
                self.digits = 0;
                State::Size
            }
            State::DataCr | State::DataLf => return Err(ChunkedFault::DataLineEnd),
            State::Data | State::Trailers | State::Finished => self.state,
        };
        Ok(())
    }

    fn size_byte(&mut self, byte: u8) -> Result<(), ChunkedFault> {
        match (byte as char).to_digit(16) {
            Some(digit) => {
                self.digits += 1;
                if self.digits > 16 || self.size > (i64::MAX as u64) >> 4 {
                    return Err(ChunkedFault::SizeTooLarge);
                }
                self.size = self.size << 4 | u64::from(digit);
            }
            None if self.digits == 0 => return Err(ChunkedFault::Size),
            None => {
                self.state = match byte {
                    b'\r' => State::SizeLf,
                    b';' => State::Extension(Extension::NameStart),
                    b'\n' => return Err(ChunkedFault::SizeLineEnd),
                    _ => return Err(ChunkedFault::Size),
                }
            }
        }
        Ok(())
    }

    /// Takes trailer bytes up to the end of the body; returns how many.
    fn trailer_bytes(&mut self, bytes: &[u8], base: usize) -> Result<usize, ChunkedError> {
        let taken = memchr::memchr(b'\n', bytes).map_or(bytes.len(), |at| at + 1);
        let fail = |fault| ChunkedError { fault, offset: base };
        if self.raw_trailers.len() + taken > MAX_TRAILER_BYTES {
            return Err(fail(ChunkedFault::TrailersTooLarge));
        }
        self.raw_trailers.extend_from_slice(&bytes[..taken]);
        if self.raw_trailers.last() != Some(&b'\n') {
            return Ok(taken);
        }
        let line = &self.raw_trailers[self.trailer_line..];
        if !line.ends_with(b"\r\n") {
            return Err(fail(ChunkedFault::Trailer(Fault::BareLf)));
        }
        let last = line.len() == 2;
        self.trailer_line = self.raw_trailers.len();
        if last {
            self.finish().map_err(fail)?;
        }
        Ok(taken)
    }

    fn finish(&mut self) -> Result<(), ChunkedFault> {
        self.state = State::Finished;
        if self.raw_trailers.len() == 2 {
            return Ok(());
        }
        let mut headers = [httparse::EMPTY_HEADER; MAX_TRAILER_FIELDS];
        let bad = |error: HeadError| ChunkedFault::Trailer(error.fault);
        match httparse::parse_headers(&self.raw_trailers, &mut headers) {
            Ok(httparse::Status::Complete((length, headers)))
                if length == self.raw_trailers.len() =>
            {
                block::take_fields(&self.raw_trailers, 0, headers, &mut self.trailers)
                    .map_err(bad)?;
            }
            Err(httparse::Error::TooManyHeaders) => return Err(ChunkedFault::TrailersTooLarge),
            _ => return Err(bad(diagnose::fields(&self.raw_trailers, 0, Fault::FieldName))),
        }
        self.trailers.keep_trailers();
        Ok(())
    }
}

fn after_extension_byte(extension: Extension, byte: u8) -> Result<State, ChunkedFault> {
    use Extension::*;
    let next = match (extension, byte) {
        (NameStart | Name, byte) if is_token_byte(byte) => Name,
        (ValueStart | Token, byte) if is_token_byte(byte) => Token,
        (Name, b'=') => ValueStart,
        (ValueStart, b'"') => Quoted,
        (Quoted, b'"') => Closed,
        (Quoted, b'\\') => Escaped,
        (Quoted, b'\t' | b' '..=0x7e | 0x80..) => Quoted,
        (Escaped, b'\t' | b' '..=0x7e | 0x80..) => Quoted,
        (Name | Token | Closed, b';') => NameStart,
        (Name | Token | Closed, b'\r') => return Ok(State::SizeLf),
        _ => return Err(ChunkedFault::Extension),
    };
    Ok(State::Extension(next))
}
