//! Whatever a log says, reading and replaying it end with an answer or a reason.

use std::path::PathBuf;

use subak_base::Rng;
use subak_trace::{Example, Format, Log, LogError, Question, Reading, read, replay};

/// A log on disk, gone with the test.
struct Made(PathBuf);

impl Made {
    fn new(name: &str, text: &[u8]) -> Made {
        let path =
            std::env::temp_dir().join(format!("subak-hostile-{}-{name}", std::process::id()));
        std::fs::write(&path, text).expect("a place for temporary files");
        Made(path)
    }

    fn read(&self, format: Option<&str>) -> Result<Log, LogError> {
        let format = format.map(|format| Format::read(format).expect("a format"));
        read(&self.0, &Reading { format, ..Reading::default() }, |_| {})
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        std::fs::remove_file(&self.0).ok();
    }
}

fn example(lines: u32) -> String {
    let mut text = Vec::new();
    Example::Equal.write(lines, 1, &mut text).expect("written");
    String::from_utf8(text).expect("JSON")
}

/// The report in Markdown.
fn told(log: &Log) -> String {
    let candidates = vec![log.candidate("round_robin", &[]).expect("an algorithm")];
    let question = Question::Replay { candidates, made_by: Some(0) };
    replay(log, &question, 2, &|_, _| {}).report("", vec![], vec![]).markdown()
}

#[test]
fn moments_far_from_the_others_are_left_out_and_counted() {
    let text = example(3000);
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    for (line, year) in lines.iter_mut().zip(["0000", "1970", "2058", "9999"]) {
        *line = line.replace("2026", year);
    }
    let log = Made::new("wild", lines.join("\n").as_bytes()).read(None).expect("a log");
    assert_eq!((log.counts.lines, log.counts.beyond), (3000, 4));
    assert!(told(&log).contains("| lines past the bounds, left out | 4 |"), "{}", told(&log));

    // Two logs, a billion seconds apart: one of them is told of.
    for line in &mut lines[1000..] {
        *line = line.replace("2026", "2058");
    }
    let log = Made::new("gap", lines.join("\n").as_bytes()).read(None).expect("a log");
    assert_eq!(log.counts.beyond, 1000 - 1);
    assert!(told(&log).contains("| requests to endpoints | 2001 |"), "{}", told(&log));
}

#[test]
fn a_log_of_a_hundred_days_with_nothing_between_is_replayed() {
    let text = example(3000);
    let (first, second) = text.split_at(text.len() / 2);
    let text = first.to_owned() + &second.replace("2026-11", "2027-02");
    let log = Made::new("days", text.as_bytes()).read(None).expect("a log");
    assert_eq!(log.counts.beyond, 0);
    assert!(told(&log).contains("| time | 79"), "{}", told(&log));
}

#[test]
fn numbers_that_no_request_has_are_no_figures() {
    const FORMAT: &str = "$msec $remote_addr $request_time $upstream_addr $bytes_sent $status";
    let numbers = ["0", "-1", "1.-5", "999999999999.999999", "1e308", "999999999999999", "3.", "."];
    let mut text = String::new();
    for moment in numbers {
        for duration in numbers {
            for bytes in numbers {
                text += &format!("{moment} 10.0.0.1 {duration} 10.0.0.2:80 {bytes} 200\n");
            }
        }
    }
    let log = Made::new("numbers", text.as_bytes()).read(Some(FORMAT)).expect("a log");
    assert!(log.counts.bad > 0);
    assert!(told(&log).contains("cannot tell"), "{}", told(&log));
}

#[test]
fn an_endpoint_s_name_commands_no_terminal() {
    let name = "10.0.0.1\\u001b[2J\\u0007";
    let text = example(10_000).replace("10.0.0.1", name);
    let log = Made::new("name", text.as_bytes()).read(None).expect("a log");
    let told = told(&log);
    assert!(told.contains("2J") && !told.contains(['\u{1b}', '\u{7}']), "{told}");
}

#[test]
fn torn_lines_of_every_format_do_no_harm() {
    let haproxy = "Feb  6 12:14:14 localhost haproxy[14389]: 10.0.1.2:33317 \
                   [06/Feb/2026:12:14:14.655] http-in static/srv1 10/0/30/69/109 200 2750 - - ---- \
                   1/1/1/1/0 0/0 {1wt.eu} {} \"GET /index.html HTTP/1.1\"";
    let combined =
        "10.1.0.7 - - [21/Nov/2026:17:12:01 +0000] \"GET /7 HTTP/1.1\" 200 5 \"-\" \"curl\"";
    let json = example(1);
    let mut random = Rng::new(5);
    for (name, whole) in [("json", json.trim_end()), ("haproxy", haproxy), ("combined", combined)] {
        let mut text = Vec::new();
        for _ in 0..4000 {
            let mut line = whole.as_bytes().to_vec();
            for _ in 0..=random.below(3) {
                let at = random.below(line.len() as u64) as usize;
                match random.below(4) {
                    0 => line[at] = random.next_u64() as u8,
                    1 => line[at] = b'0' + random.below(10) as u8,
                    2 => line.truncate(at + 1),
                    _ => {
                        let again = line[at..].to_vec();
                        line.extend(again);
                    }
                }
            }
            line.retain(|byte| *byte != b'\n');
            text.extend(line);
            text.push(b'\n');
        }
        let made = Made::new(name, &text);
        for format in [None, Some(name)] {
            if let Ok(log) = made.read(format) {
                told(&log);
            }
        }
    }
}
