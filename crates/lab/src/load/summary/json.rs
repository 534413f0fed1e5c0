//! The report as JSON: times in milliseconds, shares from 0 to 1.

use serde_json::{Map, Value, json};

use super::super::{Failure, LoadReport, Moment};
use super::millis;
use crate::histogram::Histogram;

/// Everything that the report knows.
pub fn json(report: &LoadReport) -> Value {
    let invalid = report.invalid();
    let failures: Map<String, Value> = Failure::ALL
        .into_iter()
        .map(|kind| (kind.to_string(), json!(report.failures.of(kind))))
        .collect();
    let statuses: Map<String, Value> =
        report.statuses.iter().map(|(status, count)| (status.to_string(), json!(count))).collect();
    let targets = report.targets.iter().map(|one| {
        json!({ "address": one.address.to_string(), "answered": one.answered, "failed": one.failed })
    });
    let checks = report.checks.iter().map(
        |check| json!({ "check": check.name, "passed": check.passed, "failed": check.failed }),
    );
    let mut value = json!({
        "valid": invalid.is_empty(),
        "invalid_because": invalid,
        "seconds": report.elapsed.as_secs_f64(),
        "answered": report.answered,
        "answered_per_second": report.per_second(),
        "failed": report.failures.total(),
        "failed_share": report.failed_share(),
        "failures": failures,
        "failed_between_s": report.failed_between.map(|(first, last)| {
            [first.as_secs_f64(), last.as_secs_f64()]
        }),
        "unconnected": report.unconnected,
        "targets": targets.collect::<Vec<_>>(),
        "statuses": statuses,
        "checks": checks.collect::<Vec<_>>(),
        "latency_ms": times(&report.latency),
        "received_bytes": report.received,
        "sent_bytes": report.sent,
        "body_bytes": report.bodies,
        "connections": report.connections,
        "users_most": report.most_users,
        "backlog_longest": report.longest_backlog,
        "not_started": report.not_started,
        "generator": {
            "core_share": report.watch.busy_share(),
            "starved_share": report.watch.starved_share(),
            "lateness_ms": times(&report.lateness),
            "descriptor_limit": report.watch.descriptor_limit,
            "ahead": report.watch.is_ahead,
        },
        "moments": report.moments.iter().map(moment).collect::<Vec<_>>(),
    });
    if let Some(phases) = &report.phases {
        value["phases_ms"] = json!({
            "blocked": times(&phases.blocked),
            "connecting": times(&phases.connecting),
            "tls_handshaking": times(&phases.tls),
            "sending": times(&phases.sending),
            "waiting": times(&phases.waiting),
            "receiving": times(&phases.receiving),
            "duration": times(&phases.duration),
            "iteration": times(&phases.iteration),
        });
    }
    value
}

fn times(times: &Histogram) -> Value {
    let of = |share| millis(times.quantile(share));
    json!({
        "count": times.count(),
        "min": millis(times.min()),
        "mean": millis(times.mean()),
        "deviation": millis(times.deviation()),
        "p50": of(0.5),
        "p90": of(0.9),
        "p95": of(0.95),
        "p99": of(0.99),
        "p99.9": of(0.999),
        "max": millis(times.max()),
    })
}

fn moment(moment: &Moment) -> Value {
    json!({
        "at_s": moment.at.as_secs_f64(),
        "took_s": moment.took.as_secs_f64(),
        "load": moment.load,
        "in_flight": moment.in_flight,
        "answered": moment.answered,
        "failed": moment.failed,
        "mean_ms": millis(moment.mean),
        "p50_ms": millis(moment.p50),
        "p95_ms": millis(moment.p95),
        "p99_ms": millis(moment.p99),
        "max_ms": millis(moment.max),
    })
}
