//! What traffic shows of endpoints takes them out: at once, by share, by latency, within a bound.

use std::num::NonZeroU32;
use std::time::Duration;

use crate::support::{ERROR, OK, TICK, World, spec};
use subak_base::BitSet;
use subak_health::{Admin, EjectionSpec, OnAllDown, State};
use subak_pool::{Answered, Outcome, PoolSpec};

const SECOND: Duration = Duration::from_secs(1);

fn ejecting(weights: &[u16]) -> PoolSpec {
    PoolSpec { eject: Some(EjectionSpec::default()), ..spec("round_robin", weights) }
}

#[test]
fn the_failure_that_makes_a_row_full_ejects_at_once() {
    let mut world = World::new(&ejecting(&[1, 1, 1]));
    let hits = world.send(300, |index| if index == 2 { Outcome::Failed } else { OK });
    assert_eq!(hits[2], 5, "no tick has passed: {hits:?}");
    assert_eq!(world.status(2).state, State::Down);
    assert!(!world.status(2).is_eligible);
    world.pass(TICK);
    assert_eq!(world.told(), ["e2: ready to down: ejected: 5 requests in a row failed"]);
    world.pass(10 * SECOND);
    assert_eq!(world.told(), ["e2: down to ready: its ejection is over"]);
    let hits = world.send(300, |_| OK);
    assert!(hits[2] >= 99, "{hits:?}");
}

#[test]
fn an_answer_that_says_5xx_is_a_failure_and_one_that_succeeds_ends_the_row() {
    let mut world = World::new(&ejecting(&[1, 1]));
    for round in 0..20 {
        let outcome = if round % 4 == 3 { OK } else { ERROR };
        world.send(2, |index| if index == 1 { outcome } else { OK });
        assert_eq!(world.status(1).state, State::Ready);
    }
    world.send(20, |index| if index == 1 { ERROR } else { OK });
    assert_eq!(world.status(1).state, State::Down);
    assert_eq!(world.status(1).failures, 20);
}

#[test]
fn a_large_share_of_failures_ejects_with_the_next_tick() {
    let mut world = World::new(&ejecting(&[1, 1]));
    for round in 0..40 {
        let outcome = if round % 3 == 0 { OK } else { ERROR };
        world.send(2, |index| if index == 1 { outcome } else { OK });
        world.pass(TICK);
    }
    assert_eq!(world.status(1).state, State::Down);
    let told = world.told();
    assert!(told[0].contains("requests failed") && !told[0].contains("in a row"), "{told:?}");
}

#[test]
fn one_that_is_much_slower_than_the_others_is_ejected() {
    let mut world = World::new(&ejecting(&[1, 1, 1]));
    for _ in 0..100 {
        let request = world.request();
        for _ in 0..3 {
            let lease = world.pool.acquire(&request, &BitSet::EMPTY).unwrap();
            let took = if lease.index() == 0 { 400 } else { 10 };
            let first_byte = Some(Duration::from_millis(took));
            let answered = Answered { first_byte, status_failed: false };
            lease.settle(Outcome::Completed(answered), world.now.after(SECOND));
        }
        world.pass(TICK);
    }
    let told = world.told();
    assert_eq!(
        told[0],
        "e0: ready to down: ejected: took 400ms on average, the pool's median is 10ms"
    );
}

#[test]
fn no_more_than_the_share_is_ejected_and_the_rest_goes_on() {
    let mut world = World::new(&ejecting(&[1, 1, 1, 1, 1, 1]));
    world.send(400, |index| if index < 3 { Outcome::Failed } else { OK });
    let down = |world: &World| {
        let status = world.pool.status(world.now);
        status.endpoints.iter().filter(|one| one.state == State::Down).count()
    };
    assert_eq!(down(&world), 3);
    world.send(400, |_| Outcome::Failed);
    world.pass(5 * SECOND);
    assert_eq!(down(&world), 3);
    assert_eq!(world.send(100, |_| OK).iter().filter(|hits| **hits > 0).count(), 3);
}

#[test]
fn where_all_fail_alike_nobody_is_ejected() {
    let mut world = World::new(&ejecting(&[1, 1, 1, 1]));
    for _ in 0..50 {
        world.send(40, |_| Outcome::Failed);
        world.pass(TICK);
    }
    assert_eq!(world.told(), [""; 0]);
    assert!((0..4).all(|index| world.status(index).state == State::Ready));
}

#[test]
fn where_all_may_be_ejected_the_policy_decides_and_nobody_is_left_without_an_answer() {
    for (on_all_down, served) in [(OnAllDown::FailOpen, 100), (OnAllDown::FailClosed, 0)] {
        let eject = EjectionSpec { max_share_per_mille: 1000, ..EjectionSpec::default() };
        let mut world =
            World::new(&PoolSpec { eject: Some(eject), on_all_down, ..spec("random", &[1, 1]) });
        world.send(100, |_| Outcome::Failed);
        assert!((0..2).all(|index| world.status(index).state == State::Down));
        // At once, and after the balancer has been compiled.
        for _ in 0..2 {
            assert_eq!(world.send(100, |_| OK).iter().sum::<usize>(), served, "{on_all_down:?}");
            world.pass(TICK);
        }
    }
}

#[test]
fn a_reload_keeps_ejections_and_one_that_switches_them_off_ends_them() {
    let mut world = World::new(&ejecting(&[1, 1, 1]));
    world.send(30, |index| if index == 2 { Outcome::Failed } else { OK });
    let mut moved = ejecting(&[1, 1, 1]);
    moved.endpoints.rotate_right(1);
    world.reload(&moved);
    assert_eq!(world.status(0).state, State::Down);
    assert_eq!(world.send(10, |_| OK), [0, 5, 5]);
    world.reload(&spec("round_robin", &[1, 1, 1]));
    world.pass(TICK);
    assert_eq!(world.status(2).state, State::Ready);
    assert!(world.send(30, |_| OK)[2] >= 9);
}

#[test]
fn a_pool_that_begins_to_eject_does_not_judge_by_what_was_before() {
    let mut world = World::new(&spec("round_robin", &[1, 1]));
    world.send(40, |index| if index == 1 { ERROR } else { OK });
    world.send(4, |_| OK);
    let eject = EjectionSpec { consecutive: NonZeroU32::new(2), ..EjectionSpec::default() };
    world.reload(&PoolSpec { eject: Some(eject), ..spec("round_robin", &[1, 1]) });
    world.pass(SECOND);
    assert_eq!(world.status(1).state, State::Ready);
}

#[test]
fn setting_an_endpoint_ready_ends_its_ejection() {
    let mut world = World::new(&ejecting(&[1, 1, 1]));
    world.send(30, |index| if index == 2 { Outcome::Failed } else { OK });
    world.pass(TICK);
    world.told();
    let event = world.pool.set_admin("e2", Some(Admin::Drain), world.now, 0).unwrap();
    assert_eq!((event, world.status(2).state), (None, State::Down), "it is no less ejected");
    let event = world.pool.set_admin("e2", Some(Admin::Ready), world.now, 0).unwrap().unwrap();
    assert_eq!(event.to_string(), "e2: drain to ready: set to ready by the API");
    world.pass(TICK);
    assert_eq!(world.send(30, |_| OK), [10, 10, 10]);
    assert_eq!(world.told(), ["e2: down to drain: set to drain by the API"]);
}
