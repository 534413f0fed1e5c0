//! The moments of arrival, one after the other.

use std::sync::Arc;

use subak_base::Rng;

use crate::arrivals::{Arrivals, Herd, Pace, Rate, Stage, Trace};
use crate::draw::exponential;
use crate::histogram::nanos;

/// What arrives next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Arrival {
    /// In nanoseconds.
    pub(crate) at: u64,
    pub(crate) who: Who,
}

/// Who arrives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Who {
    /// One of many.
    Anybody,
    /// The request at this place of the trace.
    Traced(u32),
    /// This user, who begins.
    User(u32),
}

/// Where arrivals come from.
#[derive(Debug)]
pub(crate) struct Source {
    main: Main,
    herds: Vec<Herd>,
    /// The next of the main source, and the next of each herd.
    next: Option<Arrival>,
    of_herds: Vec<u32>,
}

#[derive(Debug)]
enum Main {
    /// Poisson at one rate: the mean gap, the moment reached, and what is left over of a nanosecond.
    Steady {
        gap_ns: f64,
        at: u64,
        rest: f64,
    },
    Varying(Box<Varying>),
    Trace {
        trace: Arc<Trace>,
        next: u32,
    },
    Users {
        starts: Vec<(u64, u32)>,
        next: usize,
    },
}

impl Source {
    pub(crate) fn new(arrivals: &Arrivals, herds: &[Herd], random: &mut Rng) -> Source {
        let main = match arrivals {
            Arrivals::Open { pace: Pace::Poisson, rate: Rate::Steady(rate) } if *rate > 0.0 => {
                Main::Steady { gap_ns: 1e9 / rate, at: 0, rest: 0.0 }
            }
            Arrivals::Open { pace, rate } => {
                Main::Varying(Box::new(Varying::new(*pace, rate, random)))
            }
            Arrivals::Trace(trace) => Main::Trace { trace: trace.clone(), next: 0 },
            Arrivals::Users { stages, .. } => {
                Main::Users { starts: Line::of(stages).starts(), next: 0 }
            }
        };
        let herds: Vec<Herd> = herds.iter().filter(|herd| herd.requests > 0).copied().collect();
        let of_herds = vec![0; herds.len()];
        let mut source = Source { main, herds, next: None, of_herds };
        source.next = source.main.next(random);
        source
    }

    #[inline]
    pub(crate) fn next(&mut self, random: &mut Rng) -> Option<Arrival> {
        if !self.herds.is_empty()
            && let Some(arrival) = self.of_herd()
        {
            return Some(arrival);
        }
        let next = self.next?;
        self.next = self.main.next(random);
        Some(next)
    }

    /// One of a herd, if it comes before the others.
    fn of_herd(&mut self) -> Option<Arrival> {
        let moments = self.herds.iter().zip(&self.of_herds).enumerate();
        let moments = moments.filter(|(_, (herd, done))| **done < herd.requests);
        let moment = |(place, (herd, done)): (usize, (&Herd, &u32))| {
            let within = u128::from(nanos(herd.within)) * u128::from(*done);
            (nanos(herd.at) + (within / u128::from(herd.requests)) as u64, place)
        };
        let (at, place) = moments.map(moment).min()?;
        if self.next.is_some_and(|next| next.at <= at) {
            return None;
        }
        self.of_herds[place] += 1;
        if self.herds.iter().zip(&self.of_herds).all(|(herd, done)| *done == herd.requests) {
            self.herds.clear();
        }
        Some(Arrival { at, who: Who::Anybody })
    }
}

impl Main {
    #[inline]
    fn next(&mut self, random: &mut Rng) -> Option<Arrival> {
        match self {
            Main::Steady { gap_ns, at, rest } => {
                let gap = *gap_ns * exponential(random) + *rest;
                let whole = gap as u64;
                *rest = gap - whole as f64;
                *at = at.saturating_add(whole);
                Some(Arrival { at: *at, who: Who::Anybody })
            }
            Main::Varying(varying) => {
                Some(Arrival { at: varying.next(random)?, who: Who::Anybody })
            }
            Main::Trace { trace, next } => {
                let at = trace.requests.get(*next as usize)?.at_ns;
                *next += 1;
                Some(Arrival { at, who: Who::Traced(*next - 1) })
            }
            Main::Users { starts, next } => {
                let (at, user) = *starts.get(*next)?;
                *next += 1;
                Some(Arrival { at, who: Who::User(user) })
            }
        }
    }
}

/// A value that goes on straight lines from stage to stage, and begins anew where it is periodic.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    /// How long in nanoseconds, from where, to where.
    stages: Vec<(u64, f64, f64)>,
    is_periodic: bool,
}

/// Straight lines that a day's sine is made of.
const LINES_A_DAY: u32 = 96;

impl Line {
    pub(crate) fn of(stages: &[Stage]) -> Line {
        let mut from = 0.0;
        let stage = |stage: &Stage| {
            let to = stage.to.max(0.0);
            (nanos(stage.lasts), std::mem::replace(&mut from, to), to)
        };
        Line { stages: stages.iter().map(stage).collect(), is_periodic: false }
    }

    fn of_rate(rate: &Rate) -> Line {
        match rate {
            Rate::Steady(rate) => {
                Line { stages: vec![(u64::MAX, rate.max(0.0), rate.max(0.0))], is_periodic: false }
            }
            Rate::Stages(stages) => Line::of(stages),
            Rate::Diurnal { mean, swing_per_mille, period } => {
                let swing = f64::from((*swing_per_mille).min(1000)) / 1000.0;
                let at = |line: u32| {
                    let turn = f64::from(line) / f64::from(LINES_A_DAY);
                    mean.max(0.0) * (1.0 + swing * libm::sin(std::f64::consts::TAU * turn))
                };
                let lasts = (nanos(*period) / u64::from(LINES_A_DAY)).max(1);
                let stages = (0..LINES_A_DAY).map(|line| (lasts, at(line), at(line + 1)));
                Line { stages: stages.collect(), is_periodic: true }
            }
        }
    }

    /// How many there are at this moment, for lines that are not periodic; none after the last stage.
    pub(crate) fn at(&self, at: u64) -> f64 {
        let mut begins = 0_u64;
        for (lasts, from, to) in &self.stages {
            let ends = begins.saturating_add(*lasts);
            if at < ends {
                return from + (to - from) * ((at - begins) as f64 / *lasts as f64);
            }
            begins = ends;
        }
        0.0
    }

    /// When the value rises above each whole number, with that number, in order.
    fn starts(&self) -> Vec<(u64, u32)> {
        let (mut begins, mut starts) = (0_u64, Vec::new());
        for (lasts, from, to) in &self.stages {
            let (first, last) = (from.floor().max(0.0) as u32, to.floor().max(0.0) as u32);
            for user in first..last {
                let share = ((f64::from(user) + 1.0 - from) / (to - from)).clamp(0.0, 1.0);
                starts.push((begins + (share * *lasts as f64) as u64, user));
            }
            begins = begins.saturating_add(*lasts);
        }
        starts
    }
}

/// Arrivals at a rate that varies: of unit rate, in a time that runs as fast as the rate says.
#[derive(Debug)]
struct Varying {
    line: Line,
    pace: Pace,
    stage: usize,
    /// Where the stage began, and how far into it the last arrival was, in nanoseconds.
    began: u64,
    into: f64,
    is_burst: bool,
    /// How long it still stays calm or bursts.
    left: f64,
}

impl Varying {
    fn new(pace: Pace, rate: &Rate, random: &mut Rng) -> Varying {
        let left = match pace {
            Pace::Bursty { calm, .. } => nanos(calm) as f64 * exponential(random),
            Pace::Poisson | Pace::Even => f64::INFINITY,
        };
        let line = Line::of_rate(rate);
        Varying { line, pace, stage: 0, began: 0, into: 0.0, is_burst: false, left }
    }

    fn next(&mut self, random: &mut Rng) -> Option<u64> {
        let mut due = match self.pace {
            Pace::Even => 1.0,
            Pace::Poisson | Pace::Bursty { .. } => exponential(random),
        };
        // A day, or a calm and a burst, without anybody is not the first of many such.
        let mut idle = 0;
        while idle < 2 * self.line.stages.len() + 1000 {
            let (lasts, from, to) = *self.line.stages.get(self.stage)?;
            let lasts_ns = lasts as f64;
            let factor = match (self.pace, self.is_burst) {
                (Pace::Bursty { calm_per_mille, .. }, false) => f64::from(calm_per_mille) / 1000.0,
                (Pace::Bursty { burst_per_mille, .. }, true) => f64::from(burst_per_mille) / 1000.0,
                _ => 1.0,
            };
            // A nanosecond.
            let slope = factor * (to - from) / lasts_ns.max(1.0) / 1e9;
            let rate = factor * from / 1e9 + slope * self.into;
            let step = (lasts_ns - self.into).min(self.left);
            let area = (rate + slope * step / 2.0) * step;
            if due <= area {
                let time = 2.0 * due / (rate + (rate * rate + 2.0 * slope * due).max(0.0).sqrt());
                let time = time.min(step);
                self.into += time;
                self.left -= time;
                return Some(self.began.saturating_add(self.into as u64));
            }
            idle = if area > 0.0 { 0 } else { idle + 1 };
            due -= area.max(0.0);
            self.into += step;
            self.left -= step;
            if self.left <= 0.0
                && let Pace::Bursty { calm, burst, .. } = self.pace
            {
                self.is_burst = !self.is_burst;
                let mean = if self.is_burst { burst } else { calm };
                self.left = (nanos(mean) as f64 * exponential(random)).max(1.0);
            }
            if self.into >= lasts_ns {
                self.began = self.began.saturating_add(lasts);
                self.into = 0.0;
                self.stage += 1;
                if self.line.is_periodic && self.stage == self.line.stages.len() {
                    self.stage = 0;
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn arrivals(arrivals: &Arrivals, herds: &[Herd], until_s: u64) -> Vec<f64> {
        let mut random = Rng::new(9);
        let mut source = Source::new(arrivals, herds, &mut random);
        let mut found = Vec::new();
        while let Some(arrival) = source.next(&mut random)
            && arrival.at < until_s * 1_000_000_000
        {
            found.push(arrival.at as f64 / 1e9);
        }
        assert!(found.is_sorted());
        found
    }

    fn open(pace: Pace, rate: Rate) -> Arrivals {
        Arrivals::Open { pace, rate }
    }

    fn between(found: &[f64], from: f64, to: f64) -> f64 {
        found.iter().filter(|at| (from..to).contains(*at)).count() as f64
    }

    fn stage(seconds: u64, to: f64) -> Stage {
        Stage { lasts: Duration::from_secs(seconds), to }
    }

    #[test]
    fn a_rate_is_kept() {
        for pace in [Pace::Poisson, Pace::Even] {
            let found = arrivals(&open(pace, Rate::Steady(1000.0)), &[], 100);
            assert!((found.len() as f64 - 100_000.0).abs() < 4.0 * 317.0, "{}", found.len());
        }
        let even = arrivals(&open(Pace::Even, Rate::Steady(10.0)), &[], 2);
        assert!(even.windows(2).all(|pair| (pair[1] - pair[0] - 0.1).abs() < 1e-6));
        assert!(arrivals(&open(Pace::Poisson, Rate::Steady(0.0)), &[], 100).is_empty());
    }

    #[test]
    fn a_ramp_has_the_area_under_it() {
        let stages = vec![stage(10, 1000.0), stage(10, 1000.0), stage(5, 0.0)];
        let found = arrivals(&open(Pace::Even, Rate::Stages(stages)), &[], 100);
        for (from, to, area) in [(0.0, 5.0, 1250.0), (10.0, 20.0, 10_000.0), (20.0, 25.0, 2500.0)] {
            assert!((between(&found, from, to) - area).abs() <= 2.0, "{from}");
        }
        assert!(found.last().is_some_and(|last| *last < 25.0));
    }

    #[test]
    fn a_day_has_its_high_and_its_low() {
        let rate =
            Rate::Diurnal { mean: 100.0, swing_per_mille: 500, period: Duration::from_secs(100) };
        let found = arrivals(&open(Pace::Even, rate), &[], 200);
        assert!((found.len() as f64 - 20_000.0).abs() < 10.0, "{}", found.len());
        assert!((between(&found, 124.0, 126.0) - 300.0).abs() < 4.0);
        assert!((between(&found, 174.0, 176.0) - 100.0).abs() < 4.0);
    }

    #[test]
    fn bursts_have_the_mean_and_vary_more_than_poisson() {
        let pace = Pace::Bursty {
            calm_per_mille: 500,
            burst_per_mille: 3000,
            calm: Duration::from_secs(4),
            burst: Duration::from_secs(1),
        };
        let found = arrivals(&open(pace, Rate::Steady(100.0)), &[], 10_000);
        // 0.8 · 0.5 + 0.2 · 3 of the nominal rate.
        assert!((found.len() as f64 / 1_000_000.0 - 1.0).abs() < 0.03, "{}", found.len());
        let mut seconds = vec![0.0_f64; 10_000];
        found.iter().for_each(|at| seconds[*at as usize] += 1.0);
        let mean = found.len() as f64 / 10_000.0;
        let variance = seconds.iter().map(|count| (count - mean).powi(2)).sum::<f64>() / 10_000.0;
        assert!(variance > 20.0 * mean, "{variance}");
    }

    #[test]
    fn a_herd_comes_on_top() {
        let herd =
            Herd { at: Duration::from_secs(5), requests: 100, within: Duration::from_secs(1) };
        let found = arrivals(&open(Pace::Even, Rate::Steady(10.0)), &[herd], 10);
        assert_eq!(between(&found, 5.0, 6.0), 110.0);
        assert_eq!(found.len(), 199);
    }

    #[test]
    fn users_begin_one_after_the_other_and_at_once_where_a_stage_takes_no_time() {
        let stages = [stage(10, 5.0), stage(0, 7.0), stage(10, 7.0), stage(10, 2.0)];
        let line = Line::of(&stages);
        let starts: Vec<(u64, u32)> =
            line.starts().iter().map(|(at, user)| (at / 1_000_000_000, *user)).collect();
        assert_eq!(starts, [(2, 0), (4, 1), (6, 2), (8, 3), (10, 4), (10, 5), (10, 6)]);
        assert_eq!(line.at(15_000_000_000), 7.0);
        assert_eq!(line.at(25_000_000_000), 4.5);
        assert_eq!(line.at(30_000_000_000), 0.0);
    }
}
