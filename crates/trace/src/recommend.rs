//! Which one, if any? A difference counts if it is more than chance and more than nothing.
//!
//! Candidates are held against the one that made the log, part by part, by the logarithms of their p95
//! and p99. As many are compared at once, intervals are wider (Bonferroni): that any of them misses has
//! a chance of 5 %. Of those that are better, the simplest that is as good as the best is recommended.

use crate::spread::Spread;
use crate::trial::{Run, simplicity};
use subak_balance::Algorithm;

/// What p95 or p99 must gain to be worth a change, and may lose.
pub(crate) const WORTH: f64 = 0.05;
/// The share of requests that must be saved from failing, and may be lost.
const FEW_FAILURES: f64 = 0.001;
/// The chance that any interval misses.
const ERROR: f64 = 0.05;

/// p50, p95 and p99 among the latencies that are told.
const P50: usize = 0;
const P95: usize = 1;
const P99: usize = 2;

/// A candidate against the one that made the log.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Comparison {
    /// Its p50 in that of the other: told, and not judged by.
    pub(crate) p50: Spread,
    /// Its p95 in that of the other: 0.8 is a fifth less.
    pub(crate) p95: Spread,
    pub(crate) p99: Spread,
    /// More requests of all that fail.
    pub(crate) failed: Spread,
}

/// What to do.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Advice {
    /// Change to this one; others are as good.
    Change { to: usize, as_good: Vec<usize> },
    /// Nobody is better.
    Stay,
}

/// Holds each candidate against `base`; the two in the same place compare as equal.
pub(crate) fn compare(runs: &[Vec<Run>], base: usize) -> Vec<Comparison> {
    // Three figures of each of the others.
    let error = ERROR / (3 * (runs.len() - 1).max(1)) as f64;
    runs.iter().map(|those| comparison(those, &runs[base], error)).collect()
}

fn comparison(those: &[Run], base: &[Run], error: f64) -> Comparison {
    let ratio = |place: usize| {
        let one = |(run, base): (&Run, &Run)| {
            libm::log(run.latency[place].max(1) as f64 / base.latency[place].max(1) as f64)
        };
        let values: Vec<f64> = those.iter().zip(base).map(one).collect();
        let spread = Spread::of(&values, error);
        Spread {
            mean: libm::exp(spread.mean),
            low: libm::exp(spread.low),
            high: libm::exp(spread.high),
        }
    };
    let failed: Vec<f64> =
        those.iter().zip(base).map(|(run, base)| run.failed - base.failed).collect();
    Comparison {
        p50: ratio(P50),
        p95: ratio(P95),
        p99: ratio(P99),
        failed: Spread::of(&failed, error),
    }
}

impl Comparison {
    pub(crate) fn is_better(&self) -> bool {
        let gains = |ratio: &Spread| ratio.mean <= 1.0 - WORTH && ratio.high < 1.0;
        let loses = |ratio: &Spread| ratio.mean >= 1.0 + WORTH;
        let saves = self.failed.mean <= -FEW_FAILURES && self.failed.high < 0.0;
        let fails = self.failed.mean >= FEW_FAILURES;
        let is_no_slower = !loses(&self.p95) && !loses(&self.p99);
        !fails && is_no_slower && (gains(&self.p95) || gains(&self.p99) || saves)
    }

    /// The smaller, the better.
    fn score(&self) -> f64 {
        // A thousandth more failures weighs like a hundredth more latency.
        libm::log(self.p95.mean) + libm::log(self.p99.mean) + 10.0 * self.failed.mean
    }
}

/// What these comparisons advise.
pub(crate) fn advise(comparisons: &[Comparison], base: usize, algorithms: &[&Algorithm]) -> Advice {
    let better = |index: &usize| *index != base && comparisons[*index].is_better();
    let mut better: Vec<usize> = (0..comparisons.len()).filter(better).collect();
    let by_score = |one: &usize, other: &usize| {
        comparisons[*one].score().total_cmp(&comparisons[*other].score())
    };
    better.sort_by(by_score);
    let Some(best) = better.first().map(|best| comparisons[*best]) else { return Advice::Stay };
    let is_as_good = |index: &usize| {
        let one = &comparisons[*index];
        one.p95.mean <= best.p95.mean * (1.0 + WORTH)
            && one.p99.mean <= best.p99.mean * (1.0 + WORTH)
            && one.failed.mean <= best.failed.mean + FEW_FAILURES
    };
    better.retain(is_as_good);
    better.sort_by_key(|index| simplicity(algorithms[*index]));
    Advice::Change { to: better[0], as_good: better[1..].to_vec() }
}

/// The candidate whose runs are most like the log itself, part by part.
pub(crate) fn nearest(runs: &[Vec<Run>], logged: &[Run]) -> Option<usize> {
    let distance = |those: &Vec<Run>| -> f64 {
        let one = |(run, log): (&Run, &Run)| {
            let latency: f64 = (0..3)
                .map(|place| {
                    let ratio = run.latency[place].max(1) as f64 / log.latency[place].max(1) as f64;
                    libm::fabs(libm::log(ratio))
                })
                .sum();
            let share = |run: &Run, place: usize| {
                run.hits[place] as f64 / run.hits.iter().sum::<u64>().max(1) as f64
            };
            let hits: f64 = (0..log.hits.len())
                .map(|place| libm::fabs(share(run, place) - share(log, place)))
                .sum();
            latency + hits
        };
        those.iter().zip(logged).map(one).sum()
    };
    (0..runs.len()).min_by(|one, other| distance(&runs[*one]).total_cmp(&distance(&runs[*other])))
}

#[cfg(test)]
mod tests {
    use super::*;
    use subak_balance::catalogue;

    fn runs(p95: [u64; 5], failed: f64) -> Vec<Run> {
        p95.iter()
            .map(|p95| Run {
                latency: [1, *p95, *p95 * 2, *p95 * 3],
                failed,
                hits: vec![1, 1],
                jain: 1.0,
                cached: 0.0,
                retries: 0,
                imbalance: Vec::new(),
            })
            .collect()
    }

    fn advice(candidates: &[(&str, Vec<Run>)]) -> Advice {
        let runs: Vec<_> = candidates.iter().map(|(_, runs)| runs.clone()).collect();
        let algorithms: Vec<_> =
            candidates.iter().map(|(name, _)| catalogue::find(name).unwrap().algorithm()).collect();
        advise(&compare(&runs, 0), 0, &algorithms.iter().collect::<Vec<_>>())
    }

    #[test]
    fn a_gain_that_is_sure_and_worth_having_is_advised() {
        let base = ("round_robin", runs([1000, 1100, 900, 1050, 980], 0.0));
        let good = runs([700, 780, 620, 730, 690], 0.0);
        let found =
            advice(&[base.clone(), ("peak_ewma", good.clone()), ("random", base.1.clone())]);
        assert_eq!(found, Advice::Change { to: 1, as_good: vec![] });
        // Of two that are as good the simpler one.
        let found = advice(&[base, ("peak_ewma", good.clone()), ("least_connections", good)]);
        assert_eq!(found, Advice::Change { to: 2, as_good: vec![1] });
    }

    #[test]
    fn small_gains_luck_and_failures_are_not() {
        let base = || ("round_robin", runs([1000, 1100, 900, 1050, 980], 0.001));
        let small = runs([970, 1066, 874, 1020, 950], 0.001);
        assert_eq!(advice(&[base(), ("random", small)]), Advice::Stay);
        let lucky = runs([200, 1500, 1000, 700, 1200], 0.001);
        assert_eq!(advice(&[base(), ("random", lucky)]), Advice::Stay);
        let failing = runs([700, 780, 620, 730, 690], 0.02);
        assert_eq!(advice(&[base(), ("random", failing)]), Advice::Stay);
        let saving = runs([1000, 1100, 900, 1050, 980], 0.0);
        assert!(matches!(
            advice(&[(base().0, runs([1000, 1100, 900, 1050, 980], 0.02)), ("random", saving)]),
            Advice::Change { to: 1, .. }
        ));
    }

    #[test]
    fn the_nearest_is_most_like_the_log() {
        let log = runs([1000, 1100, 900, 1050, 980], 0.0);
        let candidates = [runs([500; 5], 0.0), runs([1010, 1090, 900, 1060, 970], 0.0)];
        assert_eq!(nearest(&candidates, &log), Some(1));
    }
}
