//! Chunked bodies: decoded in one piece, byte by byte, in pieces and without moving, all alike, and
//! as a plain reading of the whole text. The first byte of the input says how pieces are cut.

use subak_message::Fields;
use subak_message::h1::{ChunkedDecoder, write_chunk_end, write_chunk_prefix, write_last_chunk};

#[derive(PartialEq, Debug)]
struct Read {
    payload: Vec<u8>,
    used: usize,
    finished: bool,
    trailers: Fields,
}

/// Checks one input.
pub fn check(data: &[u8]) {
    let Some((&piece, data)) = data.split_first() else { return };
    let whole = in_place(data, data.len().max(1));
    assert_eq!(in_place(data, 1), whole, "byte by byte");
    assert_eq!(in_place(data, usize::from(piece).max(1)), whole, "in pieces");
    assert_eq!(by_steps(data), whole, "without moving");
    match (plain(data), whole) {
        (Some((payload, rest)), Some(whole)) => {
            assert!(whole.finished && whole.trailers.is_empty());
            assert_eq!((payload, data.len() - rest), (whole.payload, whole.used));
        }
        (Some(_), None) => panic!("refused what is plain"),
        (None, Some(whole)) => {
            if whole.finished {
                encode_again(&whole);
            }
        }
        (None, None) => {}
    }
}

fn in_place(data: &[u8], piece: usize) -> Option<Read> {
    let mut decoder = ChunkedDecoder::new();
    let mut read = Read { payload: Vec::new(), used: 0, finished: false, trailers: Fields::new() };
    for piece in data.chunks(piece) {
        let mut buffer = piece.to_vec();
        let decoded = decoder.decode(&mut buffer).ok()?;
        assert!(decoded.data <= decoded.consumed && decoded.consumed <= buffer.len());
        assert!(decoded.finished || decoded.consumed == buffer.len());
        read.payload.extend_from_slice(&buffer[..decoded.data]);
        read.used += decoded.consumed;
        if decoded.finished {
            break;
        }
    }
    read.finished = decoder.is_finished();
    read.trailers = decoder.trailers().clone();
    Some(read)
}

fn by_steps(data: &[u8]) -> Option<Read> {
    let mut decoder = ChunkedDecoder::new();
    let mut read = Read { payload: Vec::new(), used: 0, finished: false, trailers: Fields::new() };
    while read.used < data.len() && !read.finished {
        let step = decoder.next(&data[read.used..]).ok()?;
        assert!(step.skip + step.data > 0, "no progress");
        let start = read.used + step.skip;
        read.payload.extend_from_slice(&data[start..start + step.data]);
        read.used = start + step.data;
        read.finished = step.finished;
    }
    read.trailers = decoder.trailers().clone();
    Some(read)
}

/// What was decoded, encoded again, is decoded as the same.
fn encode_again(read: &Read) {
    let mut text = Vec::new();
    for chunk in read.payload.chunks(7) {
        write_chunk_prefix(&mut text, chunk.len());
        text.extend_from_slice(chunk);
        write_chunk_end(&mut text);
    }
    write_last_chunk(&mut text, &read.trailers);
    let again = in_place(&text, text.len()).expect("what was written is read");
    assert_eq!(again.payload, read.payload);
    assert_eq!(again.trailers, read.trailers);
    assert!(again.finished && again.used == text.len());
}

/// Reads a body without extensions and trailers: payload and the number of bytes behind it.
fn plain(text: &[u8]) -> Option<(Vec<u8>, usize)> {
    let mut payload = Vec::new();
    let mut rest = text;
    loop {
        let end = rest.windows(2).position(|pair| pair == b"\r\n")?;
        let digits = std::str::from_utf8(&rest[..end]).ok()?;
        if !(1..=16).contains(&digits.len()) || !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
            return None;
        }
        let size = usize::from_str_radix(digits, 16).ok()?;
        rest = &rest[end + 2..];
        if size == 0 {
            return Some((payload, rest.strip_prefix(b"\r\n")?.len()));
        }
        payload.extend_from_slice(rest.get(..size)?);
        rest = rest[size..].strip_prefix(b"\r\n")?;
    }
}
