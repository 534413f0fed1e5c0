//! To the endpoint with the fewest packets, to and from it, in the last 14 s for its weight.
//!
//! The view shows the packets of fourteen one-second buckets, as [`Window`](crate::Window) keeps
//! them. A dispatch counts at once, by what the endpoint's exchanges took on average, and is put
//! right when it is known better; so picks that come close together do not all go to one endpoint.
//! One that joins or returns starts with the pool's mean for its weight
//! ([`Window::joining`](crate::Window::joining)): with nothing on its account it would get every
//! request for seconds, and then none.
//!
//! Ties: as [`least_connections`](super::least_connections).
//!
//! Weights: divide the packets. Cost: O(n), twice when some are equal.
//! Source: Ramadhan & Wardhana; NetScaler's least packets.

use crate::balancer::Recipe;
use crate::catalogue::{Cost, Share, Traits, Wants};
use crate::least::least;
use crate::request::LoadView;
use crate::rules::{Algorithm, Pick, Rule};
use crate::score::Score;

#[derive(Debug)]
pub(crate) struct LeastPackets;

impl Rule for LeastPackets {
    const NAME: &'static str = "least_packets";
    const SUMMARY: &'static str =
        "to the endpoint with the fewest packets in the last 14 s for its weight";
    const WHEN: &'static str =
        "what counts is how much an endpoint talks, not how many requests it has";
    const TIES: &'static str = crate::least::TIES;

    fn traits(_: &Algorithm) -> Traits {
        let wants = Wants { packets: true, ..Wants::NOTHING };
        Traits { wants, ..Traits::of(Share::ByLoad, Cost::Linear) }
    }

    fn build(_: &Recipe<'_>) -> LeastPackets {
        LeastPackets
    }

    fn pick<L: LoadView + ?Sized>(&self, pick: &Pick<'_, L>) -> Option<usize> {
        least(pick, |index| pick.load.packets(index))
    }

    fn score<L: LoadView + ?Sized>(&self, pick: &Pick<'_, L>, index: usize) -> Option<Score> {
        Some(Score {
            amount: u128::from(pick.load.packets(index)),
            per: u128::from(pick.weight(index)),
            unit: "packets in 14 s by weight, fewest first",
        })
    }
}
