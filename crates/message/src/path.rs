//! Paths in the forms that decisions are made on.
//!
//! Two forms, both with one spelling for all equivalent ones:
//!
//! - The *normal* form ([`normalise`]): percent-encoded unreserved characters are decoded (RFC 3986,
//!   6.2.2.2), the remaining encodings have upper-case digits, dot segments are resolved (5.2.4) and, by
//!   choice, repeated slashes are one. Rewrites are made from it.
//! - The *compared* form ([`strip_parameters`]): the normal form without the parameters of its segments
//!   (`/admin;a=b/x` is `/admin/x`), as servlet containers read it. Routes and limits look at it.
//!
//! The spelling of the client is what is forwarded, so a path that endpoints read differently is refused
//! with 400: a `%` without two hexadecimal digits, `%00`, a backslash, an overlong encoding of UTF-8,
//! an encoded slash or backslash unless [`EncodedSlashes`] allows it, dot segments above the root, dot
//! segments with parameters (`/..;x/`), and `..` behind a segment that some take for none: an empty one,
//! one of parameters alone, one with an encoded slash.
//!
//! Escapes are decoded once: `%252F` is a `%`, then `2F`.
//!
//! Cost: a path without `%`, `\`, `;`, `//` and `/.` has one form, and is not copied; finding that out
//! is one pass over it.

use crate::error::Fault;

/// Rules by which the forms of a path are made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PathRules {
    /// `//` counts as `/` when routes are matched.
    pub merge_slashes: bool,
    /// What becomes of `%2F` and `%5C`.
    pub encoded_slashes: EncodedSlashes,
}

impl PathRules {
    /// Slashes are merged, as most endpoints do; encoded ones are refused.
    pub const DEFAULT: PathRules =
        PathRules { merge_slashes: true, encoded_slashes: EncodedSlashes::Refuse };
}

impl Default for PathRules {
    /// [`PathRules::DEFAULT`]
    fn default() -> Self {
        PathRules::DEFAULT
    }
}

/// What becomes of `%2F` and `%5C` in a path. nginx decodes them before it looks for a location, other
/// programs take them for characters of a name.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum EncodedSlashes {
    /// The request is refused with 400.
    #[default]
    Refuse,
    /// They stay encoded for routes and endpoints, and separate nothing.
    Keep,
    /// `%2F` is a slash for routes and endpoints, as if the client had written it so. `%5C` is refused,
    /// as a backslash is.
    Decode,
}

/// Writes the normal form of `path` to `out`, or returns false when `path` is its own normal form and
/// has no parameters (`out` is then empty).
///
/// # Errors
/// [`Fault::PathPercent`], [`Fault::PathCharacter`], [`Fault::PathEncodedSlash`],
/// [`Fault::PathDotSegment`], [`Fault::PathAboveRoot`]; [`Fault::TargetForm`] when the path does not
/// begin with a slash.
pub fn normalise(path: &[u8], rules: PathRules, out: &mut Vec<u8>) -> Result<bool, Fault> {
    out.clear();
    if path.first() != Some(&b'/') {
        return Err(Fault::TargetForm);
    }
    if is_normal(path) {
        return Ok(false);
    }
    let mut decoded = Vec::new();
    let is_decoded =
        rules.encoded_slashes == EncodedSlashes::Decode && decode_slashes(path, &mut decoded);
    rewrite(if is_decoded { &decoded } else { path }, rules, out)?;
    Ok(true)
}

/// Writes `path`, which is in normal form, without the parameters of its segments to `out`, or returns
/// false when it has none (`out` is then empty). `%3B` begins parameters as `;` does: some endpoints
/// decode first.
pub fn strip_parameters(path: &[u8], rules: PathRules, out: &mut Vec<u8>) -> bool {
    out.clear();
    if parameters_of(path) == path.len() {
        return false;
    }
    let mut segments = path.split(|&byte| byte == b'/').skip(1).peekable();
    while let Some(segment) = segments.next() {
        let name = &segment[..parameters_of(segment)];
        // Parameters alone leave an empty segment, which is merged as others are.
        if name.is_empty() && rules.merge_slashes && segments.peek().is_some() {
            continue;
        }
        out.push(b'/');
        out.extend_from_slice(name);
    }
    true
}

/// Writes `path` with a slash for each `%2F` to `out`, or returns false when there is none (`out` is
/// then empty).
pub(crate) fn decode_slashes(path: &[u8], out: &mut Vec<u8>) -> bool {
    out.clear();
    let mut from = 0;
    let mut next = 0;
    for at in memchr::memchr_iter(b'%', path) {
        // A `%` among the digits of another one is no escape; the path is refused for it.
        if at >= next && matches!(path[at..], [_, b'2', b'F' | b'f', ..]) {
            out.extend_from_slice(&path[from..at]);
            out.push(b'/');
            from = at + 3;
        }
        next = at + 3;
    }
    if from > 0 {
        out.extend_from_slice(&path[from..]);
    }
    from > 0
}

/// Where the parameters of a segment in normal form begin; its end without any.
fn parameters_of(segment: &[u8]) -> usize {
    let plain = memchr::memchr(b';', segment).unwrap_or(segment.len());
    let mut escapes = memchr::memchr_iter(b'%', &segment[..plain]);
    escapes.find(|&at| segment[at..].starts_with(b"%3B")).unwrap_or(plain)
}

fn is_normal(path: &[u8]) -> bool {
    let (mut found, mut previous) = (0, 0);
    for &byte in path {
        let class = CLASSES[byte as usize];
        // A slash before a slash or a dot: AFTER_SLASH is one bit below SLASH.
        found |= class & (SPECIAL | (previous >> 1 & AFTER_SLASH));
        previous = class;
    }
    found == 0
}

/// `%`, `;` and what is refused.
const SPECIAL: u8 = 1;
/// Makes a segment special when it begins one.
const AFTER_SLASH: u8 = 2;
const SLASH: u8 = 4;

static CLASSES: [u8; 256] = {
    let mut classes = [0; 256];
    classes[b'%' as usize] = SPECIAL;
    classes[b'\\' as usize] = SPECIAL;
    classes[b';' as usize] = SPECIAL;
    classes[b'.' as usize] = AFTER_SLASH;
    classes[b'/' as usize] = AFTER_SLASH | SLASH;
    classes
};

fn rewrite(path: &[u8], rules: PathRules, out: &mut Vec<u8>) -> Result<(), Fault> {
    out.reserve(path.len());
    let mut rest = &path[1..];
    // Whether endpoints differ in what a `..` takes away.
    let mut is_ambiguous = false;
    loop {
        let (segment, next) = match memchr::memchr(b'/', rest) {
            Some(at) => (&rest[..at], Some(&rest[at + 1..])),
            None => (rest, None),
        };
        let start = out.len();
        out.push(b'/');
        decode(segment, rules, out)?;
        let kind = kind(&out[start + 1..])?;
        match kind {
            Segment::Dot => out.truncate(start),
            Segment::DotDot if is_ambiguous => return Err(Fault::PathDotSegment),
            Segment::DotDot => {
                let parent = out[..start].iter().rposition(|&byte| byte == b'/');
                out.truncate(parent.ok_or(Fault::PathAboveRoot)?);
            }
            Segment::Empty if rules.merge_slashes => out.truncate(start),
            Segment::Empty | Segment::Ambiguous | Segment::Name => {
                if next.is_none() {
                    return Ok(());
                }
            }
        }
        is_ambiguous |= matches!(kind, Segment::Empty | Segment::Ambiguous);
        match next {
            Some(next) => rest = next,
            None => {
                // The last segment was a dot segment or empty: the directory itself.
                out.push(b'/');
                return Ok(());
            }
        }
    }
}

#[derive(Clone, Copy)]
enum Segment {
    Empty,
    Dot,
    DotDot,
    /// No segment, or several, in the eyes of some endpoints.
    Ambiguous,
    Name,
}

/// The kind of a decoded segment.
fn kind(segment: &[u8]) -> Result<Segment, Fault> {
    match segment {
        b"" => return Ok(Segment::Empty),
        b"." => return Ok(Segment::Dot),
        b".." => return Ok(Segment::DotDot),
        _ => {}
    }
    let mut from = 0;
    for at in memchr::memchr_iter(b'%', segment) {
        if segment[at..].starts_with(b"%2F") || segment[at..].starts_with(b"%5C") {
            refuse_dots(&segment[from..at])?;
            from = at + 3;
        }
    }
    refuse_dots(&segment[from..])?;
    let is_ambiguous = from > 0 || parameters_of(segment) == 0;
    Ok(if is_ambiguous { Segment::Ambiguous } else { Segment::Name })
}

/// Refuses a part of a segment that is a dot segment once parameters are removed.
fn refuse_dots(part: &[u8]) -> Result<(), Fault> {
    match &part[..parameters_of(part)] {
        b"." | b".." => Err(Fault::PathDotSegment),
        _ => Ok(()),
    }
}

fn decode(segment: &[u8], rules: PathRules, out: &mut Vec<u8>) -> Result<(), Fault> {
    let mut at = 0;
    // The byte that the escape just before stands for.
    let mut lead = 0;
    while at < segment.len() {
        let byte = segment[at];
        if byte == b'\\' {
            return Err(Fault::PathCharacter);
        }
        if byte != b'%' {
            out.push(byte);
            lead = 0;
            at += 1;
            continue;
        }
        let high = segment.get(at + 1).and_then(|&digit| hex(digit));
        let low = segment.get(at + 2).and_then(|&digit| hex(digit));
        let (Some(high), Some(low)) = (high, low) else { return Err(Fault::PathPercent) };
        match high << 4 | low {
            0 => return Err(Fault::PathCharacter),
            byte if is_overlong(lead, byte) => return Err(Fault::PathCharacter),
            b'/' | b'\\' if rules.encoded_slashes != EncodedSlashes::Keep => {
                return Err(Fault::PathEncodedSlash);
            }
            byte if is_unreserved(byte) => out.push(byte),
            byte => out.extend_from_slice(&[
                b'%',
                DIGITS[(byte >> 4) as usize],
                DIGITS[(byte & 15) as usize],
            ]),
        }
        lead = high << 4 | low;
        at += 3;
    }
    Ok(())
}

/// Whether two bytes begin an overlong form of UTF-8, in which `%C0%AF` is a slash to lenient decoders
/// (RFC 3629, 10).
fn is_overlong(lead: u8, next: u8) -> bool {
    matches!((lead, next), (0xc0 | 0xc1, 0x80..=0xbf) | (0xe0, 0x80..=0x9f) | (0xf0, 0x80..=0x8f))
}

const DIGITS: &[u8; 16] = b"0123456789ABCDEF";

fn hex(digit: u8) -> Option<u8> {
    (digit as char).to_digit(16).map(|value| value as u8)
}

fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

#[cfg(test)]
mod tests;
