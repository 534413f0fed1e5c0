//! The classic order: w picks in a row, then the next endpoint of the list.

use crate::balancer::Recipe;
use crate::rotation::{Ledger, Rotation};

/// Where a burst sequence begins: with `picks` of the endpoint, then its successors.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Start {
    pub(super) index: usize,
    pub(super) picks: u32,
}

/// The rest of the run that is going on, then whole runs for ever.
pub(super) fn compile(shares: &[u32], start: Start) -> (Box<[u32]>, usize) {
    let run = |index: usize, picks: u32| std::iter::repeat_n(index as u32, picks as usize);
    let whole = |index: usize| run(index, shares[index]);
    let is_partial = start.picks < shares.get(start.index).copied().unwrap_or(0);
    let prefix = if is_partial { start.picks } else { 0 };
    let first = start.index + usize::from(is_partial);
    let sequence = run(start.index, prefix)
        .chain((first..shares.len()).flat_map(whole))
        .chain((0..first).flat_map(whole));
    (sequence.collect(), prefix as usize)
}

/// Goes on where the previous sequence stopped: in the run of the same endpoint, less the picks it
/// had of it; if it is gone or absent, with the next one.
pub(super) fn carry(recipe: &Recipe<'_>, shares: &[u32]) -> Start {
    let beginning = Start { index: 0, picks: shares.first().copied().unwrap_or(0) };
    let Some(previous) = recipe.previous else {
        return beginning;
    };
    let old = previous.balancer.rotation();
    let place = old.place(previous.ticket);
    let (Ledger::Burst { .. }, Some(current)) = (&old.ledger, old.sequence.get(place)) else {
        return beginning;
    };
    let current = *current as usize;
    let had = old.shares[current] - old.left_of_run(place);
    let in_turn = (current..previous.endpoints.len()).chain(0..current);
    let mut still_there = in_turn.filter_map(|index| {
        let position = recipe.endpoints.position_of(&previous.endpoints.entry(index).identity)?;
        Some((index, position))
    });
    match still_there.next() {
        None => beginning,
        Some((index, position)) if index == current && shares[position] > had => {
            Start { index: position, picks: shares[position] - had }
        }
        Some((index, position)) => {
            let next = if index == current { position + 1 } else { position };
            let index = next % shares.len();
            Start { index, picks: shares[index] }
        }
    }
}

impl Rotation {
    /// How many picks are left, this one included, of the run that `place` lies in. A run ends with
    /// the prefix, or where another endpoint follows, or with the cycle.
    fn left_of_run(&self, place: usize) -> u32 {
        let end = if place < self.prefix { self.prefix } else { self.sequence.len() };
        let run = &self.sequence[place..end];
        run.iter().take_while(|index| **index == run[0]).count() as u32
    }
}
