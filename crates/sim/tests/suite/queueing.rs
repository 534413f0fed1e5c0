//! Against what queueing theory knows exactly. The whole table is judged by `benches/queueing.rs`.
//!
//! Service has mean 1 second. Means are pooled over independent runs with fixed seeds.

use std::time::Duration;

use subak_balance::Algorithm;
use subak_balance::catalogue::{self, OptionValue};
use subak_sim::{Arrivals, EndpointModel, Event, Keys, Scenario, Service, Step, run, run_with};

const SECOND: Duration = Duration::from_secs(1);
const RUNS: u64 = 8;

fn algorithm(name: &str) -> Algorithm {
    catalogue::find(name).unwrap().algorithm()
}

fn pool(name: &str, weights: &[u16], concurrency: u32, service: Service) -> Scenario {
    let pool = Scenario::pool_of(algorithm(name), weights);
    let models = vec![EndpointModel::new(concurrency, service); weights.len()];
    Scenario::new(pool, models, Arrivals::poisson(1.0))
}

/// Mean time in system, in seconds, at this load of all that works.
fn mean_time(scenario: &Scenario, load: f64) -> f64 {
    mean_time_of(scenario, load, RUNS, 60_000, 4_000)
}

fn mean_time_of(scenario: &Scenario, load: f64, runs: u64, requests: u64, warm_up: u64) -> f64 {
    let capacity: u32 = scenario.models.iter().map(|model| model.concurrency).sum();
    let rate = load * f64::from(capacity);
    let (arrivals, warm_up) = (Arrivals::poisson(rate), SECOND.mul_f64(warm_up as f64 / rate));
    let (mut total, mut measured) = (0, 0);
    for seed in 0..runs {
        let arrivals = arrivals.clone();
        let outcome = run(&Scenario { arrivals, requests, warm_up, seed, ..scenario.clone() });
        assert_eq!(outcome.answered, requests);
        total += outcome.latency.total_ns();
        measured += outcome.latency.count();
    }
    total as f64 / 1e9 / measured as f64
}

fn assert_near(found: f64, exact: f64) {
    assert!((found / exact - 1.0).abs() < 0.02, "{found:.4} instead of {exact:.4}");
}

const EXPONENTIAL: Service = Service::Exponential(SECOND);

#[test]
fn round_robin_over_ten_is_e10_m_1() {
    let scenario = pool("round_robin", &[1; 10], 1, EXPONENTIAL);
    assert_near(mean_time(&scenario, 0.5), 1.325);
    assert_near(mean_time(&scenario, 0.7), 2.020);
}

#[test]
fn ip_hash_over_unlike_clients_is_m_m_1_each() {
    // Seven endpoints: 6,271 slots divide almost evenly, as every client is another one.
    assert_near(mean_time(&pool("ip_hash", &[1; 7], 1, EXPONENTIAL), 0.5), 2.0);
}

#[test]
fn one_endpoint_that_works_on_ten_at_once_is_m_m_10() {
    let scenario = pool("least_connections", &[1], 10, EXPONENTIAL);
    assert_near(mean_time(&scenario, 0.5), 1.0072);
    assert_near(mean_time(&scenario, 0.7), 1.0739);
}

/// As [`mean_time`], over so many endpoints that it is as if there were no end to them.
fn mean_time_of_many(name: &str, option: Option<(&str, OptionValue<'_>)>, load: f64) -> f64 {
    const MANY: usize = 1_000;
    let listing = catalogue::find(name).unwrap();
    let mut scenario = pool(name, &[1; MANY], 1, EXPONENTIAL);
    scenario.pool.algorithm = listing.configure(listing.name, option.as_slice()).unwrap();
    mean_time_of(&scenario, load, 3, 200_000, 40_000)
}

#[test]
fn random_is_m_m_1_each_and_choices_are_worth_what_theory_says() {
    assert_near(mean_time_of_many("random", None, 0.5), 2.0);
    assert_near(mean_time_of_many("random", None, 0.7), 3.333);
    assert_near(mean_time_of_many("power_of_two", None, 0.5), 1.2657);
    assert_near(mean_time_of_many("power_of_two", None, 0.7), 1.6145);
    let three = Some(("choices", OptionValue::Integer(3)));
    assert_near(mean_time_of_many("power_of_two", three, 0.5), 1.1252);
    assert_near(mean_time_of_many("power_of_two", three, 0.7), 1.3568);
}

#[test]
fn latency_finds_the_faster_endpoint() {
    // Two of four are drawn by peak_ewma: half of the draws have the fast one.
    for (name, shares) in [("least_response_time", 60..95), ("peak_ewma", 45..51)] {
        let mut scenario = pool(name, &[1; 4], 1, EXPONENTIAL);
        scenario.models[0].service = Service::Exponential(SECOND.div_f64(5.0));
        // Half of what one fast and three slow endpoints can do.
        let arrivals = Arrivals::poisson(4.0);
        let outcome =
            run(&Scenario { arrivals, requests: 40_000, warm_up: SECOND * 1_000, ..scenario });
        let fast = outcome.endpoints[0].hits * 100 / 40_000;
        assert!(shares.contains(&fast), "{name}: {fast} % to the fast endpoint");
        // By chance and weights of 5:1:1:1 it would be 0.8 s on the whole.
        let found = outcome.latency.mean().as_secs_f64();
        assert!(name == "peak_ewma" || found < 0.7, "{name}: {found:.3}");
    }
}

#[test]
fn constant_service_is_m_d_1() {
    let scenario = pool("round_robin", &[1], 1, Service::Constant(SECOND));
    assert_near(mean_time(&scenario, 0.5), 1.5);
}

#[test]
fn least_connections_lies_between_round_robin_and_the_best_there_can_be() {
    let found = mean_time(&pool("least_connections", &[1; 10], 1, EXPONENTIAL), 0.7);
    assert!(1.0739 < found && found < 0.75 * 2.020, "{found}");
}

#[test]
fn one_line_before_all_endpoints_is_m_m_10() {
    let mut scenario = pool("least_connections", &[1; 10], 1, EXPONENTIAL);
    scenario.pool.endpoints.iter_mut().for_each(|endpoint| endpoint.max_in_flight = Some(1));
    scenario.pool.queue_length = usize::MAX;
    assert_near(mean_time(&scenario, 0.5), 1.0072);
    assert_near(mean_time(&scenario, 0.7), 1.0739);
}

#[test]
fn hits_are_exact() {
    let hits = |name, weights: &[u16], requests| {
        let outcome = run(&Scenario { requests, ..pool(name, weights, 1, EXPONENTIAL) });
        (outcome.hits(), outcome.failures.no_endpoint)
    };
    assert_eq!(hits("round_robin", &[1; 4], 12_000), (vec![3_000; 4], 0));
    assert_eq!(hits("round_robin", &[2, 1, 1], 30), (vec![15, 8, 7], 0));
    assert_eq!(hits("round_robin", &[3, 1, 1], 30), (vec![18, 6, 6], 0));
    assert_eq!(hits("round_robin", &[0, 0], 30), (vec![0, 0], 30));
}

#[test]
fn one_client_stays_where_ip_hash_puts_it() {
    let clients = Keys::Uniform { count: 1 };
    let scenario = Scenario { clients, requests: 100, ..pool("ip_hash", &[1; 5], 1, EXPONENTIAL) };
    let mut hits = run(&scenario).hits();
    hits.sort_unstable();
    assert_eq!(hits, [0, 0, 0, 0, 100]);
}

#[test]
fn one_seed_one_log_and_every_request_ends_once() {
    for listing in catalogue::all() {
        let log = |seed| {
            let service = pool(listing.name, &[1, 2, 3], 2, EXPONENTIAL);
            let arrivals = Arrivals::poisson(5.0);
            let mut log: Vec<Event> = Vec::new();
            let scenario = Scenario { requests: 2_000, arrivals, seed, ..service };
            run_with(&scenario, &mut |event| log.push(event));
            log
        };
        let first = log(7);
        assert_eq!(first, log(7), "{}", listing.name);
        assert_ne!(first, log(8), "{}", listing.name);
        assert!(first.is_sorted_by_key(|event| event.at));
        let mut ended = vec![0; 2_000];
        let answered = first.iter().filter(|event| matches!(event.step, Step::Answered(_)));
        answered.for_each(|event| ended[event.request as usize] += 1);
        assert!(ended.iter().all(|times| *times == 1));
    }
}
