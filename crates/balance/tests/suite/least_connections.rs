//! `least_connections` against an obvious oracle on every small case, and its ties.

use std::cell::RefCell;

use crate::support::{Pool, endpoints};
use subak_balance::{Algorithm, Key, LoadView, PickRequest};
use subak_base::{BitSet, Rng, Tick};

/// Candidates with the smallest a ÷ w. Weights are 1, 2 or 3: in sixths, that is a whole number.
fn least_loaded(pool: &Pool, tried: &BitSet) -> Vec<usize> {
    let sixths = |index: &usize| pool.loads.in_flight[*index] * 6 / pool.weights()[*index] as u32;
    let candidates = pool.candidates(tried);
    let least = candidates.iter().map(sixths).min();
    candidates.into_iter().filter(|index| Some(sixths(index)) == least).collect()
}

fn request<'a>(pool: &'a Pool, random: u64, tried: &'a BitSet) -> PickRequest<'a> {
    let (tickets, eligible) = (&pool.tickets, &pool.eligible);
    PickRequest { tickets, random, now: Tick(0), key: Key::None, eligible, tried }
}

/// The digits of `code` in base `base`.
fn digits(code: u32, base: u32, count: u32) -> impl Iterator<Item = u32> {
    (0..count).map(move |digit| code / base.pow(digit) % base)
}

#[test]
fn every_small_case() {
    for weights in 0..4_u32.pow(3) {
        let weights: Vec<u16> = digits(weights, 4, 3).map(|weight| weight as u16).collect();
        let mut pool = Pool::new(Algorithm::LeastConnections, endpoints(&weights));
        for loads in 0..5_u32.pow(3) {
            pool.loads.in_flight = digits(loads, 5, 3).collect();
            for tried in 0..8 {
                let tried: BitSet = (0..3).filter(|index| tried >> index & 1 == 1).collect();
                let least = least_loaded(&pool, &tried);
                let all = pool.candidates(&tried);
                let tickets = pool.tickets.0.get();

                let picked = pool.pick_with(Key::None, &tried);

                match picked {
                    Some(index) => assert!(least.contains(&index), "{index} of {least:?}"),
                    None => assert!(least.is_empty()),
                }
                // The shared counter is touched by a full tie only.
                let drawn = pool.tickets.0.get() - tickets;
                let is_full_tie = least.len() > 1 && least.len() == all.len();
                assert_eq!(drawn, u64::from(is_full_tie), "{least:?} of {all:?}");
            }
        }
    }
}

#[test]
fn an_idle_or_equally_loaded_pool_is_served_in_turn() {
    let round_robin = Algorithm::RoundRobin { order: Default::default() };
    let expected = Pool::new(round_robin, endpoints(&[5, 1, 1])).picks(21);
    let mut pool = Pool::new(Algorithm::LeastConnections, endpoints(&[5, 1, 1]));
    assert_eq!(pool.picks(21), expected);
    pool.loads.in_flight = vec![10, 2, 2];
    assert_eq!(pool.picks(21), expected);
}

#[test]
fn those_tied_are_chosen_by_weight_and_no_neighbour_is_favoured() {
    // One of four is busy. The next in turn after it would get twice its due.
    let mut pool = Pool::new(Algorithm::LeastConnections, endpoints(&[1, 1, 1, 1]));
    pool.loads.in_flight = vec![0, 7, 0, 0];
    let mut hits = [0_u32; 4];
    pool.picks(30_000).into_iter().for_each(|index| hits[index] += 1);
    assert_eq!(hits[1], 0);
    for index in [0, 2, 3] {
        assert!(hits[index].abs_diff(10_000) < 400, "{hits:?}");
    }
}

#[test]
fn the_random_word_maps_evenly_onto_the_tied_in_list_order() {
    let mut pool = Pool::new(Algorithm::LeastConnections, endpoints(&[3, 9, 1, 2]));
    pool.loads.in_flight = vec![3, 10, 1, 2];
    let sixtieth = u64::MAX / 60;
    let picks: Vec<_> = (0..60)
        .map(|step| {
            let random = step * sixtieth + sixtieth / 2;
            pool.balancer.pick(&pool.loads, &request(&pool, random, &BitSet::EMPTY)).unwrap()
        })
        .collect();
    assert_eq!(picks, [vec![0; 30], vec![2; 10], vec![3; 20]].concat());
}

#[test]
fn loads_of_any_size_are_compared_without_rounding() {
    let mut pool = Pool::new(Algorithm::LeastConnections, endpoints(&[65_535, 65_534]));
    pool.loads.in_flight = vec![u32::MAX, u32::MAX];
    assert_eq!(pool.picks(3), [0; 3]);
    pool.loads.in_flight = vec![u32::MAX, u32::MAX - 65_538];
    // (2³² − 65,539) ÷ 65,534 is less than (2³² − 1) ÷ 65,535 = 65,537 by less than one in 10⁹.
    assert_eq!(pool.picks(3), [1; 3]);
}

#[test]
fn a_load_view_that_changes_between_two_looks_still_gets_a_candidate() {
    struct Restless(RefCell<Rng>);
    impl LoadView for Restless {
        fn in_flight(&self, _: usize) -> u32 {
            self.0.borrow_mut().below(3) as u32
        }
    }
    let pool = Pool::new(Algorithm::LeastConnections, endpoints(&[1, 2, 0, 1, 3]));
    let view = Restless(RefCell::new(Rng::new(3)));
    let mut random = Rng::new(4);
    let tried: BitSet = [3].into_iter().collect();
    let mut hits = [0; 5];
    for _ in 0..3_000 {
        let request = request(&pool, random.next_u64(), &tried);
        hits[pool.balancer.pick(&view, &request).unwrap()] += 1;
    }
    assert_eq!((hits[2], hits[3]), (0, 0));
    assert!(hits[0] > 0 && hits[1] > 0 && hits[4] > 0, "{hits:?}");
}
