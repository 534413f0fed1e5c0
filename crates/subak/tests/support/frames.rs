//! An HTTP/2 client that writes its frames by hand, whether they make sense or not.

use std::io::{self, Read, Write};
use std::net::TcpStream;

use super::{PATIENCE, Subak};

pub(crate) const DATA: u8 = 0;
pub(crate) const HEADERS: u8 = 1;
pub(crate) const PRIORITY: u8 = 2;
pub(crate) const RST_STREAM: u8 = 3;
pub(crate) const SETTINGS: u8 = 4;
pub(crate) const PING: u8 = 6;
pub(crate) const GOAWAY: u8 = 7;
pub(crate) const WINDOW_UPDATE: u8 = 8;
pub(crate) const CONTINUATION: u8 = 9;

pub(crate) const END_STREAM: u8 = 1;
pub(crate) const END_HEADERS: u8 = 4;
pub(crate) const ACK: u8 = 1;

pub(crate) const ENHANCE_YOUR_CALM: u32 = 11;

/// The setting of how much may be sent ahead on a new stream.
pub(crate) const INITIAL_WINDOW: u16 = 4;

/// One frame as it was received.
#[derive(Clone, Debug)]
pub(crate) struct Frame {
    pub(crate) kind: u8,
    pub(crate) flags: u8,
    pub(crate) stream: u32,
    pub(crate) payload: Vec<u8>,
}

/// A connection to Subak.
#[derive(Debug)]
pub(crate) struct Frames {
    stream: TcpStream,
}

impl Frames {
    /// Says hello with these settings.
    pub(crate) fn connect(subak: &Subak, settings: &[(u16, u32)]) -> Frames {
        let stream = TcpStream::connect(subak.socket_address()).expect("connect to Subak");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        stream.set_write_timeout(Some(PATIENCE)).expect("a timeout");
        stream.set_nodelay(true).expect("no delay");
        let mut frames = Frames { stream };
        let pairs: Vec<u8> = settings
            .iter()
            .flat_map(|(name, value)| [&name.to_be_bytes()[..], &value.to_be_bytes()].concat())
            .collect();
        frames.stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").expect("send to Subak");
        frames.send(SETTINGS, 0, 0, &pairs).expect("send to Subak");
        frames
    }

    /// Sends one frame, which the other side may not want any more.
    pub(crate) fn send(
        &mut self,
        kind: u8,
        flags: u8,
        stream: u32,
        payload: &[u8],
    ) -> io::Result<()> {
        self.stream.write_all(&frame(kind, flags, stream, payload))
    }

    /// Sends frames that were put together before.
    pub(crate) fn send_all(&mut self, frames: &[u8]) -> io::Result<()> {
        self.stream.write_all(frames)
    }

    /// Sends a GET.
    pub(crate) fn get(&mut self, stream: u32, path: &str) -> io::Result<()> {
        self.send(HEADERS, END_HEADERS | END_STREAM, stream, &request("GET", path))
    }

    /// The next frame; none at the connection's end.
    pub(crate) fn next(&mut self) -> Option<Frame> {
        let mut head = [0; 9];
        self.stream.read_exact(&mut head).ok()?;
        let [a, b, c, kind, flags, s, t, u, v] = head;
        let mut payload = vec![0; u32::from_be_bytes([0, a, b, c]) as usize];
        self.stream.read_exact(&mut payload).ok()?;
        Some(Frame { kind, flags, stream: u32::from_be_bytes([s, t, u, v]), payload })
    }

    /// Waits until Subak has seen all that was sent so far. False: it is not there any more.
    pub(crate) fn sync(&mut self) -> bool {
        if self.send(PING, 0, 0, &[9; 8]).is_err() {
            return false;
        }
        std::iter::from_fn(|| self.next()).any(|frame| frame.kind == PING && frame.flags == ACK)
    }

    /// Reads to the end: the reason that was given for it.
    pub(crate) fn goodbye(&mut self) -> Option<u32> {
        let last = std::iter::from_fn(|| self.next()).filter(|frame| frame.kind == GOAWAY).last();
        let reason = last?.payload.get(4..8)?.try_into().ok()?;
        Some(u32::from_be_bytes(reason))
    }
}

pub(crate) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// The fields of a request, each in its longest form.
pub(crate) fn request(method: &str, path: &str) -> Vec<u8> {
    [(":method", method), (":scheme", "http"), (":path", path), (":authority", "example.com")]
        .into_iter()
        .flat_map(|(name, value)| field(name, value))
        .collect()
}

/// A field that is not to be remembered, of less than 127 bytes each.
pub(crate) fn field(name: &str, value: &str) -> Vec<u8> {
    let text = |text: &str| [&[text.len() as u8], text.as_bytes()].concat();
    [vec![0], text(name), text(value)].concat()
}
