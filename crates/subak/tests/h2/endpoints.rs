//! Endpoints that speak HTTP/2: shared connections, what endpoints may do to them, and messages that
//! mean the same whatever is spoken on either side.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::support::http2::{h2_exchange, h2_get, prior_knowledge};
use crate::support::http2_endpoint::{Exchange, Http2Endpoint, Task, answer};
use crate::support::{Scrape, Setup, Subak, wait_until};
use bytes::Bytes;
use h2::Reason;
use h2::server::Builder;
use http::{HeaderMap, HeaderValue, Request, Response};

pub(crate) fn before(endpoints: &[&Http2Endpoint]) -> Setup {
    Setup::before_addresses(endpoints.iter().map(|endpoint| endpoint.address()))
        .pool("protocol = \"h2\"")
}

/// An endpoint that answers each path in its own way.
pub(crate) fn endpoint(script: impl Fn(Exchange) -> Task + Send + Sync + 'static) -> Http2Endpoint {
    Http2Endpoint::serving(Builder::new, script)
}

pub(crate) fn metric(subak: &Subak, name: &str) -> f64 {
    let text = crate::support::Admin::of(subak).ask("GET", "/metrics", "");
    Scrape::parse(&text.text()).value(name, &[("pool", "app")])
}

#[test]
fn a_request_reaches_an_http2_endpoint_in_its_own_words() {
    let endpoint = Http2Endpoint::named("here");
    let subak = before(&[&endpoint]).start();
    let mut client = subak.client();
    client.send(
        "POST /a/b?c=d HTTP/1.1\r\nHost: Example.com:81\r\nConnection: keep-alive, X-Gone\r\n\
         X-Gone: 1\r\nKeep-Alive: 5\r\nProxy-Connection: close\r\nTE: trailers, gzip\r\n\
         X-Kept: Yes\r\nCookie: a=1; b=2\r\nTransfer-Encoding: chunked\r\nTrailer: X-End\r\n\r\n\
         5\r\nhello\r\n0\r\nX-End: 7\r\n\r\n",
    );
    let answered = client.answer();
    assert_eq!((answered.status, answered.text().as_str()), (200, "here"));
    let asked = endpoint.request();
    assert_eq!(
        (asked.method.as_str(), asked.uri.as_str()),
        ("POST", "http://Example.com:81/a/b?c=d")
    );
    assert_eq!(asked.body, b"hello");
    assert_eq!(asked.trailers.as_ref().expect("trailers")["x-end"], "7");
    assert_eq!((asked.field("x-kept"), asked.field("te")), ("Yes", "trailers"));
    assert_eq!(asked.field("cookie"), "a=1; b=2");
    for gone in
        ["connection", "x-gone", "keep-alive", "proxy-connection", "transfer-encoding", "host"]
    {
        assert_eq!(asked.field(gone), "", "{gone}");
    }
}

#[test]
fn answers_come_back_whole_with_interim_ones_trailers_and_lengths() {
    let endpoint = endpoint(|exchange| {
        Box::pin(async move {
            let path = exchange.request.uri().path().to_owned();
            let (_, mut respond) = exchange.read().await;
            let mut head = Response::new(());
            match &*path {
                "/hint" => {
                    let hint = Response::builder().status(103).header("link", "</a>").body(());
                    respond.send_informational(hint.expect("a head")).expect("sent");
                    answer(respond, head, "hinted").await;
                }
                "/trailers" => {
                    let mut send = respond.send_response(head, false).expect("head");
                    send.send_data(Bytes::from_static(b"body"), false).expect("data");
                    let mut trailers = HeaderMap::new();
                    trailers.insert("x-sum", HeaderValue::from_static("9"));
                    trailers.insert("set-cookie", HeaderValue::from_static("a=forged"));
                    send.send_trailers(trailers).expect("trailers");
                }
                "/head" | "/304" => {
                    if path == "/304" {
                        *head.status_mut() = http::StatusCode::NOT_MODIFIED;
                    }
                    head.headers_mut().insert("content-length", HeaderValue::from_static("5"));
                    respond.send_response(head, true).expect("head");
                }
                "/204" => {
                    *head.status_mut() = http::StatusCode::NO_CONTENT;
                    respond.send_response(head, true).expect("head");
                }
                _ => answer(respond, head, "").await,
            }
        })
    });
    let subak = before(&[&endpoint]).start();
    let mut client = subak.client();
    client.send("GET /hint HTTP/1.1\r\nHost: a\r\n\r\n");
    let hint = client.head();
    assert_eq!((hint.status, hint.field("link")), (103, Some("</a>")));
    assert_eq!(client.answer().text(), "hinted");
    let answered = client.get("/trailers");
    assert_eq!(answered.text(), "body");
    assert_eq!(answered.trailers, [("x-sum".to_owned(), "9".to_owned())]);
    client.send("HEAD /head HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(client.answer_to("HEAD").field("content-length"), Some("5"));
    for (path, status, length) in
        [("/304", 304, Some("5")), ("/204", 204, None), ("/", 200, Some("0"))]
    {
        let answered = client.get(path);
        assert_eq!((answered.status, answered.field("content-length")), (status, length), "{path}");
    }
    // All of it on one connection.
    assert_eq!(endpoint.accepted(), 1);
}

#[test]
fn what_an_endpoint_refuses_unseen_is_sent_again_whatever_it_is() {
    let endpoint = endpoint(|exchange| {
        Box::pin(async move {
            let shared = exchange.shared.clone();
            if shared.refuse_one() == 0 {
                let mut respond = exchange.respond;
                respond.send_reset(Reason::REFUSED_STREAM);
                return;
            }
            let (_, respond) = exchange.read().await;
            answer(respond, Response::new(()), "taken").await;
        })
    });
    let subak = before(&[&endpoint]).start();
    let mut client = subak.client();
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc");
    let answered = client.answer();
    assert_eq!((answered.status, answered.text().as_str()), (200, "taken"));
    assert_eq!(endpoint.request().body, b"abc");
    assert_eq!(metric(&subak, "subak_pool_stream_resets_total"), 1.0);
}

#[test]
fn a_goodbye_is_honoured_and_streams_above_it_are_sent_again() {
    // The first connection says goodbye when a second stream comes, and answers the first of them
    // after that; what came later it has not looked at.
    let endpoint = Http2Endpoint::scripted(|number, stream, shared| {
        Box::pin(async move {
            if number > 0 {
                let connection = h2::server::handshake(stream).await.expect("handshake");
                let script = |exchange: Exchange| -> Task {
                    Box::pin(async move {
                        let (_, respond) = exchange.read().await;
                        answer(respond, Response::new(()), "second").await;
                    })
                };
                return crate::support::http2_endpoint::serve(number, connection, shared, &script)
                    .await;
            }
            crate::support::http2_endpoint::goodbye_after_one(stream, shared, "first").await;
        })
    });
    let subak = before(&[&endpoint]).start();
    let mut first = subak.client();
    first.send("GET /1 HTTP/1.1\r\nHost: a\r\n\r\n");
    wait_until("the first is there", || endpoint.under_way().0 == 1);
    let mut second = subak.client();
    second.send("POST /2 HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx");
    assert_eq!(second.answer().text(), "second");
    assert_eq!(first.answer().text(), "first");
    assert_eq!(metric(&subak, "subak_pool_goaways_total"), 1.0);
    assert_eq!(subak.get("/3").1, "second");
    assert_eq!(endpoint.accepted(), 2);
}

#[test]
fn an_answer_that_lies_about_its_length_is_not_taken_for_complete() {
    let endpoint = endpoint(|exchange| {
        Box::pin(async move {
            let path = exchange.request.uri().path().to_owned();
            let (_, mut respond) = exchange.read().await;
            let mut head = Response::new(());
            head.headers_mut().insert("content-length", HeaderValue::from_static("5"));
            let mut send = respond.send_response(head, false).expect("head");
            let body = if path == "/short" { "abc" } else { "abcdefgh" };
            let _ = send.send_data(Bytes::from_static(body.as_bytes()), true);
        })
    });
    let subak = before(&[&endpoint]).start();
    for path in ["/short", "/long"] {
        let mut client = subak.client();
        client.send(format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n"));
        match client.try_answer("GET") {
            Ok(answered) => assert_eq!(answered.status, 502, "{path}: {:?}", answered.text()),
            Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::UnexpectedEof, "{path}"),
        }
    }
}

#[test]
fn an_answer_is_complete_when_its_stream_ends_and_not_before() {
    let endpoint = endpoint(|exchange| {
        Box::pin(async move {
            let path = exchange.request.uri().path().to_owned();
            let (_, mut respond) = exchange.read().await;
            let mut head = Response::new(());
            let (length, body) = if path.ends_with("none") { ("0", "") } else { ("5", "abcde") };
            head.headers_mut().insert("content-length", HeaderValue::from_static(length));
            let mut send = respond.send_response(head, false).expect("head");
            send.send_data(Bytes::from_static(body.as_bytes()), false).expect("data");
            // In a flight of its own, or there would be nothing to tell.
            tokio::time::sleep(Duration::from_millis(50)).await;
            let more = if path.starts_with("/more") { "f" } else { "" };
            let _ = send.send_data(Bytes::from_static(more.as_bytes()), true);
        })
    });
    let subak = before(&[&endpoint]).start();
    for (path, text) in [("/none", ""), ("/some", "abcde")] {
        assert_eq!(subak.get(path), (200, text.to_owned()), "{path}");
    }
    for path in ["/more-none", "/more-some"] {
        let mut client = subak.client();
        client.send(format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n"));
        match client.try_answer("GET") {
            Ok(answered) => assert_eq!(answered.status, 502, "{path}: {:?}", answered.text()),
            Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::UnexpectedEof, "{path}"),
        }
    }
}

#[test]
fn a_client_that_leaves_cancels_its_stream_and_no_other() {
    let endpoint = endpoint(|exchange| {
        Box::pin(async move {
            let shared = exchange.shared.clone();
            let path = exchange.request.uri().path().to_owned();
            let (_, mut respond) = exchange.read().await;
            if path == "/left" {
                let reset = std::future::poll_fn(|context| respond.poll_reset(context)).await;
                shared.note_reset(reset.expect("a reset"));
            } else {
                answer(respond, Response::new(()), "x").await;
            }
        })
    });
    let subak = before(&[&endpoint]).start();
    let mut client = subak.client();
    client.send("GET /left HTTP/1.1\r\nHost: a\r\n\r\n");
    wait_until("it is there", || endpoint.requests().len() == 1);
    client.socket().reset_on_close();
    drop(client);
    wait_until("the stream is reset", || endpoint.resets() == [Reason::CANCEL]);
    assert_eq!(subak.get("/").1, "x");
    assert_eq!(endpoint.accepted(), 1);
}

#[test]
fn a_client_that_takes_nothing_holds_up_its_own_stream_alone() {
    let sent = Arc::new(AtomicUsize::new(0));
    let seen = sent.clone();
    let endpoint = endpoint(move |exchange| {
        let sent = seen.clone();
        Box::pin(async move {
            let path = exchange.request.uri().path().to_owned();
            let (_, mut respond) = exchange.read().await;
            if path != "/endless" {
                return answer(respond, Response::new(()), vec![b'x'; 200_000]).await;
            }
            let mut send = respond.send_response(Response::new(()), false).expect("head");
            loop {
                send.reserve_capacity(16 * 1024);
                let capacity = std::future::poll_fn(|context| send.poll_capacity(context)).await;
                let Some(Ok(capacity)) = capacity else { return };
                sent.fetch_add(capacity, Ordering::SeqCst);
                if send.send_data(vec![b'y'; capacity].into(), false).is_err() {
                    return;
                }
            }
        })
    });
    let subak = before(&[&endpoint]).start();
    let idle: Vec<_> = (0..20)
        .map(|_| {
            let mut client = subak.client();
            client.socket().small_buffers();
            client.send("GET /endless HTTP/1.1\r\nHost: a\r\n\r\n");
            client
        })
        .collect();
    wait_until("they all have begun", || endpoint.under_way().0 == 20);
    // Until nothing more is taken of the endpoint.
    let mut before = usize::MAX;
    wait_until("it stands still", || {
        std::thread::sleep(Duration::from_millis(100));
        std::mem::replace(&mut before, sent.load(Ordering::SeqCst)) == before
    });
    let held = sent.load(Ordering::SeqCst) / idle.len();
    assert!(held < 4 << 20, "{held} bytes of each have gone into buffers");
    for _ in 0..3 {
        assert_eq!(subak.get("/").1.len(), 200_000);
    }
    assert_eq!(endpoint.accepted(), 1);
}

#[test]
fn the_endpoints_window_holds_the_client_up() {
    let taken = Arc::new(AtomicUsize::new(0));
    let seen = taken.clone();
    let tiny = || {
        let mut builder = Builder::new();
        builder.initial_window_size(100);
        builder
    };
    let endpoint = Http2Endpoint::serving(tiny, move |mut exchange| {
        let taken = seen.clone();
        Box::pin(async move {
            while let Some(Ok(data)) = exchange.request.body_mut().data().await {
                taken.fetch_add(data.len(), Ordering::SeqCst);
                let flow = exchange.request.body_mut().flow_control();
                flow.release_capacity(data.len()).expect("capacity");
            }
            answer(exchange.respond, Response::new(()), "all").await;
        })
    });
    let subak = before(&[&endpoint]).start();
    let mut client = subak.client();
    client.send("PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 20000\r\n\r\n");
    client.send(vec![b'z'; 20_000]);
    assert_eq!(client.answer().text(), "all");
    assert_eq!(taken.load(Ordering::SeqCst), 20_000);
}

#[test]
fn an_endpoint_without_http2_is_named_as_such() {
    let endpoint = crate::support::Endpoint::answering_once(
        "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n",
    );
    let subak = Setup::before(&[&endpoint]).pool("protocol = \"h2\"").start();
    assert_eq!(subak.get("/").0, 502);
    subak.wait_for_log("it does not speak HTTP/2");
}

#[test]
fn a_silent_connection_is_found_out_and_another_is_opened() {
    // The first connection stops answering anything after its first request.
    let endpoint = Http2Endpoint::scripted(|number, stream, shared| {
        Box::pin(async move {
            let mut connection = h2::server::handshake(stream).await.expect("handshake");
            if number == 0 {
                let Some(Ok((request, respond))) = connection.accept().await else { return };
                let exchange = Exchange { connection: 0, request, respond, shared };
                drop(exchange.request);
                // Keeps the socket, and neither reads nor writes any more.
                std::future::pending::<()>().await;
                drop(connection);
                return;
            }
            let script = |exchange: Exchange| -> Task {
                Box::pin(async move {
                    let (_, respond) = exchange.read().await;
                    answer(respond, Response::new(()), "alive").await;
                })
            };
            crate::support::http2_endpoint::serve(number, connection, shared, &script).await;
        })
    });
    let subak = before(&[&endpoint])
        .pool(
            "timeouts = { first_byte = \"300ms\", connect = \"500ms\" }\nretry = { attempts = 1 }",
        )
        .start();
    assert_eq!(subak.get("/").0, 504);
    wait_until("another connection serves", || subak.get("/").1 == "alive");
    subak.wait_for_log("gives no sign of life");
}

#[test]
fn idle_connections_are_closed_and_an_endpoint_that_leaves_finishes_its_streams() {
    let slow = endpoint(|exchange| {
        Box::pin(async move {
            let path = exchange.request.uri().path().to_owned();
            let (_, respond) = exchange.read().await;
            if path == "/slow" {
                tokio::time::sleep(Duration::from_millis(700)).await;
            }
            answer(respond, Response::new(()), "slow").await;
        })
    });
    let other = Http2Endpoint::named("other");
    let setup = before(&[&slow]).pool("timeouts = { keep_alive = \"300ms\" }");
    let subak = setup.start();
    assert_eq!(subak.get("/").1, "slow");
    wait_until("the idle connection is closed", || slow.open() == 0);
    let mut client = subak.client();
    client.send("GET /slow HTTP/1.1\r\nHost: a\r\n\r\n");
    wait_until("it is under way", || slow.under_way().0 == 1);
    subak.write_config(&subak_config(&subak, &other));
    subak.signal("HUP");
    wait_until("the other serves", || subak.get("/").1 == "other");
    assert_eq!(client.answer().text(), "slow");
    wait_until("nothing is left of the first", || slow.open() == 0);
}

fn subak_config(subak: &Subak, endpoint: &Http2Endpoint) -> String {
    format!(
        "workers = 1\n[listener.web]\nbind = \"{}\"\npool = \"app\"\n[pool.app]\n\
         protocol = \"h2\"\nendpoints = [\"{}\"]\n",
        subak.address(),
        endpoint.address()
    )
}

#[test]
fn a_switch_of_protocols_is_refused_with_a_reason() {
    let endpoint = Http2Endpoint::named("x");
    let subak = before(&[&endpoint]).start();
    let mut client = subak.client();
    client.send("GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: other\r\n\r\n");
    assert_eq!(client.answer().status, 501);
    assert!(endpoint.requests().is_empty());
    subak.wait_for_log("only WebSocket can be switched to");
}

#[test]
fn the_same_request_gives_the_same_answer_whatever_is_spoken() {
    const FIELDS: [(&str, &str); 3] = [("x-one", "1"), ("cookie", "a=1; b=2"), ("accept", "*/*")];
    let old = crate::support::Endpoint::scripted(|served| {
        while let Some(request) = served.request() {
            let body =
                told(&request.line, |name| request.field(name).map(str::to_owned), &request.body);
            served.send(format!(
                "HTTP/1.1 201 Created\r\nX-Answer: yes\r\nContent-Length: {}\r\n\r\n{body}",
                body.len()
            ));
        }
    });
    let new = endpoint(|exchange| {
        Box::pin(async move {
            let (asked, respond) = exchange.read().await;
            let asked = asked.expect("a request");
            let path = asked.uri.strip_prefix("http://example.com").expect("the authority");
            let line = format!("{} {path} HTTP/1.1", asked.method);
            let field = |name: &str| match name {
                "host" => Some("example.com".to_owned()),
                _ => asked.fields.get(name).map(|value| value.to_str().expect("text").to_owned()),
            };
            let body = told(&line, field, &asked.body);
            let head = Response::builder().status(201).header("x-answer", "yes");
            let head = head.header("content-length", body.len()).body(()).expect("a head");
            answer(respond, head, body).await;
        })
    });
    let mut answers = Vec::new();
    for subak in [Setup::before(&[&old]).start(), before(&[&new]).start()] {
        for method in ["GET", "POST", "DELETE", "OPTIONS"] {
            let body = if method == "POST" { "some body" } else { "" };
            let mut client = subak.client();
            let mut text = format!("{method} /p/a?q=%20x HTTP/1.1\r\nHost: example.com\r\n");
            for (name, value) in FIELDS {
                text += &format!("{name}: {value}\r\n");
            }
            if !body.is_empty() {
                text += &format!("Content-Length: {}\r\n", body.len());
            }
            client.send(format!("{text}\r\n{body}"));
            let answered = client.answer();
            let from_http1 =
                (answered.status, answered.field("x-answer").map(str::to_owned), answered.text());
            let from_http2 = prior_knowledge(&subak, async |send| {
                let mut request =
                    Request::builder().method(method).uri("http://example.com/p/a?q=%20x");
                for (name, value) in FIELDS {
                    request = request.header(name, value);
                }
                let body = (!body.is_empty()).then(|| Bytes::from_static(body.as_bytes()));
                let (head, text) =
                    h2_exchange(send, request.body(()).expect("request"), body).await;
                let field = head
                    .headers()
                    .get("x-answer")
                    .map(|value| value.to_str().expect("text").to_owned());
                (head.status().as_u16(), field, text)
            });
            assert_eq!(from_http1, from_http2, "{method}");
            answers.push(from_http1);
        }
    }
    let (over_old, over_new) = answers.split_at(4);
    assert_eq!(over_old, over_new);
    assert!(over_old.iter().all(|(status, field, _)| *status == 201 && field.is_some()));
}

/// What an endpoint tells of a request.
fn told(line: &str, field: impl Fn(&str) -> Option<String>, body: &[u8]) -> String {
    let fields =
        ["host", "x-one", "cookie", "accept"].map(|name| format!("{name}={:?}", field(name)));
    format!("{line} {} {}", fields.join(" "), String::from_utf8_lossy(body))
}

#[test]
fn http2_clients_reach_http2_endpoints_stream_by_stream() {
    let endpoint = Http2Endpoint::named("streams");
    let subak = before(&[&endpoint]).start();
    let bodies = prior_knowledge(&subak, async |send| {
        let mut tasks = tokio::task::JoinSet::new();
        for number in 0..50 {
            let send = send.clone();
            let uri = format!("http://example.com/{number}");
            tasks.spawn_local(async move { h2_get(send, &uri).await.1 });
        }
        tasks.join_all().await
    });
    assert_eq!(bodies, ["streams"; 50]);
    assert_eq!((endpoint.requests().len(), endpoint.accepted()), (50, 1));
}
