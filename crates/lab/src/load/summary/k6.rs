//! The summary as k6 prints it (`--summary-mode=legacy`): its metrics, columns and number formats, so
//! that tables made from k6's output can be made from this.
//!
//! What a name means here: `http_req_blocked` is the time from when a request was due until its
//! connection was there (connecting and TLS within it); `http_req_duration` is sending, waiting and
//! receiving, as in k6; `iterations` are requests, with the user's think time behind each.

use std::time::Duration;

use super::super::{LoadPlan, LoadReport, Phases, Shape};
use crate::histogram::Histogram;

/// Length of a name with its dots.
const NAME: usize = 31;

/// All of k6's metrics; those of phases need [`super::super::Detail::phases`].
pub fn k6(plan: &LoadPlan, report: &LoadReport) -> String {
    let none = Phases::default();
    let phases = report.phases.as_deref().unwrap_or(&none);
    let seconds = report.elapsed.as_secs_f64().max(1e-9);
    let requests = report.ended();
    let mut rows: Vec<(&str, Row)> = Vec::new();
    let mut text = String::from("\n");
    for check in &report.checks {
        let mark = if check.failed == 0 { '✓' } else { '✗' };
        text += &format!("     {mark} {}\n", check.name);
        if check.failed > 0 {
            let of = check.passed + check.failed;
            let percent = check.passed * 100 / of.max(1);
            text += &format!("      ↳  {percent}% — ✓ {} / ✗ {}\n", check.passed, check.failed);
        }
    }
    if !report.checks.is_empty() {
        text += "\n";
        let passed: u64 = report.checks.iter().map(|check| check.passed).sum();
        let all: u64 = passed + report.checks.iter().map(|check| check.failed).sum::<u64>();
        rows.push(("checks", Row::Share(passed, all)));
    }
    rows.extend([
        ("data_received", Row::Bytes(report.received)),
        ("data_sent", Row::Bytes(report.sent)),
        ("http_req_blocked", Row::Times(&phases.blocked)),
        ("http_req_connecting", Row::Times(&phases.connecting)),
        ("http_req_duration", Row::Times(&phases.duration)),
        ("  { expected_response:true }", Row::Times(&phases.answered)),
        ("http_req_failed", Row::Share(report.failures.total(), requests)),
        ("http_req_receiving", Row::Times(&phases.receiving)),
        ("http_req_sending", Row::Times(&phases.sending)),
        ("http_req_tls_handshaking", Row::Times(&phases.tls)),
        ("http_req_waiting", Row::Times(&phases.waiting)),
        ("http_reqs", Row::Count(requests)),
    ]);
    if phases.iteration.count() > 0 {
        rows.push(("iteration_duration", Row::Times(&phases.iteration)));
    }
    rows.push(("iterations", Row::Count(requests)));
    let (now, least) = match &plan.shape {
        Shape::Users { profile, .. } => {
            let at = |time| profile.at(time) as u64;
            let loads = report.moments.iter().map(|moment| moment.load as u64);
            let least = loads.min().unwrap_or_else(|| at(Duration::ZERO));
            (at(report.elapsed), least)
        }
        Shape::Rate { .. } | Shape::Timetable { .. } => {
            let flights = report.moments.iter().map(|moment| moment.in_flight);
            (0, flights.min().unwrap_or(0))
        }
    };
    let most = report.most_users;
    let allowed = plan.most_connections() as u64;
    rows.push(("vus", Row::Gauge(now, least.min(now), most)));
    rows.push(("vus_max", Row::Gauge(allowed, allowed, allowed)));

    // As k6 aligns: each column of times as wide as its widest, counts and rates likewise.
    let timed: Vec<Vec<String>> = rows.iter().map(|(_, row)| row.times()).collect();
    let width = |column: usize| {
        timed.iter().filter_map(|row| row.get(column)).map(|text| text.chars().count()).max()
    };
    let widths: Vec<usize> = (0..6).map(|column| width(column).unwrap_or(0)).collect();
    let counted: Vec<[String; 3]> = rows.iter().map(|(_, row)| row.counts(seconds)).collect();
    let width = |column: usize| counted.iter().map(|row| row[column].chars().count()).max();
    let (first, second) = (width(0).unwrap_or(0), width(1).unwrap_or(0));
    for (((name, _), times), [count, rate, more]) in rows.iter().zip(&timed).zip(&counted) {
        let value = match times.is_empty() {
            true => format!("{count:<first$} {rate:<second$} {more}").trim_end().to_owned(),
            false => {
                let columns = ["avg", "min", "med", "max", "p(90)", "p(95)"];
                let cells = columns.iter().zip(times).zip(&widths);
                let cells = cells.map(|((column, time), width)| format!("{column}={time:<width$}"));
                cells.collect::<Vec<_>>().join(" ")
            }
        };
        let dots = ".".repeat(NAME.saturating_sub(name.chars().count()));
        text += &format!("     {name}{dots}: {value}\n");
    }
    text
}

/// What stands behind a name.
enum Row<'a> {
    Times(&'a Histogram),
    Bytes(u64),
    Count(u64),
    Share(u64, u64),
    Gauge(u64, u64, u64),
}

impl Row<'_> {
    /// avg, min, med, max, p(90), p(95).
    fn times(&self) -> Vec<String> {
        let Row::Times(times) = self else { return Vec::new() };
        let of = |share| times.quantile(share);
        [times.mean(), times.min(), of(0.5), times.max(), of(0.9), of(0.95)].map(duration).to_vec()
    }

    /// The value and what is said beside it.
    fn counts(&self, seconds: f64) -> [String; 3] {
        let none = String::new();
        match self {
            Row::Times(_) => [none.clone(), none.clone(), none],
            Row::Bytes(count) => {
                let rate = format!("{}/s", bytes(*count as f64 / seconds));
                [bytes(*count as f64), rate, none]
            }
            Row::Count(count) => {
                [count.to_string(), format!("{:.6}/s", *count as f64 / seconds), none]
            }
            Row::Share(part, whole) => {
                let percent = *part as f64 * 100.0 / (*whole).max(1) as f64;
                [format!("{percent:.2}%"), format!("{part} out of {whole}"), none]
            }
            Row::Gauge(now, min, max) => {
                [now.to_string(), format!("min={min}"), format!("max={max}")]
            }
        }
    }
}

/// As Go prints durations, cut to two decimals: `1.42ms`, `133.73ms`, `1m12s`, `0s`.
fn duration(time: Duration) -> String {
    let ns = time.as_nanos() as f64;
    let cut = |value: f64| {
        let text = format!("{value:.2}");
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    };
    match time.as_nanos() {
        0 => "0s".to_owned(),
        1..1_000 => format!("{ns}ns"),
        1_000..1_000_000 => format!("{}µs", cut(ns / 1e3)),
        1_000_000..1_000_000_000 => format!("{}ms", cut(ns / 1e6)),
        1_000_000_000..60_000_000_000 => format!("{}s", cut(ns / 1e9)),
        _ => {
            let seconds = time.as_secs();
            let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
            let hours = if hours > 0 { format!("{hours}h") } else { String::new() };
            format!("{hours}{minutes}m{}s", seconds % 60)
        }
    }
}

/// Two digits, in powers of 1000: `69 kB`, `5.8 kB`, `148 MB`.
fn bytes(count: f64) -> String {
    let mut value = count;
    for unit in ["B", "kB", "MB", "GB", "TB"] {
        if value < 1000.0 || unit == "TB" {
            return match value {
                value if value < 10.0 && unit != "B" => format!("{value:.1} {unit}"),
                value => format!("{value:.0} {unit}"),
            };
        }
        value /= 1000.0;
    }
    String::new()
}
