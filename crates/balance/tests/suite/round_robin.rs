//! Round robin against the plain step-by-step form, over changes, and at its limits.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::support::{Loads, Pool, endpoints, named, some_of};
use proptest::prelude::*;
use subak_balance::{
    Algorithm, Balancer, Key, Order, PickRequest, Previous, Recipe, Table, Tickets,
};
use subak_base::{BitSet, Rng, Tick};

const SMOOTH: Algorithm = Algorithm::RoundRobin { order: Order::Smooth };
const BURST: Algorithm = Algorithm::RoundRobin { order: Order::Burst };

/// Smooth weighted round robin as it is usually written: one step, all endpoints.
struct StepByStep {
    weights: Vec<i64>,
    current: Vec<i64>,
}

impl StepByStep {
    fn new(weights: &[u16]) -> StepByStep {
        let weights: Vec<_> = weights.iter().map(|weight| i64::from(*weight)).collect();
        StepByStep { current: vec![0; weights.len()], weights }
    }

    fn pick(&mut self) -> usize {
        let mut best: Option<usize> = None;
        for index in (0..self.weights.len()).filter(|index| self.weights[*index] > 0) {
            self.current[index] += self.weights[index];
            if best.is_none_or(|best| self.current[index] > self.current[best]) {
                best = Some(index);
            }
        }
        let best = best.unwrap();
        self.current[best] -= self.weights.iter().sum::<i64>();
        best
    }
}

fn letters(picks: &[usize]) -> String {
    picks.iter().map(|index| char::from(b'a' + *index as u8)).collect()
}

#[test]
fn the_sequences_everyone_quotes() {
    let sequence = |algorithm, weights: &[u16], count| {
        letters(&Pool::new(algorithm, endpoints(weights)).picks(count))
    };
    assert_eq!(sequence(SMOOTH, &[5, 1, 1], 14), "aabacaaaabacaa");
    assert_eq!(sequence(BURST, &[5, 1, 1], 14), "aaaaabcaaaaabc");
    assert_eq!(sequence(SMOOTH, &[2, 2], 4), "abab");
    assert_eq!(sequence(BURST, &[2, 2], 4), "aabb");
    assert_eq!(sequence(SMOOTH, &[0, 3], 4), "bbbb");
}

#[test]
fn hits_of_thirty_requests() {
    for (weights, expected) in [([2, 1, 1], [15, 8, 7]), ([3, 1, 1], [18, 6, 6])] {
        let mut hits = [0; 3];
        Pool::new(SMOOTH, endpoints(&weights)).picks(30).into_iter().for_each(|i| hits[i] += 1);
        assert_eq!(hits, expected);
    }
}

#[test]
fn equals_the_step_by_step_form_for_all_small_weights() {
    for code in 1..6_u32.pow(4) {
        let weights: Vec<u16> = (0..4).map(|digit| (code / 6_u32.pow(digit) % 6) as u16).collect();
        let mut oracle = StepByStep::new(&weights);
        let expected: Vec<_> = (0..45).map(|_| oracle.pick()).collect();
        assert_eq!(Pool::new(SMOOTH, endpoints(&weights)).picks(45), expected, "{weights:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn equals_the_step_by_step_form(weights in prop::collection::vec(0_u16..500, 1..40)) {
        prop_assume!(weights.iter().any(|weight| *weight > 0));
        let mut oracle = StepByStep::new(&weights);
        let mut pool = Pool::new(SMOOTH, endpoints(&weights));
        for pick in 0..2_000 {
            prop_assert_eq!(pool.pick(), Some(oracle.pick()), "pick {}", pick);
        }
    }

    #[test]
    fn rebuilding_at_any_moment_for_the_same_endpoints_changes_nothing(
        weights in prop::collection::vec(1_u16..30, 1..12),
        order in prop::sample::select(vec![SMOOTH, BURST]),
        at in prop::collection::vec(0_usize..100, 1..20),
    ) {
        let mut left_alone = Pool::new(order.clone(), endpoints(&weights));
        let mut rebuilt = Pool::new(order, endpoints(&weights));
        for picks in at {
            rebuilt.set_eligible(BitSet::full(weights.len()));
            prop_assert_eq!(rebuilt.picks(picks), left_alone.picks(picks));
        }
    }
}

#[test]
fn every_cycle_fits_its_bound_and_everyone_has_a_part() {
    let one_and_all = endpoints(&[65_535, 65_534, 1]);
    let pool = Pool::new(SMOOTH, one_and_all.clone());
    assert_eq!(pool.balancer.shares(), [32_768, 32_767, 1]);
    let pool = Pool::new(BURST, one_and_all);
    assert_eq!(pool.balancer.shares(), [32_768, 32_767, 1]);
    // More endpoints than the longest cycle has picks: one each.
    let crowd: Vec<u16> = (0..70_000).map(|index| 1 + index as u16 % 2).collect();
    let pool = Pool::new(SMOOTH, endpoints(&crowd));
    assert!(pool.balancer.shares().iter().all(|share| *share == 1));
}

/// One way the pool changes at random while it picks.
struct Churn {
    name: &'static str,
    endpoints: u64,
    weight_max: u64,
    /// A change comes on average every so many picks.
    every: u64,
    /// How often, of ten changes, weights are set or endpoints replaced by new ones instead of one
    /// going or coming back.
    edits: u64,
}

/// What an endpoint got more, or less, than its share of every pick it was eligible for.
fn furthest_from_ideal(churn: &Churn, seed: u64) -> f64 {
    let mut rng = Rng::new(seed);
    let weight = |rng: &mut Rng| 1 + rng.below(churn.weight_max) as u16;
    let mut list: Vec<(usize, u16)> =
        (0..churn.endpoints as usize).map(|number| (number, weight(&mut rng))).collect();
    let mut fresh = list.len();
    let mut pool = Pool::new(SMOOTH, named(list.clone()));
    let mut off = vec![0.0; list.len()];
    let mut furthest: f64 = 0.0;
    for _ in 0..1_000 {
        if rng.below(churn.every) == 0 {
            let place = rng.below(churn.endpoints) as usize;
            let mut eligible = pool.eligible.clone();
            match rng.below(10) {
                0 if churn.edits > 0 => {
                    list[place] = (fresh, weight(&mut rng));
                    off[place] = 0.0;
                    eligible.insert(place);
                    fresh += 1;
                }
                edit if edit < churn.edits => list[place].1 = weight(&mut rng),
                _ if eligible.contains(place) && eligible.count() > 1 => eligible.remove(place),
                _ => eligible.insert(place),
            }
            pool.replace(named(list.clone()), eligible);
        }
        off[pool.pick().unwrap()] += 1.0;
        let total: f64 = pool.eligible.iter().map(|index| f64::from(list[index].1)).sum();
        for index in pool.eligible.iter() {
            off[index] -= f64::from(list[index].1) / total;
            furthest = furthest.max(off[index].abs());
        }
    }
    furthest
}

#[test]
fn nobody_is_ever_more_than_two_picks_from_ideal() {
    let regimes = [
        ("every pick", 3, 5, 1, 0),
        ("every pick, more", 12, 20, 1, 0),
        ("now and then", 5, 10, 10, 0),
        ("seldom", 5, 10, 100, 0),
        ("equal weights", 10, 1, 3, 0),
        ("wide weights", 4, 1000, 5, 0),
        ("weights edited", 5, 50, 4, 6),
        ("weights edited at every pick", 3, 9, 1, 6),
    ];
    for (name, endpoints, weight_max, every, edits) in regimes {
        let churn = Churn { name, endpoints, weight_max, every, edits };
        for seed in 0..16 {
            let furthest = furthest_from_ideal(&churn, seed);
            assert!(furthest <= 2.0, "{}, seed {seed}: {furthest:.3} picks off", churn.name);
        }
    }
}

#[test]
fn flapping_does_not_shift_shares() {
    // b goes and comes back all the time: a and c must not pay, or gain, by weight.
    let mut pool = Pool::new(SMOOTH, endpoints(&[5, 1, 1]));
    let (mut hits, mut ideal) = ([0.0_f64; 3], [0.0_f64; 3]);
    for round in 0..1_000 {
        let b_is_up = round % 2 == 0;
        pool.set_eligible((0..3).filter(|index| *index != 1 || b_is_up).collect());
        for pick in pool.picks(3) {
            hits[pick] += 1.0;
            let total = if b_is_up { 7.0 } else { 6.0 };
            ideal[0] += 5.0 / total;
            ideal[1] += if b_is_up { 1.0 / total } else { 0.0 };
            ideal[2] += 1.0 / total;
        }
    }
    for index in 0..3 {
        assert!((hits[index] - ideal[index]).abs() <= 2.0, "{hits:?} for {ideal:?}");
    }
}

/// Ten equal endpoints; whoever is picked is taken out at once, until one is left, which nobody
/// promises anything but which must not be owed nine picks for it.
fn picked_on() -> (Pool, usize) {
    let mut pool = Pool::new(SMOOTH, endpoints(&[1; 10]));
    for _ in 0..9 {
        let picked = pool.pick().unwrap();
        let mut eligible = pool.eligible.clone();
        eligible.remove(picked);
        pool.set_eligible(eligible);
    }
    let last = pool.eligible.iter().next().unwrap();
    (pool, last)
}

#[test]
fn changes_timed_by_the_picks_gain_two_picks_at_most() {
    let hits_of =
        |index, pool: &mut Pool| pool.picks(10).into_iter().filter(|i| *i == index).count();

    let (mut pool, last) = picked_on();
    pool.set_eligible(BitSet::full(10));
    assert_eq!(hits_of(last, &mut pool), 1 + 2);

    // Away and back: one pick is what it may be owed then.
    let (mut pool, last) = picked_on();
    pool.set_eligible((0..10).filter(|index| *index != last).collect());
    pool.set_eligible(BitSet::full(10));
    assert_eq!(hits_of(last, &mut pool), 1 + 1);
}

#[test]
fn hits_are_exact_over_all_threads() {
    let list = endpoints(&[1; 4]);
    let eligible = BitSet::full(4);
    let algorithm = SMOOTH;
    let (endpoints, eligible) = (&list, &eligible);
    let recipe = Recipe { algorithm: &algorithm, endpoints, eligible, previous: None };
    let balancer = Balancer::build(recipe);
    let (tickets, hits) = (SharedCounter(AtomicU64::new(0)), [const { AtomicU64::new(0) }; 4]);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..1_500 {
                    let request = PickRequest {
                        tickets: &tickets,
                        random: 0,
                        now: Tick(0),
                        key: Key::None,
                        eligible,
                        tried: &BitSet::EMPTY,
                    };
                    let picked = balancer.pick(&Loads::new(4), &request).unwrap();
                    hits[picked].fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    assert_eq!(hits.map(AtomicU64::into_inner), [3_000; 4]);
}

struct SharedCounter(AtomicU64);

impl Tickets for SharedCounter {
    fn draw(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed)
    }
}

#[test]
fn an_endpoint_keeps_its_debt_through_lists_in_any_order() {
    let mut pool = Pool::new(SMOOTH, named([(0, 1), (1, 1), (2, 1), (3, 1)]));
    assert_eq!(letters(&pool.picks(2)), "ab");
    // The list is turned round and has a newcomer, 9, in front: 2 and 3 are still owed theirs.
    pool.replace(named([(9, 1), (3, 1), (2, 1), (1, 1), (0, 1)]), BitSet::full(5));
    let names: Vec<_> =
        pool.picks(3).into_iter().map(|i| pool.endpoints.entry(i).name.clone()).collect();
    assert_eq!(names, ["e3", "e2", "e9"]);
}

#[test]
fn a_change_of_algorithm_goes_on_where_the_other_was() {
    let mut pool = Pool::new(SMOOTH, endpoints(&[5, 1, 1]));
    assert_eq!(letters(&pool.picks(3)), "aab");
    for algorithm in [Algorithm::LeastConnections, Algorithm::IpHash, SMOOTH] {
        pool.algorithm = algorithm;
        pool.set_eligible(BitSet::full(3));
        assert_eq!(letters(&pool.picks(7)), "acaaaab");
    }
}

#[test]
fn tickets_drawn_before_the_sequence_began_are_served() {
    for algorithm in [SMOOTH, BURST] {
        let list = endpoints(&[3, 1, 2]);
        let eligible: BitSet = [0, 2].into_iter().collect();
        let first = Pool::new(algorithm.clone(), list.clone());
        let previous = Previous { balancer: &first.balancer, endpoints: &list, ticket: 1_000 };
        let balancer = Balancer::build(Recipe {
            algorithm: &algorithm,
            endpoints: &list,
            eligible: &eligible,
            previous: Some(previous),
        });
        for ticket in [0, 1, 998, 999, 1_000, 1_001, u64::MAX - 1, u64::MAX] {
            let request = PickRequest {
                tickets: &OneTicket(ticket),
                random: 0,
                now: Tick(0),
                key: Key::None,
                eligible: &eligible,
                tried: &BitSet::EMPTY,
            };
            let picked = balancer.pick(&Loads::new(3), &request).unwrap();
            assert!(eligible.contains(picked), "ticket {ticket}");
        }
    }
}

struct OneTicket(u64);

impl Tickets for OneTicket {
    fn draw(&self) -> u64 {
        self.0
    }
}

#[test]
fn what_cannot_take_the_request_is_skipped_forward() {
    let mut pool = Pool::new(SMOOTH, endpoints(&[5, 1, 1]));
    let a: BitSet = [0].into_iter().collect();
    // The sequence is a a b a c a a: whoever comes next after the tried one.
    let picks: Vec<_> = (0..7).map(|_| pool.pick_with(Key::None, &a).unwrap()).collect();
    assert_eq!(letters(&picks), "bbbccbb");
}

#[test]
fn skipping_past_the_end_goes_on_in_the_cycle_and_not_in_the_prefix() {
    let (mut pool, _) = picked_on();
    pool.set_eligible(BitSet::full(10));
    let Some(Table::Sequence { prefix, cycle }) = pool.balancer.table() else {
        panic!("round robin has a table")
    };
    let (before, first, last) = (prefix[0], cycle[0] as usize, cycle[9] as usize);
    let length = prefix.len() + cycle.len();
    assert_ne!(before, cycle[0]);
    pool.picks(length - 1);
    let tried = [last].into_iter().collect();
    assert_eq!(pool.pick_with(Key::None, &tried), Some(first));
}

#[test]
fn a_far_away_candidate_is_found_without_a_long_search_and_several_take_turns() {
    let mut pool = Pool::new(SMOOTH, endpoints(&[60_000, 1, 1]));
    let heavy: BitSet = [0].into_iter().collect();
    let picks: Vec<_> = (0..4).map(|_| pool.pick_with(Key::None, &heavy).unwrap()).collect();
    assert_eq!(picks, [1, 2, 1, 2]);
    // Not in the sequence at all: eligible again, and not compiled in yet.
    let mut pool = Pool::new(SMOOTH, endpoints(&[1, 1, 1]));
    pool.set_eligible(BitSet::EMPTY);
    assert_eq!(pool.pick(), None);
    pool.eligible = [1, 2].into_iter().collect();
    let mut turns = pool.picks(4);
    turns.sort_unstable();
    assert_eq!(turns, [1, 1, 2, 2]);
}

#[test]
fn skipping_finds_the_only_candidate_wherever_it_is() {
    for count in [2, 127, 128, 129, 500] {
        let mut pool = Pool::new(SMOOTH, endpoints(&vec![1; count]));
        for only in [0, 1, count / 2, count - 1] {
            let others = (0..count).filter(|index| *index != only).collect();
            for _ in 0..3 {
                assert_eq!(pool.pick_with(Key::None, &others), Some(only));
            }
        }
    }
}

#[test]
fn a_burst_goes_on_through_changes() {
    let mut pool = Pool::new(BURST, endpoints(&[4, 3, 2]));
    assert_eq!(letters(&pool.picks(2)), "aa");
    // c goes: a's run is not cut short.
    pool.set_eligible([0, 1].into_iter().collect());
    assert_eq!(letters(&pool.picks(3)), "aab");
    // c is back, b's weight grows by two in the middle of its run: it has had one pick of five.
    pool.replace(endpoints(&[4, 5, 2]), BitSet::full(3));
    assert_eq!(letters(&pool.picks(6)), "bbbbcc");
    assert_eq!(letters(&pool.picks(12)), "aaaabbbbbcca");
    // a, which has had one pick, goes: b is next, and whole.
    pool.set_eligible([1, 2].into_iter().collect());
    assert_eq!(letters(&pool.picks(9)), "bbbbbccbb");
    // b shrinks to what it has had already: its run is over.
    pool.replace(endpoints(&[4, 2, 2]), BitSet::full(3));
    assert_eq!(letters(&pool.picks(4)), "ccaa");
}

#[test]
fn a_burst_survives_the_loss_of_its_endpoint_from_the_list() {
    let mut pool = Pool::new(BURST, named([(0, 2), (1, 3), (2, 2), (3, 1)]));
    assert_eq!(pool.picks(3), [0, 0, 1]);
    // e1 and e2 leave for good, and the list is turned round: e3 was next in the old list.
    pool.replace(named([(0, 2), (5, 1), (3, 1)]), BitSet::full(3));
    assert_eq!(pool.picks(5), [2, 0, 0, 1, 2]);
    // Nobody is left of the old list: from the beginning.
    pool.replace(named([(7, 2), (8, 1)]), BitSet::full(2));
    assert_eq!(letters(&pool.picks(3)), "aab");
    pool.replace(named([]), BitSet::EMPTY);
    assert_eq!(pool.pick(), None);
    pool.replace(named([(7, 1), (8, 1)]), BitSet::full(2));
    assert_eq!(letters(&pool.picks(3)), "aba");
}

#[test]
fn shares_are_exact_in_every_cycle_after_any_history() {
    for algorithm in [SMOOTH, BURST] {
        for seed in 0..20 {
            let mut rng = Rng::new(seed);
            let mut pool = Pool::new(algorithm.clone(), endpoints(&[7, 3, 2, 1, 1]));
            for _ in 0..30 {
                let mut eligible = some_of(5, 60, &mut rng);
                eligible.insert(0);
                pool.set_eligible(eligible);
                pool.picks(rng.below(9) as usize);
            }
            let Some(Table::Sequence { prefix, cycle }) = pool.balancer.table() else {
                panic!("round robin has a table")
            };
            let (prefix, length) = (prefix.len(), cycle.len());
            pool.picks(prefix);
            for _ in 0..3 {
                let mut hits = vec![0; 5];
                pool.picks(length).into_iter().for_each(|index| hits[index] += 1);
                assert_eq!(hits, pool.balancer.shares(), "seed {seed}");
            }
        }
    }
}
