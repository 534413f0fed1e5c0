//! Probes of real sockets that behave in every way an endpoint can.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::net::UnixListener;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use subak_base::Address;
use subak_health::{
    Admin, AgentWarning, BodyMatch, Expect, Obstacle, Operational, ProbeFailure, ProbeResult,
};
use subak_message::Method;
use subak_probe::{Check, HttpCheck, Miss, Prober, Way, agent_line, check, with_port};

/// Long enough for a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);
/// For what must not answer in time.
const SHORT: Duration = Duration::from_millis(200);

fn run<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(future)
}

/// An endpoint that treats each connection in this way, in a thread of its own.
fn endpoint(script: impl Fn(TcpStream) + Send + 'static) -> Address {
    let listener = TcpListener::bind("127.0.0.1:0").expect("bind");
    let address = listener.local_addr().expect("its address");
    std::thread::spawn(move || {
        listener.incoming().for_each(|stream| script(stream.expect("a connection")))
    });
    Address::inet(address)
}

/// Reads a whole request and answers with these bytes.
fn answering(answer: &'static str) -> Address {
    endpoint(move |mut stream| {
        request(&mut stream);
        let _ = stream.write_all(answer.as_bytes());
    })
}

fn request(stream: &mut impl Read) -> String {
    let mut received = Vec::new();
    let mut byte = [0];
    while !received.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|count| count == 1) {
        received.push(byte[0]);
    }
    String::from_utf8(received).expect("text")
}

/// Reads and says nothing until the other side ends the connection.
fn hold(stream: &mut TcpStream) {
    let _ = std::io::copy(stream, &mut std::io::sink());
}

fn get(body: Option<&str>) -> Check {
    let body = body.map(|text| BodyMatch::contains(text).expect("a text"));
    let expect = Expect { body, ..Expect::default() };
    Check::Http(HttpCheck::new(Method::Get, "/healthz", None, expect).expect("a request"))
}

/// Makes a probe and checks that it took no longer than its limit, within reason.
fn probe(address: &Address, what: &Check, limit: Duration) -> ProbeResult {
    let began = Instant::now();
    let result = run(check(address, what, &Way::default(), limit));
    assert!(began.elapsed() < limit + PATIENCE, "{:?}", began.elapsed());
    result
}

fn failure(address: &Address, what: &Check, limit: Duration) -> ProbeFailure {
    match probe(address, what, limit) {
        ProbeResult::Failed(failure) => failure,
        other => panic!("{other:?}"),
    }
}

/// An address at which nothing listens, and nothing will while the test runs.
fn nobody() -> (TcpListener, Address) {
    let holder = TcpListener::bind("127.0.0.1:0").expect("bind");
    let port = holder.local_addr().expect("its address").port();
    // The same port of another address: nobody else is given it.
    (holder, Address::inet(([127, 77, 0, 1], port).into()))
}

#[test]
fn a_good_answer_passes_and_the_request_is_as_documented() {
    let (sender, heard) = mpsc::channel();
    let address = endpoint(move |mut stream| {
        sender.send(request(&mut stream)).expect("the test listens");
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").expect("send");
    });
    assert_eq!(probe(&address, &get(Some("ok")), PATIENCE), ProbeResult::Passed);
    let expected = format!(
        "GET /healthz HTTP/1.1\r\nHost: {address}\r\nUser-Agent: subak\r\nAccept: */*\r\n\
         Connection: close\r\n\r\n"
    );
    assert_eq!(heard.recv().expect("a request"), expected);
    assert_eq!(probe(&address, &Check::Tcp, PATIENCE), ProbeResult::Passed);
}

#[test]
fn everything_else_fails_with_what_was_wrong() {
    let refused = nobody();
    let silent = endpoint(|mut stream| hold(&mut stream));
    let begins = endpoint(|mut stream| {
        stream.write_all(b"HTTP/1.1 200 OK\r\nConte").expect("send");
        hold(&mut stream);
    });
    let closes = endpoint(|mut stream| {
        request(&mut stream);
        let _ = stream.shutdown(Shutdown::Write);
    });
    let resets = endpoint(|stream| {
        // Closing with something unread resets.
        stream.peek(&mut [0]).expect("a byte");
    });
    for (address, expected) in [
        (&refused.1, ProbeFailure::Refused),
        (&silent, ProbeFailure::FirstByteTimeout(SHORT)),
        (&begins, ProbeFailure::AnswerTimeout(SHORT)),
        (&answering("no HTTP at all\r\n\r\n"), ProbeFailure::Malformed),
        (&Address::Unix("/nobody/made/this.sock".into()), ProbeFailure::NoSocket),
    ] {
        assert_eq!(failure(address, &get(None), SHORT), expected);
    }
    assert_eq!(failure(&closes, &get(None), PATIENCE), ProbeFailure::Closed);
    assert_eq!(failure(&resets, &get(None), PATIENCE), ProbeFailure::Reset);
    let wrong = answering("HTTP/1.1 500 Oh\r\nContent-Length: 0\r\n\r\n");
    let said = failure(&wrong, &get(None), PATIENCE).to_string();
    assert_eq!(said, "status 500 is not in 200-399");
    let other = answering("HTTP/1.1 200 OK\r\n\r\nall is lost");
    let said = failure(&other, &get(Some("well")), PATIENCE).to_string();
    assert_eq!(said, "the body does not contain \"well\"");
}

#[test]
fn a_socket_whose_queue_is_full_takes_no_connection() {
    let any: std::net::SocketAddr = "127.0.0.1:0".parse().expect("an address");
    let full = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None);
    let full = full.expect("a socket");
    full.bind(&any.into()).expect("bind");
    full.listen(0).expect("listen");
    let address = full.local_addr().expect("its address").as_socket().expect("inet");
    let mut waiting = Vec::new();
    while let Ok(stream) = TcpStream::connect_timeout(&address, SHORT) {
        waiting.push(stream);
        assert!(waiting.len() < 100, "its queue does not fill");
    }
    let expected = ProbeFailure::ConnectTimeout(SHORT);
    assert_eq!(failure(&Address::inet(address), &Check::Tcp, SHORT), expected);
}

#[test]
fn unix_sockets_are_probed_too_and_wait_for_a_place_in_their_queue() {
    let directory = std::env::temp_dir().join(format!("subak-probe-{}", std::process::id()));
    std::fs::create_dir_all(&directory).expect("a directory");
    let path = directory.join("app.sock");
    let listener = socket2::Socket::new(socket2::Domain::UNIX, socket2::Type::STREAM, None);
    let listener = listener.expect("a socket");
    listener.bind(&socket2::SockAddr::unix(&path).expect("a path")).expect("bind");
    listener.listen(0).expect("listen");
    let address = Address::Unix(path.clone());
    let mut waiting = Vec::new();
    while probe(&address, &Check::Tcp, SHORT) == ProbeResult::Passed {
        let stream = socket2::Socket::new(socket2::Domain::UNIX, socket2::Type::STREAM, None);
        let stream = stream.expect("a socket");
        stream.set_nonblocking(true).expect("nonblocking");
        if stream.connect(&socket2::SockAddr::unix(&path).expect("a path")).is_err() {
            break;
        }
        waiting.push(stream);
        assert!(waiting.len() < 100, "its queue does not fill");
    }
    assert_eq!(failure(&address, &Check::Tcp, SHORT), ProbeFailure::ConnectTimeout(SHORT));

    let listener = UnixListener::from(std::os::fd::OwnedFd::from(listener));
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.expect("a connection");
            request(&mut stream);
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n");
        }
    });
    drop(waiting);
    assert_eq!(probe(&address, &get(None), PATIENCE), ProbeResult::Passed);
    std::fs::remove_dir_all(&directory).expect("remove the directory");
}

#[test]
fn agents_say_a_line() {
    let says = |line: &'static str| {
        let address = endpoint(move |mut stream| {
            let _ = stream.write_all(line.as_bytes());
        });
        run(agent_line(&address, PATIENCE))
    };
    let line = says("drain 40% down # disk\n").expect("a line");
    assert_eq!(line.reply.weight_percent, Some(40));
    assert_eq!(line.reply.admin, Some(Admin::Drain));
    assert_eq!(line.reply.operational, Some(Operational::Down));
    assert_eq!(line.reply.reason.as_deref(), Some("disk"));
    assert_eq!(line.warnings, []);
    assert_eq!(says("75%").expect("a line").reply.weight_percent, Some(75));
    let odd = says("75% quickly\n").expect("a line");
    assert_eq!(odd.warnings, [AgentWarning::UnknownWord("quickly".to_owned())]);
    assert_eq!(says(""), Err(Miss::Failed(ProbeFailure::Closed)));
}

#[test]
fn an_agent_that_says_nothing_in_time_has_said_nothing() {
    let silent = endpoint(|mut stream| hold(&mut stream));
    let failed = |failure| Err(Miss::Failed(failure));
    let asked = run(agent_line(&silent, SHORT));
    assert_eq!(asked, failed(ProbeFailure::FirstByteTimeout(SHORT)));
    let begins = endpoint(|mut stream| {
        stream.write_all(b"75").expect("send");
        hold(&mut stream);
    });
    assert_eq!(run(agent_line(&begins, SHORT)), failed(ProbeFailure::AnswerTimeout(SHORT)));
    assert_eq!(run(agent_line(&nobody().1, PATIENCE)), failed(ProbeFailure::Refused));
}

#[test]
fn questions_beyond_the_bound_wait_their_turn_and_give_up_in_time() {
    let silent = endpoint(|mut stream| hold(&mut stream));
    let good = answering("HTTP/1.1 200 OK\r\n\r\n");
    run(async {
        let prober = Prober::new(1);
        let (sender, mut results) = tokio::sync::mpsc::unbounded_channel();
        let ask = |name: &'static str, address: &Address, limit| {
            let sender = sender.clone();
            prober.probe(
                address.clone(),
                (get(None).into(), Way::default()),
                limit,
                move |result| {
                    sender.send((name, result)).expect("the test listens");
                },
            );
        };
        ask("holds the socket", &silent, Duration::from_millis(500));
        ask("gives up", &good, Duration::from_millis(100));
        ask("has its turn", &good, PATIENCE);
        let mut next = async || results.recv().await.expect("a result");
        let given_up = ProbeResult::Inconclusive(Obstacle::Descriptors);
        assert_eq!(next().await, ("gives up", given_up));
        assert_eq!(next().await.0, "holds the socket");
        assert_eq!(next().await, ("has its turn", ProbeResult::Passed));
    });
}

#[test]
fn a_probe_leaves_no_connection_in_time_wait() {
    let address = answering("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    let Address::Inet(inet) = address else { panic!("{address}") };
    for what in [Check::Tcp, get(None)] {
        for _ in 0..20 {
            assert_eq!(probe(&address, &what, PATIENCE), ProbeResult::Passed);
        }
    }
    assert_eq!(with_port(&address, inet.port()), address);
    let table = std::fs::read_to_string("/proc/net/tcp").expect("the kernel's table");
    let port = format!(":{:04X}", inet.port());
    let waiting = table.lines().filter(|line| {
        let words: Vec<_> = line.split_whitespace().collect();
        words.len() > 3 && words[2].ends_with(&port) && words[3] == "06"
    });
    assert_eq!(waiting.count(), 0, "{table}");
}
