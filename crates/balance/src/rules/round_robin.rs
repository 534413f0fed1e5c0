//! In turn, by weight: exact over every full cycle, whatever the number of workers.
//!
//! All of it is the compiled [`Rotation`]; a pick is one ticket and one look-up.
//!
//! Weights: exact shares. Ties: first in the list. Cost: O(1).
//! Source: Ma & Chi 2022, algorithm 1; nginx's smooth weighted round robin; for `order = "burst"`
//! Usman et al.

use crate::balancer::Recipe;
use crate::catalogue::{Cost, Share, Traits};
use crate::request::LoadView;
use crate::rotation::{Order, Rotation};
use crate::rules::{Algorithm, Pick, Rule};
use crate::score::Score;
use crate::table::Table;

#[derive(Debug)]
pub(crate) struct RoundRobin;

impl Rule for RoundRobin {
    const NAME: &'static str = "round_robin";
    const ALIASES: &'static [&'static str] = &["rr", "weighted_round_robin", "wrr"];
    const SUMMARY: &'static str = "in turn, exactly by weight";
    const WHEN: &'static str = "shares must be exact and predictable";

    fn traits(algorithm: &Algorithm) -> Traits {
        let keeps_pace = RoundRobin::order(algorithm) == Order::Smooth;
        Traits { has_table: true, keeps_pace, ..Traits::of(Share::Exact, Cost::Constant) }
    }

    fn order(algorithm: &Algorithm) -> Order {
        match algorithm {
            Algorithm::RoundRobin { order } => *order,
            _ => Order::Smooth,
        }
    }

    fn build(_: &Recipe<'_>) -> RoundRobin {
        RoundRobin
    }

    #[inline]
    fn pick<L: LoadView + ?Sized>(&self, pick: &Pick<'_, L>) -> Option<usize> {
        pick.next_in_rotation()
    }

    fn score<L: LoadView + ?Sized>(&self, pick: &Pick<'_, L>, index: usize) -> Option<Score> {
        pick.turn(index)
    }

    fn table<'a>(&'a self, rotation: &'a Rotation) -> Option<Table<'a>> {
        Some(Table::Sequence { prefix: rotation.prefix(), cycle: rotation.cycle() })
    }
}
