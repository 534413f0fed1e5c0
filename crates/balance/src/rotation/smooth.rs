//! Smooth weighted round robin, compiled, and the debts that it carries over rebuilds.
//!
//! Endpoints of one weight w gain the same at every step, so their order among themselves only
//! changes by picks: one heap per distinct weight, its values relative to w·t, and a comparison of
//! the k heads gives the exact sequence in O(length · (k + log n)).
//!
//! From all debts zero the process is periodic at once. From others it becomes so: it is run until
//! the last Σw picks hold every endpoint exactly as often as its weight says. Then its state is that
//! of Σw picks before, those are the cycle, and what came before is the prefix.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use crate::balancer::{Previous, Recipe};
use crate::rotation::{Ledger, Rotation};

/// One pick, in the fixed point of debts.
pub(super) const PICK: i64 = 1 << 32;

/// What an absent endpoint may be owed, or owe, when it returns.
const ABSENT_MAX: i64 = PICK;

/// The same for an endpoint in service. Changes that come at random never reach it; it bounds what
/// changes made with the picks in view can do, and so the length of a prefix.
const PRESENT_MAX: i64 = 2 * PICK;

/// Cycles, the last one included, that suffice to work off debts up to [`PRESENT_MAX`].
const CYCLES_MAX: usize = 4;

/// The sequence and the length of its prefix.
pub(super) fn compile(shares: &[u32], debts: &[i64]) -> (Box<[u32]>, usize) {
    let cycle: i64 = shares.iter().map(|share| i64::from(*share)).sum();
    if cycle == 0 {
        return (Box::default(), 0);
    }
    // Per weight: the endpoint with the largest current weight, the first in the list of several;
    // and a heap of the others. Heads lie together, as all are compared at each step.
    let mut groups: BTreeMap<i64, BinaryHeap<(i64, Reverse<u32>)>> = BTreeMap::new();
    for (index, share) in shares.iter().enumerate().filter(|(_, share)| **share > 0) {
        let current = to_weight(debts[index], cycle);
        groups.entry(i64::from(*share)).or_default().push((current, Reverse(index as u32)));
    }
    let (mut heads, mut others) = (Vec::new(), Vec::new());
    for (weight, mut group) in groups {
        heads.extend(group.pop().map(|(current, index)| Head { current, weight, index }));
        others.push(group);
    }

    let cycle = cycle as usize;
    // Picks that each endpoint lacks among the last `cycle`, and how many lack some or have too many.
    let mut lacking: Vec<i64> = shares.iter().map(|share| i64::from(*share)).collect();
    let mut unsettled = lacking.iter().filter(|lacking| **lacking != 0).count();
    let mut change = |index: u32, by: i64, unsettled: &mut usize| {
        let lacking = &mut lacking[index as usize];
        *unsettled -= usize::from(*lacking != 0);
        *lacking += by;
        *unsettled += usize::from(*lacking != 0);
    };

    let mut sequence: Vec<u32> = Vec::with_capacity(cycle);
    while sequence.len() < cycle || (unsettled > 0 && sequence.len() < CYCLES_MAX * cycle) {
        let step = sequence.len() as i64 + 1;
        let value = |head: &Head| (head.current + step * head.weight, head.index);
        let largest = heads.iter_mut().zip(&mut others).max_by_key(|(head, _)| value(head));
        let Some((head, others)) = largest else { break };
        let picked = head.index.0;
        head.current -= cycle as i64;
        let after = (head.current, head.index);
        if let Some(mut next) = others.peek_mut().filter(|next| **next > after) {
            (head.current, head.index) = std::mem::replace(&mut *next, after);
        }

        if let Some(oldest) = sequence.len().checked_sub(cycle) {
            change(sequence[oldest], 1, &mut unsettled);
        }
        sequence.push(picked);
        change(picked, -1, &mut unsettled);
    }
    let prefix = sequence.len() - cycle;
    (sequence.into(), prefix)
}

/// The next endpoint of those with one weight.
struct Head {
    /// Current weight less what was gained since the sequence began.
    current: i64,
    weight: i64,
    index: Reverse<u32>,
}

/// What each endpoint of the new list is owed when it takes over.
pub(super) fn carry(recipe: &Recipe<'_>, shares: &[u32]) -> Box<[i64]> {
    let mut debts = vec![0; recipe.endpoints.len()];
    let Some(previous) = recipe.previous else {
        return debts.into();
    };
    let Some(old) = previous.balancer.rotation().debts_at(previous.ticket) else {
        return debts.into();
    };
    for (new, old_index) in matches(recipe, &previous) {
        debts[new] = old[old_index];
    }
    for (debt, share) in debts.iter_mut().zip(shares) {
        let limit = if *share == 0 { ABSENT_MAX } else { PRESENT_MAX };
        *debt = (*debt).clamp(-limit, limit);
    }
    debts.into()
}

/// The places in the new and in the old list of every endpoint that is in both.
fn matches(recipe: &Recipe<'_>, previous: &Previous<'_>) -> Vec<(usize, usize)> {
    let (new, old) = (recipe.endpoints, previous.endpoints);
    let mut olds = old.canonical().iter().map(|index| *index as usize).peekable();
    let pair = |index: &u32| {
        let index = *index as usize;
        let identity = &new.entry(index).identity;
        while olds.next_if(|candidate| old.entry(*candidate).identity < *identity).is_some() {}
        let twin = olds.next_if(|candidate| old.entry(*candidate).identity == *identity)?;
        Some((index, twin))
    };
    new.canonical().iter().filter_map(pair).collect()
}

/// Whether debts are no larger than any that are carried.
pub(super) fn can_owe(debts: &[i64]) -> bool {
    debts.iter().all(|debt| debt.unsigned_abs() <= PRESENT_MAX.unsigned_abs())
}

impl Rotation {
    /// The debts when `ticket` is the next to be drawn; none in a sequence that keeps none.
    fn debts_at(&self, ticket: u64) -> Option<Vec<i64>> {
        let Ledger::Smooth { debts } = &self.ledger else { return None };
        let mut hits = vec![0_i64; debts.len()];
        let place = self.place(ticket);
        self.sequence[..place].iter().for_each(|index| hits[*index as usize] += 1);
        let cycle = self.cycle().len() as i128;
        let now = debts.iter().zip(&hits).zip(&*self.shares).map(|((debt, hits), share)| {
            let due = i128::from(*share) * place as i128 * i128::from(PICK) + cycle / 2;
            debt - hits * PICK + due.checked_div(cycle).unwrap_or(0) as i64
        });
        Some(now.collect())
    }
}

/// A debt in units of which `cycle` make one pick, rounded to the nearest.
fn to_weight(debt: i64, cycle: i64) -> i64 {
    (i128::from(debt) * i128::from(cycle) + i128::from(PICK / 2)).div_euclid(i128::from(PICK))
        as i64
}

#[cfg(test)]
mod tests {
    use super::{PICK, PRESENT_MAX, compile};
    use subak_base::Rng;

    /// Debts of up to ±2 picks, whose sum need not be zero: more than any rebuild hands over.
    #[test]
    fn any_debt_is_worked_off_before_the_cycle_and_the_cycle_is_exact() {
        let regimes =
            [(1, 9), (2, 1), (2, 60), (3, 5), (3, 1000), (5, 10), (10, 1), (10, 10), (40, 3)];
        for (count, weight_max) in regimes {
            for seed in 0..300 {
                let mut rng = Rng::new(seed);
                let shares: Vec<u32> =
                    (0..count).map(|_| 1 + rng.below(weight_max) as u32).collect();
                let debt =
                    |rng: &mut Rng| rng.below(2 * PRESENT_MAX as u64 + 1) as i64 - PRESENT_MAX;
                let debts: Vec<i64> = shares.iter().map(|_| debt(&mut rng)).collect();

                let (sequence, prefix) = compile(&shares, &debts);

                let mut hits = vec![0_u32; count];
                sequence[prefix..].iter().for_each(|index| hits[*index as usize] += 1);
                assert_eq!(hits, shares, "seed {seed}");

                // Whatever they sum to, no two are further apart than two picks any more.
                let mut owed = debts;
                for (index, share) in shares.iter().enumerate() {
                    let cycle = i64::from(shares.iter().sum::<u32>());
                    owed[index] += prefix as i64 * i64::from(*share) * PICK / cycle;
                }
                sequence[..prefix].iter().for_each(|index| owed[*index as usize] -= PICK);
                let spread = owed.iter().max().unwrap() - owed.iter().min().unwrap();
                assert!(spread < 2 * PICK, "seed {seed}: {spread}");
            }
        }
    }

    #[test]
    fn no_debts_no_prefix() {
        assert_eq!(compile(&[5, 1, 1], &[0; 3]), (Box::from([0, 0, 1, 0, 2, 0, 0]), 0));
        assert_eq!(compile(&[0, 0], &[0; 2]), (Box::default(), 0));
    }
}
