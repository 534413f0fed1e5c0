//! To the first endpoint in the list that may take the request: the next is used when those before
//! it are at their cap.
//!
//! Whoever is at its cap is among the tried of the request. So with caps the list fills from its
//! beginning, and endpoints at its end can be switched off while there is little to do.
//!
//! Weights: ignored, but for 0. Cost: O(1) as a rule: the search ends at the first candidate.
//! Source: HAProxy's `first`.

use crate::balancer::Recipe;
use crate::catalogue::{Cost, Share, Traits};
use crate::request::LoadView;
use crate::rules::{Algorithm, Pick, Rule};
use crate::score::Score;

#[derive(Debug)]
pub(crate) struct First;

impl Rule for First {
    const NAME: &'static str = "first";
    const SUMMARY: &'static str = "to the first in the list that is below its cap";
    const WHEN: &'static str = "as few endpoints as possible shall be in use";

    fn traits(_: &Algorithm) -> Traits {
        Traits::of(Share::First, Cost::Constant)
    }

    fn build(_: &Recipe<'_>) -> First {
        First
    }

    #[inline]
    fn pick<L: LoadView + ?Sized>(&self, pick: &Pick<'_, L>) -> Option<usize> {
        pick.candidates().next()
    }

    fn score<L: LoadView + ?Sized>(&self, _: &Pick<'_, L>, index: usize) -> Option<Score> {
        Some(Score::whole(index as u64 + 1, "as its place in the list, lowest first"))
    }
}
