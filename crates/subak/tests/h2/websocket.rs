//! WebSocket over streams of HTTP/2 (RFC 8441), of clients and to endpoints: an extended CONNECT becomes
//! HTTP/1.1's handshake and the other way round, proofs are looked at or given, and then both directions
//! are plain bytes.

use std::sync::mpsc;
use std::time::Duration;

use crate::support::http2::{h2_get, prior_knowledge, run, self_made_certificate, tls};
use crate::support::http2_endpoint::{Exchange, Http2Endpoint};
use crate::support::{
    Client, End, Endpoint, Nginx, Served, Setup, Subak, fresh_address, fresh_directory, wait_until,
};
use bytes::Bytes;
use h2::client::SendRequest;
use h2::ext::Protocol;
use h2::{Reason, RecvStream, SendStream};
use http::{HeaderMap, Method, Request, Response};

/// Asks for a WebSocket.
async fn connect(
    send: SendRequest<Bytes>,
    protocol: &'static str,
) -> (Response<RecvStream>, SendStream<Bytes>) {
    let mut send = send.ready().await.expect("ready");
    let mut request = Request::builder()
        .method(Method::CONNECT)
        .uri("http://example.com/chat?room=1")
        .header("sec-websocket-version", "13")
        .header("sec-websocket-protocol", "chat")
        .header("sec-websocket-extensions", "permessage-deflate")
        // Means nothing in HTTP/2: nobody may choose what Subak asks to have proved.
        .header("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==")
        .body(())
        .expect("request");
    request.extensions_mut().insert(Protocol::from_static(protocol));
    let (answer, stream) = send.send_request(request, false).expect("a stream");
    (answer.await.expect("an answer"), stream)
}

/// Waits until the server's settings are here, which allow an extended CONNECT.
async fn allowed(send: &SendRequest<Bytes>) {
    while !send.is_extended_connect_protocol_enabled() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// So many bytes, or as many as there are.
async fn read(body: &mut RecvStream, count: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    while bytes.len() < count {
        let Some(data) = body.data().await else { break };
        let data = data.expect("data");
        body.flow_control().release_capacity(data.len()).expect("capacity");
        bytes.extend_from_slice(&data);
    }
    bytes
}

/// Proves that it has read the key.
fn switch(served: &mut Served) {
    let request = served.request().expect("the request to switch");
    let proof = proof(request.field("sec-websocket-key").expect("a key"));
    served.send(format!(
        "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Accept: {proof}\r\nSec-WebSocket-Protocol: chat\r\n\r\n"
    ));
}

fn proof(key: &str) -> String {
    let mut digest = aws_lc_rs::digest::Context::new(&aws_lc_rs::digest::SHA1_FOR_LEGACY_USE_ONLY);
    digest.update(format!("{key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11").as_bytes());
    base64(digest.finish().as_ref())
}

fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for three in bytes.chunks(3) {
        let bits = three.iter().fold(0, |bits, byte| bits << 8 | usize::from(*byte));
        let bits = bits << (8 * (3 - three.len()));
        for at in 0..4 {
            let six = bits >> (18 - 6 * at) & 63;
            text.push(if at <= three.len() { char::from(ALPHABET[six]) } else { '=' });
        }
    }
    text
}

/// Answers every four bytes by the same, backwards.
fn backwards(served: &mut Served) {
    switch(served);
    while let Some(bytes) = served.read(4) {
        served.send(bytes.iter().rev().copied().collect::<Vec<_>>());
    }
}

#[test]
fn a_stream_becomes_a_websocket_to_an_http1_endpoint() {
    let endpoint = Endpoint::scripted(backwards);
    let subak = Setup::before(&[&endpoint]).start();
    prior_knowledge(&subak, async |send| {
        allowed(&send).await;
        let (answer, mut stream) = connect(send.clone(), "websocket").await;
        assert_eq!(answer.status(), 200);
        assert_eq!(answer.headers()["sec-websocket-protocol"], "chat");
        for name in ["sec-websocket-accept", "upgrade", "connection", "content-length"] {
            assert!(!answer.headers().contains_key(name), "{name}: {answer:?}");
        }
        let mut body = answer.into_body();
        for _ in 0..100 {
            stream.send_data(Bytes::from_static(b"\0\xff\r\n"), false).expect("data");
            assert_eq!(read(&mut body, 4).await, b"\n\r\xff\0");
        }
        stream.send_data(Bytes::new(), true).expect("the end");
        assert_eq!(read(&mut body, 1).await, b"", "an end of one side ends the other in its time");
    });
    let request = endpoint.request();
    assert_eq!(request.line, "GET /chat?room=1 HTTP/1.1");
    assert_eq!(request.all("host"), ["example.com"]);
    assert_eq!(request.all("upgrade"), ["websocket"]);
    assert_eq!(request.all("connection"), ["upgrade"]);
    assert_eq!(request.all("sec-websocket-version"), ["13"]);
    assert_eq!(request.all("sec-websocket-extensions"), ["permessage-deflate"]);
    let keys = request.all("sec-websocket-key");
    assert!(keys.len() == 1 && keys[0].len() == 24 && !keys[0].starts_with("dGhl"), "{keys:?}");
    wait_until("the endpoint is told", || endpoint.open() == 0);
}

#[test]
fn large_messages_and_ends_pass_one_way_at_a_time() {
    let (ended, is_ended) = mpsc::channel();
    let endpoint = Endpoint::scripted(move |served| {
        switch(served);
        assert_eq!(served.read_to_end(), vec![b'x'; 300_000]);
        ended.send(()).expect("test");
        served.send(vec![b'y'; 300_000]);
    });
    let subak = Setup::before(&[&endpoint]).listener("limits = { body = 1000 }").start();
    prior_knowledge(&subak, async |send| {
        allowed(&send).await;
        let (answer, mut stream) = connect(send, "websocket").await;
        let mut body = answer.into_body();
        stream.send_data(Bytes::from(vec![b'x'; 300_000]), true).expect("data");
        assert_eq!(read(&mut body, 300_001).await, vec![b'y'; 300_000]);
    });
    is_ended.try_recv().expect("the end came before the answer");
}

#[test]
fn over_tls_a_websocket_goes_beside_other_requests() {
    let endpoint = Endpoint::named("plain");
    let tunnel = Endpoint::scripted(backwards);
    let directory = fresh_directory();
    let trusted = self_made_certificate(&directory);
    let setup = Setup::before(&[&tunnel])
        .listener(&format!(
            "tls = {{ certificates = [{{ chain = {:?}, key = {:?} }}] }}",
            directory.join("site.pem"),
            directory.join("site.key")
        ))
        .tail(&format!(
            "[[listener.web.route]]\npath = \"/plain\"\npool = \"plain\"\n\
             [pool.plain]\nendpoints = [{:?}]\n",
            endpoint.address()
        ));
    let subak = setup.start();
    let address = subak.socket_address();
    run(tokio::task::LocalSet::new().run_until(async {
        let stream = tls(address, trusted, &["h2"]).await;
        let send = crate::support::http2::h2_over(stream).await;
        allowed(&send).await;
        let (answer, mut stream) = connect_https(send.clone()).await;
        assert_eq!(answer.status(), 200);
        let mut body = answer.into_body();
        for _ in 0..3 {
            stream.send_data(Bytes::from_static(b"abcd"), false).expect("data");
            assert_eq!(read(&mut body, 4).await, b"dcba");
            assert_eq!(h2_get(send.clone(), "https://localhost/plain").await.1, "plain");
        }
    }));
}

async fn connect_https(send: SendRequest<Bytes>) -> (Response<RecvStream>, SendStream<Bytes>) {
    let mut send = send.ready().await.expect("ready");
    let mut request = Request::builder();
    request = request.method(Method::CONNECT).uri("https://localhost/");
    let mut request = request.body(()).expect("request");
    request.extensions_mut().insert(Protocol::from_static("websocket"));
    let (answer, stream) = send.send_request(request, false).expect("a stream");
    (answer.await.expect("an answer"), stream)
}

#[test]
fn an_endpoint_that_proves_nothing_is_no_websocket() {
    let endpoint = Endpoint::answering_once(
        "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n",
    );
    let subak = Setup::before(&[&endpoint]).pool("retry = { attempts = 1 }").start();
    prior_knowledge(&subak, async |send| {
        allowed(&send).await;
        let (answer, _stream) = connect(send, "websocket").await;
        assert_eq!(answer.status(), 502);
    });
}

#[test]
fn what_an_endpoint_refuses_and_other_protocols_are_answered() {
    let endpoint = Endpoint::answering("HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno");
    let subak = Setup::before(&[&endpoint]).start();
    prior_knowledge(&subak, async |send| {
        allowed(&send).await;
        let (answer, _stream) = connect(send.clone(), "websocket").await;
        assert_eq!(answer.status(), 403);
        assert_eq!(read(&mut answer.into_body(), 2).await, b"no");
        let (answer, _stream) = connect(send.clone(), "connect-udp").await;
        assert_eq!(answer.status(), 501);
        // A tunnel to wherever the client likes is not for a load balancer.
        let plain = Request::builder().method(Method::CONNECT).uri("example.com:443").body(());
        let (answer, _) =
            crate::support::http2::h2_exchange(send, plain.expect("request"), None).await;
        assert_eq!(answer.status(), 405);
    });
    assert_eq!(endpoint.requests().len(), 1);
}

#[test]
fn a_success_that_is_not_101_is_no_websocket() {
    for status in ["200 OK", "201 Created", "204 No Content", "206 Partial Content"] {
        let length = if status.starts_with("204") { "" } else { "Content-Length: 5\r\n" };
        let body = if length.is_empty() { "" } else { "frame" };
        let answer = format!("HTTP/1.1 {status}\r\nX-Endpoint: yes\r\n{length}\r\n{body}");
        let endpoints = [Endpoint::answering(&answer), Endpoint::answering(&answer)];
        let subak = Setup::before(&[&endpoints[0], &endpoints[1]]).start();
        prior_knowledge(&subak, async |send| {
            allowed(&send).await;
            // Nothing of the endpoint's answer may look like a WebSocket that is open. More often than a
            // faulty endpoint would be asked: it may well be the client's fault.
            for _ in 0..5 {
                let (answer, _stream) = connect(send.clone(), "websocket").await;
                assert_eq!(answer.status(), 502, "{status}");
                assert_eq!(answer.headers().get("x-endpoint"), None);
                let body = read(&mut answer.into_body(), usize::MAX).await;
                assert!(!body.windows(5).any(|part| part == b"frame"), "{body:?}");
            }
        });
        let asked: usize = endpoints.iter().map(|one| one.requests().len()).sum();
        assert_eq!(asked, 5, "a handshake was tried again after {status}");
        // To a client of HTTP/1.1 it is an answer like any other: the switch was not made.
        let mut client = ask(&subak, "websocket", Some("dGhlIHNhbXBsZSBub25jZQ=="));
        let answer = client.answer();
        assert_eq!(answer.line, format!("HTTP/1.1 {status}"));
        assert_eq!(answer.text(), body);
    }
}

#[test]
fn what_else_an_endpoint_answers_to_a_handshake_is_passed_on() {
    for (status, fields) in
        [("302 Found", "Location: /login\r\n"), ("426 Upgrade Required", ""), ("503 No", "")]
    {
        let endpoint = Endpoint::answering(format!(
            "HTTP/1.1 {status}\r\n{fields}Content-Length: 2\r\n\r\nno"
        ));
        let subak = Setup::before(&[&endpoint]).start();
        prior_knowledge(&subak, async |send| {
            allowed(&send).await;
            let (answer, _stream) = connect(send, "websocket").await;
            assert_eq!(answer.status().as_str(), &status[..3]);
            assert_eq!(answer.headers().contains_key("location"), !fields.is_empty());
            assert_eq!(read(&mut answer.into_body(), usize::MAX).await, b"no");
        });
    }
}

#[test]
fn a_reset_on_either_side_ends_the_other() {
    let endpoint = Endpoint::scripted(|served| {
        switch(served);
        match served.read(4).as_deref() {
            Some(b"stop") => served.reset(),
            Some(_) => _ = served.read_to_end(),
            None => {}
        }
    });
    let subak = Setup::before(&[&endpoint]).start();
    prior_knowledge(&subak, async |send| {
        allowed(&send).await;
        let (answer, mut stream) = connect(send.clone(), "websocket").await;
        stream.send_data(Bytes::from_static(b"stop"), false).expect("data");
        let failed = answer.into_body().data().await.expect("no end").expect_err("a reset");
        assert!(failed.is_reset(), "{failed}");

        let (_answer, mut stream) = connect(send.clone(), "websocket").await;
        stream.send_data(Bytes::from_static(b"stay"), false).expect("data");
        wait_until_async(|| endpoint.open() == 1).await;
        stream.send_reset(h2::Reason::CANCEL);
        wait_until_async(|| endpoint.open() == 0).await;
    });
}

async fn wait_until_async(mut condition: impl FnMut() -> bool) {
    while !condition() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[test]
fn a_silent_websocket_is_closed_after_the_tunnels_limit() {
    let endpoint = Endpoint::scripted(|served| {
        switch(served);
        served.read_to_end();
    });
    let subak = Setup::before(&[&endpoint]).pool("timeouts = { tunnel = \"300ms\" }").start();
    prior_knowledge(&subak, async |send| {
        allowed(&send).await;
        let (answer, _stream) = connect(send, "websocket").await;
        assert_eq!(answer.status(), 200);
        assert!(answer.into_body().data().await.expect("no end").is_err());
    });
    wait_until("the endpoint is let go", || endpoint.open() == 0);
}

const KEY: &str = "dGhlIHNhbXBsZSBub25jZQ==";

/// An endpoint of HTTP/2 that takes WebSockets, as far as `script` does.
fn takes_websockets(script: impl AsyncFn(Exchange) + Send + Sync + 'static) -> Http2Endpoint {
    let script = std::sync::Arc::new(script);
    let builder = || {
        let mut builder = h2::server::Builder::new();
        builder.enable_connect_protocol();
        builder
    };
    Http2Endpoint::serving(builder, move |exchange| {
        let script = script.clone();
        Box::pin(async move { script(exchange).await })
    })
}

fn before_streams(endpoint: &Http2Endpoint) -> Setup {
    Setup::before_addresses([endpoint.address()]).pool("protocol = \"h2\"")
}

/// Asks for a WebSocket in the manner of HTTP/1.1.
fn ask(subak: &Subak, upgrade: &str, key: Option<&str>) -> Client {
    let mut client = subak.client();
    let key = key.map_or(String::new(), |key| format!("Sec-WebSocket-Key: {key}\r\n"));
    client.send(format!(
        "GET /chat?room=1 HTTP/1.1\r\nHost: example.com\r\nConnection: upgrade, X-Gone\r\nX-Gone: 1\r\n\
         Upgrade: {upgrade}\r\n{key}Sec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: chat\r\n\r\n"
    ));
    client
}

#[test]
fn an_http1_clients_websocket_is_a_stream_of_an_http2_endpoint() {
    let (seen, heads) = mpsc::channel::<(String, HeaderMap)>();
    let endpoint = takes_websockets(async move |mut exchange: Exchange| {
        let asked = &exchange.request;
        let protocol =
            asked.extensions().get::<Protocol>().map_or("", |protocol| protocol.as_str());
        let line = format!("{} {} {protocol}", asked.method(), asked.uri());
        seen.send((line, asked.headers().clone())).expect("test");
        let head = Response::builder().header("sec-websocket-protocol", "chat");
        let head = head.body(()).expect("head");
        let mut send = exchange.respond.send_response(head, false).expect("answered");
        let mut body = exchange.request.into_body();
        assert_eq!(read(&mut body, 4).await, b"\0\xff\r\n");
        send.send_data(Bytes::from_static(b"\x81\x02hi"), false).expect("data");
        assert_eq!(read(&mut body, 300_001).await, vec![b'x'; 300_000], "up to the end");
        let mut trailers = HeaderMap::new();
        trailers.insert("x-late", "1".parse().expect("a value"));
        send.send_data(Bytes::from(vec![b'y'; 300_000]), false).expect("data");
        send.send_trailers(trailers).expect("the end");
    });
    let subak = before_streams(&endpoint).listener("limits = { body = 1000 }").start();
    let mut client = ask(&subak, "websocket", Some(KEY));
    let head = client.head();
    assert_eq!(head.status, 101);
    assert_eq!(head.all("upgrade"), ["websocket"]);
    assert_eq!(head.all("connection"), ["upgrade"]);
    assert_eq!(head.all("sec-websocket-accept"), [proof(KEY)]);
    assert_eq!(head.all("sec-websocket-protocol"), ["chat"]);
    assert_eq!(head.field("content-length"), None);
    client.send(b"\0\xff\r\n");
    assert_eq!(client.read(4), b"\x81\x02hi");
    client.send(vec![b'x'; 300_000]);
    client.socket().end_sending();
    assert!(client.read_to_end() == (vec![b'y'; 300_000], End::Closed));
    let (line, fields) = heads.recv().expect("a request");
    assert_eq!(line, "CONNECT http://example.com/chat?room=1 websocket");
    let names: Vec<_> = fields.keys().map(|name| name.as_str()).collect();
    for gone in ["sec-websocket-key", "upgrade", "connection", "x-gone", "host", "content-length"] {
        assert!(!names.contains(&gone), "{gone}: {fields:?}");
    }
    assert_eq!(fields["sec-websocket-version"], "13");
    assert_eq!(fields["sec-websocket-protocol"], "chat");
}

#[test]
fn a_websocket_goes_through_two_subaks_whatever_its_client_speaks() {
    let endpoint = Endpoint::scripted(backwards);
    let inner = Setup::before(&[&endpoint]).start();
    let outer =
        Setup::before_addresses([inner.address().to_owned()]).pool("protocol = \"h2\"").start();
    let mut client = ask(&outer, "WebSocket", Some(KEY));
    let head = client.head();
    assert_eq!((head.status, head.field("sec-websocket-accept")), (101, Some(&*proof(KEY))));
    for _ in 0..100 {
        client.send(b"abcd");
        assert_eq!(client.read(4), b"dcba");
    }
    prior_knowledge(&outer, async |send| {
        allowed(&send).await;
        let (answer, mut stream) = connect(send, "websocket").await;
        assert_eq!(answer.status(), 200);
        assert!(!answer.headers().contains_key("sec-websocket-accept"));
        let mut body = answer.into_body();
        for _ in 0..100 {
            stream.send_data(Bytes::from_static(b"efgh"), false).expect("data");
            assert_eq!(read(&mut body, 4).await, b"hgfe");
        }
        stream.send_data(Bytes::new(), true).expect("the end");
        assert_eq!(read(&mut body, 1).await, b"");
    });
    client.socket().end_sending();
    assert_eq!(client.read_to_end(), (Vec::new(), End::Closed));
    wait_until("the endpoint is let go", || endpoint.open() == 0);
}

#[test]
fn an_http2_endpoint_that_refuses_a_websocket_serves_on() {
    // Refused before the stream has ended: what the client would have said is not waited for.
    let endpoint = takes_websockets(async |mut exchange: Exchange| {
        let head = Response::builder().status(403).body(()).expect("head");
        let mut send = exchange.respond.send_response(head, false).expect("answered");
        send.send_data(Bytes::from_static(b"no"), true).expect("data");
        let (asked, _) = exchange.read().await;
        assert!(asked.is_some(), "reset instead of ended");
    });
    let subak = before_streams(&endpoint).start();
    for _ in 0..3 {
        let mut client = ask(&subak, "websocket", Some(KEY));
        let answered = client.answer();
        assert_eq!((answered.status, answered.text().as_str()), (403, "no"));
        assert_eq!(answered.field("upgrade"), None);
    }
    wait_until("all streams have ended", || endpoint.requests().len() == 3);
    assert_eq!(endpoint.accepted(), 1);
}

#[test]
fn what_an_http2_endpoint_cannot_be_asked_is_answered_with_the_reason() {
    let endpoint = Http2Endpoint::named("plain");
    let subak = before_streams(&endpoint).start();
    assert_eq!(ask(&subak, "websocket", Some(KEY)).answer().status, 501);
    subak.wait_for_log("takes no WebSockets there");
    assert_eq!(ask(&subak, "other/2", None).answer().status, 501);
    subak.wait_for_log("only WebSocket can be switched to");
    let answered = ask(&subak, "websocket", None).answer();
    assert_eq!(answered.status, 400);
    assert!(answered.text().contains("Sec-WebSocket-Key"), "{}", answered.text());
    assert_eq!(endpoint.requests().len(), 0);
    assert_eq!(subak.get("/").1, "plain", "it serves what it can");
}

#[test]
fn where_the_endpoint_chooses_a_websocket_goes_by_the_http1_it_speaks_too() {
    let behind = Endpoint::scripted(backwards);
    let directory = fresh_directory();
    self_made_certificate(&directory);
    let both = fresh_address();
    let server = |address: &str, locations: &str| {
        format!(
            "server {{ listen {address} ssl http2; ssl_certificate site.pem;\n\
             ssl_certificate_key site.key; location / {{ return 200 $server_protocol; }}\n\
             {locations} }}\n"
        )
    };
    let chat = format!(
        "location /chat {{ proxy_pass http://{}; proxy_http_version 1.1;\n\
         proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection upgrade; }}",
        behind.address()
    );
    let servers = server(&both, &chat);
    let Some(_nginx) = Nginx::start(&directory, &servers, &both) else { return };
    let before = |address: &str| {
        let path = directory.display();
        Setup::before_addresses([address.to_owned()]).workers(1).pool(&format!(
            "protocol = \"auto\"\ntls = {{ ca = \"{path}/site.pem\", server_name = \"localhost\" }}"
        ))
    };
    let subak = before(&both).start();
    assert_eq!(subak.get("/").1, "HTTP/2.0");
    for _ in 0..2 {
        let mut client = ask(&subak, "websocket", Some(KEY));
        let head = client.head();
        assert_eq!((head.status, head.field("sec-websocket-accept")), (101, Some(&*proof(KEY))));
        client.send(b"abcd");
        assert_eq!(client.read(4), b"dcba");
        assert_eq!(subak.get("/").1, "HTTP/2.0", "others stay where they were");
    }
    // By an HTTP/2 client's stream as well.
    prior_knowledge(&subak, async |send| {
        allowed(&send).await;
        let (answer, mut stream) = connect(send, "websocket").await;
        assert_eq!(answer.status(), 200);
        stream.send_data(Bytes::from_static(b"efgh"), false).expect("data");
        assert_eq!(read(&mut answer.into_body(), 4).await, b"hgfe");
    });
    drop(subak);

    // One that speaks HTTP/2 alone is none the worse for it.
    let last = Endpoint::named("x");
    let path = directory.display();
    let alone = Setup::before(&[&last])
        .listener(&format!(
            "protocols = [\"h2\"]\n\
             tls = {{ certificates = [{{ chain = \"{path}/site.pem\", key = \"{path}/site.key\" }}] }}"
        ))
        .start();
    let subak = before(alone.address()).start();
    assert_eq!(subak.get("/").1, "x");
    assert_eq!(ask(&subak, "other/2", None).answer().status, 501);
    assert_eq!(subak.get("/").1, "x");
}

#[test]
fn a_reset_of_a_stream_to_an_endpoint_ends_the_clients_side_and_the_other_way_round() {
    let (ended, is_ended) = mpsc::channel();
    let endpoint = takes_websockets(async move |mut exchange: Exchange| {
        let mut send = exchange.respond.send_response(Response::new(()), false).expect("answered");
        let mut body = exchange.request.into_body();
        if read(&mut body, 4).await == b"stop" {
            send.send_reset(Reason::INTERNAL_ERROR);
            return;
        }
        send.send_data(Bytes::from_static(b"stay"), false).expect("data");
        let reset = std::future::poll_fn(|context| send.poll_reset(context)).await;
        ended.send(reset.expect("a reset")).expect("test");
    });
    let subak = before_streams(&endpoint).start();
    let mut client = ask(&subak, "websocket", Some(KEY));
    assert_eq!(client.head().status, 101);
    client.send("stop");
    assert_eq!(client.read_to_end().0, b"");
    let mut client = ask(&subak, "websocket", Some(KEY));
    assert_eq!(client.head().status, 101);
    client.send("stay");
    assert_eq!(client.read(4), b"stay");
    client.socket().reset_on_close();
    drop(client);
    assert_eq!(is_ended.recv_timeout(crate::support::PATIENCE), Ok(Reason::CANCEL));
    assert_eq!(endpoint.accepted(), 1);
}
