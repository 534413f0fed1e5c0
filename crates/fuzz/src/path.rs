//! Paths: one form for equivalent spellings, which is its own, and what a slow reading says.

use subak_message::h1::{Progress, parse_request};
use subak_message::path::normalise;
use subak_message::{HeadLimits, PathRules, RequestHead};

/// Checks one input.
pub fn check(data: &[u8]) {
    for merge_slashes in [true, false] {
        let rules = PathRules { merge_slashes };
        let once = normal(data, rules);
        assert_eq!(once, slow(data, merge_slashes));
        if let Some(once) = &once {
            assert_eq!(normal(once, rules).as_ref(), Some(once), "not its own normal form");
        }
        in_a_request(data, rules, once.as_deref());
    }
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
            assert_eq!(head.forward_target(), path);
        }
        (Err(error), expected) => {
            assert!(expected.is_none() || error.status() == 414);
        }
        (result, expected) => panic!("{result:?} for {expected:?}"),
    }
}

fn slow(path: &[u8], merge_slashes: bool) -> Option<Vec<u8>> {
    if path.first() != Some(&b'/') {
        return None;
    }
    let raw: Vec<&[u8]> = path[1..].split(|&byte| byte == b'/').collect();
    let mut kept: Vec<Vec<u8>> = Vec::new();
    for (at, segment) in raw.iter().enumerate() {
        let last = at + 1 == raw.len();
        let segment = decode(segment)?;
        let plain = String::from_utf8_lossy(&segment).replace("%3B", ";");
        if plain.starts_with(".;") || plain.starts_with("..;") {
            return None;
        }
        match segment.as_slice() {
            b"." => {}
            b".." => drop(kept.pop()?),
            b"" if merge_slashes => {}
            _ => {
                kept.push(segment);
                continue;
            }
        }
        if last {
            kept.push(Vec::new());
        }
    }
    Some(kept.iter().flat_map(|segment| [&b"/"[..], segment]).flatten().copied().collect())
}

fn decode(segment: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let mut bytes = segment.iter();
    while let Some(&byte) = bytes.next() {
        if byte == b'\\' {
            return None;
        }
        if byte != b'%' {
            out.push(byte);
            continue;
        }
        let digits = [*bytes.next()?, *bytes.next()?];
        if !digits.iter().all(u8::is_ascii_hexdigit) {
            return None;
        }
        let text = std::str::from_utf8(&digits).ok()?;
        let value = u8::from_str_radix(text, 16).ok()?;
        if value == 0 {
            return None;
        }
        if value.is_ascii_alphanumeric() || b"-._~".contains(&value) {
            out.push(value);
        } else {
            out.extend(format!("%{value:02X}").bytes());
        }
    }
    Some(out)
}
