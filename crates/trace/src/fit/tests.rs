use super::*;
use crate::log::tests::log_of;

/// Two endpoints with so many slots and service times, under Poisson-like load of one request every
/// `gap_us` to each.
fn log(slots: [u32; 2], service_ms: [u64; 2], gap_us: u64) -> Log {
    let mut log = log_of(&["a", "b"], &vec![(0, 0, 0); 40_000]);
    let mut random = Rng::new(3);
    let mut queues = slots.map(Queue::new);
    let mut now = 0;
    for (number, request) in log.requests.iter_mut().enumerate() {
        now += random.below(gap_us * 1_000);
        let endpoint = number % 2;
        // From half to one and a half of the mean.
        let service = service_ms[endpoint] * 1_000 * (500 + random.below(1_000));
        request.arrived = now;
        request.reached = now;
        request.endpoint = endpoint as u16;
        request.latency = queues[endpoint].done(now, service) - now;
    }
    log
}

fn within(found: u64, expected: u64, per_mille: u64) -> bool {
    found.abs_diff(expected) * 1000 <= expected * per_mille
}

#[test]
fn slots_and_service_times_come_out_of_waiting_and_serving_together() {
    // A mean gap of 4 ms at each: 60 % and 45 % busy.
    let log = log([5, 1], [12, 2], 4_000);
    let fit = fit(&log).expect("it can tell");
    assert_eq!(fit.endpoints.each_concurrency(), [5, 1]);
    assert!(
        within(fit.endpoints[0].service.mean(), 12_000_000, 50),
        "{}",
        fit.endpoints[0].service.mean()
    );
    assert!(
        within(fit.endpoints[1].service.mean(), 2_000_000, 50),
        "{}",
        fit.endpoints[1].service.mean()
    );
    assert!(fit.cache.is_none());
    assert!(fit.check.misses().is_none() && fit.check.error_per_mille() < 60, "{:?}", fit.check);
}

trait Concurrencies {
    fn each_concurrency(&self) -> Vec<u32>;
}

impl Concurrencies for Vec<EndpointFit> {
    fn each_concurrency(&self) -> Vec<u32> {
        self.iter().map(|endpoint| endpoint.concurrency).collect()
    }
}

#[test]
fn where_nobody_waits_the_slots_are_as_many_as_were_seen_at_work_at_least() {
    let log = log([1000, 1000], [12, 12], 4_000);
    let fit = fit(&log).expect("it can tell");
    assert!(fit.endpoints.iter().all(|endpoint| endpoint.is_at_least));
    assert!(fit.endpoints.iter().all(|endpoint| endpoint.concurrency > 5));
    assert!(fit.check.misses().is_none());
}

#[test]
fn what_does_not_work_like_a_queue_is_refused() {
    let mut log = log([5, 5], [12, 12], 4_000);
    // Everything stands still now and then, whatever the load.
    for request in &mut log.requests {
        if request.arrived % 1_000_000_000 < 150_000_000 {
            request.latency += 150_000_000 - request.arrived % 1_000_000_000;
        }
    }
    let fit = fit(&log);
    assert!(fit.is_err() || fit.is_ok_and(|fit| fit.check.misses().is_some()));
}

#[test]
fn what_is_missing_is_said() {
    let why = |change: fn(&mut Log)| {
        let mut log = log([5, 5], [12, 12], 4_000);
        change(&mut log);
        fit(&log).expect_err("it cannot tell").to_string()
    };
    assert!(why(|log| log.requests.truncate(500)).contains("too short: 500 requests"));
    assert!(
        why(|log| log.requests.iter_mut().for_each(|one| one.latency = UNKNOWN))
            .contains("how long")
    );
    assert!(
        why(|log| log.requests.iter_mut().for_each(|one| one.endpoint = NOWHERE))
            .contains("which endpoint")
    );
    assert!(why(|log| log.endpoints.truncate(1)).contains("nothing to balance"));
}
