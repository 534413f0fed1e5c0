//! `least_packets` and `least_bandwidth` share what goes over the wire, at every moment.

use std::collections::VecDeque;
use std::time::Duration;

use crate::support::{OK, TICK, World, endpoint, spec};
use subak_base::BitSet;
use subak_pool::{Answered, Outcome, PoolSpec};

const SECOND: Duration = Duration::from_secs(1);

/// Requests at a steady pace of 1,000 a second, each a while under way, that take packets and bytes by
/// endpoint; answers the packets that each endpoint got in the time.
fn steady(world: &mut World, time: Duration, takes: impl Fn(usize) -> (u64, u64)) -> Vec<u64> {
    let mut packets = vec![0; world.pool.endpoints().len()];
    let end = world.now.after(time);
    let mut next_tick = world.now;
    while world.now < end {
        if world.now >= next_tick {
            world.tick();
            next_tick = world.now.after(TICK);
        }
        let request = world.request();
        let (pool, now) = (&world.pool, world.now);
        let mut under_way: VecDeque<_> = VecDeque::new();
        for _ in 0..5 {
            under_way.extend(pool.acquire(&request, &BitSet::EMPTY));
        }
        let done = now.after(Duration::from_millis(5));
        for lease in under_way {
            let (took, bytes) = takes(lease.index());
            packets[lease.index()] += took;
            lease.count(took, bytes, done);
            lease.settle(OK, done);
        }
        world.now = done;
    }
    packets
}

fn fair(packets: &[u64], weights: &[u64], factor: u64) {
    let (total, weight) = (packets.iter().sum::<u64>(), weights.iter().sum::<u64>());
    for (index, (got, own)) in packets.iter().zip(weights).enumerate() {
        let share = total * own / weight;
        assert!(*got <= factor * share + 50, "{index} of {packets:?}");
        assert!(factor * *got + 50 >= share, "{index} of {packets:?}");
    }
}

#[test]
fn under_steady_load_each_endpoint_stays_within_twice_its_share_in_every_second() {
    for name in ["least_packets", "least_bandwidth"] {
        let mut world = World::new(&spec(name, &[1, 1, 2]));
        // Answers of the second are eight times as large.
        let takes = |index: usize| if index == 1 { (80, 80_000) } else { (10, 10_000) };
        steady(&mut world, 15 * SECOND, takes);
        for _ in 0..20 {
            fair(&steady(&mut world, SECOND, takes), &[1, 1, 2], 2);
        }
        let hits: Vec<u64> = world.pool.endpoints().map(|endpoint| endpoint.hits()).collect();
        assert!(hits[0] > 6 * hits[1], "{name}: {hits:?}");
        let status = world.status(2);
        assert_eq!(status.packets.is_some(), name == "least_packets");
        assert_eq!(status.bytes.is_some(), name == "least_bandwidth");
    }
}

#[test]
fn who_joins_or_returns_is_neither_flooded_nor_starved() {
    let mut world = World::new(&spec("least_packets", &[1, 1]));
    let takes = |_: usize| (10, 10_000);
    steady(&mut world, 15 * SECOND, takes);
    let mut wider = spec("least_packets", &[1, 1]);
    wider.endpoints.push(endpoint(9, 1));
    world.reload(&wider);
    for _ in 0..20 {
        fair(&steady(&mut world, SECOND, takes), &[1, 1, 1], 2);
    }
    // Away for long enough to be forgotten.
    world.pool.set_admin("e0", Some(subak_health::Admin::Maintenance), world.now, 0).unwrap();
    steady(&mut world, 20 * SECOND, takes);
    assert_eq!(world.status(0).packets, Some(0));
    world.pool.set_admin("e0", None, world.now, 0).unwrap();
    steady(&mut world, 2 * TICK, takes);
    for _ in 0..20 {
        fair(&steady(&mut world, SECOND, takes), &[1, 1, 1], 2);
    }
}

#[test]
fn a_reload_keeps_the_accounts_as_long_as_the_algorithm_stays() {
    let sums =
        |world: &World| -> Vec<_> { (0..2).map(|index| world.status(index).packets).collect() };
    let mut world = World::new(&spec("least_packets", &[1, 1]));
    steady(&mut world, SECOND, |_| (10, 10_000));
    let before = sums(&world);
    assert!(before.iter().all(|sum| sum.unwrap() > 4_000), "{before:?}");
    world.reload(&spec("least_packets", &[5, 1]));
    assert_eq!(sums(&world), before);
    world.reload(&spec("random", &[5, 1]));
    assert_eq!(sums(&world), [None; 2]);
}

#[test]
fn algorithms_that_learn_keep_what_they_have_learnt_over_reloads_of_weights() {
    let learn = |spec: &PoolSpec| {
        let mut world = World::new(spec);
        for _ in 0..40 {
            let request = world.request();
            let lease = world.pool.acquire(&request, &BitSet::EMPTY).unwrap();
            let first_byte = Some(Duration::from_millis(20));
            let answered = Answered { first_byte, status_failed: false };
            lease.settle(Outcome::Completed(answered), world.now);
            world.pass(TICK);
        }
        world
    };
    for name in ["least_response_time", "peak_ewma"] {
        let mut world = learn(&spec(name, &[1, 1]));
        let latency = |world: &World| world.status(0).latency;
        let known = latency(&world).unwrap();
        assert!((19..=21).contains(&(known.as_millis() as u64)), "{name}: {known:?}");
        world.reload(&spec(name, &[7, 1]));
        assert_eq!(latency(&world), Some(known));
        world.reload(&spec("round_robin", &[7, 1]));
        assert_eq!(latency(&world), None);
    }
}
