//! `least_packets` and `least_bandwidth` from outside: what `/v1/status` says an endpoint has had is
//! what nftables counts at the endpoint's end of the cable, and every second is shared fairly.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::support::{
    Admin, Beyond, Counted, Endpoint, Load, Setup, Subak, in_a_network_of_its_own, wait_until,
};

/// Three endpoints beyond the cable, their weights and the bytes of their answers: the one with the
/// smallest answers is meant to have the most packets.
const ENDPOINTS: [&str; 3] = ["10.9.0.2", "10.9.0.3", "10.9.0.4"];
const WEIGHTS: [f64; 3] = [3.0, 2.0, 1.0];
const BODIES: [usize; 3] = [4_000, 16_000, 64_000];

/// Headers of IPv4 and TCP, without options.
const HEADERS_BYTES: u64 = 40;

/// Seconds before totals are compared: all of it must be younger than 14 s when they are.
const SECONDS_COUNTED: usize = 6;
const WINDOW: Duration = Duration::from_secs(13);
/// Seconds more, so that the first ones leave the window while the shares are watched.
const SECONDS_MORE: usize = 11;

/// Clients, and their rest between two requests.
const CLIENTS: usize = 12;
const REST: Duration = Duration::from_millis(5);
/// Fewer hits in the whole time say nothing; there are some 35,000 on a machine that is at leisure.
const HITS_MIN: f64 = 3_000.0;

/// What is balanced by.
#[derive(Clone, Copy)]
enum Unit {
    Packets,
    Bytes,
}

impl Unit {
    /// What the kernel of the other side says, as Subak counts it: payload without headers.
    fn of(self, counted: Counted) -> f64 {
        match self {
            Unit::Packets => counted.packets as f64,
            Unit::Bytes => (counted.bytes - HEADERS_BYTES * counted.packets) as f64,
        }
    }

    fn field(self) -> &'static str {
        match self {
            Unit::Packets => "packets_14s",
            Unit::Bytes => "bytes_14s",
        }
    }
}

/// What both sides say at one moment.
struct Reading {
    hits: Vec<f64>,
    subak: Vec<f64>,
    outside: Vec<f64>,
}

impl Reading {
    fn take(admin: &Admin, beyond: &Beyond, unit: Unit) -> Reading {
        let outside = beyond.counted().into_iter().map(|counted| unit.of(counted)).collect();
        let status = admin.status();
        let endpoints = status["pools"][0]["endpoints"].as_array().expect("endpoints");
        let figures = |field: &str| {
            let figure = endpoints.iter().map(|endpoint| endpoint[field].as_f64());
            figure.collect::<Option<Vec<_>>>().unwrap_or_else(|| panic!("no {field}: {status:#}"))
        };
        Reading { hits: figures("hits"), subak: figures(unit.field()), outside }
    }
}

/// One Subak beyond the cable that answers as three endpoints.
fn endpoints(beyond: &Beyond) -> Subak {
    let mut config = "workers = 1\nadmin = false\n".to_owned();
    for (address, bytes) in ENDPOINTS.iter().zip(BODIES) {
        let name = address.replace('.', "-");
        let body = "x".repeat(bytes);
        config += &format!(
            "[listener.{name}]\nbind = \"{address}:80\"\n\
             limits = {{ requests_per_connection = \"unlimited\" }}\n\
             [[listener.{name}.route]]\nrespond = {{ status = 200, body = \"{body}\" }}\n"
        );
    }
    let enter = beyond.enter();
    Subak::spawn_with(&enter.each_ref().map(String::as_str), &config, "10.9.0.2:80").ready(&config)
}

/// Asserts that no endpoint had more than twice, or less than half, of its fair share of the hits in
/// any of these seconds. A fair share is what keeps traffic by weight equal, each hit being as dear as
/// it was on average over the whole time.
fn assert_fair(readings: &[Reading]) {
    let whole = [0, readings.len() - 1].map(|at| &readings[at]);
    let grown = |of: fn(&Reading) -> &Vec<f64>, [from, to]: [&Reading; 2]| {
        of(to).iter().zip(of(from)).map(|(after, before)| after - before).collect::<Vec<_>>()
    };
    let (hits, traffic) = (grown(|r| &r.hits, whole), grown(|r| &r.outside, whole));
    let fair: Vec<_> = (0..3).map(|index| WEIGHTS[index] * hits[index] / traffic[index]).collect();
    let sum: f64 = fair.iter().sum();
    assert!(hits.iter().sum::<f64>() > HITS_MIN, "the load stood still: {hits:?}");
    for (second, pair) in readings.windows(2).enumerate() {
        let hits = grown(|r| &r.hits, [&pair[0], &pair[1]]);
        let all: f64 = hits.iter().sum();
        for (index, hits) in hits.iter().enumerate() {
            let fair = all * fair[index] / sum;
            // A request more or less is not a matter of fairness.
            let bounds = fair / 2.0 - 1.0..=fair * 2.0 + 1.0;
            assert!(
                bounds.contains(hits),
                "second {second}: {hits} hits at {index}, {fair:.1} is fair"
            );
        }
    }
}

fn agrees_with_counters_outside(test: &str, balance: &str, unit: Unit) {
    if !in_a_network_of_its_own(test) || !Beyond::can_count() {
        return;
    }
    let beyond = Beyond::new(&ENDPOINTS);
    let _endpoints = endpoints(&beyond);
    let addresses = ENDPOINTS.iter().zip(WEIGHTS);
    let subak =
        Setup::before_addresses(addresses.map(|(at, weight)| format!("{at}:80 weight={weight}")))
            .listener("limits = { requests_per_connection = \"unlimited\" }")
            .pool(&format!("balance = \"{balance}\""))
            .workers(2)
            .start();
    let admin = Admin::of(&subak);
    let mut readings = vec![Reading::take(&admin, &beyond, unit)];
    let mut watch = |seconds| {
        let load = Load::paced(subak.address(), 0, CLIENTS, REST);
        for _ in 0..seconds {
            std::thread::sleep(Duration::from_secs(1));
            readings.push(Reading::take(&admin, &beyond, unit));
        }
        assert_eq!(load.end(), [""; 0]);
        wait_until("every request is settled", || {
            let status = admin.status();
            let endpoints = status["pools"][0]["endpoints"].as_array().expect("endpoints");
            endpoints.iter().all(|endpoint| endpoint["in_flight"] == 0)
        });
    };

    let began = Instant::now();
    watch(SECONDS_COUNTED);
    let total = Reading::take(&admin, &beyond, unit);
    if began.elapsed() >= WINDOW {
        eprintln!("SKIPPED: others keep the machine busy: {:?}", began.elapsed());
        return;
    }
    for (index, (subak, outside)) in total.subak.iter().zip(&total.outside).enumerate() {
        let off = (subak - outside).abs() / outside;
        eprintln!("{}: {subak} {}, {outside} outside", ENDPOINTS[index], unit.field());
        assert!(off <= 0.05, "{subak} instead of {outside} at {index}: {:.1} % off", off * 100.0);
    }
    // By weight, so in the order of the list, on both sides.
    for side in [&total.subak, &total.outside] {
        assert!(side.is_sorted_by(|one, next| one > next), "{side:?}");
    }
    let each = total.outside.iter().zip(WEIGHTS).map(|(outside, weight)| outside / weight);
    let (least, most) = each.fold((f64::MAX, 0.0_f64), |(l, m), it| (l.min(it), m.max(it)));
    assert!(most <= 1.1 * least, "by weight they are not equal: {:?}", total.outside);

    watch(SECONDS_MORE);
    assert_fair(&readings);
}

#[test]
fn packets_agree_with_the_kernels_at_the_other_end_and_every_second_is_fair() {
    let this = "packets_agree_with_the_kernels_at_the_other_end_and_every_second_is_fair";
    agrees_with_counters_outside(this, "least_packets", Unit::Packets);
}

#[test]
fn bytes_agree_with_the_kernels_at_the_other_end_and_every_second_is_fair() {
    let this = "bytes_agree_with_the_kernels_at_the_other_end_and_every_second_is_fair";
    agrees_with_counters_outside(this, "least_bandwidth", Unit::Bytes);
}

#[test]
fn a_long_answer_is_counted_while_it_goes_on() {
    for (balance, field) in [("least_packets", "packets_14s"), ("least_bandwidth", "bytes_14s")] {
        let seen = Arc::new(AtomicBool::new(false));
        let enough = seen.clone();
        let endpoint = Endpoint::scripted(move |served| {
            served.request();
            served.send("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n");
            while !enough.load(Ordering::SeqCst) {
                served.send([b'x'; 1000]);
                std::thread::sleep(Duration::from_millis(10));
            }
        });
        let subak = Setup::before(&[&endpoint]).pool(&format!("balance = \"{balance}\"")).start();
        let admin = Admin::of(&subak);
        let mut client = subak.client();
        client.send("GET / HTTP/1.1\r\nHost: example.com\r\n\r\n");
        endpoint.wait_for_requests(1);
        wait_until("it is counted", || {
            let endpoint = admin.endpoint(&endpoint.address());
            assert_eq!((&endpoint["hits"], &endpoint["in_flight"]), (&1.into(), &1.into()));
            endpoint[field].as_u64().is_some_and(|counted| counted > 50)
        });
        seen.store(true, Ordering::SeqCst);
        assert_eq!(client.answer().status, 200);
    }
}
