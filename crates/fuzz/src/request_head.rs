//! Request heads: where they are cut changes nothing, the framing is the plain reading's, and what
//! is forwarded is read as the same message by the same parser.

use subak_message::h1::{ConnectionOut, Progress, RequestOut, parse_request, write_request_head};
use subak_message::{BodyLength, HeadLimits, Known, Method, RequestHead};

use crate::plain::{Plain, lasting};

/// Checks one input.
pub fn check(data: &[u8]) {
    let limits = HeadLimits { max_bytes: 2048, max_fields: 24, ..HeadLimits::default() };
    let mut whole = RequestHead::default();
    let result = parse_request(data, &limits, &mut whole);
    let mut head = RequestHead::default();
    for cut in crate::cuts(data.len()) {
        match (parse_request(&data[..cut], &limits, &mut head), result) {
            (Ok(Progress::Partial), Ok(Progress::Complete { consumed, .. })) => {
                assert!(cut < consumed, "complete, but partial with all of it");
            }
            (Ok(Progress::Partial), _) => {}
            (Ok(complete), result) => {
                assert_eq!(Ok(complete), result, "cut at {cut}");
                assert_eq!(head, whole, "cut at {cut}");
            }
            (Err(early), Err(late)) => {
                // A head cut at its limit is too large, whatever would have been wrong behind it.
                assert!(
                    early.status() == late.status() || late.status() == 431 || late.status() == 414
                );
                assert!(early.offset <= cut && !early.to_string().is_empty());
            }
            (Err(early), _) => panic!("{early} only when cut at {cut}"),
        }
    }
    if let Ok(Progress::Complete { consumed, framing }) = result {
        assert!(consumed <= data.len() && consumed <= limits.max_bytes);
        let text = &data[..consumed];
        let plain = Plain::read(text.strip_prefix(b"\r\n").unwrap_or(text));
        assert_eq!(framing.body, plain.framing());
        assert!(plain.values("host").len() <= 1, "two hosts");
        // HTTP/1.0 may leave Host out; an absolute target then gives one.
        let added = usize::from(plain.values("host").is_empty() && whole.authority().is_some());
        assert_eq!(whole.fields.len(), plain.fields.len() + added);
        assert!(!contains_dot_segment(whole.normal_path()));
        forward(&whole, framing.body, framing.upgrade, &limits);
    }
}

fn forward(head: &RequestHead, body: BodyLength, upgrade: bool, limits: &HeadLimits) {
    let connection = if upgrade { ConnectionOut::Upgrade } else { ConnectionOut::Implied };
    let write = |head: &RequestHead| {
        let mut out = Vec::new();
        let target = head.forward_target();
        let to = RequestOut {
            target,
            default_host: b"endpoint",
            body,
            connection,
            expect_continue: true,
        };
        write_request_head(&mut out, head, &to);
        out
    };
    let written = write(head);
    let limits = HeadLimits { max_bytes: 4096, max_fields: 32, ..*limits };
    let mut again = RequestHead::default();
    let Ok(Progress::Complete { consumed, framing }) = parse_request(&written, &limits, &mut again)
    else {
        panic!("what was forwarded is refused: {}", written.escape_ascii())
    };
    assert_eq!(consumed, written.len(), "more than one message was forwarded");
    assert_eq!(Plain::read(&written).framing(), body);
    assert_eq!((framing.body, framing.upgrade), (body, upgrade));
    assert_eq!(again.method_text(), head.method_text());
    assert_eq!(again.normal_path(), head.normal_path());
    assert_eq!(again.query(), head.query());
    if head.method != Method::Connect && head.authority().is_some() {
        assert_eq!(again.authority(), head.authority());
    }
    for known in [Known::Lookalike, Known::KeepAlive, Known::ProxyConnection, Known::Http2Settings]
    {
        assert!(!again.fields.has(known), "{known:?} was forwarded");
    }
    if !head.fields.has(Known::Connection) {
        assert_eq!(lasting(&again.fields), lasting(&head.fields), "fields or their order");
    }
    assert_eq!(write(&again), written, "written once and twice differ");
}

fn contains_dot_segment(path: &[u8]) -> bool {
    path.split(|&byte| byte == b'/').any(|segment| segment == b"." || segment == b"..")
}
