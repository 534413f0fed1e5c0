//! To the endpoint with the fewest bytes, to and from it, in the last 14 s for its weight.
//!
//! As [`least_packets`](super::least_packets), with bytes.
//!
//! Weights: divide the bytes. Cost: O(n), twice when some are equal.
//! Source: NetScaler's least bandwidth.

use crate::balancer::Recipe;
use crate::catalogue::{Cost, Share, Traits, Wants};
use crate::least::least;
use crate::request::LoadView;
use crate::rules::{Algorithm, Pick, Rule};
use crate::score::Score;

#[derive(Debug)]
pub(crate) struct LeastBandwidth;

impl Rule for LeastBandwidth {
    const NAME: &'static str = "least_bandwidth";
    const SUMMARY: &'static str =
        "to the endpoint with the fewest bytes in the last 14 s for its weight";
    const WHEN: &'static str = "answers differ much in size and the network is what runs out";
    const TIES: &'static str = crate::least::TIES;

    fn traits(_: &Algorithm) -> Traits {
        let wants = Wants { bytes: true, ..Wants::NOTHING };
        Traits { wants, ..Traits::of(Share::ByLoad, Cost::Linear) }
    }

    fn build(_: &Recipe<'_>) -> LeastBandwidth {
        LeastBandwidth
    }

    fn pick<L: LoadView + ?Sized>(&self, pick: &Pick<'_, L>) -> Option<usize> {
        least(pick, |index| pick.load.bytes(index))
    }

    fn score<L: LoadView + ?Sized>(&self, pick: &Pick<'_, L>, index: usize) -> Option<Score> {
        Some(Score {
            amount: u128::from(pick.load.bytes(index)),
            per: u128::from(pick.weight(index)),
            unit: "bytes in 14 s by weight, fewest first",
        })
    }
}
