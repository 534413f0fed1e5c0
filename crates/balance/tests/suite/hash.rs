//! The methods of `hash`: their formulas, who moves when somebody goes, bounds and slow start.

use crate::support::{Pool, endpoints};
use subak_balance::catalogue::{self, OptionError, OptionValue};
use subak_balance::{Algorithm, Endpoints, Entry, FULL, Key, hash64};
use subak_base::{BitSet, Rng, Weight};

const METHODS: [&str; 5] = ["modulo", "nginx_modulo", "ring", "maglev", "rendezvous"];
const CONSISTENT: [&str; 3] = ["ring", "maglev", "rendezvous"];

fn method(name: &str) -> Algorithm {
    catalogue::find("hash").unwrap().configure("hash", &[("method", name.into())]).unwrap()
}

fn bounded(name: &str, factor: u32) -> Algorithm {
    let options = [("method", name.into()), ("balance_factor", OptionValue::Thousandths(factor))];
    catalogue::find("hash").unwrap().configure("hash", &options).unwrap()
}

/// Numbers as keys.
fn keys(count: u32) -> impl Iterator<Item = [u8; 4]> {
    (0..count).map(u32::to_be_bytes)
}

fn pick(pool: &mut Pool, key: &[u8]) -> usize {
    pool.pick_with(Key::Bytes(key), &BitSet::EMPTY).expect("one is eligible")
}

fn picks(pool: &mut Pool, count: u32) -> Vec<usize> {
    keys(count).map(|key| pick(pool, &key)).collect()
}

#[test]
fn modulo_is_the_hash_modulo_the_sum_of_weights() {
    let weights: [u16; 4] = [3, 0, 1, 5];
    let mut pool = Pool::new(method("modulo"), endpoints(&weights));
    for key in keys(20_000) {
        let mut slot = hash64(&key, 0) % 9;
        let mut expected = 0;
        while slot >= u64::from(weights[expected]) {
            slot -= u64::from(weights[expected]);
            expected += 1;
        }
        assert_eq!(pick(&mut pool, &key), expected);
    }
    // An address hashes as its octets, v4-mapped ones as IPv4.
    for (address, octets) in
        [("192.0.2.1", &[192, 0, 2, 1][..]), ("::ffff:192.0.2.1", &[192, 0, 2, 1])]
    {
        let by_address = pool.pick_for(address.parse().unwrap(), &BitSet::EMPTY);
        assert_eq!(by_address, Some(pick(&mut pool, octets)));
    }
}

#[test]
fn common_factors_of_the_weights_do_not_matter_to_modulo() {
    let mut one = Pool::new(method("modulo"), endpoints(&[3, 1, 2]));
    let mut other = Pool::new(method("modulo"), endpoints(&[300, 100, 200]));
    assert_eq!(picks(&mut one, 2_000), picks(&mut other, 2_000));
}

/// When somebody is left out, only its own keys move, and they are shared by weight; whether the
/// balancer was compiled for that or finds out at the pick; and all come back.
#[test]
fn whoever_is_out_is_replaced_by_all_others_and_nobody_else_moves() {
    for name in METHODS {
        let weights = [4, 2, 3, 1, 2];
        let mut pool = Pool::new(method(name), endpoints(&weights));
        let before = picks(&mut pool, 30_000);
        for gone in 0..5 {
            pool.eligible.remove(gone);
            let found_out = picks(&mut pool, 30_000);
            let eligible = pool.eligible.clone();
            pool.set_eligible(eligible);
            let compiled = picks(&mut pool, 30_000);
            // Maglev tables are compiled for who is eligible, and a pick walks on in the older one.
            assert!(name == "maglev" || found_out == compiled, "{name}");
            let mut share = [0; 5];
            for (before, after) in before.iter().zip(&compiled) {
                if *before == gone {
                    share[*after] += 1;
                } else if name != "maglev" {
                    assert_eq!(before, after, "{name} without {gone}");
                }
            }
            let moved: u32 = share.iter().sum();
            let others = 12 - u32::from(weights[gone]);
            for other in (0..5).filter(|other| *other != gone) {
                let due = moved * u32::from(weights[other]) / others;
                let allowed = match name {
                    // What nginx makes of a checksum that is linear: its points are not spread as by
                    // chance, and its second round knows where the first one went.
                    "ring" | "nginx_modulo" => due,
                    _ => due / 5,
                };
                let share = share[other];
                assert!(share.abs_diff(due) <= allowed, "{name}: {share} of {moved} for {due}");
            }
            pool.set_eligible(BitSet::full(5));
        }
        assert_eq!(picks(&mut pool, 30_000), before, "{name}");
    }
}

#[test]
fn one_endpoint_more_moves_few_keys_of_a_consistent_method_and_most_of_the_others() {
    for name in METHODS {
        let named = |count: usize| {
            let entry = |number: usize| {
                let name = format!("10.0.0.{number}:80");
                Entry::new(format!("http://{name}"), name, Weight(1))
            };
            Endpoints::new((0..count).map(entry).collect()).unwrap()
        };
        let before = picks(&mut Pool::new(method(name), named(20)), 20_000);
        let after = picks(&mut Pool::new(method(name), named(21)), 20_000);
        let moved = before.iter().zip(&after).filter(|(one, other)| one != other).count();
        if CONSISTENT.contains(&name) {
            assert!((600..1_400).contains(&moved), "{name}: {moved} of 20,000");
        } else {
            assert!(moved > 15_000, "{name}: {moved} of 20,000");
        }
    }
}

#[test]
fn a_weight_that_changes_moves_keys_to_or_from_its_endpoint_alone_by_rendezvous() {
    let before = picks(&mut Pool::new(method("rendezvous"), endpoints(&[2, 3, 4])), 20_000);
    let after = picks(&mut Pool::new(method("rendezvous"), endpoints(&[2, 5, 4])), 20_000);
    let moved: Vec<_> = before.iter().zip(&after).filter(|(one, other)| one != other).collect();
    assert!(moved.iter().all(|(_, to)| **to == 1) && moved.len() > 1_000, "{}", moved.len());
}

#[test]
fn requests_without_a_key_are_served_in_turn() {
    for name in METHODS {
        let mut pool = Pool::new(method(name), endpoints(&[1, 2]));
        for key in [Key::None, Key::Bytes(b"")] {
            let picks = [(); 3].map(|()| pool.pick_with(key, &BitSet::EMPTY).unwrap());
            assert_eq!(picks, [1, 0, 1], "{name}");
        }
    }
}

/// The capacities at every pick, by the formula: ⌈c · (A + 1) · w ÷ Σw⌉.
fn capacity(pool: &Pool, tried: &BitSet, factor: u64, index: usize) -> u64 {
    let candidates = pool.candidates(tried);
    let in_flight: u64 = candidates.iter().map(|i| u64::from(pool.loads.in_flight[*i])).sum();
    let weights: u64 = candidates.iter().map(|i| pool.weights()[*i]).sum();
    (factor * (in_flight + 1) * pool.weights()[index]).div_ceil(1000 * weights)
}

#[test]
fn nobody_has_more_than_the_bound_and_a_key_stays_where_there_is_room() {
    for name in CONSISTENT {
        for factor in [1_010, 1_250, 2_000] {
            let (mut pool, mut free) = (
                Pool::new(bounded(name, factor), endpoints(&[3, 1, 0, 2, 2])),
                Pool::new(method(name), endpoints(&[3, 1, 0, 2, 2])),
            );
            let mut rng = Rng::new(7);
            let mut in_flight: Vec<usize> = Vec::new();
            let (mut stayed, mut moved) = (0, 0);
            for _ in 0..5_000 {
                // A few keys make most of the requests.
                let key = (rng.below(12) * rng.below(12)).to_be_bytes();
                let tried: BitSet = (0..5).filter(|_| rng.below(8) == 0).collect();
                let Some(picked) = pool.pick_with(Key::Bytes(&key), &tried) else {
                    assert!(pool.candidates(&tried).is_empty());
                    continue;
                };
                let room = capacity(&pool, &tried, u64::from(factor), picked);
                let load = u64::from(pool.loads.in_flight[picked]);
                assert!(load < room, "{name}: {load} in flight where {room} may be");
                let home = free.pick_with(Key::Bytes(&key), &tried).unwrap();
                let has_room = u64::from(pool.loads.in_flight[home])
                    < capacity(&pool, &tried, u64::from(factor), home);
                assert!(!has_room || picked == home, "{name}: {picked}, though {home} has room");
                *(if picked == home { &mut stayed } else { &mut moved }) += 1;
                pool.loads.in_flight[picked] += 1;
                in_flight.push(picked);
                while in_flight.len() > 60 {
                    let ends = rng.below(in_flight.len() as u64) as usize;
                    pool.loads.in_flight[in_flight.swap_remove(ends)] -= 1;
                }
            }
            let enough = if factor == 1_010 { 100 } else { 1 };
            assert!(moved >= enough && stayed > 1_000, "{name} {factor}: {stayed} and {moved}");
        }
    }
}

#[test]
fn a_bound_goes_with_the_consistent_methods_only() {
    let hash = catalogue::find("hash").unwrap();
    let factor = ("balance_factor", OptionValue::Thousandths(1_250));
    for name in METHODS {
        let refused = hash.configure("hash", &[("method", name.into()), factor]);
        let is_conflict = matches!(refused, Err(OptionError::Conflict { .. }));
        assert_eq!(is_conflict, !CONSISTENT.contains(&name), "{name}");
    }
}

#[test]
fn in_slow_start_an_endpoint_takes_some_keys_and_keeps_them_while_others_come() {
    for name in CONSISTENT {
        let mut pool = Pool::new(method(name), endpoints(&[1, 1, 1]));
        let whole = picks(&mut pool, 10_000);
        let (mut last, mut had) = (Vec::new(), 0);
        for ramp in [0, 102, 512, 1_000, FULL] {
            pool.loads.ramps[1] = ramp;
            let now = picks(&mut pool, 10_000);
            let own = now.iter().filter(|index| **index == 1).count();
            let due = whole.iter().filter(|index| **index == 1).count() * usize::from(ramp) / 1024;
            assert!(own.abs_diff(due) <= due / 10 + 20, "{name} at {ramp}: {own} for {due}");
            assert!(own >= had);
            had = own;
            for (key, (now, whole)) in now.iter().zip(&whole).enumerate() {
                // A key of another endpoint does not move, and one that has come stays.
                assert!(*whole == 1 || now == whole, "{name}: key {key}");
                assert!(last.get(key) != Some(&1) || *now == 1, "{name}: key {key} left");
            }
            last = now;
        }
        assert_eq!(last, whole);
    }
}

#[test]
fn a_single_eligible_endpoint_takes_all_however_slow_it_starts() {
    for name in CONSISTENT {
        for algorithm in [method(name), bounded(name, 1_010)] {
            let mut pool = Pool::new(algorithm, endpoints(&[1, 1, 1]));
            pool.loads.ramps = vec![0; 3];
            pool.loads.in_flight = vec![1_000, 0, 0];
            pool.set_eligible([0].into_iter().collect());
            assert_eq!(picks(&mut pool, 100), [0; 100], "{name}");
            // All of them in slow start: as if none were.
            pool.loads.in_flight = vec![5; 3];
            pool.set_eligible(BitSet::full(3));
            let mut free = Pool::new(method(name), endpoints(&[1, 1, 1]));
            assert_eq!(picks(&mut pool, 100), picks(&mut free, 100), "{name}");
        }
    }
}

#[test]
fn a_ring_that_would_be_too_long_is_refused_and_one_that_became_so_is_rounded() {
    let ring = method("ring");
    let fits = endpoints(&[6_553]);
    assert_eq!(ring.check(&fits), Ok(()));
    let error = ring.check(&endpoints(&[6_553, 1])).unwrap_err();
    assert!(error.to_string().contains("need 1048640"), "{error}");
    assert_eq!(method("maglev").check(&endpoints(&[65_535, 65_535])), Ok(()));
    // Weights that a weigher makes are not checked: the shares hold all the same.
    let mut pool = Pool::new(ring, endpoints(&[60_000, 30_000]));
    let first = picks(&mut pool, 10_000).iter().filter(|index| **index == 0).count();
    assert!(first.abs_diff(6_667) < 200, "{first}");
}

#[test]
fn most_of_a_large_pool_may_be_out_and_the_rest_is_found() {
    for name in METHODS {
        let mut pool = Pool::new(method(name), endpoints(&vec![1; 500]));
        pool.eligible = [77, 401].into_iter().collect();
        let picks = picks(&mut pool, 400);
        let first = picks.iter().filter(|index| **index == 77).count();
        assert!(picks.iter().all(|index| [77, 401].contains(index)), "{name}");
        assert!((100..300).contains(&first), "{name}: {first}");
    }
}
