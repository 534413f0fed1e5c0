//! Shadows decide as they would if they were asked, and nothing they do can be seen.

use std::num::NonZeroUsize;
use std::time::Duration;

use subak_balance::catalogue::{self, Listing};
use subak_balance::{Key, KeySource};
use subak_base::{BitSet, Rng, Weight};
use subak_health::{Admin, SlowStart};
use subak_pool::{
    Acquire, Answered, Lease, Outcome, Pool, PoolSpec, ShadowKeys, ShadowSpec, ShadowStatus,
    StickTableSpec, imbalance,
};

use crate::support::{OK, TICK, World, endpoint, spec};

fn shadow(name: &str) -> ShadowSpec {
    ShadowSpec { name: name.into(), algorithm: crate::support::algorithm(name) }
}

fn beside(name: &str, weights: &[u16], shadows: &[&str]) -> PoolSpec {
    let shadows = shadows.iter().map(|name| shadow(name)).collect();
    PoolSpec { shadows, ..spec(name, weights) }
}

fn status(world: &World) -> Vec<ShadowStatus> {
    world.pool.status(world.now).shadows
}

/// What a life is like beside its algorithm.
#[derive(Clone, Copy)]
struct Manner {
    /// Requests are tried elsewhere, and endpoints break: a worker compiles at once.
    is_rough: bool,
}

/// Busy endpoints with caps, failures, packets, changing weights, slow start and reloads: who took
/// each request, and what is known of the endpoints at the end.
fn live(specs: &[PoolSpec], manner: Manner) -> (Vec<Option<usize>>, String, World) {
    let mut world = World::new(&specs[0]);
    let (mut random, mut picks) = (Rng::new(11), Vec::new());
    for round in 0..9_usize {
        let mut held: Vec<Lease<'_>> = Vec::new();
        let mut now = world.now;
        for request in 0..60_u64 {
            now = now.after(Duration::from_millis(random.below(5)));
            let tried: BitSet = (0..5).filter(|_| random.below(9) == 0).collect();
            let tried = if manner.is_rough { tried } else { BitSet::EMPTY };
            let bytes = random.below(40).to_be_bytes();
            let key = match specs[0].algorithm.key() {
                Some(KeySource::Source) => Key::Address([10, 0, 0, bytes[7]].into()),
                _ if random.below(8) == 0 => Key::None,
                _ => Key::Bytes(&bytes),
            };
            let word = random.next_u64();
            let asked = Acquire { key, random: word, now, ..crate::support::key(b"") };
            let lease = world.pool.acquire(&asked, &tried).ok();
            picks.push(lease.as_ref().map(Lease::index));
            held.extend(lease);
            if request % 3 == 0 && !held.is_empty() {
                let lease = held.swap_remove(random.below(held.len() as u64) as usize);
                lease.count(random.below(50), random.below(5000), now);
                let first_byte = Some(Duration::from_micros(random.below(90_000)));
                let outcome = match random.below(12) {
                    0 if manner.is_rough => Outcome::Unreachable,
                    1 => Outcome::Failed,
                    2 => Outcome::Cancelled,
                    _ => Outcome::Completed(Answered { first_byte, status_failed: false }),
                };
                lease.settle(outcome, now);
            }
        }
        drop(held);
        world.now = now.after(TICK);
        world.tick();
        let at = world.now;
        match round % 4 {
            0 => {
                let state = if round == 4 { Admin::Ready } else { Admin::Drain };
                world.pool.set_admin("e3", Some(state), at, 5).unwrap();
            }
            1 => world.pool.set_weight("e2", Some(Weight(random.below(4) as u16)), at).unwrap(),
            3 => world.reload(&specs[(round / 4 + 1) % specs.len()]),
            _ => {}
        }
    }
    let status = world.pool.status(world.now).endpoints;
    let known = status.iter().map(|one| (one.hits, one.failures, one.latency, one.weight));
    let known = format!("{:?}", known.collect::<Vec<_>>());
    (picks, known, world)
}

fn busy(listing: &Listing) -> PoolSpec {
    let mut busy = spec(listing.name, &[3, 1, 2, 1, 5]);
    busy.endpoints[1].max_in_flight = Some(2);
    if busy.algorithm.takes_changing_weights() {
        busy.slow_start = Some(SlowStart::over(Duration::from_secs(2)));
    }
    busy
}

/// Every algorithm, beside every other, with shadows that come and go by reloads.
#[test]
fn a_shadow_never_changes_what_the_pool_does() {
    let names: Vec<&str> = catalogue::all().iter().map(|listing| listing.name).collect();
    for listing in catalogue::all() {
        let plain = busy(listing);
        let (expected, known, _) = live(std::slice::from_ref(&plain), Manner { is_rough: true });
        assert!(expected.iter().flatten().count() > 300, "{}", listing.name);
        for some in names.chunks(4) {
            let shadows: Vec<ShadowSpec> = some.iter().map(|name| shadow(name)).collect();
            let with = PoolSpec { shadows, ..plain.clone() };
            let specs = [with.clone(), plain.clone(), with];
            let (picks, told, world) = live(&specs, Manner { is_rough: true });
            assert_eq!(picks, expected, "{} beside {some:?}", listing.name);
            assert_eq!(told, known, "{} beside {some:?}", listing.name);
            for shadow in status(&world) {
                assert!(shadow.decisions > 5 && !shadow.is_stopped, "{shadow:?}");
                let found: u64 = shadow.hits.iter().sum();
                assert_eq!(found + shadow.refusals, shadow.decisions, "{shadow:?}");
                assert_eq!(shadow.taken.iter().sum::<u64>(), shadow.decisions);
                assert!(shadow.agreements <= found);
            }
        }
    }
}

#[test]
fn the_pool_s_own_algorithm_as_a_shadow_always_agrees() {
    for listing in catalogue::all() {
        let busy = PoolSpec { shadows: vec![shadow(listing.name)], ..busy(listing) };
        let (_, _, world) = live(&[busy], Manner { is_rough: false });
        let told = &status(&world)[0];
        assert_eq!(told.agreement(), Some(1.0), "{}: {told:?}", listing.name);
        assert_eq!(told.hits, told.taken, "{}", listing.name);
    }
}

fn hits(pool: &Pool, world: &World) -> Vec<Vec<u64>> {
    pool.status(world.now).shadows.into_iter().map(|shadow| shadow.hits).collect()
}

#[test]
fn hypothetical_hits_are_exact_over_eight_threads() {
    let world = World::new(&beside("random", &[1; 4], &["round_robin", "least_connections"]));
    let pool = &world.pool;
    std::thread::scope(|scope| {
        for thread in 0..8 {
            scope.spawn(move || {
                let mut random = Rng::new(thread);
                for _ in 0..1500 {
                    let asked = Acquire { random: random.next_u64(), ..crate::support::key(b"") };
                    drop(pool.acquire(&asked, &BitSet::EMPTY));
                }
            });
        }
    });
    let told = &status(&world)[0];
    assert_eq!(told.hits, [3000; 4]);
    assert_eq!((told.decisions, told.refusals), (12_000, 0));
    assert_eq!(imbalance(&told.hits, &[Weight::ONE; 4]), Some(1.0));
    assert!((0.2..0.3).contains(&told.agreement().unwrap()), "{told:?}");
    let real: Vec<u64> = pool.endpoints().map(|endpoint| endpoint.hits()).collect();
    assert_eq!(told.taken, real);
    assert!(pool.endpoints().all(|endpoint| endpoint.in_flight() == 0));
}

#[test]
fn a_reload_goes_on_with_what_stays_and_begins_anew_with_what_changes() {
    let weights = [1, 1, 1];
    let first = beside("random", &weights, &["round_robin"]);
    let mut world = World::new(&first);
    world.send(10, |_| OK);
    assert_eq!(hits(&world.pool, &world), [[4, 3, 3]]);
    // Another shadow comes first: the one that was there goes on in its turn.
    world.reload(&beside("random", &weights, &["first", "round_robin"]));
    world.send(2, |_| OK);
    assert_eq!(hits(&world.pool, &world), [[2, 0, 0], [4, 4, 4]]);
    // An endpoint more begins at nothing; the others keep their counts.
    let mut more = beside("random", &weights, &["round_robin"]);
    more.endpoints.insert(0, endpoint(9, 1));
    world.reload(&more);
    assert_eq!(hits(&world.pool, &world), [[0, 4, 4, 4]]);
    world.send(8, |_| OK);
    let told = &status(&world)[0];
    assert_eq!((told.decisions, told.hits.iter().sum::<u64>()), (20, 20));
    // Agreement with another algorithm is another figure.
    world.now = world.now.after(Duration::from_secs(9));
    more.algorithm = crate::support::algorithm("least_connections");
    world.reload(&more);
    let told = &status(&world)[0];
    assert_eq!((told.decisions, &told.hits[..], &told.taken[..]), (0, &[0; 4][..], &[0; 4][..]));
    assert_eq!(told.counted, Duration::ZERO);
    // Taken out and put in again, it is new.
    world.send(4, |_| OK);
    world.reload(&PoolSpec { shadows: Vec::new(), ..more.clone() });
    assert!(status(&world).is_empty() && !world.pool.has_shadows());
    world.reload(&more);
    assert_eq!(status(&world)[0].decisions, 0);
}

#[test]
fn a_shadow_added_by_a_reload_begins_where_the_pool_s_own_would_go_on() {
    let mut world = World::new(&spec("round_robin", &[5, 1, 1]));
    world.send(3, |_| OK);
    world.reload(&beside("round_robin", &[5, 1, 1], &["round_robin"]));
    world.send(9, |_| OK);
    let told = &status(&world)[0];
    assert_eq!((told.agreements, told.decisions), (9, 9), "{told:?}");
}

#[test]
fn health_weights_and_caps_reach_shadows() {
    let names = ["round_robin", "least_connections", "maglev", "first"];
    let mut spec = beside("random", &[1, 1, 1], &names);
    spec.endpoints[0].max_in_flight = Some(1);
    let mut world = World::new(&spec);
    let chosen = |world: &mut World, requests: usize| {
        let before = hits(&world.pool, world);
        world.send(requests, |_| OK);
        let after = hits(&world.pool, world);
        let change = |(after, before): (&Vec<u64>, Vec<u64>)| {
            after.iter().zip(before).map(|(after, before)| after - before).collect()
        };
        after.iter().zip(before).map(change).collect::<Vec<Vec<u64>>>()
    };
    world.pool.set_admin("e1", Some(Admin::Maintenance), world.now, 0).unwrap();
    for hits in chosen(&mut world, 30) {
        assert_eq!((hits[1], hits.iter().sum::<u64>()), (0, 30), "{hits:?}");
    }
    world.pool.set_admin("e1", None, world.now, 0).unwrap();
    world.pool.set_weight("e2", Some(Weight(4)), world.now).unwrap();
    assert_eq!(chosen(&mut world, 600)[0], [100, 100, 400]);
    // A worker finds out that one is broken: at once it is left out, compiled or not.
    let now = world.now;
    while world.pool.endpoint(2).unwrap().failures() == 0 {
        let lease = world.acquire().unwrap();
        let outcome = if lease.index() == 2 { Outcome::Unreachable } else { OK };
        lease.settle(outcome, now);
    }
    for hits in chosen(&mut world, 30) {
        assert_eq!((hits[2], hits.iter().sum::<u64>()), (0, 30), "{hits:?}");
    }
    // At its cap by another request it could not take this one; by this one alone it could.
    world.pass(Duration::from_secs(5));
    let request = world.request();
    let stuck = world.pool.acquire(&Acquire { stick: Some(0), ..request }, &BitSet::EMPTY).unwrap();
    let first = || status(&world)[3].hits.clone();
    let before = first();
    drop(world.pool.acquire(&request, &BitSet::EMPTY).unwrap());
    assert_eq!(first()[1], before[1] + 1, "the first is full");
    drop(stuck);
    let before = first();
    drop(world.pool.acquire(&request, &BitSet::EMPTY).unwrap());
    assert_eq!(first()[0], before[0] + 1);
}

#[test]
fn one_that_finds_everybody_full_gives_up() {
    for (full, refusals) in [(15, 0), (16, 1)] {
        let mut spec = beside("maglev", &[1; 18], &["first"]);
        spec.endpoints[..full].iter_mut().for_each(|one| one.max_in_flight = Some(1));
        let mut world = World::new(&spec);
        let request = world.request();
        let stuck = |index| Acquire { stick: Some(index), ..request };
        let held: Vec<_> =
            (0..full).map(|index| world.pool.acquire(&stuck(index), &BitSet::EMPTY)).collect();
        drop(world.pool.acquire(&request, &BitSet::EMPTY).unwrap());
        let told = &status(&world)[0];
        assert_eq!((told.decisions, told.refusals), (1, refusals), "{full} are full");
        assert_eq!(told.hits[15], 1 - refusals);
        drop(held);
    }
}

#[test]
fn only_first_tries_that_the_algorithm_decides_are_decided_on() {
    let table = StickTableSpec { expire: Duration::from_secs(60), entries: 64 };
    let with = beside("round_robin", &[1, 1], &["random"]);
    let mut world = World::new(&PoolSpec { stick_table: Some(table), ..with });
    let decisions = |world: &World| status(world)[0].decisions;
    let request = Acquire { client: Some(7 << 40), ..world.request() };
    let again = || drop(world.pool.acquire(&request, &BitSet::EMPTY).unwrap());
    again();
    assert_eq!(decisions(&world), 1, "nobody knew the client");
    again();
    assert_eq!(decisions(&world), 1, "now it belongs somewhere");
    let request = world.request();
    let retry: BitSet = [0].into_iter().collect();
    drop(world.pool.acquire(&request, &retry).unwrap());
    assert_eq!(decisions(&world), 1, "a second try");
    // All in back-off: whom the pool tries all the same is no algorithm's choice.
    for index in [0, 1] {
        let asked = Acquire { stick: Some(index), ..request };
        let lease = world.pool.acquire(&asked, &BitSet::EMPTY).unwrap();
        lease.settle(Outcome::Unreachable, world.now);
    }
    drop(world.pool.acquire(&request, &BitSet::EMPTY).unwrap());
    assert_eq!(decisions(&world), 1, "the last resort");
}

#[test]
fn a_shadow_has_a_key_of_its_own() {
    let world = World::new(&beside("maglev", &[1; 5], &["maglev", "maglev"]));
    let mut keys = ShadowKeys::default();
    let own = crate::support::key(b"a client");
    keys.push_own();
    for other in 0..200_u32 {
        keys.clear();
        keys.push_own();
        keys.push(Key::Bytes(&other.to_be_bytes()));
        let asked = Acquire { shadow_keys: &keys, ..own };
        drop(world.pool.acquire(&asked, &BitSet::EMPTY));
    }
    let told = status(&world);
    assert_eq!((told[0].agreement(), told[1].hits.contains(&0)), (Some(1.0), false), "{told:?}");
}

#[test]
fn asking_counts_nothing_and_tells_the_next_decision() {
    let names = ["round_robin", "least_connections", "maglev", "random"];
    let logged = PoolSpec { pick_log: NonZeroUsize::new(9), ..beside("first", &[2, 1, 3], &names) };
    let mut world = World::new(&logged);
    for _ in 0..40 {
        let asked = world.request();
        let trace = world.pool.explain(&asked, &BitSet::EMPTY);
        assert_eq!(trace, world.pool.explain(&asked, &BitSet::EMPTY));
        let before = hits(&world.pool, &world);
        drop(world.pool.acquire(&asked, &BitSet::EMPTY));
        let after = hits(&world.pool, &world);
        for (place, told) in trace.shadows.iter().enumerate() {
            let picked = told.picked.unwrap();
            assert_eq!(after[place][picked], before[place][picked] + 1, "{told:?}");
        }
    }
}
