//! What an endpoint's answers took: the cell that the latency algorithms keep, and what they make
//! of a whole pool.
//!
//! A cell is one 64-bit word:
//!
//! | bits | field | unit |
//! |---|---|---|
//! | 63..31 | t, the average; before the first answer: dispatches without one | 32 ns; 1 |
//! | 30..27 | answers averaged so far, at most 15; 0: none, the endpoint is *cold* | 1 |
//! | 26..24 | run of failures | 1 |
//! | 23..0 | the moment of the last answer, or of the last dispatch of a cold one | 2²⁵ ns, modulo 2²⁴ |
//!
//! Moments wrap after 6.5 days: the age of an average nobody has fed for as long starts again.
//!
//! **Age.** t moves from its value to the pool's median with a half-life of 10 s while no answer
//! comes. So an endpoint that was slow is tried again, and one that was fast long ago not believed
//! for ever. The median is that of endpoints with a fresh answer (of all, if none has one).
//!
//! **Failures.** A failed answer counts as max(elapsed, pool's mean), and never lowers t. That alone
//! would still attract: who fails at once has nothing in flight. So each failure in a row doubles
//! what the endpoint compares with, up to 128-fold; each answer takes one of the run back, and so
//! does every 10 s without any.
//!
//! **Cold.** Before its first answer an endpoint counts as the pool's best, and every request it has
//! not answered yet sixteen-fold; so it is tried at once, and gets one request for sixteen in flight
//! elsewhere until it has answered. Requests that were cancelled stay unanswered, and count half
//! with every half-life: one that swallows requests does not look idle.

mod cell;
mod summary;

use std::time::Duration;

use subak_base::Tick;

use crate::balancer::Completion;
use crate::request::LoadView;
use crate::rules::Pick;
use crate::score::Score;

pub(crate) use cell::{Average, Latency};
pub(crate) use summary::Summary;

/// What the endpoints of this pick are compared with: the pool's summary; before there is one, the
/// best of `candidates`.
#[inline]
pub(crate) fn reference<L: LoadView + ?Sized>(
    pick: &Pick<'_, L>,
    candidates: impl Iterator<Item = usize>,
) -> Summary {
    match Summary::unpack(pick.load.summary()) {
        Summary { best: 0, .. } => {
            Summary { best: best_of(pick, candidates), ..Summary::default() }
        }
        summary => summary,
    }
}

/// The smallest average among these; 1 if none of them has answered.
#[cold]
fn best_of<L: LoadView + ?Sized>(
    pick: &Pick<'_, L>,
    candidates: impl Iterator<Item = usize>,
) -> u64 {
    let times = candidates.map(|index| Latency::unpack(pick.load.cell(index)));
    let warm = times.filter(|latency| !latency.is_cold());
    warm.map(|latency| latency.time(pick.request.now, 0)).min().unwrap_or(1)
}

/// The cell after an answer or a failure.
pub(crate) fn settled<L: LoadView + ?Sized>(
    cell: u64,
    took: Duration,
    completion: &Completion,
    load: &L,
    average: Average,
) -> u64 {
    let (latency, now) = (Latency::unpack(cell), completion.now);
    let after = match completion.failed {
        false => latency.answered(took, now, average),
        true => {
            let mean = Summary::unpack(load.summary()).mean;
            latency.failed(completion.elapsed, mean, now, average)
        }
    };
    after.pack()
}

/// The latency that a cell holds.
pub(crate) fn in_force(cell: u64, now: Tick, summary: u64) -> Option<Duration> {
    let cell = Latency::unpack(cell);
    let time = || cell.time(now, Summary::unpack(summary).median);
    (!cell.is_cold()).then(|| cell::duration(time()))
}

/// What an endpoint compares with, in milliseconds by weight.
pub(crate) fn time_by_weight<L: LoadView + ?Sized>(pick: &Pick<'_, L>, index: usize) -> Score {
    let summary = reference(pick, pick.candidates());
    let (cell, in_flight) = (pick.load.cell(index), pick.load.in_flight(index));
    let now = pick.request.now;
    Score {
        amount: Latency::unpack(cell).load(in_flight, now, summary.median, summary.best),
        per: u128::from(pick.weight(index)) * cell::LOAD_OF_A_MILLISECOND,
        unit: "ms × (in flight + 1) by weight, smallest first",
    }
}
