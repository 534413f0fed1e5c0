//! Retries, stale connections, caps and the line in front of them.

use std::io::ErrorKind;
use std::mem::MaybeUninit;
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use crate::support::{Client, Deaf, Endpoint, PATIENCE, Setup, Socket, Subak, ok, wait_until};
use socket2::SockRef;

/// An address on which nobody listens, and nobody will.
fn refusing() -> String {
    let address = crate::support::fresh_address();
    assert!(TcpListener::bind(&*address).is_ok(), "it is ours");
    address
}

/// Closes every connection in answer to a request, without a byte of an answer.
fn resetting() -> Endpoint {
    Endpoint::scripted(|served| {
        served.request();
        served.reset();
    })
}

fn both(first: &Endpoint, second: &Endpoint) -> Setup {
    // Round robin in the order of the file: the first request goes to the first.
    Setup::before(&[first, second])
        .pool("back_off = { initial = \"1ms\", max = \"1ms\" }\neject = false")
}

#[test]
fn a_refused_connection_is_tried_elsewhere_whatever_the_method() {
    let good = Endpoint::named("good");
    for method in ["GET", "POST"] {
        let subak = Setup::before_addresses([
            refusing(),
            refusing(),
            refusing(),
            refusing(),
            good.address(),
        ])
        .pool("retry = { budget = 0, min_per_second = 0, attempts = 1 }")
        .start();
        let mut client = subak.client();
        for _ in 0..3 {
            client.send(format!("{method} / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi"));
            assert_eq!(client.answer().text(), "good", "{method}");
        }
    }
    assert!(good.requests().iter().all(|request| request.text() == "hi"));
}

#[test]
fn an_endpoint_that_refused_is_left_out_for_a_while_and_comes_back() {
    let good = Endpoint::named("good");
    let address = crate::support::fresh_address();
    let subak = Setup::before_addresses([address.clone(), good.address()])
        .pool("back_off = { initial = \"300ms\", max = \"300ms\" }")
        .start();
    for _ in 0..4 {
        assert_eq!(subak.get("/").1, "good");
    }
    let risen = Endpoint::on_inet(&address, |served| {
        while served.request().is_some() {
            served.send(ok("risen"));
        }
    });
    wait_until("it is asked again", || subak.get("/").1 == "risen");
    drop(risen);
}

#[test]
fn when_all_refuse_the_client_is_told_502() {
    let subak = Setup::before_addresses([refusing(), refusing()])
        .pool("queue = { outage = \"200ms\" }")
        .start();
    let mut client = subak.client();
    assert_eq!(client.get("/").status, 502);
    // The client's connection goes on. All are left out by now, so all are asked again.
    assert_eq!(client.get("/").status, 502);
}

/// Nothing was sent: neither a budget nor a count of attempts stands in the way, and what was waited for
/// one endpoint is not waited for the next.
#[test]
fn a_connection_that_is_not_made_in_time_costs_no_budget_and_half_of_the_time() {
    let (first, second) = (Deaf::new(), Deaf::new());
    let good = Endpoint::named("good");
    for method in ["GET", "POST"] {
        let subak = Setup::before_addresses([first.address(), second.address(), good.address()])
            .pool("timeouts = { connect = \"8s\" }\nback_off = \"1m\"")
            .pool("retry = { budget = 0, min_per_second = 0, attempts = 1 }")
            .start();
        let mut client = subak.client();
        let began = Instant::now();
        client.send(format!("{method} / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi"));
        assert_eq!(client.answer().text(), "good", "{method}");
        let took = began.elapsed();
        assert!(took < Duration::from_secs(8), "4 s and 2 s, not 8 and 8: {took:?}");
        client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        assert_eq!(client.answer().text(), "good", "both are in back-off");
    }
}

#[test]
fn while_nobody_can_be_reached_requests_wait_for_who_comes_back() {
    let address = crate::support::fresh_address();
    for policy in ["fail_open", "fail_closed"] {
        let subak = Setup::before_addresses([address.clone()])
            .workers(2)
            .pool("back_off = { initial = \"200ms\", max = \"1s\" }\nqueue = { outage = \"30s\" }")
            .pool(&format!("on_all_down = {policy:?}"))
            .start();
        let mut clients: Vec<_> = (0..8)
            .map(|number| {
                let mut client = subak.client();
                let method = if number % 2 == 0 { "GET" } else { "POST" };
                let length = "Content-Length: 2";
                client.send(format!("{method} / HTTP/1.1\r\nHost: a\r\n{length}\r\n\r\nhi"));
                client
            })
            .collect();
        wait_until("they wait", || subak.log().matches("waits for an endpoint").count() >= 8);
        let risen = Endpoint::on_inet(&address, |served| {
            while served.request().is_some() {
                served.send(ok("risen"));
            }
        });
        for client in &mut clients {
            assert_eq!(client.answer().text(), "risen", "{policy}");
        }
        assert_eq!(risen.requests().len(), 8, "each once");
        drop(risen);
        wait_until("nobody listens", || TcpListener::bind(&*address).is_ok());
    }
}

#[test]
fn waiting_for_who_comes_back_is_bounded_in_time_and_number() {
    let subak = Setup::before_addresses([refusing()])
        .pool("queue = { length = 1, outage = \"1s\" }")
        .start();
    let began = Instant::now();
    let mut waits = subak.client();
    waits.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    wait_until("it waits", || subak.log().contains("waits for an endpoint"));
    assert_eq!(subak.get("/").0, 503, "there is one place");
    assert_eq!(waits.answer().status, 502);
    assert!(began.elapsed() >= Duration::from_millis(900), "{:?}", began.elapsed());
}

/// Somebody wants it so: nothing is to be waited for.
#[test]
fn a_pool_whose_endpoints_all_drain_answers_at_once() {
    for state in ["drain", "maintenance"] {
        let subak = Setup::before_addresses([format!("127.0.0.1:1 state={state}")])
            .pool("queue = { outage = \"60s\" }")
            .start();
        assert_eq!(subak.get("/").0, 503);
        assert!(!subak.log().contains("waits for an endpoint"), "{}", subak.log());
    }
}

#[test]
fn an_empty_pool_answers_503() {
    let subak = Setup::before_addresses([]).start();
    let answer = subak.client().get("/");
    assert_eq!(answer.status, 503);
    assert!(answer.field("retry-after").is_some());
}

#[test]
fn a_get_whose_connection_is_reset_is_tried_elsewhere() {
    let (bad, good) = (resetting(), Endpoint::named("good"));
    let subak = both(&bad, &good).start();
    for _ in 0..3 {
        assert_eq!(subak.get("/"), (200, "good".into()));
    }
    assert!(!bad.requests().is_empty());
}

#[test]
fn a_small_body_is_kept_and_sent_again() {
    let (bad, good) = (resetting(), Endpoint::named("good"));
    let subak = both(&bad, &good).pool("retry = { body = 1000 }").start();
    let body = "b".repeat(1000);
    let mut client = subak.client();
    client.send(format!("PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n{body}"));
    assert_eq!(client.answer().text(), "good");
    assert_eq!(bad.request().text(), body);
    assert_eq!(good.request().text(), body);
}

#[test]
fn a_chunked_body_and_its_trailers_are_kept_and_sent_again() {
    let (bad, good) = (resetting(), Endpoint::named("good"));
    let subak = both(&bad, &good).start();
    let mut client = subak.client();
    client.send(
        "PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n\
         3\r\nabc\r\n3\r\ndef\r\n0\r\nX-Sum: 1\r\n\r\n",
    );
    assert_eq!(client.answer().text(), "good");
    let request = good.request();
    assert_eq!(request.text(), "abcdef");
    assert_eq!(request.trailers, [("x-sum".to_owned(), "1".to_owned())]);
}

#[test]
fn a_body_too_large_to_keep_is_sent_once() {
    let (bad, good) = (resetting(), Endpoint::named("good"));
    let subak = both(&bad, &good).pool("retry = { body = 1000 }").start();
    let mut client = subak.client();
    client.send(format!(
        "PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 1001\r\n\r\n{}",
        "b".repeat(1001)
    ));
    assert_eq!(client.answer().status, 502);
    assert_eq!(good.accepted(), 0);
}

#[test]
fn a_post_that_was_sent_is_not_sent_again() {
    let (bad, good) = (resetting(), Endpoint::named("good"));
    let subak = both(&bad, &good).start();
    let mut client = subak.client();
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi");
    assert_eq!(client.answer().status, 502);
    assert_eq!((bad.requests().len(), good.requests().len()), (1, 0));
}

#[test]
fn an_answer_that_has_begun_is_not_begun_again() {
    let bad = Endpoint::answering_once("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf");
    let good = Endpoint::named("good");
    let subak = both(&bad, &good).start();
    let mut client = subak.client();
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    assert!(client.try_answer("GET").is_err());
    assert_eq!(good.accepted(), 0);
}

#[test]
fn half_a_head_does_not_count_as_an_answer() {
    let bad = Endpoint::answering_once("HTTP/1.1 200 OK\r\nContent-Le");
    let good = Endpoint::named("good");
    let subak = both(&bad, &good).start();
    assert_eq!(subak.get("/"), (200, "good".into()));
}

#[test]
fn a_request_is_tried_on_as_many_endpoints_as_allowed() {
    let bad: Vec<_> = (0..4).map(|_| resetting()).collect();
    let good = Endpoint::named("good");
    let all: Vec<_> = bad.iter().chain([&good]).collect();
    let subak = Setup::before(&all).pool("retry = { attempts = 4 }\nback_off = \"1ms\"").start();
    assert_eq!(subak.get("/").0, 502);
    assert!(bad.iter().all(|bad| bad.requests().len() == 1));
    assert_eq!(good.accepted(), 0);
    let subak = Setup::before(&all).pool("retry = { attempts = 5 }\nback_off = \"1ms\"").start();
    assert_eq!(subak.get("/"), (200, "good".into()));
}

#[test]
fn retries_stay_within_their_budget() {
    let (bad, good) = (resetting(), Endpoint::named("good"));
    let subak = both(&bad, &good).pool("retry = { budget = 0, min_per_second = 0 }").start();
    let answers: Vec<u16> = (0..4).map(|_| subak.get("/").0).collect();
    assert_eq!(answers, [502, 200, 502, 200]);
    // A tenth: of 100 requests at most 10 are tried again, and others fail for want of budget. (Back-offs
    // of a millisecond keep some of them from the endpoint that fails.)
    let (bad, good) = (resetting(), Endpoint::named("good"));
    let subak = both(&bad, &good).pool("retry = { budget = 0.1, min_per_second = 0 }").start();
    let mut client = subak.client();
    let served = (0..100).filter(|_| client.get("/").status == 200).count();
    let tried_again = (good.requests().len() + bad.requests().len()) - 100;
    assert!((5..=12).contains(&tried_again), "{tried_again} retries of 100 requests");
    assert!(served < 95, "{served}");
}

#[test]
fn a_status_is_tried_elsewhere_only_where_the_pool_says_so() {
    let busy = || Endpoint::answering("HTTP/1.1 503 Busy\r\nContent-Length: 4\r\nX: y\r\n\r\nbusy");
    let (bad, good) = (busy(), Endpoint::named("good"));
    let subak = both(&bad, &good).start();
    assert_eq!(subak.get("/"), (503, "busy".into()));
    let (bad, good) = (busy(), Endpoint::named("good"));
    let subak = both(&bad, &good).pool("retry = { on = [\"connect\", 503] }").start();
    assert_eq!(subak.get("/"), (200, "good".into()));
    let mut client = subak.client();
    // Not what is not idempotent, whatever the answer.
    for _ in 0..2 {
        client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n");
        client.answer();
    }
    assert_eq!(bad.requests().len(), 2);
}

#[test]
fn an_endpoints_own_answer_is_forwarded_when_no_other_can_be_tried() {
    let busy = || Endpoint::answering("HTTP/1.1 503 Busy\r\nContent-Length: 4\r\nX: y\r\n\r\nbusy");
    for pool in ["retry = { on = [503] }", "retry = { on = [503], budget = 0, min_per_second = 0 }"]
    {
        let (one, two) = (busy(), busy());
        let subak = both(&one, &two).pool(pool).start();
        let answer = subak.client().get("/");
        assert_eq!((&*answer.line, &*answer.text()), ("HTTP/1.1 503 Busy", "busy"), "{pool}");
        assert_eq!(answer.field("x"), Some("y"));
    }
    let only = busy();
    let subak = Setup::before(&[&only]).pool("retry = { on = [503] }").start();
    assert_eq!(subak.client().get("/").text(), "busy");
}

#[test]
fn an_endpoint_that_is_too_slow_is_replaced() {
    let slow = Endpoint::scripted(|served| {
        served.request();
        served.read_to_end();
    });
    let good = Endpoint::named("good");
    let subak = both(&slow, &good).pool("timeouts = { first_byte = \"200ms\" }").start();
    assert_eq!(subak.get("/"), (200, "good".into()));
    assert_eq!(slow.requests().len(), 1);
}

/// Serves one request a connection, keeps it open, and closes it when told.
fn going_stale() -> (Endpoint, mpsc::Sender<()>) {
    let (close, closed) = mpsc::channel();
    let closed = Mutex::new(closed);
    let endpoint = Endpoint::scripted(move |served| {
        if served.request().is_some() {
            served.send(ok(&format!("connection {}", served.number)));
            let _ = closed.lock().expect("lock").recv_timeout(PATIENCE);
        }
    });
    (endpoint, close)
}

#[test]
fn a_connection_that_the_endpoint_has_closed_is_replaced_for_any_method() {
    for method in ["GET", "POST"] {
        let (endpoint, close) = going_stale();
        let subak = Setup::before(&[&endpoint])
            .pool("retry = { attempts = 1, budget = 0, min_per_second = 0, on = [] }")
            .start();
        let mut client = subak.client();
        for number in 0..3 {
            client.send(format!("{method} / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n"));
            assert_eq!(client.answer().text(), format!("connection {number}"), "{method}");
            close.send(()).expect("endpoint");
            wait_until("the connection is closed", || endpoint.open() == 0);
        }
    }
}

/// Closes its kept connections in answer to the second request on each.
fn closing_at_the_second() -> Endpoint {
    Endpoint::scripted(|served| {
        if served.request().is_some() {
            served.send(ok("fresh"));
            served.request();
            served.reset();
        }
    })
}

#[test]
fn a_connection_that_turns_out_stale_is_replaced_once_by_one_to_the_same_endpoint() {
    let endpoint = closing_at_the_second();
    let subak = Setup::before(&[&endpoint])
        .pool("retry = { attempts = 1, budget = 0, min_per_second = 0, on = [] }")
        .start();
    let mut client = subak.client();
    for number in 1..=4 {
        assert_eq!(client.get("/").text(), "fresh");
        assert_eq!(endpoint.accepted(), number);
    }
}

#[test]
fn a_post_that_was_sent_on_a_stale_connection_is_not_sent_again() {
    let endpoint = closing_at_the_second();
    let subak = Setup::before(&[&endpoint]).pool("back_off = \"1ms\"").start();
    let mut client = subak.client();
    assert_eq!(client.get("/").text(), "fresh");
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi");
    assert_eq!(client.answer().status, 502);
    assert_eq!(endpoint.requests().len(), 2);
}

/// Answers each request when told to; says in which order requests came.
struct Gate {
    endpoint: Endpoint,
    open: mpsc::Sender<()>,
}

fn gate() -> Gate {
    let (open, opened) = mpsc::channel();
    let opened = Mutex::new(opened);
    let endpoint = Endpoint::scripted(move |served| {
        while let Some(request) = served.request() {
            if opened.lock().expect("lock").recv_timeout(PATIENCE).is_err() {
                return;
            }
            served.send(ok(&request.line));
        }
    });
    Gate { endpoint, open }
}

fn ask(subak: &Subak, path: &str) -> Client {
    let mut client = subak.client();
    client.send(format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n"));
    client
}

#[test]
fn no_more_requests_are_in_flight_than_allowed_and_the_others_wait_in_line() {
    let Gate { endpoint, open } = gate();
    let subak = Setup::before(&[&endpoint])
        .workers(2)
        .pool("max_in_flight = 1\nqueue = { timeout = \"1m\" }")
        .start();
    let mut clients = vec![ask(&subak, "/0")];
    endpoint.wait_for_requests(1);
    clients.extend((1..6).map(|number| ask_in_line(&subak, &format!("/{number}"))));
    for (number, client) in clients.iter_mut().enumerate() {
        assert_eq!(endpoint.requests().len(), number + 1, "one at a time");
        open.send(()).expect("endpoint");
        assert_eq!(client.answer().text(), format!("GET /{number} HTTP/1.1"));
        if number < 5 {
            endpoint.wait_for_requests(number + 2);
        }
    }
}

#[test]
fn who_finds_the_line_full_is_answered_503_at_once() {
    let Gate { endpoint, open } = gate();
    let subak = Setup::before(&[&endpoint])
        .pool("max_in_flight = 1\nqueue = { length = 1, timeout = \"1m\" }")
        .start();
    let mut first = ask(&subak, "/first");
    endpoint.wait_for_requests(1);
    let mut second = ask_in_line(&subak, "/second");
    let answer = ask(&subak, "/third").answer();
    assert_eq!(answer.status, 503);
    assert!(answer.field("retry-after").is_some_and(|after| after.parse::<u32>().is_ok()));
    for client in [&mut first, &mut second] {
        open.send(()).expect("endpoint");
        assert_eq!(client.answer().status, 200);
    }
    assert_eq!(endpoint.requests().len(), 2);
}

#[test]
fn who_waits_too_long_is_answered_503() {
    let Gate { endpoint, open } = gate();
    let subak = Setup::before(&[&endpoint])
        .pool("max_in_flight = 1\nqueue = { timeout = \"300ms\" }")
        .start();
    let mut first = ask(&subak, "/first");
    endpoint.wait_for_requests(1);
    let began = Instant::now();
    let answer = ask(&subak, "/second").answer();
    assert!(began.elapsed() >= Duration::from_millis(300));
    assert_eq!(answer.status, 503);
    assert!(answer.field("retry-after").is_some());
    open.send(()).expect("endpoint");
    assert_eq!(first.answer().status, 200);
}

#[test]
fn a_waiting_client_that_leaves_gives_its_place_up() {
    let Gate { endpoint, open } = gate();
    let subak =
        Setup::before(&[&endpoint]).pool("max_in_flight = 1\nqueue = { timeout = \"1m\" }").start();
    let mut first = ask(&subak, "/first");
    endpoint.wait_for_requests(1);
    let leaves = ask_in_line(&subak, "/leaves");
    drop(leaves);
    let mut stays = ask_in_line(&subak, "/stays");
    for _ in 0..3 {
        open.send(()).expect("endpoint");
    }
    assert_eq!(first.answer().status, 200);
    assert_eq!(stays.answer().status, 200);
}

#[test]
fn an_endpoint_at_its_cap_is_passed_by_for_one_that_is_not() {
    let Gate { endpoint, open } = gate();
    let other = Endpoint::named("other");
    let subak = Setup::before(&[&endpoint, &other]).pool("max_in_flight = 1").start();
    let mut first = ask(&subak, "/first");
    endpoint.wait_for_requests(1);
    for _ in 0..5 {
        assert_eq!(subak.get("/").1, "other");
    }
    open.send(()).expect("endpoint");
    assert_eq!(first.answer().status, 200);
}

/// Sends a GET and waits until it is in line, so that it comes before whatever is sent next.
fn ask_in_line(subak: &Subak, path: &str) -> Client {
    let waiting = || subak.log().matches("a request waits for an endpoint").count();
    let before = waiting();
    let client = ask(subak, path);
    wait_until("the request is in line", || waiting() > before);
    client
}

/// Whether the other side has not closed this connection yet. Takes nothing off it.
fn is_open(stream: &TcpStream) -> bool {
    let mut byte = [MaybeUninit::uninit()];
    let flags = libc::MSG_PEEK | libc::MSG_DONTWAIT;
    match SockRef::from(stream).recv_with_flags(&mut byte, flags) {
        Ok(count) => count > 0,
        Err(error) => error.kind() == ErrorKind::WouldBlock,
    }
}

#[test]
fn an_endpoint_has_no_more_connections_than_allowed_over_all_workers() {
    let accepted = Mutex::new(Vec::new());
    let most = Arc::new(AtomicUsize::new(0));
    let seen = most.clone();
    let endpoint = Endpoint::scripted(move |served| {
        if let Socket::Tcp(stream) = served.socket() {
            let mut accepted = accepted.lock().expect("lock");
            accepted.push(stream.try_clone().expect("clone"));
            accepted.retain(is_open);
            seen.fetch_max(accepted.len(), Ordering::SeqCst);
        }
        while served.request().is_some() {
            served.send(ok("x"));
        }
    });
    // Four workers, two connections: a worker that has none must be given one that idles elsewhere.
    let subak = Setup::before(&[&endpoint])
        .workers(4)
        .pool("max_connections = 2\nqueue = { timeout = \"1m\" }")
        .start();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| (0..50).for_each(|_| assert_eq!(subak.get("/").0, 200)));
        }
    });
    assert_eq!(endpoint.requests().len(), 400);
    let most = most.load(Ordering::SeqCst);
    assert!((1..=2).contains(&most), "{most} connections");
}

#[test]
fn a_worker_at_the_cap_gets_what_idles_at_another() {
    let endpoint = Endpoint::named("x");
    let subak = Setup::before(&[&endpoint])
        .workers(4)
        .pool("max_connections = 1\nqueue = { timeout = \"10s\" }")
        .start();
    let began = Instant::now();
    for _ in 0..40 {
        // Each connection lands where the kernel puts it.
        assert_eq!(subak.get("/").0, 200);
    }
    assert!(began.elapsed() < Duration::from_secs(8), "somebody waited for an idle connection");
    wait_until("at most one is open", || endpoint.open() <= 1);
}
