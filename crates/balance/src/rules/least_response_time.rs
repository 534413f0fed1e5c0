//! To the endpoint with the smallest t · (a + 1) ÷ w.
//!
//! t is the moving average of what its answers took: to their first byte, or with
//! `measure = "last_byte"` to their end; a is what it has in flight. Averages, cold endpoints,
//! failures and ageing: see [`latency`](crate::latency). Before the pool's first summary the best t
//! is the smallest among the candidates.
//!
//! Weights: divide. With nothing in flight anywhere the largest weight wins among equally fast
//! endpoints. Ties: as [`least_connections`](super::least_connections).
//!
//! Cost: O(n), twice when some are equal.
//! Source: Ramadhan & Wardhana; NetScaler's least response time; nginx's `least_time`.

use std::time::Duration;

use subak_base::Tick;

use crate::balancer::{Completion, Recipe};
use crate::catalogue::{Cost, Share, Traits, Wants};
use crate::latency::{self, Average, Latency, Summary};
use crate::least::least;
use crate::options::{OptionKind, OptionValue, Setting, TextProblem};
use crate::request::LoadView;
use crate::rules::{Algorithm, Pick, Rule};
use crate::score::Score;

/// Where the measured time ends; it begins with the dispatch.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Measure {
    /// At the first byte of the answer.
    #[default]
    FirstByte,
    /// At its last byte.
    LastByte,
}

impl Setting for Measure {
    const SUMMARY: &'static str = "to which byte of the answer its time is taken";
    const KIND: OptionKind = OptionKind::Words(&["first_byte", "last_byte"]);
    const DEFAULT: Option<OptionValue<'static>> = Some(OptionValue::Text("first_byte"));

    fn from_text(text: &str) -> Result<Measure, Option<TextProblem>> {
        match text {
            "first_byte" => Ok(Measure::FirstByte),
            "last_byte" => Ok(Measure::LastByte),
            _ => Err(None),
        }
    }
}

#[derive(Debug)]
pub(crate) struct LeastResponseTime {
    measure: Measure,
}

impl Rule for LeastResponseTime {
    const NAME: &'static str = "least_response_time";
    const ALIASES: &'static [&'static str] = &["least_time", "lrt"];
    const SUMMARY: &'static str =
        "to the endpoint with the smallest response time × (in flight + 1) for its weight";
    const WHEN: &'static str =
        "endpoints differ in speed for reasons that in flight alone does not show";
    const TIES: &'static str = crate::least::TIES;

    fn traits(_: &Algorithm) -> Traits {
        let wants = Wants { cells: true, summary: true, ..Wants::NOTHING };
        Traits { wants, ..Traits::of(Share::ByLatency, Cost::Linear) }
    }

    fn build(recipe: &Recipe<'_>) -> LeastResponseTime {
        let measure = match recipe.algorithm {
            Algorithm::LeastResponseTime { measure } => *measure,
            _ => Measure::default(),
        };
        LeastResponseTime { measure }
    }

    fn pick<L: LoadView + ?Sized>(&self, pick: &Pick<'_, L>) -> Option<usize> {
        let (now, summary) = (pick.request.now, latency::reference(pick, pick.candidates()));
        least(pick, |index| {
            let cell = Latency::unpack(pick.load.cell(index));
            cell.load(pick.load.in_flight(index), now, summary.median, summary.best)
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
        let took = match self.measure {
            Measure::FirstByte => completion.first_byte.unwrap_or(completion.elapsed),
            Measure::LastByte => completion.elapsed,
        };
        latency::settled(cell, took, completion, load, Average::Moving)
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
