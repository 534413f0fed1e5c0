//! Connections: kept, reused, pipelined, closed; HTTP/1.0; unix sockets and IPv6 on both sides.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::support::http2::{run, self_made_certificate, tls};
use crate::support::{
    Client, Endpoint, Framing, Setup, fresh_address_v6, fresh_directory, ok, wait_until,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const GET: &str = "GET / HTTP/1.1\r\nHost: example.com\r\n\r\n";

#[test]
fn a_client_connection_carries_one_request_after_another() {
    let endpoint = Endpoint::named("x");
    let subak = Setup::before(&[&endpoint]).start();
    let mut client = subak.client();
    for number in 0..20 {
        let answer = client.get(&format!("/{number}"));
        assert_eq!((answer.status, &*answer.text()), (200, "x"));
        assert!(answer.field("connection").is_none());
    }
    assert_eq!(endpoint.requests().len(), 20);
    assert_eq!(endpoint.accepted(), 1, "one connection to the endpoint is enough");
}

#[test]
fn connections_to_endpoints_are_shared_by_clients() {
    let endpoint = Endpoint::named("x");
    let subak = Setup::before(&[&endpoint]).start();
    for _ in 0..10 {
        assert_eq!(subak.get("/").0, 200);
    }
    assert_eq!(endpoint.accepted(), 1);
}

#[test]
fn pipelined_requests_are_answered_in_their_order() {
    let endpoint = Endpoint::scripted(|served| {
        while let Some(request) = served.request() {
            served.send(ok(&request.line));
        }
    });
    let subak = Setup::before(&[&endpoint]).start();
    let mut client = subak.client();
    let mut bytes = String::new();
    for number in 0..50 {
        bytes += &match number % 3 {
            0 => format!("GET /{number} HTTP/1.1\r\nHost: a\r\n\r\n"),
            1 => format!("POST /{number} HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc"),
            _ => format!(
                "POST /{number} HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n\
                 3\r\nabc\r\n0\r\n\r\n"
            ),
        };
    }
    client.send(&bytes);
    for number in 0..50 {
        let method = if number % 3 == 0 { "GET" } else { "POST" };
        assert_eq!(client.answer().text(), format!("{method} /{number} HTTP/1.1"));
    }
    assert_eq!(endpoint.requests().len(), 50);
}

/// So many that they fill buffers on the way more than once.
const MANY: usize = 3000;

/// Requests behind each other; the last one also asks for the end.
fn many_requests() -> String {
    let all = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(MANY - 1);
    all + "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
}

#[test]
fn many_requests_in_one_write_are_all_answered() {
    let endpoint = Endpoint::named("x");
    let subak = Setup::before(&[&endpoint]).start();
    let mut client = subak.client();
    client.send(many_requests());
    let (answers, _) = client.read_to_end();
    assert_eq!(String::from_utf8_lossy(&answers).matches("HTTP/1.1 200 OK\r\n").count(), MANY);
}

#[test]
fn many_requests_in_one_write_are_all_answered_over_tls_too() {
    let endpoint = Endpoint::named("x");
    let directory = fresh_directory();
    let trusted = self_made_certificate(&directory);
    let (chain, key) = (directory.join("site.pem"), directory.join("site.key"));
    let subak = Setup::before(&[&endpoint])
        .listener(&format!("tls = {{ certificates = [{{ chain = {chain:?}, key = {key:?} }}] }}"))
        .start();
    let address = subak.socket_address();
    let mut answers = Vec::new();
    run(async {
        let mut stream = tls(address, trusted, &["http/1.1"]).await;
        stream.write_all(many_requests().as_bytes()).await.expect("send");
        stream.read_to_end(&mut answers).await.expect("answers with an orderly end");
    });
    assert_eq!(String::from_utf8_lossy(&answers).matches("HTTP/1.1 200 OK\r\n").count(), MANY);
    let _ = std::fs::remove_dir_all(directory);
}

#[test]
fn a_request_may_arrive_byte_by_byte() {
    let endpoint = Endpoint::named("x");
    let subak = Setup::before(&[&endpoint]).start();
    let mut client = subak.client();
    let bytes = b"POST /slow HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n\
        5;x=\"y\"\r\nabcde\r\n1\r\nf\r\n0\r\nT: z\r\n\r\n";
    for byte in bytes {
        client.send([*byte]);
    }
    assert_eq!(client.answer().status, 200);
    let request = endpoint.request();
    assert_eq!(request.text(), "abcdef");
    assert_eq!(request.trailers, [("t".to_owned(), "z".to_owned())]);
}

#[test]
fn an_answer_may_arrive_byte_by_byte() {
    let endpoint = Endpoint::scripted(|served| {
        while served.request().is_some() {
            for byte in b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\
                5\r\nabcde\r\n1\r\nf\r\n0\r\nT: z\r\n\r\n"
            {
                served.send([*byte]);
            }
        }
    });
    let subak = Setup::before(&[&endpoint]).start();
    let mut client = subak.client();
    for _ in 0..2 {
        let answer = client.get("/");
        assert_eq!(answer.text(), "abcdef");
        assert_eq!(answer.trailers, [("t".to_owned(), "z".to_owned())]);
    }
    assert_eq!(endpoint.accepted(), 1);
}

#[test]
fn a_client_that_says_close_is_closed() {
    let endpoint = Endpoint::named("x");
    let subak = Setup::before(&[&endpoint]).start();
    let mut client = subak.client();
    client.send("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    let answer = client.answer();
    assert_eq!(answer.field("connection"), Some("close"));
    client.assert_ends();
    // What a client says of its connection is not the endpoint's business.
    assert_eq!(endpoint.request().field("connection"), None);
    assert_eq!(subak.get("/").0, 200);
    assert_eq!(endpoint.accepted(), 1);
}

#[test]
fn a_client_that_ends_its_side_still_gets_the_answer() {
    let endpoint = Endpoint::named("x");
    let subak = Setup::before(&[&endpoint]).start();
    let mut client = subak.client();
    client.send(GET);
    client.socket().end_sending();
    assert_eq!(client.answer().text(), "x");
    client.assert_ends();
}

#[test]
fn an_endpoint_that_says_close_is_not_used_again() {
    let endpoint =
        Endpoint::answering("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\nx");
    let subak = Setup::before(&[&endpoint]).start();
    let mut client = subak.client();
    for _ in 0..3 {
        let answer = client.get("/");
        assert_eq!(answer.status, 200);
        // The client's own connection goes on.
        assert_eq!(answer.field("connection"), None);
    }
    assert_eq!(endpoint.accepted(), 3);
}

#[test]
fn bytes_behind_an_answer_end_the_endpoints_connection_and_reach_nobody() {
    let endpoint = Endpoint::answering(
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nxHTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison",
    );
    let subak = Setup::before(&[&endpoint]).start();
    let mut client = subak.client();
    for _ in 0..3 {
        assert_eq!(client.get("/").text(), "x");
    }
    assert_eq!(endpoint.accepted(), 3);
}

#[test]
fn bytes_that_arrive_on_an_idle_endpoint_connection_reach_nobody() {
    let sent = Arc::new(AtomicUsize::new(0));
    let counted = sent.clone();
    let endpoint = Endpoint::scripted(move |served| {
        while served.request().is_some() {
            served.send(ok("x"));
            served.send(ok("poison"));
            counted.fetch_add(1, Ordering::SeqCst);
        }
    });
    let subak = Setup::before(&[&endpoint]).start();
    let mut client = subak.client();
    for number in 1..=20 {
        assert_eq!(client.get("/").text(), "x");
        wait_until("the other answer is there", || sent.load(Ordering::SeqCst) == number);
    }
    assert_eq!(endpoint.accepted(), 20);
}

#[test]
fn idle_connections_to_endpoints_are_closed_in_time() {
    let endpoint = Endpoint::named("x");
    let subak = Setup::before(&[&endpoint]).pool("timeouts = { keep_alive = \"200ms\" }").start();
    assert_eq!(subak.get("/").0, 200);
    wait_until("the endpoint is rid of the connection", || endpoint.open() == 0);
    assert_eq!(subak.get("/").0, 200);
    assert_eq!(endpoint.accepted(), 2);
}

#[test]
fn no_more_idle_connections_are_kept_than_configured() {
    let endpoint = Endpoint::named("x");
    let subak = Setup::before(&[&endpoint]).pool("keep_alive_connections = 0").start();
    let mut client = subak.client();
    for _ in 0..3 {
        assert_eq!(client.get("/").status, 200);
    }
    assert_eq!(endpoint.accepted(), 3);
    wait_until("all are closed", || endpoint.open() == 0);
}

#[test]
fn an_http10_client_is_closed_after_one_answer() {
    let endpoint = Endpoint::named("x");
    let subak = Setup::before(&[&endpoint]).start();
    let mut client = subak.client();
    client.send("GET / HTTP/1.0\r\nHost: a\r\n\r\n");
    let answer = client.answer();
    assert_eq!(answer.framing, Framing::Known(1));
    assert_eq!(answer.field("connection"), Some("close"));
    client.assert_ends();
    assert_eq!(endpoint.request().line, "GET / HTTP/1.1");
}

#[test]
fn an_http10_client_may_keep_its_connection_as_ab_does() {
    let endpoint = Endpoint::named("hello");
    let subak = Setup::before(&[&endpoint]).start();
    let mut client = subak.client();
    for _ in 0..5 {
        client.send("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\nHost: a\r\nUser-Agent: ApacheBench/2.3\r\n\r\n");
        let answer = client.answer();
        assert_eq!(
            answer.field("connection").map(str::to_ascii_lowercase).as_deref(),
            Some("keep-alive")
        );
        assert_eq!((answer.framing, &*answer.text()), (Framing::Known(5), "hello"));
    }
    assert_eq!(endpoint.accepted(), 1);
}

#[test]
fn an_http10_client_gets_a_chunked_answer_without_its_chunks() {
    let endpoint = Endpoint::answering(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6\r\n world\r\n0\r\nT: z\r\n\r\n",
    );
    let subak = Setup::before(&[&endpoint]).start();
    let mut client = subak.client();
    client.send("GET / HTTP/1.0\r\nConnection: keep-alive\r\nHost: a\r\n\r\n");
    let answer = client.answer();
    // Only the end of the connection can tell where such a body ends.
    assert_eq!(answer.framing, Framing::UntilClose);
    assert_eq!(answer.field("connection"), Some("close"));
    assert_eq!(answer.text(), "hello world");
}

#[test]
fn an_http10_client_does_not_take_half_an_answer_for_all_of_it() {
    let endpoint = Endpoint::answering_once(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
    );
    let subak = Setup::before(&[&endpoint]).start();
    let mut client = subak.client();
    client.send("GET / HTTP/1.0\r\nHost: a\r\n\r\n");
    let (_, end) = client.read_to_end();
    // Its end is the end of the body: only a reset says that this one is not complete.
    assert_eq!(end, crate::support::End::Reset);
}

#[test]
fn an_http10_endpoint_serves_http11_clients() {
    let endpoint = Endpoint::answering_once("HTTP/1.0 200 OK\r\nX: y\r\n\r\nuntil close");
    let subak = Setup::before(&[&endpoint]).start();
    let mut client = subak.client();
    for _ in 0..3 {
        let answer = client.get("/");
        assert_eq!((answer.framing, &*answer.text()), (Framing::Chunked, "until close"));
        assert_eq!(answer.line, "HTTP/1.1 200 OK");
    }
    assert_eq!(endpoint.accepted(), 3);
}

#[test]
fn an_http10_endpoint_may_keep_its_connection() {
    let endpoint = Endpoint::answering(
        "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 1\r\n\r\nx",
    );
    let subak = Setup::before(&[&endpoint]).start();
    for _ in 0..3 {
        assert_eq!(subak.get("/"), (200, "x".into()));
    }
    assert_eq!(endpoint.accepted(), 1);
}

#[test]
fn an_http10_client_reads_an_http10_endpoint() {
    let endpoint = Endpoint::answering_once("HTTP/1.0 200 OK\r\n\r\nuntil close");
    let subak = Setup::before(&[&endpoint]).start();
    let mut client = subak.client();
    client.send("GET / HTTP/1.0\r\n\r\n");
    let answer = client.answer();
    assert_eq!((answer.framing, &*answer.text()), (Framing::UntilClose, "until close"));
    // A request without Host gets the endpoint's own.
    assert_eq!(endpoint.request().field("host"), Some(&*endpoint.address()));
}

#[test]
fn ipv6_is_spoken_on_both_sides() {
    let endpoint = Endpoint::scripted_v6(|served| {
        while served.request().is_some() {
            served.send(ok("six"));
        }
    });
    let subak = Setup::before(&[&endpoint]).bind(&fresh_address_v6()).start();
    assert_eq!(subak.get("/"), (200, "six".into()));
    assert_eq!(endpoint.request().field("x-forwarded-for"), Some("::1"));
}

#[test]
fn unix_sockets_are_spoken_on_both_sides() {
    let directory = fresh_directory();
    let (front, behind) = (directory.join("front.sock"), directory.join("behind.sock"));
    let endpoint = Endpoint::scripted_unix(&behind, |served| {
        while let Some(request) = served.request() {
            served.send(ok(&request.text()));
        }
    });
    let subak =
        Setup::before(&[&endpoint]).bind(&format!("unix:{}", front.display())).workers(2).start();
    for _ in 0..4 {
        let mut client = Client::connect_unix(&front);
        client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nunix");
        assert_eq!(client.answer().text(), "unix");
    }
    assert_eq!(endpoint.requests()[0].field("x-forwarded-for"), Some("unix"));
    assert!(endpoint.accepted() <= 2, "one connection a worker");
    drop(subak);
    let _ = std::fs::remove_dir_all(directory);
}
