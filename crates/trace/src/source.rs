//! Lines of a file, plain or compressed, one at a time: memory does not grow with the file.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;
use ruzstd::decoding::StreamingDecoder;

/// The longest line that is looked at. Subak's own are bounded to less.
pub(crate) const LINE_MAX: usize = 64 * 1024;

const BUFFER: usize = 256 * 1024;

/// Opens a log; `-` is standard input. What compressed it shows in its first bytes.
pub(crate) fn open(path: &Path) -> io::Result<Box<dyn BufRead>> {
    match path.as_os_str() == "-" {
        true => decompressed(BufReader::with_capacity(BUFFER, io::stdin())),
        false => decompressed(BufReader::with_capacity(BUFFER, File::open(path)?)),
    }
}

/// The same of anything that can be read.
pub(crate) fn decompressed<R: BufRead + 'static>(mut from: R) -> io::Result<Box<dyn BufRead>> {
    let begin = from.fill_buf()?;
    if begin.starts_with(&[0x1f, 0x8b]) {
        return Ok(Box::new(BufReader::with_capacity(BUFFER, MultiGzDecoder::new(from))));
    }
    if begin.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) {
        return Ok(Box::new(BufReader::with_capacity(BUFFER, Frames::Between(from))));
    }
    match PACKED.iter().find(|(_, _, sign)| begin.starts_with(sign)) {
        Some((by, unpack, _)) => {
            let why =
                format!("this is packed by {by}: `{unpack} FILE | subak lab replay -` reads it");
            Err(io::Error::new(io::ErrorKind::InvalidInput, why))
        }
        None => Ok(Box::new(from)),
    }
}

/// What else logs are packed by, what unpacks it, and its first bytes.
const PACKED: [(&str, &str, &[u8]); 4] = [
    ("xz", "xz -dc", b"\xfd7zXZ\0"),
    ("bzip2", "bzip2 -dc", b"BZh"),
    ("lz4", "lz4 -dc", b"\x04\x22\x4d\x18"),
    ("zip", "unzip -p", b"PK\x03\x04"),
];

/// The frames of a zstd file, one after the other: logs that are appended to have several.
enum Frames<R: BufRead> {
    Between(R),
    Within(Box<StreamingDecoder<R, ruzstd::decoding::FrameDecoder>>),
    Over,
}

impl<R: BufRead> Read for Frames<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        loop {
            match std::mem::replace(self, Frames::Over) {
                Frames::Over => return Ok(0),
                Frames::Between(mut from) => {
                    if from.fill_buf()?.is_empty() {
                        return Ok(0);
                    }
                    let decoder = StreamingDecoder::new(from).map_err(io::Error::other)?;
                    *self = Frames::Within(Box::new(decoder));
                }
                Frames::Within(mut decoder) => match decoder.read(out)? {
                    0 if !out.is_empty() => *self = Frames::Between(decoder.into_inner()),
                    count => {
                        *self = Frames::Within(decoder);
                        return Ok(count);
                    }
                },
            }
        }
    }
}

/// One line, without its end.
pub(crate) enum Next {
    /// It is in the buffer.
    Line,
    /// It is longer than [`LINE_MAX`]; its beginning is in the buffer.
    TooLong,
    /// There is none.
    End,
}

/// Reads the next line into `line`.
pub(crate) fn next_line(from: &mut dyn BufRead, line: &mut Vec<u8>) -> io::Result<Next> {
    line.clear();
    let mut length = 0;
    loop {
        let buffer = from.fill_buf()?;
        if buffer.is_empty() {
            return Ok(if length == 0 { Next::End } else { ended(line, length) });
        }
        let end = memchr::memchr(b'\n', buffer);
        let part = &buffer[..end.unwrap_or(buffer.len())];
        let room = LINE_MAX.saturating_sub(line.len());
        line.extend_from_slice(&part[..part.len().min(room)]);
        length += part.len();
        let used = end.map_or(part.len(), |end| end + 1);
        from.consume(used);
        if end.is_some() {
            return Ok(ended(line, length));
        }
    }
}

fn ended(line: &mut Vec<u8>, length: usize) -> Next {
    if length > LINE_MAX {
        return Next::TooLong;
    }
    if line.last() == Some(&b'\r') {
        line.pop();
    }
    Next::Line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_packed_by_others_is_named_with_what_unpacks_it() {
        for (by, unpack, sign) in PACKED {
            let packed = [sign, b"and more"].concat();
            let refused = decompressed(io::Cursor::new(packed)).err().expect("refused").to_string();
            assert!(refused.contains(by) && refused.contains(unpack), "{refused}");
        }
    }
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use ruzstd::encoding::{CompressionLevel, compress_to_vec};
    use std::io::{Cursor, Write};

    fn lines(bytes: Vec<u8>) -> Vec<String> {
        let mut from = decompressed(Cursor::new(bytes)).unwrap();
        let (mut line, mut lines) = (Vec::new(), Vec::new());
        loop {
            match next_line(&mut *from, &mut line).unwrap() {
                Next::End => return lines,
                Next::TooLong => lines.push("(too long)".into()),
                Next::Line => lines.push(String::from_utf8(line.clone()).unwrap()),
            }
        }
    }

    #[test]
    fn lines_are_the_same_however_they_are_packed() {
        let text = b"one\r\n\ntwo\nthree";
        let expected = ["one", "", "two", "three"];
        assert_eq!(lines(text.to_vec()), expected);
        let gzip = |text: &[u8]| {
            let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
            encoder.write_all(text).unwrap();
            encoder.finish().unwrap()
        };
        assert_eq!(lines([gzip(b"one\n\nt"), gzip(b"wo\nthree\n")].concat()), expected);
        let zstd = |text: &[u8]| compress_to_vec(text, CompressionLevel::Fastest);
        assert_eq!(lines([zstd(b"one\n\nt"), zstd(b"wo\nthree")].concat()), expected);
        assert!(lines(Vec::new()).is_empty());
    }

    #[test]
    fn a_line_without_end_takes_no_more_memory_than_the_bound() {
        let mut text = vec![b'x'; 3 * LINE_MAX];
        text.extend_from_slice(b"\nshort\n");
        assert_eq!(lines(text), ["(too long)", "short"]);
    }

    #[test]
    fn a_torn_archive_is_an_error_and_no_end() {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(&[7; 5000]).unwrap();
        let mut bytes = encoder.finish().unwrap();
        bytes.truncate(bytes.len() - 9);
        let mut from = decompressed(Cursor::new(bytes)).unwrap();
        assert!(
            std::iter::repeat_with(|| next_line(&mut *from, &mut Vec::new()))
                .take(10)
                .any(|next| next.is_err())
        );
    }
}
