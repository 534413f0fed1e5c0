//! HTTP/2 clients that take nothing of their responses: what one connection holds is bounded, the streams
//! end with a reason, and neither others nor clients that take responses notice anything of it.

use std::time::{Duration, Instant};

use crate::support::frames::{
    DATA, END_HEADERS, ENHANCE_YOUR_CALM, Frames, GOAWAY, HEADERS, INITIAL_WINDOW, RST_STREAM,
    WINDOW_UPDATE, request,
};
use crate::support::http2::{h2_get, prior_knowledge};
use crate::support::http2_endpoint::{Http2Endpoint, answer};
use crate::support::{Endpoint, PATIENCE, Scrape, Setup, Subak, ok, wait_until};
use http::Response;

const REFUSED_STREAM: u32 = 7;
/// `http2.stalled_streams` by default, and the requests that show whether the client takes something.
const MOST: usize = 16 + 4;
const STREAMS: u32 = 100;

fn endpoint() -> Endpoint {
    Endpoint::scripted(|served| {
        while let Some(request) = served.request() {
            if request.line.contains(" /large ") {
                let size = 4 << 20;
                served.send(format!("HTTP/1.1 200 OK\r\nContent-Length: {size}\r\n\r\n"));
                served.send(vec![b'z'; size]);
            } else {
                served.send(ok("small"));
            }
        }
    })
}

fn ask_for_much(client: &mut Frames) {
    for number in 0..STREAMS {
        client.get(2 * number + 1, "/large").expect("send");
    }
}

/// Failures of this cause so far.
fn failures(subak: &Subak, cause: &str) -> f64 {
    let text = crate::support::Admin::of(subak).ask("GET", "/metrics", "");
    Scrape::parse(&text.text()).sum("subak_listener_failures_total", ("cause", cause))
}

#[test]
fn a_client_without_windows_holds_few_endpoint_connections_and_its_streams_end() {
    let endpoint = endpoint();
    let subak =
        Setup::before(&[&endpoint]).listener("timeouts = { write_idle = \"1500ms\" }").start();
    let mut client = Frames::connect(&subak, &[(INITIAL_WINDOW, 0)]);
    ask_for_much(&mut client);
    let (mut reasons, mut most) = (Vec::new(), 0);
    while reasons.len() < STREAMS as usize {
        let frame = client.next().expect("the connection goes on");
        assert_ne!(frame.kind, GOAWAY, "{frame:?}");
        assert_ne!(frame.kind, DATA, "there is no window");
        most = most.max(endpoint.open());
        if frame.kind == RST_STREAM {
            reasons.push(u32::from_be_bytes(frame.payload.try_into().expect("a reason")));
        }
    }
    // Some connections are on their way out while the next are opened, and others were opened while a busy
    // machine kept an endpoint from answering.
    assert!((16..=3 * MOST).contains(&most), "{most} connections to the endpoint");
    let started = endpoint.requests().len();
    let stalled = reasons.iter().filter(|reason| **reason == ENHANCE_YOUR_CALM).count();
    let refused = reasons.iter().filter(|reason| **reason == REFUSED_STREAM).count();
    assert_eq!((stalled, refused), (started, STREAMS as usize - started), "{reasons:?}");
    wait_until("all are counted", || failures(&subak, "client_slow") == f64::from(STREAMS));
    wait_until("the endpoint is let go", || endpoint.open() <= 1);
    // The connection itself is as good as any.
    client.get(201, "/small").expect("send");
    client.send(WINDOW_UPDATE, 0, 201, &[0, 0, 1, 0]).expect("send");
    let small = std::iter::from_fn(|| client.next()).find(|frame| frame.kind == DATA);
    assert_eq!(small.expect("an answer").payload, b"small");
}

#[test]
fn while_a_client_takes_nothing_no_more_of_its_requests_reach_an_endpoint() {
    let endpoint = endpoint();
    let subak = Setup::before(&[&endpoint]).start();
    let mut client = Frames::connect(&subak, &[(INITIAL_WINDOW, 0)]);
    ask_for_much(&mut client);
    endpoint.wait_for_requests(16);
    let began = Instant::now();
    // Long enough for the next of an untried client to start.
    while began.elapsed() < Duration::from_millis(1200) {
        let large = endpoint.requests().iter().filter(|one| one.line.contains(" /large ")).count();
        assert!(large <= MOST, "{large} reached it");
        assert_eq!(subak.get("/other"), (200, "small".into()), "of another client");
    }
    assert!(endpoint.open() <= MOST + 1, "{} connections", endpoint.open());
}

#[test]
fn a_client_that_stops_taking_keeps_as_many_streams_as_allowed() {
    let endpoint = endpoint();
    let subak = Setup::before(&[&endpoint]).listener("http2 = { stalled_streams = 5 }").start();
    // The connection's window lets some of it through: it looks like any other client.
    let mut client = Frames::connect(&subak, &[]);
    ask_for_much(&mut client);
    assert!(client.sync());
    wait_until("what is beyond has ended", || {
        let started = endpoint.requests().len();
        started >= 5 && endpoint.open() <= 5 + 4 + 1 && failures(&subak, "client_slow") > 0.0
    });
    // It takes again, and what is left of it ends.
    client.send(WINDOW_UPDATE, 0, 0, &[0x7f, 0, 0, 0]).expect("send");
    for number in 0..STREAMS {
        client.send(WINDOW_UPDATE, 0, 2 * number + 1, &[0, 0x7f, 0, 0]).expect("send");
    }
    let whole = std::iter::from_fn(|| client.next())
        .find(|frame| frame.kind == DATA && frame.flags & crate::support::frames::END_STREAM != 0);
    assert!(whole.is_some(), "no answer was complete");
}

/// Answers nothing before 100 requests are under way.
fn all_or_nothing() -> Http2Endpoint {
    Http2Endpoint::serving(
        || {
            let mut builder = h2::server::Builder::new();
            builder.max_concurrent_streams(1000);
            builder
        },
        |exchange| {
            Box::pin(async move {
                let is_first = exchange.request.uri().path() == "/first";
                let shared = exchange.shared.clone();
                let (_, respond) = exchange.read().await;
                let wanted = if is_first { 1 } else { 101 };
                while shared.read_so_far() < wanted {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
                answer(respond, Response::new(()), "small").await;
            })
        },
    )
}

#[test]
fn a_client_that_takes_its_responses_has_all_its_requests_started_at_once() {
    let endpoint = all_or_nothing();
    let setup = Setup::before_addresses([endpoint.address()])
        .pool("protocol = \"h2\"\nstreams = { per_connection = 200 }");
    let subak = setup.start();
    prior_knowledge(&subak, async |send| {
        assert_eq!(h2_get(send.clone(), "http://a.example/first").await.1, "small");
        let began = Instant::now();
        let tasks: Vec<_> = (0..STREAMS)
            .map(|_| tokio::task::spawn_local(h2_get(send.clone(), "http://a.example/")))
            .collect();
        for task in tasks {
            assert_eq!(task.await.expect("a task").1, "small");
        }
        // As many as an untried client has at once, every half second, would be 3 s.
        assert!(began.elapsed() < Duration::from_millis(2500), "{:?}", began.elapsed());
    });
}

#[test]
fn long_requests_of_a_new_client_all_start_soon() {
    let endpoint = all_or_nothing();
    let setup = Setup::before_addresses([endpoint.address()])
        .pool("protocol = \"h2\"\nstreams = { per_connection = 200 }");
    let subak = setup.start();
    prior_knowledge(&subak, async |send| {
        let tasks: Vec<_> = (0..STREAMS)
            .map(|_| tokio::task::spawn_local(h2_get(send.clone(), "http://a.example/")))
            .collect();
        // Each waits for one more than there are.
        wait_until_async(|| endpoint.under_way().0 == STREAMS as usize).await;
        drop(tasks);
    });
}

async fn wait_until_async(mut condition: impl FnMut() -> bool) {
    while !condition() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[test]
fn what_a_client_sends_does_not_excuse_that_it_takes_nothing() {
    let endpoint = Endpoint::scripted(|served| {
        if served.head().is_some() {
            let size = 8 << 20;
            served.send(format!("HTTP/1.1 200 OK\r\nContent-Length: {size}\r\n\r\n"));
            served.send(vec![b'z'; size]);
            served.read_to_end();
        }
    });
    let subak =
        Setup::before(&[&endpoint]).listener("timeouts = { write_idle = \"600ms\" }").start();
    let mut client = Frames::connect(&subak, &[(INITIAL_WINDOW, 100)]);
    client.send(HEADERS, END_HEADERS, 1, &request("POST", "/large")).expect("send");
    let began = Instant::now();
    // A few bytes of the body, and a few more of window, every now and then.
    let reset = loop {
        assert!(began.elapsed() < PATIENCE, "it went on for ever");
        client.send(DATA, 0, 1, &[b'x'; 300]).expect("send");
        client.send(WINDOW_UPDATE, 0, 1, &[0, 0, 0, 200]).expect("send");
        client.send(crate::support::frames::PING, 0, 0, &[7; 8]).expect("send");
        let frames = std::iter::from_fn(|| client.next());
        let told = frames.take_while(|frame| frame.kind != crate::support::frames::PING);
        if let Some(reset) = told.filter(|frame| frame.kind == RST_STREAM).last() {
            break reset;
        }
        std::thread::sleep(Duration::from_millis(100));
    };
    assert_eq!(reset.payload, ENHANCE_YOUR_CALM.to_be_bytes());
}
