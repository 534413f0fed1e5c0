//! Ejections: what brings one about, how long it lasts, and how many there may be.

use std::num::NonZeroU32;
use std::time::Duration;

use proptest::prelude::*;
use subak_base::{BitSet, Rng, Tick};
use subak_health::{
    EjectionChange, EjectionReason, EjectionSpec, Ejections, LatencySpec, Sample, Standing,
};

/// The counters of a pool, as the data side keeps them, and the machine they are fed to.
struct Pool {
    ejections: Ejections,
    samples: Vec<Sample>,
    now: Tick,
    changes: Vec<EjectionChange>,
}

impl Pool {
    fn new(spec: EjectionSpec, len: usize) -> Pool {
        let mut pool = Pool {
            ejections: Ejections::new(spec, len),
            samples: vec![Sample::default(); len],
            now: Tick::from_millis(60_000),
            changes: Vec::new(),
        };
        pool.observe();
        pool
    }

    fn completed(&mut self, index: usize, millis: u64) {
        let sample = &mut self.samples[index];
        sample.completed += 1;
        sample.latency_us += millis * 1000;
        sample.consecutive = 0;
    }

    fn failed(&mut self, index: usize) {
        let sample = &mut self.samples[index];
        sample.failed += 1;
        sample.consecutive += 1;
        if self.ejections.threshold().is_some_and(|threshold| sample.consecutive >= threshold) {
            self.ejections.failed(index, sample, self.now, &mut self.changes);
        }
    }

    fn observe(&mut self) {
        self.ejections.observe(&self.samples, self.now, &mut self.changes);
    }

    fn consider(&mut self, set: &[usize]) {
        let set: BitSet = set.iter().copied().collect();
        self.ejections.consider(&set, self.now, &mut self.changes);
    }

    /// The control side looks once a second.
    fn seconds(&mut self, seconds: u64) {
        for _ in 0..seconds {
            self.now = self.now.after(Duration::from_secs(1));
            self.observe();
        }
    }

    fn out(&self) -> Vec<usize> {
        let out = |index: &usize| self.ejections.ejected(*index, self.now).is_some();
        (0..self.samples.len()).filter(out).collect()
    }

    fn said(&mut self) -> Vec<String> {
        let changes = self.changes.drain(..);
        changes.map(|change| format!("{}: {}", change.index, change.transition)).collect()
    }
}

#[test]
fn five_failures_in_a_row_eject_within_the_fifth() {
    let mut pool = Pool::new(EjectionSpec::default(), 4);
    (0..4).for_each(|_| pool.failed(1));
    pool.completed(1, 1);
    (0..4).for_each(|_| pool.failed(1));
    assert_eq!(pool.said(), [""; 0]);
    pool.failed(1);
    assert_eq!(pool.said(), ["1: in to ejected: 5 requests in a row failed"]);
    let ejected = *pool.ejections.ejected(1, pool.now).unwrap();
    assert_eq!(ejected.until, pool.now.after(Duration::from_secs(10)));
    assert_eq!((ejected.count, ejected.reason), (1, EjectionReason::Consecutive(5)));
    pool.failed(1);
    assert_eq!(pool.said(), [""; 0], "what was under way says nothing new");
    pool.seconds(9);
    assert_eq!(pool.out(), [1]);
    pool.seconds(1);
    assert_eq!(pool.said(), ["1: ejected to in: the time of its ejection is over"]);
}

#[test]
fn failures_of_before_do_not_count_after_a_return() {
    let mut pool = Pool::new(EjectionSpec::default(), 4);
    (0..9).for_each(|_| pool.failed(1));
    pool.seconds(10);
    assert_eq!((pool.out(), pool.said().len()), (vec![], 2));
    assert!(pool.samples[1].consecutive >= 5, "the counter itself goes on");
    (0..4).for_each(|_| pool.failed(1));
    pool.observe();
    assert_eq!(pool.out(), []);
    pool.failed(1);
    assert_eq!(pool.out(), [1]);
    assert_eq!(pool.ejections.ejected(1, pool.now).unwrap().count, 2);
}

#[test]
fn neither_what_an_ejection_was_for_nor_what_ends_during_it_counts_after_it() {
    let spec = EjectionSpec {
        consecutive: None,
        window: Duration::from_secs(60),
        ..EjectionSpec::default()
    };
    let mut pool = Pool::new(spec, 4);
    (0..30).for_each(|_| pool.failed(1));
    pool.seconds(1);
    assert_eq!(pool.said(), ["1: in to ejected: 30 of 30 requests failed"]);
    // Requests that were under way, and that time out by and by.
    for _ in 0..9 {
        (0..5).for_each(|_| pool.failed(1));
        pool.seconds(1);
    }
    pool.seconds(1);
    assert_eq!(pool.said(), ["1: ejected to in: the time of its ejection is over"]);
    (0..19).for_each(|_| pool.failed(1));
    pool.seconds(1);
    assert_eq!(pool.said(), [""; 0]);
    pool.failed(1);
    pool.seconds(1);
    assert_eq!(pool.said(), ["1: in to ejected: 20 of 20 requests failed"]);
}

#[test]
fn half_of_at_least_twenty_requests_must_fail_within_the_window() {
    let spec = EjectionSpec { consecutive: None, ..EjectionSpec::default() };
    let mut pool = Pool::new(spec, 4);
    assert_eq!(pool.ejections.threshold(), None);
    let mut requests = |completed, failed, seconds| {
        (0..completed).for_each(|_| pool.completed(2, 1));
        (0..failed).for_each(|_| pool.failed(2));
        pool.seconds(seconds);
        pool.said()
    };
    assert_eq!(requests(0, 19, 1), [""; 0], "too few");
    assert_eq!(requests(0, 0, 10), [""; 0]);
    assert_eq!(requests(11, 10, 1), [""; 0], "too small a share");
    assert_eq!(requests(0, 1, 1), ["2: in to ejected: 11 of 22 requests failed"]);
}

/// Three endpoints that answer in 10 ms and one that takes longer.
fn with_latencies(pool: &mut Pool, slow: impl Fn(u64) -> u64, seconds: u64) {
    for second in 0..seconds {
        for request in 0..5 {
            (0..3).for_each(|index| pool.completed(index, 10));
            pool.completed(3, slow(second * 5 + request));
        }
        pool.seconds(1);
    }
}

#[test]
fn a_slow_endpoint_is_ejected_within_the_window() {
    let mut pool = Pool::new(EjectionSpec::default(), 4);
    with_latencies(&mut pool, |_| 10, 20);
    with_latencies(&mut pool, |_| 200, 10);
    let said = pool.said();
    assert_eq!(said.len(), 1);
    let (start, end) = ("3: in to ejected: took ", " on average, the pool's median is 10ms");
    assert!(said[0].starts_with(start) && said[0].ends_with(end), "{said:?}");
}

#[test]
fn not_everything_that_takes_longer_is_too_slow() {
    let mut pool = Pool::new(EjectionSpec::default(), 4);
    with_latencies(&mut pool, |_| 55, 30);
    assert_eq!(pool.said(), [""; 0], "five times as much, and not 50 ms more");
    with_latencies(&mut pool, |request| if request % 40 == 0 { 30_000 } else { 10 }, 60);
    assert_eq!(pool.said(), [""; 0], "a few requests of half a minute move no more than a mean");
    let few = EjectionSpec { min_requests: 1000, ..EjectionSpec::default() };
    let mut pool = Pool::new(few, 4);
    with_latencies(&mut pool, |_| 500, 30);
    assert_eq!(pool.said(), [""; 0], "too few requests to say");
}

#[test]
fn fast_errors_do_not_make_the_others_slow() {
    let spec = EjectionSpec { consecutive: None, share_per_mille: None, ..EjectionSpec::default() };
    let mut pool = Pool::new(spec, 3);
    for _ in 0..300 {
        // Two endpoints fail at once, one works and needs its time.
        pool.failed(0);
        pool.failed(1);
        pool.completed(2, 400);
        pool.seconds(1);
    }
    assert_eq!(pool.said(), [""; 0]);
}

#[test]
fn of_two_endpoints_the_slower_goes_and_one_alone_stays() {
    for (len, expected) in [(2, vec![1]), (1, vec![])] {
        let mut pool = Pool::new(EjectionSpec::default(), len);
        for _ in 0..60 {
            (0..len).for_each(|index| pool.completed(index, 10 + 290 * index as u64));
            pool.completed(len - 1, 300);
            pool.completed(0, 10);
            pool.seconds(1);
        }
        let out: Vec<_> = pool.changes.iter().map(|change| change.index).take(1).collect();
        assert_eq!(out, expected);
    }
}

#[test]
fn where_there_is_not_room_for_all_the_worst_go() {
    let spec = EjectionSpec { consecutive: None, ..EjectionSpec::default() };
    let mut pool = Pool::new(spec, 5);
    for (index, failures) in [10, 16, 12, 18, 20].into_iter().enumerate() {
        (0..20 - failures).for_each(|_| pool.completed(index, 10));
        (0..failures).for_each(|_| pool.failed(index));
    }
    pool.seconds(1);
    assert_eq!(pool.out(), [3, 4]);
    let order: Vec<_> = pool.changes.iter().map(|change| change.index).collect();
    assert_eq!(order, [4, 3]);
}

#[test]
fn when_everybody_fails_half_stay_and_are_taken_as_room_comes() {
    let mut pool = Pool::new(EjectionSpec::default(), 6);
    for _ in 0..10 {
        (0..6).for_each(|index| pool.failed(index));
    }
    assert_eq!(pool.out(), [0, 1, 2]);
    pool.changes.clear();
    pool.seconds(10);
    // The three come back, and the control side finds the others with their failures in a row.
    assert_eq!(pool.out(), [3, 4, 5]);
    assert_eq!(pool.changes.len(), 6);
}

#[test]
fn an_endpoint_that_fails_again_stays_out_longer_and_a_healthy_one_is_forgiven() {
    let mut pool = Pool::new(EjectionSpec::default(), 2);
    let mut lengths = Vec::new();
    let mut eject = |pool: &mut Pool| {
        (0..5).for_each(|_| pool.failed(0));
        let until = pool.ejections.ejected(0, pool.now).unwrap().until;
        let seconds = until.since(pool.now).as_secs();
        lengths.push(seconds);
        pool.seconds(seconds);
    };
    (0..3).for_each(|_| eject(&mut pool));
    pool.seconds(9);
    eject(&mut pool);
    pool.seconds(25);
    eject(&mut pool);
    pool.seconds(3600);
    (0..32).for_each(|_| eject(&mut pool));
    assert_eq!(lengths[..7], [10, 20, 30, 40, 30, 10, 20]);
    assert_eq!(lengths[lengths.len() - 4..], [290, 300, 300, 300]);
}

#[test]
fn less_room_ends_ejections_early_and_an_operator_ends_any() {
    let spec = EjectionSpec { max_share_per_mille: 500, ..EjectionSpec::default() };
    let mut pool = Pool::new(spec, 6);
    for index in [2, 0, 5] {
        (0..5).for_each(|_| pool.failed(index));
        pool.seconds(1);
    }
    pool.said();
    pool.consider(&[0, 1, 2, 4, 5]);
    let room = "ejected to in: too many of those that are left would be ejected";
    assert_eq!(pool.said(), [format!("2: {room}")], "the first that would have ended");
    pool.consider(&[0, 1, 2]);
    assert_eq!(pool.said(), [""; 0], "5 takes no room while it would not work anyway");
    assert_eq!(pool.out(), [0, 5]);
    pool.consider(&[0, 1, 5]);
    assert_eq!(pool.said(), [format!("0: {room}")]);
    pool.ejections.lift(5, pool.now, &mut pool.changes);
    assert_eq!(pool.said(), ["5: ejected to in: the ejection was lifted"]);
    pool.ejections.lift(5, pool.now, &mut pool.changes);
    pool.ejections.lift(99, pool.now, &mut pool.changes);
    assert_eq!(pool.said(), [""; 0]);
    (0..5).for_each(|_| pool.failed(5));
    assert_eq!(pool.ejections.ejected(5, pool.now).unwrap().count, 1, "and its past is forgiven");
}

#[test]
fn who_would_not_work_anyway_is_not_ejected() {
    let mut pool = Pool::new(EjectionSpec::default(), 4);
    pool.consider(&[0, 1, 2]);
    (0..30).for_each(|_| pool.failed(3));
    pool.seconds(1);
    assert_eq!(pool.out(), []);
    pool.consider(&[0, 1, 2, 3]);
    pool.seconds(1);
    assert_eq!(pool.out(), [3], "it would now, and nothing speaks for it");
}

#[test]
fn an_ejection_that_is_over_does_not_wait_for_the_next_look() {
    let mut pool = Pool::new(EjectionSpec::default(), 4);
    (0..5).for_each(|_| pool.failed(1));
    pool.seconds(9);
    pool.now = pool.now.after(Duration::from_millis(1500));
    assert_eq!(pool.out(), []);
    (0..4).for_each(|_| pool.failed(1));
    assert_eq!(pool.out(), []);
    pool.failed(1);
    assert_eq!(pool.out(), [1]);
    let said = pool.said();
    assert_eq!(said[1], "1: ejected to in: the time of its ejection is over");
    assert_eq!(said[2], "1: in to ejected: 5 requests in a row failed");
}

#[test]
fn who_stays_over_a_reload_keeps_its_ejection_and_its_window() {
    let spec = EjectionSpec { consecutive: NonZeroU32::new(5), ..EjectionSpec::default() };
    let mut pool = Pool::new(spec.clone(), 4);
    (0..5).for_each(|_| pool.failed(3));
    (0..11).for_each(|_| pool.completed(1, 10));
    (0..4).for_each(|_| pool.failed(1));
    pool.seconds(1);
    // 3 is first now, 1 second, two are new.
    pool.ejections = pool.ejections.carry(spec.clone(), &[Some(3), Some(1), None, None]);
    pool.samples = vec![pool.samples[3], pool.samples[1], Sample::default(), Sample::default()];
    pool.consider(&[0, 1, 2, 3]);
    assert_eq!(pool.out(), [0]);
    pool.said();
    pool.completed(1, 10);
    (0..4).for_each(|_| pool.failed(1));
    pool.completed(1, 10);
    (0..4).for_each(|_| pool.failed(1));
    pool.completed(1, 10);
    pool.failed(1);
    pool.seconds(1);
    assert_eq!(pool.said(), [""; 0], "13 of 27");
    pool.failed(1);
    pool.seconds(1);
    assert_eq!(pool.said(), ["1: in to ejected: 14 of 28 requests failed"]);
    // Only one endpoint of two may be out, and the ejection that ends first ends now.
    pool.ejections = pool.ejections.carry(spec, &[Some(0), Some(1)]);
    pool.samples.truncate(2);
    pool.consider(&[0, 1]);
    assert_eq!(pool.out(), [1]);
}

#[test]
fn counters_that_are_not_new_say_nothing_of_the_last_seconds() {
    let old = Sample {
        failed: 1_000_000,
        consecutive: 3,
        completed: 1_000,
        latency_us: u64::MAX,
        ..Sample::default()
    };
    let mut ejections = Ejections::new(EjectionSpec::default(), 2);
    let mut changes = Vec::new();
    for second in 0..30 {
        ejections.observe(&[old; 2], Tick::from_millis(second * 1000), &mut changes);
    }
    assert_eq!(changes, []);
}

/// What may happen to a pool.
#[derive(Clone, Debug)]
enum Event {
    Completed(usize, u64),
    Failed(usize, u32),
    Pass(u64),
    Consider(u8),
    Lift(usize),
    Reload(u32, Vec<usize>),
}

fn event() -> impl Strategy<Value = Event> {
    let endpoint = 0..8_usize;
    prop_oneof![
        3 => (endpoint.clone(), 0..500_u64).prop_map(|(index, ms)| Event::Completed(index, ms)),
        6 => (endpoint.clone(), 1..8_u32).prop_map(|(index, count)| Event::Failed(index, count)),
        4 => (0..15_000_u64).prop_map(Event::Pass),
        2 => any::<u8>().prop_map(Event::Consider),
        1 => endpoint.clone().prop_map(Event::Lift),
        1 => (0..1100_u32, prop::collection::vec(0..10_usize, 1..9))
            .prop_map(|(share, places)| Event::Reload(share, places)),
    ]
}

fn specs() -> impl Strategy<Value = EjectionSpec> {
    let latency = LatencySpec { factor_per_mille: 2000, min: Duration::from_millis(20) };
    (0..5_u32, 0..1000_u32, any::<bool>(), 1..5_u32, 0..1100_u32, 0..20_u64).prop_map(
        move |(consecutive, share, slow, min_requests, max_share_per_mille, base)| EjectionSpec {
            consecutive: NonZeroU32::new(consecutive),
            share_per_mille: NonZeroU32::new(share),
            latency: slow.then_some(latency),
            min_requests,
            base: Duration::from_secs(base),
            max: Duration::from_secs(60),
            max_share_per_mille,
            ..EjectionSpec::default()
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn no_events_eject_more_than_the_share_and_every_change_is_told(
        spec in specs(), events in prop::collection::vec(event(), 1..120),
    ) {
        let mut spec = spec;
        let mut pool = Pool::new(spec.clone(), 8);
        let mut considered: Vec<usize> = (0..8).collect();
        // What somebody believes who only listens to the changes.
        let mut believed = vec![None; 8];
        for event in events {
            let len = pool.samples.len();
            match event {
                Event::Completed(index, millis) => pool.completed(index % len, millis),
                Event::Failed(index, count) => (0..count).for_each(|_| pool.failed(index % len)),
                Event::Pass(millis) => {
                    pool.now = pool.now.after(Duration::from_millis(millis));
                    pool.observe();
                }
                Event::Consider(bits) => {
                    considered = (0..len).filter(|index| bits >> index & 1 == 1).collect();
                    pool.consider(&considered);
                }
                Event::Lift(index) => {
                    pool.ejections.lift(index, pool.now, &mut pool.changes);
                }
                Event::Reload(share, mut places) => {
                    // Each endpoint at most once; places beyond the old list are new endpoints.
                    places.sort_unstable();
                    places.dedup();
                    let places: Vec<_> = places.into_iter().map(|at| (at < len).then_some(at)).collect();
                    spec.max_share_per_mille = share;
                    pool.ejections = pool.ejections.carry(spec.clone(), &places);
                    let sample = |at: &Option<usize>| at.map_or_else(Sample::default, |at| pool.samples[at]);
                    pool.samples = places.iter().map(sample).collect();
                    believed = places.iter().map(|at| at.and_then(|at| believed[at])).collect();
                    considered = (0..places.len()).collect();
                    pool.consider(&considered);
                }
            }
            for EjectionChange { index, transition } in pool.changes.drain(..) {
                let believed: &mut Option<Tick> = &mut believed[index];
                match (transition.from, transition.to) {
                    (Standing::In, Standing::Ejected { until }) => {
                        prop_assert_eq!(*believed, None);
                        prop_assert!(until.since(transition.at) <= spec.max);
                        prop_assert!(until.since(transition.at) >= spec.base.min(spec.max));
                        *believed = Some(until);
                    }
                    (Standing::Ejected { until }, Standing::In) => {
                        prop_assert_eq!(*believed, Some(until));
                        let over = transition.reason == EjectionReason::Over;
                        prop_assert_eq!(transition.at, if over { until } else { pool.now });
                        *believed = None;
                    }
                    other => prop_assert!(false, "{:?}", other),
                }
                prop_assert!(!transition.reason.to_string().is_empty());
            }
            let believed_out: Vec<_> = (0..pool.samples.len())
                .filter(|index| believed[*index].is_some_and(|until| until > pool.now))
                .collect();
            prop_assert_eq!(&pool.out(), &believed_out);
            let counted = considered.iter().filter(|index| believed_out.contains(index)).count();
            prop_assert!(counted <= spec.room(considered.len()), "{} of {:?}", counted, considered);
        }
    }
}

/// One endpoint of five misbehaves from some moment on, in one of four ways; the others
/// fail one request in a hundred. Ten requests a second each, a look every 250 ms.
fn live(seed: u64) {
    let mut rng = Rng::new(seed);
    let spec = EjectionSpec::default();
    let mut pool = Pool::new(spec.clone(), 5);
    let (bad, way) = (rng.below(5) as usize, rng.below(4));
    let turns = pool.now.after(Duration::from_millis(20_000 + rng.below(10_000)));
    for step in 0..2_400 {
        pool.now = pool.now.after(Duration::from_millis(25));
        for index in 0..5 {
            // Not in step: who of them comes at which moment is chance.
            if rng.below(4) > 0 || pool.ejections.ejected(index, pool.now).is_some() {
                continue;
            }
            let turned = index == bad && pool.now >= turns;
            let fails = match way {
                0 if turned => true,
                1 if turned => rng.below(100) < 70,
                // Flaps: two seconds of failures, two of work.
                2 if turned => pool.now.since(turns).as_secs() % 4 < 2,
                _ => rng.below(100) == 0,
            };
            let slow = turned && way == 3;
            match fails {
                true => pool.failed(index),
                false => pool.completed(index, if slow { 200 } else { 5 } + rng.below(10)),
            }
        }
        if step % 10 == 0 {
            pool.observe();
        }
        let said = pool.changes.iter().find(|change| change.index != bad);
        assert_eq!(said, None, "seed {seed}: a healthy endpoint");
        let early = pool.changes.iter().find(|change| change.transition.at < turns);
        assert_eq!(early, None, "seed {seed}: before there was a reason");
    }
    let first = pool.changes.first().map(|change| change.transition.clone());
    let first = first.unwrap_or_else(|| panic!("seed {seed}: way {way} went unnoticed"));
    let took = first.at.since(turns);
    let limit = if way == 0 { Duration::from_secs(3) } else { spec.window };
    assert!(took <= limit, "seed {seed}: way {way} took {took:?}: {first}");
}

#[test]
fn whoever_misbehaves_is_out_within_the_window_and_nobody_else() {
    (0..256).for_each(live);
}
