//! To the endpoint with the smallest in flight ÷ weight.
//!
//! Ties: the next of the round-robin sequence if all candidates are equal, else one of the equal
//! ones by chance in proportion to weight; see [`least`].
//!
//! Weights: divide the load. Cost: O(n), twice when some are equal.
//! Source: Ma & Chi 2022, algorithm 3; Ramadhan & Wardhana.

use crate::balancer::Recipe;
use crate::catalogue::{Cost, Share, Traits};
use crate::least::least;
use crate::request::LoadView;
use crate::rules::{Algorithm, Pick, Rule};
use crate::score::Score;

#[derive(Debug)]
pub(crate) struct LeastConnections;

impl Rule for LeastConnections {
    const NAME: &'static str = "least_connections";
    const ALIASES: &'static [&'static str] = &["least_conn", "leastconn"];
    const SUMMARY: &'static str =
        "to the endpoint with the fewest requests in flight for its weight";
    const WHEN: &'static str = "requests differ in cost, or endpoints in speed; when in doubt";
    const TIES: &'static str = crate::least::TIES;

    fn traits(_: &Algorithm) -> Traits {
        Traits { keeps_pace: true, ..Traits::of(Share::ByLoad, Cost::Linear) }
    }

    fn build(_: &Recipe<'_>) -> LeastConnections {
        LeastConnections
    }

    fn pick<L: LoadView + ?Sized>(&self, pick: &Pick<'_, L>) -> Option<usize> {
        least(pick, |index| pick.load.in_flight(index))
    }

    fn score<L: LoadView + ?Sized>(&self, pick: &Pick<'_, L>, index: usize) -> Option<Score> {
        Some(in_flight_by_weight(pick, index))
    }
}

/// Requests in flight at an endpoint, divided by its weight.
pub(crate) fn in_flight_by_weight<L: LoadView + ?Sized>(pick: &Pick<'_, L>, index: usize) -> Score {
    Score {
        amount: u128::from(pick.load.in_flight(index)),
        per: u128::from(pick.weight(index)),
        unit: "in flight by weight, fewest first",
    }
}
