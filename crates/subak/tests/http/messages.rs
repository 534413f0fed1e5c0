//! What becomes of a message on its way: bodies and trailers, interim and early answers, fields that
//! belong to one connection, targets, methods, tunnels.

use std::sync::mpsc;
use std::time::Duration;

use crate::support::{Endpoint, Framing, Served, Setup, ok, wait_until};

/// Answers every request by its body, in chunks when it came so.
fn echo(served: &mut Served) {
    while let Some(request) = served.request() {
        let body = request.text();
        served.send(match request.framing {
            Framing::Chunked => format!(
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: T\r\n\r\n\
                 {:x};ext=1\r\n{body}\r\n0\r\nT: z\r\n\r\n",
                body.len()
            ),
            _ => format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()),
        });
    }
}

#[test]
fn a_body_of_known_length_keeps_its_length_both_ways() {
    let endpoint = Endpoint::scripted(echo);
    let subak = Setup::before(&[&endpoint]).start();
    let mut client = subak.client();
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 00011\r\n\r\nhello world");
    let answer = client.answer();
    assert_eq!((answer.framing, &*answer.text()), (Framing::Known(11), "hello world"));
    let request = endpoint.request();
    assert_eq!(request.all("content-length"), ["11"], "written anew, in one way only");
    assert_eq!(request.all("transfer-encoding"), [""; 0]);
}

#[test]
fn a_chunked_body_and_its_trailers_stay_so_both_ways() {
    let endpoint = Endpoint::scripted(echo);
    let subak = Setup::before(&[&endpoint]).start();
    let mut client = subak.client();
    client.send(
        "POST / HTTP/1.1\r\nHost: a\r\nTE: trailers\r\nConnection: TE\r\n\
         Transfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n\
         5;ignored=\"x\"\r\nhello\r\n6\r\n world\r\n0\r\nX-Sum: 7\r\nContent-Length: 3\r\nHost: evil\r\n\r\n",
    );
    let answer = client.answer();
    assert_eq!((answer.framing, &*answer.text()), (Framing::Chunked, "hello world"));
    assert_eq!(answer.trailers, [("t".to_owned(), "z".to_owned())]);
    assert_eq!(answer.all("trailer"), ["T"]);
    let request = endpoint.request();
    assert_eq!((request.framing, &*request.text()), (Framing::Chunked, "hello world"));
    // What frames or routes has no place in trailers.
    assert_eq!(request.trailers, [("x-sum".to_owned(), "7".to_owned())]);
    assert_eq!(request.all("trailer"), ["X-Sum"]);
    assert_eq!(request.all("te"), ["trailers"]);
}

#[test]
fn a_large_body_arrives_whole_both_ways() {
    let endpoint = Endpoint::scripted(|served| {
        while let Some(request) = served.request() {
            let mut answer =
                format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", request.body.len())
                    .into_bytes();
            answer.extend_from_slice(&request.body);
            served.send(answer);
        }
    });
    let subak = Setup::before(&[&endpoint]).start();
    // Every position is recognisable.
    let body: Vec<u8> = (0..3_000_000u32).flat_map(|n| n.to_le_bytes()).collect();
    for chunk in [0, 1 << 20, 9999] {
        let mut client = subak.client();
        let mut sending = client.socket().another();
        let sent = body.clone();
        let sender = std::thread::spawn(move || {
            use std::io::Write;
            if chunk == 0 {
                write!(
                    sending,
                    "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n",
                    sent.len()
                )?;
                return sending.write_all(&sent);
            }
            sending
                .write_all(b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")?;
            for piece in sent.chunks(chunk) {
                write!(sending, "{:X}\r\n", piece.len())?;
                sending.write_all(piece)?;
                sending.write_all(b"\r\n")?;
            }
            sending.write_all(b"0\r\n\r\n")
        });
        let answer = client.answer();
        sender.join().expect("sender").expect("everything was taken");
        assert_eq!(answer.body.len(), body.len());
        assert!(answer.body == body, "the bytes differ, chunks of {chunk}");
    }
}

#[test]
fn an_answer_that_ends_with_its_connection_goes_on_in_chunks() {
    let endpoint = Endpoint::answering_once("HTTP/1.1 200 OK\r\nX: y\r\n\r\nwhatever comes");
    let subak = Setup::before(&[&endpoint]).start();
    let mut client = subak.client();
    for _ in 0..2 {
        let answer = client.get("/");
        assert_eq!((answer.framing, &*answer.text()), (Framing::Chunked, "whatever comes"));
    }
}

#[test]
fn answers_to_head_have_no_body_and_keep_their_length() {
    let endpoint = Endpoint::scripted(|served| {
        while let Some(request) = served.request() {
            served.send(match request.line.split(' ').nth(1) {
                Some("/known") => "HTTP/1.1 200 OK\r\nContent-Length: 12345\r\n\r\n",
                Some("/chunked") => "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
                _ => "HTTP/1.1 200 OK\r\n\r\n",
            });
        }
    });
    let subak = Setup::before(&[&endpoint]).start();
    let mut client = subak.client();
    for (path, length) in [("/known", Some("12345")), ("/chunked", None), ("/none", None)] {
        client.send(format!("HEAD {path} HTTP/1.1\r\nHost: a\r\n\r\n"));
        let answer = client.answer_to("HEAD");
        assert_eq!((answer.status, answer.field("content-length")), (200, length), "{path}");
    }
    // Nothing was left on the connection, and the endpoint's was kept too.
    client.send("HEAD /known HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    assert_eq!(client.answer_to("HEAD").status, 200);
    client.assert_ends();
    assert_eq!(endpoint.accepted(), 1);
}

#[test]
fn answers_204_and_304_have_no_body() {
    let endpoint = Endpoint::scripted(|served| {
        while let Some(request) = served.request() {
            served.send(match request.line.split(' ').nth(1) {
                Some("/204") => "HTTP/1.1 204 No Content\r\nContent-Length: 0\r\nX: y\r\n\r\n",
                Some("/304") => {
                    "HTTP/1.1 304 Not Modified\r\nContent-Length: 77\r\nETag: \"e\"\r\n\r\n"
                }
                _ => "HTTP/1.1 304 Not Modified\r\nETag: \"e\"\r\n\r\n",
            });
        }
    });
    let subak = Setup::before(&[&endpoint]).start();
    let mut client = subak.client();
    for (path, status, length) in
        [("/204", 204, None), ("/304", 304, Some("77")), ("/bare", 304, None)]
    {
        let answer = client.get(path);
        assert_eq!((answer.status, answer.field("content-length")), (status, length), "{path}");
        assert_eq!(answer.field("transfer-encoding"), None);
    }
    assert_eq!(endpoint.accepted(), 1);
}

#[test]
fn early_hints_reach_the_client_before_the_answer() {
    let (go_on, wait) = mpsc::channel();
    let wait = std::sync::Mutex::new(wait);
    let endpoint = Endpoint::scripted(move |served| {
        while served.request().is_some() {
            served.send("HTTP/1.1 103 Early Hints\r\nLink: </style.css>\r\nConnection: x\r\n\r\n");
            wait.lock().expect("one at a time").recv().expect("go on");
            served.send(ok("x"));
        }
    });
    let subak = Setup::before(&[&endpoint]).start();
    let mut client = subak.client();
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    let hints = client.head();
    assert_eq!((hints.status, hints.field("link")), (103, Some("</style.css>")));
    assert_eq!(hints.field("connection"), None);
    go_on.send(()).expect("endpoint");
    assert_eq!(client.answer().text(), "x");
    // A client of HTTP/1.0 would take them for the answer.
    let mut old = subak.client();
    old.send("GET / HTTP/1.0\r\nHost: a\r\n\r\n");
    go_on.send(()).expect("endpoint");
    assert_eq!(old.head().status, 200);
}

#[test]
fn an_endless_row_of_interim_answers_is_an_error() {
    let endpoint = Endpoint::scripted(|served| {
        while served.request().is_some() {
            served.send("HTTP/1.1 102 Processing\r\n\r\n".repeat(1000));
        }
    });
    let subak = Setup::before(&[&endpoint]).pool("retry = { on = [] }").start();
    assert_eq!(subak.get("/").0, 502);
}

#[test]
fn an_endpoint_is_asked_whether_to_go_on() {
    let endpoint = Endpoint::scripted(|served| {
        while let Some(mut head) = served.head() {
            assert_eq!(head.field("expect"), Some("100-continue"));
            served.send("HTTP/1.1 100 Continue\r\n\r\n");
            served.body(&mut head).expect("a body");
            served.send(ok(&head.text()));
        }
    });
    let subak = Setup::before(&[&endpoint]).start();
    let mut client = subak.client();
    for _ in 0..2 {
        client.send(
            "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n",
        );
        assert_eq!(client.head().status, 100);
        client.send("hello");
        assert_eq!(client.answer().text(), "hello");
    }
    assert_eq!(endpoint.accepted(), 1);
}

#[test]
fn a_client_that_does_not_wait_for_100_is_served() {
    let endpoint = Endpoint::scripted(echo);
    let subak = Setup::before(&[&endpoint]).start();
    let mut client = subak.client();
    client.send(
        "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\nhello",
    );
    assert_eq!(client.answer().text(), "hello");
}

#[test]
fn an_endpoint_that_refuses_to_go_on_is_heard_before_the_body() {
    for status in ["417 Expectation Failed", "413 Content Too Large", "401 Unauthorized"] {
        let endpoint = Endpoint::scripted(move |served| {
            if served.head().is_some() {
                served.send(format!("HTTP/1.1 {status}\r\nContent-Length: 2\r\n\r\nno"));
                assert!(served.read_to_end().is_empty(), "the body came all the same");
            }
        });
        let subak = Setup::before(&[&endpoint]).start();
        let mut client = subak.client();
        client.send(
            "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n",
        );
        let answer = client.answer();
        assert_eq!((answer.line.as_str(), &*answer.text()), (&*format!("HTTP/1.1 {status}"), "no"));
        // Whether the body follows now is anybody's guess: this connection is over.
        assert_eq!(answer.field("connection"), Some("close"));
        client.assert_ends();
        wait_until("the endpoint's connection is over", || endpoint.open() == 0);
    }
}

#[test]
fn an_answer_in_the_middle_of_a_body_reaches_the_client() {
    let endpoint = Endpoint::scripted(|served| {
        if served.head().is_some() {
            served.read(100).expect("a part of the body");
            served.send("HTTP/1.1 413 Content Too Large\r\nContent-Length: 3\r\n\r\nbig");
            // It closes with unread bytes, so that the kernel resets the connection.
        }
    });
    let subak = Setup::before(&[&endpoint]).start();
    let mut client = subak.client();
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000000\r\n\r\n");
    client.send([b'x'; 100]);
    let answer = client.answer();
    assert_eq!((answer.status, &*answer.text()), (413, "big"));
    assert_eq!(answer.field("connection"), Some("close"));
    client.assert_ends();
}

#[test]
fn an_early_answer_survives_a_client_that_keeps_sending() {
    let endpoint = Endpoint::scripted(|served| {
        if served.head().is_some() {
            served.send("HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno");
            served.read_to_end();
        }
    });
    let subak = Setup::before(&[&endpoint]).start();
    let mut client = subak.client();
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 500000\r\n\r\n");
    let mut sending = client.socket().another();
    let sender = std::thread::spawn(move || {
        use std::io::Write;
        // It may be told to stop, which is fine; the answer must not be lost by that.
        let _ = sending.write_all(&[b'x'; 500_000]);
    });
    assert_eq!(client.answer().text(), "no");
    sender.join().expect("sender");
}

#[test]
fn both_directions_flow_at_the_same_time() {
    let endpoint = Endpoint::scripted(|served| {
        if served.head().is_some() {
            served.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
            // Each piece is answered before the next is sent.
            while served.read(3).expect("the size of a chunk") == b"3\r\n" {
                let data = served.read(5).expect("a chunk");
                served.send(b"3\r\n");
                served.send(data);
            }
            served.send("0\r\n\r\n");
        }
    });
    let subak = Setup::before(&[&endpoint]).start();
    let mut client = subak.client();
    client.send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
    assert_eq!(client.head().status, 200);
    for piece in ["abc", "def", "ghi"] {
        client.send(format!("3\r\n{piece}\r\n"));
        assert_eq!(client.read(8), format!("3\r\n{piece}\r\n").as_bytes());
    }
    client.send("0\r\n\r\n");
    assert_eq!(client.read(5), b"0\r\n\r\n");
}

#[test]
fn fields_of_one_connection_do_not_reach_the_other() {
    let endpoint = Endpoint::answering(
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nConnection: X-Private, keep-alive\r\nX-Private: 1\r\n\
         Keep-Alive: timeout=5\r\nProxy-Connection: close\r\nUpgrade: h2c\r\nX-Public: 2\r\n\r\nx",
    );
    let subak = Setup::before(&[&endpoint]).start();
    let mut client = subak.client();
    client.send(
        "GET / HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, X-Hop, TE\r\nX-Hop: 1\r\nTE: gzip;q=0.5\r\n\
         Keep-Alive: 300\r\nProxy-Connection: keep-alive\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n\
         X-End: 2\r\n\r\n",
    );
    let answer = client.answer();
    for name in ["connection", "x-private", "keep-alive", "proxy-connection", "upgrade"] {
        assert_eq!(answer.field(name), None, "{name}");
    }
    assert_eq!(answer.field("x-public"), Some("2"));
    let request = endpoint.request();
    for name in
        ["connection", "x-hop", "te", "keep-alive", "proxy-connection", "upgrade", "http2-settings"]
    {
        assert_eq!(request.field(name), None, "{name}");
    }
    assert_eq!(request.field("x-end"), Some("2"));
}

#[test]
fn a_client_cannot_strip_what_frames_routes_or_vouches() {
    let endpoint = Endpoint::scripted(echo);
    let subak = Setup::before(&[&endpoint])
        .listener("forwarded_headers = { forwarded = true }")
        .listener("request_headers = { set = { X-Env = \"prod\" } }")
        .start();
    for name in [
        "X-Forwarded-For",
        "X-Forwarded-Proto",
        "X-Forwarded-Host",
        "Forwarded",
        "Host",
        "Content-Length",
        "Authorization",
        "Cookie",
    ] {
        let mut client = subak.client();
        client.send(format!(
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nConnection: {name}\r\n\r\nhello"
        ));
        assert_eq!(client.answer().status, 400, "{name}");
    }
    assert_eq!(endpoint.requests().len(), 0);
    // What Subak sets itself stays.
    let mut client = subak.client();
    client.send(
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nConnection: X-Env, X-Other\r\n\
         X-Other: gone\r\nX-Env: evil\r\n\r\nhello",
    );
    assert_eq!(client.answer().text(), "hello");
    let request = endpoint.request();
    assert_eq!(request.all("x-forwarded-for"), ["127.0.0.1"]);
    assert_eq!(request.all("forwarded"), ["for=127.0.0.1;host=\"a\";proto=http"]);
    assert_eq!(request.all("host"), ["a"]);
    assert_eq!(request.all("content-length"), ["5"]);
    assert_eq!(request.all("x-env"), ["prod"]);
    assert_eq!(request.field("x-other"), None);
    assert_eq!(request.field("connection"), None);
}

#[test]
fn names_that_imitate_framing_or_forwarding_are_not_passed_on() {
    let endpoint = Endpoint::named("x");
    let subak = Setup::before(&[&endpoint]).start();
    let mut client = subak.client();
    client.send(
        "GET / HTTP/1.1\r\nHost: a\r\nContent_Length: 5\r\nTransfer_Encoding: chunked\r\n\
         X_Forwarded_For: 6.6.6.6\r\nX_Other: kept\r\n\r\n",
    );
    assert_eq!(client.answer().status, 200);
    let request = endpoint.request();
    for name in ["content_length", "transfer_encoding", "x_forwarded_for"] {
        assert_eq!(request.field(name), None, "{name}");
    }
    assert_eq!(request.field("x_other"), Some("kept"));
}

#[test]
fn an_absolute_target_decides_about_the_host() {
    let endpoint = Endpoint::named("x");
    let subak = Setup::before(&[&endpoint]).start();
    let mut client = subak.client();
    client.send("GET http://real.example:80/a/b?c HTTP/1.1\r\nHost: other.example\r\n\r\n");
    assert_eq!(client.answer().status, 200);
    let request = endpoint.request();
    assert_eq!(request.line, "GET /a/b?c HTTP/1.1");
    assert_eq!(request.all("host"), ["real.example:80"]);
}

#[test]
fn options_of_the_whole_server_stay_so() {
    let endpoint = Endpoint::named("x");
    let subak = Setup::before(&[&endpoint]).start();
    let mut client = subak.client();
    client.send("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(client.answer().status, 200);
    client.send("OPTIONS http://a HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(client.answer().status, 200);
    let lines: Vec<_> = endpoint.requests().into_iter().map(|request| request.line).collect();
    assert_eq!(lines, ["OPTIONS * HTTP/1.1", "OPTIONS * HTTP/1.1"]);
}

#[test]
fn connect_and_trace_are_refused() {
    let endpoint = Endpoint::named("x");
    let subak = Setup::before(&[&endpoint]).start();
    let mut client = subak.client();
    client.send("TRACE / HTTP/1.1\r\nHost: a\r\nCookie: secret=1\r\n\r\n");
    let answer = client.answer();
    assert_eq!(answer.status, 405);
    assert!(answer.field("allow").is_some_and(|allow| !allow.contains("TRACE")));
    assert!(!answer.text().contains("secret"));
    let mut client = subak.client();
    client.send("CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n\r\n");
    assert_eq!(client.answer().status, 405);
    client.assert_ends();
    assert_eq!(endpoint.accepted(), 0);
}

#[test]
fn trace_is_forwarded_where_it_is_allowed() {
    let endpoint = Endpoint::named("x");
    let subak = Setup::before(&[&endpoint]).listener("allow_trace = true").start();
    let mut client = subak.client();
    client.send("TRACE / HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(client.answer().status, 200);
    assert_eq!(endpoint.request().line, "TRACE / HTTP/1.1");
}

#[test]
fn the_date_and_other_fields_of_an_answer_are_not_touched() {
    let fields = "Date: Mon, 06 Jul 2026 12:00:00 GMT\r\nServer: teapot\r\nSet-Cookie: a=1\r\n\
        Set-Cookie: b=2; Path=/\r\nX-Odd:  spaces  \r\nx-LOWER: v\r\n";
    let endpoint = Endpoint::answering(format!(
        "HTTP/1.1 299 My Own Reason\r\n{fields}Content-Length: 0\r\n\r\n"
    ));
    let subak = Setup::before(&[&endpoint]).start();
    let answer = subak.client().get("/");
    assert_eq!(answer.line, "HTTP/1.1 299 My Own Reason");
    assert_eq!(answer.all("date").len(), 1);
    assert_eq!(answer.all("server"), ["teapot"]);
    assert_eq!(answer.all("set-cookie"), ["a=1", "b=2; Path=/"]);
    assert_eq!(answer.all("x-odd"), ["spaces"]);
    assert!(
        String::from_utf8_lossy(&answer.raw_head).contains("x-LOWER: v\r\n"),
        "names as written"
    );
}

const UPGRADE: &str = "GET /chat HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, Upgrade\r\n\
    Upgrade: websocket\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n";
const SWITCHED: &str = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
    Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";

#[test]
fn a_websocket_is_a_tunnel_in_both_directions() {
    let endpoint = Endpoint::scripted(|served| {
        let request = served.request().expect("the request to switch");
        assert_eq!(request.field("connection"), Some("upgrade"));
        assert_eq!(request.field("upgrade"), Some("websocket"));
        // Its first bytes come with the head.
        served.send([SWITCHED.as_bytes(), b"\x81\x02hi"].concat());
        while let Some(bytes) = served.read(4) {
            served.send(bytes.iter().rev().copied().collect::<Vec<_>>());
        }
    });
    let subak = Setup::before(&[&endpoint]).start();
    let mut client = subak.client();
    // So do the client's.
    client.send([UPGRADE.as_bytes(), b"abcd"].concat());
    let answer = client.head();
    assert_eq!((answer.status, answer.field("upgrade")), (101, Some("websocket")));
    assert_eq!(answer.field("connection").map(str::to_ascii_lowercase).as_deref(), Some("upgrade"));
    assert_eq!(answer.field("sec-websocket-accept"), Some("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="));
    assert_eq!(client.read(8), b"\x81\x02hidcba");
    for _ in 0..100 {
        client.send(b"\0\xff\r\n");
        assert_eq!(client.read(4), b"\n\r\xff\0");
    }
    drop(client);
    wait_until("the endpoint is told", || endpoint.open() == 0);
}

#[test]
fn an_end_of_one_direction_of_a_tunnel_leaves_the_other_open() {
    let (ended, is_ended) = mpsc::channel();
    let endpoint = Endpoint::scripted(move |served| {
        served.request().expect("the request to switch");
        served.send(SWITCHED);
        assert_eq!(served.read_to_end(), b"last words");
        ended.send(()).expect("test");
        served.send(vec![b'y'; 100_000]);
    });
    let subak = Setup::before(&[&endpoint]).start();
    let mut client = subak.client();
    client.send(UPGRADE);
    assert_eq!(client.head().status, 101);
    client.send("last words");
    client.socket().end_sending();
    is_ended.recv_timeout(crate::support::PATIENCE).expect("the end goes through");
    let (rest, _) = client.read_to_end();
    assert_eq!(rest.len(), 100_000);
}

#[test]
fn a_silent_tunnel_stays_open_whatever_the_other_time_limits() {
    let endpoint = Endpoint::scripted(|served| {
        served.request().expect("the request to switch");
        served.send(SWITCHED);
        while let Some(bytes) = served.read(4) {
            served.send(bytes);
        }
    });
    let subak = Setup::before(&[&endpoint])
        .listener("timeouts = { head = \"100ms\", body_idle = \"100ms\", keep_alive = \"100ms\", write_idle = \"100ms\" }")
        .pool("timeouts = { first_byte = \"100ms\", idle = \"100ms\", keep_alive = \"100ms\" }")
        .start();
    let mut client = subak.client();
    client.send(UPGRADE);
    assert_eq!(client.head().status, 101);
    client.assert_silent(Duration::from_millis(600));
    client.send("ping");
    assert_eq!(client.read(4), b"ping");
}

#[test]
fn a_refused_upgrade_is_an_ordinary_exchange() {
    let endpoint =
        Endpoint::answering("HTTP/1.1 426 Upgrade Required\r\nContent-Length: 2\r\n\r\nno");
    let subak = Setup::before(&[&endpoint]).start();
    let mut client = subak.client();
    for _ in 0..2 {
        client.send(UPGRADE);
        let answer = client.answer();
        assert_eq!((answer.status, &*answer.text()), (426, "no"));
    }
    assert_eq!(endpoint.accepted(), 1);
}

#[test]
fn a_switch_to_something_else_is_no_tunnel_past_the_rules() {
    let endpoint = Endpoint::answering(
        "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\n",
    );
    let subak = Setup::before(&[&endpoint]).start();
    let mut client = subak.client();
    client.send(UPGRADE);
    assert_eq!(client.answer().status, 502);
}
