//! The whole way from a log to an answer.

use crate::candidate::Candidate;
use crate::describe::{self, Traffic};
use crate::fit::{self, CannotTell, Check, FIGURE_NAMES, Fit};
use crate::log::Log;
use crate::maker;
use crate::places;
use crate::recommend::{self, Advice, Comparison};
use crate::trial::{self, Places, Run, Subject};

/// Runs of each candidate, if nothing else is wanted.
pub const SEEDS: usize = 5;

/// What is asked of a log.
#[derive(Clone, Debug)]
pub enum Question {
    /// Which of these would be best?
    Replay {
        /// At least one.
        candidates: Vec<Candidate>,
        /// Which of them made the log; none: it is to be found out.
        made_by: Option<usize>,
    },
    /// What would change?
    WhatIf {
        /// The pool that made the log.
        running: Box<Candidate>,
        /// The one that is to be.
        new: Box<Candidate>,
    },
}

/// How the algorithm that made the log is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Known {
    Told,
    ByItsPicks,
    ByItsResults,
}

/// What came out.
#[derive(Debug)]
pub struct Finding<'a> {
    pub(crate) log: &'a Log,
    pub(crate) question: &'a Question,
    pub(crate) traffic: Traffic,
    pub(crate) fit: Option<Fit>,
    pub(crate) trial: Option<Trial>,
    pub(crate) answer: Answer,
}

/// The runs, and what they were held against.
#[derive(Debug)]
pub(crate) struct Trial {
    /// Of those that could be tried, by their places among the candidates.
    pub(crate) tried: Vec<usize>,
    pub(crate) runs: Vec<Vec<Run>>,
    /// The log's own figures, part by part.
    pub(crate) logged: Vec<Run>,
    /// Among the tried ones the one that made the log.
    pub(crate) base: usize,
    pub(crate) known: Known,
    pub(crate) comparisons: Vec<Comparison>,
    /// Keys that move when the busiest endpoint of the log fails, in thousandths.
    pub(crate) moved: Vec<Option<u64>>,
    pub(crate) check: Check,
    /// Requests of one run, of how many.
    pub(crate) replayed: usize,
    /// Endpoints of candidates that the log knows nothing of.
    pub(crate) strangers: Vec<String>,
    /// Candidates that could not be tried, and why.
    pub(crate) left_out: Vec<String>,
}

/// The short of it.
#[derive(Debug)]
pub(crate) enum Answer {
    CannotTell(String),
    Told(Advice),
}

/// Answers the question from the log. `done` hears how many of how many runs are over.
pub fn replay<'a>(
    log: &'a Log,
    question: &'a Question,
    seeds: usize,
    done: &(dyn Fn(usize, usize) + Sync),
) -> Finding<'a> {
    let traffic = describe::traffic(log);
    let mut finding = Finding {
        log,
        question,
        traffic,
        fit: None,
        trial: None,
        answer: Answer::CannotTell(String::new()),
    };
    let fit = match fit::fit(log) {
        Ok(fit) => fit,
        Err(CannotTell(why)) => {
            finding.answer = Answer::CannotTell(why);
            return finding;
        }
    };
    let misses = fit.check.misses();
    if let Some(misses) = misses {
        let why = "a replay of the log to the very endpoints it went to does not come out like it";
        finding.answer = Answer::CannotTell(format!("{why}: {misses}"));
        finding.fit = Some(fit);
        return finding;
    }
    let trial = match try_all(log, question, &fit, seeds, done) {
        Ok(trial) => trial,
        Err(why) => {
            finding.answer = Answer::CannotTell(why);
            finding.fit = Some(fit);
            return finding;
        }
    };
    let candidates = question.candidates();
    finding.answer = match trial.check.misses() {
        Some(misses) => {
            let name = &candidates[trial.tried[trial.base]].name;
            let why = format!("replayed with {name} the log does not come out as it is: {misses}");
            let remedy = match trial.known {
                Known::Told => "Was it made by another algorithm, or other weights?",
                Known::ByItsPicks | Known::ByItsResults => {
                    "Say by --made-by (and --weights) which algorithm made it."
                }
            };
            Answer::CannotTell(format!("{why}. {remedy}"))
        }
        None => {
            let algorithms: Vec<_> = trial
                .tried
                .iter()
                .map(|candidate| &candidates[*candidate].pool.algorithm)
                .collect();
            Answer::Told(recommend::advise(&trial.comparisons, trial.base, &algorithms))
        }
    };
    finding.fit = Some(fit);
    finding.trial = Some(trial);
    finding
}

impl Question {
    /// All pools that are tried.
    pub(crate) fn candidates(&self) -> Vec<&Candidate> {
        match self {
            Question::Replay { candidates, .. } => candidates.iter().collect(),
            Question::WhatIf { running, new } => vec![running, new],
        }
    }
}

fn try_all(
    log: &Log,
    question: &Question,
    fit: &Fit,
    seeds: usize,
    done: &(dyn Fn(usize, usize) + Sync),
) -> Result<Trial, String> {
    let candidates = question.candidates();
    let (told, is_replay) = match question {
        Question::Replay { made_by, .. } => (*made_by, true),
        Question::WhatIf { .. } => (Some(0), false),
    };
    let by_picks = match told {
        Some(_) => None,
        None => maker::maker(log, &candidates),
    };
    let (mut subjects, mut tried, mut left_out) = (Vec::new(), Vec::new(), Vec::new());
    for (index, candidate) in candidates.iter().enumerate() {
        let is_base = told.or(by_picks) == Some(index);
        // What if: these very names are to serve.
        let places = if is_replay && !is_base { Places::DealtAnew } else { Places::Kept };
        match Subject::new(candidate, log, fit, places) {
            Ok(subject) => {
                subjects.push(subject);
                tried.push(index);
            }
            Err(why) => left_out.push(why),
        }
    }
    if subjects.is_empty() || !is_replay && subjects.len() < 2 {
        return Err(left_out.join("; "));
    }
    let parts = trial::parts(log.requests.len(), seeds.max(1));
    let all = subjects.len() * parts.len();
    let runs = trial::run_all(log, &subjects, &parts, &|over| done(over, all));
    let logged: Vec<Run> = parts.iter().map(|part| trial::logged(log, part)).collect();
    let place = |known: usize| tried.iter().position(|index| *index == known);
    let (base, known) = match (told, by_picks.and_then(place)) {
        (Some(told), _) => (place(told).ok_or_else(|| left_out.join("; "))?, Known::Told),
        (None, Some(base)) => (base, Known::ByItsPicks),
        (None, None) => (recommend::nearest(&runs, &logged).unwrap_or(0), Known::ByItsResults),
    };
    let busiest = logged.first().and_then(|run| {
        let hits = run.hits.iter().enumerate();
        hits.max_by_key(|(index, hits)| (**hits, std::cmp::Reverse(*index))).map(|(index, _)| index)
    });
    let moved = tried.iter().map(|index| {
        let candidate = candidates[*index];
        let name = &log.endpoints[busiest?];
        let place = candidate
            .pool
            .endpoints
            .iter()
            .position(|one| one.name == *name || one.address.to_string() == *name)?;
        places::moved_per_mille(log, &candidate.pool, place)
    });
    let mut strangers: Vec<String> =
        subjects.iter().flat_map(|subject| subject.strangers.iter().cloned()).collect();
    strangers.sort_unstable();
    strangers.dedup();
    Ok(Trial {
        comparisons: recommend::compare(&runs, base),
        moved: moved.collect(),
        check: check(&runs[base], &logged, log.is_coarse),
        replayed: parts.first().map_or(0, |part| part.len()),
        tried,
        base,
        known,
        runs,
        logged,
        strangers,
        left_out,
    })
}

/// The algorithm that made the log, replayed, against the log: means over the parts. What the last two
/// figures of a check tell is not looked at here.
fn check(runs: &[Run], logged: &[Run], is_coarse: bool) -> Check {
    let mean = |runs: &[Run], place: usize| {
        let sum: u64 = runs.iter().map(|run| run.latency[place]).sum();
        sum / runs.len().max(1) as u64
    };
    let figures = |runs: &[Run]| {
        let mut figures = [0; FIGURE_NAMES.len()];
        (0..3).for_each(|place| figures[place] = mean(runs, place));
        figures
    };
    Check { logged: figures(logged), replayed: figures(runs), is_coarse }
}

impl Finding<'_> {
    /// The advice in one word: `change`, `stay` or `cannot_tell`.
    pub fn word(&self) -> &'static str {
        match &self.answer {
            Answer::CannotTell(_) => "cannot_tell",
            Answer::Told(Advice::Stay) => "stay",
            Answer::Told(Advice::Change { .. }) => "change",
        }
    }

    /// The candidate that is recommended, by name; none when nothing is to be changed.
    pub fn recommended(&self) -> Option<&str> {
        let (Answer::Told(Advice::Change { to, .. }), Some(trial)) = (&self.answer, &self.trial)
        else {
            return None;
        };
        Some(self.name(trial, *to))
    }

    /// The candidate that made the log, or is taken to have.
    pub fn made_by(&self) -> Option<&str> {
        let trial = self.trial.as_ref()?;
        Some(self.name(trial, trial.base))
    }

    /// Of one that was tried.
    pub(crate) fn name(&self, trial: &Trial, tried: usize) -> &str {
        match self.question {
            Question::Replay { candidates, .. } => &candidates[trial.tried[tried]].name,
            Question::WhatIf { running, new } => {
                if trial.tried[tried] == 0 {
                    &running.name
                } else {
                    &new.name
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example::Example;
    use crate::log::read;
    use crate::places::{KeyOf, Places};
    use crate::reading::Reading;

    /// The log of one slow endpoint, where none of the clients belongs to that one by `hash`.
    fn lucky() -> Log {
        let path = std::env::temp_dir().join(format!("subak-lucky-{}", std::process::id()));
        let mut text = Vec::new();
        Example::SlowEndpoint.write(20_000, 1, &mut text).expect("written");
        std::fs::write(&path, text).expect("a place for temporary files");
        let log = read(&path, &Reading::default(), |_| {});
        std::fs::remove_file(&path).ok();
        let mut log = log.expect("a log");
        let slow = log.endpoints.iter().position(|name| name == "10.0.0.4:80");
        let pool = log.candidate("hash/key=source", &[]).expect("an algorithm").pool;
        let places = Places::new(&pool, None).expect("endpoints");
        let clients = 0..log.clients.len() as u32;
        let kept: Vec<u32> =
            clients.filter(|one| places.of(&log, KeyOf::Client, *one) != slow).collect();
        for request in &mut log.requests {
            request.client = kept[request.client as usize % kept.len()];
        }
        log
    }

    #[test]
    fn luck_of_keys_is_not_recommended() {
        let log = lucky();
        let two = ["round_robin", "hash/key=source"];
        let candidates = two.map(|name| log.candidate(name, &[]).expect("an algorithm")).to_vec();
        let question = Question::Replay { candidates: candidates.clone(), made_by: Some(0) };
        let finding = replay(&log, &question, 10, &|_, _| {});
        let report = finding.report("now", vec![], vec![]).json();
        assert_eq!((finding.word(), finding.recommended()), ("stay", None), "{report}");
        // Who asks what would change, with these names and these clients, is told.
        let [running, new] = candidates.try_into().expect("two");
        let question = Question::WhatIf { running: Box::new(running), new: Box::new(new) };
        let finding = replay(&log, &question, 10, &|_, _| {});
        assert_eq!(finding.word(), "change");
    }
}
