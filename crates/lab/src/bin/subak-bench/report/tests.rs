//! Verdicts and tables over made-up samples.

use super::*;

fn sample(cpu_us: f64, p99_us: f64, utilisation: f64) -> Sample {
    Sample { system_us: cpu_us, p99_us, utilisation, per_second: 1.0, ..Sample::default() }
}

/// Results of one case: Subak, nginx, HAProxy with these samples in every round.
fn results(name: &str, samples: [Sample; 3]) -> Results {
    let kinds = [Kind::Subak, Kind::Nginx, Kind::Haproxy];
    let versions = vec!["1".to_owned(), "2".to_owned(), "3".to_owned()];
    let mut results = Results::new(&kinds, versions, 2, Duration::from_secs(5));
    let case = case::choose(&[name.to_owned()]).expect("a case")[0];
    results.add(case, samples.map(|sample| vec![sample; 2]).to_vec());
    results
}

fn verdict(results: &Results) -> Verdict {
    let subak = results.subaks().next().expect("subak");
    results.verdict(&results.cases[0], subak).expect("a promise")
}

#[test]
fn a_promise_is_judged_against_the_cheaper_of_the_others() {
    let good = results(
        "keepalive-64",
        [sample(7.9, 100.0, 0.99), sample(12.0, 50.0, 0.99), sample(10.0, 100.0, 0.99)],
    );
    assert_eq!(verdict(&good), Verdict::Kept);
    assert!(promises_kept(&good));
    let dear = results(
        "keepalive-64",
        [sample(8.1, 120.0, 0.99), sample(12.0, 500.0, 0.99), sample(10.0, 100.0, 0.99)],
    );
    let Verdict::Missed(why) = verdict(&dear) else { panic!("not missed") };
    assert_eq!(why, "CPU 0.81 > 0.80, p99 1.20 > 1.05");
    assert!(!promises_kept(&dear));
}

#[test]
fn a_balancer_that_waits_is_not_judged() {
    let lazy = results(
        "keepalive-256",
        [sample(7.0, 100.0, 0.95), sample(12.0, 100.0, 0.99), sample(10.0, 100.0, 0.99)],
    );
    assert_eq!(verdict(&lazy), Verdict::NotJudged("subak: only 95.0 % busy".to_owned()));
    assert!(!promises_kept(&lazy), "what was not judged was not kept");
}

#[test]
fn a_core_that_others_used_is_not_judged() {
    let shared = Sample { core_busy: 0.99, ..sample(7.0, 100.0, 0.80) };
    let results =
        results("new-connections", [shared, sample(12.0, 100.0, 0.80), sample(10.0, 100.0, 0.80)]);
    let why = "subak: other work took 19 % of its core".to_owned();
    assert_eq!(verdict(&results), Verdict::NotJudged(why));
}

#[test]
fn failures_do_not_count_and_say_so_in_the_table() {
    let failed = Sample { failed: 3, ..sample(7.0, 100.0, 0.99) };
    let results =
        results("keepalive-64", [failed, sample(12.0, 100.0, 0.99), sample(10.0, 100.0, 0.99)]);
    assert_eq!(verdict(&results), Verdict::NotJudged("subak: had 6 failures".to_owned()));
    assert!(markdown(&results).contains("does not count: had 6 failures"));
}

#[test]
fn new_connections_need_balancers_that_are_alike_and_bodies_only_nginx() {
    let alike = |busy| {
        results(
            "new-connections",
            [sample(9.0, 100.0, 0.80), sample(10.0, 100.0, busy), sample(11.0, 100.0, 0.85)],
        )
    };
    assert_eq!(verdict(&alike(0.89)), Verdict::Kept);
    assert!(matches!(verdict(&alike(0.95)), Verdict::NotJudged(_)));
    let bodies = results(
        "body-64k",
        [sample(9.0, 100.0, 0.99), sample(10.0, 100.0, 0.99), sample(5.0, 10.0, 0.99)],
    );
    assert_eq!(verdict(&bodies), Verdict::Kept);
}

#[test]
fn every_algorithm_has_a_row_and_is_judged_by_itself_against_the_others() {
    let (rr, packets) = (Kind::SubakBy("round_robin"), Kind::SubakBy("least_packets"));
    let versions = ["1", "1", "2"].map(str::to_owned).to_vec();
    let mut results =
        Results::new(&[rr, packets, Kind::Nginx], versions, 2, Duration::from_secs(5));
    let case = case::choose(&["keepalive-64".to_owned()]).expect("a case")[0];
    let costs = [7.0, 9.0, 10.0].map(|cost| vec![sample(cost, 100.0, 0.99); 2]);
    results.add(case, costs.to_vec());
    let verdicts: Vec<_> =
        results.subaks().map(|subak| results.verdict(&results.cases[0], subak)).collect();
    let missed = Verdict::Missed("CPU 0.90 > 0.80".to_owned());
    assert_eq!(verdicts, [Some(Verdict::Kept), Some(missed)]);
    assert!(!promises_kept(&results));
    let text = markdown(&results);
    assert!(text.contains("| keepalive-64, round_robin | 0.70 (0.70–0.70) |"), "{text}");
    assert!(text.contains("| keepalive-64, least_packets | 0.90 (0.90–0.90) |"), "{text}");
    let json = json(&results, 1);
    assert_eq!(json["cases"][0]["subak"]["subak-least_packets"]["to"]["better"]["other"], "nginx");
}

#[test]
fn idle_memory_counts_when_the_connections_stayed() {
    let judged = |bytes: f64, alive| {
        let mut results =
            Results::new(&[Kind::Subak], vec!["1".to_owned()], 1, Duration::from_secs(1));
        let case = case::choose(&["idle-10000".to_owned()]).expect("a case")[0];
        let sample =
            IdleSample { private_dirty: bytes, opened: 10_000, alive, ..IdleSample::default() };
        results.add_idle(case, vec![vec![sample]]);
        verdict(&results)
    };
    assert_eq!(judged(4000.0, 10_000), Verdict::Kept);
    assert_eq!(judged(5000.0, 10_000), Verdict::Missed("5000 B > 4096 B".to_owned()));
    assert!(matches!(judged(4000.0, 9_999), Verdict::NotJudged(_)));
}

#[test]
fn idle_memory_over_tls_is_judged_against_the_better_that_kept_its_connections() {
    let kinds = [Kind::Subak, Kind::Nginx, Kind::Haproxy];
    let judged = |bytes: [f64; 3], alive_at_haproxy| {
        let versions = vec!["1".to_owned(), "2".to_owned(), "3".to_owned()];
        let mut results = Results::new(&kinds, versions, 1, Duration::from_secs(1));
        let case = case::choose(&["idle-tls-10000".to_owned()]).expect("a case")[0];
        let alive = [100, 100, alive_at_haproxy];
        let samples = bytes.into_iter().zip(alive).map(|(private_dirty, alive)| {
            vec![IdleSample { private_dirty, opened: 100, alive, ..IdleSample::default() }]
        });
        results.add_idle(case, samples.collect());
        assert!(markdown(&results).contains("≤ the better of its own"));
        verdict(&results)
    };
    assert_eq!(judged([9000.0, 14_000.0, 9001.0], 100), Verdict::Kept);
    let missed = Verdict::Missed("9000 B > 8000 B".to_owned());
    assert_eq!(judged([9000.0, 14_000.0, 8000.0], 100), missed);
    assert_eq!(judged([9000.0, 14_000.0, 8000.0], 99), Verdict::Kept);
}

#[test]
fn json_holds_every_round_and_the_ratios() {
    let results = results(
        "keepalive-64",
        [sample(7.0, 100.0, 0.99), sample(14.0, 100.0, 0.99), sample(10.0, 100.0, 0.99)],
    );
    let json = json(&results, 1_800_000_000);
    let case = &json["cases"][0];
    assert_eq!(case["rounds"]["nginx"].as_array().map(Vec::len), Some(2));
    assert_eq!(case["subak"]["subak"]["to"]["nginx"]["cpu"]["median"], 0.5);
    assert_eq!(case["subak"]["subak"]["to"]["better"]["other"], "haproxy");
    assert_eq!(case["subak"]["subak"]["promise"], "kept");
    assert_eq!(json["versions"]["haproxy"], "3");
}
