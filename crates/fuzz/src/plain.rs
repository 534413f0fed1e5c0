//! A plain reading of a head that was accepted: lines, names, values, framing fields.

use subak_message::{BodyLength, Fields, Known};

/// A head, split at its line ends.
pub(crate) struct Plain<'a> {
    pub(crate) line: &'a [u8],
    pub(crate) fields: Vec<(Vec<u8>, &'a [u8])>,
}

impl<'a> Plain<'a> {
    /// Splits a complete head. Panics where an accepted head has what none may have.
    pub(crate) fn read(head: &'a [u8]) -> Plain<'a> {
        assert!(head.ends_with(b"\r\n\r\n"), "no empty line at the end");
        let end = head.len() - 4;
        let inner = &head[..end];
        assert!(!contains(head[..head.len() - 1].as_ref(), b"\r\n\r\n"), "an empty line inside");
        let mut lines = Vec::new();
        let mut rest = inner;
        while let Some(at) = rest.windows(2).position(|pair| pair == b"\r\n") {
            lines.push(&rest[..at]);
            rest = &rest[at + 2..];
        }
        lines.push(rest);
        for line in &lines {
            assert!(line.iter().all(|&b| b == b'\t' || (b >= b' ' && b != 0x7f)), "a control");
        }
        let fields = lines[1..].iter().map(|line| {
            let colon = line.iter().position(|&byte| byte == b':').expect("a colon");
            let (name, value) = (&line[..colon], &line[colon + 1..]);
            assert!(!name.is_empty() && !name.iter().any(|b| b" \t,;()/\"".contains(b)), "a name");
            (name.to_ascii_lowercase(), value.trim_ascii())
        });
        Plain { line: lines[0], fields: fields.collect() }
    }

    /// All values of a name given in lower case.
    pub(crate) fn values(&self, name: &str) -> Vec<&'a [u8]> {
        let same = self.fields.iter().filter(|field| field.0 == name.as_bytes());
        same.map(|field| field.1).collect()
    }

    /// What the framing fields say; panics where they say two things.
    pub(crate) fn framing(&self) -> BodyLength {
        let lengths = self.values("content-length");
        let codings = self.values("transfer-encoding");
        match (lengths.as_slice(), codings.as_slice()) {
            ([], []) => BodyLength::None,
            ([length], []) => {
                assert!(length.iter().all(u8::is_ascii_digit), "a length that is no number");
                let text = std::str::from_utf8(length).expect("digits");
                BodyLength::Known(text.parse().expect("a length that fits"))
            }
            ([], [coding]) => {
                assert!(coding.eq_ignore_ascii_case(b"chunked"), "a coding that is not chunked");
                assert!(contains(self.line, b"HTTP/1.1"), "a coding in HTTP/1.0");
                BodyLength::Chunked
            }
            _ => panic!("framed twice"),
        }
    }
}

pub(crate) fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

/// The fields that no connection and no framing takes away, in order.
pub(crate) fn lasting(fields: &Fields) -> Vec<(Vec<u8>, Vec<u8>)> {
    let moved = [Known::Host, Known::ContentLength, Known::Trailer, Known::Lookalike];
    fields
        .iter()
        .filter(|field| !field.known.is_hop_by_hop() && !moved.contains(&field.known))
        .map(|field| (field.name.to_vec(), field.value.to_vec()))
        .collect()
}
