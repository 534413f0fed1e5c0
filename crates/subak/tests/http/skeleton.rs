//! One data path for every protocol: HTTP/1.1, HTTP/2 by prior knowledge and both over TLS go through
//! the same route and pool to an HTTP/1.1 endpoint.

use crate::support::http2::{h2_get, h2_over, prior_knowledge, run, self_made_certificate, tls};
use crate::support::{Endpoint, Setup, fresh_directory};
use bytes::Bytes;
use http::{Request, Version};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

#[test]
fn http1_clients_reach_the_pool() {
    let endpoint = Endpoint::named("one");
    let subak = Setup::before(&[&endpoint]).start();
    assert_eq!(subak.get("/a?b=c"), (200, "one".into()));
    assert_eq!(endpoint.request().line, "GET /a?b=c HTTP/1.1");
}

#[test]
fn http2_clients_reach_the_pool_by_prior_knowledge() {
    let endpoint = Endpoint::named("two");
    let subak = Setup::before(&[&endpoint]).start();
    let (answer, body) =
        prior_knowledge(&subak, async |send| h2_get(send, "http://example.com/a?b=c").await);
    assert_eq!((answer.status().as_u16(), &*body), (200, "two"));
    assert_eq!(answer.version(), Version::HTTP_2);
    let request = endpoint.request();
    assert_eq!(request.line, "GET /a?b=c HTTP/1.1");
    assert_eq!(request.all("host"), ["example.com"]);
    assert_eq!(request.field("x-forwarded-proto"), Some("http"));
}

#[test]
fn tls_clients_reach_the_pool_by_either_version() {
    let endpoint = Endpoint::named("three");
    let directory = fresh_directory();
    let trusted = self_made_certificate(&directory);
    let (chain, key) = (directory.join("site.pem"), directory.join("site.key"));
    let subak = Setup::before(&[&endpoint])
        .listener(&format!("tls = {{ certificates = [{{ chain = {chain:?}, key = {key:?} }}] }}"))
        .start();
    let address = subak.socket_address();
    run(tokio::task::LocalSet::new().run_until(async {
        let mut stream = tls(address, trusted.clone(), &["http/1.1"]).await;
        let request = b"GET /1 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
        stream.write_all(request).await.expect("send");
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.expect("an answer with an orderly end");
        let answer = String::from_utf8(answer).expect("text");
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("three"), "{answer}");

        let stream = tls(address, trusted, &["h2", "http/1.1"]).await;
        assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
        let (answer, body) = h2_get(h2_over(stream).await, "https://localhost/2").await;
        assert_eq!((answer.status().as_u16(), &*body), (200, "three"));
    }));
    let requests = endpoint.requests();
    assert_eq!(requests.len(), 2);
    assert!(requests.iter().all(|request| request.field("x-forwarded-proto") == Some("https")));
    // The same pool, so the same connection.
    assert_eq!(endpoint.accepted(), 1);
    let _ = std::fs::remove_dir_all(directory);
}

#[test]
fn a_listener_speaks_only_what_it_is_told_to() {
    let endpoint = Endpoint::named("x");
    let only1 = Setup::before(&[&endpoint]).listener("protocols = [\"http/1.1\"]").start();
    let mut client = only1.client();
    client.send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    assert_eq!(client.answer().status, 505);
    client.assert_ends();
    let only2 = Setup::before(&[&endpoint]).listener("protocols = [\"h2\"]").start();
    let answer = only2.client().get("/");
    assert_eq!(answer.status, 505);
    assert!(endpoint.requests().is_empty());
}

#[test]
fn large_bodies_arrive_whole_over_tls_by_either_version() {
    let endpoint = Endpoint::scripted(|served| {
        while let Some(request) = served.request() {
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", request.body.len());
            served.send([head.as_bytes(), &request.body].concat());
        }
    });
    let directory = fresh_directory();
    let trusted = self_made_certificate(&directory);
    let (chain, key) = (directory.join("site.pem"), directory.join("site.key"));
    let subak = Setup::before(&[&endpoint])
        .listener(&format!("tls = {{ certificates = [{{ chain = {chain:?}, key = {key:?} }}] }}"))
        .start();
    let address = subak.socket_address();
    // Every position is recognisable.
    let body: Bytes = (0..1_500_000u32).flat_map(u32::to_le_bytes).collect();
    run(tokio::task::LocalSet::new().run_until(async {
        let (mut read, mut write) =
            tokio::io::split(tls(address, trusted.clone(), &["http/1.1"]).await);
        let head = format!(
            "PUT / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        let sent = body.clone();
        let sender = tokio::task::spawn_local(async move {
            write.write_all(head.as_bytes()).await.expect("head");
            write.write_all(&sent).await.expect("body");
            write.flush().await.expect("body");
            write
        });
        let mut answer = Vec::new();
        read.read_to_end(&mut answer).await.expect("an answer with an orderly end");
        sender.await.expect("sender");
        assert!(answer.ends_with(&body), "{} bytes came back", answer.len());

        let mut send =
            h2_over(tls(address, trusted, &["h2"]).await).await.ready().await.expect("h2");
        let request = Request::put("https://localhost/").body(()).expect("request");
        let (answer, mut stream) = send.send_request(request, false).expect("request");
        let mut rest = body.clone();
        let sender = tokio::task::spawn_local(async move {
            while !rest.is_empty() {
                stream.reserve_capacity(rest.len());
                let room = std::future::poll_fn(|context| stream.poll_capacity(context)).await;
                let room = room.expect("open").expect("room").min(rest.len());
                let piece = rest.split_to(room);
                stream.send_data(piece, rest.is_empty()).expect("data");
            }
        });
        let mut back = answer.await.expect("answer").into_body();
        let mut received = Vec::new();
        while let Some(data) = back.data().await {
            let data = data.expect("data");
            back.flow_control().release_capacity(data.len()).expect("capacity");
            received.extend_from_slice(&data);
        }
        sender.await.expect("sender");
        assert!(received == body, "{} bytes came back", received.len());
    }));
    let _ = std::fs::remove_dir_all(directory);
}
