//! `random` and `power_of_two` against the probabilities of what they say they do, and `first`.

use crate::support::{Pool, endpoints, some_of};
use subak_balance::catalogue::{self, OptionValue};
use subak_balance::{Algorithm, Key};
use subak_base::{BitSet, Rng};

const PICKS: u32 = 40_000;

fn of_choices(choices: u32) -> Algorithm {
    let options = [("choices", OptionValue::Integer(choices))];
    catalogue::find("p2c").unwrap().configure("p2c", &options).unwrap()
}

/// How often each is picked.
fn frequencies(pool: &mut Pool, tried: &BitSet) -> Vec<f64> {
    let mut hits = vec![0.0; pool.endpoints.len()];
    for _ in 0..PICKS {
        hits[pool.pick_with(Key::None, tried).expect("a candidate")] += 1.0 / f64::from(PICKS);
    }
    hits
}

/// Drawing so many by weight without putting back, one after the other: for each outcome, by brute
/// force, who is best by a ÷ w, the first drawn of equals.
fn probabilities(pool: &Pool, candidates: &[usize], choices: u32) -> Vec<f64> {
    let mut chances = vec![0.0; pool.endpoints.len()];
    let load = |index: usize| f64::from(pool.loads.in_flight[index]) / pool.weights()[index] as f64;
    draw(pool, candidates, choices, (None, 1.0), &load, &mut chances);
    chances
}

fn draw(
    pool: &Pool,
    left: &[usize],
    choices: u32,
    (best, chance): (Option<usize>, f64),
    load: &dyn Fn(usize) -> f64,
    chances: &mut [f64],
) {
    if choices == 0 || left.is_empty() {
        if let Some(best) = best {
            chances[best] += chance;
        }
        return;
    }
    let total: u64 = left.iter().map(|index| pool.weights()[*index]).sum();
    for next in left {
        let others: Vec<usize> = left.iter().copied().filter(|other| other != next).collect();
        let chance = chance * pool.weights()[*next] as f64 / total as f64;
        let better = best.filter(|best| load(*best) <= load(*next)).unwrap_or(*next);
        draw(pool, &others, choices - 1, (Some(better), chance), load, chances);
    }
}

fn assert_near(found: &[f64], expected: &[f64], what: &dyn std::fmt::Debug) {
    for (found, expected) in found.iter().zip(expected) {
        // Four and a half standard deviations.
        let variance = expected * (1.0 - expected).max(0.0) / f64::from(PICKS);
        let allowed = 4.5 * variance.sqrt();
        assert!((found - expected).abs() <= allowed + 1e-9, "{what:?}: {found} for {expected}");
    }
}

#[test]
fn picks_are_as_likely_as_drawing_by_weight_makes_them() {
    let mut rng = Rng::new(1);
    for case in 0..60 {
        let count = 1 + rng.below(5) as usize;
        let weights: Vec<u16> =
            (0..count).map(|_| [0, 1, 1, 2, 3, 9][rng.below(6) as usize]).collect();
        let algorithms = [catalogue::find("random").unwrap().algorithm(), of_choices(2)];
        let more = [of_choices(3), of_choices(8)];
        for (algorithm, choices) in algorithms.into_iter().chain(more).zip([1, 2, 3, 8]) {
            let mut pool = Pool::new(algorithm, endpoints(&weights));
            pool.loads.in_flight = (0..count).map(|_| rng.below(4) as u32).collect();
            // Compiled for all of them, and some cannot be picked any more.
            pool.eligible = some_of(count, 80, &mut rng);
            let tried = some_of(count, 20, &mut rng);
            let candidates = pool.candidates(&tried);
            if candidates.is_empty() {
                assert_eq!(pool.pick_with(Key::None, &tried), None);
                continue;
            }
            let expected = probabilities(&pool, &candidates, choices);
            let found = frequencies(&mut pool, &tried);
            assert_near(&found, &expected, &(case, &weights, choices, &pool.loads.in_flight));
        }
    }
}

#[test]
fn one_that_hardly_anybody_draws_is_drawn_all_the_same_when_two_are_wanted() {
    // Eight draws in a row find the other one: the candidates are scanned.
    let mut pool = Pool::new(of_choices(2), endpoints(&[65_535, 1]));
    pool.loads.in_flight = vec![65_536, 0];
    assert_eq!(pool.picks(1_000), [1; 1_000]);
}

#[test]
fn most_of_a_large_pool_may_be_out() {
    let mut rng = Rng::new(3);
    for algorithm in [catalogue::find("random").unwrap().algorithm(), of_choices(2)] {
        let mut pool = Pool::new(algorithm, endpoints(&vec![1; 1_000]));
        pool.eligible = [7, 500, 999].into_iter().collect();
        for _ in 0..300 {
            let tried = some_of(1_000, 30, &mut rng);
            let picked = pool.pick_with(Key::None, &tried);
            let candidates = pool.candidates(&tried);
            assert_eq!(picked.is_none(), candidates.is_empty());
            assert!(picked.is_none_or(|index| candidates.contains(&index)));
        }
    }
}

#[test]
fn draws_are_exact_over_large_and_uneven_pools() {
    let mut rng = Rng::new(4);
    let weights: Vec<u16> = (0..50).map(|_| rng.below(1_000) as u16).collect();
    let mut pool = Pool::new(catalogue::find("random").unwrap().algorithm(), endpoints(&weights));
    let total: f64 = weights.iter().map(|weight| f64::from(*weight)).sum();
    let expected: Vec<f64> = weights.iter().map(|weight| f64::from(*weight) / total).collect();
    let found = frequencies(&mut pool, &BitSet::EMPTY);
    assert_near(&found, &expected, &"50 weights");
}

#[test]
fn first_fills_the_list_from_its_beginning() {
    let mut pool = Pool::new(Algorithm::First, endpoints(&[0, 1, 9, 1]));
    // Whoever is at its cap is among the tried.
    let order: Vec<_> = (0..4)
        .scan(BitSet::EMPTY, |full, _| {
            let picked = pool.pick_with(Key::None, full);
            picked.into_iter().for_each(|index| full.insert(index));
            Some(picked)
        })
        .collect();
    assert_eq!(order, [Some(1), Some(2), Some(3), None]);
}
