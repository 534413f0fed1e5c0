//! Cookies: what a plain reading of the pieces says a name has, and what is left without it.
//!
//! Input: the name, then the values of the `Cookie` fields, a line each.

use subak_message::h1::{ConnectionOut, Progress, RequestOut, parse_request, write_request_head};
use subak_message::{BodyLength, Fields, HeadLimits, Known, RequestHead};

/// Checks one input.
pub fn check(data: &[u8]) {
    let mut lines = data.split(|byte| *byte == b'\n');
    let name = lines.next().unwrap_or_default().trim_ascii();
    let mut head = RequestHead::default();
    let limits = HeadLimits::default();
    let start = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    assert!(matches!(parse_request(start, &limits, &mut head), Ok(Progress::Complete { .. })));
    for line in lines.take(90) {
        // What is no value is no cookie.
        let _ = head.fields.push_received(b"cookie", line);
    }
    if name.is_empty() || name.contains(&b'=') || name.contains(&b';') {
        return;
    }
    let before = values(&head.fields);
    let (ours, others) = read(&before, name);
    let found: Vec<_> = head.fields.cookies(name).map(<[u8]>::to_vec).collect();
    assert_eq!(found, ours);
    assert_eq!(head.fields.remove_cookie(name), !ours.is_empty());
    assert!(!head.fields.remove_cookie(name), "nothing is left to be taken out");
    let after = values(&head.fields);
    assert_eq!(read(&after, name), (Vec::new(), others));
    assert!(ours.is_empty() || after.iter().all(|value| value.trim_ascii() == value));
    if ours.is_empty() {
        assert_eq!(after, before);
    }
    // What goes on says the same.
    let mut written = Vec::new();
    let out = RequestOut {
        target: b"/",
        default_host: b"",
        body: BodyLength::None,
        connection: ConnectionOut::Implied,
        expect_continue: false,
    };
    write_request_head(&mut written, &head, &out);
    let text = written.strip_prefix(b"GET / HTTP/1.1\r\nHost: a\r\n").expect("the head as it was");
    let lines: Vec<_> =
        after.iter().map(|value| [b"cookie: ", &value[..], b"\r\n"].concat()).collect();
    assert_eq!(text, [lines.concat(), b"\r\n".to_vec()].concat());
}

fn values(fields: &Fields) -> Vec<Vec<u8>> {
    fields.get_all(Known::Cookie).map(<[u8]>::to_vec).collect()
}

/// The values of the cookies of this name, and all other pieces that say something, from back to front
/// and turned round.
fn read(fields: &[Vec<u8>], name: &[u8]) -> (Vec<Vec<u8>>, Vec<Vec<u8>>) {
    let (mut ours, mut others) = (Vec::new(), Vec::new());
    let pieces = fields.iter().rev().flat_map(|value| value.rsplit(|byte| *byte == b';'));
    for piece in pieces.map(<[u8]>::trim_ascii).filter(|piece| !piece.is_empty()) {
        let mut parts = piece.splitn(2, |byte| *byte == b'=');
        let first = parts.next().unwrap_or_default().trim_ascii();
        match parts.next() {
            Some(value) if first == name => ours.push(value.trim_ascii().to_vec()),
            _ => others.push(piece.to_vec()),
        }
    }
    ours.reverse();
    others.reverse();
    (ours, others)
}
