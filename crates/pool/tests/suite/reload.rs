//! A new generation takes everything over by identity, and one that was never put in force nothing.

use std::time::Duration;

use crate::support::{OK, TICK, World, endpoint, spec};
use subak_base::Weight;
use subak_health::{Admin, EjectionSpec, ProbeSpec, State};
use subak_pool::{Outcome, Pool, PoolSpec};

const SECOND: Duration = Duration::from_secs(1);

fn probed(weights: &[u16]) -> PoolSpec {
    PoolSpec {
        probe: Some(ProbeSpec::default()),
        eject: Some(EjectionSpec::default()),
        ..spec("least_connections", weights)
    }
}

#[test]
fn everything_that_was_observed_or_set_stays_with_its_endpoint() {
    let mut world = World::new(&probed(&[1, 1, 1, 1]));
    world.pass_probed(6 * SECOND, |index| index != 0);
    world.send(40, |index| if index == 1 { Outcome::Failed } else { OK });
    world.pool.set_admin("e2", Some(Admin::Drain), world.now, 0).unwrap();
    world.pool.set_weight("e3", Some(Weight(9)), world.now).unwrap();
    world.pass_probed(TICK, |index| index != 0);
    let before: Vec<_> = (0..4).map(|index| world.status(index)).collect();
    let mut changed = probed(&[5, 6, 7, 8]);
    changed.endpoints.reverse();
    changed.endpoints.push(endpoint(9, 1));
    world.reload(&changed);
    for (index, before) in before.iter().enumerate() {
        let after = world.status(3 - index);
        assert_eq!(after.id, before.id);
        assert_eq!((after.hits, after.failures), (before.hits, before.failures));
        assert_eq!((after.state, &after.reason), (before.state, &before.reason));
        assert_eq!(after.since, before.since);
        assert_eq!(after.weight.operator, before.weight.operator);
        assert_eq!(after.last_probe, before.last_probe);
        assert_eq!(after.weight.configured, Weight(5 + index as u16));
    }
    let states: Vec<State> = before.iter().map(|one| one.state).collect();
    assert_eq!(states, [State::Down, State::Down, State::Drain, State::Ready]);
    assert_eq!(world.status(4).state, State::Ready);
}

#[test]
fn an_endpoint_that_leaves_takes_with_it_what_was_set_on_it() {
    let mut world = World::new(&spec("round_robin", &[1, 1]));
    world.pool.set_admin("e1", Some(Admin::Maintenance), world.now, 0).unwrap();
    world.pool.set_weight("e1", Some(Weight(9)), world.now).unwrap();
    let id = world.status(1).id;
    world.reload(&spec("round_robin", &[1]));
    world.reload(&spec("round_robin", &[1, 1]));
    let back = world.status(1);
    assert_ne!(back.id, id);
    assert_eq!((back.state, back.weight.operator), (State::Ready, None));
}

#[test]
fn what_the_file_says_changes_and_what_was_set_by_api_wins() {
    let mut file = spec("round_robin", &[1, 1]);
    let mut world = World::new(&file);
    file.endpoints[1].admin = Admin::Drain;
    world.reload(&file);
    assert_eq!(world.told(), ["e1: ready to drain: set to drain by the configuration"]);
    assert_eq!(world.send(10, |_| OK), [10, 0]);
    world.pool.set_admin("e1", Some(Admin::Ready), world.now, 0).unwrap();
    world.pass(2 * TICK);
    assert_eq!(world.send(10, |_| OK), [5, 5]);
    file.endpoints[1].admin = Admin::Maintenance;
    world.reload(&file);
    assert_eq!(world.send(10, |_| OK), [5, 5]);
    world.pool.set_admin("e1", None, world.now, 0).unwrap();
    world.pass(2 * TICK);
    assert_eq!(world.status(1).state, State::Maintenance);
    assert_eq!(world.send(10, |_| OK), [10, 0]);
}

/// Right from the first request, before the control side has ticked.
#[test]
fn a_new_generation_begins_with_what_is_known() {
    let mut world = World::new(&probed(&[1, 1, 1]));
    world.pass_probed(6 * SECOND, |index| index != 0);
    world.pool.set_weight("e1", Some(Weight(0)), world.now).unwrap();
    world.told();
    let next = Pool::build(&probed(&[4, 4, 4]), &mut world.ids, Some(&world.pool), world.now);
    world.pool = next;
    assert_eq!(world.send(10, |_| OK), [0, 0, 10]);
    assert!(world.told().is_empty());
}

#[test]
fn a_generation_that_is_never_put_in_force_changes_nothing() {
    let mut world = World::new(&probed(&[1, 1]));
    world.pass_probed(4 * SECOND, |_| true);
    let before = world.pool.status(world.now);
    let mut refused = probed(&[9, 9]);
    refused.endpoints[0].admin = Admin::Maintenance;
    refused.probe = None;
    drop(Pool::build(&refused, &mut world.ids, Some(&world.pool), world.now));
    world.ids.keep([&world.pool].into_iter());
    assert_eq!(world.pool.status(world.now), before);
    world.pass_probed(4 * SECOND, |_| true);
    assert!(world.told().is_empty());
}

/// Exchanges that began before a reload fail after it: they count, and eject the right endpoint.
#[test]
fn what_runs_on_under_the_old_generation_still_counts() {
    let mut world = World::new(&probed(&[1, 1]));
    let request = world.request();
    let mut turned = probed(&[1, 1]);
    turned.endpoints.reverse();
    let next = Pool::build(&turned, &mut world.ids, Some(&world.pool), world.now);
    let old = std::mem::replace(&mut world.pool, next);
    let second = [1].into_iter().collect();
    let held: Vec<_> = (0..5).map(|_| old.acquire(&request, &second).unwrap()).collect();
    world.tick();
    // The first of the old list is the second of the new one.
    assert_eq!((world.status(0).in_flight, world.status(1).in_flight), (0, 5));
    for lease in held {
        lease.settle(Outcome::Failed, world.now);
        // The other one answers meanwhile.
        let other = world.pool.acquire(&request, &second).unwrap();
        other.settle(OK, world.now);
    }
    assert_eq!(world.status(0).state, State::Ready);
    world.pass(TICK);
    let states = [0, 1].map(|index| world.status(index).state);
    assert_eq!((world.status(1).in_flight, states), (0, [State::Ready, State::Down]));
    // And the old generation gets no power back by being asked.
    assert_eq!(old.next_due(), None);
    assert!(old.due(world.now.after(SECOND)).is_empty());
}

#[test]
fn probes_that_end_after_a_reload_count_for_the_endpoint_they_asked() {
    let mut world = World::new(&probed(&[1, 1]));
    world.pass(SECOND);
    let due = world.pool.due(world.now);
    assert_eq!(due.len(), 2);
    let mut turned = probed(&[1, 1]);
    turned.endpoints.reverse();
    let next = Pool::build(&turned, &mut world.ids, Some(&world.pool), world.now);
    let old = std::mem::replace(&mut world.pool, next);
    world.tick();
    for due in due {
        let result = match due.index {
            0 => subak_health::ProbeResult::Passed,
            _ => subak_health::ProbeResult::Failed(subak_health::ProbeFailure::Refused),
        };
        old.probed(due.index, due.run, result, world.now, 0);
    }
    // The second of the old list is the first of the new.
    assert_eq!(world.status(0).state, State::Down);
    assert_eq!(world.status(1).state, State::Ready);
}

#[test]
fn an_algorithm_can_be_changed_under_load() {
    let mut world = World::new(&spec("round_robin", &[1, 2]));
    for name in ["least_packets", "peak_ewma", "maglev", "first", "least_response_time", "random"] {
        world.send(50, |_| OK);
        world.reload(&spec(name, &[1, 2]));
        assert_eq!(world.send(50, |_| OK).iter().sum::<usize>(), 50, "{name}");
    }
}
