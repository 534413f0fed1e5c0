//! What a finding says in a sentence, and why.

use subak_report::{Verdict, Word};

use crate::fit::shown;
use crate::recommend::{Advice, Comparison, WORTH};
use crate::replay::{Answer, Finding, Question, Trial};
use crate::spread::Spread;
use crate::trial::Run;

impl Finding<'_> {
    pub(super) fn sentence(&self) -> String {
        let (answer, Some(trial)) = (&self.answer, &self.trial) else {
            return match &self.answer {
                Answer::CannotTell(why) => format!("This log cannot tell: {why}."),
                Answer::Told(_) => String::new(),
            };
        };
        let base = self.name(trial, trial.base);
        match answer {
            Answer::CannotTell(why) => format!("This log cannot tell: {why}"),
            Answer::Told(Advice::Stay) => {
                let worth = WORTH * 100.0;
                match self.question {
                    Question::Replay { .. } => format!(
                        "No difference: stay with {base}. No other has a p95 or p99 that is at least \
                         {worth:.0} % lower beyond chance, without losing elsewhere.",
                    ),
                    Question::WhatIf { new, .. } => match self.harm(trial) {
                        Some(harm) => format!("{} would be worse: {harm}.", new.name),
                        None => format!(
                            "No difference worth having: {} gains less than {worth:.0} % of p95 and \
                             p99, or no more than chance.",
                            new.name
                        ),
                    },
                }
            }
            Answer::Told(Advice::Change { to, as_good }) => {
                let comparison = &trial.comparisons[*to];
                let name = self.name(trial, *to);
                let gains = gains(comparison);
                let others: Vec<&str> =
                    as_good.iter().map(|index| self.name(trial, *index)).collect();
                let others = match others.as_slice() {
                    [] => String::new(),
                    others => format!(" As good, but less simple: {}.", others.join(", ")),
                };
                let why = self.why(trial, *to);
                match self.question {
                    Question::Replay { .. } => {
                        format!("Change from {base} to {name}: {gains}.{why}{others}")
                    }
                    Question::WhatIf { .. } => format!("{name} is better: {gains}.{why}"),
                }
            }
        }
    }

    /// What the new configuration loses.
    fn harm(&self, trial: &Trial) -> Option<String> {
        let other = (0..trial.runs.len()).find(|index| *index != trial.base)?;
        let comparison = &trial.comparisons[other];
        let loses = |ratio: &Spread| ratio.mean >= 1.0 + WORTH && ratio.low > 1.0;
        let fails = comparison.failed.mean >= 0.001 && comparison.failed.low > 0.0;
        (loses(&comparison.p95) || loses(&comparison.p99) || fails).then(|| gains(comparison))
    }

    /// What the runs show of the reason.
    fn why(&self, trial: &Trial, to: usize) -> String {
        let mean = |runs: &[Run], of: fn(&Run) -> f64| {
            runs.iter().map(of).sum::<f64>() / runs.len().max(1) as f64
        };
        let (base, new) = (&trial.runs[trial.base], &trial.runs[to]);
        let (cached, now) = (mean(base, |run| run.cached), mean(new, |run| run.cached));
        if now >= cached + 0.05 {
            return format!(
                " Endpoints answer {:.0} % of the requests from what they have served lately, instead \
                 of {:.0} %.",
                now * 100.0,
                cached * 100.0
            );
        }
        let share = |runs: &[Run], place: usize| {
            runs.iter()
                .map(|run| run.hits[place] as f64 / run.hits.iter().sum::<u64>().max(1) as f64)
                .sum::<f64>()
                / runs.len().max(1) as f64
        };
        let Some(fit) = &self.fit else { return String::new() };
        if new[0].hits.len() != self.log.endpoints.len()
            || base[0].hits.len() != self.log.endpoints.len()
        {
            return String::new();
        }
        let slow = (0..self.log.endpoints.len()).max_by_key(|index| {
            let endpoint = &fit.endpoints[*index];
            endpoint.service.mean() / u64::from(endpoint.concurrency)
        });
        let typical = {
            let mut means: Vec<_> =
                fit.endpoints.iter().map(|endpoint| endpoint.service.mean()).collect();
            means.sort_unstable();
            means[means.len() / 2]
        };
        match slow {
            Some(slow) if share(new, slow) < share(base, slow) * 0.9 => format!(
                " {}, which takes {} for a request where {} is usual, gets {:.1} % of them instead of \
                 {:.1} %.",
                self.log.endpoints[slow],
                shown(fit.endpoints[slow].service.mean()),
                shown(typical),
                share(new, slow) * 100.0,
                share(base, slow) * 100.0
            ),
            _ => " It sends requests where fewer are under way.".to_owned(),
        }
    }

    pub(super) fn verdict(&self) -> Verdict {
        let claim = match self.question {
            Question::Replay { .. } => "another algorithm would serve this traffic better",
            Question::WhatIf { .. } => "the new configuration serves this traffic better",
        };
        let word = match (&self.answer, &self.trial) {
            (Answer::Told(Advice::Change { .. }), _) => Word::Holds,
            (Answer::Told(Advice::Stay), Some(trial)) => match self.question {
                Question::WhatIf { .. } if self.harm(trial).is_some() => Word::Fails,
                _ => Word::NoDifference,
            },
            _ => Word::CannotTell,
        };
        Verdict::new(claim, word, self.sentence())
    }
}

/// How p50, p95, p99 and failures change. The typical request comes first: a better p95 with a worse p50
/// is a choice, and no gain alone.
fn gains(comparison: &Comparison) -> String {
    let change = |name: &str, ratio: &Spread| {
        let percent = (ratio.mean - 1.0) * 100.0;
        let (low, high) = ((ratio.low - 1.0) * 100.0, (ratio.high - 1.0) * 100.0);
        match ratio.low.is_finite() && ratio.high.is_finite() {
            true => format!("{name} {percent:+.0} % ({low:+.0} to {high:+.0} %)"),
            false => format!("{name} {percent:+.0} %"),
        }
    };
    let failed = comparison.failed.mean * 100.0;
    let failed = match failed.abs() >= 0.05 {
        true => format!(", failed requests {failed:+.2} percentage points"),
        false => String::new(),
    };
    let Comparison { p50, p95, p99, .. } = comparison;
    format!("{}, {}, {}{failed}", change("p50", p50), change("p95", p95), change("p99", p99))
}
