//! What a stop, and a reload that takes an address away, cost clients: no request. And what a restart
//! costs them: a process that stops is in nobody's way.

use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::support::http2::prior_knowledge;
use crate::support::{
    Admin, Client, Dns, DnsMood, Endpoint, Record, Setup, Socket, Subak, fresh_address,
    fresh_directory, wait_until,
};

const CONNECTIONS: usize = 100;
const GET: &str = "GET / HTTP/1.1\r\nHost: example.com\r\n\r\n";

/// Clients of one connection each that ask until they are told that the connection ends.
struct Busy {
    served: Arc<AtomicUsize>,
    clients: Vec<JoinHandle<Result<(), String>>>,
}

impl Busy {
    fn begin(address: &str) -> Busy {
        let served = Arc::new(AtomicUsize::new(0));
        let clients = (0..CONNECTIONS).map(|number| {
            let (served, address) = (served.clone(), address.to_owned());
            thread::spawn(move || {
                let mut client = Client::connect(&address);
                // Some ask back to back, others pause as programs do.
                let pause = Duration::from_millis([0, 0, 1, 5][number % 4]);
                for count in 0.. {
                    client.try_send(GET).map_err(|error| format!("request {count}: {error}"))?;
                    let answer = client.try_answer("GET");
                    let answer = answer.map_err(|error| format!("request {count}: {error}"))?;
                    if answer.status != 200 {
                        return Err(format!("request {count}: {}", answer.status));
                    }
                    served.fetch_add(1, Ordering::SeqCst);
                    if answer.field("connection").is_some_and(|value| value == "close") {
                        client.assert_ends();
                        return Ok(());
                    }
                    thread::sleep(pause);
                }
                unreachable!("it asks for ever")
            })
        });
        let clients = clients.collect();
        Busy { served, clients }
    }

    #[track_caller]
    fn wait_for(&self, count: usize) {
        wait_until("requests are served", || self.served.load(Ordering::SeqCst) >= count);
    }

    /// Expects that every connection ended as announced, without a lost request.
    #[track_caller]
    fn assert_nothing_was_lost(self) {
        let ended = self.clients.into_iter().map(|client| client.join().expect("a client"));
        let lost: Vec<_> = ended.filter_map(Result::err).collect();
        assert!(lost.is_empty(), "{} of {CONNECTIONS} lost a request: {lost:?}", lost.len());
    }
}

/// Stops the whole process for a moment, and makes things happen meanwhile.
fn while_paused<T>(subak: &Subak, happens: impl FnOnce() -> T) -> T {
    subak.signal("STOP");
    let path = format!("/proc/{}/stat", subak.pid());
    wait_until("it is paused", || {
        std::fs::read_to_string(&path).expect("a process").contains(") T ")
    });
    let happened = happens();
    subak.signal("CONT");
    happened
}

// Stopping ---------------------------------------------------------------------

#[test]
fn a_stop_loses_no_request_of_a_hundred_busy_connections() {
    let endpoint = Endpoint::named("x");
    let mut subak = Setup::before(&[&endpoint]).workers(2).start_quietly();
    let busy = Busy::begin(subak.address());
    busy.wait_for(2000);
    subak.signal("TERM");
    busy.assert_nothing_was_lost();
    assert_eq!(subak.wait_for_exit().code(), Some(0));
    assert!(!subak.log().contains("cut off"), "{}", subak.log());
}

#[test]
fn a_request_that_crosses_the_signal_on_an_idle_connection_is_served() {
    let endpoint = Endpoint::named("x");
    let mut subak = Setup::before(&[&endpoint]).workers(2).start();
    let mut idle: Vec<_> = (0..20).map(|_| subak.client()).collect();
    for client in &mut idle {
        let answer = client.get("/");
        assert_eq!((answer.status, answer.field("connection")), (200, None));
    }
    while_paused(&subak, || {
        subak.signal("TERM");
        idle.iter_mut().for_each(|client| client.send(GET));
    });
    for client in &mut idle {
        // Without `Connection: close` where it was served before the signal was.
        assert_eq!(client.answer().status, 200);
        client.assert_ends();
    }
    assert_eq!(subak.wait_for_exit().code(), Some(0));
}

#[test]
fn connections_that_wait_in_the_kernel_when_it_stops_are_served() {
    let endpoint = Endpoint::named("x");
    let mut subak = Setup::before(&[&endpoint]).workers(2).start();
    let mut queued = while_paused(&subak, || {
        let queued: Vec<_> = (0..150)
            .map(|_| {
                let mut client = subak.client();
                client.send(GET);
                client
            })
            .collect();
        subak.signal("TERM");
        queued
    });
    for client in &mut queued {
        // Without `Connection: close` where it was served before the signal was.
        assert_eq!(client.answer().status, 200);
        client.assert_ends();
    }
    assert_eq!(subak.wait_for_exit().code(), Some(0));
}

/// Asks one stream after another until the server says goodbye; answers with what was lost.
async fn ask_until_goodbye(send: h2::client::SendRequest<bytes::Bytes>) -> Result<usize, String> {
    for count in 0.. {
        let mut send = match send.clone().ready().await {
            Ok(send) => send,
            Err(error) if error.is_go_away() || error.is_io() => return Ok(count),
            Err(error) => return Err(format!("request {count}: {error}")),
        };
        let request = http::Request::get("http://example.com/").body(()).expect("a request");
        let (answer, _) = match send.send_request(request, true) {
            Ok(sent) => sent,
            // Nothing of it has left.
            Err(_) => return Ok(count),
        };
        let answer = answer.await.map_err(|error| format!("request {count}: {error}"))?;
        let mut body = answer.into_body();
        while let Some(data) = body.data().await {
            let data = data.map_err(|error| format!("body {count}: {error}"))?;
            let _ = body.flow_control().release_capacity(data.len());
        }
    }
    unreachable!("it asks for ever")
}

#[test]
fn a_stop_loses_no_stream_of_a_busy_http2_connection() {
    let endpoint = Endpoint::named("x");
    let mut subak = Setup::before(&[&endpoint]).workers(2).start_quietly();
    prior_knowledge(&subak, async |send| {
        let asking: Vec<_> =
            (0..20).map(|_| tokio::task::spawn_local(ask_until_goodbye(send.clone()))).collect();
        while endpoint.requests().len() < 200 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        subak.signal("TERM");
        let mut asked = 0;
        for one in asking {
            asked += one.await.expect("a task").expect("no stream is lost");
        }
        assert!(asked >= 100, "{asked}");
    });
    assert_eq!(subak.wait_for_exit().code(), Some(0));
    assert!(!subak.log().contains("cut off"), "{}", subak.log());
}

#[test]
fn a_reload_that_takes_an_address_or_a_listener_away_loses_no_request() {
    let endpoint = Endpoint::named("x");
    let (stays, leaves, other) = (fresh_address(), fresh_address(), fresh_address());
    let setup = Setup::before(&[&endpoint]).workers(2).bind(&stays);
    let listener = format!("[listener.other]\nbind = {other:?}\npool = \"app\"\n");
    let both = format!("[{stays:?}, {leaves:?}]");
    let before = setup.text().replace(&format!("{stays:?}"), &both) + &listener;
    let subak = Subak::start_quietly_at(&before, &stays);
    let busy = [Busy::begin(&leaves), Busy::begin(&other)];
    busy.iter().for_each(|busy| busy.wait_for(1000));
    subak.write_config(&setup.text());
    subak.signal("HUP");
    busy.into_iter().for_each(Busy::assert_nothing_was_lost);
    wait_until("both are closed", || {
        [&leaves, &other].iter().all(|address| TcpStream::connect(address.as_str()).is_err())
    });
    assert_eq!(subak.get("/").0, 200);
}

#[test]
fn sigusr2_stops_nothing_and_says_what_to_do() {
    let endpoint = Endpoint::named("x");
    let subak = Setup::before(&[&endpoint]).start();
    subak.signal("USR2");
    subak.wait_for_log("SIGUSR2 does nothing");
    assert_eq!(subak.get("/").0, 200);
}

#[test]
fn a_stop_does_not_wait_for_names() {
    let dns = Dns::new(Vec::new());
    dns.be(DnsMood::Silent);
    let line = dns.line().replace("400ms", "30s");
    let address = fresh_address();
    let text =
        Setup::before_addresses(["app.internal:8080".into()]).top(&line).bind(&address).text();
    let mut subak = Subak::spawn(&text, &address);
    wait_until("the name is asked for", || dns.asked("app.internal", "udp") > 0);
    assert!(TcpStream::connect(&address).is_err(), "nothing is bound before names are known");
    subak.signal("TERM");
    assert_eq!(subak.wait_for_exit().code(), Some(0));
    assert!(!subak.log().contains("listening"), "{}", subak.log());
}

#[test]
fn nobody_is_let_in_before_names_have_been_answered() {
    let endpoint = Endpoint::on_inet(&fresh_address(), |served| {
        while served.request().is_some() {
            served.send(crate::support::ok("x"));
        }
    });
    let ip = endpoint.address().replace(":8080", "");
    let dns = Dns::new(vec![Record::address("app.internal", 1, &ip)]);
    dns.be(DnsMood::Slow(Duration::from_millis(300)));
    let line = dns.line().replace("400ms", "30s");
    let address = fresh_address();
    let text =
        Setup::before_addresses(["app.internal:8080".into()]).top(&line).bind(&address).text();
    let subak = Subak::spawn(&text, &address);
    let mut first = None;
    wait_until("it listens", || {
        first = TcpStream::connect(&address).ok();
        first.is_some()
    });
    let mut first = Client::on(Socket::tcp(first.expect("a connection")));
    assert_eq!(first.get("/").status, 200, "{}", subak.log());
}

// Starting again ---------------------------------------------------------------

const WEBSOCKET: &str = "GET /ws HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
    Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n";
const SWITCHED: &str = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
    Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";

/// Answers a WebSocket by an echo, everything else by 200.
fn echo() -> Endpoint {
    Endpoint::scripted(|served| {
        while let Some(request) = served.request() {
            if request.line.starts_with("GET /ws ") {
                served.send(SWITCHED);
                while let Some(bytes) = served.read(4) {
                    served.send(bytes);
                }
                return;
            }
            served.send(crate::support::ok("x"));
        }
    })
}

#[test]
fn a_new_process_starts_at_once_beside_one_that_still_holds_a_websocket() {
    let endpoint = echo();
    let directory = fresh_directory();
    let (pid_file, socket) = (directory.join("subak.pid"), directory.join("admin.sock"));
    let address = fresh_address();
    let text = Setup::before(&[&endpoint])
        .workers(2)
        .bind(&address)
        .top("shutdown_timeout = \"1h\"")
        .top(&format!("pid_file = {pid_file:?}\nadmin = {{ socket = {socket:?} }}"))
        .text();
    let pid = || std::fs::read_to_string(&pid_file).unwrap_or_default();
    let mut old = Subak::start_at(&text, &address);
    let mut tunnel = old.client();
    tunnel.send(WEBSOCKET);
    assert_eq!(tunnel.head().status, 101);
    assert_eq!(pid(), format!("{}\n", old.pid()));
    old.signal("TERM");
    let new = Subak::start_at(&text, &address);
    assert_eq!(new.get("/"), (200, "x".into()));
    assert_eq!(pid(), format!("{}\n", new.pid()));
    assert_eq!(Admin::of(&new).socket(), &socket);
    assert_eq!(Admin::of(&new).status()["pools"][0]["name"], "app");
    tunnel.send("ping");
    assert_eq!(tunnel.read(4), b"ping");
    // Its end takes nothing away that is the new one's.
    old.signal("TERM");
    assert_eq!(old.wait_for_exit().code(), Some(0));
    tunnel.assert_ends();
    assert_eq!(pid(), format!("{}\n", new.pid()));
    assert_eq!(Admin::of(&new).status()["pools"][0]["name"], "app");
    assert_eq!(new.get("/"), (200, "x".into()));
    let _ = std::fs::remove_dir_all(directory);
}

#[test]
fn a_tunnel_lasts_until_the_shutdown_timeout() {
    let endpoint = echo();
    let mut subak = Setup::before(&[&endpoint]).top("shutdown_timeout = \"1s\"").start();
    let mut tunnel = subak.client();
    tunnel.send(WEBSOCKET);
    assert_eq!(tunnel.head().status, 101);
    subak.signal("TERM");
    subak.wait_for_log("stopping");
    wait_until("the port is free", || TcpStream::connect(subak.address()).is_err());
    tunnel.send("ping");
    assert_eq!(tunnel.read(4), b"ping");
    tunnel.assert_ends();
    assert_eq!(subak.wait_for_exit().code(), Some(0));
    assert!(subak.log().contains("the time to stop is over"), "{}", subak.log());
}

#[test]
fn a_start_with_few_descriptors_says_for_how_many_clients_they_are() {
    let endpoint = Endpoint::named("x");
    let (few, address) = (["prlimit", "--nofile=500:500"], fresh_address());
    let setup = Setup::before(&[&endpoint]).bind(&address);
    let text = setup.text();
    let subak = Subak::spawn_with(&few, &text, &address).ready(&text);
    let log = subak.log();
    let expected = "the limit of 500 open files leaves room for 327 clients only";
    assert!(log.contains(expected) && log.contains("LimitNOFILE=65536"), "{log}");
    let meant = setup.top("max_connections = 300").text();
    drop(subak);
    let subak = Subak::spawn_with(&few, &meant, &address).ready(&meant);
    assert!(!subak.log().contains("leaves room"), "{}", subak.log());
}
