//! Endpoints that requests show to be unfit: in a row, by share, by latency. No probes here.

use std::io::Write;
use std::time::Duration;

use crate::support::{Endpoint, Load, Mood, Moody, Setup, Subak, ok, wait_until};

const REST: Duration = Duration::from_millis(2);

fn before(endpoints: &[&Moody], eject: &str) -> Setup {
    Setup::before_addresses(endpoints.iter().map(|endpoint| endpoint.address()))
        .pool(&format!("eject = {{ {eject} }}"))
}

/// Nobody goes there while some 30 requests are served.
#[track_caller]
fn assert_is_out(subak: &Subak, endpoint: &Moody) {
    let hits = endpoint.hits();
    (0..30).for_each(|_| assert_eq!(subak.get("/").0, 200));
    assert_eq!(endpoint.hits(), hits);
}

#[test]
fn failures_in_a_row_eject_within_the_request_that_makes_the_row_full() {
    let (bad, good) = (Moody::new("bad"), Moody::new("good"));
    let subak = before(&[&bad, &good], "consecutive = 3, base = \"30s\"").start();
    bad.set(Mood::Failing);
    let statuses: Vec<_> = (0..20).map(|_| subak.get("/").0).collect();
    let failed = statuses.iter().filter(|status| **status == 500).count();
    assert_eq!(failed, 3, "{statuses:?}");
    assert_eq!(bad.hits(), 3);
    subak.wait_for_log("ready to down: ejected: 3 requests in a row failed");
    assert_is_out(&subak, &bad);
}

#[test]
fn an_ejection_ends_by_itself() {
    let (bad, good) = (Moody::new("bad"), Moody::new("good"));
    let subak = before(&[&bad, &good], "consecutive = 3, base = \"500ms\"").start();
    bad.set(Mood::Failing);
    (0..20).for_each(|_| _ = subak.get("/"));
    bad.set(Mood::Well);
    subak.wait_for_log("down to ready: its ejection is over");
    wait_until("it has its part again", || subak.get("/").1 == "bad");
}

#[test]
fn a_share_of_failures_ejects() {
    // Every other answer is a failure, so there are never three in a row.
    let bad = Endpoint::scripted(|served| {
        while served.head().is_some() {
            static COUNT: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
            match COUNT.fetch_add(1, std::sync::atomic::Ordering::SeqCst) % 2 {
                0 => served.send(ok("bad")),
                _ => served.send("HTTP/1.1 500 Oh\r\nContent-Length: 0\r\n\r\n"),
            }
        }
    });
    let good = Endpoint::named("good");
    let subak = Setup::before(&[&bad, &good])
        .pool("eject = { consecutive = 3, share = 0.4, min_requests = 20, window = \"5s\" }")
        .start();
    let began = std::time::Instant::now();
    while !subak.log().contains("requests failed") {
        assert!(began.elapsed() < crate::support::PATIENCE, "not ejected");
        subak.get("/");
    }
    assert!(subak.log().contains("ready to down: ejected: "), "{}", subak.log());
    (0..30).for_each(|_| assert_eq!(subak.get("/"), (200, "good".into())));
}

#[test]
fn an_endpoint_that_is_much_slower_than_the_others_is_ejected() {
    let endpoints = ["slow", "a", "b"].map(Moody::new);
    let eject = "latency = { factor = 3.0, min = \"50ms\" }, min_requests = 10, window = \"2s\"";
    let subak = before(&endpoints.iter().collect::<Vec<_>>(), eject).start();
    endpoints[0].set(Mood::Slow(Duration::from_millis(200)));
    let load = Load::paced(subak.address(), 0, 8, REST);
    subak.wait_for_log("ready to down: ejected: took ");
    assert_eq!(load.end(), Vec::<String>::new());
    assert_is_out(&subak, &endpoints[0]);
}

/// Its heads come at once, and its bodies byte by byte without an end.
#[test]
fn an_endpoint_whose_responses_never_end_is_ejected_while_they_are_under_way() {
    let endless = Endpoint::scripted(|served| {
        if served.head().is_some() {
            served.send("HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n");
            while served.socket().write_all(b"x").is_ok() {
                std::thread::sleep(Duration::from_millis(100));
            }
        }
    });
    let (a, b) = (Endpoint::named("a"), Endpoint::named("b"));
    let subak = Setup::before(&[&endless, &a, &b])
        .pool("eject = { latency = { factor = 3.0, min = \"50ms\" }, min_requests = 5, window = \"3s\" }")
        .start();
    let began = std::time::Instant::now();
    let mut under_way = Vec::new();
    while !subak.log().contains("ready to down: ejected: took ") {
        assert!(began.elapsed() < crate::support::PATIENCE, "{}", subak.log());
        let mut client = subak.client();
        client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        under_way.push(client);
        std::thread::sleep(REST * 10);
    }
}

#[test]
fn endpoints_that_all_fail_alike_stay() {
    let endpoints = ["a", "b", "c", "d"].map(Moody::new);
    let subak =
        before(&endpoints.iter().collect::<Vec<_>>(), "consecutive = 2, base = \"30s\"").start();
    endpoints.iter().for_each(|endpoint| endpoint.set(Mood::Failing));
    (0..80).for_each(|_| assert_eq!(subak.get("/").0, 500));
    assert!(endpoints.iter().all(|endpoint| endpoint.hits() == 20));
    assert_eq!(subak.log().matches("to down").count(), 0, "{}", subak.log());
}

#[test]
fn a_connection_that_is_reset_counts_as_a_failure_and_clients_are_saved_by_a_retry() {
    let (bad, good) = (Moody::new("bad"), Moody::new("good"));
    let subak = before(&[&bad, &good], "consecutive = 2, base = \"30s\"").start();
    bad.set(Mood::Resetting);
    (0..20).for_each(|_| assert_eq!(subak.get("/"), (200, "good".into())));
    subak.wait_for_log("ready to down: ejected: 2 requests in a row failed");
    assert_is_out(&subak, &bad);
}

#[test]
fn without_a_word_of_it_endpoints_that_fail_or_break_requests_are_left_out_and_come_back() {
    for (mood, state) in [
        (Mood::Failing, "ready to down: ejected: 5 requests in a row failed"),
        (Mood::Resetting, "ready to back_off: in back-off: the connection to the endpoint failed"),
        (Mood::Closing, "ready to back_off: in back-off: the endpoint closed the connection"),
        (Mood::Babbling, "ready to back_off: in back-off: the endpoint's answer is malformed"),
        (Mood::Cutting, "ready to down: ejected: 5 requests in a row failed"),
    ] {
        let endpoints = ["bad", "a", "b"].map(Moody::new);
        let subak = Setup::before_addresses(endpoints.iter().map(Moody::address)).start();
        (0..9).for_each(|_| assert_eq!(subak.get("/").0, 200));
        let before = endpoints[0].hits();
        endpoints[0].set(mood);
        let mut lost = 0;
        for _ in 0..60 {
            let mut client = subak.client();
            client.send("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
            lost += u32::from(!client.try_answer("GET").is_ok_and(|answer| answer.status == 200));
        }
        subak.wait_for_log(state);
        let (asked, most_lost) = match mood {
            Mood::Failing | Mood::Cutting => (5, 5),
            // One more for each second that has passed on a busy machine.
            _ => (12, 0),
        };
        let hits = endpoints[0].hits() - before;
        assert!(hits <= asked && lost <= most_lost, "{mood:?}: {hits} hits, {lost} lost");
        endpoints[0].set(Mood::Well);
        if most_lost == 0 {
            wait_until("it has its part again", || subak.get("/").1 == "bad");
            subak.wait_for_log("back_off to ready: it answers again");
        }
    }
}

#[test]
fn eject_false_keeps_an_endpoint_that_fails() {
    let (bad, good) = (Moody::new("bad"), Moody::new("good"));
    let subak =
        Setup::before_addresses([bad.address(), good.address()]).pool("eject = false").start();
    bad.set(Mood::Failing);
    let failed = (0..40).filter(|_| subak.get("/").0 == 500).count();
    assert_eq!((failed, bad.hits()), (20, 20));
}
