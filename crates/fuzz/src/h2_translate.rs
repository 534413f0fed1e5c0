//! Requests of HTTP/2: what is taken is written as one HTTP/1.1 request, which the strict parser and a
//! plain reading of the lines both read as the same request; and frames are found wherever a stream is
//! cut.
//!
//! The input is a list of lines: method, target, authority (`-`: none), then `name: value` each, with
//! LF between them. A field's bytes may be anything else.

use subak_message::h1::{ConnectionOut, Progress, RequestOut, parse_request, write_request_head};
use subak_message::h2::{self, FrameHeads};
use subak_message::{BodyLength, HeadLimits, Known, Method, PathRules, RequestHead, Scheme};

use crate::plain::Plain;

/// Checks one input.
pub fn check(data: &[u8]) {
    frames(data);
    let mut lines = data.split(|&byte| byte == b'\n');
    let (Some(method), Some(target), Some(authority)) = (lines.next(), lines.next(), lines.next())
    else {
        return;
    };
    let authority = Some(authority).filter(|text| *text != b"-");
    let mut head = RequestHead::new(Scheme::Https);
    if h2::begin(&mut head, method, authority, target, PathRules::default()).is_err() {
        return;
    }
    let mut given = Vec::new();
    for line in lines {
        let Some(colon) = line.iter().position(|&byte| byte == b':') else { continue };
        let (name, value) = (&line[..colon], &line[colon + 1..]);
        if head.fields.push_received(name, value).is_err() {
            // The request is refused as a whole.
            assert!(value.iter().any(|byte| *byte < 32 || *byte == 127) || !is_token(name));
            return;
        }
        assert!(is_token(name) && !value.iter().any(|byte| matches!(byte, 0 | b'\r' | b'\n')));
        given.push((name.to_ascii_lowercase(), trim(value).to_vec()));
    }
    // More are refused before they are translated.
    if given.len() > HeadLimits::default().max_fields {
        return;
    }
    let Ok(body) = h2::finish(&mut head) else { return };
    // What only a connection of HTTP/1 has cannot have got this far.
    for name in ["connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade"] {
        assert!(!given.iter().any(|(given, _)| given == name.as_bytes()), "{name}");
    }
    written(&head, body, &given);
}

fn written(head: &RequestHead, body: BodyLength, given: &[(Vec<u8>, Vec<u8>)]) {
    // Neither is forwarded.
    if head.method == Method::Connect {
        return;
    }
    let mut out = Vec::new();
    let to = RequestOut {
        target: head.forward_target(),
        default_host: b"endpoint",
        body,
        connection: ConnectionOut::Implied,
        expect_continue: true,
    };
    write_request_head(&mut out, head, &to);
    let limits = HeadLimits { max_bytes: 64 * 1024, max_fields: 4096, path: PathRules::default() };
    let mut again = RequestHead::default();
    let read = parse_request(&out, &limits, &mut again);
    let Ok(Progress::Complete { consumed, framing }) = read else {
        panic!("what was forwarded is refused, {read:?}: {}", out.escape_ascii());
    };
    assert_eq!(consumed, out.len(), "more than one message: {}", out.escape_ascii());
    assert!(!framing.upgrade);
    assert_eq!(framing.body, body);
    let plain = Plain::read(&out);
    assert_eq!(plain.framing(), body);
    assert_eq!(plain.values("host").len(), 1);
    assert_eq!(again.method_text(), head.method_text());
    assert_eq!((again.normal_path(), again.query()), (head.normal_path(), head.query()));
    assert_eq!(again.authority(), head.authority());
    // Each field once, as it was, in order; cookies have become one.
    let special = ["host", "cookie", "te", "content-length", "transfer-encoding", "connection"];
    let lasting = |name: &[u8]| {
        let known = Known::classify(name);
        !special.iter().any(|special| special.as_bytes() == name)
            && !matches!(known, Known::Http2Settings | Known::Lookalike | Known::Expect)
    };
    let before: Vec<_> = given.iter().filter(|(name, _)| lasting(name)).cloned().collect();
    let after: Vec<_> = again
        .fields
        .iter()
        .map(|field| (field.name.to_ascii_lowercase(), field.value.to_vec()))
        .filter(|(name, _)| lasting(name))
        .collect();
    assert_eq!(after, before);
    let cookies: Vec<_> = given.iter().filter(|(name, _)| name == b"cookie").collect();
    let joined: Vec<_> = cookies.iter().map(|(_, value)| value.as_slice()).collect();
    match again.fields.get(Known::Cookie) {
        Some(cookie) if joined.len() == 1 => assert_eq!(cookie, joined[0]),
        Some(cookie) => {
            let full: Vec<_> = joined.into_iter().filter(|piece| !piece.is_empty()).collect();
            assert_eq!(cookie, full.join(&b"; "[..]));
        }
        None => assert!(cookies.is_empty()),
    }
}

/// Without the blanks around it; no other whitespace may be there.
fn trim(value: &[u8]) -> &[u8] {
    let blank = |byte: &u8| matches!(byte, b' ' | b'\t');
    let Some(start) = value.iter().position(|byte| !blank(byte)) else { return &[] };
    let end = value.iter().rposition(|byte| !blank(byte)).map_or(start, |last| last + 1);
    &value[start..end]
}

fn is_token(name: &[u8]) -> bool {
    let others = b"!#$%&'*+-.^_`|~";
    !name.is_empty() && name.iter().all(|b| b.is_ascii_alphanumeric() || others.contains(b))
}

/// The same frames, wherever the stream is cut, and what a plain walk over it finds.
fn frames(data: &[u8]) {
    let mut plain = Vec::new();
    let mut at = 24;
    while let Some(&[a, b, c, kind, flags, s, t, u, v]) = data.get(at..at + 9) {
        let length = u32::from(a) << 16 | u32::from(b) << 8 | u32::from(c);
        let stream = u32::from_be_bytes([s, t, u, v]) & (u32::MAX >> 1);
        plain.push((length, kind, flags, stream));
        at += 9 + length as usize;
    }
    for cut in crate::cuts(data.len()) {
        let mut heads = FrameHeads::of_client();
        let mut found = Vec::new();
        for mut piece in [&data[..cut], &data[cut..]] {
            while let Some(head) = heads.next(&mut piece) {
                found.push((head.length, head.kind, head.flags, head.stream));
            }
            assert!(piece.is_empty());
        }
        assert_eq!(found, plain, "cut at {cut}");
    }
}
