//! By a key, over a table that hardly changes when an endpoint goes or comes, and that every node
//! has alike.
//!
//! The slot is the 64-bit hash of the key modulo the number of slots: 65,537, or the next listed
//! prime that has 100 for every endpoint. How the table comes about:
//! [`MaglevTable`]. A request that the slot's endpoint cannot take, for whatever
//! [reason](crate::consistent), walks on in the table.
//!
//! Weights: proportional. A removed endpoint of 100 moves at most 1 % of the others' slots.
//! Cost: O(1); O(n) with `balance_factor`. Compiles to a flat table, unless there is a bound.
//! Source: Eisenbud et al., "Maglev", NSDI 2016; Mirrokni et al. 2017 for the bound.

use crate::balancer::Recipe;
use crate::catalogue::{Cost, Share, Traits, Wants};
use crate::consistent::{Admission, BalanceFactor, MaglevTable, hash_of, steps_before};
use crate::key::KeySource;
use crate::request::LoadView;
use crate::rotation::Rotation;
use crate::rules::{Algorithm, Pick, Rule};
use crate::score::Score;
use crate::table::Table;

#[derive(Debug)]
pub(crate) struct Maglev {
    table: MaglevTable,
    admission: Admission,
    is_flat: bool,
}

impl Rule for Maglev {
    const NAME: &'static str = "maglev";
    const SUMMARY: &'static str =
        "by a key, moving hardly any other when an endpoint goes or comes; alike on every node";
    const WHEN: &'static str =
        "clients must stay where they are while endpoints come and go, on several nodes alike";

    fn traits(algorithm: &Algorithm) -> Traits {
        let is_bounded = factor(algorithm).thousandths().is_some();
        let cost = if is_bounded { Cost::Linear } else { Cost::Constant };
        Traits {
            has_table: !is_bounded,
            thins_keys: true,
            ignores_order: true,
            keeps_pace: true,
            wants: Wants { key: true, ..Wants::NOTHING },
            ..Traits::of(Share::ByKey, cost)
        }
    }

    fn key(algorithm: &Algorithm) -> Option<&KeySource> {
        match algorithm {
            Algorithm::Maglev { key, .. } => Some(key),
            _ => None,
        }
    }

    fn places(_: &Algorithm, weights: &[u64]) -> Option<Vec<u64>> {
        Some(MaglevTable::places(weights))
    }

    fn build(recipe: &Recipe<'_>) -> Maglev {
        let factor = factor(recipe.algorithm);
        let admission = Admission::build(recipe, factor);
        let is_flat = factor.thousandths().is_none();
        Maglev { table: MaglevTable::build(recipe), admission, is_flat }
    }

    #[inline]
    fn pick<L: LoadView + ?Sized>(&self, pick: &Pick<'_, L>) -> Option<usize> {
        let choose = |hash| self.admission.choose(pick, hash, |gate| self.table.lead(hash, gate));
        hash_of(pick.request.key).and_then(choose).or_else(|| pick.next_in_rotation())
    }

    fn score<L: LoadView + ?Sized>(&self, pick: &Pick<'_, L>, index: usize) -> Option<Score> {
        let Some(hash) = hash_of(pick.request.key) else { return pick.turn(index) };
        let steps = steps_before(self.table.endpoints(hash), index)?;
        Some(Score::whole(steps, "slots from the key's, fewest first"))
    }

    fn table<'a>(&'a self, rotation: &'a Rotation) -> Option<Table<'a>> {
        let table = Table::Slots { slots: self.table.slots(), cycle: rotation.cycle() };
        self.is_flat.then_some(table)
    }
}

fn factor(algorithm: &Algorithm) -> BalanceFactor {
    match algorithm {
        Algorithm::Maglev { balance_factor, .. } => *balance_factor,
        _ => BalanceFactor::default(),
    }
}
