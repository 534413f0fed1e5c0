//! A pool's promises: exact shares, caps, back-off, waiting in line, and nothing lost over reloads.

use std::collections::HashMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use proptest::prelude::*;
use subak_balance::{Key, catalogue};
use subak_base::{Address, BitSet, Rng, Weight};

use super::*;
use crate::{Acquire, Answered, Lease, Outcome, Refusal, ShadowKeys};

fn spec(algorithm: &str, endpoints: &[(u16, u16)]) -> PoolSpec {
    let endpoint = |&(port, weight): &(u16, u16)| EndpointSpec {
        weight: Weight(weight),
        ..EndpointSpec::new(
            format!("127.0.0.1:{port}"),
            Address::Inet(SocketAddr::from((Ipv4Addr::LOCALHOST, port))),
        )
    };
    let algorithm = catalogue::find(algorithm).unwrap().algorithm();
    PoolSpec::new("app", algorithm, endpoints.iter().map(endpoint).collect())
}

fn build(spec: &PoolSpec) -> Pool {
    let pool = Pool::build(spec, &mut EndpointIds::new(), None, NOW);
    pool.tick(NOW, 0);
    pool
}

const NOW: Tick = Tick::from_millis(1000);

fn request(now: Tick) -> Acquire<'static> {
    Acquire {
        key: Key::None,
        shadow_keys: ShadowKeys::OWN,
        random: 0,
        now,
        in_turn: false,
        stick: None,
        client: None,
        from: None,
        decision: None,
    }
}

fn hits(pool: &Pool) -> Vec<u64> {
    pool.endpoints().map(|endpoint| endpoint.hits()).collect()
}

#[test]
fn round_robin_shares_are_exact_over_eight_threads() {
    let pool = build(&spec("round_robin", &[(1, 1), (2, 1), (3, 1), (4, 1)]));
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..1500 {
                    let lease = pool.acquire(&request(NOW), &BitSet::EMPTY).unwrap();
                    lease.settle(Outcome::Completed(Answered::default()), NOW);
                }
            });
        }
    });
    assert_eq!(hits(&pool), [3000; 4]);
    assert!(pool.endpoints().all(|endpoint| endpoint.in_flight() == 0));
}

#[test]
fn a_lease_settles_once_however_it_ends() {
    let pool = build(&spec("least_connections", &[(1, 1)]));
    let lease = pool.acquire(&request(NOW), &BitSet::EMPTY).unwrap();
    assert_eq!(lease.endpoint().in_flight(), 1);
    drop(lease);
    let lease = pool.acquire(&request(NOW), &BitSet::EMPTY).unwrap();
    lease.settle(Outcome::Failed, NOW);
    let endpoint = pool.endpoints().next().unwrap();
    assert_eq!((endpoint.in_flight(), endpoint.hits(), endpoint.failures()), (0, 2, 1));
}

#[test]
fn an_endpoint_that_refused_is_left_out_and_comes_back() {
    let pool = build(&spec("round_robin", &[(1, 1), (2, 1)]));
    let lease = pool.acquire(&request(NOW), &BitSet::EMPTY).unwrap();
    let refused = lease.index();
    lease.settle(Outcome::Unreachable, NOW);
    for _ in 0..10 {
        let lease = pool.acquire(&request(NOW), &BitSet::EMPTY).unwrap();
        assert_ne!(lease.index(), refused);
    }
    let later = NOW.after(Duration::from_millis(1001));
    pool.tick(later, 0);
    let back = (0..2).map(|_| pool.acquire(&request(later), &BitSet::EMPTY).unwrap().index());
    assert!(back.into_iter().any(|index| index == refused));
}

#[test]
fn when_all_are_left_out_the_one_that_returns_first_is_asked_all_the_same() {
    let pool = build(&spec("round_robin", &[(1, 1), (2, 1)]));
    for step in 0..2 {
        let now = NOW.after(Duration::from_millis(step * 10));
        pool.acquire(&request(now), &BitSet::EMPTY).unwrap().settle(Outcome::Unreachable, now);
    }
    let now = NOW.after(Duration::from_millis(100));
    let mut tried = BitSet::EMPTY;
    let first = pool.acquire(&request(now), &tried).unwrap();
    assert_eq!(first.index(), 0);
    tried.insert(0);
    assert_eq!(pool.acquire(&request(now), &tried).unwrap().index(), 1);
    tried.insert(1);
    assert_eq!(pool.acquire(&request(now), &tried).unwrap_err(), Refusal::NoEndpoint);
}

#[test]
fn weight_zero_and_an_empty_pool_take_nothing() {
    let pool = build(&spec("least_connections", &[(1, 0), (2, 1)]));
    for _ in 0..5 {
        assert_eq!(pool.acquire(&request(NOW), &BitSet::EMPTY).unwrap().index(), 1);
    }
    let pool = build(&spec("least_connections", &[(1, 0)]));
    assert_eq!(pool.acquire(&request(NOW), &BitSet::EMPTY).unwrap_err(), Refusal::NoEndpoint);
    let pool = build(&spec("round_robin", &[]));
    assert_eq!(pool.acquire(&request(NOW), &BitSet::EMPTY).unwrap_err(), Refusal::NoEndpoint);
}

#[test]
fn caps_hold_and_the_line_is_served_in_order() {
    let mut capped = spec("least_connections", &[(1, 1), (2, 1)]);
    capped.endpoints.iter_mut().for_each(|endpoint| endpoint.max_in_flight = Some(1));
    let pool = build(&capped);
    let first = pool.acquire(&request(NOW), &BitSet::EMPTY).unwrap();
    let second = pool.acquire(&request(NOW), &BitSet::EMPTY).unwrap();
    assert_eq!(pool.acquire(&request(NOW), &BitSet::EMPTY).unwrap_err(), Refusal::Saturated);
    let mut waiter = pool.queue().join(pool.queue_length()).unwrap();
    drop(first);
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    assert!(waiter.poll_notified(&mut context).is_ready());
    // A newcomer does not overtake.
    assert_eq!(pool.acquire(&request(NOW), &BitSet::EMPTY).unwrap_err(), Refusal::Saturated);
    let in_turn = Acquire { in_turn: true, ..request(NOW) };
    let third = pool.acquire(&in_turn, &BitSet::EMPTY).unwrap();
    drop(waiter);
    drop((second, third));
    assert!(pool.acquire(&request(NOW), &BitSet::EMPTY).is_ok());
}

#[test]
fn a_reload_keeps_state_by_identity_and_round_robin_does_not_restart() {
    let mut ids = EndpointIds::new();
    let before = Pool::build(&spec("round_robin", &[(1, 5), (2, 1), (3, 1)]), &mut ids, None, NOW);
    let held = before.acquire(&request(NOW), &BitSet::EMPTY).unwrap();
    let mut order = vec![held.endpoint().address().clone()];
    let mut pool =
        Pool::build(&spec("round_robin", &[(1, 5), (2, 1), (3, 1)]), &mut ids, Some(&before), NOW);
    for _ in 0..6 {
        order.push(
            pool.acquire(&request(NOW), &BitSet::EMPTY).unwrap().endpoint().address().clone(),
        );
        pool = Pool::build(
            &spec("round_robin", &[(1, 5), (2, 1), (3, 1)]),
            &mut ids,
            Some(&pool),
            NOW,
        );
    }
    let ports: String = order.iter().map(|address| address.to_string().pop().unwrap()).collect();
    assert_eq!(ports, "1121311");
    // In flight is one number over both snapshots; a changed weight and place change nothing in it.
    let changed = Pool::build(&spec("round_robin", &[(9, 1), (1, 50)]), &mut ids, Some(&pool), NOW);
    let endpoint = changed.endpoints().nth(1).unwrap();
    assert_eq!((endpoint.in_flight(), endpoint.hits()), (1, 5));
    drop(held);
    assert_eq!(endpoint.in_flight(), 0);
}

proptest! {
    /// Whatever happens to endpoints, caps are never passed, a tried endpoint is never given again,
    /// and a request is refused only when no untried endpoint with weight has room.
    #[test]
    fn acquiring_is_total_and_within_bounds(seed in 0u64..5000, count in 1u16..6) {
        let mut random = Rng::new(seed);
        let mut spec = spec(
            ["round_robin", "ip_hash", "least_connections"][(seed % 3) as usize],
            &(1..=count).map(|port| (port, random.below(4) as u16)).collect::<Vec<_>>(),
        );
        for endpoint in &mut spec.endpoints {
            endpoint.max_in_flight = (random.below(2) == 0).then(|| 1 + random.below(2) as u32);
        }
        let pool = build(&spec);
        let mut now = NOW;
        let mut held: HashMap<u64, Lease<'_>> = HashMap::new();
        for step in 0..200u64 {
            now = now.after(Duration::from_millis(random.below(400)));
            if random.below(3) == 0 {
                pool.tick(now, 0);
            }
            let tried: BitSet = (0..count as usize).filter(|_| random.below(4) == 0).collect();
            let key = Key::Address(std::net::IpAddr::from([10, 0, random.below(256) as u8, 1]));
            let asked = Acquire { key, random: random.next_u64(), ..request(now) };
            let room = |index: usize| {
                spec.endpoints[index].weight.get() > 0 && !tried.contains(index)
            };
            match pool.acquire(&asked, &tried) {
                Ok(lease) => {
                    prop_assert!(room(lease.index()));
                    let cap = spec.endpoints[lease.index()].max_in_flight.unwrap_or(u32::MAX);
                    prop_assert!(lease.endpoint().in_flight() <= cap);
                    held.insert(step, lease);
                }
                Err(Refusal::NoEndpoint) => prop_assert!(!(0..count as usize).any(room)),
                Err(Refusal::Saturated) => {
                    let full = |index: usize| {
                        let endpoint = pool.endpoints().nth(index).unwrap();
                        spec.endpoints[index].max_in_flight == Some(endpoint.in_flight())
                            || endpoint.is_backing_off(now)
                    };
                    prop_assert!((0..count as usize).filter(|index| room(*index)).all(full));
                }
            }
            if random.below(2) == 0
                && let Some(step) = held.keys().next().copied()
                && let Some(lease) = held.remove(&step)
            {
                let outcome = match random.below(4) {
                    0 => Outcome::Unreachable,
                    1 => Outcome::Failed,
                    _ => Outcome::Completed(Answered::default()),
                };
                lease.settle(outcome, now);
            }
        }
        drop(held);
        prop_assert!(pool.endpoints().all(|endpoint| endpoint.in_flight() == 0));
    }
}
