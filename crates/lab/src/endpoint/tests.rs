use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use super::*;

fn start(names: &[&str]) -> Endpoints {
    let any: SocketAddr = "127.0.0.1:0".parse().expect("an address");
    let specs = names.iter().map(|name| EndpointSpec::new(*name, any)).collect();
    Endpoints::start(specs).expect("endpoints")
}

fn connect(endpoints: &Endpoints, index: usize) -> TcpStream {
    let stream = TcpStream::connect(endpoints.address(index)).expect("a connection");
    stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a read timeout");
    stream
}

/// Sends `bytes` on a new connection and reads until the endpoint closes it.
fn talk(endpoints: &Endpoints, bytes: &[u8]) -> String {
    let mut stream = connect(endpoints, 0);
    stream.write_all(bytes).expect("to send");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer, then the end");
    answer
}

fn read_exactly(stream: &mut TcpStream, text: &str) {
    let mut bytes = vec![0; text.len()];
    stream.read_exact(&mut bytes).expect("an answer");
    assert_eq!(String::from_utf8(bytes).expect("ASCII"), text);
}

const SMALL: &str =
    "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 2\r\nX-Endpoint: a\r\n\r\na\n";

#[test]
fn small_answers_on_one_connection() {
    let endpoints = start(&["a"]);
    let mut stream = connect(&endpoints, 0);
    for _ in 0..3 {
        stream.write_all(b"GET /small HTTP/1.1\r\nHost: x\r\n\r\n").expect("to send");
        read_exactly(&mut stream, SMALL);
    }
    assert_eq!((endpoints.hits(0), endpoints.connections(0)), (3, 1));
}

#[test]
fn each_endpoint_has_its_own_name_and_count() {
    let endpoints = start(&["a", "b"]);
    let mut stream = connect(&endpoints, 1);
    stream.write_all(b"GET / HTTP/1.0\r\n\r\n").expect("to send");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    assert!(answer.contains("X-Endpoint: b\r\n"), "{answer}");
    assert_eq!(endpoints.stop(), [0, 1]);
}

#[test]
fn http_1_0_is_told_that_its_connection_stays() {
    let endpoints = start(&["a"]);
    let kept = "GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n";
    let answer = talk(&endpoints, format!("{kept}GET / HTTP/1.0\r\n\r\n").as_bytes());
    let answers: Vec<_> = answer.split_inclusive("\r\n\r\na\n").collect();
    assert!(answers[0].contains("\r\nConnection: keep-alive\r\n"), "{answer}");
    assert_eq!(answers[1..], [SMALL]);
}

#[test]
fn a_large_body_whole_and_by_head_alone() {
    let endpoints = start(&["a"]);
    let answer = talk(&endpoints, b"GET /64k HTTP/1.1\r\nConnection: close\r\n\r\n");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    assert!(head.contains("Content-Length: 65536"), "{head}");
    assert_eq!(body.len(), LARGE_BODY);
    let answer = talk(&endpoints, b"HEAD /64k HTTP/1.1\r\nConnection: close\r\n\r\n");
    assert_eq!(answer, format!("{head}\r\n\r\n"));
}

#[test]
fn large_answers_to_a_client_that_does_not_read_wait_and_then_come_whole() {
    const ASKED: usize = 200;
    let endpoints = start(&["a"]);
    let mut stream = connect(&endpoints, 0);
    stream.write_all(&b"GET /64k HTTP/1.1\r\n\r\n".repeat(ASKED - 1)).expect("to send");
    stream.write_all(b"GET /64k HTTP/1.0\r\n\r\n").expect("to send");
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).expect("all answers, then the end");
    let heads = memchr::memmem::find_iter(&bytes, b"HTTP/1.1 200 OK").count();
    assert_eq!(heads, ASKED);
    assert!(bytes.len() > ASKED * LARGE_BODY);
    assert_eq!(endpoints.hits(0), ASKED as u64);
}

#[test]
fn pipelined_requests_with_bodies_are_answered_in_order() {
    let endpoints = start(&["a"]);
    let answer = talk(
        &endpoints,
        b"POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello\
          POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n\
          GET / HTTP/1.0\r\n\r\n",
    );
    assert_eq!(answer, SMALL.repeat(3));
}

#[test]
fn a_request_may_come_byte_by_byte() {
    let endpoints = start(&["a"]);
    let mut stream = connect(&endpoints, 0);
    stream.set_nodelay(true).expect("no delay");
    for byte in b"POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\nok" {
        stream.write_all(&[*byte]).expect("to send");
    }
    read_exactly(&mut stream, SMALL);
}

#[test]
fn a_client_that_expects_it_is_told_to_go_on() {
    let endpoints = start(&["a"]);
    let mut stream = connect(&endpoints, 0);
    stream
        .write_all(b"POST / HTTP/1.1\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n")
        .expect("to send");
    read_exactly(&mut stream, "HTTP/1.1 100 Continue\r\n\r\n");
    stream.write_all(b"ok").expect("to send");
    read_exactly(&mut stream, SMALL);
}

#[test]
fn nonsense_is_refused_and_the_connection_closed() {
    let endpoints = start(&["a"]);
    let answer = talk(&endpoints, b"nonsense\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
    assert_eq!(endpoints.hits(0), 0);
}

#[test]
fn stopping_closes_connections_and_frees_the_address() {
    let endpoints = start(&["a"]);
    let address = endpoints.address(0);
    let mut stream = connect(&endpoints, 0);
    stream.write_all(b"GET / HTTP/1.1\r\n\r\n").expect("to send");
    read_exactly(&mut stream, SMALL);
    endpoints.stop();
    assert_eq!(stream.read(&mut [0; 1]).expect("the end"), 0);
    let again = Endpoints::start(vec![EndpointSpec::new("a", address)]).expect("the same address");
    assert_eq!(again.address(0), address);
}

#[test]
fn endpoints_on_ipv6() {
    let any: SocketAddr = "[::1]:0".parse().expect("an address");
    let endpoints = Endpoints::start(vec![EndpointSpec::new("a", any)]).expect("an endpoint");
    assert_eq!(talk(&endpoints, b"GET / HTTP/1.0\r\n\r\n"), SMALL);
}

#[test]
fn a_busy_address_and_a_bad_name_are_errors() {
    let endpoints = start(&["a"]);
    let error = Endpoints::start(vec![EndpointSpec::new("b", endpoints.address(0))])
        .expect_err("the address is taken");
    assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
    assert!(error.to_string().contains(&endpoints.address(0).to_string()), "{error}");
    let any: SocketAddr = "127.0.0.1:0".parse().expect("an address");
    assert!(Endpoints::start(vec![EndpointSpec::new("two words", any)]).is_err());
}

/// So many clients, each with one request on a connection of its own.
fn ask_at_once(endpoints: &Endpoints, clients: usize) -> Vec<(String, Duration)> {
    std::thread::scope(|scope| {
        let ask = || {
            let start = std::time::Instant::now();
            let answer = talk(endpoints, b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n");
            (answer, start.elapsed())
        };
        let clients: Vec<_> = (0..clients).map(|_| scope.spawn(ask)).collect();
        clients.into_iter().map(|client| client.join().expect("a client")).collect()
    })
}

fn behaving(behaviour: Behaviour) -> Endpoints {
    let any: SocketAddr = "127.0.0.1:0".parse().expect("an address");
    Endpoints::start(vec![EndpointSpec::new("a", any).behaving(behaviour)]).expect("an endpoint")
}

#[test]
fn service_takes_its_time_and_the_line_is_served_one_after_the_other() {
    let service = Some(Service::Constant(Duration::from_millis(40)));
    let endpoints = behaving(Behaviour { service, concurrency: Some(1), ..Behaviour::default() });
    let mut took: Vec<_> = ask_at_once(&endpoints, 4).into_iter().map(|(_, took)| took).collect();
    took.sort();
    // Whenever the machine let each client begin, the last waited for all four services.
    assert!(took[0] >= Duration::from_millis(40), "{took:?}");
    let stats = talk(&endpoints, b"GET /__stats HTTP/1.1\r\nConnection: close\r\n\r\n");
    let body: serde_json::Value =
        serde_json::from_str(stats.split_once("\r\n\r\n").expect("a head").1).expect("JSON");
    assert_eq!(body["endpoints"][0]["hits"], 4, "the counters are no hit: {body}");
    assert_eq!(body["endpoints"][0]["service_seconds"], 0.16);
    assert_eq!(body["endpoints"][0]["in_service"], 0);
}

#[test]
fn requests_of_one_connection_are_served_in_order_and_keep_alive_goes_on() {
    let service = Some(Service::Constant(Duration::from_millis(5)));
    let endpoints = behaving(Behaviour { service, body: Some(3), ..Behaviour::default() });
    let start = std::time::Instant::now();
    let answer = talk(
        &endpoints,
        b"GET /1 HTTP/1.1\r\n\r\nHEAD /2 HTTP/1.1\r\n\r\nGET /3 HTTP/1.1\r\nConnection: close\r\n\r\n",
    );
    assert!(start.elapsed() >= Duration::from_millis(15), "{:?}", start.elapsed());
    assert_eq!(answer.matches("200 OK").count(), 3, "{answer}");
    assert_eq!(answer.matches("xxx").count(), 2, "{answer}");
    assert_eq!(endpoints.hits(0), 3);
}

#[test]
fn what_is_beyond_the_line_is_refused_and_a_share_fails() {
    let service = Some(Service::Constant(Duration::from_millis(300)));
    let full =
        behaving(Behaviour { service, concurrency: Some(1), queue: 0, ..Behaviour::default() });
    let answers = ask_at_once(&full, 3);
    let refused = answers.iter().filter(|(answer, _)| answer.starts_with("HTTP/1.1 503")).count();
    let served = answers.iter().filter(|(answer, _)| answer.starts_with("HTTP/1.1 200")).count();
    assert!(refused + served == 3 && served >= 1, "{answers:?}");
    let broken = behaving(Behaviour { fails: 1.0, ..Behaviour::default() });
    assert!(ask_at_once(&broken, 1)[0].0.starts_with("HTTP/1.1 500"));
}

#[test]
fn work_uses_a_core_and_is_answered() {
    let service = Some(Service::Constant(Duration::from_millis(20)));
    let endpoints =
        behaving(Behaviour { service, works: true, concurrency: Some(2), ..Behaviour::default() });
    for (answer, took) in ask_at_once(&endpoints, 3) {
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        assert!(took >= Duration::from_millis(20), "{took:?}");
    }
}

#[test]
fn a_client_that_leaves_while_it_waits_takes_nobodys_answer_along() {
    let service = Some(Service::Constant(Duration::from_millis(60)));
    let endpoints = behaving(Behaviour { service, concurrency: Some(1), ..Behaviour::default() });
    let mut leaves = connect(&endpoints, 0);
    leaves.write_all(b"GET / HTTP/1.1\r\n\r\n").expect("to send");
    drop(leaves);
    for (answer, _) in ask_at_once(&endpoints, 3) {
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
}

#[test]
fn a_condition_is_set_over_http_and_the_endpoint_lives_meanwhile() {
    let endpoints = start(&["a"]);
    let set = |query: &str| {
        talk(&endpoints, format!("PUT /__condition?{query} HTTP/1.1\r\n\r\n").as_bytes())
    };
    let ask = |path: &str| {
        talk(&endpoints, format!("GET {path} HTTP/1.1\r\nConnection: close\r\n\r\n").as_bytes())
    };
    assert!(set("failing=1").contains("\"hits\": 0"));
    assert!(ask("/").starts_with("HTTP/1.1 500 "));
    assert!(ask("/__health").starts_with("HTTP/1.1 200 "));
    set("lossy=1");
    assert_eq!(ask("/"), "");
    assert!(set("lossy=2").starts_with("HTTP/1.1 400 "));
    set("");
    assert!(ask("/").starts_with("HTTP/1.1 200 "));
    assert_eq!(endpoints.stop(), [3], "what is for the endpoint itself is no hit");
}

/// Sets the condition of the first endpoint.
fn set(endpoints: &Endpoints, query: &str) {
    let request = format!("PUT /__condition?{query} HTTP/1.1\r\n\r\n");
    let answer = talk(endpoints, request.as_bytes());
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
}

const POST: &[u8] = b"POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello";

#[test]
fn a_fault_takes_the_place_of_each_answer() {
    let endpoints = start(&["a"]);
    set(&endpoints, "fault=close");
    assert_eq!(talk(&endpoints, POST), "");
    set(&endpoints, "fault=garbage");
    let mut bytes = Vec::new();
    let mut stream = connect(&endpoints, 0);
    stream.write_all(POST).expect("to send");
    stream.read_to_end(&mut bytes).expect("garbage, then the end");
    assert!(!bytes.is_empty() && !bytes.starts_with(b"HTTP"), "{bytes:?}");
    set(&endpoints, "fault=truncate");
    assert_eq!(talk(&endpoints, POST), SMALL[..SMALL.len() - 1]);
    set(&endpoints, "fault=reset");
    let mut stream = connect(&endpoints, 0);
    stream.write_all(POST).expect("to send");
    let error = stream.read(&mut [0; 1]).expect_err("a reset");
    assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
    assert_eq!(endpoints.hits(0), 4);
}

#[test]
fn an_answer_that_hangs_comes_when_the_endpoint_is_well_and_the_connection_goes_on() {
    let endpoints = start(&["a"]);
    set(&endpoints, "fault=hang");
    let mut stream = connect(&endpoints, 0);
    stream.write_all(POST).expect("to send");
    stream.set_read_timeout(Some(Duration::from_millis(300))).expect("a read timeout");
    let error = stream.read(&mut [0; 1]).expect_err("no answer");
    assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
    stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a read timeout");
    set(&endpoints, "");
    read_exactly(&mut stream, SMALL);
    stream.write_all(POST).expect("to send");
    read_exactly(&mut stream, SMALL);
}

#[test]
fn an_answer_trickles_until_the_endpoint_is_well() {
    let endpoints = start(&["a"]);
    set(&endpoints, "fault=trickle");
    let mut stream = connect(&endpoints, 0);
    stream.write_all(POST).expect("to send");
    let mut bytes = vec![0; 4096];
    let mut read = 0;
    while !bytes[..read].ends_with(b"\r\n\r\nxx") {
        read += stream.read(&mut bytes[read..]).expect("a head and the first bytes");
    }
    let text = String::from_utf8_lossy(&bytes[..read]).into_owned();
    assert!(text.contains("Content-Length: 65536\r\n"), "{text}");
    set(&endpoints, "");
    let mut rest = vec![0; LARGE_BODY - 2];
    stream.read_exact(&mut rest).expect("the rest at once");
    assert!(rest.iter().all(|byte| *byte == b'x'));
    stream.write_all(POST).expect("to send");
    read_exactly(&mut stream, SMALL);
}
