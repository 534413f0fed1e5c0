//! A pick can be repeated bit for bit from what was written down of it, whatever the algorithm.

use std::num::NonZeroUsize;
use std::time::Duration;

use crate::support::{OK, TICK, World, any_key, end_one, spec};
use subak_balance::{Key, catalogue};
use subak_base::{BitSet, Rng};
use subak_health::Admin;
use subak_pool::{Acquire, Lease, Outcome, PickedBy, PoolSpec, RecordedKey};

fn logged(name: &str, weights: &[u16], length: usize) -> PoolSpec {
    PoolSpec { pick_log: NonZeroUsize::new(length), ..spec(name, weights) }
}

/// Busy endpoints with caps, failures, packets, changing weights and reloads, and every record replayed.
#[test]
fn every_algorithm_picks_again_what_it_picked() {
    for listing in catalogue::all() {
        let mut spec = logged(listing.name, &[3, 1, 2, 1, 5], 100_000);
        spec.endpoints[1].max_in_flight = Some(2);
        let mut world = World::new(&spec);
        let mut random = Rng::new(11);
        for round in 0..12 {
            let mut held: Vec<Lease<'_>> = Vec::new();
            let mut now = world.now;
            for request in 0..60_u64 {
                now = now.after(Duration::from_millis(random.below(4)));
                let tried: BitSet = (0..5).filter(|_| random.below(5) == 0).collect();
                let mut bytes = [0; 8];
                let key = any_key(listing.name, &mut random, &mut bytes);
                let word = random.next_u64();
                let asked = Acquire { key, random: word, now, ..crate::support::key(b"") };
                held.extend(world.pool.acquire(&asked, &tried));
                if request % 3 == 0 && !held.is_empty() {
                    end_one(&mut held, &mut random, now);
                }
            }
            drop(held);
            world.now = now;
            world.tick();
            if round % 4 == 1 {
                let weight = subak_base::Weight(random.below(4) as u16);
                world.pool.set_weight("e2", Some(weight), world.now).unwrap();
            }
            if round % 4 == 3 {
                world.reload(&spec);
            }
        }
        let records = world.pool.pick_log().unwrap();
        assert!(records.len() > 600, "{}: {}", listing.name, records.len());
        assert!(records.iter().any(|record| record.version > 0));
        assert!(records.iter().any(|record| record.generation > 2));
        let balanced = records.iter().filter(|record| record.by == PickedBy::Balancer);
        for record in balanced {
            assert_eq!(record.replay(), Some(record.picked), "{}: {record:?}", listing.name);
        }
    }
}

#[test]
fn a_record_that_was_tampered_with_does_not_replay() {
    let mut world = World::new(&logged("least_connections", &[1, 1, 1], 10));
    drop(world.acquire());
    let mut record = world.pool.pick_log().unwrap().remove(0);
    assert_eq!(record.replay(), Some(record.picked));
    assert!(record.eligible().count() == 3 && record.ticket.is_some());
    record.reads = record.reads[1..].into();
    assert_eq!(record.replay(), None);
}

#[test]
fn the_log_keeps_the_latest_and_says_how_they_ended() {
    let mut world = World::new(&logged("round_robin", &[1, 1], 4));
    world.send(6, |_| OK);
    let now = world.now;
    let held = world.acquire().unwrap();
    held.settle(Outcome::Failed, now);
    let request = world.request();
    let under_way = world.pool.acquire(&request, &BitSet::EMPTY).unwrap();
    let records = world.pool.pick_log().unwrap();
    let numbers: Vec<u64> = records.iter().map(|record| record.number).collect();
    assert_eq!(numbers, [5, 6, 7, 8]);
    let outcomes: Vec<_> = records.iter().map(|record| record.outcome).collect();
    assert_eq!(outcomes, [Some(OK), Some(OK), Some(Outcome::Failed), None]);
    drop(under_way);
    let ended = world.pool.pick_log().unwrap().pop().unwrap();
    assert_eq!(ended.outcome, Some(Outcome::Cancelled), "dropped without a word");
    assert!(World::new(&spec("round_robin", &[1])).pool.pick_log().is_none());
}

#[test]
fn decisions_that_no_balancer_made_are_there_too() {
    let mut world = World::new(&logged("round_robin", &[1, 1], 10));
    let request = Acquire { stick: Some(1), ..world.request() };
    drop(world.pool.acquire(&request, &BitSet::EMPTY));
    world.pool.set_admin("e1", Some(Admin::Maintenance), world.now, 0).unwrap();
    world.pass(2 * TICK);
    let now = world.now;
    world.acquire().unwrap().settle(Outcome::Unreachable, now);
    let request = Acquire { key: Key::Bytes(b"x"), ..world.request() };
    assert_eq!(world.pool.acquire(&request, &BitSet::EMPTY).unwrap().index(), 0);
    let records = world.pool.pick_log().unwrap();
    let by = |by| records.iter().filter(|record| record.by == by).collect::<Vec<_>>();
    let stuck = by(PickedBy::Stickiness);
    assert_eq!((stuck.len(), stuck[0].picked, stuck[0].replay()), (1, Some(1), None));
    let last = by(PickedBy::LastResort);
    assert_eq!((last.len(), last[0].picked), (1, Some(0)));
    assert_eq!(last[0].key, RecordedKey::Bytes((*b"x").into()));
}
