//! The less loaded of two endpoints drawn by weight.
//!
//! Two different candidates (`choices = d`: d of them) are drawn in proportion to weight; the one
//! with the smaller in flight ÷ weight takes the request, the first drawn if they are equal. With
//! two choices instead of one the longest of n queues falls from log n to log log n; every further
//! choice gains little.
//!
//! Weights: both the draw and the load. Cost: O(1), O(n) when most of the pool cannot be picked.
//! Source: Mitzenmacher 1996; Azar, Broder, Karlin, Upfal 1994.

use crate::balancer::Recipe;
use crate::catalogue::{Cost, Share, Traits};
use crate::draw::{CHOICES_MAX, Draw};
use crate::least::Value;
use crate::options::{OptionKind, OptionValue, Setting};
use crate::request::LoadView;
use crate::rules::least_connections::in_flight_by_weight;
use crate::rules::{Algorithm, Pick, Rule};
use crate::score::Score;

/// How many endpoints are drawn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Choices(u32);

impl Choices {
    /// The number: 2 to 8.
    pub fn get(self) -> usize {
        self.0 as usize
    }
}

impl Default for Choices {
    fn default() -> Choices {
        Choices(2)
    }
}

impl Setting for Choices {
    const SUMMARY: &'static str = "how many endpoints are drawn";
    const KIND: OptionKind = OptionKind::Integer { min: 2, max: CHOICES_MAX as u32 };
    const DEFAULT: Option<OptionValue<'static>> = Some(OptionValue::Integer(2));

    fn from_number(number: u32) -> Option<Choices> {
        Some(Choices(number))
    }
}

#[derive(Debug)]
pub(crate) struct PowerOfTwo {
    draw: Draw,
    choices: usize,
}

impl Rule for PowerOfTwo {
    const NAME: &'static str = "power_of_two";
    const ALIASES: &'static [&'static str] = &["p2c"];
    const SUMMARY: &'static str = "to the less loaded of two drawn by weight";
    const WHEN: &'static str =
        "there are very many endpoints, or several balancers in front of them";
    const TIES: &'static str = "the one drawn first";

    fn traits(_: &Algorithm) -> Traits {
        Traits::of(Share::ByDraw, Cost::Constant)
    }

    fn build(recipe: &Recipe<'_>) -> PowerOfTwo {
        let choices = match recipe.algorithm {
            Algorithm::PowerOfTwo { choices } => *choices,
            _ => Choices::default(),
        };
        PowerOfTwo { draw: Draw::build(recipe), choices: choices.get() }
    }

    #[inline]
    fn pick<L: LoadView + ?Sized>(&self, pick: &Pick<'_, L>) -> Option<usize> {
        self.draw.best(pick, self.choices, |one, other| {
            let (load, weight) = (|index| pick.load.in_flight(index), |index| pick.weight(index));
            load(one).times(weight(other)) < load(other).times(weight(one))
        })
    }

    fn score<L: LoadView + ?Sized>(&self, pick: &Pick<'_, L>, index: usize) -> Option<Score> {
        Some(in_flight_by_weight(pick, index))
    }
}
