//! A long run with connections coming and going: does memory settle?

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use subak_lab::idle::{IdleConnections, Speaks};
use subak_lab::load::{self, LoadPlan};
use subak_lab::process;

use crate::balancer::{Balancer, Kind};
use crate::failure;
use crate::stage::Stage;

/// Length of one kind of load before the next.
const LEG: Duration = Duration::from_secs(2);
/// Idle connections opened and closed in each turn.
const IDLE: usize = 2_000;
/// The steepest growth that is no leak, bytes per second: 1 MiB in 5 minutes.
const STEEPEST: f64 = 1024.0 * 1024.0 / 300.0;
/// Share of the time in which pools and allocators may still be filling.
const WARM_UP_SHARE: f64 = 0.2;

#[derive(Args)]
pub(crate) struct Options {
    /// How long
    #[arg(long, default_value_t = 10.0)]
    minutes: f64,
    /// Whom to watch
    #[arg(long, default_value = "subak")]
    balancer: Kind,
    /// The Subak binary
    #[arg(long, default_value = "target/release/subak")]
    subak: PathBuf,
    /// Where configurations and logs go
    #[arg(long, default_value = "target/bench")]
    output: PathBuf,
}

/// What was seen after one turn.
struct Turn {
    seconds: f64,
    resident: f64,
}

/// Takes turns of kept connections, new connections, large bodies and idle ones;
/// reads memory and descriptors after each. Fails when resident memory keeps growing
/// or a request failed.
pub(crate) fn run(options: &Options) -> io::Result<ExitCode> {
    let length = Duration::try_from_secs_f64(options.minutes * 60.0).map_err(io::Error::other)?;
    let stage = Stage::set(&options.subak, &options.output)?;
    let balancer = Balancer::start(options.balancer, &stage.setting)?;
    let target = balancer.http1();
    let leg = |path: &str, connections| {
        let mut plan = LoadPlan::get(target, path).users(connections).lasting(LEG);
        plan.warm_up = Duration::ZERO;
        plan.sources.bind.clone_from(&stage.sources);
        plan
    };
    let legs = [
        leg("/small", 64),
        leg("/small", 64).with_new_connections(),
        leg("/64k", 32),
        leg("/small", 500),
    ];
    let (start, mut turns, mut failed) = (Instant::now(), Vec::new(), 0);
    while start.elapsed() < length {
        let mut answered = 0;
        for plan in &legs {
            let report = load::run(plan)?;
            answered += report.answered;
            failed += report.failures.total();
        }
        let idle = IdleConnections::open(target, &stage.sources, IDLE, (&Speaks::Http1, "/small"))?;
        let memory = process::memory(&balancer.pids)?;
        let descriptors: usize =
            balancer.pids.iter().map(|pid| process::descriptors(*pid)).sum::<io::Result<_>>()?;
        let seconds = start.elapsed().as_secs_f64();
        eprintln!(
            "{seconds:5.0} s: {answered} answered, {failed} failed so far, resident {} KiB, private {} KiB, \
             {descriptors} descriptors with {IDLE} idle clients",
            memory.resident / 1024,
            memory.private_dirty / 1024,
        );
        turns.push(Turn { seconds, resident: memory.resident as f64 });
        drop(idle);
    }
    let settled: Vec<(f64, f64)> = turns
        .iter()
        .filter(|turn| turn.seconds > length.as_secs_f64() * WARM_UP_SHARE)
        .map(|turn| (turn.seconds, turn.resident))
        .collect();
    let slope =
        slope(&settled).ok_or_else(|| failure("too short to tell: fewer than two turns"))?;
    let grows = slope > STEEPEST;
    println!(
        "{}: resident memory changes by {:.3} MiB per 5 minutes over {} turns; at most 1 is {}; {failed} requests failed",
        balancer.kind,
        slope * 300.0 / (1024.0 * 1024.0),
        settled.len(),
        if grows { "NOT kept" } else { "kept" },
    );
    Ok(if grows || failed > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// The slope of the straight line closest to the points (least squares).
fn slope(points: &[(f64, f64)]) -> Option<f64> {
    let count = points.len() as f64;
    let (sum_x, sum_y) = points.iter().fold((0.0, 0.0), |(x, y), point| (x + point.0, y + point.1));
    let (mean_x, mean_y) = (sum_x / count, sum_y / count);
    let across: f64 = points.iter().map(|(x, y)| (x - mean_x) * (y - mean_y)).sum();
    let along: f64 = points.iter().map(|(x, _)| (x - mean_x).powi(2)).sum();
    (along > 0.0).then(|| across / along)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slope_of_a_line_with_noise_is_the_lines() {
        let points: Vec<(f64, f64)> = (0..100)
            .map(|x| (f64::from(x), 7.0 + 3.0 * f64::from(x) + if x % 2 == 0 { 1.0 } else { -1.0 }))
            .collect();
        assert!((slope(&points).expect("a slope") - 3.0).abs() < 0.01);
        assert_eq!(slope(&points[..1]), None);
        assert_eq!(slope(&[]), None);
    }
}
