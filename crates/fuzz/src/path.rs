//! Paths: one form for equivalent spellings, which is its own, and what a slow reading says.

use subak_message::h1::{Progress, parse_request};
use subak_message::path::{normalise, strip_parameters};
use subak_message::{EncodedSlashes, HeadLimits, PathRules, RequestHead};

/// Checks one input.
pub fn check(data: &[u8]) {
    for merge_slashes in [true, false] {
        for encoded_slashes in
            [EncodedSlashes::Refuse, EncodedSlashes::Keep, EncodedSlashes::Decode]
        {
            check_by(PathRules { merge_slashes, encoded_slashes }, data);
        }
    }
}

fn check_by(rules: PathRules, data: &[u8]) {
    let once = normal(data, rules);
    assert_eq!(once, slow(data, rules));
    if let Some(once) = &once {
        assert_eq!(normal(once, rules).as_ref(), Some(once), "not its own normal form");
        let mut compared = Vec::new();
        strip_parameters(once, rules, &mut compared);
        assert!(!compared.contains(&b';'), "a parameter is left");
        if !compared.is_empty() {
            assert_eq!(normal(&compared, rules).as_ref(), Some(&compared), "not in normal form");
        }
    }
    in_a_request(data, rules, once.as_deref());
}

fn normal(path: &[u8], rules: PathRules) -> Option<Vec<u8>> {
    let mut out = vec![b'x'];
    match normalise(path, rules, &mut out) {
        Ok(true) => Some(out),
        Ok(false) => {
            assert!(out.is_empty());
            Some(path.to_vec())
        }
        Err(_) => None,
    }
}

/// The same path in a request line is routed by the same normal form and forwarded as it is.
fn in_a_request(path: &[u8], rules: PathRules, expected: Option<&[u8]>) {
    let visible = path.iter().all(u8::is_ascii_graphic);
    if !visible || !path.starts_with(b"/") || path.iter().any(|byte| b"?#".contains(byte)) {
        return;
    }
    let text = [b"GET ", path, b" HTTP/1.1\r\nHost: a\r\n\r\n"].concat();
    let limits = HeadLimits { path: rules, ..HeadLimits::default() };
    let mut head = RequestHead::default();
    match (parse_request(&text, &limits, &mut head), expected) {
        (Ok(Progress::Complete { .. }), Some(expected)) => {
            assert_eq!(head.normal_path(), expected);
            if rules.encoded_slashes == EncodedSlashes::Decode {
                assert_eq!(normal(head.forward_target(), rules).as_deref(), Some(expected));
            } else {
                assert_eq!(head.forward_target(), path);
            }
        }
        (Err(error), expected) => {
            assert!(expected.is_none() || error.status() == 414);
        }
        (result, expected) => panic!("{result:?} for {expected:?}"),
    }
}

fn slow(path: &[u8], rules: PathRules) -> Option<Vec<u8>> {
    if path.first() != Some(&b'/') {
        return None;
    }
    let path = decode(path)?;
    let raw: Vec<&str> = path[1..].split(|c| c == '/' || decodes(rules) && c == SLASH).collect();
    let mut kept: Vec<Vec<u8>> = Vec::new();
    let mut is_ambiguous = false;
    for (at, segment) in raw.iter().enumerate() {
        let last = at + 1 == raw.len();
        let hidden = segment.contains([SLASH, BACKSLASH]);
        if hidden && rules.encoded_slashes != EncodedSlashes::Keep {
            return None;
        }
        let mut parts = segment.split([SLASH, BACKSLASH]);
        let names = |part: &str| matches!(part.split([';', SEMICOLON]).next(), Some("." | ".."));
        if !matches!(*segment, "." | "..") && parts.any(names) {
            return None;
        }
        let begun = is_ambiguous;
        is_ambiguous |= hidden || segment.is_empty() || segment.starts_with([';', SEMICOLON]);
        match *segment {
            "." => {}
            ".." if begun => return None,
            ".." => drop(kept.pop()?),
            "" if rules.merge_slashes => {}
            _ => {
                kept.push(encode(segment));
                continue;
            }
        }
        if last {
            kept.push(Vec::new());
        }
    }
    Some(kept.iter().flat_map(|segment| [&b"/"[..], segment]).flatten().copied().collect())
}

/// Stand for escapes that are not decoded; every other byte that is left encoded stands for itself,
/// moved out of the way by the same distance.
const ENCODED: u32 = 0x1000;
const SLASH: char = '\u{102f}';
const BACKSLASH: char = '\u{105c}';
const SEMICOLON: char = '\u{103b}';

fn decodes(rules: PathRules) -> bool {
    rules.encoded_slashes == EncodedSlashes::Decode
}

/// A character for each byte and for each escape.
fn decode(path: &[u8]) -> Option<String> {
    let mut out = String::new();
    let mut bytes = path.iter();
    let mut before = 0;
    while let Some(&byte) = bytes.next() {
        if byte == b'\\' {
            return None;
        }
        if byte != b'%' {
            out.push(char::from(byte));
            before = 0;
            continue;
        }
        let digits = [*bytes.next()?, *bytes.next()?];
        if !digits.iter().all(u8::is_ascii_hexdigit) {
            return None;
        }
        let text = std::str::from_utf8(&digits).ok()?;
        let value = u8::from_str_radix(text, 16).ok()?;
        let overlong = match before {
            0xc0 | 0xc1 => 0x80..=0xbf,
            0xe0 => 0x80..=0x9f,
            0xf0 => 0x80..=0x8f,
            _ => 0..=0,
        };
        if overlong.contains(&value) || value == 0 {
            return None;
        }
        before = value;
        if value.is_ascii_alphanumeric() || b"-._~".contains(&value) {
            out.push(char::from(value));
        } else {
            out.push(char::from_u32(ENCODED + u32::from(value))?);
        }
    }
    Some(out)
}

fn encode(segment: &str) -> Vec<u8> {
    let mut out = Vec::new();
    for character in segment.chars() {
        match u32::from(character).checked_sub(ENCODED) {
            Some(value) => out.extend(format!("%{value:02X}").bytes()),
            // A byte of the input.
            None => out.push(character as u8),
        }
    }
    out
}
