//! One endpoint's cell: layout, ageing, and what answers and failures make of it.

use std::time::Duration;

use subak_base::Tick;

use crate::fixed::{ONE, half_to};

/// Time in which what is not known any more counts half.
pub(crate) const HALF_LIFE: Duration = Duration::from_secs(10);

/// What an unanswered request at a cold endpoint counts.
const COLD_PENALTY: u64 = 16;

const UNIT_NANOS_LOG2: u32 = 5;
const MOMENT_NANOS_LOG2: u32 = 25;
const HALF_LIFE_MOMENTS: u64 = HALF_LIFE.as_nanos() as u64 >> MOMENT_NANOS_LOG2;

const TIME_BITS: u32 = 33;
const TIME_MAX: u64 = (1 << TIME_BITS) - 1;
const MOMENT_MASK: u64 = (1 << 24) - 1;
/// Moments by which a clock that lags behind another worker's can seem to be in the past.
const LAG_MAX: u64 = 1 << 10;

const ANSWERS_MAX: u64 = 15;
const FAILURES_MAX: u64 = 7;

/// 1 in the fixed point of [`Latency::load`].
const LOAD_ONE: u64 = 1 << 10;

/// A load of one millisecond for one request.
pub(crate) const LOAD_OF_A_MILLISECOND: u128 = (LOAD_ONE as u128 * 1_000_000) >> UNIT_NANOS_LOG2;

/// One endpoint's cell, unpacked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Latency {
    /// In units; of a cold endpoint the dispatches without an answer.
    time: u64,
    answers: u64,
    failures: u64,
    moment: u64,
}

/// How an answer changes an average.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Average {
    /// The mean of the first answers, then each counts 1/16; at least as much as has aged away.
    Moving,
    /// A slower answer counts at once and in full, a faster one as much as has aged away.
    Peak,
}

impl Latency {
    #[inline]
    pub(crate) fn unpack(cell: u64) -> Latency {
        Latency {
            time: cell >> 31,
            answers: cell >> 27 & ANSWERS_MAX,
            failures: cell >> 24 & FAILURES_MAX,
            moment: cell & MOMENT_MASK,
        }
    }

    pub(crate) fn pack(self) -> u64 {
        self.time.min(TIME_MAX) << 31 | self.answers << 27 | self.failures << 24 | self.moment
    }

    pub(crate) fn is_cold(self) -> bool {
        self.answers == 0
    }

    /// t at this moment; 0 of a cold endpoint.
    #[inline]
    pub(crate) fn time(self, now: Tick, median: u64) -> u64 {
        match self.is_cold() {
            true => 0,
            false if median == 0 => self.time,
            false => approach(self.time, median, ONE - self.left(now)),
        }
    }

    /// What the endpoint compares with, before division by its weight: t · (a + 1), times 2 for each
    /// failure in a row, in [`LOAD_ONE`]ths of a unit of time. Below 2⁸⁴.
    #[inline]
    pub(crate) fn load(self, in_flight: u32, now: Tick, median: u64, best: u64) -> u128 {
        let in_flight = u64::from(in_flight);
        if self.is_cold() {
            let unanswered = self.unanswered(now).max(in_flight);
            return u128::from(best) * u128::from((1 + COLD_PENALTY * unanswered) * LOAD_ONE);
        }
        // 2^failures, halved with every half-life; never below 1.
        let doubled = if self.failures == 0 {
            LOAD_ONE
        } else {
            ((self.left(now) << self.failures) >> 22).max(LOAD_ONE)
        };
        u128::from(self.time(now, median)) * u128::from((in_flight + 1) * doubled)
    }

    pub(crate) fn dispatched(self, now: Tick) -> Latency {
        match self.is_cold() {
            true => {
                let time = (self.unanswered(now) + 1).min(TIME_MAX);
                Latency { time, moment: moment(now), ..self }
            }
            false => self,
        }
    }

    pub(crate) fn answered(self, took: Duration, now: Tick, average: Average) -> Latency {
        let took = units(took);
        let aged = ONE - self.left(now);
        let time = match average {
            _ if self.is_cold() => took,
            Average::Moving => approach(self.time, took, aged.max(ONE / (self.answers + 1))),
            Average::Peak if took >= self.time => took,
            // Within one moment nothing has aged: the next answer that counts is the next one's.
            Average::Peak if aged == 0 => return Latency { failures: self.forgiven(), ..self },
            Average::Peak => approach(self.time, took, aged),
        };
        let answers = (self.answers + 1).min(ANSWERS_MAX);
        Latency { time, answers, failures: self.forgiven(), moment: moment(now) }
    }

    pub(crate) fn failed(
        self,
        elapsed: Duration,
        mean: u64,
        now: Tick,
        average: Average,
    ) -> Latency {
        let took = units(elapsed).max(mean);
        let before = if self.is_cold() { 0 } else { self.time };
        let after = match average {
            Average::Moving if !self.is_cold() => {
                let aged = ONE - self.left(now);
                approach(before, took, aged.max(ONE / (self.answers + 1)))
            }
            _ => took,
        };
        let forgotten = self.age(now) / HALF_LIFE_MOMENTS;
        Latency {
            time: after.max(before),
            answers: (self.answers + 1).min(ANSWERS_MAX),
            failures: (self.failures.saturating_sub(forgotten) + 1).min(FAILURES_MAX),
            moment: moment(now),
        }
    }

    /// Dispatches without an answer of a cold endpoint; old ones count half for each half-life.
    fn unanswered(self, now: Tick) -> u64 {
        self.time >> (self.age(now) / HALF_LIFE_MOMENTS).min(63)
    }

    /// Failures in a row after an answer that was none.
    fn forgiven(self) -> u64 {
        self.failures.saturating_sub(1)
    }

    /// What is left after the time since the last answer, in 2⁻³².
    #[inline]
    fn left(self, now: Tick) -> u64 {
        half_to(self.age(now), HALF_LIFE_MOMENTS)
    }

    /// Moments since the last answer.
    #[inline]
    fn age(self, now: Tick) -> u64 {
        let age = moment(now).wrapping_sub(self.moment) & MOMENT_MASK;
        if age > MOMENT_MASK - LAG_MAX { 0 } else { age }
    }

    /// Whether an answer came within the half-life.
    pub(crate) fn is_fresh(self, now: Tick) -> bool {
        self.age(now) < HALF_LIFE_MOMENTS
    }
}

/// A time in units; at least one, as 0 stands for none.
fn units(time: Duration) -> u64 {
    let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    (nanos >> UNIT_NANOS_LOG2).clamp(1, TIME_MAX)
}

/// Units as a time.
pub(crate) fn duration(units: u64) -> Duration {
    Duration::from_nanos(units << UNIT_NANOS_LOG2)
}

fn moment(now: Tick) -> u64 {
    now.0 >> MOMENT_NANOS_LOG2 & MOMENT_MASK
}

/// `from`, moved towards `to` by `part` 2⁻³² of the way; by a unit at least, so that it arrives.
#[inline]
fn approach(from: u64, to: u64, part: u64) -> u64 {
    // 33 and 30 bits: the product fits 64.
    let step = |way: u64| (way * (part >> 2)) >> 30;
    let least = u64::from(part > 0);
    if to >= from {
        from + step(to - from).max(least).min(to - from)
    } else {
        from - step(from - to).max(least).min(from - to)
    }
}
