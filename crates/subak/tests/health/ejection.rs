//! Endpoints that requests show to be unfit: in a row, by share, by latency. No probes here.

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

#[test]
fn half_of_a_pool_stays_whatever_its_requests_show() {
    let endpoints = ["a", "b", "c", "d"].map(Moody::new);
    let subak =
        before(&endpoints.iter().collect::<Vec<_>>(), "consecutive = 2, base = \"30s\"").start();
    endpoints.iter().for_each(|endpoint| endpoint.set(Mood::Failing));
    (0..40).for_each(|_| assert_eq!(subak.get("/").0, 500));
    let logged = || subak.log().matches("ready to down: ejected").count();
    wait_until("two are logged", || logged() == 2);
    let out = endpoints.iter().filter(|endpoint| endpoint.hits() == 2).count();
    assert_eq!(out, 2);
}

#[test]
fn a_connection_that_is_reset_counts_as_a_failure_and_clients_are_saved_by_a_retry() {
    let (bad, good) = (Moody::new("bad"), Moody::new("good"));
    let subak = before(&[&bad, &good], "consecutive = 3, base = \"30s\"")
        .pool("retry = { budget = 1, min_per_second = 1000 }")
        .start();
    bad.set(Mood::Resetting);
    (0..20).for_each(|_| assert_eq!(subak.get("/"), (200, "good".into())));
    subak.wait_for_log("ready to down: ejected: 3 requests in a row failed");
    assert_is_out(&subak, &bad);
}
