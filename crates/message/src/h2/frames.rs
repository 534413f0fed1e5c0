//! Which frames pass by in a stream of bytes? (RFC 9113, 4.1)
//!
//! Reads the nine bytes that each frame begins with and steps over what they announce, in whatever
//! pieces the stream comes. Keeps at most eight bytes and judges nothing: who decodes the frames
//! refuses what is malformed. A frame costs a few nanoseconds, whatever its length.

/// How every connection of a client begins (RFC 9113, 3.4), before its first frame.
const PREFACE_LENGTH: u32 = 24;
/// Bytes that every frame begins with.
const HEAD_LENGTH: usize = 9;

/// How a frame begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FrameHead {
    /// Bytes behind the head, at most 2^24 - 1.
    pub length: u32,
    /// What it is; others are to be ignored.
    pub kind: u8,
    /// What they mean depends on the kind.
    pub flags: u8,
    /// The stream it belongs to; 0: the connection.
    pub stream: u32,
}

impl FrameHead {
    /// A part of a body.
    pub const DATA: u8 = 0;
    /// The fields of a message, or the first part of them.
    pub const HEADERS: u8 = 1;
    /// How important a stream is; ignored nowadays.
    pub const PRIORITY: u8 = 2;
    /// A stream has ended before its time.
    pub const RST_STREAM: u8 = 3;
    /// How one side wants to be spoken to.
    pub const SETTINGS: u8 = 4;
    /// A server announces an answer nobody has asked for.
    pub const PUSH_PROMISE: u8 = 5;
    /// Is anybody there?
    pub const PING: u8 = 6;
    /// No new streams any more.
    pub const GOAWAY: u8 = 7;
    /// So many more bytes may be sent.
    pub const WINDOW_UPDATE: u8 = 8;
    /// More fields of the message that has begun.
    pub const CONTINUATION: u8 = 9;

    /// The flag by which the last frame of a message's fields is known.
    pub const END_HEADERS: u8 = 4;
}

/// Finds frames in one direction of a connection.
#[derive(Clone, Debug)]
pub struct FrameHeads {
    begun: [u8; HEAD_LENGTH],
    length: u8,
    /// Bytes to be stepped over before the next head.
    skip: u32,
}

impl FrameHeads {
    /// What a client sends, from its first byte.
    pub fn of_client() -> FrameHeads {
        FrameHeads { begun: [0; HEAD_LENGTH], length: 0, skip: PREFACE_LENGTH }
    }

    /// The next frame that begins in `bytes`, which are left behind its head; none when all of them
    /// have been looked at.
    #[inline]
    pub fn next(&mut self, bytes: &mut &[u8]) -> Option<FrameHead> {
        if self.skip > 0 {
            let skipped = bytes.len().min(self.skip as usize);
            *bytes = &bytes[skipped..];
            self.skip -= skipped as u32;
        }
        let begun = usize::from(self.length);
        let wanted = bytes.len().min(HEAD_LENGTH - begun);
        self.begun[begun..begun + wanted].copy_from_slice(&bytes[..wanted]);
        *bytes = &bytes[wanted..];
        if begun + wanted < HEAD_LENGTH {
            self.length = (begun + wanted) as u8;
            return None;
        }
        self.length = 0;
        let [a, b, c, kind, flags, s, t, u, v] = self.begun;
        let length = u32::from_be_bytes([0, a, b, c]);
        self.skip = length;
        // The first bit is reserved, and to be ignored.
        let stream = u32::from_be_bytes([s, t, u, v]) & 0x7fff_ffff;
        Some(FrameHead { length, kind, flags, stream })
    }

    /// Whether something has begun, the opening or a frame, and not all of it has come.
    #[inline]
    pub fn is_amid(&self) -> bool {
        self.skip > 0 || self.length > 0
    }
}

#[cfg(test)]
mod tests {
    use super::{FrameHead, FrameHeads};

    const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

    fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
        let length = (payload.len() as u32).to_be_bytes();
        [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
    }

    fn found(pieces: &[&[u8]]) -> Vec<FrameHead> {
        let mut heads = FrameHeads::of_client();
        let mut found = Vec::new();
        for piece in pieces {
            let mut rest = *piece;
            while let Some(head) = heads.next(&mut rest) {
                found.push(head);
            }
            assert!(rest.is_empty());
        }
        found
    }

    #[test]
    fn every_frame_is_found_wherever_the_stream_is_cut() {
        let bytes = [
            PREFACE,
            &frame(FrameHead::SETTINGS, 0, 0, &[]),
            &frame(FrameHead::HEADERS, FrameHead::END_HEADERS, 0x8000_0001, &[7; 300]),
            &frame(0xfa, 0xff, 3, b"unknown"),
            &frame(FrameHead::DATA, 1, 1, &[0; 70_000]),
            &frame(FrameHead::PING, 0, 0, &[4; 8]),
        ]
        .concat();
        let head = |length, kind, flags, stream| FrameHead { length, kind, flags, stream };
        let expected = [
            head(0, 4, 0, 0),
            head(300, 1, 4, 1),
            head(7, 0xfa, 0xff, 3),
            head(70_000, 0, 1, 1),
            head(8, 6, 0, 0),
        ];
        assert_eq!(found(&[&bytes]), expected);
        for cut in 0..600 {
            assert_eq!(found(&[&bytes[..cut], &bytes[cut..]]), expected, "cut at {cut}");
        }
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(found(&single), expected);
    }

    #[test]
    fn what_has_begun_is_known_until_all_of_it_has_come() {
        let mut heads = FrameHeads::of_client();
        let bytes = [PREFACE, &frame(FrameHead::PING, 0, 0, &[4; 8])].concat();
        let mut whole = Vec::new();
        for at in 0..bytes.len() {
            heads.next(&mut &bytes[at..=at]);
            if !heads.is_amid() {
                whole.push(at + 1);
            }
        }
        assert_eq!(whole, [PREFACE.len(), bytes.len()]);
    }
}
