//! The tables and the circuit against the slow and obvious ways of saying the same.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::time::Duration;

use proptest::prelude::*;
use subak_base::Tick;
use subak_limits::{
    Circuit, CircuitSpec, CircuitState, Counts, Entry, NoEntry, Rate, RateTable, Verdict,
};

fn some(number: u32) -> NonZeroU32 {
    NonZeroU32::new(number).expect("more than nothing")
}

/// A bucket as everybody draws it: a number of tokens, topped up by the time that has passed.
struct Bucket {
    /// In billionths of a token.
    tokens: u128,
    seen: u64,
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Windows that quotas divide, so that both count in the same units.
    #[test]
    fn buckets_are_those_that_everybody_draws(
        quota in 1u32..50,
        burst in 1u32..20,
        steps in prop::collection::vec((0u64..4, 0u64..400_000_000), 1..200),
    ) {
        let interval = 20_000_000u64;
        let window = Duration::from_nanos(interval * u64::from(quota));
        let table = RateTable::new(Rate { quota: some(quota), window, burst: some(burst) }, 64);
        let mut buckets: BTreeMap<u64, Bucket> = BTreeMap::new();
        let full = u128::from(burst) * 1_000_000_000;
        let mut now = 1_000u64;
        for (key, step) in steps {
            now += step;
            let bucket = buckets.entry(key).or_insert(Bucket { tokens: full, seen: now });
            let gained = u128::from(now - bucket.seen) * 1_000_000_000 / u128::from(interval);
            bucket.tokens = full.min(bucket.tokens + gained);
            bucket.seen = now;
            let expected = bucket.tokens >= 1_000_000_000;
            let taken = table.take(key + 1, Tick(now));
            prop_assert_eq!(taken.is_ok(), expected, "key {} at {}", key, now);
            if let Err(refused) = taken {
                let later = Tick(now).after(refused.wait);
                prop_assert!(table.look(key + 1, later).1.is_zero(), "the wait is long enough");
                let before = Tick(later.0 - 1);
                prop_assert!(!table.look(key + 1, before).1.is_zero(), "and no longer");
            } else {
                bucket.tokens -= 1_000_000_000;
            }
            let left = (bucket.tokens / 1_000_000_000) as u32;
            prop_assert_eq!(table.look(key + 1, Tick(now)).0.left, left);
        }
    }

    #[test]
    fn counts_are_those_of_a_map(
        most in 1u32..5,
        steps in prop::collection::vec((0u64..6, any::<bool>()), 1..200),
    ) {
        let counts = Counts::new(most, 64);
        let mut held: BTreeMap<u64, Vec<_>> = BTreeMap::new();
        for (number, enters) in steps {
            let key = (number + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            let own = held.entry(key).or_default();
            if enters {
                let entered = counts.enter(key);
                prop_assert_eq!(entered.is_some(), own.len() < most as usize);
                own.extend(entered);
            } else if let Some(counted) = own.pop() {
                counts.leave(counted);
            }
            prop_assert_eq!(counts.of(key) as usize, own.len());
        }
        let under_way = held.values().filter(|own| !own.is_empty()).count();
        prop_assert_eq!(counts.busiest(100).1, under_way);
        prop_assert_eq!(counts.uncounted(), 0);
    }

    #[test]
    fn a_circuit_is_the_obvious_machine(
        consecutive in prop::option::of(1u32..6),
        share in prop::option::of(100u32..1000),
        trials in 1u32..4,
        steps in prop::collection::vec((0u64..700, 0u8..6), 1..300),
    ) {
        let spec = CircuitSpec {
            consecutive: consecutive.map(some),
            share_per_mille: share,
            window: Duration::from_secs(2),
            least: 5,
            slow: Some(Duration::from_millis(100)),
            in_flight: None,
            open: Duration::from_secs(1),
            trials: some(trials),
        };
        let circuit = Circuit::new(spec.clone());
        let mut model = Model::new(spec);
        let mut under_way: Vec<(Entry, Option<u64>)> = Vec::new();
        let mut now = 0u64;
        for (step, action) in steps {
            now += step;
            let tick = Tick::from_millis(now);
            if action < 3 || under_way.is_empty() {
                let entered = circuit.enter(tick);
                let expected = model.enter(now);
                prop_assert_eq!(entered.is_ok(), expected.is_some(), "at {}", now);
                under_way.extend(entered.ok().zip(expected));
            } else {
                let (entry, trial) = under_way.remove(0);
                let verdict = match action {
                    3 => Verdict::Well(Duration::from_millis(1)),
                    4 => Verdict::Failed,
                    _ if step % 2 == 0 => Verdict::Well(Duration::from_millis(500)),
                    _ => Verdict::Unknown,
                };
                circuit.settle(entry, verdict, 0, tick);
                let failed = match verdict {
                    Verdict::Well(took) => Some(took > Duration::from_millis(100)),
                    Verdict::Failed => Some(true),
                    Verdict::Unknown => None,
                };
                model.settle(trial, failed, now);
            }
            let state = match circuit.totals(tick).state {
                CircuitState::Closed => None,
                CircuitState::Open(left) => Some(left.as_millis() as u64 + now),
                CircuitState::HalfOpen => model.until.filter(|until| *until <= now),
            };
            prop_assert_eq!(state, model.until, "at {}", now);
            prop_assert_eq!(circuit.totals(tick).in_flight as usize, under_way.len());
        }
    }
}

/// A circuit that keeps every ending and counts them anew each time. Milliseconds.
struct Model {
    spec: CircuitSpec,
    until: Option<u64>,
    number: u64,
    trials: (u32, u32),
    row: u32,
    ended: Vec<(u64, bool)>,
}

impl Model {
    fn new(spec: CircuitSpec) -> Model {
        Model { spec, until: None, number: 0, trials: (0, 0), row: 0, ended: Vec::new() }
    }

    /// The number of the half-open time for a trial, 0 for any other; none: refused.
    fn enter(&mut self, now: u64) -> Option<Option<u64>> {
        match self.until {
            None => Some(None),
            Some(until) if now < until => None,
            Some(_) if self.trials.0 + self.trials.1 < self.spec.trials.get() => {
                self.trials.0 += 1;
                Some(Some(self.number))
            }
            Some(_) => None,
        }
    }

    fn open(&mut self, now: u64) {
        self.until = Some(now + 1000);
        self.number += 1;
        self.trials = (0, 0);
    }

    fn settle(&mut self, trial: Option<u64>, failed: Option<bool>, now: u64) {
        match trial {
            Some(number) if number == self.number => {
                self.trials.0 -= 1;
                match failed {
                    Some(true) => self.open(now),
                    Some(false) => {
                        self.trials.1 += 1;
                        if self.trials.1 == self.spec.trials.get() {
                            self.until = None;
                            self.number += 1;
                            self.trials = (0, 0);
                            self.row = 0;
                            self.ended.clear();
                        }
                    }
                    None => {}
                }
            }
            None if self.until.is_none() => {
                let Some(failed) = failed else { return };
                self.row = if failed { self.row + 1 } else { 0 };
                self.ended.push((now, failed));
                // Slices of 200 ms, ten of them.
                let recent = self.ended.iter().filter(|(at, _)| at / 200 + 10 > now / 200);
                let (all, bad) = recent.fold((0u64, 0u64), |(all, bad), (_, failed)| {
                    (all + 1, bad + u64::from(*failed))
                });
                let by_row = self.spec.consecutive.is_some_and(|most| self.row >= most.get());
                let by_share = self.spec.share_per_mille.is_some_and(|share| {
                    all >= u64::from(self.spec.least) && bad * 1000 >= all * u64::from(share)
                });
                if failed && (by_row || by_share) {
                    self.open(now);
                }
            }
            _ => {}
        }
    }
}

#[test]
fn the_rate_is_exact_over_threads() {
    let rate = Rate { quota: some(100_000), window: Duration::from_secs(1), burst: some(100) };
    let table = RateTable::new(rate, 64);
    // Four threads ask 4 million times, at moments that follow each other by 1 µs each.
    let granted: u64 = std::thread::scope(|scope| {
        let ask = |first: u64| {
            let table = &table;
            scope.spawn(move || {
                let moments =
                    (0..1_000_000u64).map(|step| Tick::from_millis(1).0 + first + step * 1000);
                moments.filter(|now| table.take(7, Tick(*now)).is_ok()).count() as u64
            })
        };
        let threads: Vec<_> = (0..4).map(|thread| ask(thread * 250)).collect();
        threads.into_iter().map(|thread| thread.join().expect("a thread")).sum()
    });
    // One second's worth and the burst.
    assert!((100_000..=100_101).contains(&granted), "{granted}");
}

#[test]
fn a_table_is_as_large_after_a_million_keys_as_before() {
    let rate = Rate { quota: some(1), window: Duration::from_secs(3600), burst: some(10) };
    let table = RateTable::new(rate, 10_000);
    let now = Tick::from_millis(1);
    (0..10).for_each(|_| assert!(table.take(u64::MAX, now).is_ok()));
    for key in 1..=1_000_000u64 {
        assert!(table.take(key.wrapping_mul(0x9E37_79B9_7F4A_7C15), now).is_ok());
    }
    let (top, used) = table.emptiest(10, now);
    assert_eq!((top[0].0, top[0].1.left, top[1].1.left, used), (u64::MAX, 0, 9, table.places()));
    assert_eq!(table.places(), 10_000);
    assert!(table.take(u64::MAX, now).is_err(), "who has asked most is still known");
}

#[test]
fn a_circuit_refuses_what_is_too_much_at_once() {
    let spec = CircuitSpec {
        consecutive: None,
        share_per_mille: None,
        window: Duration::from_secs(10),
        least: 20,
        slow: None,
        in_flight: Some(some(2)),
        open: Duration::from_secs(5),
        trials: some(3),
    };
    let circuit = Circuit::new(spec);
    let now = Tick::from_millis(1);
    let (one, two) = (circuit.enter(now), circuit.enter(now));
    assert_eq!((circuit.enter(now), circuit.look(now)), (Err(NoEntry::Full), Err(NoEntry::Full)));
    circuit.settle(one.expect("room"), Verdict::Unknown, 0, now);
    assert!(circuit.look(now).is_ok() && circuit.enter(now).is_ok() && two.is_ok());
    assert_eq!(circuit.totals(now).full, 1);
}
