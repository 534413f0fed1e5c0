//! All that was found, as one report.

use subak_report::{Block, Cell, Report, Section, Table};

use crate::cell::{Paper, Scale};
use crate::figures::{columns, slashed};
use crate::results::{Line, Outcome, Results};
use crate::{others, p1, p2, p3, p4, p5};

/// The report of these papers. `made` says when, `setup` on what, as people read it.
pub fn report(
    papers: &[Paper],
    scale: Scale,
    results: &Results,
    made: String,
    mut setup: Vec<(String, String)>,
) -> Report {
    let factor = scale.factor();
    let apart = apart(results, factor);
    let results = &results.at(factor);
    let scaled = match factor == 1.0 {
        true => "1: as the papers did it".to_owned(),
        false => format!(
            "{factor}: durations and repetitions are multiplied by it (never less than a second, or \
             than an interval needs); users, requests, concurrency and weights are the papers'"
        ),
    };
    setup.push(("other work".to_owned(), others::told(results, papers)));
    setup.push(("scale".to_owned(), scaled));
    let mut sections: Vec<Section> = Vec::new();
    let mut verdicts = Vec::new();
    for paper in papers {
        setup.push((paper.to_string(), paper.title().to_owned()));
        let (found, judged) = match paper {
            Paper::P1 => (p1::sections(results), p1::verdicts(results)),
            Paper::P2 => (p2::sections(results), p2::verdicts(results)),
            Paper::P3 => (p3::sections(results), p3::verdicts(results)),
            Paper::P4 => (p4::sections(results), p4::verdicts(results)),
            Paper::P5 => (p5::sections(results), p5::verdicts(results)),
        };
        sections.extend(found);
        verdicts.extend(judged);
    }
    sections.extend(apart);
    let names: Vec<String> = papers.iter().map(Paper::to_string).collect();
    Report {
        title: "Five papers on load balancing, run again".to_owned(),
        question:
            "Which of their claims come out again on real processes on one machine, and which \
                   are about the set-up and not about the algorithm?"
                .to_owned(),
        answer: String::new(),
        made,
        setup,
        verdicts,
        sections,
        repeat: vec![format!("subak lab papers {} --scale {factor}", names.join(" "))],
    }
}

/// What is told of a cell that stands alone, in this order.
const TOLD: [&str; 17] = [
    "http_reqs.count",
    "http_reqs.rate",
    "http_req_failed.passes",
    "http_req_duration.med",
    "http_req_duration.p(95)",
    "complete",
    "answered",
    "succeeded",
    "failed",
    "rate_per_s",
    "time_ms",
    "request_ms",
    "median_ms",
    "p95_ms",
    "throughput_kbytes_per_s",
    "jain",
    "cpu_mean_percent",
];

/// Cells of other scales stand for themselves: they are compared with nothing.
fn apart(results: &Results, scale: f64) -> Option<Section> {
    let row = |line: &Line| {
        let told = match &line.outcome {
            Outcome::Measured(measured) => {
                let number = |name: &&str| {
                    let value = measured.numbers.get(*name)?;
                    let digits = if value.fract() == 0.0 { 0 } else { 3 };
                    Some(format!("{name} {value:.digits$}"))
                };
                let mut told: Vec<String> = TOLD.iter().filter_map(number).collect();
                told.extend(
                    measured
                        .counts
                        .iter()
                        .map(|(name, counts)| format!("{name} {}", slashed(counts))),
                );
                told.extend(measured.invalid.iter().map(|why| format!("invalid: {why}")));
                told.join(", ")
            }
            Outcome::NotRun(why) => format!("not run: needs {why}"),
            Outcome::Failed(why) => format!("it broke: {why}"),
        };
        vec![
            Cell::text(&line.id),
            Cell::text(line.scale.to_string()),
            Cell::number(line.took_s, 0),
            Cell::text(told),
        ]
    };
    let rows: Vec<Vec<Cell>> = results.apart_from(scale).map(row).collect();
    (!rows.is_empty()).then(|| {
        let columns = columns(["cell", "scale", "took (s)", "measured"]);
        let caption = "Cells that were run at another scale, each for itself".to_owned();
        Section::new("At another scale", vec![Block::Table(Table { caption, columns, rows })])
    })
}

#[cfg(test)]
mod tests {
    use super::report;
    use crate::cell::{Measured, Paper, Scale};
    use crate::results::{Line, Outcome, Results};
    use subak_report::Word;

    #[test]
    fn what_was_not_run_is_said_to_be_not_run() {
        let nothing = Results::default();
        let report = report(&Paper::ALL, Scale::FULL, &nothing, String::new(), Vec::new());
        // What follows from the papers' own numbers needs no run.
        let follows = |claim: &str| claim.contains("hidden");
        for verdict in &report.verdicts {
            assert!(verdict.word == Word::NotRun || follows(&verdict.claim), "{}", verdict.claim);
            assert!(!verdict.because.is_empty(), "{}", verdict.claim);
        }
        for paper in Paper::ALL {
            let name = paper.to_string();
            assert!(report.verdicts.iter().any(|verdict| verdict.claim.starts_with(&name)));
        }
    }

    #[test]
    fn cells_of_another_scale_stand_apart() {
        let mut results = Results::default();
        let measured = Measured::default().counts("hits", vec![3000; 4]);
        results.add(Line {
            id: "P2/subak/round_robin/12000#1".to_owned(),
            scale: 1.0,
            took_s: 30.0,
            busy_before: Some(0.5),
            outcome: Outcome::Measured(measured),
        });
        let at = |scale| {
            let scale = Scale::new(scale).unwrap();
            let report = report(&[Paper::P2], scale, &results, String::new(), Vec::new());
            let claim = |verdict: &&subak_report::Verdict| verdict.claim.contains("exactly 3,000");
            let word = report.verdicts.iter().find(claim).map(|verdict| verdict.word);
            let apart = report.sections.iter().any(|section| section.heading == "At another scale");
            // Of this scale's cells alone.
            let looked = report.setup.iter().any(|(_, value)| value.contains("50 % at most"));
            assert_eq!(looked, scale == Scale::FULL);
            (word, apart, report.markdown().contains("hits 3000 / 3000 / 3000 / 3000"))
        };
        assert_eq!(at(1.0), (Some(Word::Reproduced), false, false));
        assert_eq!(at(0.5), (Some(Word::NotRun), true, true));
    }
}
