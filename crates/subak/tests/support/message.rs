//! Reading one HTTP/1 message off a socket, as simply as it can be done.

use std::io::{self, Read};

use super::Socket;

/// A message that was read completely.
#[derive(Clone, Debug, Default)]
pub(crate) struct Message {
    /// The request line or status line.
    pub(crate) line: String,
    /// Fields in the order they came; names in lower case.
    pub(crate) fields: Vec<(String, String)>,
    pub(crate) framing: Framing,
    pub(crate) body: Vec<u8>,
    pub(crate) trailers: Vec<(String, String)>,
    /// The head as it came, its empty line included.
    pub(crate) raw_head: Vec<u8>,
}

/// How a message says where its body ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Framing {
    #[default]
    None,
    Known(usize),
    Chunked,
    UntilClose,
}

impl Message {
    /// The only field of this name, or the first.
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        self.all(name).into_iter().next()
    }

    /// All fields of this name.
    pub(crate) fn all(&self, name: &str) -> Vec<&str> {
        let name = name.to_ascii_lowercase();
        let named = self.fields.iter().filter(|(known, _)| *known == name);
        named.map(|(_, value)| value.as_str()).collect()
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// Bytes on their way in: what has been received and not been taken yet.
#[derive(Debug)]
pub(crate) struct Incoming {
    pub(crate) socket: Socket,
    buffer: Vec<u8>,
}

impl Incoming {
    pub(crate) fn new(socket: Socket) -> Incoming {
        Incoming { socket, buffer: Vec::new() }
    }

    /// Receives once; 0 at the end. `see` is shown the new bytes.
    pub(crate) fn fill(&mut self, see: &mut dyn FnMut(&[u8])) -> io::Result<usize> {
        let mut piece = [0; 16 * 1024];
        let count = self.socket.read(&mut piece)?;
        see(&piece[..count]);
        self.buffer.extend_from_slice(&piece[..count]);
        Ok(count)
    }

    pub(crate) fn take_all(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.buffer)
    }

    /// As many of these bytes as are there, and no more.
    pub(crate) fn take_up_to(&mut self, count: usize) -> Vec<u8> {
        self.buffer.drain(..count.min(self.buffer.len())).collect()
    }

    fn fill_or_fail(&mut self, see: &mut dyn FnMut(&[u8])) -> io::Result<()> {
        match self.fill(see)? {
            0 => Err(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                format!("ended after {:?}", String::from_utf8_lossy(&self.buffer)),
            )),
            _ => Ok(()),
        }
    }

    /// A head without a body; none when the connection ends before its first byte.
    pub(crate) fn head(&mut self, see: &mut dyn FnMut(&[u8])) -> io::Result<Option<Message>> {
        let end = loop {
            if let Some(at) = self.buffer.windows(4).position(|four| four == b"\r\n\r\n") {
                break at + 4;
            }
            if self.buffer.is_empty() {
                if self.fill(see)? == 0 {
                    return Ok(None);
                }
            } else {
                self.fill_or_fail(see)?;
            }
        };
        let raw_head: Vec<u8> = self.buffer.drain(..end).collect();
        let text = String::from_utf8_lossy(&raw_head).into_owned();
        let mut lines = text.trim_end_matches("\r\n").split("\r\n");
        let line = lines.next().unwrap_or_default().to_owned();
        let fields = lines.map(field).collect();
        Ok(Some(Message { line, fields, raw_head, ..Message::default() }))
    }

    /// Reads the body that `message` announces; `until_close` where it announces none.
    pub(crate) fn body(
        &mut self,
        message: &mut Message,
        until_close: bool,
        see: &mut dyn FnMut(&[u8]),
    ) -> io::Result<()> {
        let length = message.field("content-length").map(|value| value.parse::<usize>());
        message.framing = match (message.field("transfer-encoding"), length) {
            (Some("chunked"), None) => Framing::Chunked,
            (None, Some(Ok(length))) => Framing::Known(length),
            (None, None) if until_close => Framing::UntilClose,
            (None, None) => Framing::None,
            odd => return Err(io::Error::other(format!("framing {odd:?}"))),
        };
        match message.framing {
            Framing::None => {}
            Framing::Known(length) => message.body = self.exactly(length, see)?,
            Framing::Chunked => self.chunks(message, see)?,
            Framing::UntilClose => {
                while self.fill(see)? > 0 {}
                message.body = self.take_all();
            }
        }
        Ok(())
    }

    fn exactly(&mut self, length: usize, see: &mut dyn FnMut(&[u8])) -> io::Result<Vec<u8>> {
        while self.buffer.len() < length {
            self.fill_or_fail(see)?;
        }
        Ok(self.buffer.drain(..length).collect())
    }

    fn line(&mut self, see: &mut dyn FnMut(&[u8])) -> io::Result<String> {
        loop {
            if let Some(at) = self.buffer.windows(2).position(|two| two == b"\r\n") {
                let line: Vec<u8> = self.buffer.drain(..at + 2).collect();
                return Ok(String::from_utf8_lossy(&line[..at]).into_owned());
            }
            self.fill_or_fail(see)?;
        }
    }

    fn chunks(&mut self, message: &mut Message, see: &mut dyn FnMut(&[u8])) -> io::Result<()> {
        loop {
            let line = self.line(see)?;
            let size = usize::from_str_radix(&line, 16)
                .map_err(|_| io::Error::other(format!("chunk size {line:?}")))?;
            if size == 0 {
                break;
            }
            let data = self.exactly(size + 2, see)?;
            if !data.ends_with(b"\r\n") {
                return Err(io::Error::other("chunk without end"));
            }
            message.body.extend_from_slice(&data[..size]);
        }
        loop {
            let line = self.line(see)?;
            if line.is_empty() {
                return Ok(());
            }
            message.trailers.push(field(&line));
        }
    }
}

fn field(line: &str) -> (String, String) {
    let (name, value) = line.split_once(':').unwrap_or((line, ""));
    (name.to_ascii_lowercase(), value.trim().to_owned())
}
