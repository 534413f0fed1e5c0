//! Layouts are held against what the real programs printed: testdata/ has recordings of k6 1.8
//! (`--summary-mode=legacy`) and of ab 2.3, against a small server.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use super::*;
use crate::endpoint::{EndpointSpec, Endpoints};
use crate::load::{self, Check, Detail, LoadPlan, LoadReport, Profile, Shape, Think};

const K6: &str = include_str!("../../../testdata/k6-summary.txt");
const AB: &str = include_str!("../../../testdata/ab.txt");
const AB_NOT_FOUND: &str = include_str!("../../../testdata/ab-not-found.txt");

/// A run of real requests against a test endpoint.
fn ran(change: impl FnOnce(LoadPlan) -> LoadPlan) -> (LoadPlan, LoadReport) {
    let any = "127.0.0.1:0".parse().expect("an address");
    let endpoints = Endpoints::start(vec![EndpointSpec::new("a", any)]).expect("an endpoint");
    let mut plan = LoadPlan::get(endpoints.address(0), "/").users(5).requests(40);
    plan.detail = Detail { phases: true, every: Some(Duration::from_millis(50)), finish: true };
    let plan = change(plan);
    let never = AtomicBool::new(false);
    let report = load::run_watched(&plan, &never, &mut |_| {}).expect("a report");
    (plan, report)
}

/// The text with `#` for every number and its unit, and one blank for many.
fn shape(text: &str) -> Vec<String> {
    let number = |word: &str| {
        let (name, value) = word.rsplit_once('=').unwrap_or(("", word));
        let is_number = value.trim_start_matches('[').starts_with(|c: char| c.is_ascii_digit());
        match (is_number, name) {
            (true, "") => "#".to_owned(),
            (true, name) => format!("{name}=#"),
            (false, _) => word.to_owned(),
        }
    };
    // A unit that stands by itself belongs to the number before it.
    let unit = |word: &str| ["B", "kB", "MB", "B/s", "kB/s", "MB/s"].contains(&word);
    let line = |line: &str| {
        let words = line.split_whitespace().filter(|word| !unit(word)).map(number);
        words.collect::<Vec<_>>().join(" ")
    };
    text.lines().map(line).filter(|line| !line.is_empty()).collect()
}

#[test]
fn the_k6_layout_is_k6s_own() {
    let (plan, report) = ran(|mut plan| {
        let profile = Profile::constant(5.0, Duration::MAX);
        plan.shape = Shape::Users { profile, think: Think::Constant(Duration::from_millis(5)) };
        plan.checks = vec![Check::Status(200, 200)];
        plan
    });
    let mine = k6(&plan, &report);
    let theirs = K6.replace("status is 200", "status=200");
    assert_eq!(shape(&mine), shape(&theirs), "{mine}\n{theirs}");
    // Names and dots are as wide, and values begin in the same column.
    for name in
        ["data_received", "http_req_tls_handshaking", "{ expected_response:true }", "vus_max"]
    {
        let column = |text: &str| {
            let line = text.lines().find(|line| line.contains(name)).expect(name);
            line.find(": ").map(|at| line[..at].chars().count())
        };
        assert_eq!(column(&mine), column(K6), "{name}\n{mine}");
    }
    assert!(mine.contains("vus............................: 5 "), "{mine}");
    assert!(mine.contains("iterations.....................: 40 "), "{mine}");
}

#[test]
fn the_ab_layout_is_abs_own() {
    // What ab knows of a server, and counts of connections, are not part of the load.
    let without = |text: &str, names: &[&str]| {
        let keep = |line: &&str| !names.iter().any(|name| line.starts_with(name));
        text.lines().filter(keep).collect::<Vec<_>>().join("\n")
    };
    let (plan, report) = ran(|plan| plan.with_new_connections());
    let mine = ab(&plan, &report);
    assert_eq!(shape(&mine), shape(&without(AB, &["Server Software"])), "{mine}");
    let place = |text: &str, name: &str| {
        let line = text.lines().find(|line| line.starts_with(name)).expect(name).to_owned();
        line.find(|c: char| c.is_ascii_digit())
    };
    for name in ["Concurrency Level", "Requests per second", "Total transferred"] {
        assert_eq!(place(&mine, name), place(AB, name), "{name}");
    }
    assert!(mine.contains("Complete requests:      40\n"), "{mine}");

    let (plan, mut report) = ran(|plan| plan);
    report.statuses = BTreeMap::from([(404, 40)]);
    let mine = ab(&plan, &report);
    let theirs = AB_NOT_FOUND.replace("/nothere", "/");
    assert_eq!(shape(&mine), shape(&without(&theirs, &["Server Software"])), "{mine}");
    assert!(mine.contains("Keep-Alive requests:    35\n"), "{mine}");
}

#[test]
fn json_and_csv_say_the_same() {
    let (_, report) = ran(|plan| plan);
    let value = json(&report);
    assert_eq!((value["answered"].as_u64(), value["failed"].as_u64()), (Some(40), Some(0)));
    assert_eq!(value["statuses"]["200"], 40);
    assert_eq!(value["phases_ms"]["waiting"]["count"], 40);
    let csv = csv(&report);
    let mut lines = csv.lines();
    let columns = lines.next().expect("columns").split(',').count();
    let answered: u64 = lines
        .map(|line| {
            assert_eq!(line.split(',').count(), columns, "{line}");
            line.split(',').nth(4).and_then(|cell| cell.parse::<u64>().ok()).expect("a count")
        })
        .sum();
    assert_eq!(answered, 40);
    assert!(text(&report).contains("40 in "), "{}", text(&report));
}

#[test]
fn thresholds_are_read_and_judged() {
    let (_, report) = ran(|plan| plan);
    let judge = |text: &str| {
        let threshold: load::Threshold = text.parse().expect(text);
        threshold.judge(&report).holds
    };
    for kept in
        ["p95<10s", "p(99.9)<=10s", "avg<10s", "failed<1%", "failed<=0", "checks>99%", "rate>0.1/s"]
    {
        assert!(judge(kept), "{kept}");
    }
    for broken in ["p50<1us", "max<0ms", "rate>1000000/s", "failed>0"] {
        assert!(!judge(broken), "{broken}");
    }
    for wrong in ["", "p95", "p0<1s", "p95<1", "failed<x", "speed>1", "p95<-1ms"] {
        wrong.parse::<load::Threshold>().expect_err(wrong);
    }
}

#[test]
fn without_an_answer_no_latency_is_kept_to() {
    let (_, report) = ran(|mut plan| {
        plan.requests = vec![load::Request::get("/")];
        plan.targets = vec!["127.0.0.1:1".parse().expect("an address")];
        plan.requests(2)
    });
    let kept = "p95<10s".parse::<load::Threshold>().expect("one").judge(&report);
    assert_eq!((kept.holds, &*kept.measured), (false, "no answer"));
}
