//! Probes of the real binary: an endpoint that does not work is out within the time that its
//! configuration promises, comes back by and by, and clients notice nothing that a retry can save.

use std::time::{Duration, Instant};

use crate::support::{Endpoint, Load, Mood, Moody, Setup, Subak, fresh_address, wait_until};

/// I = 300 ms, F = 100 ms, T = 300 ms, no jitter.
const HEALTH: &str = "health = { http = \"/healthz\", interval = \"300ms\", fast_interval = \"100ms\", \
                      timeout = \"300ms\", rise = 2, fall = 3, jitter = 0 }";

/// max(I, T) + (fall − 1) · max(F, T) + T, and a step of the control side for each probe.
const DOWN_WITHIN: Duration = Duration::from_millis(300 + 2 * 300 + 300 + 3 * 100);
/// The same with rise, for the way back.
const UP_WITHIN: Duration = Duration::from_millis(300 + 300 + 300 + 2 * 100);

/// What a busy machine may add to that. The number of probes that it took is looked at as well, which
/// no machine can change.
const BUSY: Duration = Duration::from_secs(4);

/// Whatever goes wrong at an endpoint is tried elsewhere.
const RETRY: &str = "retry = { budget = 1, min_per_second = 1000, on = [\"connect\", \"reset\", \
                     \"timeout\", 500] }\ntimeouts = { connect = \"300ms\", first_byte = \"300ms\" }";

const REST: Duration = Duration::from_millis(10);

fn before(endpoints: &[&Moody]) -> Setup {
    Setup::before_addresses(endpoints.iter().map(|endpoint| endpoint.address()))
        .pool(HEALTH)
        .pool(RETRY)
        .pool("eject = false")
}

/// Waits until this change of this endpoint has been logged for the `count`th time.
#[track_caller]
fn wait_for_change(subak: &Subak, endpoint: &Moody, change: &str, count: usize) {
    let of_endpoint = format!("{}: ", endpoint.address());
    let is_it = |line: &&str| line.contains(&of_endpoint) && line.contains(change);
    let logged = || subak.log().lines().filter(is_it).count();
    wait_until(&format!("{change:?} is logged"), || logged() >= count);
}

/// Waits until an endpoint has been probed, so that nothing is assumed any more.
#[track_caller]
fn wait_for_probes(endpoints: &[&Moody]) {
    wait_until("all are probed", || endpoints.iter().all(|endpoint| endpoint.probes() >= 2));
}

/// Lets an endpoint be in this mood until it is out, and then be well until it is in again. Clients
/// ask all the while.
#[track_caller]
fn is_out_and_comes_back(mood: Mood, said: &str) {
    let (bad, good) = (Moody::new("bad"), Moody::new("good"));
    let subak = before(&[&bad, &good]).start();
    wait_for_probes(&[&bad, &good]);
    let load = Load::paced(subak.address(), 1, 1, REST);
    load.wait_for(20);

    let probes = bad.probes();
    let began = Instant::now();
    bad.set(mood);
    wait_for_change(&subak, &bad, &format!("to down: 3 probes in a row failed: {said}"), 1);
    let took = began.elapsed();
    assert!(took < DOWN_WITHIN + BUSY, "{took:?}");
    // One may have been under way, and another begun meanwhile.
    assert!(bad.probes() - probes <= 5, "{} probes", bad.probes() - probes);

    // What is under way ends; then nobody goes there.
    load.wait_for(20);
    let hits = bad.hits();
    load.wait_for(50);
    assert_eq!(bad.hits(), hits);

    let began = Instant::now();
    bad.set(Mood::Well);
    wait_for_change(&subak, &bad, "down to ready: 2 probes in a row passed", 1);
    let took = began.elapsed();
    assert!(took < UP_WITHIN + BUSY, "{took:?}");
    wait_until("it has its part again", || bad.hits() > hits);
    assert_eq!(load.end(), Vec::<String>::new());
}

#[test]
fn an_endpoint_that_hangs_is_out_within_the_configured_time() {
    is_out_and_comes_back(Mood::Hanging, "connected, but no answer within 300ms");
}

#[test]
fn an_endpoint_that_resets_is_out_within_the_configured_time() {
    is_out_and_comes_back(Mood::Resetting, "connection reset");
}

#[test]
fn an_endpoint_that_answers_500_is_out_within_the_configured_time() {
    is_out_and_comes_back(Mood::Failing, "status 500 is not in 200-399");
}

#[test]
fn an_endpoint_that_answers_slowly_is_out_within_the_configured_time() {
    let delay = Duration::from_secs(1);
    is_out_and_comes_back(Mood::Slow(delay), "connected, but no answer within 300ms");
}

#[test]
fn an_endpoint_that_says_itself_that_it_is_ill_is_out_within_the_configured_time() {
    is_out_and_comes_back(Mood::Sick, "status 503 is not in 200-399");
}

#[test]
fn an_endpoint_that_refuses_is_out_by_its_probes_too_and_comes_back() {
    let good = Moody::new("good");
    let address = fresh_address();
    let bad = Moody::at(&address, "bad");
    let subak = before(&[&bad, &good]).start();
    wait_for_probes(&[&bad, &good]);
    let load = Load::paced(subak.address(), 1, 1, REST);
    drop(bad);
    subak.wait_for_log("to down: 3 probes in a row failed: connection refused");
    let bad = Moody::at(&address, "bad");
    wait_for_change(&subak, &bad, "down to ready", 1);
    wait_until("it has its part again", || bad.hits() > 0);
    assert_eq!(load.end(), Vec::<String>::new());
}

#[test]
fn an_endpoint_that_flaps_every_two_seconds_is_out_whenever_it_is_bad() {
    let (bad, good) = (Moody::new("bad"), Moody::new("good"));
    let subak = before(&[&bad, &good]).start();
    wait_for_probes(&[&bad, &good]);
    let load = Load::paced(subak.address(), 1, 1, REST);
    for turn in 1..=3 {
        let began = Instant::now();
        bad.set(Mood::Resetting);
        wait_for_change(&subak, &bad, "to down", turn);
        std::thread::sleep(Duration::from_secs(2).saturating_sub(began.elapsed()));
        let began = Instant::now();
        bad.set(Mood::Well);
        wait_for_change(&subak, &bad, "down to ready", turn);
        std::thread::sleep(Duration::from_secs(2).saturating_sub(began.elapsed()));
    }
    assert_eq!(load.end(), Vec::<String>::new());
}

#[test]
fn the_first_probe_decides_at_once() {
    let (bad, good) = (Moody::new("bad"), Moody::new("good"));
    bad.set(Mood::Sick);
    let subak = before(&[&bad, &good]).start();
    wait_for_change(&subak, &bad, "to down: 1 probe failed: status 503", 1);
    for _ in 0..10 {
        assert_eq!(subak.get("/").1, "good");
    }
}

#[test]
fn a_tcp_probe_sees_whether_somebody_listens() {
    let good = Moody::new("good");
    let address = fresh_address();
    let bad = Moody::at(&address, "bad");
    let subak = Setup::before_addresses([bad.address(), good.address()])
        .pool(&HEALTH.replace("http = \"/healthz\"", "tcp = true"))
        .pool(RETRY)
        .start();
    assert_eq!(subak.get("/").0, 200);
    drop(bad);
    // Its first result, or the third of a row: nobody sees a probe by TCP that passes.
    subak.wait_for_log("failed: connection refused");
    let _bad = Moody::at(&address, "bad");
    subak.wait_for_log("down to ready: 2 probes in a row passed");
    assert_eq!(good.probes(), 0, "nobody asked for a path");
}

#[test]
fn another_port_another_host_and_a_body_can_be_probed() {
    let address = fresh_address();
    let app = Endpoint::on_inet(&address, |served| {
        while served.request().is_some() {
            served.send(crate::support::ok("app"));
        }
    });
    let side = Endpoint::on_inet(&address.replace(":8080", ":8081"), |served| {
        while served.request().is_some() {
            served.send(crate::support::ok("all is lost"));
        }
    });
    let subak = Setup::before_addresses([app.address()])
        .pool(
            "health = { http = \"/healthz\", method = \"GET\", host = \"app.example\", body = \"well\", \
             port = 8081, interval = \"200ms\", timeout = \"200ms\" }",
        )
        .start();
    subak.wait_for_log("the body does not contain \"well\"");
    let probe = &side.requests()[0];
    assert_eq!(probe.line, "GET /healthz HTTP/1.1");
    assert_eq!(probe.field("host"), Some("app.example"));
    assert!(app.requests().is_empty());
}

#[test]
fn an_endpoint_that_comes_back_grows_into_its_share() {
    let (bad, good) = (Moody::new("bad"), Moody::new("good"));
    let subak = before(&[&bad, &good]).pool("slow_start = \"6s\"").start();
    wait_for_probes(&[&bad, &good]);
    let share = || {
        let hits = bad.hits();
        (0..40).for_each(|_| assert_eq!(subak.get("/").0, 200));
        bad.hits() - hits
    };
    assert_eq!(share(), 20, "endpoints that were there from the start do not ramp");
    bad.set(Mood::Sick);
    wait_for_change(&subak, &bad, "to down", 1);
    wait_until("nobody goes there", || share() == 0);
    bad.set(Mood::Well);
    wait_for_change(&subak, &bad, "down to ready", 1);
    let began = Instant::now();
    let first = share();
    // A tenth and what has grown since: at a third of the ramp, 13 of 40.
    if began.elapsed() < Duration::from_secs(1) {
        assert!((1..=10).contains(&first), "{first} of 40 at the start");
    }
    wait_until("it has its whole share", || share() == 20);
    assert!(began.elapsed() > Duration::from_secs(3), "{:?}", began.elapsed());
}

#[test]
fn what_probes_know_outlives_a_reload() {
    let (bad, good) = (Moody::new("bad"), Moody::new("good"));
    let setup = before(&[&bad, &good]);
    let subak = setup.start();
    bad.set(Mood::Sick);
    wait_for_change(&subak, &bad, "to down", 1);
    for generation in 2..5 {
        subak.write_config(&setup.text());
        subak.signal("HUP");
        subak.wait_for_log(&format!("configuration reloaded generation={generation}\n"));
        let hits = bad.hits();
        (0..10).for_each(|_| assert_eq!(subak.get("/").1, "good"));
        assert_eq!(bad.hits(), hits);
    }
    bad.set(Mood::Well);
    wait_for_change(&subak, &bad, "down to ready", 1);
}
