//! What goes on to the other side: hop-by-hop removal, framing, and that nothing added is lost.

use subak_message::h1::{
    Asked, ConnectionOut, Progress, RequestFraming, RequestOut, ResponseFraming, ResponseOut,
    parse_request, parse_response, write_chunk_end, write_chunk_prefix, write_last_chunk,
    write_request_head, write_response_head,
};
use subak_message::{BodyLength, Fields, HeadLimits, Known, Method, RequestHead, ResponseHead};

fn read(text: &str) -> (RequestHead, RequestFraming) {
    let mut head = RequestHead::default();
    match parse_request(text.as_bytes(), &HeadLimits::default(), &mut head) {
        Ok(Progress::Complete { framing, .. }) => (head, framing),
        other => panic!("{text:?}: {other:?}"),
    }
}

fn read_answer(text: &str, method: Method) -> (ResponseHead, ResponseFraming) {
    let mut head = ResponseHead::default();
    let asked = Asked { method, upgrade: true };
    match parse_response(text.as_bytes(), &HeadLimits::default(), &asked, &mut head) {
        Ok(Progress::Complete { framing, .. }) => (head, framing),
        other => panic!("{text:?}: {other:?}"),
    }
}

fn written(head: &RequestHead, body: BodyLength, connection: ConnectionOut) -> String {
    let mut out = Vec::new();
    let target = head.forward_target();
    let to =
        RequestOut { target, default_host: b"endpoint", body, connection, expect_continue: false };
    write_request_head(&mut out, head, &to);
    String::from_utf8(out).expect("ascii")
}

fn forwarded(text: &str) -> String {
    let (head, framing) = read(text);
    let connection = if framing.upgrade { ConnectionOut::Upgrade } else { ConnectionOut::Implied };
    written(&head, framing.body, connection)
}

fn answered(text: &str, method: Method, connection: ConnectionOut) -> String {
    let (head, framing) = read_answer(text, method);
    let mut out = Vec::new();
    write_response_head(&mut out, &head, &ResponseOut { body: framing.body, connection });
    String::from_utf8(out).expect("ascii")
}

#[test]
fn a_plain_request_goes_on_as_it_came() {
    let text = "GET /a?b HTTP/1.1\r\nHost: a\r\nUser-Agent: x\r\nAccept: */*\r\n\r\n";
    assert_eq!(forwarded(text), text);
}

#[test]
fn odd_spacing_becomes_canonical() {
    assert_eq!(
        forwarded(
            "GET / HTTP/1.1\r\nHost:a\r\nX:  y \t\r\nY:\r\nZ:\tq\r\nAfter: c  \r\nAccept: b\r\n\r\n"
        ),
        "GET / HTTP/1.1\r\nHost: a\r\nX: y\r\nY: \r\nZ: q\r\nAfter: c\r\nAccept: b\r\n\r\n"
    );
}

/// Found by the fuzz target `chunked_body`: a field with odd spacing overtook those before it.
#[test]
fn order_is_kept_around_odd_spacing() {
    assert_eq!(
        forwarded(
            "GET / HTTP/1.1\r\nHost: a\r\nX: 1\r\nX:2\r\nX: 3\r\nX:  4\r\nX: 5\r\nX: 6\r\n\r\n"
        ),
        "GET / HTTP/1.1\r\nHost: a\r\nX: 1\r\nX: 2\r\nX: 3\r\nX: 4\r\nX: 5\r\nX: 6\r\n\r\n"
    );
}

#[test]
fn fields_of_the_connection_stay_behind() {
    assert_eq!(
        forwarded(
            "GET / HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, X-Hop , x-other,TE\r\nKeep-Alive: timeout=5\r\n\
             Proxy-Connection: keep-alive\r\nX-Hop: 1\r\nx-hop: 2\r\nX-Stays: 3\r\nX-OTHER: 4\r\nTE: gzip\r\n\
             Trailer: X\r\nUpgrade: websocket\r\nHTTP2-Settings: AA\r\nContent_Length: 5\r\n\
             X_Forwarded_For: 1.2.3.4\r\nUser_Agent: u\r\n\r\n"
        ),
        "GET / HTTP/1.1\r\nHost: a\r\nX-Stays: 3\r\nUser_Agent: u\r\n\r\n"
    );
}

#[test]
fn connection_can_not_strip_what_was_added() {
    let (mut head, framing) = read(
        "POST / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 9.9.9.9\r\nX-Env: theirs\r\nContent-Length: 5\r\n\
         Connection: X-Env, X-Added\r\n\r\n",
    );
    assert!(framing.nominates);
    head.fields.push_known(Known::XForwardedProto, b"http").expect("value");
    head.fields.push(b"X-Added", b"ours").expect("value");
    head.fields.set(b"X-Env", b"ours").expect("value");
    assert_eq!(
        written(&head, framing.body, ConnectionOut::Implied),
        "POST / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 9.9.9.9\r\nX-Forwarded-Proto: http\r\n\
         X-Added: ours\r\nX-Env: ours\r\nContent-Length: 5\r\n\r\n"
    );
}

#[test]
fn te_trailers_goes_on_and_is_named() {
    assert_eq!(
        forwarded(
            "GET / HTTP/1.1\r\nHost: a\r\nTE: gzip, Trailers\r\nConnection: TE, close\r\n\r\n"
        ),
        "GET / HTTP/1.1\r\nHost: a\r\nTE: trailers\r\nConnection: TE\r\n\r\n"
    );
    let (head, _) = read("GET / HTTP/1.1\r\nHost: a\r\nTE: trailers\r\nConnection: TE\r\n\r\n");
    assert!(
        written(&head, BodyLength::None, ConnectionOut::Close)
            .ends_with("TE: trailers\r\nConnection: close, TE\r\n\r\n")
    );
}

#[test]
fn a_websocket_upgrade_goes_on_and_h2c_does_not() {
    assert_eq!(
        forwarded(
            "GET /ws HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Key: k\r\n\r\n"
        ),
        "GET /ws HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nSec-WebSocket-Key: k\r\nConnection: upgrade\r\n\r\n"
    );
    for upgrade in [
        "h2c",
        "websocket, H2C",
        "h2c/1",
        "H2c /2",
        "h2c-14",
        "x/h2c",
        "\"h2c\"",
        "websocket\r\nUpgrade: ,, h2C/1.0;q",
        "h2",
        "HTTP/2.0, websocket",
    ] {
        assert_eq!(
            forwarded(&format!(
                "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: {upgrade}\r\n\
                 HTTP2-Settings: AA\r\n\r\n"
            )),
            "GET / HTTP/1.1\r\nHost: a\r\n\r\n"
        );
    }
}

/// Found by the round-trip property: the list that asks for the upgrade also named the field.
#[test]
fn an_upgrade_survives_a_connection_that_names_other_fields_too() {
    assert_eq!(
        forwarded(
            "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, X\r\nUpgrade: websocket\r\nX: y\r\n\r\n"
        ),
        "GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n"
    );
}

#[test]
fn an_upgrade_needs_all_its_parts() {
    for text in [
        "GET / HTTP/1.0\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\nContent-Length: 1\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\nTransfer-Encoding: chunked\r\n\r\n",
    ] {
        assert!(!read(text).1.upgrade, "{text}");
    }
    assert!(
        read("GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\nContent-Length: 0\r\n\r\n")
            .1
            .upgrade
    );
}

#[test]
fn framing_is_written_anew() {
    assert_eq!(
        forwarded("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 007\r\nX: y\r\n\r\n"),
        "POST / HTTP/1.1\r\nHost: a\r\nX: y\r\nContent-Length: 7\r\n\r\n"
    );
    assert_eq!(
        forwarded("POST / HTTP/1.1\r\nHost: a\r\ntransfer-encoding: CHUNKED\r\nTrailer: X\r\n\r\n"),
        "POST / HTTP/1.1\r\nHost: a\r\nTrailer: X\r\nTransfer-Encoding: chunked\r\n\r\n"
    );
    let (head, _) = read("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 7\r\n\r\n");
    for (body, end) in [
        (BodyLength::None, "Host: a\r\n\r\n"),
        (BodyLength::Known(0), "Host: a\r\nContent-Length: 0\r\n\r\n"),
        (BodyLength::Known(u64::MAX), "Host: a\r\nContent-Length: 18446744073709551615\r\n\r\n"),
        (BodyLength::Chunked, "Host: a\r\nTransfer-Encoding: chunked\r\n\r\n"),
    ] {
        let text = written(&head, body, ConnectionOut::Implied);
        assert!(text.ends_with(end), "{text}");
    }
}

#[test]
fn expectation_is_forwarded_only_when_told() {
    let (head, framing) =
        read("POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\n");
    assert!(framing.expect_continue);
    let mut out = Vec::new();
    let to = RequestOut {
        target: b"/",
        default_host: b"",
        body: framing.body,
        connection: ConnectionOut::Implied,
        expect_continue: true,
    };
    write_request_head(&mut out, &head, &to);
    assert!(String::from_utf8_lossy(&out).contains("\r\nExpect: 100-continue\r\n"));
    assert!(!written(&head, framing.body, ConnectionOut::Implied).contains("Expect"));
    let ignored = [
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\n",
        "POST / HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n\r\n",
    ];
    for text in ignored {
        assert!(!read(text).1.expect_continue, "{text}");
    }
}

#[test]
fn the_target_decides_the_host() {
    let (head, _) = read("GET http://B.example:81/x?y HTTP/1.1\r\nX: 1\r\nHost: a\r\n\r\n");
    assert!(head.host_was_rewritten());
    assert_eq!(head.host(), b"b.example");
    assert_eq!(head.authority().and_then(|a| a.port()), Some(81));
    assert_eq!(head.path(), b"/x");
    assert_eq!(head.query(), Some(&b"y"[..]));
    assert_eq!(
        written(&head, BodyLength::None, ConnectionOut::Implied),
        "GET /x?y HTTP/1.1\r\nX: 1\r\nHost: B.example:81\r\n\r\n"
    );
    let (head, _) = read("GET http://a HTTP/1.1\r\nHost: A\r\n\r\n");
    assert!(!head.host_was_rewritten());
    assert_eq!(head.forward_target(), b"/");
    let (head, _) = read("GET http://a?q HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(head.forward_target(), b"/?q");
    assert_eq!((head.path(), head.query()), (&b"/"[..], Some(&b"q"[..])));
    let (head, _) = read("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!((head.forward_target(), head.normal_path()), (&b"*"[..], &b"*"[..]));
    let (head, _) = read("OPTIONS http://a HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(head.forward_target(), b"*");
}

#[test]
fn http10_gets_a_host_and_keeps_alive_by_field() {
    let (head, framing) = read("GET / HTTP/1.0\r\n\r\n");
    assert!(!framing.keep_alive && head.authority().is_none());
    assert_eq!(
        written(&head, BodyLength::None, ConnectionOut::Implied),
        "GET / HTTP/1.1\r\nHost: endpoint\r\n\r\n"
    );
    for (connection, keeps) in [
        ("keep-alive", true),
        ("Keep-Alive", true),
        ("x, keep-alive", true),
        ("keep-alive, close", false),
        ("x", false),
    ] {
        let text = format!("GET / HTTP/1.0\r\nConnection: {connection}\r\n\r\n");
        assert_eq!(read(&text).1.keep_alive, keeps, "{connection}");
    }
    for (connection, keeps) in
        [("close", false), ("CLOSE", false), ("x, close", false), ("\"close\"", false), ("x", true)]
    {
        let text = format!("GET / HTTP/1.1\r\nHost: a\r\nConnection: {connection}\r\n\r\n");
        assert_eq!(read(&text).1.keep_alive, keeps, "{connection}");
    }
}

#[test]
fn answers_are_framed_anew() {
    assert_eq!(
        answered(
            "HTTP/1.0 200 Fine\r\nServer: x\r\nConnection: close, X-Hop\r\nX-Hop: 1\r\nContent-Length: 05\r\nUpgrade: h2c\r\n\r\n",
            Method::Get,
            ConnectionOut::Implied,
        ),
        "HTTP/1.1 200 Fine\r\nServer: x\r\nContent-Length: 5\r\n\r\n"
    );
    assert_eq!(
        answered("HTTP/1.1 200\r\n\r\n", Method::Get, ConnectionOut::Close),
        "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"
    );
    assert_eq!(
        answered(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X\r\n\r\n",
            Method::Get,
            ConnectionOut::KeepAlive,
        ),
        "HTTP/1.1 200 OK\r\nTrailer: X\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n"
    );
}

#[test]
fn lengths_without_body_go_on_only_where_they_may() {
    let text = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n";
    assert_eq!(answered(text, Method::Head, ConnectionOut::Implied), text);
    let text = "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n";
    assert_eq!(answered(text, Method::Get, ConnectionOut::Implied), text);
    assert_eq!(
        answered(
            "HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n",
            Method::Get,
            ConnectionOut::Implied
        ),
        "HTTP/1.1 204 No Content\r\n\r\n"
    );
}

#[test]
fn a_switch_of_protocols_keeps_its_upgrade() {
    let text =
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n";
    assert_eq!(answered(text, Method::Get, ConnectionOut::Upgrade), text);
}

#[test]
fn the_end_of_an_answer_is_known_or_the_connection_is_not_reused() {
    for (text, method, body, keeps) in [
        ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", Method::Get, BodyLength::Known(5), true),
        ("HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\n", Method::Get, BodyLength::Known(5), false),
        (
            "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 5\r\n\r\n",
            Method::Get,
            BodyLength::Known(5),
            true,
        ),
        ("HTTP/1.1 200 OK\r\n\r\n", Method::Get, BodyLength::UntilClose, false),
        (
            "HTTP/1.1 200 OK\r\nConnection: keep-alive\r\n\r\n",
            Method::Get,
            BodyLength::UntilClose,
            false,
        ),
        ("HTTP/1.1 200 OK\r\n\r\n", Method::Head, BodyLength::None, true),
        ("HTTP/1.1 204 No Content\r\n\r\n", Method::Get, BodyLength::None, true),
        ("HTTP/1.1 304 Not Modified\r\n\r\n", Method::Get, BodyLength::None, true),
        (
            "HTTP/1.1 304 Not Modified\r\nTransfer-Encoding: chunked\r\n\r\n",
            Method::Get,
            BodyLength::None,
            true,
        ),
        ("HTTP/1.1 100 Continue\r\n\r\n", Method::Post, BodyLength::None, true),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\n",
            Method::Get,
            BodyLength::Known(5),
            false,
        ),
    ] {
        let framing = read_answer(text, method).1;
        assert_eq!(
            (framing.body, framing.keep_alive, framing.upgrade),
            (body, keeps, false),
            "{text}"
        );
    }
    let tunnel = read_answer("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", Method::Connect).1;
    assert_eq!((tunnel.body, tunnel.upgrade), (BodyLength::None, true));
    let refused = read_answer("HTTP/1.1 403 No\r\nContent-Length: 5\r\n\r\n", Method::Connect).1;
    assert_eq!((refused.body, refused.upgrade), (BodyLength::Known(5), false));
}

#[test]
fn chunks_are_written() {
    let mut out = Vec::new();
    for data in [&b"hello"[..], &[b'x'; 17]] {
        write_chunk_prefix(&mut out, data.len());
        out.extend_from_slice(data);
        write_chunk_end(&mut out);
    }
    let mut trailers = Fields::new();
    trailers.push(b"X", b"y").expect("value");
    trailers.push(b"Content-Length", b"5").expect("value");
    write_last_chunk(&mut out, &trailers);
    assert_eq!(out, b"5\r\nhello\r\n11\r\nxxxxxxxxxxxxxxxxx\r\n0\r\nX: y\r\n\r\n");
    out.clear();
    write_chunk_prefix(&mut out, usize::MAX);
    assert_eq!(out, b"ffffffffffffffff\r\n");
}

#[test]
fn nothing_pushed_can_end_a_line() {
    let mut fields = Fields::new();
    for value in ["a\r\nX: y", "a\n", "\0", "a\rb", "\x7f"] {
        let trimmed = value.trim().len() < value.len();
        assert!(trimmed || fields.push(b"X", value.as_bytes()).is_err(), "{value:?}");
        assert!(
            trimmed || fields.set_known(Known::Location, value.as_bytes()).is_err(),
            "{value:?}"
        );
    }
    for name in ["", "a b", "a:", "a\r\n", "ä"] {
        assert!(fields.push(name.as_bytes(), b"").is_err(), "{name:?}");
        assert!(fields.push_received(name.as_bytes(), b"").is_err(), "{name:?}");
        assert!(fields.set(name.as_bytes(), b"").is_err(), "{name:?}");
    }
    assert!(fields.push_known(Known::Other, b"").is_err());
    assert!(fields.push_known(Known::Lookalike, b"").is_err());
    assert!(fields.push(&vec![b'a'; 65_536], b"").is_err());
    assert!(fields.push_received(&vec![b'a'; 65_536], b"").is_err());
    assert!(fields.push(&vec![b'a'; 65_535], b"").is_ok());
    assert!(fields.push_received(&vec![b'a'; 65_535], b"").is_ok());
    fields.clear();
    assert!(fields.is_empty() && !fields.has(Known::Location));
}

#[test]
fn fields_are_found_replaced_and_removed() {
    let (mut head, _) = read(
        "GET / HTTP/1.1\r\nHost: a\r\nX-A: 1\r\nCookie: p\r\nx-a: 2\r\ncookie: q\r\nSet: z\r\n\r\n",
    );
    let fields = &mut head.fields;
    assert_eq!(fields.len(), 6);
    assert_eq!(fields.get(Known::Cookie), Some(&b"p"[..]));
    assert_eq!(fields.count(Known::Cookie), 2);
    assert_eq!(fields.get_all(Known::Cookie).collect::<Vec<_>>(), [b"p", b"q"]);
    assert_eq!(fields.get_named(b"X-a"), Some(&b"1"[..]));
    assert_eq!(fields.get_all_named(b"x-A").collect::<Vec<_>>(), [b"1", b"2"]);
    fields.join_cookies();
    assert_eq!(fields.get_all(Known::Cookie).collect::<Vec<_>>(), [b"p; q"]);
    fields.set(b"X-A", b"3").expect("value");
    assert_eq!(fields.get_all_named(b"x-a").collect::<Vec<_>>(), [b"3"]);
    fields.push(b"x-A", b"4").expect("value");
    fields.set(b"X-A", b"5").expect("value");
    assert_eq!(fields.get_all_named(b"x-a").collect::<Vec<_>>(), [b"5"]);
    fields.push_known(Known::Cookie, b"p").expect("value");
    fields.set_known(Known::Cookie, b"r").expect("value");
    assert_eq!(fields.get_all(Known::Cookie).collect::<Vec<_>>(), [b"r"]);
    assert!(fields.remove(Known::Cookie) && !fields.remove(Known::Cookie));
    assert!(!fields.has(Known::Cookie) && fields.get(Known::Cookie).is_none());
    assert!(fields.remove_named(b"HOST") && !fields.has(Known::Host));
    assert!(!fields.remove_named(b"HOST"));
    fields.remove_where(|field| field.name == b"Set");
    assert_eq!(fields.iter().map(|field| field.name).collect::<Vec<_>>(), [b"X-A"]);
    fields.clear();
    assert!(fields.is_empty() && fields.capacity_bytes() > 0);
}

#[test]
fn a_rewritten_target_replaces_path_and_query() {
    let (mut head, _) = read("GET /a?b HTTP/1.1\r\nHost: a\r\n\r\n");
    let rules = subak_message::PathRules::default();
    head.set_target(b"/c/%2e/d?e", rules).expect("target");
    assert_eq!(head.forward_target(), b"/c/%2e/d?e");
    assert_eq!(head.normal_path(), b"/c/d");
    assert_eq!(head.query(), Some(&b"e"[..]));
    assert_eq!(head.method_text(), b"GET");
    for bad in [&b""[..], b"x", b"/..", b"/#", b"/a b", b"/\r\n", b"*"] {
        assert!(head.set_target(bad, rules).is_err(), "{bad:?}");
    }
}
