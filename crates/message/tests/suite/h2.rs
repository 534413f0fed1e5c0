//! HTTP/2 heads become the same value, or are refused.

use subak_message::h1::{ConnectionOut, RequestOut, write_request_head};
use subak_message::{
    BodyLength, Fault, Fields, Form, Known, Method, PathRules, RequestHead, ResponseHead, Scheme,
    Version, h2,
};

type Given<'a> = (&'a str, Option<&'a str>, &'a str, &'a [(&'a str, &'a str)]);

fn read((method, authority, path, fields): Given<'_>) -> Result<(RequestHead, BodyLength), Fault> {
    let mut head = RequestHead::new(Scheme::Https);
    let rules = PathRules::default();
    let authority = authority.map(str::as_bytes);
    h2::begin(&mut head, method.as_bytes(), authority, path.as_bytes(), rules)
        .map_err(|error| error.fault)?;
    for (name, value) in fields {
        head.fields.push_received(name.as_bytes(), value.as_bytes()).expect("field");
    }
    let body = h2::finish(&mut head).map_err(|error| error.fault)?;
    Ok((head, body))
}

#[test]
fn a_head_becomes_http1() {
    let (head, body) = read((
        "POST",
        Some("Example.com:8443"),
        "/a/%2e/b?c",
        &[("cookie", "a=1"), ("te", "trailers"), ("cookie", "b=2"), ("content-length", "3")],
    ))
    .expect("good");
    assert_eq!(
        (head.method, head.version, head.form()),
        (Method::Post, Version::Http2, Form::Origin)
    );
    assert_eq!((head.host(), head.normal_path()), (&b"example.com"[..], &b"/a/b"[..]));
    assert_eq!(body, BodyLength::Known(3));
    let mut out = Vec::new();
    let to = RequestOut {
        target: head.forward_target(),
        default_host: b"",
        body,
        connection: ConnectionOut::Implied,
        expect_continue: false,
    };
    write_request_head(&mut out, &head, &to);
    assert_eq!(
        String::from_utf8_lossy(&out),
        "POST /a/%2e/b?c HTTP/1.1\r\nHost: Example.com:8443\r\nCookie: a=1; b=2\r\nTE: trailers\r\n\
         Connection: TE\r\nContent-Length: 3\r\n\r\n"
    );
}

#[test]
fn cookies_in_pieces_are_joined_without_the_empty_ones() {
    for (pieces, joined) in [
        (&["a=1", "b=2"][..], &b"a=1; b=2"[..]),
        (&["", "a=1", "", "b=2", ""], b"a=1; b=2"),
        (&["", "a=1"], b"a=1"),
        (&["a=1", ""], b"a=1"),
        (&["", ""], b""),
    ] {
        let fields: Vec<_> = pieces.iter().map(|piece| ("cookie", *piece)).collect();
        let (head, _) = read(("GET", Some("a"), "/", &fields)).expect("good");
        assert_eq!(head.fields.count(Known::Cookie), 1, "{pieces:?}");
        assert_eq!(head.fields.get(Known::Cookie), Some(joined), "{pieces:?}");
    }
}

#[test]
fn host_and_authority_are_one() {
    let (head, body) = read(("GET", None, "/", &[("host", "a")])).expect("Host alone");
    assert_eq!((head.host(), body), (&b"a"[..], BodyLength::Chunked));
    let (head, _) = read(("GET", Some("A"), "/", &[("host", "a")])).expect("equal");
    assert_eq!(head.fields.count(Known::Host), 1);
    assert_eq!(head.fields.get(Known::Host), Some(&b"A"[..]));
    let (head, _) = read(("OPTIONS", Some("a"), "*", &[])).expect("asterisk");
    assert_eq!(head.form(), Form::Asterisk);
    let (head, _) = read(("CONNECT", Some("a:1"), "a:1", &[])).expect("connect");
    assert_eq!(head.form(), Form::Authority);
}

#[test]
fn what_http1_would_read_differently_is_refused() {
    let cases: &[(Given<'_>, Fault)] = &[
        (("GET", None, "/", &[]), Fault::HostMissing),
        (("GET", Some("a"), "/", &[("host", "b")]), Fault::HostDiffers),
        (("GET", Some("a"), "/", &[("host", "b c")]), Fault::HostDiffers),
        (("GET", Some("a b"), "/", &[]), Fault::HostInvalid),
        (("GET", None, "/", &[("host", "a@b")]), Fault::HostInvalid),
        (("GET", Some("a"), "", &[]), Fault::TargetForm),
        (("GET", Some("a"), "x", &[]), Fault::TargetForm),
        (("GET", Some("a"), "*", &[]), Fault::TargetForm),
        (("GET", Some("a"), "/ HTTP/1.1\r\nX: y", &[]), Fault::TargetCharacter),
        (("GET", Some("a"), "https://b/", &[]), Fault::TargetForm),
        (("GET", Some("a"), "/#x", &[]), Fault::TargetCharacter),
        (("GET /", Some("a"), "/", &[]), Fault::Method),
        (("get", Some("a"), "/", &[]), Fault::Method),
        (("GET", Some("a"), "/", &[("connection", "close")]), Fault::ConnectionField),
        (("GET", Some("a"), "/", &[("transfer-encoding", "chunked")]), Fault::ConnectionField),
        (("GET", Some("a"), "/", &[("upgrade", "h2c")]), Fault::ConnectionField),
        (("GET", Some("a"), "/", &[("keep-alive", "5")]), Fault::ConnectionField),
        (("GET", Some("a"), "/", &[("proxy-connection", "x")]), Fault::ConnectionField),
        (("GET", Some("a"), "/", &[("te", "gzip")]), Fault::ConnectionField),
        (("GET", Some("a"), "/", &[("content-length", "+1")]), Fault::ContentLength),
        (
            ("GET", Some("a"), "/", &[("content-length", "1"), ("content-length", "1")]),
            Fault::ContentLengthTwice,
        ),
        (("GET", Some("a"), "/", &[("expect", "x")]), Fault::Expectation),
    ];
    for (given, fault) in cases {
        assert_eq!(read(*given).map(|_| ()), Err(*fault), "{given:?}");
    }
}

#[test]
fn line_ends_around_a_value_are_refused_and_not_trimmed() {
    for value in ["a\r", "a\n", "\ra", "\r\na", "a\r\n", "\n", "a\u{b}", "a\u{c}", " a \r "] {
        let mut head = RequestHead::new(Scheme::Https);
        let pushed = head.fields.push_received(b"x", value.as_bytes());
        assert!(pushed.is_err(), "{value:?}");
    }
    let mut head = RequestHead::new(Scheme::Https);
    head.fields.push_received(b"x", b" \ta b\t ").expect("blanks are no part of a value");
    assert_eq!(head.fields.iter().next().expect("one").value, b"a b");
}

#[test]
fn fields_of_an_http1_connection_are_stripped() {
    let text = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: TE, X\r\nX: 1\r\nTE: gzip, trailers\r\n\
        Keep-Alive: 5\r\nUpgrade: h2c\r\nHTTP2-Settings: AA\r\nTransfer-Encoding: chunked\r\nY: 2\r\n\r\n";
    let mut head = RequestHead::default();
    subak_message::h1::parse_request(text, &Default::default(), &mut head).expect("good");
    head.fields.push(b"X", b"ours").expect("value");
    head.fields.strip_hop_by_hop();
    let fields: Vec<_> = head.fields.iter().map(|field| (field.name, field.value)).collect();
    let expected: [(&[u8], &[u8]); 4] =
        [(b"Host", b"a"), (b"Y", b"2"), (b"X", b"ours"), (b"TE", b"trailers")];
    assert_eq!(fields, expected);
    assert!(!head.fields.has(Known::Connection) && !head.fields.has(Known::Upgrade));
}

/// An answer of HTTP/2 with these fields, checked.
fn answered(
    status: u16,
    fields: &[(&str, &str)],
    method: Method,
    ended: bool,
) -> Result<BodyLength, Fault> {
    let mut head = ResponseHead::new();
    head.begin(status);
    for (name, value) in fields {
        head.fields.push_received(name.as_bytes(), value.as_bytes()).expect("a field");
    }
    h2::finish_answer(&mut head, method, ended).map_err(|error| error.fault)
}

#[test]
fn the_body_of_an_answer_is_as_long_as_announced_or_as_its_stream() {
    let five = &[("content-length", "5")][..];
    assert_eq!(answered(200, five, Method::Get, false), Ok(BodyLength::Known(5)));
    assert_eq!(answered(200, &[], Method::Get, false), Ok(BodyLength::Chunked));
    assert_eq!(answered(200, &[], Method::Get, true), Ok(BodyLength::Known(0)));
    assert_eq!(answered(200, five, Method::Head, true), Ok(BodyLength::None));
    assert_eq!(answered(304, five, Method::Get, true), Ok(BodyLength::None));
    assert_eq!(answered(103, &[], Method::Get, false), Ok(BodyLength::None));
    assert_eq!(answered(204, five, Method::Get, true), Err(Fault::BodyForbidden));
    assert_eq!(answered(101, &[], Method::Get, false), Err(Fault::StatusCode));
    assert_eq!(
        answered(200, &[("content-length", "5"), ("content-length", "5")], Method::Get, false),
        Err(Fault::ContentLengthTwice)
    );
    assert_eq!(
        answered(200, &[("content-length", "+5")], Method::Get, false),
        Err(Fault::ContentLength)
    );
    for name in ["connection", "transfer-encoding", "keep-alive", "upgrade", "proxy-connection"] {
        let refused = answered(200, &[(name, "x")], Method::Get, false);
        assert_eq!(refused, Err(Fault::ConnectionField), "{name}");
    }
}

#[test]
fn what_concerns_one_connection_does_not_go_on() {
    let mut fields = Fields::new();
    for (name, value) in [
        ("Connection", "X-Gone, Content-Length, X-Forwarded-For"),
        ("X-Gone", "1"),
        ("Keep-Alive", "5"),
        ("Proxy-Connection", "close"),
        ("Transfer-Encoding", "chunked"),
        ("TE", "gzip, trailers"),
        ("Upgrade", "h2c"),
        ("HTTP2-Settings", "AA"),
        ("Content-Length", "3"),
        ("Content_Length", "4"),
        ("X-Forwarded-For", "192.0.2.1"),
        ("X-Kept", "yes"),
    ] {
        fields.push_received(name.as_bytes(), value.as_bytes()).expect("a field");
    }
    // What Subak adds stays, whatever a client's Connection says.
    fields.push(b"X-Gone", b"ours").expect("a field");
    let kept: Vec<_> =
        h2::onward(&fields).map(|field| String::from_utf8_lossy(field.name).into_owned()).collect();
    assert_eq!(kept, ["X-Forwarded-For", "X-Kept", "X-Gone"]);
    assert!(h2::takes_trailers(&fields));
}
