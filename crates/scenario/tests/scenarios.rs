//! Every scenario that comes with Subak can be read and run; errors have places; what is asserted is
//! judged; the same seed gives the same bytes.

use std::num::NonZeroU32;
use std::path::Path;
use std::time::Duration;

use subak_config::Pool;
use subak_pool::{EndpointSpec, PoolSpec};
use subak_report::Word;
use subak_scenario::{
    On, Outcome, Scenario, Side, Trial, builtin, compare, read, report, simulate,
};

/// What these tests need of a configured pool; the binary passes what the data path builds.
fn spec(pool: &Pool) -> PoolSpec {
    let endpoint = |one: &subak_config::Endpoint| EndpointSpec {
        weight: one.weight,
        max_in_flight: one.max_in_flight.map(NonZeroU32::get),
        ..EndpointSpec::new(one.name.to_string(), one.address.clone())
    };
    let endpoints = pool.endpoints.iter().map(endpoint).collect();
    PoolSpec {
        queue_length: pool.queue.length,
        probe: pool.health.as_ref().map(|health| health.spec.clone()),
        ..PoolSpec::new(pool.name.to_string(), pool.algorithm.clone(), endpoints)
    }
}

fn scenario(text: &str) -> Scenario {
    let read = read(text, Path::new("test.toml"));
    let errors = read.sources.render(&read.diagnostics, false);
    read.scenario.unwrap_or_else(|| panic!("{errors}"))
}

fn run(text: &str, scenario: &Scenario) -> Outcome {
    let trials = simulate(scenario, None, spec, &|_, _| {}).expect("a pool that goes with it");
    Outcome {
        name: "test".to_owned(),
        scenario: text.to_owned(),
        faster: 1.0,
        version: "0".to_owned(),
        made: "now".to_owned(),
        setup: Vec::new(),
        trials,
    }
}

#[test]
fn every_builtin_scenario_can_be_read_and_run() {
    for one in builtin::ALL {
        let mut scenario = scenario(one.text);
        assert!(!scenario.question.is_empty(), "{}", one.name);
        if !scenario.attacks.is_empty() {
            // They need real servers: the end-to-end tests have them.
            continue;
        }
        // The first seconds will do here.
        scenario.lasts = Duration::from_secs(3);
        scenario.warm_up = Duration::ZERO;
        scenario.seeds = 2;
        let outcome = run(one.text, &scenario);
        assert_eq!(outcome.trials.len(), scenario.algorithms.len(), "{}", one.name);
        for trial in &outcome.trials {
            let answered: u64 = trial.runs.iter().map(|run| run.answered).sum();
            assert!(answered > 0, "{}: {}", one.name, trial.algorithm);
        }
        let report = report(&outcome).expect("a report");
        assert_eq!(report.verdicts.len(), scenario.assertions.len(), "{}", one.name);
    }
}

#[test]
fn security_is_judged_by_what_attackers_get() {
    let scenario = scenario(builtin::find("security").expect("security").text);
    let asserted: Vec<&str> = scenario.assertions.iter().map(|one| &*one.text).collect();
    for wanted in ["refused of each > 99.9%", "ended of each > 99.9%", "held of each < 3s"] {
        assert!(asserted.contains(&wanted), "{wanted} is not among {asserted:?}");
    }
    // What is held at the end of an attack must have the time to be ended.
    let last = scenario.attacks.iter().map(|attack| attack.until).max().expect("attacks");
    assert!(scenario.lasts >= last + Duration::from_secs(3));
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    let text = builtin::find("flap").expect("flap").text;
    let mut scenario = scenario(text);
    scenario.lasts = Duration::from_secs(30);
    scenario.seeds = 3;
    let [one, other] = [(); 2].map(|()| serde_json::to_string(&run(text, &scenario)).unwrap());
    assert!(one == other);
}

const SMALL: &str = r#"
title = "Small"
question = "?"
lasts = "20s"
algorithms = ["round_robin", "least_connections"]
assert = [
    "p95 of least_connections < p95 of round_robin",
    "p95 of round_robin < 1ms",
    "jain of round_robin > 0.999",
    "failed of each < 1%",
]

[load]
rate = 100

[[endpoint]]
count = 3
service = "exponential:20ms"
concurrency = 4

[[fault]]
endpoints = [1]
at = "5s"
lasts = "10s"
what = "slow:8"
"#;

#[test]
fn what_is_asserted_is_judged() {
    let outcome = run(SMALL, &scenario(SMALL));
    let report = report(&outcome).expect("a report");
    let words: Vec<Word> = report.verdicts.iter().map(|verdict| verdict.word).collect();
    assert_eq!(words, [Word::Holds, Word::Fails, Word::Holds, Word::Holds], "{}", report.text());
    assert!(report.answer.contains("least_connections"), "{}", report.answer);
}

#[test]
fn two_algorithms_differ_and_one_does_not_differ_from_itself() {
    let outcome = run(SMALL, &scenario(SMALL));
    let side = |index: usize| Side {
        name: &outcome.trials[index].algorithm,
        outcome: &outcome,
        trial: &outcome.trials[index],
    };
    let word = |one, other| {
        let report = compare(&[(side(one), side(other))], "now").expect("a report");
        report.verdicts[0].word
    };
    assert_eq!(word(0, 1), Word::Holds);
    assert_eq!(word(0, 0), Word::NoDifference);
}

#[test]
fn an_invalid_run_is_no_evidence() {
    let mut outcome = run(SMALL, &scenario(SMALL));
    let spoil = |trial: &mut Trial| {
        trial.runs.iter_mut().for_each(|run| run.invalid.push("the generator was late".to_owned()));
    };
    outcome.trials.iter_mut().for_each(spoil);
    let report = report(&outcome).expect("a report");
    assert!(report.verdicts.iter().all(|verdict| verdict.word == Word::Invalid));
    assert!(report.text().contains("the generator was late"), "{}", report.text());
}

#[test]
fn every_error_has_its_place() {
    for (wrong, right, said) in [
        ("rate = 100", "rate = \"much\"", "a number, or a list of stages"),
        ("concurrency = 4", "concurency = 4", "unknown field `concurency`"),
        ("exponential:20ms", "exponentially:20ms", "no distribution"),
        ("slow:8", "slow", "nothing that can go wrong"),
        ("endpoints = [1]", "endpoints = [3]", "counted from 0 to 2"),
        ("\"round_robin\",", "\"round_robbin\",", "did you mean round_robin?"),
        ("p95 of round_robin <", "p95 of random <", "not among the algorithms"),
        ("lasts = \"20s\"", "lasts = \"20\"", ""),
        ("slow:8", "deploy:1s:0s", "some time away"),
        ("rate = 100", "rate = 100\nusers = 5", "either a rate"),
        ("rate = 100", "rate = 1e300", "from 0 to"),
    ] {
        let text = SMALL.replacen(wrong, right, 1);
        let read = read(&text, Path::new("mine.toml"));
        let told = read.sources.render(&read.diagnostics, false);
        assert!(read.scenario.is_none(), "{right}");
        assert!(told.contains(said), "{right}: {told}");
        let place = read.diagnostics[0].span;
        let at = text.find(right).expect("the place");
        let line = |byte: usize| text[..byte].matches('\n').count();
        let of_table = right.starts_with("rate") && line(place.start) + 1 == line(at);
        assert!(line(place.start) == line(at) || of_table, "{right}: {told}");
    }
    for (wrong, right, said) in [
        ("slow:8", "deploy:9s:2s", "all of them take 11s"),
        ("rate = 100", "rate = 100\nthink = \"1s\"", "`think` goes with users"),
        ("rate = 100", "log = \"a.log\"\nclients = 5", "`clients` goes with"),
        (
            "rate = 100",
            "users = 9\ndaily = { swing = 0.5, period = \"9s\" }",
            "`daily` goes with a rate",
        ),
        (
            "rate = 100",
            "rate = 100\nbursts = { times = 9.0, last = \"1s\", apart = \"4s\" }",
            "at most 5.0 times",
        ),
        (
            "rate = 100",
            "rate = 100\nbursts = { times = 0.5, last = \"1s\", apart = \"4s\" }",
            "1 to 1000 times",
        ),
        ("rate = 100", "rate = 100\ndaily = { swing = 2.0, period = \"9s\" }", "swing from 0 to 1"),
        ("rate = 100", "rate = 100\nclients = { people = [0, 0] }", "nobody is behind"),
        ("rate = 100", "rate = 1e8", "from 0 to"),
        ("rate = 100", "users = 1e7", "from 0 to 200000"),
        ("rate = 100", "rate = [{ to = 1e7, over = \"1h\" }]", "would have no end"),
        ("slow:8", "flapping:0s:0s", "down for some time"),
        ("count = 3", "count = 0", "at least 1"),
        (
            "lasts = \"20s\"",
            "lasts = \"20s\"\ntrouble = { from = \"9s\", until = \"3s\" }",
            "ends before it begins",
        ),
        ("lasts = \"20s\"", "lasts = \"20s\"\nbalancers = 0", "1 to 64 balancers"),
        (
            "lasts = \"20s\"",
            "lasts = \"20s\"\nbalancers = { count = 2, sees = \"some\" }",
            "(\"own\") or everybody's",
        ),
    ] {
        let text = SMALL.replacen(wrong, right, 1);
        let read = read(&text, Path::new("mine.toml"));
        let told = read.sources.render(&read.diagnostics, false);
        assert!(read.scenario.is_none() && told.contains(said), "{right}: {told}");
        let place = text[read.diagnostics[0].span.start..].lines().next().unwrap_or_default();
        let is_there = right.contains(place) || place.contains(right);
        assert!(is_there || place.starts_with('['), "{right}: {told}");
    }
    let both = SMALL.replace("slow:8", "slow").replace("exponential:20ms", "often");
    assert_eq!(read(&both, Path::new("mine.toml")).diagnostics.len(), 2);
}

#[test]
fn a_scenario_can_be_run_faster_with_the_same_queues() {
    let text = builtin::find("slow-endpoint").expect("a scenario").text;
    let mut usual = scenario(text);
    usual.algorithms.truncate(1);
    usual.seeds = 2;
    let fast = usual.clone().faster(4.0);
    assert_eq!((fast.lasts, fast.faults[0].from), (usual.lasts / 4, usual.faults[0].from / 4));
    let [usual, fast] = [run(text, &usual), run(text, &fast)];
    for (usual, fast) in usual.trials[0].runs.iter().zip(&fast.trials[0].runs) {
        assert!(
            usual.requests.abs_diff(fast.requests) < 20,
            "{} {}",
            usual.requests,
            fast.requests
        );
        let ratio = usual.p95_ms / fast.p95_ms;
        assert!((3.9..4.1).contains(&ratio), "{ratio}");
    }
}

#[test]
fn the_simulator_is_held_against_what_was_measured() {
    let text = builtin::find("slow-endpoint").expect("a scenario").text;
    let mut small = scenario(text);
    small.algorithms.retain(|one| ["round_robin", "least_connections"].contains(&&*one.name));
    small.seeds = 3;
    let judged = |change: fn(&mut Trial)| {
        let mut outcome = run(text, &small);
        let mut real = outcome.trials.clone();
        for trial in &mut real {
            trial.on = On::Real;
            change(trial);
        }
        outcome.trials.append(&mut real);
        let report = report(&outcome).expect("a report");
        let about_it = report.verdicts.iter().filter(|one| one.claim.starts_with("the simulator"));
        about_it.map(|one| one.word).collect::<Vec<_>>()
    };
    assert_eq!(judged(|_| {}), [Word::Holds, Word::Holds]);
    let slower = judged(|trial| trial.runs.iter_mut().for_each(|run| run.p95_ms *= 1.3));
    assert_eq!(slower, [Word::Holds, Word::Fails]);
    let turned = judged(|trial| {
        let lowers = trial.algorithm == "round_robin";
        trial
            .runs
            .iter_mut()
            .for_each(|run| run.p95_ms = if lowers { 1.0 } else { 2.0 } + run.p95_ms / 1e3);
    });
    assert_eq!(turned, [Word::Fails, Word::Fails]);
    let invalid =
        judged(|trial| trial.runs.iter_mut().for_each(|run| run.invalid = vec!["x".into()]));
    assert_eq!(invalid, [Word::Invalid]);
}

/// The outcome of the small scenario with another load, or something else before `[load]`.
fn small_with(before: &str, load: &str) -> Outcome {
    let text = SMALL.replace("rate = 100", load).replace("[load]", &format!("{before}\n[load]"));
    run(&text, &scenario(&text))
}

#[test]
fn bursts_and_days_keep_their_mean_and_have_their_highs() {
    let requests = |outcome: &Outcome| {
        let runs = &outcome.trials[0].runs;
        runs.iter().map(|run| run.requests).sum::<u64>() as f64 / runs.len() as f64
    };
    let most_answered = |outcome: &Outcome| {
        let of_run =
            |run: &subak_scenario::Measured| run.series.iter().map(|one| one.answered).max();
        outcome.trials[0].runs.iter().filter_map(of_run).min().expect("steps")
    };
    let even = small_with("seeds = 20", "rate = 100");
    let bursts = "rate = 100\nbursts = { times = 6.0, last = \"200ms\", apart = \"2s\" }";
    let bursts = small_with("seeds = 20", bursts);
    let days = "rate = 100\ndaily = { swing = 1.0, period = \"10s\" }";
    let days = small_with("seeds = 20", days);
    // 2,000 each, by 20 runs: bursts deviate the most, by some 100 a run.
    for outcome in [&even, &bursts, &days] {
        assert!((requests(outcome) - 2_000.0).abs() < 150.0, "{}", requests(outcome));
    }
    // A step is a third of a second.
    assert!(most_answered(&days) > 45 && most_answered(&bursts) > 60);
    let report = report(&bursts).expect("a report");
    let told = report.setup.iter().find(|(name, _)| name == "load").expect("the load");
    assert!(told.1.contains("in bursts of 200ms with 6 times as many, 2s apart"), "{told:?}");
    assert!(report.text().contains("peak"), "{}", report.text());
}

#[test]
fn balancers_with_old_views_send_herds_to_the_least_loaded() {
    let mut scenario = scenario(builtin::find("stale-views").expect("stale-views").text);
    scenario.lasts = Duration::from_secs(20);
    let p95 = |scenario: &Scenario, algorithm: &str| {
        let trials = simulate(scenario, None, spec, &|_, _| {}).expect("a pool");
        let trial = trials.into_iter().find(|one| one.algorithm == algorithm).expect("it");
        trial.runs.iter().map(|run| run.p95_ms).sum::<f64>() / trial.runs.len() as f64
    };
    let stale = p95(&scenario, "least_connections");
    scenario.balancers.every = Duration::ZERO;
    let fresh = p95(&scenario, "least_connections");
    assert!(stale > 2.0 * fresh, "{stale} {fresh}");
}

#[test]
fn a_deploy_fails_no_request_when_endpoints_drain_first() {
    let text = builtin::find("deploy").expect("deploy").text;
    let failed = |text: &str| {
        let trials = simulate(&scenario(text), None, spec, &|_, _| {}).expect("a pool");
        let runs = trials.into_iter().flat_map(|one| one.runs);
        runs.map(|run| run.requests - run.answered).sum::<u64>()
    };
    assert_eq!(failed(text), 0);
    let at_once = text.replace("deploy:5s:2s", "deploy:0s:7s");
    assert!(failed(&at_once.replace("[pool]", "[pool]\nretry = { attempts = 1 }")) > 0);
}
