//! HTTP/2 clients: streams beside each other, flow control, resets, and messages that HTTP/1 endpoints
//! must be able to read in one way only.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::support::http2::{h2_exchange, h2_get, prior_knowledge, run};
use crate::support::{Endpoint, Framing, Setup, ok, wait_until};
use bytes::Bytes;
use http::{Method, Request};
use tokio::net::TcpStream;

#[test]
fn many_streams_of_one_http2_connection_are_served_at_once() {
    let others = Arc::new(AtomicUsize::new(0));
    let seen = others.clone();
    let endpoint = Endpoint::scripted(move |served| {
        while let Some(request) = served.request() {
            // The first is answered after all others, so one after the other would never end.
            match request.line.starts_with("GET /0 ") {
                true => wait_until("the others came", || seen.load(Ordering::SeqCst) == 19),
                false => _ = seen.fetch_add(1, Ordering::SeqCst),
            }
            served.send(ok(&request.line));
        }
    });
    let subak = Setup::before(&[&endpoint]).start();
    let bodies = prior_knowledge(&subak, async |send| {
        let mut tasks = tokio::task::JoinSet::new();
        for number in 0..20 {
            let send = send.clone();
            let uri = format!("http://example.com/{number}");
            tasks.spawn_local(async move { (number, h2_get(send, &uri).await.1) });
        }
        tasks.join_all().await
    });
    for (number, body) in bodies {
        assert_eq!(body, format!("GET /{number} HTTP/1.1"));
    }
    assert_eq!(others.load(Ordering::SeqCst), 19);
}

#[test]
fn http2_bodies_and_trailers_go_both_ways() {
    let endpoint = Endpoint::scripted(|served| {
        while let Some(request) = served.request() {
            let size = request.body.len();
            served.send(format!(
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\
                 {size:x}\r\n{}\r\n0\r\nX-After: yes\r\n\r\n",
                request.text()
            ));
        }
    });
    let subak = Setup::before(&[&endpoint]).start();
    prior_knowledge(&subak, async |send| {
        let mut send = send.ready().await.expect("ready");
        let request = Request::builder().method(Method::POST).uri("http://example.com/").body(());
        let (answer, mut stream) = send.send_request(request.expect("request"), false).expect("ok");
        stream.send_data(Bytes::from_static(b"hello "), false).expect("data");
        stream.send_data(Bytes::from_static(b"world"), false).expect("data");
        let mut trailers = http::HeaderMap::new();
        trailers.insert("x-check", http::HeaderValue::from_static("7"));
        // What would change how the head is read if an endpoint merged it into that.
        for forged in ["x-forwarded-for", "x-real-ip", "host", "authorization", "cookie"] {
            trailers.insert(forged, http::HeaderValue::from_static("forged"));
        }
        stream.send_trailers(trailers).expect("trailers");
        let mut body = answer.await.expect("answer").into_body();
        let mut text = Vec::new();
        while let Some(data) = body.data().await {
            text.extend_from_slice(&data.expect("data"));
        }
        assert_eq!(text, b"hello world");
        let trailers = body.trailers().await.expect("trailers").expect("some");
        assert_eq!(trailers["x-after"], "yes");
    });
    let request = endpoint.request();
    assert_eq!(request.text(), "hello world");
    assert_eq!(request.trailers, [("x-check".to_owned(), "7".to_owned())]);
}

#[test]
fn an_answer_that_breaks_off_resets_its_http2_stream_and_no_other() {
    let endpoint = Endpoint::scripted(|served| {
        while let Some(request) = served.request() {
            if request.line.starts_with("GET /cut ") {
                served.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf");
                return;
            }
            served.send(ok("whole"));
        }
    });
    let subak = Setup::before(&[&endpoint]).start();
    prior_knowledge(&subak, async |send| {
        let mut ready = send.clone().ready().await.expect("ready");
        let request = Request::get("http://example.com/cut").body(()).expect("request");
        let (answer, _) = ready.send_request(request, true).expect("ok");
        // The reset may overtake the head.
        let failed = match answer.await {
            Ok(mut answer) => loop {
                match answer.body_mut().data().await {
                    Some(Ok(_)) => {}
                    Some(Err(error)) => break error,
                    None => panic!("half an answer was taken for all of it"),
                }
            },
            Err(error) => error,
        };
        assert!(failed.is_reset() && failed.is_remote(), "{failed}");
        assert_eq!(h2_get(send, "http://example.com/whole").await.1, "whole");
    });
}

#[test]
fn an_http2_upload_larger_than_the_limit_is_answered_413() {
    let endpoint = Endpoint::named("x");
    let subak = Setup::before(&[&endpoint]).listener("limits = { body = 1000 }").start();
    let (answer, _) = prior_knowledge(&subak, async |send| {
        let request = Request::post("http://example.com/").body(()).expect("request");
        h2_exchange(send, request, Some(Bytes::from(vec![b'x'; 5000]))).await
    });
    assert_eq!(answer.status().as_u16(), 413);
    wait_until("the endpoint is rid of it", || endpoint.open() == 0);
    assert!(endpoint.requests().is_empty());
}

#[test]
fn an_idle_http2_connection_is_told_goodbye_and_closed() {
    let endpoint = Endpoint::named("x");
    let subak =
        Setup::before(&[&endpoint]).listener("timeouts = { keep_alive = \"300ms\" }").start();
    let address = subak.socket_address();
    run(tokio::task::LocalSet::new().run_until(async {
        let stream = TcpStream::connect(address).await.expect("connect");
        let (send, connection) = h2::client::handshake(stream).await.expect("handshake");
        let connection = tokio::task::spawn_local(connection);
        assert_eq!(h2_get(send.clone(), "http://example.com/").await.1, "x");
        // `send` is still held: only Subak ends the connection.
        connection.await.expect("task").expect("an orderly end");
        drop(send);
    }));
}

#[test]
fn bodies_are_framed_for_the_endpoint_in_one_way() {
    let endpoint = Endpoint::named("x");
    let subak = Setup::before(&[&endpoint]).start();
    prior_knowledge(&subak, async |send| {
        let body = || Some(Bytes::from_static(b"hello"));
        let post = || Request::post("http://example.com/");
        let known = post().header("content-length", 5).body(()).expect("request");
        h2_exchange(send.clone(), known, body()).await;
        h2_exchange(send.clone(), post().body(()).expect("request"), body()).await;
        h2_exchange(send.clone(), post().body(()).expect("request"), None).await;
        h2_get(send, "http://example.com/").await;
    });
    let framings: Vec<_> = endpoint.requests().iter().map(|request| request.framing).collect();
    assert_eq!(framings[..2], [Framing::Known(5), Framing::Chunked]);
    assert!(matches!(framings[2], Framing::None | Framing::Known(0)));
    assert_eq!(framings[3], Framing::None);
}

#[test]
fn a_body_that_is_not_as_long_as_announced_is_never_completed() {
    for (announced, sent) in [("10", "short"), ("3", "longer"), ("0", "some")] {
        let endpoint = Endpoint::named("x");
        let subak = Setup::before(&[&endpoint]).start();
        prior_knowledge(&subak, async |send| {
            let mut send = send.ready().await.expect("ready");
            let request = Request::post("http://example.com/").header("content-length", announced);
            let (answer, mut stream) =
                send.send_request(request.body(()).expect("request"), false).expect("ok");
            stream.send_data(Bytes::from_static(sent.as_bytes()), true).expect("data");
            if let Ok(answer) = answer.await {
                assert_eq!(answer.status().as_u16(), 400);
            }
        });
        wait_until("the endpoint is rid of it", || endpoint.open() == 0);
        assert!(endpoint.requests().is_empty(), "{announced}, {sent}");
    }
}

#[test]
fn a_body_is_complete_when_its_stream_ends_and_not_before() {
    let endpoint = Endpoint::named("x");
    let subak = Setup::before(&[&endpoint]).start();
    for (announced, sent, more) in [("0", "", "some"), ("3", "abc", "d")] {
        prior_knowledge(&subak, async |send| {
            let mut ready = send.clone().ready().await.expect("ready");
            let request = Request::post("http://example.com/").header("content-length", announced);
            let (answer, mut stream) =
                ready.send_request(request.body(()).expect("request"), false).expect("ok");
            stream.send_data(Bytes::from_static(sent.as_bytes()), false).expect("data");
            // One that was sent later is answered: the endpoint has had time enough for the first.
            h2_get(send.clone(), "http://example.com/").await;
            // The stream may be reset by now.
            let _ = stream.send_data(Bytes::from_static(more.as_bytes()), true);
            let error = answer.await.expect_err("a reset");
            assert!(error.is_reset(), "{announced}: {error}");

            // What ends later, and as announced, arrives.
            let request = Request::post("http://example.com/").header("content-length", announced);
            let (answer, mut stream) =
                ready.send_request(request.body(()).expect("request"), false).expect("ok");
            stream.send_data(Bytes::from_static(sent.as_bytes()), false).expect("data");
            h2_get(send, "http://example.com/").await;
            stream.send_data(Bytes::new(), true).expect("data");
            assert_eq!(answer.await.expect("an answer").status().as_u16(), 200);
        });
        let mut posted = endpoint.requests();
        posted.retain(|request| request.line.starts_with("POST"));
        let posted: Vec<_> = posted.iter().map(|request| request.text()).collect();
        assert_eq!(posted.last().map(|text| &**text), Some(sent));
        assert_eq!(posted.len(), if announced == "0" { 1 } else { 2 });
    }
}

#[test]
fn a_request_that_says_two_things_is_refused() {
    let endpoint = Endpoint::named("x");
    let subak = Setup::before(&[&endpoint]).start();
    let get = |uri: &str| Request::get(uri.to_owned());
    let cases = [
        get("http://a.example/").header("host", "b.example"),
        get("http://a.example/").header("connection", "x"),
        get("http://a.example/").header("transfer-encoding", "chunked"),
        get("http://a.example/").header("te", "gzip"),
        get("http://a.example/").header("upgrade", "websocket"),
        get("http://a.example/").header("proxy-connection", "keep-alive"),
        get("http://a.example/").header("content-length", "5").header("content-length", "6"),
        get("http://a.example/").header("content-length", "+5"),
        get("http://a.example/../x"),
        get("http://a.example/%00"),
        get("http://a.example/x%zz"),
    ];
    for case in cases {
        let request = case.body(()).expect("a request");
        let shown = format!("{request:?}");
        prior_knowledge(&subak, async |send| {
            let mut send = send.ready().await.expect("ready");
            // The client's own library refuses to send some of them: nothing left to refuse.
            let Ok((answer, _)) = send.send_request(request, true) else { return };
            match answer.await {
                Ok(answer) => assert_eq!(answer.status().as_u16(), 400, "{shown}"),
                Err(error) => assert!(error.is_reset() || error.is_go_away(), "{shown}: {error}"),
            }
        });
    }
    assert_eq!(endpoint.accepted(), 0);
}

#[test]
fn connect_and_trace_are_refused_here_too() {
    let endpoint = Endpoint::named("x");
    let subak = Setup::before(&[&endpoint]).start();
    prior_knowledge(&subak, async |send| {
        let trace = Request::builder().method(Method::TRACE).uri("http://a.example/").body(());
        let (answer, _) = h2_exchange(send.clone(), trace.expect("request"), None).await;
        assert_eq!(answer.status().as_u16(), 405);
        let connect = Request::builder().method(Method::CONNECT).uri("a.example:443").body(());
        let (answer, _) = h2_exchange(send, connect.expect("request"), None).await;
        assert_eq!(answer.status().as_u16(), 405);
    });
    assert_eq!(endpoint.accepted(), 0);
}

#[test]
fn several_cookie_fields_become_one() {
    let endpoint = Endpoint::named("x");
    let subak = Setup::before(&[&endpoint]).start();
    prior_knowledge(&subak, async |send| {
        let request = Request::get("http://a.example/")
            .header("cookie", "a=1")
            .header("cookie", "b=2")
            .header("te", "trailers")
            .body(());
        h2_exchange(send, request.expect("request"), None).await
    });
    let request = endpoint.request();
    assert_eq!(request.all("cookie"), ["a=1; b=2"]);
    assert_eq!(request.all("te"), ["trailers"]);
}

#[test]
fn answers_without_a_body_end_at_once_and_keep_their_length() {
    let endpoint = Endpoint::scripted(|served| {
        while let Some(request) = served.request() {
            served.send(match request.line.split(' ').nth(1) {
                Some("/204") => "HTTP/1.1 204 No Content\r\nConnection: x-hop\r\nX-Hop: 1\r\n\r\n",
                Some("/304") => "HTTP/1.1 304 Not Modified\r\nContent-Length: 7\r\n\r\n",
                _ => "HTTP/1.1 200 OK\r\nContent-Length: 12345\r\nKeep-Alive: x\r\n\r\n",
            });
        }
    });
    let subak = Setup::before(&[&endpoint]).start();
    prior_knowledge(&subak, async |send| {
        let (answer, body) = h2_get(send.clone(), "http://a.example/204").await;
        assert_eq!((answer.status().as_u16(), &*body), (204, ""));
        assert!(
            answer.headers().get("x-hop").is_none() && answer.headers().get("connection").is_none()
        );
        let (answer, body) = h2_get(send.clone(), "http://a.example/304").await;
        assert_eq!((answer.status().as_u16(), &*body), (304, ""));
        let head = Request::head("http://a.example/").body(()).expect("request");
        let (answer, body) = h2_exchange(send, head, None).await;
        assert_eq!((answer.status().as_u16(), &*body), (200, ""));
        assert_eq!(answer.headers()["content-length"], "12345");
        assert!(answer.headers().get("keep-alive").is_none());
    });
    assert_eq!(endpoint.accepted(), 1);
}

#[test]
fn early_hints_reach_http2_clients() {
    let endpoint = Endpoint::answering(
        "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx",
    );
    let subak = Setup::before(&[&endpoint]).start();
    prior_knowledge(&subak, async |send| {
        let mut send = send.ready().await.expect("ready");
        let request = Request::get("http://a.example/").body(()).expect("request");
        let (mut answer, _) = send.send_request(request, true).expect("ok");
        let hints = std::future::poll_fn(|context| answer.poll_informational(context)).await;
        let hints = hints.expect("hints").expect("hints");
        assert_eq!(
            (hints.status().as_u16(), &hints.headers()["link"]),
            (103, &"</a>".parse().expect("value"))
        );
        assert_eq!(answer.await.expect("answer").status().as_u16(), 200);
    });
}

#[test]
fn a_small_body_is_kept_and_sent_again_here_too() {
    let bad = Endpoint::scripted(|served| {
        served.request();
        served.reset();
    });
    let good = Endpoint::named("good");
    let subak = Setup::before(&[&bad, &good]).start();
    let (_, body) = prior_knowledge(&subak, async |send| {
        let request = Request::put("http://a.example/").body(()).expect("request");
        h2_exchange(send, request, Some(Bytes::from(vec![b'x'; 20_000]))).await
    });
    assert_eq!(body, "good");
    assert_eq!(good.request().body.len(), 20_000);
}

#[test]
fn a_head_that_is_too_large_is_answered_431() {
    let endpoint = Endpoint::named("x");
    let subak =
        Setup::before(&[&endpoint]).listener("limits = { head = \"2KiB\", fields = 10 }").start();
    prior_knowledge(&subak, async |send| {
        let large = Request::get("http://a.example/").header("x", "y".repeat(3000)).body(());
        let (answer, _) = h2_exchange(send.clone(), large.expect("request"), None).await;
        assert_eq!(answer.status().as_u16(), 431);
        let mut many = Request::get("http://a.example/");
        for number in 0..11 {
            many = many.header(format!("x-{number}"), "y");
        }
        let (answer, _) = h2_exchange(send.clone(), many.body(()).expect("request"), None).await;
        assert_eq!(answer.status().as_u16(), 431);
        assert_eq!(h2_get(send, "http://a.example/").await.1, "x");
    });
    assert_eq!(endpoint.requests().len(), 1);
}

#[test]
fn a_body_that_stops_is_answered_408_and_other_streams_go_on() {
    let endpoint = Endpoint::named("x");
    let subak =
        Setup::before(&[&endpoint]).listener("timeouts = { body_idle = \"300ms\" }").start();
    prior_knowledge(&subak, async |send| {
        let mut ready = send.clone().ready().await.expect("ready");
        let request = Request::post("http://a.example/").body(()).expect("request");
        let (answer, mut stream) = ready.send_request(request, false).expect("ok");
        stream.send_data(Bytes::from_static(b"half"), false).expect("data");
        assert_eq!(answer.await.expect("answer").status().as_u16(), 408);
        assert_eq!(h2_get(send, "http://a.example/").await.1, "x");
    });
}

#[test]
fn a_stream_whose_client_takes_nothing_is_cut_off_and_others_go_on() {
    let endpoint = Endpoint::scripted(|served| {
        while let Some(request) = served.request() {
            if request.line.starts_with("GET /large ") {
                let size = 8 << 20;
                served.send(format!("HTTP/1.1 200 OK\r\nContent-Length: {size}\r\n\r\n"));
                served.send(vec![b'z'; size]);
            } else {
                served.send(ok("small"));
            }
        }
    });
    let subak =
        Setup::before(&[&endpoint]).listener("timeouts = { write_idle = \"400ms\" }").start();
    prior_knowledge(&subak, async |send| {
        let mut ready = send.clone().ready().await.expect("ready");
        let request = Request::get("http://a.example/large").body(()).expect("request");
        let (answer, _) = ready.send_request(request, true).expect("ok");
        // It takes the head and opens no window for the body.
        let mut body = answer.await.expect("the head").into_body();
        assert_eq!(h2_get(send.clone(), "http://a.example/").await.1, "small");
        let mut taken = 0;
        let failed = loop {
            match body.data().await {
                Some(Ok(data)) => taken += data.len(),
                Some(Err(error)) => break error,
                None => panic!("{taken} bytes were taken for all of it"),
            }
        };
        assert!(failed.is_reset(), "{failed}");
        assert_eq!(h2_get(send, "http://a.example/").await.1, "small");
    });
}

#[test]
fn a_stream_that_its_client_resets_lets_its_endpoint_go() {
    let endpoint = Endpoint::scripted(|served| {
        while let Some(request) = served.request() {
            if request.line.starts_with("GET /never ") {
                served.read_to_end();
                return;
            }
            served.send(ok("x"));
        }
    });
    let subak = Setup::before(&[&endpoint]).pool("max_in_flight = 10").start();
    prior_knowledge(&subak, async |send| {
        // More than may be in flight: each has to make room for the next.
        for number in 0..30 {
            let mut ready = send.clone().ready().await.expect("ready");
            let request = Request::get("http://a.example/never").body(()).expect("request");
            let (answer, mut stream) = ready.send_request(request, true).expect("ok");
            while endpoint.requests().len() <= number {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            stream.send_reset(h2::Reason::CANCEL);
            drop(answer);
        }
        assert_eq!(h2_get(send, "http://a.example/").await.1, "x");
    });
    wait_until("nothing is left behind", || endpoint.open() <= 1);
}

#[test]
fn a_stream_that_is_reset_while_it_waits_gives_its_place_up() {
    let endpoint = Endpoint::scripted(|served| {
        while served.request().is_some() {
            // Held until its client leaves.
            served.read_to_end();
        }
    });
    let subak = Setup::before(&[&endpoint])
        .pool("max_in_flight = 1\nqueue = { length = 1, timeout = \"1m\" }")
        .start();
    prior_knowledge(&subak, async |send| {
        let get = || Request::get("http://a.example/").body(()).expect("request");
        let mut ready = send.clone().ready().await.expect("ready");
        let _held = ready.send_request(get(), true).expect("ok");
        while endpoint.requests().is_empty() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        for number in 1..=5 {
            let mut ready = send.clone().ready().await.expect("ready");
            let (answer, mut stream) = ready.send_request(get(), true).expect("ok");
            // There is one place in line; a request that finds none is answered 503.
            while subak.log().matches("a request waits for an endpoint").count() < number {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            stream.send_reset(h2::Reason::CANCEL);
            drop(answer);
            while subak.log().matches("the client left").count() < number {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        }
    });
}

/// What every HTTP/2 client sends first: the preface and empty SETTINGS.
const HELLO: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

const PING: &[u8] = b"\0\0\x08\x06\0\0\0\0\0whatever";

/// GET / of "a" on this stream, by indexed and literal fields.
fn get_frame(stream: u32) -> Vec<u8> {
    let mut frame = b"\0\0\x06\x01\x05".to_vec();
    frame.extend_from_slice(&stream.to_be_bytes());
    frame.extend_from_slice(b"\x82\x86\x84\x01\x01a");
    frame
}

/// A reset of this stream because it is no longer wanted.
fn cancel_frame(stream: u32) -> Vec<u8> {
    let mut frame = b"\0\0\x04\x03\0".to_vec();
    frame.extend_from_slice(&stream.to_be_bytes());
    frame.extend_from_slice(b"\0\0\0\x08");
    frame
}

/// The error code of the GOAWAY in what a connection has brought until its end.
fn goodbye(mut frames: &[u8]) -> Option<u32> {
    const GOAWAY: u8 = 7;
    while let Some((head, rest)) = frames.split_at_checked(9) {
        let length = usize::from(head[0]) << 16 | usize::from(head[1]) << 8 | usize::from(head[2]);
        let (payload, rest) = rest.split_at_checked(length)?;
        if head[3] == GOAWAY {
            return Some(u32::from_be_bytes(payload[4..8].try_into().ok()?));
        }
        frames = rest;
    }
    None
}

#[test]
fn streams_that_are_reset_as_soon_as_they_are_opened_end_the_connection_and_cost_little() {
    const ENHANCE_YOUR_CALM: u32 = 11;
    let endpoint = Endpoint::scripted(|served| {
        while served.request().is_some() {
            // Held until its client leaves.
            served.read_to_end();
        }
    });
    let subak = Setup::before(&[&endpoint]).start();
    let mut client = subak.client();
    let mut attack = HELLO.to_vec();
    for stream in (1..4000).step_by(2) {
        attack.extend(get_frame(stream));
        attack.extend(cancel_frame(stream));
    }
    // Not all of it is read.
    let _ = client.try_send(&attack);
    let (frames, _) = client.read_to_end();
    assert_eq!(goodbye(&frames), Some(ENHANCE_YOUR_CALM));
    wait_until("nothing is left behind", || endpoint.open() == 0);
    assert!(endpoint.accepted() <= 200, "{} of 2000 were connected", endpoint.accepted());
}

#[test]
fn a_client_that_never_answers_cannot_hold_its_connection() {
    let endpoint = Endpoint::named("x");
    let subak = Setup::before(&[&endpoint])
        .listener("timeouts = { keep_alive = \"200ms\", head = \"200ms\" }")
        .start();
    // It does not answer the PING that belongs to the goodbye.
    let mut silent = subak.client();
    silent.send(HELLO);
    silent.read_to_end();
    // Nor does this one get beyond a part of the preface.
    let mut half = subak.client();
    half.send(&HELLO[..20]);
    half.read_to_end();
}

#[test]
fn a_client_that_takes_nothing_at_all_is_cut_off_and_costs_little() {
    let endpoint = Endpoint::scripted(|served| {
        while served.request().is_some() {
            let size = 8 << 20;
            served.send(format!("HTTP/1.1 200 OK\r\nContent-Length: {size}\r\n\r\n"));
            served.send(vec![b'z'; size]);
        }
    });
    let subak = Setup::before(&[&endpoint])
        .listener("timeouts = { write_idle = \"600ms\", keep_alive = \"600ms\" }")
        .listener("http2 = { stalled_streams = \"unlimited\" }")
        .start();
    let before = subak.resident_kib();
    let mut client = subak.client();
    if let crate::support::Socket::Tcp(stream) = client.socket() {
        socket2::SockRef::from(&*stream).set_recv_buffer_size(4096).expect("buffer");
    }
    client.send(HELLO);
    // Windows as large as they can be, for the connection and (by SETTINGS) for each stream.
    client.send(b"\0\0\x06\x04\0\0\0\0\0\0\x04\x7f\xff\xff\xff");
    client.send(b"\0\0\x04\x08\0\0\0\0\0\x7f\xfe\xff\xff");
    // 50 requests; then it reads nothing.
    for stream in (1..100u32).step_by(2) {
        client.send(get_frame(stream));
    }
    endpoint.wait_for_requests(50);
    let mut most = 0;
    wait_until("all endpoints are let go", || {
        most = most.max(subak.resident_kib());
        endpoint.open() == 0
    });
    // A chunk on its way from the endpoint, one that waits for room, and what is kept for the stream.
    assert!(most - before < 50 * 3 * 64 + 4096, "{} KiB more", most - before);
    wait_until("the connection is closed", || client.try_send(PING).is_err());
}
