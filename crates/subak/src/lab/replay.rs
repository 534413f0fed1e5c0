//! `subak lab replay`: every algorithm on the traffic of an access log.

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::Args;
use subak_report::{Block, Report, Section};
use subak_trace::{Candidate, Example, Finding, Log, LogError, Question, SEEDS};

use super::line::{Line, bar};
use super::{keep, reading};
use crate::cli::{OK, WRONG};
use crate::files;

pub(crate) const EXAMPLES: &str = "\
Examples:
  subak lab replay access.json
  subak lab replay access.log.gz \\
      --format '$msec $remote_addr \"$request\" $upstream_addr $request_time'
  subak lab replay haproxy.log --pool static --made-by round_robin
  subak lab replay access.json --endpoints 8
  subak lab replay access.json \\
      --algorithms peak_ewma,hash/key=uri/balance_factor=1.25
  subak lab replay --example slow-endpoint > access.json";

/// How a log is read, for all that read one.
#[derive(Args, Debug)]
pub(crate) struct Source {
    #[command(flatten)]
    how: reading::How,
    /// The algorithm that made the log [default: found out]
    #[arg(long, value_name = "ALGORITHM")]
    pub(crate) made_by: Option<String>,
    /// Runs of each algorithm, each with other chances
    #[arg(long, value_name = "N", default_value_t = SEEDS as u32)]
    #[arg(value_parser = clap::value_parser!(u32).range(2..=100))]
    pub(crate) seeds: u32,
    /// Where the report goes: result.json, report.html, report.md [default: lab-results/NAME]
    #[arg(short, long, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
    /// The finding as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// The options of the command.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// The access log, plain or packed by gzip or zstd; - is standard input
    #[arg(value_name = "LOG", required_unless_present = "example")]
    log: Option<PathBuf>,
    #[command(flatten)]
    source: Source,
    /// Algorithms to try, with options as in hash/key=uri [default: the whole catalogue]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    algorithms: Vec<String>,
    /// Weights of the log's endpoints, in the order of their names, such as 2,1,1 [default: 1 each]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    weights: Vec<u16>,
    /// What if there were so many endpoints? The first of the log's by name, and more that work like its
    /// median one; with the algorithm that made the log, or the one of --algorithms
    #[arg(long, value_name = "N", conflicts_with = "weights")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=10_000))]
    endpoints: Option<u32>,
    /// Write a log whose right answer is known, instead of reading one: slow-endpoint, hot-keys, equal
    #[arg(long, value_name = "KIND", value_parser = example, conflicts_with = "log")]
    example: Option<Example>,
    /// How many lines that has
    #[arg(long, value_name = "N", default_value_t = 100_000, requires = "example")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=4_000_000))]
    lines: u32,
}

fn example(name: &str) -> Result<Example, String> {
    let found = Example::ALL.iter().find(|(known, _)| *known == name);
    let names = Example::ALL.map(|(name, _)| name).join(", ");
    found.map(|(_, example)| *example).ok_or_else(|| format!("there are: {names}"))
}

/// Replays; answers with the exit status.
pub(crate) fn run(arguments: Arguments) -> u8 {
    if let Some(example) = arguments.example {
        let mut out = BufWriter::new(io::stdout().lock());
        return match example.write(arguments.lines, 1, &mut out).and_then(|()| out.flush()) {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                files::told(Err(format!("cannot write to standard output: {error}")))
            }
            _ => OK,
        };
    }
    let path = arguments.log.unwrap_or_default();
    let log = match arguments.source.read(&path) {
        Ok(log) => log,
        Err(error) => return unread(&error),
    };
    let question = match arguments.endpoints {
        None => question(&log, &arguments.source, &arguments.algorithms, &arguments.weights),
        Some(count) => with_endpoints(&log, &arguments.source, &arguments.algorithms, count),
    };
    let question = match question {
        Ok(question) => question,
        Err(message) => return wrong(&message),
    };
    let name = format!("replay-{}", stem(&path));
    arguments.source.answer(&log, &question, &name)
}

/// Says what is wrong with the command line, or the log.
pub(crate) fn wrong(message: &str) -> u8 {
    files::tell(&format!("error: {message}\n"));
    WRONG
}

/// Says why a log could not be read.
pub(crate) fn unread(error: &LogError) -> u8 {
    match error {
        LogError::Io(..) => files::told(Err(error.to_string())),
        LogError::Format(_) | LogError::Empty(_) => wrong(&error.to_string()),
    }
}

/// The name of a file without its endings.
pub(crate) fn stem(path: &Path) -> String {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
    let name = name.unwrap_or_default();
    name.split('.').find(|part| !part.is_empty() && *part != "-").unwrap_or("log").to_owned()
}

fn question(
    log: &Log,
    source: &Source,
    algorithms: &[String],
    weights: &[u16],
) -> Result<Question, String> {
    let (given, known) = (weights.len(), log.endpoints().len());
    if given > 0 && given != known {
        let names = log.endpoints().join(", ");
        return Err(format!("{given} weights for the log's {known} endpoints: {names}"));
    }
    let mut candidates = match algorithms {
        [] => log.catalogue(weights),
        some => some
            .iter()
            .map(|text| log.candidate(text, weights))
            .collect::<Result<Vec<Candidate>, String>>()?,
    };
    let mut made_by = None;
    if let Some(text) = &source.made_by {
        let maker = log.candidate(text, weights)?;
        let same = |one: &Candidate| one.pool.algorithm == maker.pool.algorithm;
        made_by = Some(candidates.iter().position(same).unwrap_or_else(|| {
            candidates.push(maker.clone());
            candidates.len() - 1
        }));
    }
    Ok(Question::Replay { candidates, made_by })
}

/// The pool as it is against one with so many endpoints.
fn with_endpoints(
    log: &Log,
    source: &Source,
    algorithms: &[String],
    count: u32,
) -> Result<Question, String> {
    let running = source.running(log)?;
    let new = match algorithms {
        [] => running.clone(),
        [one] => log.candidate(one, &[])?,
        _ => return Err("--endpoints takes one algorithm at a time".to_owned()),
    };
    let new = log.with_endpoints(&new, count as usize);
    Ok(Question::WhatIf { running: Box::new(running), new: Box::new(new) })
}

impl Source {
    /// The pool that made the log: as it is said, or as its picks show.
    pub(crate) fn running(&self, log: &Log) -> Result<Candidate, String> {
        match &self.made_by {
            Some(text) => log.candidate(text, &[]),
            None => log.made_by().ok_or_else(|| {
                "this log does not show which algorithm made it: say it by --made-by ALGORITHM"
                    .to_owned()
            }),
        }
    }

    /// Reads the log.
    pub(crate) fn read(&self, path: &Path) -> Result<Log, LogError> {
        self.how.read(path, |path, reading, seen| subak_trace::read(path, reading, seen))
    }

    /// Answers the question, keeps the report, prints what matters.
    pub(crate) fn answer(&self, log: &Log, question: &Question, name: &str) -> u8 {
        let directory = match keep::directory(self.output.as_deref(), name) {
            Ok(directory) => directory,
            Err(message) => return files::told(Err(message)),
        };
        let line = Line::new(false);
        let began = Instant::now();
        let finding = subak_trace::replay(log, question, self.seeds as usize, &|over, all| {
            line.show(|| {
                let share = over as f64 / all.max(1) as f64;
                format!("{} {over} of {all} runs", bar(share))
            });
        });
        line.clear();
        let repeat = vec![std::env::args().map(|word| quoted(&word)).collect::<Vec<_>>().join(" ")];
        let report = finding.report(&keep::made(), keep::setup(), repeat);
        if let Err(message) = keep::write(&directory, &keep::forms(&report)) {
            return files::told(Err(message));
        }
        let text = match self.json {
            true => as_json(&finding, &report),
            false => {
                let html = directory.join("report.html");
                let took = began.elapsed().as_secs_f64();
                format!("{}\n{took:.1} s; the report: {}\n", as_text(&report), html.display())
            }
        };
        files::told(files::print(&text))
    }
}

fn as_json(finding: &Finding<'_>, report: &Report) -> String {
    let value = serde_json::json!({
        "advice": finding.word(),
        "recommended": finding.recommended(),
        "made_by": finding.made_by(),
        "answer": report.answer,
        "report": report,
    });
    format!("{value:#}\n")
}

/// The answer and the tables; plots are for the report.
fn as_text(report: &Report) -> String {
    let tables = |section: &Section| Section {
        heading: section.heading.clone(),
        blocks: section
            .blocks
            .iter()
            .filter(|block| !matches!(block, Block::Plot(_)))
            .cloned()
            .collect(),
    };
    let sections = report.sections.iter().map(tables);
    let short = Report {
        sections: sections.filter(|section| !section.blocks.is_empty()).collect(),
        verdicts: Vec::new(),
        repeat: Vec::new(),
        ..report.clone()
    };
    short.text_within(files::columns())
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./=,:+@".contains(letter);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}
