//! By chance, in proportion to weight.
//!
//! The request's random word decides, through a compiled alias table ([`Draw`]). A draw that cannot
//! take the request is drawn again, at most 8 times; then the candidates are scanned.
//!
//! Weights: proportional. Ties: none. Cost: O(1), O(n) when most of the pool cannot be picked.

use subak_base::Rng;

use crate::balancer::Recipe;
use crate::catalogue::{Cost, Share, Traits};
use crate::draw::Draw;
use crate::request::LoadView;
use crate::rules::{Algorithm, Pick, Rule};
use crate::score::Score;

#[derive(Debug)]
pub(crate) struct Random {
    draw: Draw,
}

impl Rule for Random {
    const NAME: &'static str = "random";
    const SUMMARY: &'static str = "by chance, in proportion to weight";
    const WHEN: &'static str =
        "nothing must be shared between balancers, and shares need not be exact";
    const TIES: &'static str = "no scores are compared: one is drawn by weight";

    fn traits(_: &Algorithm) -> Traits {
        Traits::of(Share::ByChance, Cost::Constant)
    }

    fn build(recipe: &Recipe<'_>) -> Random {
        Random { draw: Draw::build(recipe) }
    }

    #[inline]
    fn pick<L: LoadView + ?Sized>(&self, pick: &Pick<'_, L>) -> Option<usize> {
        self.draw.one(pick, &mut Rng::new(pick.request.random), &[])
    }

    fn score<L: LoadView + ?Sized>(&self, pick: &Pick<'_, L>, index: usize) -> Option<Score> {
        Some(Score::whole(pick.weight(index), "lots, the more the likelier"))
    }
}
