//! Logs whose right answer is known get it.

use std::path::PathBuf;

use subak_report::{Block, Cell};
use subak_trace::{Example, Format, Log, Question, Reading, SEEDS, read, replay};

const LINES: u32 = 25_000;

/// A log on disk, gone with the test.
struct Made(PathBuf);

impl Made {
    fn new(name: &str, write: impl FnOnce(&mut Vec<u8>)) -> Made {
        let path = std::env::temp_dir().join(format!("subak-trace-{}-{name}", std::process::id()));
        let mut text = Vec::new();
        write(&mut text);
        std::fs::write(&path, text).expect("a place for temporary files");
        Made(path)
    }

    fn log(&self) -> Log {
        read(&self.0, &Reading::default(), |_| {}).expect("a log")
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        std::fs::remove_file(&self.0).ok();
    }
}

fn example(name: &str, example: Example) -> Log {
    Made::new(name, |text| example.write(LINES, 1, text).expect("written")).log()
}

/// The word, the recommended one, who made the log, and the report's JSON.
fn answer(log: &Log) -> (&'static str, Option<String>, Option<String>, String) {
    let question = Question::Replay { candidates: log.catalogue(&[]), made_by: None };
    let finding = replay(log, &question, SEEDS, &|_, _| {});
    let owned = |name: Option<&str>| name.map(str::to_owned);
    let report = finding.report("now", Vec::new(), Vec::new()).json();
    (finding.word(), owned(finding.recommended()), owned(finding.made_by()), report)
}

#[test]
fn one_slow_endpoint_wants_an_algorithm_that_sees_load() {
    let log = example("slow", Example::SlowEndpoint);
    let (word, recommended, made_by, report) = answer(&log);
    assert_eq!((word, made_by.as_deref()), ("change", Some("round_robin")), "{report}");
    let sees_load = ["least_connections", "power_of_two", "peak_ewma", "least_response_time"];
    assert!(sees_load.contains(&recommended.as_deref().unwrap_or_default()), "{recommended:?}");
    assert!(report.contains("10.0.0.4:80, which takes"), "the reason names the slow one: {report}");
}

#[test]
fn hot_keys_with_a_cache_want_each_key_at_one_endpoint() {
    let log = example("hot", Example::HotKeys);
    let (word, recommended, made_by, report) = answer(&log);
    assert_eq!((word, made_by.as_deref()), ("change", Some("round_robin")), "{report}");
    assert_eq!(recommended.as_deref(), Some("hash/key=uri"), "{report}");
    assert!(report.contains("from what they have served lately"), "{report}");
}

#[test]
fn where_all_are_equal_it_says_stay() {
    let log = example("equal", Example::Equal);
    let (word, recommended, made_by, report) = answer(&log);
    assert_eq!((word, recommended), ("stay", None), "{report}");
    assert_eq!(made_by.as_deref(), Some("least_connections"));
}

#[test]
fn the_same_log_gives_the_same_report_to_the_last_byte() {
    let log = example("again", Example::SlowEndpoint);
    let candidates = ["round_robin", "peak_ewma", "random"];
    let candidates = candidates.map(|name| log.candidate(name, &[]).expect("an algorithm"));
    let question = Question::Replay { candidates: candidates.to_vec(), made_by: Some(0) };
    let report = || replay(&log, &question, 2, &|_, _| {}).report("", vec![], vec![]).json();
    assert_eq!(report(), report());
}

/// Requests to 40 endpoints in turn, 20 ms each.
fn wide() -> Log {
    let made = Made::new("wide", |text| {
        for at in 0..8000 {
            let (second, ms, endpoint) = (at / 200 % 60, at % 200 * 5, at % 40);
            let line = format!(
                "{{\"time\":\"2026-11-21T10:00:{second:02}.{ms:03}Z\",\"client\":\"10.1.0.{}\",\
                 \"url\":\"/{}\",\"status\":200,\"bytes_out\":9,\"endpoint\":\"10.0.0.{endpoint}:80\",\
                 \"queue_ms\":0,\"total_ms\":{:.3}}}\n",
                at % 251,
                at % 97,
                20.0 + f64::from(at % 7) / 100.0
            );
            text.extend_from_slice(line.as_bytes());
        }
    });
    made.log()
}

#[test]
fn of_many_endpoints_the_extremes_are_shown_and_all_are_in_the_json() {
    let log = wide();
    let candidates = ["round_robin", "hash/key=uri"];
    let candidates = candidates.map(|name| log.candidate(name, &[]).expect("an algorithm"));
    let question = Question::Replay { candidates: candidates.to_vec(), made_by: Some(0) };
    let report = replay(&log, &question, 2, &|_, _| {}).report("", vec![], vec![]);
    let shown = report.markdown();
    let row = |name: &str| {
        let begin = format!("| {name} | 40 |");
        shown.lines().find(|line| line.starts_with(&begin)).expect("a row").to_owned()
    };
    let even = "| 2.500 | 2.500 | 2.500 | 10.0.0.0:80 | 10.0.0.0:80 |";
    assert!(row("the log itself").ends_with(even), "{shown}");
    assert!(row("round_robin").ends_with(even), "{shown}");
    let by_key = row("hash/key=uri");
    let cells: Vec<&str> = by_key.split(" | ").collect();
    let [smallest, largest]: [f64; 2] = [2, 4].map(|at| cells[at].parse().expect("a share"));
    assert!(smallest < 2.0 && largest > 3.0 && cells[5] != cells[6], "{by_key}");

    let mut data = Vec::new();
    for block in report.sections.iter().flat_map(|section| &section.blocks) {
        if let Block::Data(table) = block {
            data.push(table);
        }
    }
    let [whole, model] = data[..] else { panic!("shares and models of all") };
    assert_eq!(model.rows.len(), 40);
    let slowest = "Of 40 endpoints these are the 32 slowest";
    assert!(shown.contains(slowest) && !shown.contains("\n| 10.0.0.0:80 |"), "{shown}");
    assert_eq!((whole.columns.len(), whole.rows.len()), (4, 40));
    assert_eq!(whole.rows[9][..2], [Cell::text("10.0.0.9:80"), Cell::number(2.5, 4)]);
    assert!(report.json().contains("\"10.0.0.39:80\""));
}

#[test]
fn two_pools_of_many_endpoints_are_told_by_their_extremes() {
    let log = wide();
    let running = log.candidate("round_robin", &[]).expect("an algorithm");
    let new = log.with_endpoints(&running, 50);
    let question = Question::WhatIf { running: Box::new(running), new: Box::new(new) };
    let report = replay(&log, &question, 2, &|_, _| {}).report("", vec![], vec![]);
    let shown = report.markdown();
    assert!(shown.contains("| round_robin | 40 | 2.500 |"), "{shown}");
    assert!(shown.contains("| round_robin over 50 endpoints | 50 | 2.000 |"), "{shown}");
    let json = report.json();
    assert!(!shown.contains("| added-9 |") && json.contains("\"added-9\""), "{shown}");
}

#[test]
fn a_log_without_times_cannot_tell() {
    let combined = Made::new("combined", |text| {
        for second in 0..60 {
            for request in 0..100 {
                let line = format!(
                    "10.1.0.{request} - - [21/Nov/2026:17:12:{second:02} +0000] \"GET /{request} \
                     HTTP/1.1\" 200 5 \"-\" \"curl\"\n"
                );
                text.extend_from_slice(line.as_bytes());
            }
        }
    });
    let log = combined.log();
    assert_eq!((log.format.as_str(), log.counts.lines), ("combined", 6000));
    let (word, _, _, report) = answer(&log);
    assert_eq!(word, "cannot_tell");
    assert!(report.contains("does not say which endpoint answered"), "{report}");
}

#[test]
fn bad_lines_are_counted_and_a_foreign_log_is_refused_with_its_first_line() {
    let torn = Made::new("torn", |text| {
        Example::Equal.write(3000, 1, text).expect("written");
        text.splice(0..0, *b"torn\n");
        text.extend_from_slice(b"{\"time\":\"2026-11-");
    });
    let log = torn.log();
    assert_eq!((log.counts.lines, log.counts.bad), (3002, 2));
    assert_eq!(log.counts.first_bad, Some((1, "torn".to_owned())));

    let foreign =
        Made::new("foreign", |text| text.extend_from_slice(b"what is this\n\nand this\n"));
    let why = read(&foreign.0, &Reading::default(), |_| {}).expect_err("no log").to_string();
    assert!(why.contains("what is this") && why.contains("--format"), "{why}");
    let format = Some(Format::read("$remote_addr [$time_local] $status").expect("a format"));
    let reading = Reading { format, ..Reading::default() };
    let why = read(&foreign.0, &reading, |_| {}).expect_err("no log").to_string();
    assert!(why.contains("Line 1:\n  what is this"), "{why}");
}

#[test]
fn a_changed_pool_is_held_against_the_running_one() {
    let log = example("whatif", Example::SlowEndpoint);
    let running = log.candidate("round_robin", &[]).expect("an algorithm");
    // A fourth of the others' weight for the one that takes four times as long.
    let new = log.candidate("round_robin", &[4, 4, 4, 1, 4, 4, 4, 4, 4, 4]).expect("an algorithm");
    let question =
        |running, new| Question::WhatIf { running: Box::new(running), new: Box::new(new) };
    let better = question(running.clone(), new.clone());
    let finding = replay(&log, &better, SEEDS, &|_, _| {});
    assert_eq!(finding.word(), "change", "{}", finding.report("", vec![], vec![]).json());
    // What makes it worse, and what changes nothing.
    let mut fewer = running.clone();
    fewer.pool.endpoints.truncate(6);
    let worse = question(running.clone(), fewer);
    let finding = replay(&log, &worse, SEEDS, &|_, _| {});
    let answer = finding.report("", vec![], vec![]).answer;
    assert!(finding.word() == "stay" && answer.contains("would be worse"), "{answer}");
    let same = question(running.clone(), running);
    let finding = replay(&log, &same, SEEDS, &|_, _| {});
    let answer = finding.report("", vec![], vec![]).answer;
    assert!(answer.contains("No difference worth having"), "{answer}");
}
