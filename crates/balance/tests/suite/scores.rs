//! What `explain` shows of a pick is what the pick compared: the endpoint picked has the best score.

use std::cell::Cell;

use crate::support::{Counter, Pool, algorithms, client, endpoints, some_of};
use subak_balance::catalogue::Share;
use subak_balance::{Key, PickRequest, Score};
use subak_base::{BitSet, Rng, Tick};

fn scores(pool: &Pool, key: Key<'_>, tried: &BitSet) -> Vec<Option<Score>> {
    // A counter that stays where it is.
    let tickets = || Counter(Cell::new(pool.tickets.0.get()));
    let score = |index| {
        let tickets = tickets();
        let (eligible, now) = (&pool.eligible, pool.loads.now);
        let request = PickRequest { tickets: &tickets, random: 0, now, key, eligible, tried };
        pool.balancer.score(&pool.loads, &request, index)
    };
    (0..pool.endpoints.len()).map(score).collect()
}

#[test]
fn who_is_picked_has_the_best_score() {
    for algorithm in algorithms() {
        let share = algorithm.traits().share;
        let by_chance = matches!(share, Share::ByChance | Share::ByDraw)
            || algorithm.listing().name == "peak_ewma";
        let mut rng = Rng::new(9);
        let mut pool = Pool::new(algorithm.clone(), endpoints(&[3, 1, 0, 2, 5]));
        let mut compared = 0;
        for request in 0..300 {
            pool.loads.now = Tick::from_millis(request * 10);
            if !by_chance && share == Share::ByLoad {
                pool.loads.in_flight = (0..5).map(|_| rng.below(4) as u32).collect();
            }
            let tried = some_of(5, 20, &mut rng);
            let key = if rng.below(4) == 0 { Key::None } else { Key::Address(client(&mut rng)) };
            let scores = scores(&pool, key, &tried);
            let candidates = pool.candidates(&tried);
            let Some(picked) = pool.pick_with(key, &tried) else { continue };
            for (index, score) in scores.iter().enumerate() {
                let is_candidate = candidates.contains(&index);
                assert!(is_candidate || score.is_none(), "{algorithm:?}: {index}");
            }
            // A chain that does not come to anybody in time leaves the request to round robin.
            let Some(best) = scores[picked] else { continue };
            assert!(
                best.to_string().contains(", "),
                "{best}: what it counts, and which way is better"
            );
            let is_no_better = |other: &Score| best.amount * other.per <= other.amount * best.per;
            let is_best = scores.iter().flatten().all(is_no_better);
            assert!(by_chance || is_best, "{algorithm:?}: {picked} of {scores:?}");
            compared += 1;
        }
        assert!(compared > 200, "{algorithm:?}: only {compared}");
    }
}
