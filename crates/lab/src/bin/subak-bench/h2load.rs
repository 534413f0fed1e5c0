//! HTTP/2 load, and load over TLS, by `h2load`, from Debian's package nghttp2-client.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use subak_lab::histogram::Histogram;

use crate::case::Version;
use crate::{during, failure};

/// What `h2load` reports.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) succeeded: u64,
    pub(crate) failed: u64,
    pub(crate) per_second: f64,
    /// Of every request; empty when no log was asked for.
    pub(crate) latency: Histogram,
}

/// What is asked, and how.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    pub(crate) target: SocketAddr,
    pub(crate) path: &'static str,
    /// Connections.
    pub(crate) clients: usize,
    /// Requests under way on each.
    pub(crate) streams: usize,
    pub(crate) version: Version,
    /// TLS 1.3 with AES-128-GCM and X25519.
    pub(crate) secure: bool,
}

/// Asks `requests` times. With `log`, a file to use, latencies are read back from it.
pub(crate) fn run(load: &Load, requests: u64, log: Option<&Path>) -> io::Result<Outcome> {
    let Load { target, path, clients, streams, .. } = load;
    let scheme = if load.secure { "https" } else { "http" };
    let mut command = Command::new("h2load");
    if load.version == Version::Http1 {
        command.arg("--h1");
    }
    if load.secure {
        command.args(["--tls13-ciphers=TLS_AES_128_GCM_SHA256", "--groups=X25519"]);
    }
    command.args(["-t", "1", "-c", &clients.to_string(), "-m", &streams.to_string()]);
    command.args(["-n", &requests.to_string()]);
    if let Some(log) = log {
        // h2load appends to a log that is there.
        match fs::remove_file(log) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => command.arg(format!("--log-file={}", log.display())),
        };
    }
    let output =
        command.arg(format!("{scheme}://{target}{path}")).output().map_err(during("h2load"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(failure(format!(
            "h2load ended with {}: {}{}",
            output.status,
            text,
            said.trim()
        )));
    }
    let mut outcome =
        parse(&text).ok_or_else(|| failure(format!("odd answer of h2load: {text}")))?;
    if let Some(log) = log {
        outcome.latency = latencies(&fs::read_to_string(log).map_err(during(log.display()))?);
    }
    Ok(outcome)
}

/// Reads the two lines that matter:
/// `finished in 1.2s, 3000.00 req/s, 1.0MB/s` and
/// `requests: 10 total, 10 started, 10 done, 9 succeeded, 1 failed, 0 errored, 0 timeout`.
fn parse(text: &str) -> Option<Outcome> {
    let rate = text.lines().find_map(|line| line.strip_prefix("finished in "))?;
    let per_second = rate.split(", ").nth(1)?.strip_suffix(" req/s")?.parse().ok()?;
    let counts = text.lines().find_map(|line| line.strip_prefix("requests: "))?;
    let count = |name: &str| {
        counts.split(", ").find_map(|part| part.strip_suffix(name)?.trim().parse::<u64>().ok())
    };
    let succeeded = count("succeeded")?;
    let failed = count("total")?.saturating_sub(succeeded);
    Some(Outcome { succeeded, failed, per_second, latency: Histogram::new() })
}

/// Reads a log: start in µs, status and duration in µs, separated by tabs.
fn latencies(log: &str) -> Histogram {
    let mut histogram = Histogram::new();
    for line in log.lines() {
        if let Some(micros) = line.split('\t').nth(2).and_then(|text| text.parse::<u64>().ok()) {
            histogram.record(micros * 1000);
        }
    }
    histogram
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn what_it_prints_is_understood() {
        let text = "progress: 100% done\n\nfinished in 250.5ms, 39920.16 req/s, 1.10MB/s\n\
            requests: 10000 total, 10000 started, 10000 done, 9990 succeeded, 4 failed, \
            6 errored, 0 timeout\nstatus codes: 9990 2xx, 0 3xx, 4 4xx, 0 5xx\n";
        let outcome = parse(text).expect("an outcome");
        assert_eq!((outcome.succeeded, outcome.failed), (9990, 10));
        assert!((outcome.per_second - 39920.16).abs() < 1e-6);
        assert!(parse("cannot connect\n").is_none());
    }

    #[test]
    fn its_log_gives_latencies() {
        let latency = latencies("1700000000000000\t200\t150\n1700000000000100\t200\t250\n");
        assert_eq!((latency.count(), latency.max()), (2, Duration::from_micros(250)));
    }
}
