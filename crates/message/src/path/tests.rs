use super::*;
use proptest::prelude::*;

const MERGE: PathRules = PathRules { merge_slashes: true, encoded_slashes: EncodedSlashes::Keep };
const SEPARATE: PathRules = PathRules { merge_slashes: false, ..MERGE };

fn with(encoded_slashes: EncodedSlashes) -> PathRules {
    PathRules { encoded_slashes, ..MERGE }
}

fn normal(path: &str, rules: PathRules) -> Result<String, Fault> {
    let mut out = Vec::new();
    let is_other = normalise(path.as_bytes(), rules, &mut out)?;
    Ok(if is_other { String::from_utf8(out).expect("ascii") } else { path.to_owned() })
}

/// What routes see.
fn compared(path: &str, rules: PathRules) -> Result<String, Fault> {
    let normal = normal(path, rules)?;
    let mut out = Vec::new();
    let is_other = strip_parameters(normal.as_bytes(), rules, &mut out);
    Ok(if is_other { String::from_utf8(out).expect("ascii") } else { normal })
}

/// The same rules, one character and one segment at a time, with every intermediate list kept.
fn oracle(path: &str, rules: PathRules) -> Result<String, Fault> {
    let path = match rules.encoded_slashes {
        EncodedSlashes::Decode => path.replace("%2F", "/").replace("%2f", "/"),
        _ => path.to_owned(),
    };
    let rest = path.strip_prefix('/').ok_or(Fault::TargetForm)?;
    let mut segments: Vec<String> = Vec::new();
    let count = rest.split('/').count();
    let mut is_ambiguous = false;
    for (at, raw) in rest.split('/').enumerate() {
        let last = at + 1 == count;
        let segment = oracle_decode(raw, rules)?;
        let plain = segment.replace("%3B", ";");
        let parts = plain.replace("%5C", "%2F");
        if plain.contains([';', '%'])
            && parts.split("%2F").any(|part| matches!(part.split(';').next(), Some("." | "..")))
        {
            return Err(Fault::PathDotSegment);
        }
        match segment.as_str() {
            "." if last => segments.push(String::new()),
            "." => {}
            ".." if is_ambiguous => return Err(Fault::PathDotSegment),
            ".." => {
                segments.pop().ok_or(Fault::PathAboveRoot)?;
                if last {
                    segments.push(String::new());
                }
            }
            "" if rules.merge_slashes && !last => {}
            _ => segments.push(segment),
        }
        is_ambiguous |= plain.is_empty() || plain.starts_with(';') || parts.contains("%2F");
    }
    Ok(format!("/{}", segments.join("/")))
}

fn oracle_decode(raw: &str, rules: PathRules) -> Result<String, Fault> {
    let mut segment = String::new();
    let mut chars = raw.chars();
    let mut before = None;
    while let Some(c) = chars.next() {
        if c == '\\' {
            return Err(Fault::PathCharacter);
        }
        if c != '%' {
            segment.push(c);
            before = None;
            continue;
        }
        let digits: String = chars.by_ref().take(2).collect();
        if digits.len() != 2 || !digits.chars().all(|d| d.is_ascii_hexdigit()) {
            return Err(Fault::PathPercent);
        }
        let byte = u8::from_str_radix(&digits, 16).map_err(|_| Fault::PathPercent)?;
        // The shortest form of what this would be has fewer bytes.
        let is_overlong = byte & 0xc0 == 0x80
            && match before {
                Some(0xc0 | 0xc1) => true,
                Some(0xe0) => byte < 0xa0,
                Some(0xf0) => byte < 0x90,
                _ => false,
            };
        before = Some(byte);
        match byte {
            0 => return Err(Fault::PathCharacter),
            _ if is_overlong => return Err(Fault::PathCharacter),
            b'/' | b'\\' if rules.encoded_slashes != EncodedSlashes::Keep => {
                return Err(Fault::PathEncodedSlash);
            }
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                segment.push(byte as char);
            }
            _ => segment.push_str(&format!("%{byte:02X}")),
        }
    }
    Ok(segment)
}

#[test]
fn equivalent_spellings_have_one_form() {
    for (path, merged, separate) in [
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
        ("/...", "/...", "/..."),
        ("/.a/..b", "/.a/..b", "/.a/..b"),
        ("/a;b=c/d", "/a;b=c/d", "/a;b=c/d"),
        ("/a;b/../c", "/c", "/c"),
        ("/%0d%0A%5c", "/%0D%0A%5C", "/%0D%0A%5C"),
        (
            "/caf%e9/%C3%a9/%c0/%E0%A0%80",
            "/caf%E9/%C3%A9/%C0/%E0%A0%80",
            "/caf%E9/%C3%A9/%C0/%E0%A0%80",
        ),
    ] {
        assert_eq!(normal(path, MERGE).as_deref(), Ok(merged), "{path}");
        assert_eq!(normal(path, SEPARATE).as_deref(), Ok(separate), "{path}");
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
        ("/%%2F2F", Fault::PathPercent),
        ("/%00", Fault::PathCharacter),
        ("/a\\..\\b", Fault::PathCharacter),
        ("/%c0%af", Fault::PathCharacter),
        ("/%C0%AE%c0%ae/x", Fault::PathCharacter),
        ("/%c1%9c", Fault::PathCharacter),
        ("/%e0%80%af", Fault::PathCharacter),
        ("/%f0%80%80%af", Fault::PathCharacter),
        ("/..;/x", Fault::PathDotSegment),
        ("/a/.;b", Fault::PathDotSegment),
        ("/a/%2e%2e%3b", Fault::PathDotSegment),
        ("/a//../b", Fault::PathDotSegment),
        ("//../x", Fault::PathDotSegment),
        ("/a//b/../../c", Fault::PathDotSegment),
        ("/a/;/../b", Fault::PathDotSegment),
        ("/a/;x=y/../b", Fault::PathDotSegment),
        ("/a/%3bx/../b", Fault::PathDotSegment),
        ("/a%2fb/../c", Fault::PathDotSegment),
        ("/x/..%2fadmin/x", Fault::PathDotSegment),
        ("/x%2F..%2Fadmin/x", Fault::PathDotSegment),
        ("/x%5c..", Fault::PathDotSegment),
        ("/x;%2f..;%2fadmin", Fault::PathDotSegment),
        ("/..", Fault::PathAboveRoot),
        ("/a/../..", Fault::PathAboveRoot),
        ("/%2e./x", Fault::PathAboveRoot),
    ] {
        assert_eq!(normal(path, MERGE), Err(fault), "{path}");
        assert_eq!(normal(path, SEPARATE), Err(fault), "{path}");
    }
}

#[test]
fn encoded_slashes_are_refused_kept_or_decoded() {
    use EncodedSlashes::{Decode, Keep, Refuse};
    let refused = Err(Fault::PathEncodedSlash);
    for (path, refuse, keep, decode) in [
        ("/a%2fb", refused, Ok("/a%2Fb"), Ok("/a/b")),
        ("/a%5cb", refused, Ok("/a%5Cb"), refused),
        ("/a/b%2F", refused, Ok("/a/b%2F"), Ok("/a/b/")),
        ("/%2F%2fa", refused, Ok("/%2F%2Fa"), Ok("/a")),
        ("/x/%2e%2e%2fadmin", refused, Err(Fault::PathDotSegment), Ok("/admin")),
        ("/x%2f..%2f..", refused, Err(Fault::PathDotSegment), Err(Fault::PathAboveRoot)),
        ("/a%252fb", Ok("/a%252fb"), Ok("/a%252fb"), Ok("/a%252fb")),
        ("/a%25%32%66b", Ok("/a%252fb"), Ok("/a%252fb"), Ok("/a%252fb")),
        ("/a;b%2fc", refused, Ok("/a;b%2Fc"), Ok("/a;b/c")),
        ("/%2", Err(Fault::PathPercent), Err(Fault::PathPercent), Err(Fault::PathPercent)),
    ] {
        for (rules, expected) in [(Refuse, refuse), (Keep, keep), (Decode, decode)] {
            let found = normal(path, with(rules));
            assert_eq!(found.as_deref().map_err(|fault| *fault), expected, "{path} {rules:?}");
        }
    }
    assert_eq!(PathRules::DEFAULT.encoded_slashes, Refuse);
}

#[test]
fn routes_compare_paths_without_parameters() {
    for (path, merged, separate) in [
        ("/admin;a=b/x", "/admin/x", "/admin/x"),
        ("/admin;/x", "/admin/x", "/admin/x"),
        ("/admin;a=b;c,d", "/admin", "/admin"),
        ("/admin/;a", "/admin/", "/admin/"),
        ("/admin%3ba/x", "/admin/x", "/admin/x"),
        ("/%61dmin;x.css", "/admin", "/admin"),
        ("/;x/admin/", "/admin/", "//admin/"),
        ("/;/;/admin", "/admin", "///admin"),
        ("/;", "/", "/"),
        ("/;/", "/", "//"),
        ("/a/b;x/../c", "/a/c", "/a/c"),
        ("/...;x", "/...", "/..."),
        ("/a%253Bb", "/a%253Bb", "/a%253Bb"),
        ("/a/b", "/a/b", "/a/b"),
    ] {
        assert_eq!(compared(path, MERGE).as_deref(), Ok(merged), "{path}");
        assert_eq!(compared(path, SEPARATE).as_deref(), Ok(separate), "{path}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn agrees_with_the_oracle_and_is_idempotent(
        path in prop_oneof![
            "/([./%\\\\;a]|%2[eEfF]|%3[bB]|%5c|%00|%41|%c[0-3]|%a0|/\\.\\./|//){0,8}",
            "/([./a;]|a/|b/|c/|%2[eEfF]|%41|%c3|//){0,16}",
        ],
        merge_slashes: bool,
        encoded_slashes in prop::sample::select(
            &[EncodedSlashes::Refuse, EncodedSlashes::Keep, EncodedSlashes::Decode][..]
        ),
    ) {
        let rules = PathRules { merge_slashes, encoded_slashes };
        let once = normal(&path, rules);
        prop_assert_eq!(&once, &oracle(&path, rules));
        if let Ok(once) = once {
            let bare = compared(&path, rules).unwrap();
            for form in [&once, &bare] {
                prop_assert!(!form.contains("/../") && !form.ends_with("/.."), "{}", form);
                prop_assert!(!form.contains("/./") && !form.ends_with("/."), "{}", form);
                prop_assert!(!merge_slashes || !form.contains("//"), "{}", form);
                let kept = encoded_slashes == EncodedSlashes::Keep;
                prop_assert!(kept || !(form.contains("%2F") || form.contains("%5C")), "{}", form);
                prop_assert_eq!(normal(form, rules), Ok(form.clone()));
            }
            prop_assert!(!bare.contains(';') && !bare.contains("%3B"));
            prop_assert_eq!(compared(&once, rules), Ok(bare));
        }
    }
}

/// All escapes decoded, once.
fn unescaped(path: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = path;
    while let Some((&byte, more)) = rest.split_first() {
        rest = more;
        if byte == b'%' && more.len() >= 2 {
            let digits = std::str::from_utf8(&more[..2]).expect("ascii");
            out.push(u8::from_str_radix(digits, 16).expect("digits"));
            rest = &more[2..];
        } else {
            out.push(byte);
        }
    }
    out
}

/// Every segment up to its first `;`.
fn bare(path: &[u8]) -> Vec<u8> {
    let segments = path.split(|&byte| byte == b'/');
    let names = segments.map(|segment| segment.split(|&byte| byte == b';').next().expect("one"));
    names.collect::<Vec<_>>().join(&b'/')
}

fn merged(path: &[u8]) -> Vec<u8> {
    let mut out = path.to_vec();
    out.dedup_by(|one, before| *one == b'/' && *before == b'/');
    out
}

/// Dot segments resolved; those above the root are ignored.
fn resolved(path: &[u8]) -> Vec<u8> {
    let mut kept: Vec<&[u8]> = Vec::new();
    let segments: Vec<&[u8]> = path.split(|&byte| byte == b'/').skip(1).collect();
    for (at, segment) in segments.iter().enumerate() {
        let is_last = at + 1 == segments.len();
        match *segment {
            b"." | b".." => {
                if *segment == b".." {
                    kept.pop();
                }
                if is_last {
                    kept.push(b"");
                }
            }
            name => kept.push(name),
        }
    }
    [&b"/"[..], &kept.join(&b'/')].concat()
}

/// What programs make of a path before they look for what it names.
type Reading = fn(&[u8]) -> Vec<u8>;

const READINGS: &[(&str, Reading)] = &[
    ("as RFC 3986 says", |path| resolved(&unescaped(path))),
    ("dots first, like a browser", |path| {
        let dots = String::from_utf8_lossy(path).replace("%2e", ".").replace("%2E", ".");
        unescaped(&resolved(dots.as_bytes()))
    }),
    ("like nginx", |path| resolved(&merged(&unescaped(path)))),
    ("dots before slashes", |path| merged(&resolved(&unescaped(path)))),
    ("like Tomcat", |path| resolved(&merged(&unescaped(&bare(path))))),
    ("parameters removed last", |path| merged(&bare(&resolved(&unescaped(path))))),
    ("decoded before parameters", |path| resolved(&merged(&bare(&unescaped(path))))),
    ("parameters removed, slashes kept", |path| resolved(&unescaped(&bare(path)))),
    ("backslashes are slashes", |path| {
        let slashed =
            unescaped(path).iter().map(|&b| if b == b'\\' { b'/' } else { b }).collect::<Vec<_>>();
        resolved(&merged(&slashed))
    }),
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 20_000, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn what_any_endpoint_reads_as_guarded_is_compared_as_guarded(
        path in "/((x|admin|%61dmin|;a|;|%3bb|\\.\\.|\\.|%2e%2E|%2F|%5c|\\.\\.;|%252f|)(/|/|;x/|//)){0,5}(admin/|%61dmin/)?(x|\\.\\.|)",
    ) {
        let Ok(seen) = compared(&path, PathRules::DEFAULT) else { return Ok(()) };
        for (name, reading) in READINGS {
            let read = reading(path.as_bytes());
            if read.starts_with(b"/admin/") {
                prop_assert!(seen.starts_with("/admin/"), "{}: {} is compared as {}", name, path, seen);
            }
        }
    }
}
