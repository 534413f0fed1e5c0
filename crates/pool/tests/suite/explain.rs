//! What is said of a pick is what the pick does, and asking about it changes nothing.

use std::num::NonZeroUsize;
use std::time::Duration;

use crate::support::{TICK, World, any_key, end_one, spec};
use subak_balance::{Key, Score, catalogue};
use subak_base::{BitSet, DecisionId, Rng, Weight};
use subak_health::{Admin, State};
use subak_pool::{
    Acquire, Exclusion, Home, Lease, Outcome, PickedBy, PoolSpec, Refusal, StickTableSpec,
};

fn logged(name: &str, weights: &[u16]) -> PoolSpec {
    let stick_table = Some(StickTableSpec { expire: Duration::from_secs(60), entries: 100 });
    PoolSpec { pick_log: NonZeroUsize::new(12), stick_table, ..spec(name, weights) }
}

/// Whether one score is better than another, both lowest first.
fn is_better(one: Score, other: Score) -> bool {
    one.amount * other.per < other.amount * one.per
}

/// Busy endpoints with caps, back-offs, drains, weights of 0, a backup, sticky clients and reloads:
/// what is explained is what happens then, is what is written down, and is what a replay gives.
#[test]
fn every_pick_of_every_algorithm_is_as_it_was_explained() {
    for listing in catalogue::all() {
        let mut spec = logged(listing.name, &[3, 1, 2, 1, 5, 2]);
        spec.endpoints[1].max_in_flight = Some(2);
        spec.endpoints[4].max_in_flight = Some(6);
        spec.endpoints[5].backup = true;
        let mut world = World::new(&spec);
        let mut random = Rng::new(5);
        let (mut stuck, mut refused, mut last, mut scored) = (0, 0, 0, 0);
        for round in 0..16 {
            let mut held: Vec<Lease<'_>> = Vec::new();
            let mut now = world.now;
            for request in 0..80_u64 {
                now = now.after(Duration::from_millis(random.below(4)));
                let tried: BitSet = (0..6).filter(|_| random.below(4) == 0).collect();
                let mut bytes = [0; 8];
                let key = any_key(listing.name, &mut random, &mut bytes);
                let asked = Acquire {
                    key,
                    random: random.next_u64(),
                    now,
                    stick: (random.below(6) == 0).then(|| random.below(7) as usize),
                    client: (random.below(4) == 0).then(|| random.below(30) << 58),
                    decision: Some(DecisionId::of(request + 1)),
                    ..crate::support::key(b"")
                };
                let explained = world.pool.explain(&asked, &tried);
                assert_eq!(explained, world.pool.explain(&asked, &tried), "asking changes nothing");
                let before = world.pool.pick_log().unwrap().last().map_or(0, |last| last.number);
                let happened = world.pool.acquire(&asked, &tried);
                let given = happened.as_ref().map(Lease::index).map_err(|refusal| *refusal);
                let context = || format!("{}: {explained:#?}", listing.name);
                assert_eq!(explained.given.map(|(index, _)| index), given, "{}", context());
                let Ok(index) = given else {
                    refused += 1;
                    assert!(explained.candidates.iter().all(|one| one.excluded.is_some()));
                    continue;
                };
                let (_, by) = explained.given.unwrap();
                let records = world.pool.pick_log().unwrap();
                let record = &records[records.len() - 1];
                assert_eq!((record.by, record.picked), (by, Some(index)), "{}", context());
                assert_eq!(record.decision, asked.decision);
                let new = records.iter().filter(|one| one.number > before);
                let passed: Vec<_> = new.map(|one| one.picked).collect();
                let expected: Vec<_> = explained.passed.iter().copied().map(Some).collect();
                if by == PickedBy::Balancer {
                    assert_eq!(passed[..passed.len() - 1], expected, "{}", context());
                    assert_eq!(record.replay(), Some(Some(index)), "{}", context());
                    assert_eq!(explained.ticket, record.ticket.or(explained.ticket));
                    // Where all candidates are compared, the one that is picked is the best of them.
                    let compares = !matches!(listing.name, "random" | "power_of_two" | "peak_ewma");
                    let scores = explained.candidates.iter().filter(|one| one.excluded.is_none());
                    let scores: Vec<Score> = scores.filter_map(|one| one.score).collect();
                    if let Some(own) = explained.candidates[index].score
                        && compares
                        && !matches!(listing.name, "hash")
                    {
                        let best = scores.iter().all(|score| !is_better(*score, own));
                        assert!(best, "{}", context());
                        scored += 1;
                    }
                } else if by == PickedBy::Stickiness {
                    let home = explained.home.expect("a home");
                    assert!(home.stays && home.index == index, "{}", context());
                    stuck += 1;
                } else {
                    last += 1;
                }
                held.extend(happened);
                if request % 3 == 0 && !held.is_empty() {
                    end_one(&mut held, &mut random, now);
                }
            }
            drop(held);
            world.now = now;
            world.tick();
            match round % 4 {
                0 => {
                    let wanted = (round % 8 == 0).then_some(Admin::Drain);
                    world.pool.set_admin("e0", wanted, world.now, 0).unwrap();
                }
                1 => {
                    let weight = Weight(random.below(3) as u16);
                    world.pool.set_weight("e2", Some(weight), world.now).unwrap();
                }
                2 => world.pass(20 * TICK),
                _ => world.reload(&spec),
            }
        }
        assert!(
            stuck > 20 && refused > 0 && last > 0,
            "{}: {stuck} {refused} {last}",
            listing.name
        );
        let compares = !matches!(listing.name, "random" | "power_of_two" | "peak_ewma" | "hash");
        assert!(scored > 50 || !compares, "{}: {scored}", listing.name);
    }
}

/// What a record says of the scores is what was compared.
#[test]
fn scores_of_a_record_are_those_of_the_moment() {
    for listing in catalogue::all() {
        let mut world = World::new(&logged(listing.name, &[2, 1, 1]));
        let now = world.now;
        let requests: Vec<_> = (0..5).map(|_| world.request()).collect();
        let asked = Acquire { key: Key::Bytes(b"x"), ..world.request() };
        let take = |request| world.pool.acquire(request, &BitSet::EMPTY).unwrap();
        let held: Vec<_> = requests.iter().map(take).collect();
        let explained = world.pool.explain(&asked, &BitSet::EMPTY);
        drop(world.pool.acquire(&asked, &BitSet::EMPTY));
        held.into_iter().for_each(|lease| lease.settle(crate::support::OK, now));
        let record = world.pool.pick_log().unwrap().pop().unwrap();
        let said = record.scores();
        assert_eq!(said.len(), 3);
        for (index, score) in said.iter().enumerate() {
            let live = explained.candidates[index].score;
            assert!(score.is_none() || *score == live, "{}: {said:?} {live:?}", listing.name);
        }
        assert!(said[record.picked.unwrap()].is_some(), "{}: {said:?}", listing.name);
        let names: Vec<_> = record.endpoints().map(|(name, weight)| (name, weight.0)).collect();
        assert_eq!(names, [("e0", 2), ("e1", 1), ("e2", 1)]);
    }
}

#[test]
fn every_endpoint_that_is_left_out_has_its_reason() {
    let mut spec = spec("least_connections", &[1, 0, 1, 1, 1, 1, 1]);
    spec.endpoints[3].max_in_flight = Some(1);
    spec.endpoints[6].backup = true;
    let mut world = World::new(&spec);
    world.pool.set_admin("e2", Some(Admin::Maintenance), world.now, 0).unwrap();
    world.tick();
    let (request, now) = (world.request(), world.now);
    let only = |index: usize| (0..7).filter(|other| *other != index).collect::<BitSet>();
    let full = world.pool.acquire(&request, &only(3)).unwrap();
    world.pool.acquire(&request, &only(4)).unwrap().settle(Outcome::Unreachable, now);
    let explained = world.pool.explain(&request, &[5].into_iter().collect());
    let why = |index: usize| explained.candidates[index].excluded.clone();
    assert_eq!(why(0), None);
    assert_eq!(why(1), Some(Exclusion::NoWeight));
    let Some(Exclusion::State { state, reason }) = why(2) else { panic!("{:?}", why(2)) };
    assert_eq!(
        (state, reason.to_string()),
        (State::Maintenance, "set to maintenance by the API".into())
    );
    assert_eq!(why(3), Some(Exclusion::Full));
    assert!(matches!(why(4), Some(Exclusion::BackOff { until, .. }) if until > now));
    assert_eq!(why(5), Some(Exclusion::Tried));
    assert_eq!(why(6), Some(Exclusion::NotNeeded));
    assert_eq!(explained.given, Ok((0, PickedBy::Balancer)));
    drop(full);
}

#[test]
fn who_belongs_somewhere_is_told_where_and_whether_that_holds() {
    let mut world = World::new(&logged("round_robin", &[1, 1]));
    let asked = Acquire { client: Some(9), ..world.request() };
    assert_eq!(world.pool.explain(&asked, &BitSet::EMPTY).home, None);
    let index = world.pool.acquire(&asked, &BitSet::EMPTY).unwrap().index();
    let home = |world: &World| world.pool.explain(&asked, &BitSet::EMPTY).home;
    assert_eq!(home(&world), Some(Home { index, by_cookie: false, stays: true }));
    let name = format!("e{index}");
    world.pool.set_admin(&name, Some(Admin::Maintenance), world.now, 0).unwrap();
    world.tick();
    assert_eq!(home(&world), Some(Home { index, by_cookie: false, stays: false }));
    let explained = world.pool.explain(&asked, &[1 - index].into_iter().collect());
    assert_eq!(explained.given, Err(Refusal::NoEndpoint));
}

#[test]
fn another_size_of_the_log_keeps_the_latest_records() {
    let mut world = World::new(&logged("round_robin", &[1, 1]));
    world.send(6, |_| crate::support::OK);
    let smaller = PoolSpec { pick_log: NonZeroUsize::new(2), ..logged("round_robin", &[1, 1]) };
    world.reload(&smaller);
    let numbers = |world: &World| -> Vec<u64> {
        world.pool.pick_log().unwrap().iter().map(|record| record.number).collect()
    };
    assert_eq!(numbers(&world), [5, 6]);
    world.send(1, |_| crate::support::OK);
    assert_eq!(numbers(&world), [6, 7]);
}
