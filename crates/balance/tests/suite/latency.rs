//! The algorithms that go by latency: whom they avoid, whom they try again, and by what numbers.

use std::time::Duration;

use crate::support::latency_oracle::{Oracle, PoolOracle};
use crate::support::traffic::{Fate, Traffic, answered};
use crate::support::{Pool, endpoints};
use subak_balance::{Algorithm, catalogue};
use subak_base::Rng;

fn by_latency() -> [Algorithm; 2] {
    ["least_response_time", "peak_ewma"].map(|name| catalogue::find(name).unwrap().algorithm())
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// What a request takes as a rule: 5 to 15 ms.
fn usual(_: usize, rng: &mut Rng) -> Fate {
    answered(5 + rng.below(11))
}

/// Four endpoints under load that have answered for a while.
fn warm(algorithm: &Algorithm, per_second: u32) -> Traffic {
    let mut traffic = Traffic::new(Pool::new(algorithm.clone(), endpoints(&[1; 4])), per_second);
    traffic.run(seconds(10), usual, |_, _| {});
    traffic
}

/// The share of endpoint 0 in a thousand.
fn share(hits: &[u64]) -> u64 {
    hits[0] * 1000 / hits.iter().sum::<u64>()
}

#[test]
fn a_recovered_endpoint_is_not_starved() {
    for algorithm in by_latency() {
        let mut traffic = warm(&algorithm, 400);
        let slow =
            |index, rng: &mut Rng| if index == 0 { answered(1_000) } else { usual(index, rng) };
        traffic.run(seconds(5), slow, |_, _| {});
        let while_slow = share(&traffic.run(seconds(15), slow, |_, _| {}));
        assert!(while_slow < 30, "{algorithm:?}: {while_slow} ‰ while it is slow");
        let mut came_back = None;
        for second in 0..120 {
            let hits = traffic.run(seconds(1), usual, |_, _| {});
            if share(&hits) > 125 && came_back.is_none() {
                came_back = Some(second);
            }
        }
        assert!(came_back.is_some_and(|second| second < 90), "{algorithm:?}: {came_back:?}");
        let after = share(&traffic.run(seconds(60), usual, |_, _| {}));
        assert!((150..350).contains(&after), "{algorithm:?}: {after} ‰ when it is fast again");
    }
}

#[test]
fn a_cold_endpoint_is_not_flooded() {
    for algorithm in by_latency() {
        // Some ten are in flight at each of the others.
        let mut traffic = Traffic::new(Pool::new(algorithm.clone(), endpoints(&[1; 4])), 3_000);
        traffic.pool.set_eligible([1, 2, 3].into_iter().collect());
        traffic.run(seconds(10), usual, |_, _| {});
        traffic.pool.set_eligible((0..4).collect());
        // It has to warm up: nothing is answered in its first second.
        let cold =
            |index, rng: &mut Rng| if index == 0 { answered(1_000) } else { usual(index, rng) };
        let (mut first, mut most) = (None, 0);
        let begun = traffic.now();
        traffic.run(Duration::from_millis(990), cold, |pool, index| {
            most = most.max(pool.loads.in_flight[0]);
            if index == 0 && first.is_none() {
                first = Some(pool.loads.now.since(begun));
            }
        });
        let first = first.expect("it is tried");
        assert!(first < Duration::from_millis(20), "{algorithm:?}: tried after {first:?}");
        assert!(most <= 3, "{algorithm:?}: {most} in flight before its first answer");
        traffic.run(seconds(120), usual, |_, _| {});
        let after = share(&traffic.run(seconds(20), usual, |_, _| {}));
        assert!((200..300).contains(&after), "{algorithm:?}: {after} ‰ when it is warm");
    }
}

#[test]
fn fast_errors_do_not_attract() {
    for algorithm in by_latency() {
        let mut traffic = warm(&algorithm, 2_000);
        let failure = Fate { takes: Duration::from_micros(500), fails: true };
        let failing = |index, rng: &mut Rng| if index == 0 { failure } else { usual(index, rng) };
        let at_first = share(&traffic.run(seconds(1), failing, |_, _| {}));
        let later = share(&traffic.run(seconds(30), failing, |_, _| {}));
        assert!(at_first < 100, "{algorithm:?}: {at_first} ‰ in the first second of failing");
        assert!(later < 10, "{algorithm:?}: {later} ‰ while it fails");
        // Half of the answers fail: not more than its share either.
        let half = |index, rng: &mut Rng| match index {
            0 if rng.below(2) == 0 => failure,
            _ => usual(index, rng),
        };
        let half = share(&traffic.run(seconds(60), half, |_, _| {}));
        assert!(half < 250, "{algorithm:?}: {half} ‰ while half of it fails");
        traffic.run(seconds(120), usual, |_, _| {});
        let after = share(&traffic.run(seconds(60), usual, |_, _| {}));
        assert!((200..300).contains(&after), "{algorithm:?}: {after} ‰ when it answers again");
    }
}

/// What can happen to the three endpoints.
#[derive(Clone, Copy, Debug)]
enum Event {
    Fast(usize),
    Slow(usize),
    Failed(usize),
    Dispatched(usize),
    Pause(u64),
    Summary,
}

fn events() -> Vec<Event> {
    let of_each = |index| {
        [Event::Fast(index), Event::Slow(index), Event::Failed(index), Event::Dispatched(index)]
    };
    let others = [Event::Pause(4_026), Event::Pause(16_106), Event::Summary];
    (0..3).flat_map(of_each).chain(others).collect()
}

/// A pool and what the oracle makes of the same events.
struct Pair {
    pool: Pool,
    is_peak: bool,
    oracles: Vec<Oracle>,
    summary: PoolOracle,
}

impl Pair {
    fn new(algorithm: &Algorithm, weights: &[u16]) -> Pair {
        let is_peak = *algorithm == Algorithm::PeakEwma;
        let pool = Pool::new(algorithm.clone(), endpoints(weights));
        let oracles = vec![Oracle::default(); weights.len()];
        Pair { pool, is_peak, oracles, summary: PoolOracle::default() }
    }

    /// The oracle's clock has the steps of the cells'.
    fn now(&self) -> f64 {
        (self.pool.loads.now.0 >> 25) as f64 * (1 << 25) as f64 / 1e9
    }

    fn apply(&mut self, event: Event) {
        let (now, is_peak) = (self.now(), self.is_peak);
        let mut answer = |index: usize, micros: u64| {
            self.pool.loads.in_flight[index] += 1;
            self.pool.complete(index, Duration::from_micros(micros), false);
            self.oracles[index].answered(micros as f64 * 1e3, now, is_peak);
        };
        match event {
            Event::Fast(index) => answer(index, 2_000),
            Event::Slow(index) => answer(index, 40_000),
            Event::Failed(index) => {
                self.pool.loads.in_flight[index] += 1;
                self.pool.complete(index, Duration::from_micros(500), true);
                self.oracles[index].failed(5e5, now, is_peak, self.summary);
            }
            Event::Dispatched(index) => {
                self.pool.dispatch(index);
                self.pool.loads.in_flight[index] -= 1;
                self.oracles[index].dispatched(now);
            }
            Event::Pause(millis) => {
                self.pool.loads.now = self.pool.loads.now.after(Duration::from_millis(millis));
            }
            Event::Summary => {
                self.pool.summarise();
                self.summary = PoolOracle::of(&self.oracles, now, self.summary);
            }
        }
    }

    /// The latencies shown and the scores agree to one in a thousand.
    fn compare(&self, what: &dyn std::fmt::Debug) -> Vec<f64> {
        let now = self.now();
        let loads = &self.pool.loads;
        for (index, oracle) in self.oracles.iter().enumerate() {
            let (cell, summary) = (loads.cells[index], loads.summary);
            let shown = self.pool.balancer.latency(cell, loads.now, summary);
            let expected = oracle.time(now, self.summary);
            assert_eq!(shown.is_some(), expected.is_some(), "{what:?}");
            let pair = shown.map(|shown| shown.as_nanos() as f64).zip(expected);
            let off = pair.map_or(0.0, |(shown, expected)| (shown - expected).abs() / expected);
            assert!(off < 1e-3, "{what:?}: {shown:?} for {expected:?} ns of {index}");
        }
        let summary = self.summary.or_best_of(self.oracles.iter());
        let score = |(index, oracle): (usize, &Oracle)| {
            let in_flight = f64::from(loads.in_flight[index]);
            oracle.score(in_flight, self.pool.weights()[index] as f64, now, summary)
        };
        let expected: Vec<f64> = self.oracles.iter().enumerate().map(score).collect();
        for (index, expected) in expected.iter().enumerate() {
            let score = self.pool.score(index).expect("a candidate");
            let millis = score.amount as f64 / score.per as f64;
            let off = (millis * 1e6 - expected).abs() / expected;
            assert!(off < 2e-3, "{what:?}: {score} for {expected} ns of {index}");
        }
        expected
    }
}

/// All sequences of four events, each looked at with several loads.
#[test]
fn every_small_history_is_judged_as_an_obvious_oracle_judges_it() {
    let events = events();
    for algorithm in by_latency() {
        for weights in [[1, 1, 1], [1, 3, 2]] {
            for code in 0..events.len().pow(4) {
                let history: Vec<Event> = (0..4)
                    .map(|place| events[code / events.len().pow(place) % events.len()])
                    .collect();
                let mut pair = Pair::new(&algorithm, &weights);
                history.iter().for_each(|event| pair.apply(*event));
                for in_flight in [[0, 0, 0], [1, 0, 3]] {
                    pair.pool.loads.in_flight = in_flight.to_vec();
                    let scores = pair.compare(&(&algorithm, &history));
                    let picked = pair.pool.pick().expect("all are eligible");
                    if !pair.is_peak {
                        let least = scores.iter().copied().fold(f64::MAX, f64::min);
                        assert!(
                            scores[picked] <= least * 1.002,
                            "{picked} of {scores:?} {history:?}"
                        );
                    }
                }
            }
        }
    }
}

/// Longer histories at random. One of three endpoints was tried; of two both are drawn, so the
/// better one is always picked.
#[test]
fn long_histories_are_judged_alike_and_the_better_of_two_is_picked() {
    let events = events();
    let mut rng = Rng::new(5);
    for algorithm in by_latency() {
        for _ in 0..10_000 {
            let mut pair = Pair::new(&algorithm, &[2, 1, 1]);
            let out = rng.below(3) as usize;
            (0..rng.below(60)).for_each(|_| pair.apply(events[rng.below(15) as usize]));
            pair.apply(Event::Summary);
            pair.pool.loads.in_flight = (0..3).map(|_| rng.below(3) as u32).collect();
            let scores = pair.compare(&"at random");
            let tried = [out].into_iter().collect();
            let picked = pair.pool.pick_with(subak_balance::Key::None, &tried);
            let left = (0..3).filter(|index| *index != out).map(|index| scores[index]);
            let least = left.fold(f64::MAX, f64::min);
            assert!(picked.is_some_and(|picked| scores[picked] <= least * 1.005), "{scores:?}");
        }
    }
}
