//! Of two endpoints drawn by weight, to that with the smaller t · (a + 1) ÷ w, where t is sensitive
//! to peaks.
//!
//! An answer slower than t counts at once and in full; a faster one as much as t has aged since the
//! last, with a half-life of 10 s: a single slow answer is not averaged away by the many fast ones
//! that come while it is under way. Times are to the first byte. Cold endpoints, failures and
//! ageing: see [`latency`](crate::latency). Before the pool's first summary the best t is the
//! smallest among the candidates.
//!
//! Weights: divide, and the draw is by weight. Ties: the first drawn.
//! Cost: O(1), O(n) when most of the pool cannot be picked.
//! Source: Finagle and Linkerd, whose average ages by e in 10 s and towards nothing; here it is by
//! half and towards the pool's median, so that one left alone is not believed to answer at once.

use std::time::Duration;

use subak_base::Tick;

use crate::balancer::{Completion, Recipe};
use crate::catalogue::{Cost, Share, Traits, Wants};
use crate::draw::Draw;
use crate::latency::{self, Average, Latency, Summary};
use crate::least::Value;
use crate::request::LoadView;
use crate::rules::{Algorithm, Pick, Rule};
use crate::score::Score;

/// How many endpoints are drawn.
const CHOICES: usize = 2;

#[derive(Debug)]
pub(crate) struct PeakEwma {
    draw: Draw,
}

impl Rule for PeakEwma {
    const NAME: &'static str = "peak_ewma";
    const SUMMARY: &'static str =
        "of two drawn by weight, to that with the smaller peak response time × (in flight + 1)";
    const WHEN: &'static str = "endpoints become slow at times, and there are many of them";
    const TIES: &'static str = "the one drawn first";

    fn traits(_: &Algorithm) -> Traits {
        let wants = Wants { cells: true, summary: true, ..Wants::NOTHING };
        Traits { wants, ..Traits::of(Share::ByLatency, Cost::Constant) }
    }

    fn build(recipe: &Recipe<'_>) -> PeakEwma {
        PeakEwma { draw: Draw::build(recipe) }
    }

    #[inline]
    fn pick<L: LoadView + ?Sized>(&self, pick: &Pick<'_, L>) -> Option<usize> {
        let now = pick.request.now;
        self.draw.best(pick, CHOICES, |one, other| {
            let summary = latency::reference(pick, [one, other].into_iter());
            let load = |index| {
                let cell = Latency::unpack(pick.load.cell(index));
                cell.load(pick.load.in_flight(index), now, summary.median, summary.best)
            };
            load(one).times(pick.weight(other)) < load(other).times(pick.weight(one))
        })
    }

    fn score<L: LoadView + ?Sized>(&self, pick: &Pick<'_, L>, index: usize) -> Option<Score> {
        Some(latency::time_by_weight(pick, index))
    }

    fn on_dispatch(&self, cell: u64, now: Tick) -> u64 {
        Latency::unpack(cell).dispatched(now).pack()
    }

    fn on_complete<L: LoadView + ?Sized>(
        &self,
        cell: u64,
        _: usize,
        completion: &Completion,
        load: &L,
    ) -> u64 {
        let took = completion.first_byte.unwrap_or(completion.elapsed);
        latency::settled(cell, took, completion, load, Average::Peak)
    }

    fn summarise<L: LoadView + ?Sized>(
        &self,
        members: impl Iterator<Item = usize>,
        load: &L,
        now: Tick,
    ) -> u64 {
        Summary::over(members.map(|index| load.cell(index)), load.summary(), now)
    }

    fn latency(&self, cell: u64, now: Tick, summary: u64) -> Option<Duration> {
        latency::in_force(cell, now, summary)
    }
}
