//! gRPC: calls that fail end in gRPC's own way, deadlines bound what Subak waits for, a status is
//! retried, counted, logged and held against the endpoint where that is configured, and endpoints are
//! probed by gRPC's health check.

use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::support::http2::{h2_get, prior_knowledge};
use crate::support::{Admin, Endpoint, Scrape, Setup, fresh_directory, ok, wait_until};
use bytes::Bytes;
use h2::client::SendRequest;
use http::{HeaderMap, HeaderValue, Request, Response};

/// How a call ended: all there was of its answer.
#[derive(Debug)]
struct Ended {
    head: Response<()>,
    /// The head was the end too.
    trailers_only: bool,
    body: Vec<u8>,
    trailers: HeaderMap,
}

impl Ended {
    fn field(&self, name: &str) -> Option<&str> {
        let value = self.trailers.get(name).or_else(|| self.head.headers().get(name));
        value.and_then(|value| value.to_str().ok())
    }

    fn status(&self) -> Option<&str> {
        self.field("grpc-status")
    }
}

/// Calls with one message.
async fn call(send: SendRequest<Bytes>, timeout: Option<&str>) -> Ended {
    let mut send = send.ready().await.expect("ready");
    let mut request = Request::post("http://example.com/shop.Cart/Add")
        .header("content-type", "application/grpc+proto")
        .header("te", "trailers");
    if let Some(timeout) = timeout {
        request = request.header("grpc-timeout", timeout);
    }
    let (answer, mut stream) =
        send.send_request(request.body(()).expect("request"), false).expect("a stream");
    stream.send_data(Bytes::from_static(MESSAGE), true).expect("data");
    let (parts, mut body) = answer.await.expect("an answer").into_parts();
    let trailers_only = body.is_end_stream();
    let mut bytes = Vec::new();
    while let Some(data) = body.data().await {
        bytes.extend_from_slice(&data.expect("data"));
    }
    let trailers = body.trailers().await.expect("trailers").unwrap_or_default();
    Ended { head: Response::from_parts(parts, ()), trailers_only, body: bytes, trailers }
}

const MESSAGE: &[u8] = b"\0\0\0\0\x02hi";

/// Ends calls by this status before their first message.
fn refusing(status: u8) -> Endpoint {
    Endpoint::answering(format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/grpc\r\ngrpc-status: {status}\r\n\
         grpc-message: no\r\nContent-Length: 0\r\n\r\n"
    ))
}

/// Answers calls by a message and this status.
fn ending(status: u8) -> Endpoint {
    Endpoint::answering(format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/grpc\r\nTransfer-Encoding: chunked\r\n\r\n\
         7\r\n\0\0\0\0\x02ok\r\n0\r\ngrpc-status: {status}\r\n\r\n"
    ))
}

#[test]
fn a_call_that_fails_here_ends_in_grpcs_own_way() {
    let subak = Setup::before_addresses([crate::support::fresh_address()]).start();
    let (ended, plain) = prior_knowledge(&subak, async |send| {
        (call(send.clone(), None).await, h2_get(send, "http://example.com/").await.0)
    });
    assert_eq!(ended.head.status(), 200);
    assert!(ended.trailers_only, "{ended:?}");
    assert_eq!(ended.field("content-type"), Some("application/grpc"));
    assert_eq!((ended.status(), ended.field("grpc-message")), (Some("14"), Some("unavailable")));
    assert_eq!(plain.status(), 502, "who asks by HTTP is answered by HTTP");

    let endpoint = Endpoint::named("x");
    let subak = Setup::before(&[&endpoint]).listener("limits = { body = 3 }").start();
    let ended = prior_knowledge(&subak, async |send| call(send, None).await);
    assert_eq!(ended.status(), Some("8"), "{ended:?}");
}

#[test]
fn nobody_waits_longer_than_the_call_or_the_pool_allows() {
    let endpoint = Endpoint::scripted(|served| {
        served.request();
        served.read_to_end();
    });
    let subak = Setup::before(&[&endpoint]).start();
    let began = Instant::now();
    let ended = prior_knowledge(&subak, async |send| call(send, Some("300m")).await);
    assert_eq!((ended.head.status().as_u16(), ended.status()), (200, Some("4")), "{ended:?}");
    assert_eq!(ended.field("grpc-message"), Some("the call's own deadline has passed"));
    assert!(began.elapsed() >= Duration::from_millis(300));
    wait_until("the endpoint is let go", || endpoint.open() == 0);

    let pool = "timeouts = { first_byte = \"300ms\" }\nretry = { attempts = 1 }";
    let subak = Setup::before(&[&endpoint]).pool(pool).start();
    let ended = prior_knowledge(&subak, async |send| call(send, Some("1H")).await);
    assert_eq!((ended.head.status().as_u16(), ended.status()), (200, Some("4")), "{ended:?}");
}

#[test]
fn a_call_in_line_waits_no_longer_than_its_deadline() {
    let endpoint = Endpoint::scripted(|served| {
        served.request();
        served.read_to_end();
    });
    let subak = Setup::before(&[&endpoint]).pool("max_in_flight = 1").start();
    prior_knowledge(&subak, async |send| {
        let first = tokio::task::spawn_local(call(send.clone(), Some("1M")));
        while endpoint.requests().is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let ended = call(send, Some("200m")).await;
        assert_eq!(ended.status(), Some("4"), "{ended:?}");
        assert!(!first.is_finished());
        first.abort();
    });
    assert_eq!(endpoint.requests().len(), 1);
}

#[test]
fn a_status_before_the_first_message_is_tried_elsewhere_where_that_is_configured() {
    let retry = "retry = { budget = 1, min_per_second = 1000, on = [\"grpc:unavailable\"] }";
    let (no, yes) = (refusing(14), ending(0));
    let subak = Setup::before(&[&no, &yes]).pool(retry).start();
    prior_knowledge(&subak, async |send| {
        for _ in 0..10 {
            let ended = call(send.clone(), None).await;
            assert_eq!((ended.status(), &ended.body[..]), (Some("0"), &b"\0\0\0\0\x02ok"[..]));
        }
    });
    assert!(no.requests().len() >= 5, "it was asked first half of the time at least");
    assert_eq!(yes.requests().len(), 10);
    assert!(yes.requests().iter().all(|request| request.body == MESSAGE), "it is sent once more");

    // Without leave; another status; after a message; and nobody left to ask.
    for (pool, endpoint, status, asked) in [
        ("", refusing(14), "14", 1),
        (retry, refusing(13), "13", 1),
        (retry, ending(14), "14", 1),
        (retry, refusing(14), "14", 2),
    ] {
        let other = if asked == 2 { refusing(14) } else { ending(0) };
        let subak = Setup::before(&[&endpoint, &other]).pool(pool).start();
        let ended = prior_knowledge(&subak, async |send| call(send, None).await);
        assert_eq!(ended.status(), Some(status), "{pool:?}");
        assert_eq!(endpoint.requests().len() + other.requests().len(), asked, "{pool:?}");
    }
}

/// A log with what tells calls apart.
fn logged(path: &PathBuf) -> String {
    format!(
        "access_log = {{ path = {path:?}, flush = \"200ms\", \
         format = [\"status\", \"grpc_status\", \"end\"] }}"
    )
}

#[test]
fn calls_are_logged_and_counted_by_their_status() {
    let path = fresh_directory().join("access.json");
    let endpoint = Endpoint::scripted(|served| {
        let statuses = ["0", "5", "99"];
        for status in statuses {
            let Some(_) = served.request() else { return };
            served.send(format!(
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\ngrpc-status: {status}\r\n\r\n"
            ));
        }
        if served.request().is_some() {
            served.send(ok("no status at all"));
        }
    });
    let subak = Setup::before(&[&endpoint]).top(&logged(&path)).start();
    prior_knowledge(&subak, async |send| {
        for _ in 0..4 {
            call(send.clone(), None).await;
        }
    });
    wait_until("the endpoint is gone", || endpoint.open() == 0);
    let read = || std::fs::read_to_string(&path).unwrap_or_default();
    wait_until("the lines are there", || read().lines().count() >= 4);
    let lines: Vec<String> = read().lines().map(str::to_owned).collect();
    assert_eq!(
        lines,
        [
            r#"{"status":200,"grpc_status":0,"end":"ok"}"#,
            r#"{"status":200,"grpc_status":5,"end":"ok"}"#,
            r#"{"status":200,"grpc_status":2,"end":"ok"}"#,
            r#"{"status":200,"grpc_status":null,"end":"ok"}"#,
        ]
    );
    let scrape = Scrape::parse(&Admin::of(&subak).ask("GET", "/metrics", "").text());
    let calls = |code: &str| {
        scrape.value("subak_pool_grpc_calls_total", &[("pool", "app"), ("code", code)])
    };
    assert_eq!([calls("ok"), calls("not_found"), calls("unknown")], [1.0; 3]);
}

#[test]
fn an_endpoint_whose_calls_fail_is_ejected_where_that_is_configured() {
    let eject = "eject = { consecutive = 3, grpc = [\"internal\"] }";
    for (pool, asked) in [(eject, 3), ("eject = { consecutive = 3 }", 10)] {
        let (bad, good) = (refusing(13), ending(0));
        let subak = Setup::before(&[&bad, &good]).pool(pool).start();
        prior_knowledge(&subak, async |send| {
            for _ in 0..20 {
                call(send.clone(), None).await;
            }
        });
        assert_eq!(bad.requests().len(), asked, "{pool}");
    }
}

/// What an endpoint says to gRPC's health check.
#[derive(Clone, Copy)]
enum Says {
    /// This state, in a message.
    State(u8),
    /// This status, without a message.
    Status(&'static str),
}

/// An endpoint that speaks HTTP/2, and answers health checks as it is told to. Ends when it is dropped.
struct Checked {
    address: String,
    says: Arc<Mutex<Says>>,
    asked: Arc<AtomicUsize>,
    /// What was asked last.
    last: Arc<Mutex<(String, Vec<u8>)>>,
    _stop: tokio::sync::oneshot::Sender<()>,
}

impl Checked {
    fn new(says: Says) -> Checked {
        let listener = TcpListener::bind("127.0.0.1:0").expect("bind an endpoint");
        listener.set_nonblocking(true).expect("a setting");
        let address = listener.local_addr().expect("its address").to_string();
        let (stop, stopped) = tokio::sync::oneshot::channel();
        let says = Arc::new(Mutex::new(says));
        let (asked, last) = (Arc::default(), Arc::default());
        let checked = Checked {
            address,
            says: says.clone(),
            asked: Arc::clone(&asked),
            last: Arc::clone(&last),
            _stop: stop,
        };
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let local = tokio::task::LocalSet::new();
            let serve = async {
                let listener = tokio::net::TcpListener::from_std(listener).expect("a listener");
                while let Ok((stream, _)) = listener.accept().await {
                    let (says, asked, last) = (says.clone(), asked.clone(), last.clone());
                    tokio::task::spawn_local(async move {
                        let Ok(mut connection) = h2::server::handshake(stream).await else {
                            return;
                        };
                        while let Some(Ok((request, respond))) = connection.accept().await {
                            let says = *says.lock().expect("says");
                            let (asked, last) = (asked.clone(), last.clone());
                            tokio::task::spawn_local(async move {
                                let path = request.uri().path().to_owned();
                                let message = answer(request, respond, says).await;
                                *last.lock().expect("last") = (path, message);
                                asked.fetch_add(1, Ordering::SeqCst);
                            });
                        }
                    });
                }
            };
            runtime.expect("runtime").block_on(local.run_until(async {
                tokio::select! { () = serve => {}, _ = stopped => {} }
            }));
        });
        checked
    }

    fn now_says(&self, says: Says) {
        *self.says.lock().expect("says") = says;
    }
}

async fn answer(
    request: Request<h2::RecvStream>,
    mut respond: h2::server::SendResponse<Bytes>,
    says: Says,
) -> Vec<u8> {
    let mut body = request.into_body();
    let mut message = Vec::new();
    while let Some(Ok(data)) = body.data().await {
        message.extend_from_slice(&data);
    }
    let head = Response::builder().header("content-type", "application/grpc");
    match says {
        Says::State(state) => {
            let head = head.body(()).expect("a head");
            let Ok(mut send) = respond.send_response(head, false) else { return message };
            let _ = send.send_data(Bytes::copy_from_slice(&[0, 0, 0, 0, 2, 8, state]), false);
            let mut trailers = HeaderMap::new();
            trailers.insert("grpc-status", HeaderValue::from_static("0"));
            let _ = send.send_trailers(trailers);
        }
        Says::Status(status) => {
            let head = head.header("grpc-status", status).header("grpc-message", "oh\tno");
            let _ = respond.send_response(head.body(()).expect("a head"), true);
        }
    }
    message
}

const PROBE: &str = "health = { grpc = \"shop.Cart\", interval = \"200ms\", \
                     fast_interval = \"100ms\", timeout = \"200ms\", jitter = 0 }";

#[test]
fn endpoints_are_probed_by_grpcs_health_check() {
    let endpoint = Checked::new(Says::State(1));
    let subak = Setup::before_addresses([endpoint.address.clone()]).pool(PROBE).start();
    let is_said = |text: &str| wait_until(text, || subak.log().contains(text));
    wait_until("it is asked", || endpoint.asked.load(Ordering::SeqCst) >= 2);
    assert!(!subak.log().contains("gRPC health check"), "{}", subak.log());
    let (path, message) = endpoint.last.lock().expect("last").clone();
    assert_eq!(path, "/grpc.health.v1.Health/Check");
    assert_eq!(message, b"\0\0\0\0\x0b\x0a\x09shop.Cart");

    endpoint.now_says(Says::State(2));
    is_said("gRPC health check: NOT_SERVING");
    endpoint.now_says(Says::State(1));
    is_said(&format!("{}: down to ready", endpoint.address));
}

#[test]
fn each_refusal_of_a_health_check_has_its_reason() {
    for (says, reason) in [
        (Says::State(3), "SERVICE_UNKNOWN"),
        (Says::State(0), "UNKNOWN"),
        (Says::Status("12"), "the server has no health service (UNIMPLEMENTED)"),
        (Says::Status("5"), "the server does not know this service (NOT_FOUND)"),
        (Says::Status("13"), "grpc-status 13: oh"),
    ] {
        let endpoint = Checked::new(says);
        let subak = Setup::before_addresses([endpoint.address.clone()]).pool(PROBE).start();
        subak.wait_for_log(&format!("gRPC health check: {reason}"));
    }
    let endpoint = Endpoint::scripted(|served| {
        served.read(24);
        served.send("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
        served.read_to_end();
    });
    let subak = Setup::before(&[&endpoint]).pool(PROBE).start();
    subak.wait_for_log("gRPC health check: it does not speak HTTP/2 here");
}

#[test]
fn a_health_check_goes_by_tls_where_the_pool_does() {
    let directory = crate::support::fresh_directory();
    crate::support::http2::self_made_certificate(&directory);
    let [chain, key] = ["site.pem", "site.key"].map(|file| directory.join(file));
    let endpoint = Checked::new(Says::State(1));
    // TLS before it, as a sidecar has it.
    let secure = Setup::before_addresses([endpoint.address.clone()])
        .pool("protocol = \"h2\"")
        .listener(&format!(
            "protocols = [\"h2\"]\ntls = {{ certificates = [{{ chain = {chain:?}, key = {key:?} }}] }}"
        ))
        .start();
    let before = |tls: &str| {
        Setup::before_addresses([secure.address().to_owned()])
            .pool("protocol = \"h2\"")
            .pool(&PROBE.replace("200ms", "2s"))
            .pool(tls)
            .start()
    };
    let trusting = before(&format!("tls = {{ ca = {chain:?}, server_name = \"localhost\" }}"));
    wait_until("it is asked", || endpoint.asked.load(Ordering::SeqCst) >= 2);
    endpoint.now_says(Says::State(2));
    trusting.wait_for_log("gRPC health check: NOT_SERVING");
    let strange = before("tls = { server_name = \"localhost\" }");
    strange.wait_for_log("TLS handshake failed");
    let _ = std::fs::remove_dir_all(directory);
}
