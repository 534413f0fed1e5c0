//! A refusal says what is wrong, and where.

use subak_message::h1::{Asked, Progress, RequestFraming, parse_request, parse_response};
use subak_message::{BodyLength, Fault, HeadError, HeadLimits, RequestHead, ResponseHead};

fn refused(bytes: &[u8]) -> Option<(Fault, usize)> {
    let error = parse_request(bytes, &HeadLimits::default(), &mut RequestHead::default()).err()?;
    Some((error.fault, error.offset))
}

fn answer_refused(bytes: &[u8]) -> Option<(Fault, usize)> {
    let asked = Asked::default();
    let error = parse_response(bytes, &HeadLimits::default(), &asked, &mut ResponseHead::default())
        .err()?;
    Some((error.fault, error.offset))
}

#[test]
fn requests() {
    let cases: &[(&[u8], Fault, usize)] = &[
        (b"GET  / HTTP/1.1\r\n", Fault::RequestLine, 4),
        (b" GET / HTTP/1.1\r\n", Fault::RequestLine, 0),
        (b"G(T / HTTP/1.1\r\n", Fault::Method, 1),
        (b"get / HTTP/1.1\r\nHost: a\r\n\r\n", Fault::Method, 0),
        (b"\r\nget / HTTP/1.1\r\nHost: a\r\n\r\n", Fault::Method, 2),
        (b"GET /\x7f HTTP/1.1\r\n", Fault::TargetCharacter, 5),
        (b"GET /\tHTTP/1.1\r\n", Fault::TargetCharacter, 5),
        (b"GET /\xff HTTP/1.1\r\n", Fault::TargetCharacter, 4),
        (b"GET /#a HTTP/1.1\r\nHost: a\r\n\r\n", Fault::TargetCharacter, 4),
        (b"GET a HTTP/1.1\r\nHost: a\r\n\r\n", Fault::TargetForm, 4),
        (b"GET /\r\n", Fault::NotHttp, 5),
        (b"GET /\n", Fault::NotHttp, 5),
        (b"GET / http/1.1\r\n", Fault::NotHttp, 6),
        (b"GET / HTTP/1.2\r\n", Fault::Version, 6),
        (b"GET / HTTP/3\r\n", Fault::Version, 6),
        (b"GET / HTTP/1.10\r\n", Fault::RequestLine, 14),
        (b"GET / HTTP/1.1\nHost: a\r\n\r\n", Fault::BareLf, 14),
        (b"GET / HTTP/1.1\rHost: a\r\n\r\n", Fault::BareCr, 14),
        (b"\r\n\r\nGET", Fault::LeadingEmptyLines, 2),
        (b"\r\n\nGET", Fault::BareLf, 2),
        (b"\rG", Fault::BareCr, 0),
        (b"\nG", Fault::BareLf, 0),
        (b"GET / HTTP/1.1\r\nHost: a\nX: y\r\n\r\n", Fault::BareLf, 23),
        (b"GET / HTTP/1.1\r\nHost: a\r\n\n", Fault::BareLf, 25),
        (b"GET / HTTP/1.1\r\nHost: a\r\nX: y\rz\r\n\r\n", Fault::BareCr, 29),
        (b"GET / HTTP/1.1\r\nHost: a\r\n\rX", Fault::BareCr, 25),
        (b"GET / HTTP/1.1\r\nHost: a\r\nX: \x01\r\n\r\n", Fault::ValueControl, 28),
        (b"GET / HTTP/1.1\r\nHost: a\r\nX: a\tb\x7f\r\n\r\n", Fault::ValueControl, 31),
        (b"GET / HTTP/1.1\r\nHost: a\r\nX: y\r\n z\r\n\r\n", Fault::Folded, 31),
        (b"GET / HTTP/1.1\r\n\tHost: a\r\n\r\n", Fault::Folded, 16),
        (b"GET / HTTP/1.1\r\nHost : a\r\n\r\n", Fault::SpaceBeforeColon, 20),
        (b"GET / HTTP/1.1\r\nHost: a\r\nX\r\n\r\n", Fault::FieldName, 26),
        (b"GET / HTTP/1.1\r\n: a\r\n\r\n", Fault::FieldName, 16),
        (b"GET / HTTP/1.1\r\nHo(st: a\r\n\r\n", Fault::FieldName, 18),
        (b"GET / HTTP/1.1\r\nX: y\r\nHost: a b\r\n\r\n", Fault::HostInvalid, 22),
        (b"GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", Fault::HostTwice, 16),
        (b"GET / HTTP/1.1\r\nX: y\r\n\r\n", Fault::HostMissing, 16),
        (b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n", Fault::ContentLength, 25),
        (b"GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: x\r\n\r\n", Fault::CodingUnknown, 25),
        (
            b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
            Fault::LengthAndCoding,
            44,
        ),
        (
            b"CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\nTransfer-Encoding: chunked\r\n\r\n",
            Fault::BodyForbidden,
            33,
        ),
        (b"GET / HTTP/1.1\r\nHost: a\r\nExpect: x\r\n\r\n", Fault::Expectation, 25),
        (b"GET /%0 HTTP/1.1\r\nHost: a\r\n\r\n", Fault::PathPercent, 4),
        (b"GET /.. HTTP/1.1\r\nHost: a\r\n\r\n", Fault::PathAboveRoot, 4),
        (b"GET https://a/ HTTP/1.1\r\nHost: a\r\n\r\n", Fault::Misdirected, 4),
    ];
    for (bytes, fault, offset) in cases {
        assert_eq!(refused(bytes), Some((*fault, *offset)), "{}", bytes.escape_ascii());
    }
}

#[test]
fn answers() {
    let cases: &[(&[u8], Fault, usize)] = &[
        (b"\r\nHTTP/1.1 200 OK\r\n", Fault::StatusLine, 0),
        (b"HTTP/1.1  200 OK\r\n", Fault::StatusLine, 0),
        (b"HTTP/1.1 20 OK\r\n", Fault::StatusLine, 0),
        (b"HTTP/1.1 2000\r\n", Fault::StatusLine, 0),
        (b"HTTP/1.1 099 Low\r\n\r\n", Fault::StatusCode, 9),
        (b"HTTP/2 200\r\n", Fault::Version, 0),
        (b"SSH-2.0", Fault::NotHttp, 0),
        (b"HTTP/1.1 200 O\rK\r\n", Fault::BareCr, 14),
        (b"HTTP/1.1 200 OK\nX: y\r\n\r\n", Fault::BareLf, 15),
        (b"HTTP/1.1 200\n\n", Fault::BareLf, 12),
        (b"HTTP/1.1 200 OK\r\nX: y\n\r\n", Fault::BareLf, 21),
        (b"HTTP/1.1 200 OK\r\nX : y\r\n\r\n", Fault::SpaceBeforeColon, 18),
        (b"HTTP/1.1 200 OK\r\nX: y\r\n z\r\n\r\n", Fault::Folded, 23),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 1,1\r\n\r\n", Fault::ContentLength, 17),
        (b"HTTP/1.1 204 No\r\nX: y\r\nContent-Length: 1\r\n\r\n", Fault::BodyForbidden, 23),
        (b"HTTP/1.1 101 X\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n", Fault::UnaskedUpgrade, 37),
    ];
    for (bytes, fault, offset) in cases {
        assert_eq!(answer_refused(bytes), Some((*fault, *offset)), "{}", bytes.escape_ascii());
    }
}

#[test]
fn too_much_is_told_from_wrong() {
    let many =
        [b"GET / HTTP/1.1\r\nHost: a\r\n".as_slice(), &b"X: y\r\n".repeat(200), b"\r\n"].concat();
    assert_eq!(refused(&many).map(|(fault, _)| fault), Some(Fault::TooManyFields));
    let many = [b"HTTP/1.1 200 OK\r\n".as_slice(), &b"X: y\r\n".repeat(200), b"\r\n"].concat();
    assert_eq!(answer_refused(&many).map(|(fault, _)| fault), Some(Fault::TooManyFields));
    let list = vec!["x"; 65].join(",");
    let named = format!("GET / HTTP/1.1\r\nHost: a\r\nConnection: {list}\r\n\r\n");
    assert_eq!(refused(named.as_bytes()), Some((Fault::ConnectionTooLong, 25)));
    let named = named.replacen("x,", "", 1);
    assert_eq!(refused(named.as_bytes()), None);
}

#[test]
fn every_fault_has_a_status_and_a_message() {
    for &fault in Fault::ALL {
        assert!((400..600).contains(&fault.status()), "{fault:?}");
        let text = HeadError { fault, offset: 7 }.to_string();
        assert!(text.starts_with(fault.message()) && text.ends_with("(at byte 7)"), "{text}");
    }
}

#[test]
fn a_plain_request_asks_for_nothing_special() {
    let mut head = RequestHead::default();
    let plain = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    let framing = RequestFraming {
        body: BodyLength::None,
        keep_alive: true,
        expect_continue: false,
        upgrade: false,
        nominates: false,
    };
    assert_eq!(
        parse_request(plain, &HeadLimits::default(), &mut head),
        Ok(Progress::Complete { consumed: plain.len(), framing })
    );
}

#[test]
fn a_method_has_at_most_32_bytes() {
    let request = |len| [&vec![b'A'; len][..], b" / HTTP/1.1\r\nHost: a\r\n\r\n"].concat();
    assert_eq!(refused(&request(32)), None);
    assert_eq!(refused(&request(33)), Some((Fault::Method, 0)));
}
