//! A client that belongs to an endpoint stays with it: while it drains, at weight 0, over reloads; not
//! when it is down.

use std::num::NonZeroU32;
use std::time::Duration;

use crate::support::{OK, TICK, World, spec};
use subak_base::{BitSet, Weight};
use subak_health::{Admin, EjectionSpec};
use subak_pool::{Acquire, Outcome, PoolSpec, StickTableSpec};

const MINUTE: Duration = Duration::from_secs(60);

fn with_table(weights: &[u16]) -> PoolSpec {
    let table = StickTableSpec { expire: 30 * MINUTE, entries: 1000 };
    PoolSpec { stick_table: Some(table), ..spec("round_robin", weights) }
}

/// Where a request goes that comes with a cookie of this endpoint.
fn with_cookie(world: &mut World, index: usize) -> usize {
    let key = world.pool.endpoint(index).unwrap().stick_key();
    let stick = world.pool.stick(key);
    let request = Acquire { stick, ..world.request() };
    world.pool.acquire(&request, &BitSet::EMPTY).unwrap().index()
}

/// Where a client goes that the table may know.
fn from_client(world: &mut World, client: u64) -> usize {
    let request = Acquire { client: Some(client), ..world.request() };
    world.pool.acquire(&request, &BitSet::EMPTY).unwrap().index()
}

#[test]
fn it_stays_while_its_endpoint_is_ready_drains_or_has_no_weight() {
    let mut world = World::new(&spec("round_robin", &[1, 1, 1]));
    assert!((0..10).all(|_| with_cookie(&mut world, 2) == 2));
    world.pool.set_admin("e2", Some(Admin::Drain), world.now, 0).unwrap();
    world.pass(2 * TICK);
    assert!((0..10).all(|_| with_cookie(&mut world, 2) == 2));
    assert_eq!(world.send(10, |_| OK)[2], 0, "nobody new");
    world.pool.set_admin("e2", None, world.now, 0).unwrap();
    world.pool.set_weight("e2", Some(Weight::ZERO), world.now).unwrap();
    world.pass(2 * TICK);
    assert!((0..10).all(|_| with_cookie(&mut world, 2) == 2));
    assert_eq!(world.send(10, |_| OK)[2], 0);
}

#[test]
fn it_moves_when_its_endpoint_is_in_maintenance_in_back_off_or_ejected() {
    let eject = EjectionSpec { consecutive: NonZeroU32::new(1), ..EjectionSpec::default() };
    let fresh = || World::new(&PoolSpec { eject: Some(eject.clone()), ..spec("random", &[1; 3]) });
    let moves = |world: &mut World| {
        assert!(!world.pool.may_stay(2, world.now));
        assert!((0..10).all(|_| with_cookie(world, 2) != 2));
    };
    let mut world = fresh();
    world.pool.set_admin("e2", Some(Admin::Maintenance), world.now, 0).unwrap();
    world.pass(2 * TICK);
    moves(&mut world);
    for outcome in [Outcome::Unreachable, Outcome::Failed] {
        let mut world = fresh();
        assert!(world.pool.may_stay(2, world.now));
        let key = world.pool.endpoint(2).unwrap().stick_key();
        let request = Acquire { stick: world.pool.stick(key), ..world.request() };
        let lease = world.pool.acquire(&request, &BitSet::EMPTY).unwrap();
        lease.settle(outcome, world.now);
        // Before any balancer was compiled, and after.
        moves(&mut world);
        world.pass(TICK);
        moves(&mut world);
    }
}

#[test]
fn a_full_endpoint_sends_its_client_elsewhere_for_once() {
    let mut spec = with_table(&[1, 1]);
    spec.endpoints[0].max_in_flight = Some(1);
    let mut world = World::new(&spec);
    let home = from_client(&mut world, 7);
    assert_eq!(home, 0);
    let request = Acquire { client: Some(7), ..world.request() };
    let held = world.pool.acquire(&request, &BitSet::EMPTY).unwrap();
    assert_eq!(held.index(), 0);
    assert_eq!(world.pool.acquire(&request, &BitSet::EMPTY).unwrap().index(), 1);
    drop(held);
    assert_eq!(from_client(&mut world, 7), 0);
}

#[test]
fn a_retry_goes_elsewhere_and_a_client_that_was_moved_stays_where_it_is() {
    let mut world = World::new(&with_table(&[1, 1, 1]));
    let home = from_client(&mut world, 7);
    let request = Acquire { client: Some(7), ..world.request() };
    let tried: BitSet = [home].into_iter().collect();
    let retried = world.pool.acquire(&request, &tried).unwrap().index();
    assert_ne!(retried, home);
    let home = retried;
    assert_eq!(from_client(&mut world, 7), home);
    let name = format!("e{home}");
    world.pool.set_admin(&name, Some(Admin::Maintenance), world.now, 0).unwrap();
    world.pass(2 * TICK);
    let moved = from_client(&mut world, 7);
    assert_ne!(moved, home);
    world.pool.set_admin(&name, None, world.now, 0).unwrap();
    world.pass(2 * TICK);
    assert!((0..10).all(|_| from_client(&mut world, 7) == moved));
}

#[test]
fn the_table_survives_a_reload_and_forgets_in_time() {
    let mut world = World::new(&with_table(&[1, 1, 1]));
    let homes: Vec<usize> = (0..9).map(|client| from_client(&mut world, client << 56)).collect();
    let sessions: Vec<_> = (0..3).map(|index| world.status(index).sessions).collect();
    assert_eq!(sessions, [Some(3); 3]);
    let mut moved = with_table(&[5, 1, 1]);
    moved.endpoints.rotate_left(1);
    world.reload(&moved);
    for (client, home) in (0..).zip(&homes) {
        assert_eq!((from_client(&mut world, client << 56) + 1) % 3, *home);
    }
    world.now = world.now.after(30 * MINUTE);
    assert_eq!(world.status(0).sessions, Some(0));
    assert_eq!(World::new(&spec("random", &[1])).status(0).sessions, None);
}

#[test]
fn what_is_not_an_endpoint_of_the_pool_is_ignored() {
    let mut world = World::new(&spec("round_robin", &[1]));
    assert_eq!(world.pool.stick(12345), None);
    let request = Acquire { stick: Some(99), client: Some(3), ..world.request() };
    assert_eq!(world.pool.acquire(&request, &BitSet::EMPTY).unwrap().index(), 0);
    assert!(!world.pool.may_stay(99, world.now));
}
