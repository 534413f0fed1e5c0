//! The summary that `subak lab load` prints.

use std::fmt::Write;
use std::time::Duration;

use super::super::{LoadReport, Phases};
use super::millis;
use crate::histogram::Histogram;

/// Every number with its unit; what makes a run invalid comes first.
pub fn text(report: &LoadReport) -> String {
    let mut out = String::new();
    let mut line = |name: &str, value: String| {
        // Writing to a String cannot fail.
        let _ = writeln!(out, "{name:<14} {value}");
    };
    for fault in report.invalid() {
        line("INVALID", fault);
    }
    let seconds = report.elapsed.as_secs_f64();
    line(
        "answered",
        format!("{} in {seconds:.2} s, {:.1} requests/s", report.answered, report.per_second()),
    );
    let share = report.failed_share() * 100.0;
    let when = report.failed_between.map_or_else(String::new, |(first, last)| {
        format!(", between {} and {} from the start", duration(first), duration(last))
    });
    line("failed", format!("{} ({share:.2} %){when}", report.failures));
    for (why, count) in &report.unconnected {
        line("  connect", format!("{count} × {why}"));
    }
    if report.targets.len() > 1 {
        for one in &report.targets {
            let said = format!("{}: {} answered, {} failed", one.address, one.answered, one.failed);
            line("  target", said);
        }
    }
    let statuses = report.statuses.iter().map(|(status, count)| format!("{count} × {status}"));
    let statuses: Vec<_> = statuses.collect();
    if !statuses.is_empty() {
        line("statuses", statuses.join(", "));
    }
    for check in &report.checks {
        let of = check.passed + check.failed;
        line("check", format!("{}: held for {} of {of}", check.name, check.passed));
    }
    line("latency", percentiles(&report.latency));
    if let Some(phases) = &report.phases {
        for (name, phase) in parts(phases) {
            line(name, percentiles(phase));
        }
    }
    line(
        "traffic",
        format!(
            "{} received, {} sent, {} connections opened",
            bytes(report.received),
            bytes(report.sent),
            report.connections
        ),
    );
    if report.longest_backlog > 0 || report.not_started > 0 {
        line(
            "waited",
            format!(
                "{} requests at most for a free connection, {} never started",
                report.longest_backlog, report.not_started
            ),
        );
    }
    let watch = &report.watch;
    let mut generator = format!(
        "{:.0} % of a core used, {:.0} % waited for, {} open files allowed",
        watch.busy_share() * 100.0,
        watch.starved_share() * 100.0,
        watch.descriptor_limit
    );
    if watch.is_ahead {
        generator.push_str(", before all others");
    }
    if report.lateness.count() > 0 {
        let late = millis(report.lateness.quantile(0.99));
        let _ = write!(generator, ", starts {late:.3} ms late at p99");
    }
    line("generator", generator);
    out
}

fn parts(phases: &Phases) -> [(&'static str, &Histogram); 6] {
    [
        ("  blocked", &phases.blocked),
        ("  connecting", &phases.connecting),
        ("  tls", &phases.tls),
        ("  sending", &phases.sending),
        ("  waiting", &phases.waiting),
        ("  receiving", &phases.receiving),
    ]
}

fn percentiles(times: &Histogram) -> String {
    let of = |share| duration(times.quantile(share));
    format!(
        "p50 {}  p95 {}  p99 {}  p99.9 {}  max {}  mean {}",
        of(0.5),
        of(0.95),
        of(0.99),
        of(0.999),
        duration(times.max()),
        duration(times.mean())
    )
}

/// With three or four digits.
fn duration(time: Duration) -> String {
    match time.as_nanos() {
        ns @ 0..1_000_000 => format!("{:.0} µs", ns as f64 / 1e3),
        ns @ 1_000_000..1_000_000_000 => format!("{:.2} ms", ns as f64 / 1e6),
        ns => format!("{:.2} s", ns as f64 / 1e9),
    }
}

fn bytes(count: u64) -> String {
    match count {
        0..10_000 => format!("{count} B"),
        10_000..10_000_000 => format!("{:.1} kB", count as f64 / 1e3),
        _ => format!("{:.1} MB", count as f64 / 1e6),
    }
}
