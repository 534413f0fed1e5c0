//! A log of 1,000,000 lines: is the answer right, and there within a minute? Part of `make lab`.
//!
//! `quick` as an argument: a twentieth of it, and no judgement of time.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use subak_trace::{Example, Question, Reading, SEEDS, read, replay};

/// For a recommendation among 12 algorithms with 5 seeds each, on two cores.
const MOST: Duration = Duration::from_secs(60);

const RIGHT: [(&str, &[&str]); 3] = [
    ("slow-endpoint", &["least_connections", "power_of_two", "peak_ewma", "least_response_time"]),
    ("hot-keys", &["hash/key=uri"]),
    ("equal", &[]),
];

fn main() -> ExitCode {
    let is_quick = std::env::args().any(|word| word == "quick");
    let lines = if is_quick { 50_000 } else { 1_000_000 };
    let path =
        std::env::temp_dir().join(format!("subak-trace-million-{}.json", std::process::id()));
    let mut is_well = true;
    for (name, example) in Example::ALL {
        let made = File::create(&path).map(BufWriter::new).and_then(|mut out| {
            example.write(lines, 1, &mut out)?;
            out.flush()
        });
        if let Err(error) = made {
            eprintln!("cannot write {}: {error}", path.display());
            return ExitCode::FAILURE;
        }
        let began = Instant::now();
        let log = match read(&path, &Reading::default(), |_| {}) {
            Ok(log) => log,
            Err(error) => {
                eprintln!("{error}");
                return ExitCode::FAILURE;
            }
        };
        let was_read = began.elapsed();
        let candidates = log.catalogue(&[]);
        let count = candidates.len();
        let question = Question::Replay { candidates, made_by: None };
        let finding = replay(&log, &question, SEEDS, &|_, _| {});
        let took = began.elapsed();
        let right =
            RIGHT.iter().find(|(known, _)| *known == name).map_or(&[][..], |(_, right)| right);
        let is_right = match finding.recommended() {
            Some(one) => right.contains(&one),
            None => right.is_empty() && finding.word() == "stay",
        };
        let is_in_time = is_quick || took <= MOST;
        is_well &= is_right && is_in_time;
        println!(
            "{name}: {lines} lines, {count} algorithms × {SEEDS} seeds: {:.1} s ({:.1} s to read): {} {}{}{}",
            took.as_secs_f64(),
            was_read.as_secs_f64(),
            finding.word(),
            finding.recommended().unwrap_or_default(),
            if is_right { "" } else { " WRONG" },
            if is_in_time { "" } else { " TOO SLOW" },
        );
    }
    std::fs::remove_file(&path).ok();
    if is_well { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
