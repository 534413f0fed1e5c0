//! The path that routes are matched against: one spelling for all equivalent ones.
//!
//! In the normal form percent-encoded unreserved characters are decoded (RFC 3986, 6.2.2.2), the
//! remaining encodings have upper-case digits, dot segments are resolved (5.2.4) and, by choice,
//! repeated slashes are one. `%2F` stays as it is: an encoded slash never separates segments.
//! The original spelling is what is forwarded.
//!
//! Refused with 400, because endpoints read them differently: a `%` without two hex digits, `%00`,
//! a backslash, dot segments above the root, and dot segments with parameters (`/..;x/`), which
//! some servlet containers resolve and others do not. Encoded controls other than NUL and an encoded
//! backslash are kept encoded.
//!
//! Cost: a path without `%`, `\`, `//` and `/.` is its own normal form and is not copied; finding
//! that out is one pass over it.

use crate::error::Fault;

/// How paths are normalised.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PathRules {
    /// `//` counts as `/` when routes are matched.
    pub merge_slashes: bool,
}

impl PathRules {
    /// Slashes are merged, as most endpoints do.
    pub const DEFAULT: PathRules = PathRules { merge_slashes: true };
}

impl Default for PathRules {
    /// Slashes are merged, as most endpoints do.
    fn default() -> Self {
        PathRules::DEFAULT
    }
}

/// Writes the normal form of `path` to `out`, or returns false when `path` is its own normal form
/// (`out` is then empty).
///
/// # Errors
/// [`Fault::PathPercent`], [`Fault::PathCharacter`], [`Fault::PathAboveRoot`];
/// [`Fault::TargetForm`] when the path does not begin with a slash.
pub fn normalise(path: &[u8], rules: PathRules, out: &mut Vec<u8>) -> Result<bool, Fault> {
    out.clear();
    if path.first() != Some(&b'/') {
        return Err(Fault::TargetForm);
    }
    if is_normal(path) {
        return Ok(false);
    }
    rewrite(path, rules, out)?;
    Ok(true)
}

fn is_normal(path: &[u8]) -> bool {
    let (mut found, mut previous) = (0, 0);
    for &byte in path {
        let class = CLASSES[byte as usize];
        // A slash before a slash or a dot: AFTER_SLASH is one bit below SLASH.
        found |= class & (ESCAPED | (previous >> 1 & AFTER_SLASH));
        previous = class;
    }
    found == 0
}

/// `%` and what is refused.
const ESCAPED: u8 = 1;
/// Makes a segment special when it begins one.
const AFTER_SLASH: u8 = 2;
const SLASH: u8 = 4;

static CLASSES: [u8; 256] = {
    let mut classes = [0; 256];
    classes[b'%' as usize] = ESCAPED;
    classes[b'\\' as usize] = ESCAPED;
    classes[b'.' as usize] = AFTER_SLASH;
    classes[b'/' as usize] = AFTER_SLASH | SLASH;
    classes
};

fn rewrite(path: &[u8], rules: PathRules, out: &mut Vec<u8>) -> Result<(), Fault> {
    out.reserve(path.len());
    let mut rest = &path[1..];
    loop {
        let (segment, next) = match memchr::memchr(b'/', rest) {
            Some(at) => (&rest[..at], Some(&rest[at + 1..])),
            None => (rest, None),
        };
        let start = out.len();
        out.push(b'/');
        decode(segment, out)?;
        match kind(&out[start + 1..])? {
            Segment::Dot => out.truncate(start),
            Segment::DotDot => {
                let parent = out[..start].iter().rposition(|&byte| byte == b'/');
                out.truncate(parent.ok_or(Fault::PathAboveRoot)?);
            }
            Segment::Empty if rules.merge_slashes => out.truncate(start),
            Segment::Empty | Segment::Name => {
                if next.is_none() {
                    return Ok(());
                }
            }
        }
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

enum Segment {
    Empty,
    Dot,
    DotDot,
    Name,
}

fn kind(segment: &[u8]) -> Result<Segment, Fault> {
    Ok(match segment {
        b"" => Segment::Empty,
        b"." => Segment::Dot,
        b".." => Segment::DotDot,
        [b'.', b';', ..] | [b'.', b'.', b';', ..] => return Err(Fault::PathCharacter),
        [b'.', b'%', b'3', b'B', ..] | [b'.', b'.', b'%', b'3', b'B', ..] => {
            return Err(Fault::PathCharacter);
        }
        _ => Segment::Name,
    })
}

fn decode(segment: &[u8], out: &mut Vec<u8>) -> Result<(), Fault> {
    let mut at = 0;
    while at < segment.len() {
        match segment[at] {
            b'%' => {
                let high = segment.get(at + 1).and_then(|&digit| hex(digit));
                let low = segment.get(at + 2).and_then(|&digit| hex(digit));
                let (Some(high), Some(low)) = (high, low) else { return Err(Fault::PathPercent) };
                match high << 4 | low {
                    0 => return Err(Fault::PathCharacter),
                    byte if is_unreserved(byte) => out.push(byte),
                    byte => out.extend_from_slice(&[
                        b'%',
                        DIGITS[(byte >> 4) as usize],
                        DIGITS[(byte & 15) as usize],
                    ]),
                }
                at += 3;
            }
            b'\\' => return Err(Fault::PathCharacter),
            byte => {
                out.push(byte);
                at += 1;
            }
        }
    }
    Ok(())
}

const DIGITS: &[u8; 16] = b"0123456789ABCDEF";

fn hex(digit: u8) -> Option<u8> {
    (digit as char).to_digit(16).map(|value| value as u8)
}

fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MERGE: PathRules = PathRules { merge_slashes: true };
    const KEEP: PathRules = PathRules { merge_slashes: false };

    fn normal(path: &str, rules: PathRules) -> Result<String, Fault> {
        let mut out = Vec::new();
        Ok(match normalise(path.as_bytes(), rules, &mut out)? {
            true => String::from_utf8(out).expect("ascii"),
            false => path.to_owned(),
        })
    }

    /// The same rules, one character and one segment at a time, with every intermediate list kept.
    fn oracle(path: &str, rules: PathRules) -> Result<String, Fault> {
        let rest = path.strip_prefix('/').ok_or(Fault::TargetForm)?;
        let mut segments: Vec<String> = Vec::new();
        let count = rest.split('/').count();
        for (at, raw) in rest.split('/').enumerate() {
            let last = at + 1 == count;
            let mut segment = String::new();
            let mut chars = raw.chars();
            while let Some(c) = chars.next() {
                if c == '\\' {
                    return Err(Fault::PathCharacter);
                }
                if c != '%' {
                    segment.push(c);
                    continue;
                }
                let digits: String = chars.by_ref().take(2).collect();
                if digits.len() != 2 || !digits.chars().all(|d| d.is_ascii_hexdigit()) {
                    return Err(Fault::PathPercent);
                }
                let byte = u8::from_str_radix(&digits, 16).map_err(|_| Fault::PathPercent)?;
                match byte {
                    0 => return Err(Fault::PathCharacter),
                    b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                        segment.push(byte as char);
                    }
                    _ => segment.push_str(&format!("%{byte:02X}")),
                }
            }
            let before_parameter = segment.replace("%3B", ";");
            if before_parameter.starts_with(".;") || before_parameter.starts_with("..;") {
                return Err(Fault::PathCharacter);
            }
            match segment.as_str() {
                "." if last => segments.push(String::new()),
                "." => {}
                ".." => {
                    segments.pop().ok_or(Fault::PathAboveRoot)?;
                    if last {
                        segments.push(String::new());
                    }
                }
                "" if rules.merge_slashes && !last => {}
                _ => segments.push(segment),
            }
        }
        Ok(format!("/{}", segments.join("/")))
    }

    #[test]
    fn equivalent_spellings_have_one_form() {
        for (path, merged, kept) in [
            ("/", "/", "/"),
            ("/a/b", "/a/b", "/a/b"),
            ("/%61%2D%7e", "/a-~", "/a-~"),
            ("/a%2fb", "/a%2Fb", "/a%2Fb"),
            ("/%252e%252e/", "/%252e%252e/", "/%252e%252e/"),
            ("/a/./b/.", "/a/b/", "/a/b/"),
            ("/a/%2e%2E/b", "/b", "/b"),
            ("/a/b/..", "/a/", "/a/"),
            ("/a/..", "/", "/"),
            ("/a/../", "/", "/"),
            ("//", "/", "//"),
            ("//a///b//", "/a/b/", "//a///b//"),
            ("/a//../b", "/b", "/a/b"),
            ("/...", "/...", "/..."),
            ("/.a/..b", "/.a/..b", "/.a/..b"),
            ("/a;b=c/d", "/a;b=c/d", "/a;b=c/d"),
            ("/%0d%0A%5c", "/%0D%0A%5C", "/%0D%0A%5C"),
        ] {
            assert_eq!(normal(path, MERGE).as_deref(), Ok(merged), "{path}");
            assert_eq!(normal(path, KEEP).as_deref(), Ok(kept), "{path}");
        }
    }

    #[test]
    fn what_endpoints_read_differently_is_refused() {
        for (path, fault) in [
            ("", Fault::TargetForm),
            ("a", Fault::TargetForm),
            ("/%", Fault::PathPercent),
            ("/%4", Fault::PathPercent),
            ("/%4/1", Fault::PathPercent),
            ("/%+1", Fault::PathPercent),
            ("/%u0041", Fault::PathPercent),
            ("/%00", Fault::PathCharacter),
            ("/a\\..\\b", Fault::PathCharacter),
            ("/..;/x", Fault::PathCharacter),
            ("/a/.;b", Fault::PathCharacter),
            ("/a/%2e%2e%3b", Fault::PathCharacter),
            ("/..", Fault::PathAboveRoot),
            ("/a/../..", Fault::PathAboveRoot),
            ("/%2e./x", Fault::PathAboveRoot),
        ] {
            assert_eq!(normal(path, MERGE), Err(fault), "{path}");
            assert_eq!(normal(path, KEEP), Err(fault), "{path}");
        }
        assert_eq!(normal("//../x", MERGE), Err(Fault::PathAboveRoot));
        assert_eq!(normal("//../x", KEEP).as_deref(), Ok("/x"));
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn agrees_with_the_oracle_and_is_idempotent(
            path in prop_oneof![
                "/([./%\\\\;a]|%2[eEfF]|%3[bB]|%00|%41|%c3|/\\.\\./|//){0,8}",
                "/([./a]|a/|b/|c/|%2[eEfF]|%41|%c3|//){0,16}",
            ],
            merge_slashes: bool,
        ) {
            let rules = PathRules { merge_slashes };
            let once = normal(&path, rules);
            prop_assert_eq!(&once, &oracle(&path, rules));
            if let Ok(once) = once {
                prop_assert!(!once.contains("/../") && !once.ends_with("/.."), "{}", once);
                prop_assert!(!once.contains("/./") && !once.ends_with("/."), "{}", once);
                prop_assert!(!merge_slashes || !once.contains("//"), "{}", once);
                prop_assert_eq!(normal(&once, rules), Ok(once.clone()));
            }
        }
    }
}
