//! Clients and endpoints that leave, lie about what they send, or never begin.

use std::io::Write;
use std::sync::{Mutex, mpsc};
use std::time::{Duration, Instant};

use crate::support::http2::{h2_get, prior_knowledge, self_made_certificate};
use crate::support::{Client, Deaf, Endpoint, Served, Setup, fresh_directory, ok, wait_until};
use http::Request;

const UPGRADE: &str =
    "GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n";
const SWITCHED: &str =
    "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n";

#[test]
fn a_client_that_leaves_in_its_body_leaves_nothing_complete_behind() {
    for head in
        ["Content-Length: 10\r\n\r\nhalf", "Transfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n"]
    {
        let endpoint = Endpoint::named("x");
        let subak = Setup::before(&[&endpoint]).pool("max_in_flight = 1").start();
        let mut client = subak.client();
        client.send(format!("PUT / HTTP/1.1\r\nHost: a\r\n{head}"));
        wait_until("the endpoint has a part of it", || {
            endpoint.received().iter().any(|bytes| bytes.windows(4).any(|four| four == b"half"))
        });
        client.socket().reset_on_close();
        drop(client);
        wait_until("the endpoint is told", || endpoint.open() == 0);
        assert!(endpoint.requests().is_empty(), "{head:?}");
        assert_eq!(subak.get("/").0, 200, "its place is free again");
    }
}

#[test]
fn a_client_that_ends_its_side_in_its_body_is_answered_400() {
    let endpoint = Endpoint::named("x");
    let subak = Setup::before(&[&endpoint]).start();
    let mut client = subak.client();
    client.send("PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhalf");
    client.socket().end_sending();
    assert_eq!(client.answer().status, 400);
    client.assert_ends();
    wait_until("the endpoint is told", || endpoint.open() == 0);
    assert!(endpoint.requests().is_empty());
}

#[test]
fn a_client_that_leaves_in_its_answer_lets_the_endpoint_go() {
    let endpoint = Endpoint::scripted(|served| {
        while let Some(request) = served.request() {
            if request.line.starts_with("GET /endless ") {
                served.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
                while served.socket().write_all(b"5\r\nabcde\r\n").is_ok() {}
                return;
            }
            served.send(ok("x"));
        }
    });
    let subak = Setup::before(&[&endpoint]).pool("max_in_flight = 1").start();
    let mut client = subak.client();
    client.send("GET /endless HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(client.head().status, 200);
    drop(client);
    wait_until("the endpoint is told", || endpoint.open() == 0);
    assert_eq!(subak.get("/").0, 200);
}

/// Answers every request but `GET /never`, on which it waits for the end.
fn answers_or_never(served: &mut Served) {
    while let Some(request) = served.request() {
        if request.line.starts_with("GET /never ") {
            served.read_to_end();
            return;
        }
        served.send(ok("x"));
    }
}

#[test]
fn a_stream_that_is_reset_while_its_connection_is_opened_gives_its_place_up() {
    let deaf = Deaf::new();
    let subak = Setup::before_addresses([deaf.address()])
        .pool("max_in_flight = 1\ntimeouts = { connect = \"1m\" }")
        .start();
    prior_knowledge(&subak, async |send| {
        let mut ready = send.clone().ready().await.expect("ready");
        let request = Request::get("http://a.example/").body(()).expect("request");
        let (answer, mut stream) = ready.send_request(request, true).expect("ok");
        while deaf.attempts() == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        stream.send_reset(h2::Reason::CANCEL);
        drop(answer);
        while deaf.attempts() > 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let endpoint = deaf.hear(answers_or_never);
        assert_eq!(h2_get(send, "http://a.example/").await.1, "x");
        assert_eq!(endpoint.requests().len(), 1);
    });
}

#[test]
fn a_client_that_resets_while_its_connection_is_opened_gives_its_place_up() {
    let deaf = Deaf::new();
    let subak = Setup::before_addresses([deaf.address()])
        .pool("max_in_flight = 1\ntimeouts = { connect = \"1m\" }")
        .start();
    let mut client = subak.client();
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    wait_until("its connection is being opened", || deaf.attempts() == 1);
    client.socket().reset_on_close();
    drop(client);
    wait_until("the attempt has ended", || deaf.attempts() == 0);
    let endpoint = deaf.hear(answers_or_never);
    assert_eq!(subak.get("/").0, 200);
    assert_eq!(endpoint.requests().len(), 1);
}

/// How a client leaves.
#[derive(Clone, Copy)]
enum Leaving {
    /// By a reset.
    Reset,
    /// As a program that ends, or calls `close`: by a FIN.
    Close,
    /// By a FIN behind a second request, which nobody has read.
    ClosePipelined,
}

impl Leaving {
    const ALL: [Leaving; 3] = [Leaving::Reset, Leaving::Close, Leaving::ClosePipelined];

    fn leave(self, mut client: Client) {
        match self {
            Leaving::Reset => client.socket().reset_on_close(),
            Leaving::Close => {}
            Leaving::ClosePipelined => client.send("GET /more HTTP/1.1\r\nHost: a\r\n\r\n"),
        }
    }
}

#[test]
fn a_client_that_leaves_while_its_endpoint_is_silent_lets_the_endpoint_go() {
    for leaving in Leaving::ALL {
        let endpoint = Endpoint::scripted(answers_or_never);
        let subak = Setup::before(&[&endpoint]).pool("max_in_flight = 1").start();
        let mut client = subak.client();
        // The second request: the connection has been idle in between.
        for (path, asked) in [("/", 1), ("/never", 2)] {
            client.send(format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n"));
            endpoint.wait_for_requests(asked);
            if path == "/" {
                assert_eq!(client.answer().text(), "x");
            }
        }
        leaving.leave(client);
        wait_until("the endpoint is let go", || endpoint.open() == 0);
        assert_eq!(subak.get("/").0, 200, "its place is free again");
        assert_eq!(endpoint.requests().len(), 3, "what was pipelined behind it is not asked");
        subak.wait_for_log("the client left");
    }
}

#[test]
fn a_client_that_leaves_while_it_waits_in_line_gives_its_place_up() {
    let endpoint = Endpoint::scripted(answers_or_never);
    let subak = Setup::before(&[&endpoint])
        .pool("max_in_flight = 1\nqueue = { length = 1, timeout = \"1m\" }")
        .start();
    let mut holder = subak.client();
    holder.send("GET /never HTTP/1.1\r\nHost: a\r\n\r\n");
    endpoint.wait_for_requests(1);
    let requests = [
        "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
        // Its body is not read before it has an endpoint.
        "PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbody",
    ];
    let ways = requests.iter().flat_map(|request| Leaving::ALL.map(|leaving| (request, leaving)));
    for (number, (request, leaving)) in (1..).zip(ways) {
        let mut client = subak.client();
        client.send(request);
        // There is one place in line; who finds none is answered 503.
        wait_until("it waits", || {
            subak.log().matches("a request waits for an endpoint").count() == number
        });
        leaving.leave(client);
        wait_until("it is missed", || subak.log().matches("the client left").count() == number);
    }
}

/// Answers `GET /late` when it is told to.
fn late() -> (Endpoint, mpsc::Sender<()>) {
    let (go_on, wait) = mpsc::channel();
    let wait = Mutex::new(wait);
    let endpoint = Endpoint::scripted(move |served| {
        while let Some(request) = served.request() {
            if request.line.starts_with("GET /late ") {
                wait.lock().expect("one such request").recv().expect("go on");
            }
            served.send(ok("x"));
        }
    });
    (endpoint, go_on)
}

#[test]
fn a_client_that_ends_its_side_gets_its_late_responses_where_half_close_says_so() {
    let (endpoint, go_on) = late();
    let subak = Setup::before(&[&endpoint]).listener("half_close = true").start();
    let mut client = subak.client();
    client.send("GET /late HTTP/1.1\r\nHost: a\r\n\r\nGET /behind HTTP/1.1\r\nHost: a\r\n\r\n");
    endpoint.wait_for_requests(1);
    client.socket().end_sending();
    // Longer than it takes until Subak looks whether it is still there.
    client.assert_silent(Duration::from_secs(2));
    go_on.send(()).expect("endpoint");
    assert_eq!(client.answer().text(), "x");
    assert_eq!(client.answer().text(), "x");
    client.assert_ends();
}

#[test]
fn a_request_pipelined_while_the_endpoint_is_silent_is_answered_in_its_turn() {
    let (endpoint, go_on) = late();
    let subak = Setup::before(&[&endpoint]).start();
    let mut client = subak.client();
    client.send("GET /late HTTP/1.1\r\nHost: a\r\n\r\n");
    endpoint.wait_for_requests(1);
    // Long enough for Subak to look, and to read the next requests ahead: more than fits.
    client.assert_silent(Duration::from_millis(1500));
    let behind = format!("GET /behind HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n", "x".repeat(5000));
    client.send(behind.repeat(10));
    client.assert_silent(Duration::from_millis(1500));
    go_on.send(()).expect("endpoint");
    for _ in 0..11 {
        assert_eq!(client.answer().text(), "x");
    }
}

#[test]
fn requests_behind_a_last_one_are_not_read() {
    let endpoint = Endpoint::named("x");
    let subak = Setup::before(&[&endpoint]).start();
    let mut client = subak.client();
    client.send(
        "GET /last HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n\
         GET /behind HTTP/1.1\r\nHost: a\r\n\r\n",
    );
    assert_eq!(client.answer().status, 200);
    client.assert_ends();
    assert_eq!(endpoint.request().line, "GET /last HTTP/1.1");
}

#[test]
fn an_error_behind_a_good_request_does_not_harm_its_answer() {
    let endpoint = Endpoint::named("good");
    let subak = Setup::before(&[&endpoint]).start();
    let mut client = subak.client();
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nHost : a\r\n\r\n");
    assert_eq!(client.answer().text(), "good");
    assert_eq!(client.answer().status, 400);
    client.assert_ends();
}

#[test]
fn a_client_that_asks_and_never_reads_is_not_read_either() {
    let endpoint = Endpoint::answering(ok(&"z".repeat(10_000)));
    let subak = Setup::before(&[&endpoint]).listener("timeouts = { write_idle = \"1s\" }").start();
    assert_eq!(subak.get("/").0, 200);
    let before = subak.resident_kib();
    let mut client = subak.client();
    let requests = "GET / HTTP/1.1\r\nHost: a\r\n\r\n".repeat(1000);
    let mut sent = 0;
    // Until Subak stops reading, and in the end gives up.
    while client.try_send(&requests).is_ok() {
        sent += 1000;
        assert!(sent < 5_000_000, "it is still being read");
    }
    assert!(subak.resident_kib() - before < 2048, "{} KiB more", subak.resident_kib() - before);
    assert!(endpoint.requests().len() < sent, "all of it was read ahead");
}

#[test]
fn a_body_where_there_can_be_none_poisons_nobody() {
    let endpoint = Endpoint::scripted(|served| {
        while let Some(request) = served.request() {
            let path = request.line.split(' ').nth(1).unwrap_or_default();
            served.send(match path {
                "/head" => "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison",
                "/204" => "HTTP/1.1 204 No Content\r\n\r\npoison",
                "/304" => "HTTP/1.1 304 Not Modified\r\nContent-Length: 6\r\n\r\npoison",
                _ => "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ngood",
            });
        }
    });
    let subak = Setup::before(&[&endpoint]).start();
    let mut client = subak.client();
    for (method, path, status) in
        [("HEAD", "/head", 200), ("GET", "/204", 204), ("GET", "/304", 304)]
    {
        client.send(format!("{method} {path} HTTP/1.1\r\nHost: a\r\n\r\n"));
        assert_eq!(client.answer_to(method).status, status);
        assert_eq!(client.get("/good").text(), "good", "after {path}");
    }
}

#[test]
fn an_endpoint_that_ends_a_tunnel_ends_it_for_the_client() {
    let endpoint = Endpoint::scripted(|served| {
        served.request();
        served.send([SWITCHED.as_bytes(), b"bye"].concat());
    });
    let subak = Setup::before(&[&endpoint]).start();
    let mut client = subak.client();
    client.send(UPGRADE);
    assert_eq!(client.head().status, 101);
    let (rest, _) = client.read_to_end();
    assert_eq!(rest, b"bye");
}

/// A tunnel whose other side may be silent for an hour.
const TUNNEL: &str = "timeouts = { idle = \"400ms\", tunnel = \"1h\" }";

#[track_caller]
fn ended_after_idle(began: Instant) {
    let took = began.elapsed();
    assert!(took >= Duration::from_millis(400), "too early: {took:?}");
    assert!(took < Duration::from_secs(10), "too late: {took:?}");
}

#[test]
fn a_tunnel_that_its_client_has_ended_is_not_held_open_by_a_silent_endpoint() {
    let (done, wait) = mpsc::channel::<()>();
    let wait = Mutex::new(wait);
    let endpoint = Endpoint::scripted(move |served| {
        served.request();
        served.send(SWITCHED);
        served.read_to_end();
        // It keeps its side open for as long as the test lasts.
        let _ = wait.lock().expect("one tunnel").recv();
    });
    let subak = Setup::before(&[&endpoint]).pool(TUNNEL).start();
    let mut client = subak.client();
    client.send(UPGRADE);
    assert_eq!(client.head().status, 101);
    let began = Instant::now();
    client.socket().end_sending();
    client.assert_ends();
    ended_after_idle(began);
    drop(done);
}

#[test]
fn a_tunnel_that_its_endpoint_has_ended_is_not_held_open_by_a_silent_client() {
    let endpoint = Endpoint::scripted(|served| {
        served.request();
        served.send(SWITCHED);
        served.socket().end_sending();
        served.read_to_end();
    });
    let subak = Setup::before(&[&endpoint]).pool(TUNNEL).start();
    let mut client = subak.client();
    let began = Instant::now();
    client.send(UPGRADE);
    assert_eq!(client.head().status, 101);
    client.assert_ends();
    wait_until("the endpoint is let go", || endpoint.accepted() == 1 && endpoint.open() == 0);
    ended_after_idle(began);
}

#[test]
fn an_endpoint_that_resets_a_tunnel_frees_both_sides() {
    let (go_on, wait) = mpsc::channel();
    let wait = Mutex::new(wait);
    let endpoint = Endpoint::scripted(move |served| {
        if served.request().is_some_and(|request| request.field("upgrade").is_some()) {
            served.send(SWITCHED);
            wait.lock().expect("one tunnel").recv().expect("go on");
            served.reset();
        } else {
            served.send(ok("x"));
        }
    });
    let subak = Setup::before(&[&endpoint]).pool("max_in_flight = 1").start();
    let mut client = subak.client();
    client.send(UPGRADE);
    assert_eq!(client.head().status, 101);
    go_on.send(()).expect("endpoint");
    client.assert_ends();
    assert_eq!(subak.get("/").0, 200, "its place is free again");
}

#[test]
fn a_tunnel_counts_as_in_flight_until_it_ends() {
    let endpoint = Endpoint::scripted(|served| {
        while let Some(request) = served.request() {
            if request.field("upgrade").is_some() {
                served.send(SWITCHED);
                served.read_to_end();
                return;
            }
            served.send(ok("x"));
        }
    });
    let subak = Setup::before(&[&endpoint])
        .pool("max_in_flight = 1\nqueue = { timeout = \"200ms\" }")
        .start();
    let mut client = subak.client();
    client.send(UPGRADE);
    assert_eq!(client.head().status, 101);
    assert_eq!(subak.get("/").0, 503);
    drop(client);
    wait_until("the tunnel has ended", || subak.get("/").0 == 200);
}

#[test]
fn a_handshake_that_does_not_come_is_not_waited_for() {
    let endpoint = Endpoint::named("x");
    let directory = fresh_directory();
    self_made_certificate(&directory);
    let (chain, key) = (directory.join("site.pem"), directory.join("site.key"));
    let subak = Setup::before(&[&endpoint])
        .listener(&format!("tls = {{ certificates = [{{ chain = {chain:?}, key = {key:?} }}] }}"))
        .listener("timeouts = { head = \"300ms\" }")
        .start();
    let began = Instant::now();
    subak.client().assert_ends();
    let mut half = subak.client();
    half.send(b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03");
    half.assert_ends();
    assert!(began.elapsed() < Duration::from_secs(10));
    // Cleartext there is no request: it is told where to go and goes no further.
    let mut plain = subak.client();
    plain.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    let (bytes, _) = plain.read_to_end();
    assert!(bytes.starts_with(b"HTTP/1.1 400 "), "{bytes:?}");
    assert_eq!(endpoint.accepted(), 0);
    let _ = std::fs::remove_dir_all(directory);
}

/// One client's slow requests move no endpoint, and nobody else hears of them.
#[test]
fn slow_urls_of_one_client_leave_no_endpoint_out() {
    let endpoints = [(); 3].map(|()| {
        Endpoint::scripted(|served| {
            while let Some(request) = served.request() {
                if request.line.contains("/slow") {
                    served.read_to_end();
                    return;
                }
                served.send(ok("quick"));
            }
        })
    });
    let subak = Setup::before(&endpoints.each_ref())
        .pool("timeouts = { first_byte = \"200ms\" }\nback_off = \"1m\"\non_all_down = \"fail_closed\"")
        .start();
    let mut slow: Vec<_> = (0..12)
        .map(|_| {
            let mut client = subak.client();
            client.send("GET /slow HTTP/1.1\r\nHost: a\r\n\r\n");
            client
        })
        .collect();
    for client in &mut slow {
        assert_eq!(client.answer().status, 504);
        (0..6).for_each(|_| assert_eq!(subak.get("/"), (200, "quick".into())));
    }
    let asked = endpoints.iter().filter(|endpoint| {
        endpoint.requests().iter().filter(|request| !request.line.contains("/slow")).count() >= 12
    });
    assert_eq!(asked.count(), 3, "each has its part");
    assert!(!subak.log().contains("back_off"), "{}", subak.log());
}
