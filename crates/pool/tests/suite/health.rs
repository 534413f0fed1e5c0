//! What probes, agents and people say decides who takes requests, at which share, and from when on.

use std::time::Duration;

use crate::support::{OK, TICK, World, spec};
use subak_base::{BitSet, Weight};
use subak_health::{Admin, AgentReply, AgentSpec, Because, OnAllDown, ProbeSpec, SlowStart, State};
use subak_pool::{PoolSpec, Question, Refusal, UnknownEndpoint};

const SECOND: Duration = Duration::from_secs(1);

fn probed(weights: &[u16]) -> PoolSpec {
    let probe = ProbeSpec { jitter_per_mille: 0, ..ProbeSpec::default() };
    PoolSpec { probe: Some(probe), ..spec("round_robin", weights) }
}

#[test]
fn an_endpoint_that_fails_its_probes_is_out_within_the_promised_time_and_comes_back() {
    let spec = probed(&[1, 1]);
    let mut world = World::new(&spec);
    world.pass_probed(4 * SECOND, |_| true);
    assert_eq!(world.send(10, |_| OK), [5, 5]);
    assert!(world.told().is_empty());
    let bounds = spec.probe.as_ref().unwrap();
    world.pass_probed(bounds.down_within() + TICK, |index| index != 1);
    assert_eq!(world.send(10, |_| OK), [10, 0]);
    assert_eq!(world.told(), ["e1: ready to down: 3 probes in a row failed: connection refused"]);
    assert_eq!(world.status(1).state, State::Down);
    world.pass_probed(bounds.up_within() + TICK, |_| true);
    assert_eq!(world.send(10, |_| OK), [5, 5]);
    assert_eq!(world.told(), ["e1: down to ready: 2 probes in a row passed"]);
}

#[test]
fn backups_take_over_and_give_back() {
    let mut spec = probed(&[1, 1, 1]);
    spec.endpoints[2].backup = true;
    let mut world = World::new(&spec);
    world.pass_probed(4 * SECOND, |_| true);
    assert_eq!(world.send(10, |_| OK), [5, 5, 0]);
    world.pass_probed(6 * SECOND, |index| index == 2);
    assert_eq!(world.send(10, |_| OK), [0, 0, 10]);
    assert_eq!(world.pool.status(world.now).because, Because::BackupsReady);
    let told = world.told();
    assert_eq!(told.last().unwrap(), "no primary is ready, backups stand in");
    world.pass_probed(6 * SECOND, |_| true);
    assert_eq!(world.send(10, |_| OK), [5, 5, 0]);
}

#[test]
fn a_request_that_has_tried_every_primary_may_go_to_a_backup() {
    let mut spec = spec("round_robin", &[1, 1]);
    spec.endpoints[1].backup = true;
    let mut world = World::new(&spec);
    let request = world.request();
    let tried: BitSet = [0].into_iter().collect();
    assert!(world.pool.has_untried(&tried));
    assert_eq!(world.pool.acquire(&request, &tried).unwrap().index(), 1);
    // But a backup does not take what primaries have only no room for.
    spec.endpoints[0].max_in_flight = Some(1);
    let mut world = World::new(&spec);
    let request = world.request();
    let held = world.pool.acquire(&request, &BitSet::EMPTY).unwrap();
    let refused = world.pool.acquire(&request, &BitSet::EMPTY).unwrap_err();
    assert_eq!((held.index(), refused), (0, Refusal::Saturated));
}

#[test]
fn when_all_are_down_the_policy_decides() {
    let sent = |on_all_down| {
        let mut spec = PoolSpec { on_all_down, ..probed(&[1, 1, 1]) };
        spec.endpoints[2].backup = true;
        let mut world = World::new(&spec);
        world.pass_probed(6 * SECOND, |_| false);
        (world.send(12, |_| OK), world.pool.status(world.now).because)
    };
    assert_eq!(sent(OnAllDown::FailOpen), (vec![4, 4, 4], Because::FailedOpen));
    assert_eq!(sent(OnAllDown::BackupOnly), (vec![0, 0, 12], Because::FailedOpenToBackups));
    assert_eq!(sent(OnAllDown::FailClosed), (vec![0, 0, 0], Because::FailedClosed));
}

#[test]
fn who_comes_back_grows_into_its_share_and_never_shrinks() {
    let slow_start = Some(SlowStart::over(30 * SECOND));
    let mut world = World::new(&PoolSpec { slow_start, ..probed(&[1, 1]) });
    world.pass_probed(4 * SECOND, |_| true);
    assert_eq!(world.send(10, |_| OK), [5, 5], "nobody ramps at the start of the process");
    world.pass_probed(6 * SECOND, |index| index != 1);
    while world.status(1).state != State::Ready {
        world.pass_probed(TICK, |_| true);
    }
    let mut shares = Vec::new();
    for _ in 0..35 {
        world.pass_probed(SECOND, |_| true);
        shares.push(world.send(3_500, |_| OK)[1]);
    }
    assert!((200..=450).contains(&shares[0]), "{shares:?}");
    // One pick of noise: sequences are rebuilt in the middle.
    assert!(shares.is_sorted_by(|before, after| *before <= *after + 2), "{shares:?}");
    assert_eq!(shares[31..], [1750; 4]);
    assert_eq!(world.status(1).weight.in_force, world.status(0).weight.in_force);
}

#[test]
fn one_that_is_alone_takes_everything_however_it_ramps() {
    let slow_start = Some(SlowStart::over(30 * SECOND));
    for name in ["round_robin", "least_connections", "maglev", "hash"] {
        let mut spec = PoolSpec { slow_start, ..probed(&[1, 1]) };
        spec.algorithm = crate::support::algorithm(name);
        let mut world = World::new(&spec);
        world.pass_probed(6 * SECOND, |_| false);
        world.pass_probed(4 * SECOND, |index| index == 1);
        assert_eq!(world.status(1).state, State::Ready);
        for client in 0..100_u32 {
            let bytes = client.to_be_bytes();
            let request = subak_pool::Acquire { now: world.now, ..crate::support::key(&bytes) };
            assert_eq!(world.pool.acquire(&request, &BitSet::EMPTY).unwrap().index(), 1, "{name}");
        }
    }
}

#[test]
fn keys_of_an_endpoint_that_comes_back_are_thinned_and_the_others_stay() {
    let slow_start = Some(SlowStart::over(30 * SECOND));
    let mut spec = PoolSpec { slow_start, ..probed(&[1, 1, 1]) };
    spec.algorithm = crate::support::algorithm("maglev");
    let mut world = World::new(&spec);
    let places = |world: &World| -> Vec<usize> {
        let place = |client: u32| {
            let bytes = client.to_be_bytes();
            let request = subak_pool::Acquire { now: world.now, ..crate::support::key(&bytes) };
            world.pool.acquire(&request, &BitSet::EMPTY).unwrap().index()
        };
        (0..3_000).map(place).collect()
    };
    let before = places(&world);
    let owned = before.iter().filter(|index| **index == 1).count();
    world.pass_probed(6 * SECOND, |index| index != 1);
    assert!(places(&world).iter().all(|index| *index != 1));
    while world.status(1).state != State::Ready {
        world.pass_probed(TICK, |_| true);
    }
    let mut last = 0;
    for _ in 0..7 {
        world.pass_probed(5 * SECOND, |_| true);
        let now = places(&world);
        let back = now.iter().filter(|index| **index == 1).count();
        assert!(back >= last, "{back} after {last}");
        last = back;
    }
    assert_eq!(last, owned);
    assert_eq!(places(&world), before);
}

#[test]
fn people_set_states_and_weights_by_name_address_or_identity() {
    let mut world = World::new(&spec("round_robin", &[1, 1, 2]));
    let now = world.now;
    let event = world.pool.set_admin("e1", Some(Admin::Drain), now, 0).unwrap().unwrap();
    assert_eq!(event.to_string(), "e1: ready to drain: set to drain by the API");
    world.pass(TICK);
    assert_eq!(world.send(9, |_| OK), [3, 0, 6]);
    world.pool.set_weight("127.0.0.1:2", Some(Weight(1)), world.now).unwrap();
    world.pass(TICK);
    assert_eq!(world.send(10, |_| OK), [5, 0, 5]);
    world.pool.set_weight("http://127.0.0.1:2", Some(Weight(0)), world.now).unwrap();
    world.pass(TICK);
    assert_eq!(world.send(10, |_| OK), [10, 0, 0]);
    let weight = world.status(2).weight;
    assert_eq!((weight.configured, weight.operator), (Weight(2), Some(Weight(0))));
    world.pool.set_weight("e2", None, world.now).unwrap();
    world.pool.set_admin("e1", None, world.now, 0).unwrap();
    world.pass(2 * TICK);
    assert_eq!(world.send(12, |_| OK), [3, 3, 6]);
    assert_eq!(world.pool.set_weight("e9", None, world.now), Err(UnknownEndpoint));
    assert_eq!(world.pool.set_admin("", None, world.now, 0), Err(UnknownEndpoint));
}

#[test]
fn an_endpoint_in_maintenance_is_not_probed_and_is_judged_anew_after_it() {
    let mut world = World::new(&probed(&[1, 1]));
    world.pass_probed(6 * SECOND, |index| index != 1);
    assert_eq!(world.status(1).state, State::Down);
    world.pool.set_admin("e1", Some(Admin::Maintenance), world.now, 0).unwrap();
    for _ in 0..100 {
        world.pass(TICK);
        assert!(world.pool.due(world.now).iter().all(|due| due.index != 1));
    }
    world.pool.set_admin("e1", None, world.now, 0).unwrap();
    assert_eq!(world.status(1).state, State::Ready, "nothing is known of it any more");
    world.pass_probed(SECOND, |index| index != 1);
    assert_eq!(world.status(1).state, State::Down, "its first probe decides");
}

fn with_agents() -> PoolSpec {
    let agent = AgentSpec { jitter_per_mille: 0, ..AgentSpec::default() };
    PoolSpec { agent: Some(agent), ..spec("round_robin", &[1, 1]) }
}

/// Lets the agent of e1 say this line when it is asked next; that of e0 does not answer.
fn say(world: &mut World, line: &str) {
    loop {
        world.pass(TICK);
        let due = world.pool.due(world.now);
        let mut said = false;
        for due in due {
            assert_eq!(due.question, Question::Agent);
            let reply = AgentReply::parse(line.as_bytes()).0;
            let reply = (due.index == 1).then_some(&reply);
            let event = world.pool.agent_answered(due.index, due.run, reply, world.now, 0);
            world.events.extend(event);
            said |= due.index == 1;
        }
        if said {
            return world.pass(TICK);
        }
    }
}

#[test]
fn what_an_agent_says_of_a_service_that_stays_down_is_told_once() {
    let mut world = World::new(&with_agents());
    for line in ["down # a", "down # a", "fail # b", "fail # b"] {
        say(&mut world, line);
    }
    let expected =
        ["e1: ready to down: its agent says down: a", "e1: still down: its agent says fail: b"];
    assert_eq!(world.told(), expected);
    assert_eq!(world.status(1).reason.to_string(), "its agent says fail: b");
    // A reload that takes the agents away takes back what they said.
    world.reload(&spec("round_robin", &[1, 1]));
    assert_eq!(world.told(), ["e1: down to ready: its agent is not asked any more"]);
    assert_eq!(world.status(1).reason.to_string(), "its agent is not asked any more");
}

#[test]
fn a_pool_without_weight_says_that_this_is_why() {
    let world = World::new(&spec("round_robin", &[0, 0]));
    let status = world.pool.status(world.now);
    assert_eq!(
        status.because.to_string(),
        "none may take new work (drain, maintenance or weight 0)"
    );
    for endpoint in status.endpoints {
        assert_eq!((endpoint.state, endpoint.is_eligible), (State::Ready, false));
        assert_eq!(endpoint.reason.to_string(), "its weight is 0");
    }
}

#[test]
fn agents_weigh_drain_and_cap_their_endpoints() {
    let mut world = World::new(&with_agents());
    say(&mut world, "50%");
    assert_eq!(world.send(12, |_| OK), [8, 4]);
    assert_eq!(world.status(1).weight.agent_percent, 50);
    say(&mut world, "0%");
    assert_eq!(world.send(10, |_| OK), [10, 0]);
    assert_eq!(world.status(1).reason.to_string(), "its weight is 0");
    say(&mut world, "100% maxconn:1");
    assert_eq!(world.status(1).max_in_flight, Some(1));
    let request = world.request();
    let held: Vec<_> =
        (0..4).map(|_| world.pool.acquire(&request, &BitSet::EMPTY).unwrap()).collect();
    assert_eq!(held.iter().filter(|lease| lease.index() == 1).count(), 1);
    drop(held);
    say(&mut world, "maint");
    assert_eq!(world.status(1).state, State::Maintenance);
    say(&mut world, "ready");
    assert_eq!(world.status(1).state, State::Ready, "its agent was asked in maintenance too");
    let expected = [
        "e1: ready to maintenance: set to maintenance by its agent",
        "e1: maintenance to ready: set to ready by its agent",
    ];
    assert_eq!(world.told(), expected);
}

#[test]
fn weighers_shift_shares_where_weights_may_change() {
    use subak_balance::weights::Factor;
    let shares = |name: &str| {
        let mut world = World::new(&spec(name, &[1, 1]));
        world.pool.set_factors(
            &[(0, Factor::from_1024ths(512)), (1, Factor::from_1024ths(1536))],
            world.now,
        );
        world.pass(TICK);
        let weights: Vec<u16> = (0..2).map(|index| world.status(index).weight.in_force.0).collect();
        weights
    };
    assert_eq!(shares("round_robin"), [1, 3]);
    assert_eq!(shares("ip_hash"), [1, 1]);
}

#[test]
fn questions_are_asked_in_time_and_an_answer_that_was_given_up_is_ignored() {
    let mut world = World::new(&probed(&[1]));
    let next = world.pool.next_due().unwrap();
    assert!(next.since(world.now) <= Duration::from_millis(500));
    world.now = next;
    let lost = world.pool.due(world.now)[0];
    assert!(world.pool.due(world.now).is_empty(), "one at a time");
    world.now = world.pool.next_due().unwrap();
    let again = world.pool.due(world.now)[0];
    let failed = || subak_health::ProbeResult::Failed(subak_health::ProbeFailure::Reset);
    assert!(world.pool.probed(0, lost.run, failed(), world.now, 0).is_none());
    assert_eq!(world.status(0).last_probe, None);
    assert!(world.pool.probed(0, again.run, failed(), world.now, 0).is_some());
    assert!(world.pool.probed(9, again.run, failed(), world.now, 0).is_none());
    assert_eq!(World::new(&spec("random", &[1])).pool.next_due(), None);
}
