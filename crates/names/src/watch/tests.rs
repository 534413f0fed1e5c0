use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use proptest::prelude::*;
use subak_base::{Rng, Tick};
use subak_config::names::Found;

use super::{Bounds, Reply, Watch};
use crate::MAX_ADDRESSES;

const BOUNDS: Bounds = Bounds {
    min_ttl: Duration::from_secs(1),
    max_ttl: Duration::from_secs(300),
    negative_ttl: Duration::from_secs(10),
};

fn found(host: u8) -> Found {
    let address = SocketAddr::from((Ipv4Addr::new(10, 0, 0, host), 80));
    Found { backup: false, address, weight: None, target: None }
}

fn reply(hosts: &[u8], ttl_s: u64) -> Result<Reply, String> {
    let found = hosts.iter().map(|host| found(*host)).collect();
    Ok(Reply { found, ttl: Duration::from_secs(ttl_s), lacks: None, odd: None })
}

fn lacking(hosts: &[u8]) -> Result<Reply, String> {
    Ok(Reply { lacks: Some("no AAAA".into()), ..reply(hosts, 60)? })
}

fn failed() -> Result<Reply, String> {
    Err("SERVFAIL".into())
}

/// A name with a clock of its own.
struct Bench {
    watch: Watch,
    now: Tick,
    random: Rng,
}

impl Bench {
    fn new() -> Bench {
        Bench { watch: Watch::default(), now: Tick::from_millis(5000), random: Rng::new(7) }
    }

    /// Asks when it is due; answers with how long that took.
    fn answer(&mut self, reply: Result<Reply, String>) -> Duration {
        let waited = self.watch.asks_in(self.now).expect("it is not asked");
        self.now = self.now.after(waited);
        assert!(self.watch.is_due(self.now));
        self.watch.ask();
        assert!(!self.watch.is_due(self.now), "it is asked once at a time");
        self.watch.answered(reply, &BOUNDS, self.now, &mut self.random);
        waited
    }

    fn hosts(&self) -> Vec<u8> {
        let found = self.watch.found().map_or(&[][..], |found| found);
        let last = |one: &Found| match one.address {
            SocketAddr::V4(address) => address.ip().octets()[3],
            SocketAddr::V6(_) => 0,
        };
        found.iter().map(last).collect()
    }
}

#[test]
fn it_is_asked_at_once_and_then_when_its_time_is_over() {
    let mut bench = Bench::new();
    assert_eq!(bench.answer(reply(&[2, 1, 2], 60)), Duration::ZERO);
    assert_eq!(bench.hosts(), [1, 2]);
    for (ttl_s, least_s, most_s) in [(60, 60.0, 66.0), (0, 1.0, 1.1), (100_000, 270.0, 300.0)] {
        bench.answer(reply(&[1, 2], ttl_s));
        let waits = bench.watch.asks_in(bench.now).expect("not asked").as_secs_f64();
        assert!((least_s..=most_s).contains(&waits), "{ttl_s} s: asked in {waits} s");
    }
}

#[test]
fn failures_keep_the_last_good_answer_and_space_out() {
    let mut bench = Bench::new();
    bench.answer(reply(&[1], 60));
    bench.answer(failed());
    let waits: Vec<_> = (0..6).map(|_| bench.answer(failed()).as_secs_f64()).collect();
    for (wait, expected) in waits.iter().zip([1.0, 2.0, 4.0, 8.0, 10.0, 10.0]) {
        assert!((wait - expected).abs() <= expected / 10.0, "{waits:?}");
    }
    assert_eq!(bench.hosts(), [1]);
    assert_eq!(bench.watch.failure().map(|(why, _)| why), Some("SERVFAIL"));
    bench.answer(reply(&[3], 60));
    assert_eq!(bench.hosts(), [3]);
    assert_eq!(bench.watch.failure(), None);
    assert_eq!(bench.watch.counts(), (9, 7));
    // The next failure begins a row of its own.
    bench.answer(failed());
    assert!(bench.watch.asks_in(bench.now).expect("not asked") <= Duration::from_millis(1100));
}

#[test]
fn an_answer_without_addresses_is_a_failure() {
    let mut bench = Bench::new();
    bench.answer(reply(&[], 60));
    assert!(bench.watch.is_decided());
    assert_eq!(bench.watch.found(), None);
    assert_eq!(bench.watch.failure().map(|(why, _)| why), Some("it has no address"));
    bench.answer(reply(&[1], 60));
    bench.answer(reply(&[], 60));
    assert_eq!(bench.hosts(), [1]);
}

#[test]
fn an_answer_that_lacks_something_only_adds() {
    let mut bench = Bench::new();
    bench.answer(reply(&[1, 2], 60));
    bench.answer(lacking(&[2, 3]));
    assert_eq!(bench.hosts(), [1, 2, 3]);
    assert!(bench.watch.failure().is_some());
    assert!(bench.watch.asks_in(bench.now).expect("not asked") <= Duration::from_millis(1100));
    bench.answer(reply(&[2, 3], 60));
    assert_eq!(bench.hosts(), [2, 3]);
    assert_eq!(bench.watch.failure(), None);
}

#[test]
fn too_many_addresses_are_cut_at_the_bound_and_said() {
    let mut watch = Watch::default();
    let address = |index: u32| SocketAddr::from((Ipv4Addr::from(0x0A00_0000 + index), 80));
    let found = (1..=10_000).map(|index| Found { address: address(index), ..found(0) });
    let reply =
        Reply { found: found.collect(), ttl: Duration::from_secs(60), lacks: None, odd: None };
    watch.ask();
    watch.answered(Ok(reply), &BOUNDS, Tick(0), &mut Rng::new(1));
    assert_eq!(watch.found().map(|found| found.len()), Some(MAX_ADDRESSES));
    assert!(watch.failure().expect("it is said").0.contains("9000 addresses more"));
    assert!(watch.asks_in(Tick(0)) >= Some(Duration::from_secs(60)), "it is no failure");
}

#[derive(Clone, Debug)]
enum Step {
    Good(Vec<u8>, u64),
    Lacking(Vec<u8>),
    Failed,
}

fn step() -> impl Strategy<Value = Step> {
    let hosts = || prop::collection::vec(1_u8..20, 0..6);
    prop_oneof![
        (hosts(), 0_u64..1000).prop_map(|(hosts, ttl)| Step::Good(hosts, ttl)),
        hosts().prop_map(Step::Lacking),
        Just(Step::Failed),
    ]
}

proptest! {
    /// Whatever comes: once there was a good answer there is always a list, it is sorted and without
    /// doubles, it is what the last good answer said plus what incomplete ones added, and a question
    /// never comes earlier or later than its bounds say.
    #[test]
    fn a_list_once_known_is_never_lost(
        steps in prop::collection::vec(step(), 1..40),
        seed in any::<u64>(),
    ) {
        let mut bench = Bench { random: Rng::new(seed), ..Bench::new() };
        let mut expected: Vec<u8> = Vec::new();
        for step in steps {
            let (answer, most) = match &step {
                Step::Good(hosts, ttl) if !hosts.is_empty() => {
                    expected = hosts.clone();
                    (reply(hosts, *ttl), BOUNDS.max_ttl)
                }
                Step::Good(hosts, ttl) => (reply(hosts, *ttl), BOUNDS.negative_ttl),
                Step::Lacking(hosts) => {
                    expected.extend(hosts);
                    (lacking(hosts), BOUNDS.negative_ttl)
                }
                Step::Failed => (failed(), BOUNDS.negative_ttl),
            };
            bench.answer(answer);
            expected.sort_unstable();
            expected.dedup();
            prop_assert_eq!(bench.hosts(), expected.clone());
            let waits = bench.watch.asks_in(bench.now).expect("not asked");
            prop_assert!(waits >= BOUNDS.min_ttl && waits <= most, "{:?} after {:?}", waits, step);
        }
    }
}
