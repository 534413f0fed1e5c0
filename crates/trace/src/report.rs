//! A finding as people read it.

mod answer;
mod hits;
mod model;
mod results;
mod traffic;

use subak_report::{Axis, Block, Plot, PlotKind, Point, Report, Scale, Section, Series};

use crate::recommend::Advice;
use crate::replay::{Answer, Finding, Known, Question, Trial};
use crate::trial::Run;
use model::model;
use traffic::traffic;

/// Lines of a plot over time.
const MOST_LINES: usize = 4;

impl Finding<'_> {
    /// The report. `made` is when, `setup` what ran where, `repeat` the commands that do it again.
    pub fn report(&self, made: &str, setup: Vec<(String, String)>, repeat: Vec<String>) -> Report {
        let mut sections = vec![traffic(self.log, &self.traffic)];
        if let Some(fit) = &self.fit {
            sections.push(model(self.log, fit, self.trial.as_ref()));
        }
        if let Some(trial) = &self.trial {
            sections.insert(0, self.results(trial));
            sections.push(over_time(self, trial));
        }
        sections.push(limits());
        Report {
            title: match self.question {
                Question::Replay { .. } => "Replay of an access log".into(),
                Question::WhatIf { new, .. } => format!("What if: {}", new.name),
            },
            question: match self.question {
                Question::Replay { .. } => "Which algorithm serves this traffic best?".into(),
                Question::WhatIf { running, new } => {
                    format!(
                        "What would {} change for this traffic, against {}?",
                        new.name, running.name
                    )
                }
            },
            answer: self.sentence(),
            made: made.to_owned(),
            setup: self.setup(setup),
            verdicts: vec![self.verdict()],
            sections,
            repeat,
        }
    }

    fn setup(&self, mut setup: Vec<(String, String)>) -> Vec<(String, String)> {
        let mut add = |name: &str, value: String| setup.push((name.to_owned(), value));
        add("Format", self.log.format.clone());
        if let Some(pool) = &self.log.pool {
            add("Pool of the log", pool.clone());
        }
        if let Some(trial) = &self.trial {
            let base = self.name(trial, trial.base);
            let known = match trial.known {
                Known::Told => "taken as given",
                Known::ByItsPicks => "as its picks show",
                Known::ByItsResults => {
                    "a guess: of all candidates its replay is most like the log; --made-by tells it"
                }
            };
            add("Made by", format!("{base} ({known})"));
            let seeds = trial.logged.len();
            let (one, all) = (trial.replayed, self.log.requests.len());
            add(
                "Runs",
                match one < all {
                    true => format!(
                        "{seeds} seeds; seed i replays the i-th stretch of {one} of the {all} requests"
                    ),
                    false => format!("{seeds} seeds, each all {all} requests"),
                },
            );
            if !trial.strangers.is_empty() {
                let names = trial.strangers.join(", ");
                add("Not in the log", format!("{names}: taken to work like the median endpoint"));
            }
            if !trial.left_out.is_empty() {
                add("Not tried", trial.left_out.join("; "));
            }
        }
        setup
    }
}

fn over_time(finding: &Finding<'_>, trial: &Trial) -> Section {
    let mut which = vec![trial.base];
    if let Answer::Told(Advice::Change { to, as_good }) = &finding.answer {
        which.push(*to);
        which.extend(as_good.first());
    }
    let mut rest: Vec<usize> = (0..trial.runs.len()).filter(|one| !which.contains(one)).collect();
    rest.sort_by(|one, other| {
        let p95 = |index: &usize| trial.comparisons[*index].p95.mean;
        p95(one).total_cmp(&p95(other))
    });
    which.extend(rest);
    which.truncate(MOST_LINES - 1);
    let line = |name: &str, runs: &[Run]| Series {
        name: name.to_owned(),
        points: runs.first().map_or(Vec::new(), |run| {
            run.imbalance.iter().map(|(x, y)| Point::new(*x, *y)).collect()
        }),
    };
    let mut series = vec![line("the log itself", &trial.logged)];
    series.extend(which.iter().map(|one| line(finding.name(trial, *one), &trial.runs[*one])));
    let plot = Plot {
        caption: "Requests of the busiest endpoint, in an even share of all (1: even). First seed."
            .into(),
        kind: PlotKind::Lines,
        x: Axis::new("time", Some("s"), Scale::Linear),
        y: Axis::new("imbalance", None, Scale::Linear),
        series,
    };
    Section::new("Imbalance over time", vec![Block::Plot(plot)])
}

fn limits() -> Section {
    let text = "Intervals are over seeds and stretches of this one log; another day may be another. \
                Arrivals, clients and URIs are the log's own; how long work takes is drawn from what each \
                endpoint showed, whoever asks for whatever, but for what it has in its cache. Clients \
                that would wait for an answer before they ask again are not slowed down. Of failures \
                only the share at each endpoint is kept. Network and balancer take no time of their own \
                here.";
    Section::new("What this does not say", vec![Block::Text(text.into())])
}
