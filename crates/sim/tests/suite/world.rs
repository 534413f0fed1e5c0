//! What pools do when endpoints, balancers and clients are not as they should be: the simulated world
//! against what can be worked out by hand, and against itself.

use std::time::Duration;

use subak_balance::catalogue;
use subak_health::{EjectionSpec, ProbeSpec};
use subak_sim::{
    Arrivals, Balancers, Cache, EndpointModel, Event, Fault, Herd, Keys, Outcome, Pace, Patience,
    Rate, Retry, Scenario, Sees, Service, Stage, Step, Steps, Trace, TracedRequest, Trouble, Why,
    run, run_with,
};

const SECOND: Duration = Duration::from_secs(1);

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Ten requests a millisecond would be all these endpoints can do; half of it comes.
fn scenario(name: &str, endpoints: usize) -> Scenario {
    let algorithm = catalogue::find(name).unwrap().algorithm();
    let pool = Scenario::pool_of(algorithm, &vec![1; endpoints]);
    let model = EndpointModel::new(4, Service::Exponential(ms(4)));
    let arrivals = Arrivals::poisson(500.0 * endpoints as f64);
    Scenario { requests: 20_000, ..Scenario::new(pool, vec![model; endpoints], arrivals) }
}

fn fault(endpoints: &[usize], from: Duration, until: Duration, trouble: Trouble) -> Fault {
    Fault { endpoints: endpoints.to_vec(), from, until, trouble }
}

/// Every request ends exactly once, and the books balance.
fn audit(outcome: &Outcome) {
    assert_eq!(outcome.answered + outcome.failures.total(), outcome.requests);
    let hits: u64 = outcome.hits().iter().sum();
    let never_sent = outcome.failures.no_endpoint
        + outcome.failures.line_full
        + outcome.failures.line_timeout
        + outcome.failures.abandoned
        + outcome.failures.unfinished;
    assert!(hits <= outcome.requests + outcome.retries);
    assert!(hits + never_sent >= outcome.requests + outcome.retries, "{outcome:?}");
    let answered: u64 = outcome.endpoints.iter().map(|endpoint| endpoint.answered).sum();
    assert_eq!(answered, outcome.answered);
}

#[test]
fn who_dies_costs_what_it_had_and_is_left_out_until_it_is_back() {
    let mut scenario = scenario("round_robin", 4);
    scenario.faults = vec![fault(&[1], SECOND, SECOND * 3, Trouble::Dead)];
    scenario.series = Some(ms(500));
    let outcome = run(&scenario);
    audit(&outcome);
    // What ran there when it died; the rest was refused, and tried elsewhere.
    let failures = outcome.failures;
    assert!((1..=20).contains(&failures.reset), "{failures:?}");
    assert_eq!(failures.total(), failures.reset);
    let hits = |half: usize| outcome.series[half].hits[1];
    // Refused at 1 s, left out for one second, then for two.
    assert!(hits(1) > 200 && hits(9) > 200, "{} {}", hits(1), hits(9));
    assert!((2..8).all(|half| hits(half) < 5), "{:?}", (2..8).map(hits).collect::<Vec<_>>());
}

#[test]
fn a_silent_endpoint_costs_time_limits_and_probes_find_it() {
    let mut scenario = scenario("least_connections", 4);
    scenario.faults = vec![fault(&[2], SECOND, SECOND * 9, Trouble::Silent)];
    scenario.patience.answer = Some(ms(200));
    scenario.pool.probe = Some(ProbeSpec::default());
    let without = run(&scenario);
    scenario.retry = Retry { attempts: 2, ..Retry::default() };
    let with = run(&scenario);
    audit(&without);
    audit(&with);
    assert!(without.failures.timeout > 0, "{:?}", without.failures);
    assert_eq!(without.failures.total(), without.failures.timeout);
    assert_eq!(with.failures.total(), 0, "{:?}", with.failures);
    assert!(with.retries > 0);
    let told = |word: &str| with.events.iter().any(|event| event.said.contains(word));
    assert!(told("e2") && told("no answer within 1s"), "{:?}", with.events);
}

#[test]
fn without_any_limit_what_hangs_is_unfinished_and_the_run_ends() {
    let mut scenario = scenario("round_robin", 2);
    scenario.faults = vec![fault(&[0], SECOND, SECOND * 2, Trouble::Silent)];
    let outcome = run(&scenario);
    audit(&outcome);
    assert!(outcome.failures.unfinished > 100, "{:?}", outcome.failures);
    assert_eq!(outcome.failures.unfinished, outcome.failures.total());
}

#[test]
fn who_answers_errors_fast_draws_everything_until_it_is_ejected() {
    let mut scenario = scenario("least_connections", 4);
    scenario.faults =
        vec![fault(&[0], Duration::ZERO, SECOND * 99, Trouble::Failing { per_mille: 1000 })];
    let drawn = run(&scenario);
    scenario.pool.eject = Some(EjectionSpec::default());
    let ejected = run(&scenario);
    audit(&drawn);
    audit(&ejected);
    assert!(drawn.failures.error > 8_000, "{}", drawn.failures.error);
    assert!(ejected.failures.error < 50, "{}", ejected.failures.error);
    assert!(
        ejected.events.iter().any(|event| event.said.contains("eject")),
        "{:?}",
        ejected.events
    );
}

#[test]
fn a_deploy_with_drain_fails_nothing_and_one_without_does() {
    let mut scenario = scenario("least_connections", 4);
    let deploy = |drain| Trouble::Deploy { drain, away: ms(500) };
    let all = [0, 1, 2, 3];
    scenario.faults = vec![fault(&all, SECOND, SECOND * 60, deploy(SECOND))];
    let gently = run(&scenario);
    scenario.faults = vec![fault(&all, SECOND, SECOND * 60, deploy(Duration::ZERO))];
    let roughly = run(&scenario);
    audit(&gently);
    audit(&roughly);
    assert_eq!(gently.failures.total(), 0, "{:?}", gently.failures);
    assert!(gently.events.len() >= 8, "{:?}", gently.events);
    assert!(roughly.failures.reset >= 4, "{:?}", roughly.failures);
}

#[test]
fn a_lossy_and_a_flapping_endpoint_are_survived_within_the_retry_budget() {
    let mut scenario = scenario("power_of_two", 10);
    scenario.requests = 50_000;
    scenario.retry = Retry { attempts: 3, ..Retry::default() };
    let flap = Trouble::Flapping { down: ms(300), up: ms(700) };
    scenario.faults = vec![
        fault(&[3], Duration::ZERO, SECOND * 99, Trouble::Lossy { per_mille: 300 }),
        fault(&[7], Duration::ZERO, SECOND * 99, flap),
    ];
    let within = run(&scenario);
    audit(&within);
    assert!(within.failures.total() < 10, "{:?}", within.failures);
    assert!(within.retries > 1_000 && within.denied == 0, "{}", within.retries);
    scenario.pool.retry.budget_per_mille = 5;
    let beyond = run(&scenario);
    audit(&beyond);
    assert!(beyond.denied > 500 && beyond.failures.reset == beyond.denied, "{:?}", beyond.failures);
}

#[test]
fn queues_are_bounded_at_the_endpoint_and_before_the_pool() {
    let mut scenario = scenario("round_robin", 2);
    scenario.arrivals = Arrivals::poisson(4_000.0);
    scenario.models.iter_mut().for_each(|model| model.queue = 10);
    let at_endpoints = run(&scenario);
    audit(&at_endpoints);
    // Twice what they can do: half is answered 503.
    let share = at_endpoints.failures.error as f64 / 20_000.0;
    assert!((share - 0.5).abs() < 0.03, "{share}");
    assert!(at_endpoints.latency.max() < ms(200));

    scenario.pool.endpoints.iter_mut().for_each(|endpoint| endpoint.max_in_flight = Some(4));
    scenario.pool.queue_length = 20;
    scenario.patience.queue = Some(ms(8));
    let before_pool = run(&scenario);
    audit(&before_pool);
    let failures = before_pool.failures;
    assert_eq!(failures.error, 0);
    assert!(failures.line_full > 0 && failures.line_timeout > 0, "{failures:?}");
    assert_eq!(failures.total(), failures.line_full + failures.line_timeout);
}

#[test]
fn clients_who_leave_are_counted_and_their_work_is_done_for_nobody() {
    let mut scenario = scenario("round_robin", 1);
    scenario.models[0] = EndpointModel::new(1, Service::Constant(ms(10)));
    scenario.arrivals = Arrivals::poisson(150.0);
    scenario.requests = 3_000;
    scenario.patience = Patience { client: Some(ms(100)), ..Patience::default() };
    let served = |drops_abandoned| {
        let mut scenario = scenario.clone();
        scenario.models[0].drops_abandoned = drops_abandoned;
        let outcome = run(&scenario);
        audit(&outcome);
        assert_eq!(outcome.failures.total(), outcome.failures.abandoned);
        outcome.answered
    };
    // Three requests for two that can be served: who works on in the order of arrival serves nobody
    // any more once it is late. Who leaves out those that have left begins with the next in the last
    // moment, and is too late for most.
    let (stubborn, sensible) = (served(false), served(true));
    assert!(stubborn < 300, "{stubborn}");
    assert!((2 * stubborn..2_000).contains(&sensible), "{stubborn} {sensible}");
}

#[test]
fn a_closed_loop_has_as_many_under_way_as_users() {
    let stage = |seconds, to| Stage { lasts: SECOND * seconds, to };
    let think = Service::Constant(ms(90));
    let mut scenario = scenario("least_connections", 2);
    scenario.models = vec![EndpointModel::new(100, Service::Constant(ms(10))); 2];
    let stages = vec![stage(10, 20.0), stage(20, 20.0), stage(10, 0.0)];
    scenario.arrivals = Arrivals::Users { stages, think };
    scenario.requests = u64::MAX;
    scenario.series = Some(SECOND);
    let outcome = run(&scenario);
    audit(&outcome);
    // Each asks ten times a second.
    let arrived = |second: usize| outcome.series[second].arrived;
    assert!((arrived(20) as i64 - 200).abs() <= 1, "{}", arrived(20));
    assert!(arrived(1) < 50 && arrived(38) < 50, "{} {}", arrived(1), arrived(38));
    assert_eq!(outcome.latency.max(), ms(10));
    assert!(outcome.ended.0 < 41 * 1_000_000_000);
}

#[test]
fn a_cache_rewards_whoever_keeps_keys_together() {
    let cached = |name: &str| {
        let listing = catalogue::find(name).unwrap();
        let mut scenario = scenario(name, 10);
        let option = [("key", subak_balance::catalogue::OptionValue::Text("uri"))];
        let options = if name == "hash" { &option[..] } else { &[] };
        scenario.pool.algorithm = listing.configure(name, options).unwrap();
        scenario.objects = Some(Keys::Zipf { count: 10_000, exponent: 0.9 });
        let cache = Cache { objects: 500, hit: Service::Constant(ms(1)) };
        scenario.models.iter_mut().for_each(|model| model.cache = Some(cache.clone()));
        let outcome = run(&scenario);
        audit(&outcome);
        outcome.endpoints.iter().map(|endpoint| endpoint.cached).sum::<u64>()
    };
    let (together, apart) = (cached("hash"), cached("round_robin"));
    assert!(together > apart * 5 / 4, "{together} {apart}");
}

#[test]
fn who_sees_old_load_herds() {
    let p99 = |balancers| {
        let mut scenario = scenario("least_connections", 20);
        scenario.arrivals = Arrivals::poisson(800.0 * 20.0);
        scenario.requests = 60_000;
        scenario.balancers = balancers;
        let outcome = run(&scenario);
        audit(&outcome);
        outcome.latency.quantile(990)
    };
    let one = p99(Balancers::default());
    let all_fresh = p99(Balancers { count: 4, sees: Sees::All, every: Duration::ZERO });
    let own = p99(Balancers { count: 4, ..Balancers::default() });
    let all_old = p99(Balancers { count: 4, sees: Sees::All, every: ms(50) });
    // Four that see everything are as good as one.
    assert!(all_fresh < one * 11 / 10 && one < all_fresh * 11 / 10, "{all_fresh:?} {one:?}");
    assert!(own > one, "{own:?} {one:?}");
    assert!(all_old > one * 2, "{all_old:?} {one:?}");
}

#[test]
fn a_trace_is_followed_to_the_letter() {
    let requests = (0..100_u32).map(|number| TracedRequest {
        at_ns: u64::from(number) * 1_000_000,
        service_ns: u64::from(number % 7) * 10_000,
        client: number % 3,
        object: 0,
        bytes: 100,
    });
    let clients = (1..=3).map(|host| [192, 0, 2, host].into()).collect();
    let objects = vec![b"/".to_vec().into_boxed_slice()];
    let trace = Trace { requests: requests.collect(), clients, objects };
    let mut scenario = scenario("ip_hash", 5);
    scenario.arrivals = Arrivals::Trace(trace.into());
    scenario.models = vec![EndpointModel::new(1, Service::AsTraced { per_mille: 2000 }); 5];
    let mut log: Vec<Event> = Vec::new();
    let outcome = run_with(&scenario, &mut |event| log.push(event));
    audit(&outcome);
    assert_eq!(outcome.requests, 100);
    assert_eq!(outcome.latency.max(), Duration::from_micros(120));
    let answered = log.iter().filter(|event| matches!(event.step, Step::Answered(_)));
    for event in answered {
        let expected = event.request * 1_000_000 + event.request % 7 * 20_000;
        assert_eq!(event.at.0, expected);
    }
    // One /24 is one client for ip_hash.
    assert_eq!(outcome.hits().iter().filter(|hits| **hits > 0).count(), 1);
}

#[test]
fn answers_take_the_network_s_time_without_keeping_the_endpoint() {
    let mut scenario = scenario("round_robin", 1);
    scenario.models[0] = EndpointModel {
        delay: Service::Constant(ms(50)),
        ..EndpointModel::new(1, Service::Constant(ms(5)))
    };
    scenario.arrivals = Arrivals::Open { pace: Pace::Even, rate: Rate::Steady(100.0) };
    scenario.requests = 1_000;
    let outcome = run(&scenario);
    audit(&outcome);
    assert_eq!((outcome.latency.max(), outcome.latency.mean()), (ms(55), ms(55)));
    assert_eq!(outcome.endpoints[0].busy, SECOND * 5);

    // Late timers keep it; a delay can be as it was counted.
    let steps = Steps::new(ms(10), &[(ms(20), 1), (ms(30), 1)]).unwrap();
    scenario.models[0].delay = Service::Histogram(steps.into());
    scenario.models[0].late = ms(1);
    let outcome = run(&scenario);
    audit(&outcome);
    assert_eq!(outcome.endpoints[0].busy, SECOND * 6);
    let mean = outcome.latency.mean();
    assert!(
        mean > Duration::from_micros(25_500) && mean < Duration::from_micros(26_500),
        "{mean:?}"
    );
    assert!(outcome.latency.max() <= ms(36) && outcome.latency.quantile(1) >= ms(16));
}

/// A world with a bit of everything.
fn everything(name: &str, seed: u64) -> Scenario {
    let mut scenario = scenario(name, 6);
    let steps = Steps::new(ms(1), &[(ms(2), 70), (ms(6), 25), (ms(30), 5)]).unwrap();
    let services = [
        Service::Exponential(ms(4)),
        Service::LogNormal { median: ms(3), sigma: 0.8 },
        Service::Pareto { least: ms(2), alpha: 2.2 },
        Service::Histogram(steps.into()),
    ];
    for (index, model) in scenario.models.iter_mut().enumerate() {
        model.service = services[index % services.len()].clone();
        model.queue = 50;
        model.delay = Service::Constant(Duration::from_micros(300));
    }
    scenario.pool.endpoints[5].backup = true;
    scenario.pool.endpoints[4].max_in_flight = Some(3);
    scenario.pool.probe = Some(ProbeSpec::default());
    scenario.pool.eject = Some(EjectionSpec::default());
    scenario.pool.slow_start = Some(subak_health::SlowStart::new(SECOND, 100));
    let pace =
        Pace::Bursty { calm_per_mille: 800, burst_per_mille: 1600, calm: SECOND, burst: ms(300) };
    let rate = Rate::Diurnal { mean: 2_000.0, swing_per_mille: 400, period: SECOND * 3 };
    scenario.arrivals = Arrivals::Open { pace, rate };
    scenario.herds = vec![Herd { at: SECOND * 2, requests: 300, within: ms(20) }];
    scenario.clients = Keys::Shared { people: vec![50, 20, 20, 5, 5] };
    scenario.objects = Some(Keys::Zipf { count: 500, exponent: 1.1 });
    scenario.balancers = Balancers { count: 2, sees: Sees::All, every: ms(5) };
    scenario.patience =
        Patience { queue: Some(ms(50)), answer: Some(ms(150)), client: Some(ms(400)) };
    scenario.retry = Retry { attempts: 3, on_error: true, ..Retry::default() };
    scenario.faults = vec![
        fault(&[0], SECOND, SECOND * 2, Trouble::Slow { per_mille: 5_000 }),
        fault(&[1], SECOND * 2, SECOND * 3, Trouble::Dead),
        fault(&[2], SECOND * 3, SECOND * 4, Trouble::Silent),
        fault(&[3], Duration::ZERO, SECOND * 9, Trouble::Lossy { per_mille: 50 }),
        fault(
            &[0, 1, 2],
            SECOND * 5,
            SECOND * 9,
            Trouble::Deploy { drain: ms(400), away: ms(300) },
        ),
    ];
    Scenario { requests: 12_000, series: Some(ms(500)), seed, ..scenario }
}

/// FNV-1a over what is debugged.
fn digest(text: &str, hash: u64) -> u64 {
    let fold = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3);
    text.bytes().fold(hash, fold)
}

/// The same bytes on every machine, in every build: whoever changes these numbers changes what every
/// seed stands for, and says so in the CHANGELOG.
#[test]
fn the_same_seed_gives_the_same_bytes_everywhere() {
    let mut digests = Vec::new();
    for listing in catalogue::all() {
        let mut hash = 0xCBF2_9CE4_8422_2325;
        let scenario = everything(listing.name, 42);
        let mut ended = vec![0_u8; 12_000];
        let outcome = run_with(&scenario, &mut |event: Event| {
            if let Step::Answered(_) | Step::Ended(_) = event.step {
                ended[event.request as usize] += 1;
            }
            hash = digest(&format!("{event:?}"), hash);
        });
        audit(&outcome);
        assert!(ended.iter().all(|times| *times == 1), "{}", listing.name);
        assert_eq!(outcome.failures.unfinished, 0, "{}", listing.name);
        digests.push((listing.name, digest(&format!("{outcome:?}"), hash)));
    }
    let found: Vec<String> =
        digests.iter().map(|(name, digest)| format!("{name} {digest:016x}")).collect();
    assert_eq!(found.join("\n"), include_str!("digests.txt").trim_end());
}

#[test]
fn whoever_is_refused_by_all_is_told_so_once() {
    let mut scenario = scenario("round_robin", 3);
    scenario.requests = 50;
    scenario.faults = vec![fault(&[0, 1, 2], Duration::ZERO, SECOND * 99, Trouble::Dead)];
    let mut failed = 0;
    let outcome = run_with(&scenario, &mut |event: Event| {
        failed += u64::from(matches!(event.step, Step::Failed { why: Why::Refused, .. }));
    });
    audit(&outcome);
    assert_eq!(outcome.failures.refused, 50);
    assert_eq!(failed, 150, "each of the three at most once for a request");
}
