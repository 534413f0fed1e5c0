//! WebSocket over streams of HTTP/2 (RFC 8441): an extended CONNECT becomes HTTP/1.1's handshake, its
//! proof is looked at, and then both directions are plain bytes.

mod support;

use std::sync::mpsc;
use std::time::Duration;

use bytes::Bytes;
use h2::client::SendRequest;
use h2::ext::Protocol;
use h2::{RecvStream, SendStream};
use http::{Method, Request, Response};
use support::http2::{h2_get, prior_knowledge, run, self_made_certificate, tls};
use support::{Endpoint, Served, Setup, fresh_directory, wait_until};

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
    let key = request.field("sec-websocket-key").expect("a key");
    let mut digest = aws_lc_rs::digest::Context::new(&aws_lc_rs::digest::SHA1_FOR_LEGACY_USE_ONLY);
    digest.update(format!("{key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11").as_bytes());
    let proof = base64(digest.finish().as_ref());
    served.send(format!(
        "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Accept: {proof}\r\nSec-WebSocket-Protocol: chat\r\n\r\n"
    ));
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
        let send = support::http2::h2_over(stream).await;
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
        let (answer, _) = support::http2::h2_exchange(send, plain.expect("request"), None).await;
        assert_eq!(answer.status(), 405);
    });
    assert_eq!(endpoint.requests().len(), 1);
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
