mod heard;
mod targets;
mod timetable;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::*;
use crate::endpoint::{EndpointSpec, Endpoints};
use crate::machine;

fn endpoint(address: &str) -> Endpoints {
    let any = address.parse().expect("an address");
    Endpoints::start(vec![EndpointSpec::new("a", any)]).expect("an endpoint")
}

fn plan(target: SocketAddr, requests: u64) -> LoadPlan {
    LoadPlan::get(target, "/small").users(8).requests(requests)
}

/// Answers every connection with what `answer` makes of its number (from 0), whatever
/// it asks, then closes it.
fn stub(answer: impl Fn(usize) -> Vec<u8> + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("to listen");
    let address = listener.local_addr().expect("an address");
    thread::spawn(move || {
        for (number, stream) in listener.incoming().enumerate() {
            let Ok(mut stream) = stream else { return };
            let answer = answer(number);
            thread::spawn(move || {
                let mut request = [0; 1024];
                if stream.read(&mut request).is_ok() && stream.write_all(&answer).is_ok() {
                    let _ = stream.shutdown(std::net::Shutdown::Write);
                    let _ = stream.read(&mut request);
                }
            });
        }
    });
    address
}

#[test]
fn a_number_of_requests_is_asked_exactly() {
    let endpoint = endpoint("127.0.0.1:0");
    let report = run(&plan(endpoint.address(0), 1001)).expect("a report");
    assert_eq!((report.answered, report.failures.total()), (1001, 0));
    assert_eq!(report.latency.count(), 1001);
    assert_eq!((endpoint.hits(0), endpoint.connections(0)), (1001, 8));
}

#[test]
fn a_new_connection_for_every_request() {
    let endpoint = endpoint("127.0.0.1:0");
    let sources = ["127.0.0.5", "127.0.0.6"].map(|ip| ip.parse().expect("an address")).to_vec();
    let mut plan = plan(endpoint.address(0), 300).with_new_connections();
    plan.sources.bind = sources;
    let report = run(&plan).expect("a report");
    assert_eq!((report.answered, report.failures.total()), (300, 0));
    assert_eq!((endpoint.hits(0), endpoint.connections(0)), (300, 300));
}

#[test]
fn ipv6_and_large_bodies() {
    let endpoint = endpoint("[::1]:0");
    let target = endpoint.address(0);
    let plan = LoadPlan { requests: vec![Request::get("/64k")], ..plan(target, 200) };
    let report = run(&plan).expect("a report");
    assert_eq!((report.answered, report.failures.total()), (200, 0));
}

#[test]
fn a_fixed_rate_is_kept() {
    let endpoint = endpoint("127.0.0.1:0");
    let plan = LoadPlan::get(endpoint.address(0), "/small").rate(500.0, 8).requests(250);
    let report = run(&plan).expect("a report");
    assert_eq!((report.answered, report.failures.total()), (250, 0));
    // The last of 250 requests starts 498 ms after the first.
    let seconds = report.elapsed.as_secs_f64();
    assert!(seconds >= 0.49, "{seconds} s for 250 requests at 500/s");
}

/// One answer takes 300 ms and blocks the only connection; the 30 requests that were
/// due meanwhile must show that wait though each was answered at once.
#[test]
fn a_stall_is_charged_to_every_request_it_kept_waiting() {
    const STALL: Duration = Duration::from_millis(300);
    let listener = TcpListener::bind("127.0.0.1:0").expect("to listen");
    let target = listener.local_addr().expect("an address");
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a client");
        let mut request = [0; 1024];
        let mut first = true;
        while stream.read(&mut request).is_ok_and(|count| count > 0) {
            if std::mem::take(&mut first) {
                thread::sleep(STALL);
            }
            if stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").is_err() {
                return;
            }
        }
    });
    let plan = LoadPlan::get(target, "/").rate(100.0, 1).requests(40);
    let report = run(&plan).expect("a report");
    assert_eq!(report.answered, 40);
    assert!(report.longest_backlog >= 25, "{}", report.longest_backlog);
    let half = report.latency.quantile(0.5);
    assert!(half >= Duration::from_millis(75), "the median is {half:?}");
}

#[test]
fn failures_by_kind() {
    let cases: [(&[u8], Failure); 5] = [
        (b"HTTP/1.1 500 x\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", Failure::Status),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort", Failure::Closed),
        (b"", Failure::Closed),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nlong", Failure::Framing),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n", Failure::Framing),
    ];
    for (answer, kind) in cases {
        let target = stub(|_| answer.to_vec());
        let report = run(&plan(target, 6).users(2)).expect("a report");
        assert_eq!(
            (report.answered, report.failures.of(kind)),
            (0, 6),
            "{kind}: {}",
            report.failures
        );
        assert_eq!(report.failures.to_string(), format!("6 {kind}"));
    }
}

#[test]
fn nobody_listening_is_counted_and_ends() {
    let endpoint = endpoint("127.0.0.1:0");
    let target = endpoint.address(0);
    endpoint.stop();
    let report = run(&plan(target, 6).users(2)).expect("a report");
    assert_eq!((report.answered, report.failures.of(Failure::Connect)), (0, 6));
    // What was refused is no connection, and the report says that it was.
    assert_eq!((report.connections, report.unconnected.values().sum()), (0, 6));
    let why = report.unconnected.keys().next().expect("a reason");
    assert!(why.contains("refused"), "{why}");
    let text = summary::text(&report);
    assert!(text.contains("6 connect (100.00 %), between ") && text.contains(why), "{text}");
}

/// A server that ends each connection after so many requests, as it says in the last answer.
#[test]
fn an_announced_end_of_a_connection_is_no_failure() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("to listen");
    let target = listener.local_addr().expect("an address");
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || answer_some(stream, 7));
        }
    });
    let loads = [plan(target, 200), LoadPlan::get(target, "/").rate(2000.0, 4).requests(200)];
    for plan in loads {
        let report = run(&plan).expect("a report");
        assert_eq!((report.answered, report.failures.total()), (200, 0), "{}", report.failures);
        assert!(report.connections >= 200 / 7, "{}", report.connections);
    }
}

/// Answers so many requests, then closes as the last answer has announced.
fn answer_some(mut stream: std::net::TcpStream, requests: usize) {
    let mut request = [0; 1024];
    for left in (0..requests).rev() {
        let close = if left == 0 { "Connection: close\r\n" } else { "" };
        let answer = format!("HTTP/1.1 200 OK\r\n{close}Content-Length: 0\r\n\r\n");
        let asked = stream.read(&mut request).is_ok_and(|count| count > 0);
        if !asked || stream.write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}

#[test]
fn an_answer_that_never_comes_is_late() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("to listen");
    let target = listener.local_addr().expect("an address");
    let plan = LoadPlan { answer_within: Duration::from_millis(50), ..plan(target, 8) };
    let report = run(&plan).expect("a report");
    assert_eq!(report.failures.of(Failure::Late), 8);
}

#[test]
fn an_answer_in_pieces_is_put_together() {
    let endpoint = stub(|_| {
        let mut answer = b"HTTP/1.1 200 OK\r\n".to_vec();
        answer.extend(b"X-Long: 1234567890123456789012345678901234567890\r\n".repeat(400));
        answer.extend(b"Content-Length: 3\r\nConnection: close\r\n\r\nabc");
        answer
    });
    let report = run(&plan(endpoint, 20).users(2)).expect("a report");
    assert_eq!((report.answered, report.failures.total()), (20, 0), "{}", report.failures);
}

#[test]
fn a_connection_the_other_side_ends_between_requests_is_no_failure() {
    let target = stub(|_| b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n".to_vec());
    let plan = LoadPlan::get(target, "/").rate(1.0, 1).requests(3);
    let report = run(&plan).expect("a report");
    assert_eq!((report.answered, report.failures.total()), (3, 0), "{}", report.failures);
}

#[test]
fn the_window_has_two_edges_and_warm_up_is_not_counted() {
    let endpoint = endpoint("127.0.0.1:0");
    let plan = LoadPlan {
        warm_up: Duration::from_secs(1),
        ..LoadPlan::get(endpoint.address(0), "/").users(8).lasting(Duration::from_millis(200))
    };
    let mut edges = Vec::new();
    let report = run_with(&plan, |edge| edges.push((edge, endpoint.hits(0)))).expect("a report");
    let [(Edge::Start, before), (Edge::End, after)] = edges[..] else { panic!("{edges:?}") };
    assert!(before > 0, "nothing happened in the warm-up");
    assert!(report.answered > 0 && report.answered <= after - before + 8);
    assert!(report.elapsed >= Duration::from_millis(200));
    assert!(report.per_second() > 0.0);
}

/// A server of HTTP/2 that answers so many requests of a connection and says goodbye to the rest, as
/// nginx does: those it has not looked at.
#[test]
fn what_a_goodbye_leaves_unread_is_asked_again() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("to listen");
    let target = listener.local_addr().expect("an address");
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || answer_streams(stream, 7));
        }
    });
    let plan = LoadPlan { protocol: Protocol::Http2 { connections: 1 }, ..plan(target, 100) };
    let report = run(&plan).expect("a report");
    assert_eq!((report.answered, report.failures.total()), (100, 0), "{}", report.failures);
    assert!(report.connections >= 100 / 7, "{}", report.connections);
}

/// Answers so many streams with 200, says goodbye, and looks at no later one.
fn answer_streams(mut stream: std::net::TcpStream, most: u32) -> Option<()> {
    const PREFACE: usize = 24;
    const SETTINGS: u8 = 4;
    const HEADERS: u8 = 1;
    stream.read_exact(&mut [0; PREFACE]).ok()?;
    stream.write_all(&[0, 0, 0, SETTINGS, 0, 0, 0, 0, 0]).ok()?;
    let mut answered = 0;
    loop {
        let mut head = [0; 9];
        stream.read_exact(&mut head).ok()?;
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        stream.read_exact(&mut vec![0; length]).ok()?;
        match head[3..5] {
            [SETTINGS, 0] => stream.write_all(&[0, 0, 0, SETTINGS, 1, 0, 0, 0, 0]).ok()?,
            [HEADERS, _] if answered < most => {
                answered += 1;
                // END_STREAM and END_HEADERS; 0x88 is ":status: 200".
                let id = &head[5..];
                stream.write_all(&[&[0, 0, 1, HEADERS, 5][..], id, &[0x88]].concat()).ok()?;
                if answered == most {
                    let goodbye = [&[0, 0, 8, 7, 0, 0, 0, 0, 0][..], id, &[0; 4]].concat();
                    stream.write_all(&goodbye).ok()?;
                }
            }
            _ => {}
        }
    }
}

/// A minute of warm-up, which nobody has to wait for.
#[test]
fn a_stop_in_the_warm_up_ends_the_load() {
    let endpoint = endpoint("127.0.0.1:0");
    for protocol in [Protocol::Http1, Protocol::Http2 { connections: 1 }] {
        let minute = Duration::from_secs(60);
        let plan = LoadPlan::get(endpoint.address(0), "/").users(2).lasting(minute);
        let plan = LoadPlan { warm_up: minute, protocol, ..plan };
        let (stop, began) = (AtomicBool::new(true), Instant::now());
        run_watched(&plan, &stop, &mut |_| {}).expect("a report");
        assert!(began.elapsed() < minute / 2, "{:?}", began.elapsed());
    }
}

#[test]
fn plans_that_make_no_sense_are_errors() {
    let target = "127.0.0.1:1".parse().expect("an address");
    for bad in [
        plan(target, 1).users(0),
        plan(target, 1).rate(0.0, 1),
        plan(target, 1).rate(f64::NAN, 1),
        plan(target, 1).rate(1.0, 0),
        LoadPlan { requests: Vec::new(), ..plan(target, 1) },
        LoadPlan { requests: vec![Request::get("/\r\n")], ..plan(target, 1) },
    ] {
        assert_eq!(run(&bad).expect_err("a bad plan").kind(), io::ErrorKind::InvalidInput);
    }
}

#[test]
fn a_generator_without_a_core_of_its_own_makes_no_valid_run() {
    let endpoint = endpoint("127.0.0.1:0");
    let target = endpoint.address(0);
    let core = machine::allowed_cpus().expect("an affinity mask")[0];
    let done = AtomicBool::new(false);
    let spin = || {
        machine::pin_to(core).expect("that CPU");
        while !done.load(Ordering::Relaxed) {
            std::hint::spin_loop();
        }
    };
    let plan = LoadPlan {
        warm_up: Duration::ZERO,
        ..LoadPlan::get(target, "/").users(16).lasting(Duration::from_millis(600))
    };
    let ran = thread::scope(|scope| {
        (0..3).for_each(|_| drop(scope.spawn(spin)));
        let ran = scope.spawn(|| {
            machine::pin_to(core).expect("that CPU");
            run(&plan)
        });
        let ran = ran.join();
        done.store(true, Ordering::Relaxed);
        ran
    });
    let report = ran.expect("the generator").expect("a report");
    let invalid = report.invalid().join("; ");
    assert!(invalid.contains("had no core for"), "{invalid:?}: {:?}", report.watch);
}
