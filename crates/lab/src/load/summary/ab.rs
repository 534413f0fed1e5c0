//! The summary as ab (ApacheBench) prints it, with its two "time per request": the latency that one of
//! the concurrent clients sees, and that divided by their number, which is 1/throughput.

use std::fmt::Write;
use std::net::SocketAddr;

use super::super::{LoadPlan, LoadReport, Phases};
use super::millis;
use crate::histogram::Histogram;

/// Needs [`super::super::Detail::phases`] for the table of connection times.
pub fn ab(plan: &LoadPlan, report: &LoadReport) -> String {
    let none = Phases::default();
    let phases = report.phases.as_deref().unwrap_or(&none);
    let seconds = report.elapsed.as_secs_f64().max(1e-9);
    let requests = report.ended();
    let concurrency = report.most_users.max(1);
    let answers: u64 = report.statuses.values().sum();
    let good: u64 = report.statuses.range(200..300).map(|(_, count)| count).sum();
    let document = report.bodies.checked_div(answers).unwrap_or(0);
    let path = plan.requests.first().map_or("/", |request| &request.path);
    let per_second = requests as f64 / seconds;
    let across_ms = seconds * 1e3 / requests.max(1) as f64;
    let mut out = String::new();
    let mut line = |name: &str, value: String| {
        // Writing to a String cannot fail.
        let _ = writeln!(out, "{name:<24}{value}");
    };
    line("Server Hostname:", host(&plan.host).to_owned());
    let port = plan.targets.first().map_or(0, SocketAddr::port);
    line("Server Port:", port.to_string());
    line("", String::new());
    line("Document Path:", path.to_owned());
    line("Document Length:", format!("{document} bytes"));
    line("", String::new());
    line("Concurrency Level:", concurrency.to_string());
    line("Time taken for tests:", format!("{seconds:.3} seconds"));
    line("Complete requests:", requests.to_string());
    line("Failed requests:", (requests - answers.min(requests)).to_string());
    if answers > good {
        line("Non-2xx responses:", (answers - good).to_string());
    }
    if !plan.new_connections {
        let kept = requests.saturating_sub(report.connections);
        line("Keep-Alive requests:", kept.to_string());
    }
    line("Total transferred:", format!("{} bytes", report.received));
    line("HTML transferred:", format!("{} bytes", report.bodies));
    line("Requests per second:", format!("{per_second:.2} [#/sec] (mean)"));
    let each_ms = across_ms * concurrency as f64;
    line("Time per request:", format!("{each_ms:.3} [ms] (mean)"));
    line(
        "Time per request:",
        format!("{across_ms:.3} [ms] (mean, across all concurrent requests)"),
    );
    let kilobytes = report.received as f64 / 1024.0 / seconds;
    line("Transfer rate:", format!("{kilobytes:.2} [Kbytes/sec] received"));
    out = out.replace(&format!("{:<24}\n", ""), "\n");
    out += "\nConnection Times (ms)\n              min  mean[+/-sd] median   max\n";
    let mut connect = phases.connecting.clone();
    if plan.tls.is_some() {
        // ab counts TLS's handshake as connecting, and so does this: the two together.
        connect = phases.blocked.clone();
    }
    let times = [
        ("Connect:", &connect),
        ("Processing:", &phases.duration),
        ("Waiting:", &phases.waiting),
        ("Total:", &report.latency),
    ];
    for (name, times) in times {
        let whole = |time| millis(time).round();
        let _ = writeln!(
            out,
            "{name:<12}{:>5} {:>4} {:>5.1} {:>6} {:>7}",
            whole(times.min()),
            whole(times.mean()),
            millis(times.deviation()),
            whole(times.quantile(0.5)),
            whole(times.max()),
        );
    }
    out + &percentages(&report.latency)
}

fn percentages(times: &Histogram) -> String {
    let mut out = "\nPercentage of the requests served within a certain time (ms)\n".to_owned();
    for percent in [50, 66, 75, 80, 90, 95, 98, 99, 100] {
        let time = times.quantile(f64::from(percent) / 100.0);
        let longest = if percent == 100 { " (longest request)" } else { "" };
        let _ = writeln!(out, "{percent:>4}% {:>6}{longest}", millis(time).round());
    }
    out
}

/// Without the port.
fn host(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    }
}
