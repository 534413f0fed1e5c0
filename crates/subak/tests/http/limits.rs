//! Limits of size, of time, of number: what clients and endpoints may ask for, and for how long.

use std::io::{Read, Write};
use std::sync::{Mutex, mpsc};
use std::time::{Duration, Instant};

use crate::support::http2::prior_knowledge;
use crate::support::{Client, Deaf, End, Endpoint, Setup, fresh_directory, ok, wait_until};

/// Time limits are kept to within a step of the clock and what a busy machine adds.
const LATE: Duration = Duration::from_secs(5);

#[track_caller]
fn took(began: Instant, least: Duration) {
    let took = began.elapsed();
    assert!(took >= least, "after {took:?}, too early for {least:?}");
    assert!(took < least + LATE, "after {took:?}, too late for {least:?}");
}

#[test]
fn a_head_that_is_too_large_is_answered_431() {
    let endpoint = Endpoint::named("x");
    let subak =
        Setup::before(&[&endpoint]).listener("limits = { head = \"2KiB\", fields = 10 }").start();
    let mut client = subak.client();
    client.send(format!("GET / HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n", "y".repeat(4000)));
    assert_eq!(client.answer().status, 431);
    client.assert_ends();
    let mut client = subak.client();
    client.send(format!("GET / HTTP/1.1\r\nHost: a\r\n{}\r\n", "X: y\r\n".repeat(10)));
    assert_eq!(client.answer().status, 431);
    client.assert_ends();
    assert_eq!(endpoint.accepted(), 0);
    let mut client = subak.client();
    client.send(format!(
        "GET / HTTP/1.1\r\nHost: a\r\nX: {}\r\n{}\r\n",
        "y".repeat(1800),
        "X: y\r\n".repeat(8)
    ));
    assert_eq!(client.answer().status, 200);
}

#[test]
fn a_target_that_is_too_long_is_answered_414() {
    let endpoint = Endpoint::named("x");
    let subak = Setup::before(&[&endpoint]).start();
    let mut client = subak.client();
    let _ = client.try_send(format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "y".repeat(40_000)));
    assert_eq!(client.answer().status, 414);
    client.assert_ends();
    let mut client = subak.client();
    client.send(format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "y".repeat(30_000)));
    assert_eq!(client.answer().status, 200);
}

#[test]
fn an_endless_head_is_not_read_to_its_end() {
    let endpoint = Endpoint::named("x");
    let subak = Setup::before(&[&endpoint]).start();
    let mut client = subak.client();
    client.send("GET / HTTP/1.1\r\nHost: a\r\n");
    let line = format!("X: {}\r\n", "y".repeat(1000));
    let mut sent = 0usize;
    while client.try_send(&line).is_ok() {
        sent += line.len();
        assert!(sent < 64 << 20, "it is still being read");
    }
}

#[test]
fn an_answer_whose_head_is_too_large_is_a_502() {
    let endpoint = Endpoint::answering(format!(
        "HTTP/1.1 200 OK\r\nX: {}\r\nContent-Length: 0\r\n\r\n",
        "y".repeat(100_000)
    ));
    let subak = Setup::before(&[&endpoint]).pool("retry = { on = [] }").start();
    assert_eq!(subak.get("/").0, 502);
}

#[test]
fn a_body_that_is_announced_too_large_is_answered_413_without_asking_an_endpoint() {
    let endpoint = Endpoint::named("x");
    let subak = Setup::before(&[&endpoint]).listener("limits = { body = 1000 }").start();
    let mut client = subak.client();
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1001\r\n\r\n");
    assert_eq!(client.answer().status, 413);
    client.assert_ends();
    assert_eq!(endpoint.accepted(), 0);
    let mut client = subak.client();
    client.send(format!(
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n{}",
        "x".repeat(1000)
    ));
    assert_eq!(client.answer().status, 200);
}

#[test]
fn a_body_that_turns_out_too_large_is_answered_413_and_never_completed() {
    let endpoint = Endpoint::named("x");
    let subak = Setup::before(&[&endpoint]).listener("limits = { body = 1000 }").start();
    let mut client = subak.client();
    client.send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
    for _ in 0..3 {
        client.send(format!("190\r\n{}\r\n", "x".repeat(400)));
    }
    assert_eq!(client.answer().status, 413);
    client.assert_ends();
    wait_until("the endpoint is rid of it", || endpoint.open() == 0);
    assert!(endpoint.requests().is_empty(), "it was taken for complete");
    let mut client = subak.client();
    client.send(format!(
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3e8\r\n{}\r\n0\r\n\r\n",
        "x".repeat(1000)
    ));
    assert_eq!(client.answer().status, 200);
}

#[test]
fn a_slow_head_is_answered_408() {
    let endpoint = Endpoint::named("x");
    let subak = Setup::before(&[&endpoint]).listener("timeouts = { head = \"400ms\" }").start();
    let mut client = subak.client();
    let began = Instant::now();
    client.send("GET / HTTP/1.1\r\nHost: a\r\n");
    // Each line comes in time, all of them do not.
    let mut sending = client.socket().another();
    let sender = std::thread::spawn(move || {
        while sending.write_all(b"X: y\r\n").is_ok() && began.elapsed() < LATE {
            std::thread::sleep(Duration::from_millis(50));
        }
    });
    let answer = client.answer();
    took(began, Duration::from_millis(400));
    assert_eq!((answer.status, answer.field("connection")), (408, Some("close")));
    client.assert_ends();
    sender.join().expect("sender");
    assert_eq!(endpoint.accepted(), 0);
}

#[test]
fn a_body_that_stops_is_answered_408() {
    let endpoint = Endpoint::named("x");
    let subak =
        Setup::before(&[&endpoint]).listener("timeouts = { body_idle = \"300ms\" }").start();
    let mut client = subak.client();
    let began = Instant::now();
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhalf");
    let answer = client.answer();
    took(began, Duration::from_millis(300));
    assert_eq!((answer.status, answer.field("connection")), (408, Some("close")));
    client.assert_ends();
    wait_until("the endpoint is rid of it", || endpoint.open() == 0);
    assert!(endpoint.requests().is_empty());
}

#[test]
fn a_body_that_comes_slowly_but_steadily_is_served() {
    let endpoint = Endpoint::named("x");
    let subak = Setup::before(&[&endpoint]).listener("timeouts = { body_idle = \"1s\" }").start();
    let mut client = subak.client();
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 20\r\n\r\n");
    for _ in 0..20 {
        std::thread::sleep(Duration::from_millis(100));
        client.send("x");
    }
    assert_eq!(client.answer().status, 200);
}

#[test]
fn a_trickle_is_ended_by_the_least_rate() {
    let endpoint = Endpoint::named("x");
    let subak = Setup::before(&[&endpoint])
        .listener("min_rate = { rate = 1000, grace = \"500ms\" }")
        .start();
    let mut client = subak.client();
    let began = Instant::now();
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n");
    let mut sending = client.socket().another();
    let sender = std::thread::spawn(move || {
        while sending.write_all(b"x").is_ok() && began.elapsed() < LATE {
            std::thread::sleep(Duration::from_millis(50));
        }
    });
    assert_eq!(client.answer().status, 408);
    took(began, Duration::from_millis(500));
    sender.join().expect("sender");
}

#[test]
fn an_idle_connection_is_closed_without_a_word() {
    let endpoint = Endpoint::named("x");
    let subak =
        Setup::before(&[&endpoint]).listener("timeouts = { keep_alive = \"300ms\" }").start();
    let (mut never, mut used) = (subak.client(), subak.client());
    let began = Instant::now();
    assert_eq!(used.get("/").status, 200);
    used.assert_ends();
    took(began, Duration::from_millis(300));
    never.assert_ends();
}

#[test]
fn a_connection_ends_after_so_many_requests() {
    let endpoint = Endpoint::named("x");
    let subak =
        Setup::before(&[&endpoint]).listener("limits = { requests_per_connection = 3 }").start();
    let mut client = subak.client();
    assert_eq!(client.get("/").field("connection"), None);
    assert_eq!(client.get("/").field("connection"), None);
    assert_eq!(client.get("/").field("connection"), Some("close"));
    client.assert_ends();
}

/// Answers a GET by more than all buffers on the way hold.
fn endless(served: &mut crate::support::Served) {
    if served.request().is_some() {
        let size = 200 << 20;
        served.send(format!("HTTP/1.1 200 OK\r\nContent-Length: {size}\r\n\r\n"));
        let piece = vec![b'z'; 1 << 16];
        for _ in 0..size / piece.len() {
            if served.socket().write_all(&piece).is_err() {
                return;
            }
        }
    }
}

#[test]
fn a_client_that_takes_nothing_is_cut_off() {
    let endpoint = Endpoint::scripted(endless);
    let subak =
        Setup::before(&[&endpoint]).listener("timeouts = { write_idle = \"400ms\" }").start();
    let mut client = subak.client();
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    let head = client.head();
    assert_eq!(head.status, 200);
    wait_until("the endpoint is let go", || endpoint.open() == 0);
    let (bytes, _) = client.read_to_end();
    assert!(bytes.len() < 200 << 20);
}

#[test]
fn a_client_that_takes_too_little_is_cut_off() {
    let endpoint = Endpoint::scripted(endless);
    let subak = Setup::before(&[&endpoint])
        .listener("min_rate = { rate = \"1GiB\", grace = \"500ms\" }")
        .start();
    let mut client = subak.client();
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(client.head().status, 200);
    let mut taken = 0;
    let mut piece = vec![0; 1 << 20];
    let began = Instant::now();
    loop {
        match client.socket().read(&mut piece) {
            Ok(0) | Err(_) => break,
            Ok(count) => taken += count,
        }
        assert!(taken < 150 << 20, "still served after {:?}", began.elapsed());
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// What Subak answers itself is held to the same rate. Its pages are small: a unix socket's buffers, and
/// an HTTP/2 window, hold less of them than those of a TCP connection on loopback.
const PAGE: usize = 1 << 20;
const RATE: &str = "min_rate = { rate = \"64MiB\", grace = \"300ms\" }";

#[test]
fn an_error_page_is_not_served_to_a_client_that_takes_too_little() {
    let directory = fresh_directory();
    let (front, page) = (directory.join("front.sock"), directory.join("502.html"));
    std::fs::write(&page, vec![b'z'; PAGE]).expect("write the page");
    let subak = Setup::before_addresses(["127.0.0.1:1".into()])
        .bind(&format!("unix:{}", front.display()))
        .listener(&format!("{RATE}\nerror_pages = {{ 502 = {page:?} }}"))
        .start();
    let mut client = Client::connect_unix(&front);
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(client.head().status, 502);
    let mut taken = client.take_ahead();
    let mut piece = vec![0; 8 << 10];
    while let Ok(count @ 1..) = client.socket().read(&mut piece) {
        taken += count;
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(taken < PAGE, "all of it was served");
    drop(subak);
    let _ = std::fs::remove_dir_all(directory);
}

#[test]
fn a_fixed_answer_is_not_served_to_an_http2_client_that_takes_too_little() {
    let directory = fresh_directory();
    let page = directory.join("fixed.html");
    std::fs::write(&page, vec![b'z'; PAGE]).expect("write the page");
    let route = format!("respond = {{ status = 200, file = {page:?} }}");
    let subak = Setup::before_addresses(["127.0.0.1:1".into()])
        .listener(RATE)
        .tail(&format!("[[listener.web.route]]\n{route}"))
        .start();
    let failed = prior_knowledge(&subak, async |send| {
        let mut send = send.ready().await.expect("ready");
        let request = http::Request::get("http://a.example/").body(()).expect("request");
        let (answer, _) = send.send_request(request, true).expect("request");
        let mut body = answer.await.expect("the head").into_body();
        loop {
            let count = match body.data().await {
                Some(Ok(data)) => data.len(),
                Some(Err(error)) => break error,
                None => panic!("all of it was served"),
            };
            // Half a megabyte a second.
            tokio::time::sleep(Duration::from_micros(2 * count as u64)).await;
            body.flow_control().release_capacity(count).expect("a window");
        }
    });
    assert!(failed.is_reset() && failed.is_remote(), "{failed}");
    let _ = std::fs::remove_dir_all(directory);
}

#[test]
fn an_endpoint_that_does_not_begin_to_answer_is_a_504() {
    let endpoint = Endpoint::scripted(|served| {
        served.request();
        served.read_to_end();
    });
    let subak = Setup::before(&[&endpoint])
        .pool("timeouts = { first_byte = \"300ms\" }\nretry = { on = [] }")
        .start();
    let began = Instant::now();
    let mut client = subak.client();
    let answer = client.get("/");
    took(began, Duration::from_millis(300));
    assert_eq!(answer.status, 504);
    // It was no fault of the client's.
    assert_eq!(client.get("/").status, 504);
}

#[test]
fn an_endpoint_that_does_not_accept_is_a_504() {
    let deaf = Deaf::new();
    let subak = Setup::before_addresses([deaf.address()])
        .pool("timeouts = { connect = \"300ms\" }")
        .start();
    let began = Instant::now();
    assert_eq!(subak.get("/").0, 504);
    took(began, Duration::from_millis(300));
}

#[test]
fn an_answer_that_stops_is_cut_off_and_never_ended_in_order() {
    let endpoint = Endpoint::scripted(|served| {
        let Some(request) = served.request() else { return };
        served.send(match request.line.split(' ').nth(1) {
            Some("/known") => "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf",
            Some("/chunked") => {
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n"
            }
            _ => "HTTP/1.1 200 OK\r\n\r\nhalf",
        });
        served.read_to_end();
    });
    let subak = Setup::before(&[&endpoint]).pool("timeouts = { idle = \"300ms\" }").start();
    for path in ["/known", "/chunked", "/close"] {
        let began = Instant::now();
        let mut client = subak.client();
        client.send(format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n"));
        assert!(
            client.try_answer("GET").is_err(),
            "{path}: half an answer was taken for all of it"
        );
        took(began, Duration::from_millis(300));
    }
    // Where only the end of the connection tells, it has to be a reset.
    let mut client = subak.client();
    client.send("GET /close HTTP/1.0\r\nHost: a\r\n\r\n");
    assert_eq!(client.read_to_end().1, End::Reset);
}

#[test]
fn an_endpoint_that_resets_in_the_middle_is_cut_off_too() {
    let (go_on, wait) = mpsc::channel();
    let wait = Mutex::new(wait);
    let endpoint = Endpoint::scripted(move |served| {
        served.request();
        served.send("HTTP/1.1 200 OK\r\n\r\nhalf");
        wait.lock().expect("one connection").recv().expect("go on");
        served.reset();
    });
    let subak = Setup::before(&[&endpoint]).start();
    let mut client = subak.client();
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(client.head().status, 200);
    assert_eq!(client.read(9), b"4\r\nhalf\r\n");
    go_on.send(()).expect("endpoint");
    client.assert_ends();
}

#[test]
fn an_answer_that_comes_slowly_but_steadily_is_served() {
    let endpoint = Endpoint::scripted(|served| {
        served.request();
        served.send("HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n");
        for _ in 0..20 {
            std::thread::sleep(Duration::from_millis(100));
            served.send("x");
        }
    });
    let subak = Setup::before(&[&endpoint])
        .pool("timeouts = { idle = \"1s\", first_byte = \"1s\" }")
        .start();
    assert_eq!(subak.get("/"), (200, "x".repeat(20)));
}

#[test]
fn an_endpoint_that_takes_a_body_slowly_but_steadily_is_served() {
    let endpoint = Endpoint::scripted(|served| {
        // Little room, so that what it takes shows.
        if let crate::support::Socket::Tcp(stream) = served.socket() {
            socket2::SockRef::from(&*stream).set_recv_buffer_size(64 << 10).expect("buffer");
        }
        let Some(head) = served.head() else { return };
        let mut left: usize =
            head.field("content-length").expect("length").parse().expect("number");
        let mut piece = [0; 64 << 10];
        while left > 0 {
            std::thread::sleep(Duration::from_millis(10));
            match served.socket().read(&mut piece) {
                Ok(count) if count > 0 => left -= count.min(left),
                _ => return,
            }
        }
        served.send(ok("all of it"));
    });
    let subak = Setup::before(&[&endpoint])
        .pool("timeouts = { idle = \"2s\" }")
        .listener("timeouts = { write_idle = \"2s\", body_idle = \"2s\" }")
        .start();
    let mut client = subak.client();
    let size = 20 << 20;
    client.send(format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {size}\r\n\r\n"));
    client.send(vec![b'x'; size]);
    assert_eq!(client.answer().text(), "all of it");
}

#[test]
fn an_endpoint_that_takes_nothing_of_a_body_is_a_504() {
    let (go_on, wait) = mpsc::channel();
    let wait = Mutex::new(wait);
    let endpoint = Endpoint::scripted(move |served| {
        served.head();
        // It holds the connection and reads nothing.
        wait.lock().expect("one connection").recv().expect("go on");
    });
    let subak = Setup::before(&[&endpoint])
        .pool("timeouts = { idle = \"300ms\" }\nretry = { on = [] }")
        .start();
    let mut client = subak.client();
    let mut sending = client.socket().another();
    client.send(format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n", 200 << 20));
    let sender = std::thread::spawn(move || {
        let piece = vec![b'x'; 1 << 16];
        while sending.write_all(&piece).is_ok() {}
    });
    let answer = client.answer();
    assert_eq!((answer.status, answer.field("connection")), (504, Some("close")));
    go_on.send(()).expect("endpoint");
    drop(client);
    sender.join().expect("sender");
}

#[test]
fn a_listener_holds_no_more_connections_than_it_may() {
    let endpoint = Endpoint::named("x");
    let subak = Setup::before(&[&endpoint]).listener("limits = { connections = 2 }").start();
    let (mut one, mut two) = (subak.client(), subak.client());
    assert_eq!(one.get("/").status, 200);
    assert_eq!(two.get("/").status, 200);
    subak.client().assert_ends();
    assert_eq!(one.get("/").status, 200);
    drop(one);
    wait_until("there is room again", || {
        let mut next = subak.client();
        next.try_send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").is_ok()
            && next.try_answer("GET").is_ok_and(|answer| answer.status == 200)
    });
}
