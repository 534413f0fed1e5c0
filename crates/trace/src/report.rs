//! A finding as people read it.

use subak_report::{
    Axis, Block, Cell, Column, Plot, PlotKind, Point, Report, Scale, Section, Series, Table,
    Verdict, Word,
};

use crate::describe::Traffic;
use crate::fit::{Check, FIGURE_NAMES, FIGURES, Fit, shown};
use crate::log::Log;
use crate::moment::Grain;
use crate::recommend::{Advice, Comparison, WORTH};
use crate::replay::{Answer, Finding, Known, Question, Trial};
use crate::spread::Spread;
use crate::trial::{Run, TOLD};

/// Endpoints that get a column of their own.
const MOST_COLUMNS: usize = 16;

/// Lines of a plot over time.
const MOST_LINES: usize = 4;

const CONFIDENCE: f64 = 0.05;

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

    fn sentence(&self) -> String {
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

    fn verdict(&self) -> Verdict {
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

    fn results(&self, trial: &Trial) -> Section {
        let mut columns = vec![Column::new("algorithm")];
        columns.extend(["p50", "p95", "p99", "p99.9"].map(|name| Column::with_unit(name, "ms")));
        columns.extend([
            Column::new("p95 ÷ now"),
            Column::new("p99 ÷ now"),
            Column::with_unit("failed", "%"),
            Column::with_unit("from cache", "%"),
            Column::new("Jain index"),
            Column::with_unit("keys moved", "%"),
        ]);
        let has_cache = self.fit.as_ref().is_some_and(|fit| fit.cache.is_some());
        let mut rows = vec![self.row("the log itself", &trial.logged, None, None)];
        for (index, runs) in trial.runs.iter().enumerate() {
            let name = self.name(trial, index);
            let name = if index == trial.base { format!("{name} (now)") } else { name.to_owned() };
            let comparison = (index != trial.base).then(|| &trial.comparisons[index]);
            rows.push(self.row(&name, runs, comparison, trial.moved[index]));
        }
        if !has_cache {
            let place = columns.iter().position(|column| column.name == "from cache");
            if let Some(place) = place {
                columns.remove(place);
                rows.iter_mut().for_each(|row| _ = row.remove(place));
            }
        }
        let caption = "Means over the seeds, with the interval in which the mean lies (95 %). \"÷ now\": \
                       the ratio to the algorithm that made the log, stretch by stretch, with intervals \
                       of which none misses (95 %). \"Keys moved\": of the keys that belong to other \
                       endpoints, when the busiest one fails.";
        let table = Table { caption: caption.into(), columns, rows };
        let mut blocks = vec![Block::Table(table), Block::Plot(self.plot(trial))];
        blocks.extend(self.hits(trial).map(Block::Table));
        Section::new("Results", blocks)
    }

    fn row(
        &self,
        name: &str,
        runs: &[Run],
        comparison: Option<&Comparison>,
        moved: Option<u64>,
    ) -> Vec<Cell> {
        let mut row = vec![Cell::text(name)];
        row.extend(
            (0..TOLD.len()).map(|place| spread(runs, 3, |run| run.latency[place] as f64 / 1e6)),
        );
        let ratio = |of: fn(&Comparison) -> &Spread| match comparison.map(of) {
            Some(ratio) => cell(ratio, 2),
            None => Cell::Missing,
        };
        row.push(ratio(|comparison| &comparison.p95));
        row.push(ratio(|comparison| &comparison.p99));
        row.push(spread(runs, 2, |run| run.failed * 100.0));
        row.push(spread(runs, 1, |run| run.cached * 100.0));
        row.push(spread(runs, 3, |run| run.jain));
        row.push(match moved {
            Some(moved) => Cell::number(moved as f64 / 10.0, 1),
            None => Cell::Missing,
        });
        row
    }

    fn plot(&self, trial: &Trial) -> Plot {
        let mut names: Vec<String> = vec!["the log itself".into()];
        names.extend((0..trial.runs.len()).map(|index| self.name(trial, index).to_owned()));
        let all: Vec<&Vec<Run>> = std::iter::once(&trial.logged).chain(&trial.runs).collect();
        let series = |(name, place): (&str, usize)| Series {
            name: name.into(),
            points: (0..)
                .zip(&all)
                .map(|(x, runs)| {
                    let spread = spread_of(runs, |run| run.latency[place] as f64 / 1e6);
                    let x = f64::from(x);
                    match spread.low.is_finite() {
                        true => Point::between(x, spread.mean, spread.low, spread.high),
                        false => Point::new(x, spread.mean),
                    }
                })
                .collect(),
        };
        Plot {
            caption: "Latency by algorithm, with 95 % intervals".into(),
            kind: PlotKind::Dots,
            x: Axis::new("", None, Scale::Names(names)),
            y: Axis::new("latency", Some("ms"), Scale::Log),
            series: [("p50", 0), ("p95", 1), ("p99", 2)].into_iter().map(series).collect(),
        }
    }

    /// Each endpoint's share of the requests, where there are few enough.
    fn hits(&self, trial: &Trial) -> Option<Table> {
        let all = match self.question {
            Question::Replay { .. } => &self.log.endpoints,
            // The two need not have the same endpoints.
            Question::WhatIf { .. } => return self.hits_of_two(trial),
        };
        if all.len() > MOST_COLUMNS {
            return None;
        }
        let mut columns = vec![Column::new("algorithm")];
        columns.extend(all.iter().map(|name| Column::with_unit(name.clone(), "%")));
        let row = |name: &str, runs: &[Run]| {
            let mut row = vec![Cell::text(name)];
            row.extend((0..all.len()).map(|place| Cell::number(share(runs, place), 1)));
            row
        };
        let mut rows = vec![row("the log itself", &trial.logged)];
        rows.extend((0..).zip(&trial.runs).map(|(index, runs)| row(self.name(trial, index), runs)));
        Some(Table { caption: "Requests by endpoint, of all".into(), columns, rows })
    }

    fn hits_of_two(&self, trial: &Trial) -> Option<Table> {
        let candidates = self.question.candidates();
        let names = |index: usize| {
            candidates.get(*trial.tried.get(index)?).map(|candidate| &candidate.pool.endpoints)
        };
        let (running, new) = (names(0)?, names(1)?);
        let mut all: Vec<&String> = running.iter().chain(new).map(|one| &one.name).collect();
        all.sort_unstable();
        all.dedup();
        let columns = vec![
            Column::new("endpoint"),
            Column::with_unit(self.name(trial, 0), "%"),
            Column::with_unit(self.name(trial, 1), "%"),
        ];
        let rows = all.into_iter().map(|name| {
            let cell = |index: usize, list: &[subak_pool::EndpointSpec]| {
                let place = list.iter().position(|one| one.name == *name);
                place.map_or(Cell::Missing, |place| {
                    Cell::number(share(&trial.runs[index], place), 1)
                })
            };
            vec![Cell::text(name), cell(0, running), cell(1, new)]
        });
        Some(Table {
            caption: "Requests by endpoint, of all".into(),
            columns,
            rows: rows.collect(),
        })
    }
}

/// How p95, p99 and failures change.
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
    format!("{}, {}{failed}", change("p95", &comparison.p95), change("p99", &comparison.p99))
}

fn share(runs: &[Run], place: usize) -> f64 {
    let one = |run: &Run| {
        let all = run.hits.iter().sum::<u64>().max(1) as f64;
        run.hits.get(place).copied().unwrap_or(0) as f64 * 100.0 / all
    };
    runs.iter().map(one).sum::<f64>() / runs.len().max(1) as f64
}

fn spread_of(runs: &[Run], of: impl Fn(&Run) -> f64) -> Spread {
    Spread::of(&runs.iter().map(of).collect::<Vec<_>>(), CONFIDENCE)
}

fn spread(runs: &[Run], digits: u8, of: impl Fn(&Run) -> f64) -> Cell {
    cell(&spread_of(runs, of), digits)
}

fn cell(spread: &Spread, digits: u8) -> Cell {
    match spread.low.is_finite() && spread.high.is_finite() {
        true => Cell::between(spread.mean, spread.low.max(0.0), spread.high, digits),
        false => Cell::number(spread.mean, digits),
    }
}

fn traffic(log: &Log, traffic: &Traffic) -> Section {
    let counts = &log.counts;
    let mut rows = Vec::new();
    let mut add = |name: &str, value: String| rows.push(vec![Cell::text(name), Cell::text(value)]);
    add("lines", counts.lines.to_string());
    add("lines of another format", counts.bad.to_string());
    add("requests to endpoints", log.requests.len().to_string());
    if counts.not_balanced > 0 {
        add("requests to no endpoint, left out", counts.not_balanced.to_string());
    }
    if counts.other_pools > 0 {
        add("requests of other pools, left out", counts.other_pools.to_string());
    }
    if counts.beyond > 0 {
        add("lines past the bounds, left out", counts.beyond.to_string());
    }
    add("endpoints", log.endpoints.len().to_string());
    add("time", format!("{:.1} s", traffic.lasts_s));
    add("mean rate", format!("{:.1} requests/s", traffic.mean));
    add("busiest second", format!("{} requests", traffic.peak));
    let words = match traffic.burstiness {
        burstiness if burstiness < 0.7 => "more even than chance",
        burstiness if burstiness < 1.5 => "like chance (Poisson)",
        _ => "in bursts, or at a rate that changes",
    };
    add("burstiness (variance ÷ mean, by second)", format!("{:.2}: {words}", traffic.burstiness));
    for (name, share) in [("clients", &traffic.clients), ("URIs", &traffic.uris)] {
        let (first, ten) = (share.first * 100.0, share.ten * 100.0);
        let busiest = format!("the busiest has {first:.1} % of the requests, ten have {ten:.1} %");
        add(name, format!("{}; {busiest}", share.count));
    }
    if log.grain != Grain::Micros || log.is_coarse {
        let grain = match log.grain {
            Grain::Seconds => "seconds",
            Grain::Millis | Grain::Micros => "milliseconds",
        };
        let unit = if log.is_coarse { "milliseconds" } else { "microseconds" };
        add(
            "precision",
            format!("moments in {grain}, durations in {unit}; the rest is spread evenly"),
        );
    }
    let columns = vec![Column::new("figure"), Column::new("value")];
    let caption = "What was read".to_owned();
    let mut blocks = vec![Block::Table(Table { caption, columns, rows })];
    if let Some((number, line)) = &counts.first_bad {
        let text = format!("The first line of another format is number {number}:\n\n{line}");
        blocks.push(Block::Text(text));
    }
    blocks.push(Block::Plot(Plot {
        caption: "Requests over time".into(),
        kind: PlotKind::Steps,
        x: Axis::new("time", Some("s"), Scale::Linear),
        y: Axis::new("rate", Some("requests/s"), Scale::Linear),
        series: vec![Series {
            name: "requests".into(),
            points: traffic.rates.iter().map(|(x, y)| Point::new(*x, *y)).collect(),
        }],
    }));
    Section::new("The log", blocks)
}

fn model(log: &Log, fit: &Fit, trial: Option<&Trial>) -> Section {
    let columns = vec![
        Column::new("endpoint"),
        Column::new("requests"),
        Column::new("at once"),
        Column::with_unit("service p50", "ms"),
        Column::with_unit("service p95", "ms"),
        Column::with_unit("service mean", "ms"),
        Column::with_unit("failed", "%"),
    ];
    let rows = log.endpoints.iter().zip(&fit.endpoints).map(|(name, endpoint)| {
        let ms = |nanos: u64| Cell::number(nanos as f64 / 1e6, 3);
        let least = if endpoint.is_at_least { "at least " } else { "" };
        let name = match endpoint.is_borrowed {
            true => format!("{name} (few requests: times of all)"),
            false => name.clone(),
        };
        vec![
            Cell::text(name),
            Cell::count(endpoint.requests as u64),
            Cell::text(format!("{least}{}", endpoint.concurrency)),
            ms(endpoint.service.quantile(500)),
            ms(endpoint.service.quantile(950)),
            ms(endpoint.service.mean()),
            Cell::number(f64::from(endpoint.failed_per_mille) / 10.0, 1),
        ]
    });
    let caption =
        "How the endpoints work, as far as the log shows: requests at once, and the times of \
                   requests that found fewer than that at work, which did not have to wait. \"At \
                   least\": nobody was seen to wait; beyond that, waiting is assumed."
            .to_owned();
    let mut blocks = vec![Block::Table(Table { caption, columns, rows: rows.collect() })];
    if let Some(cache) = &fit.cache {
        let means = |of: fn(&crate::fit::EndpointFit) -> u64| {
            let sum: u64 = fit.endpoints.iter().map(of).sum();
            shown(sum / fit.endpoints.len() as u64)
        };
        blocks.push(Block::Text(format!(
            "Endpoints are faster with what they have served lately, as if each kept the latest {} \
             URIs: {} instead of {} on average (the table has the latter). So it was with {:.1} % of \
             the requests that did not wait.",
            cache.objects,
            means(|endpoint| endpoint.hit.as_ref().map_or(0, |hit| hit.mean())),
            means(|endpoint| endpoint.service.mean()),
            f64::from(cache.hits_per_mille) / 10.0
        )));
    }
    blocks.push(Block::Table(checks(&fit.check, trial.map(|trial| &trial.check))));
    Section::new("The model, and how well it replays the log", blocks)
}

fn checks(as_logged: &Check, by_base: Option<&Check>) -> Table {
    let mut columns = vec![
        Column::new("figure"),
        Column::with_unit("log", "ms"),
        Column::with_unit("replayed to the same endpoints", "ms"),
        Column::with_unit("off", "%"),
    ];
    if by_base.is_some() {
        columns.push(Column::with_unit("replayed by the algorithm", "ms"));
        columns.push(Column::with_unit("off", "%"));
    }
    let ms = |nanos: u64| Cell::number(nanos as f64 / 1e6, 3);
    let off = |check: &Check, place: usize| {
        let (logged, replayed) = (check.logged[place] as f64, check.replayed[place] as f64);
        Cell::number((replayed / logged.max(1.0) - 1.0) * 100.0, 1)
    };
    let rows = (0..FIGURES).map(|place| {
        let mut row = vec![
            Cell::text(FIGURE_NAMES[place]),
            ms(as_logged.logged[place]),
            ms(as_logged.replayed[place]),
            off(as_logged, place),
        ];
        match by_base {
            Some(check) if place < 3 => row.extend([ms(check.replayed[place]), off(check, place)]),
            Some(_) => row.extend([Cell::Missing, Cell::Missing]),
            None => {}
        }
        row
    });
    let caption = "Tolerated: 15 % for p50 and p95, 20 % for the others (or 1 ms, where the log tells \
                   whole milliseconds). Beyond that the log cannot tell.";
    Table { caption: caption.into(), columns, rows: rows.collect() }
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
