//! Connections of HTTP/2 and what becomes of them: how many there are, who notices that one is dead,
//! how one ends, and endpoints of another make.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use crate::support::frames::{
    ACK, DATA, END_HEADERS, END_STREAM, Frames, GOAWAY, HEADERS, PING, SETTINGS, frame,
};
use crate::support::http2::{h2_exchange, prior_knowledge, self_made_certificate};
use crate::support::http2_endpoint::{Http2Endpoint, answer};
use crate::support::{
    Endpoint, Nginx, Scrape, Setup, Subak, fresh_address, fresh_directory, ok, wait_until,
};
use h2::Reason;
use h2::server::Builder;
use http::{Request, Response};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

fn before(endpoint: &Http2Endpoint) -> Setup {
    Setup::before_addresses([endpoint.address()]).pool("protocol = \"h2\"")
}

fn metric(subak: &Subak, name: &str) -> f64 {
    let text = crate::support::Admin::of(subak).ask("GET", "/metrics", "");
    Scrape::parse(&text.text()).value(name, &[("pool", "app")])
}

#[test]
fn an_endpoint_that_resets_streams_rapidly_fails_those_alone() {
    const RESETS: usize = 300;
    let endpoint = Http2Endpoint::serving(Builder::new, |exchange| {
        Box::pin(async move {
            let path = exchange.request.uri().path().to_owned();
            let mut respond = exchange.respond;
            match &*path {
                "/reset" => respond.send_reset(Reason::CANCEL),
                // Not before its head has gone.
                "/late" => {
                    let send = respond.send_response(Response::new(()), false);
                    tokio::time::sleep(Duration::from_millis(20)).await;
                    send.expect("a head").send_reset(Reason::INTERNAL_ERROR);
                }
                _ => answer(respond, Response::new(()), "well").await,
            }
        })
    });
    let subak = before(&endpoint).pool("retry = { attempts = 1 }").start();
    let resident = subak.resident_kib();
    let mut client = subak.client();
    for _ in 0..RESETS {
        assert_eq!(client.get("/reset").status, 502);
    }
    assert_eq!(client.get("/").text(), "well");
    client.send("GET /late HTTP/1.1\r\nHost: a\r\n\r\n");
    // The answer was begun: it cannot be taken back, only cut off.
    let cut = client.try_answer("GET").expect_err("half an answer");
    assert_eq!(cut.kind(), std::io::ErrorKind::UnexpectedEof);
    assert_eq!(subak.get("/").1, "well");
    assert_eq!(metric(&subak, "subak_pool_stream_resets_total"), (RESETS + 1) as f64);
    assert_eq!(metric(&subak, "subak_pool_streams"), 0.0);
    let grown = subak.resident_kib().saturating_sub(resident);
    assert!(grown < 4096, "{grown} KiB more after {RESETS} resets");
}

#[test]
fn as_many_connections_are_opened_as_wanted_and_then_shared() {
    let endpoint = Http2Endpoint::named("x");
    let subak = before(&endpoint).pool("streams = { connections = 2 }").start();
    for wanted in [1, 2, 2, 2, 2] {
        assert_eq!(subak.get("/").0, 200);
        assert_eq!(endpoint.accepted(), wanted);
    }
}

#[test]
fn workers_share_the_connections_that_an_endpoint_may_have() {
    let endpoint = Http2Endpoint::serving(Builder::new, |exchange| {
        Box::pin(async move {
            let (_, respond) = exchange.read().await;
            tokio::time::sleep(Duration::from_millis(5)).await;
            answer(respond, Response::new(()), "x").await;
        })
    });
    let subak = before(&endpoint)
        .pool(
            "max_connections = 1\nstreams = { per_connection = 1 }\nqueue = { timeout = \"12s\" }",
        )
        .workers(2)
        .start();
    assert_eq!(subak.at_once(30), [200; 30]);
    // One stream on one connection: never two at a time, whoever they belong to.
    assert_eq!(endpoint.under_way(), (0, 1));
    // Either worker has had some of the thirty, so the connection has changed hands.
    assert!(endpoint.accepted() > 1, "all on one connection of one worker");
    wait_until("one is left", || endpoint.open() <= 1);
}

/// What an endpoint by hand has to say for how long it is asked.
async fn patient_once(mut stream: TcpStream, pings: Arc<AtomicUsize>) {
    const ANSWERED: usize = 3;
    stream.write_all(&frame(SETTINGS, 0, 0, b"")).await.expect("settings");
    let mut preface = [0; 24];
    stream.read_exact(&mut preface).await.expect("the preface");
    let mut head = [0; 9];
    while stream.read_exact(&mut head).await.is_ok() {
        let mut payload = vec![0; usize::from(head[1]) << 8 | usize::from(head[2])];
        if stream.read_exact(&mut payload).await.is_err() {
            return;
        }
        let mut reply = Vec::new();
        match (head[3], head[4]) {
            (SETTINGS, 0) => reply = frame(SETTINGS, ACK, 0, b""),
            (PING, 0) => {
                let count = pings.fetch_add(1, Ordering::SeqCst) + 1;
                if count <= ANSWERED {
                    reply = frame(PING, ACK, 0, &payload);
                }
                if count == ANSWERED {
                    // `:status: 200`, by its number in HPACK's table.
                    reply.extend(frame(HEADERS, END_HEADERS, 1, &[0x88]));
                    reply.extend(frame(DATA, END_STREAM, 1, b"at last"));
                }
            }
            _ => {}
        }
        if stream.write_all(&reply).await.is_err() {
            return;
        }
    }
}

#[test]
fn an_endpoint_is_asked_for_a_sign_of_life_while_it_has_requests() {
    let pings = Arc::new(AtomicUsize::new(0));
    let seen = pings.clone();
    let endpoint = Http2Endpoint::scripted(move |_, stream, _| {
        let pings = seen.clone();
        Box::pin(patient_once(stream, pings))
    });
    let subak = before(&endpoint)
        .pool("streams = { ping = \"300ms\" }\ntimeouts = { connect = \"3s\" }\nretry = { attempts = 1 }")
        .start();
    // It is slow and answers PINGs: nobody gives it up.
    let mut client = subak.client();
    assert_eq!(client.get("/").text(), "at last");
    assert_eq!(pings.load(Ordering::SeqCst), 3);
    // Then it is silent: the connection is given up, long before the time for an answer is over. What
    // cannot be repeated is not.
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx");
    assert_eq!(client.answer().status, 502);
    assert_eq!(pings.load(Ordering::SeqCst), 4);
    subak.wait_for_log("gives no sign of life");
    wait_until("the connection is closed", || endpoint.open() == 0);
}

#[test]
fn cookies_in_pieces_are_one_field_for_http2_endpoints_too() {
    let endpoint = Http2Endpoint::named("x");
    let subak = before(&endpoint).start();
    prior_knowledge(&subak, async |send| {
        let request = Request::get("http://a.example/").header("cookie", "a=1");
        let request = request.header("cookie", "b=2").header("cookie", "c=3").body(());
        h2_exchange(send, request.expect("request"), None).await
    });
    let asked = endpoint.request();
    let cookies: Vec<_> = asked.fields.get_all("cookie").iter().collect();
    assert_eq!(cookies, ["a=1; b=2; c=3"]);
}

#[test]
fn a_fragment_goes_no_further() {
    let endpoint = Endpoint::named("x");
    let subak = Setup::before(&[&endpoint]).start();
    let mut client = Frames::connect(&subak, &[]);
    client.get(1, "/a?b#c/../d").expect("send");
    endpoint.wait_for_requests(1);
    client.get(3, "#").expect("send");
    endpoint.wait_for_requests(2);
    let lines: Vec<_> = endpoint.requests().into_iter().map(|request| request.line).collect();
    assert_eq!(lines, ["GET /a?b HTTP/1.1", "GET / HTTP/1.1"]);
}

#[test]
fn a_reload_ends_a_clients_connection_after_all_it_has_asked_for() {
    let released = Arc::new(AtomicBool::new(false));
    let waits = released.clone();
    let endpoint = Endpoint::scripted(move |served| {
        while let Some(request) = served.request() {
            if request.line.starts_with("GET /slow ") {
                wait_until("it may go on", || waits.load(Ordering::SeqCst));
            }
            served.send(ok("whole"));
        }
    });
    let subak = Setup::before(&[&endpoint]).start();
    let mut client = Frames::connect(&subak, &[]);
    client.get(1, "/slow").expect("send");
    endpoint.wait_for_requests(1);
    // The listener goes; another one comes.
    subak.write_config(&Setup::before(&[&endpoint]).bind(&fresh_address()).text());
    subak.signal("HUP");
    let (mut goodbyes, mut whole) = (Vec::new(), Vec::new());
    while let Some(frame) = client.next() {
        match (frame.kind, frame.flags & ACK) {
            (GOAWAY, _) => {
                if goodbyes.is_empty() {
                    // On its way before the client has heard.
                    client.get(3, "/").expect("send");
                    released.store(true, Ordering::SeqCst);
                }
                goodbyes.push(frame.payload[4..8].to_vec());
            }
            (PING, 0) => client.send(PING, ACK, 0, &frame.payload).expect("send"),
            (SETTINGS, 0) => client.send(SETTINGS, ACK, 0, &[]).expect("send"),
            (DATA, _) if frame.payload == b"whole" => whole.push(frame.stream),
            _ => {}
        }
    }
    whole.sort_unstable();
    assert_eq!(whole, [1, 3], "both are answered, after {goodbyes:?}");
    // NO_ERROR, each time.
    assert!(!goodbyes.is_empty() && goodbyes.iter().all(|reason| *reason == [0; 4]));
    wait_until("nobody listens there", || {
        std::net::TcpStream::connect(subak.socket_address()).is_err()
    });
}

#[test]
fn nginx_is_an_endpoint_in_cleartext_and_over_tls() {
    let directory = fresh_directory();
    self_made_certificate(&directory);
    let large = vec![b'l'; 1 << 20];
    std::fs::write(directory.join("large"), &large).expect("write");
    let (clear, secured) = (fresh_address(), fresh_address());
    let path = directory.display();
    // It says goodbye every ten requests, and takes few at once.
    let server = |listen: &str| {
        format!(
            "server {{ listen {listen}; ssl_certificate site.pem; ssl_certificate_key site.key;\n\
             keepalive_requests 10; http2_max_concurrent_streams 4; client_max_body_size 2m;\n\
             root {path};\n\
             location = /large {{ }}\n\
             location / {{ return 200 \"$server_protocol $request_method $host $http_x_one $http_te\"; }} }}\n"
        )
    };
    let servers = server(&format!("{clear} http2")) + &server(&format!("{secured} ssl http2"));
    let Some(_nginx) = Nginx::start(&directory, &servers, &clear) else { return };
    let tls = format!("tls = {{ ca = \"{path}/site.pem\", server_name = \"localhost\" }}");
    for (address, tls) in [(&clear, ""), (&secured, &*tls)] {
        let subak = Setup::before_addresses([address.clone()])
            .pool(&format!("protocol = \"h2\"\n{tls}"))
            .start();
        let mut client = subak.client();
        client.send("GET / HTTP/1.1\r\nHost: example.com\r\nX-One: 1\r\nTE: trailers\r\n\r\n");
        assert_eq!(client.answer().text(), "HTTP/2.0 GET example.com 1 trailers");
        for _ in 0..25 {
            assert_eq!(client.get("/").status, 200);
        }
        assert_eq!(subak.at_once(30), [200; 30]);
        assert_eq!(client.get("/large").body, large);
        client
            .send(format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n", large.len()));
        client.send(&large[..]);
        assert_eq!(client.answer().status, 200);
        // nginx answered before it had read all of it, so that connection is closed.
        let mut client = subak.client();
        client.send("HEAD /large HTTP/1.1\r\nHost: a\r\n\r\n");
        assert_eq!(client.answer_to("HEAD").field("content-length"), Some("1048576"));
        assert!(metric(&subak, "subak_pool_goaways_total") >= 3.0);
    }
    let _ = std::fs::remove_dir_all(directory);
}

#[test]
fn over_tls_the_endpoint_is_asked_by_alpn() {
    let last = Endpoint::named("behind TLS");
    let directory = fresh_directory();
    self_made_certificate(&directory);
    let path = directory.display();
    for (wanted, spoken, status) in
        [("h2", "h2", 200), ("auto", "h2", 200), ("auto", "http/1.1", 200), ("h2", "http/1.1", 502)]
    {
        let secured = Setup::before(&[&last])
            .listener(&format!(
                "protocols = [\"{spoken}\"]\n\
                 tls = {{ certificates = [{{ chain = \"{path}/site.pem\", key = \"{path}/site.key\" }}] }}"
            ))
            .start();
        let front = Setup::before_addresses([secured.address().to_owned()])
            .pool(&format!(
                "protocol = \"{wanted}\"\n\
                 tls = {{ ca = \"{path}/site.pem\", server_name = \"localhost\" }}"
            ))
            .start();
        assert_eq!(front.get("/").0, status, "{wanted} to {spoken}");
    }
    let _ = std::fs::remove_dir_all(directory);
}
