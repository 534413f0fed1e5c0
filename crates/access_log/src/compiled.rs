//! A format that is ready to write: pieces of text, each with what follows it.

use crate::captured;
use crate::fields::Field;
use crate::format::Style;

/// Text of one piece. What is longer becomes several.
pub(crate) const TEXT: usize = 32;

/// A format that is ready to write.
#[derive(Debug)]
pub struct Compiled {
    pub(crate) pieces: Box<[Piece]>,
}

/// Some text, and what follows it.
#[derive(Debug)]
pub(crate) struct Piece {
    pub(crate) text: [u8; TEXT],
    pub(crate) length: u8,
    pub(crate) then: Then,
}

/// What follows a text.
#[derive(Debug)]
pub(crate) enum Then {
    Nothing,
    Json(Field),
    Text(Field),
    RequestHeader(usize, Style),
    AnswerHeader(Box<[u8]>, Style),
}

/// What the formats of one listener want of a request before it goes on.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Wanted {
    /// Headers, by name, in the order of their slots.
    pub request_headers: Vec<Box<[u8]>>,
    /// The decision's id.
    pub decision: bool,
    /// The moment of an answer's first byte.
    pub first_byte: bool,
    /// The time a connection took.
    pub connect: bool,
    /// The TLS version.
    pub tls: bool,
}

impl Wanted {
    /// Notes what a field needs.
    pub(crate) fn note(&mut self, field: Field) {
        match field {
            Field::Decision => self.decision = true,
            Field::FirstByteMs | Field::FirstByteSeconds => self.first_byte = true,
            Field::ConnectMs | Field::ConnectSeconds | Field::EndpointTlsMs => self.connect = true,
            Field::Tls => self.tls = true,
            _ => {}
        }
    }

    /// Where a header will stand.
    pub(crate) fn slot(&mut self, name: &str) -> usize {
        let mut known = self.request_headers.iter();
        let place = known.position(|known| known.eq_ignore_ascii_case(name.as_bytes()));
        let place = place.unwrap_or_else(|| {
            self.request_headers.push(name.as_bytes().into());
            self.request_headers.len() - 1
        });
        captured::HEADERS + place
    }
}

/// Puts pieces together.
#[derive(Default)]
pub(crate) struct Pieces {
    done: Vec<Piece>,
    /// Text that nothing follows yet.
    text: Vec<u8>,
}

impl Pieces {
    /// Text, together with what stands before it.
    pub(crate) fn text(&mut self, text: &[u8]) {
        self.text.extend_from_slice(text);
    }

    /// A field. Quotes around what is never null are text.
    pub(crate) fn field(&mut self, field: Field, style: Style) {
        let quotes: &[u8] = match style {
            Style::Json if field.is_always_a_string() => b"\"",
            _ => b"",
        };
        self.text(quotes);
        self.then(match style {
            Style::Json => Then::Json(field),
            Style::Text => Then::Text(field),
        });
        self.text(quotes);
    }

    /// Whatever follows the text so far.
    pub(crate) fn then(&mut self, then: Then) {
        let text = std::mem::take(&mut self.text);
        let (parts, rest) = text.as_chunks::<TEXT>();
        self.done.extend(parts.iter().map(|part| Piece::of(part, Then::Nothing)));
        self.done.push(Piece::of(rest, then));
    }

    /// The end of a line.
    pub(crate) fn finish(mut self) -> Compiled {
        self.text(b"\n");
        self.then(Then::Nothing);
        Compiled { pieces: self.done.into() }
    }
}

impl Piece {
    /// Of at most [`TEXT`] bytes.
    fn of(part: &[u8], then: Then) -> Piece {
        let mut text = [0; TEXT];
        text[..part.len()].copy_from_slice(part);
        Piece { text, length: part.len() as u8, then }
    }
}
