//! `subak lab load`: puts load on an address, shows how it goes, prints what came back and judges it.

mod asked;
mod like;
mod progress;
mod target;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clap::{Args, ValueEnum};
use serde_json::json;
use subak_lab::load::{self, Check, LoadPlan, LoadReport, Threshold, summary};

use crate::cli::{FAILED, OK, WRONG};
use crate::files;

pub(crate) const EXAMPLES: &str = "\
Rates and users change in stages, each VALUE:DURATION: from the value before it,
evenly, to its own. Latency of an open loop (--rate) counts from when a request
was due; a run in which this command was the bottleneck is marked INVALID, and
then no threshold holds. Ctrl-C ends early, with a summary.

Examples:
  subak lab load http://127.0.0.1:8080/ --rate 2000/s --for 10s
  subak lab load http://127.0.0.1:8080/ --rate 0 --stages 500:1m,500:5m,0:1m
  subak lab load http://127.0.0.1:8080/ --users 50 --think 1s --for 1m
  subak lab load http://127.0.0.1:8080/ -n 12000 -c 10 --summary ab
  subak lab load http://10.0.0.1/ http://10.0.0.2/ http://10.0.0.3/ --rate 900/s
  subak lab load http://127.0.0.1:8080/ --like access.log.gz --faster 2 --for 5m
  subak lab load https://app.test/ --ca ca.pem --connect 10.0.0.1:443 --http2
  subak lab load http://127.0.0.1:8080/ --check status=200 \\
      --threshold 'p95<200ms' --threshold 'failed<1%' --json > result.json";

/// The options of the command.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    #[command(flatten)]
    shape: asked::Shape,
    #[command(flatten)]
    like: like::Like,
    #[command(flatten)]
    target: target::Target,
    /// What an answer has to be like, beside 2xx: status=200-299, body~TEXT, header:NAME or
    /// header:NAME=VALUE; may be repeated
    #[arg(long, value_name = "CHECK")]
    check: Vec<Check>,
    /// What the run has to keep to, else the exit status is 1: p95<200ms, avg<50ms, failed<1%,
    /// checks>99%, rate>1000/s; may be repeated
    #[arg(long, value_name = "CONDITION")]
    threshold: Vec<Threshold>,
    /// The summary in another program's layout
    #[arg(long, value_enum, value_name = "LAYOUT", conflicts_with_all = ["json", "csv"])]
    summary: Option<Layout>,
    /// What came back as JSON, with a series by interval
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// The series by interval as CSV
    #[arg(long)]
    csv: bool,
    /// Length of an interval of the series
    #[arg(long, value_name = "DURATION", default_value = "1s")]
    #[arg(value_parser = subak_config::duration)]
    interval: Duration,
    /// Run before everything else on this core, so that no other process makes requests start late;
    /// needs root or CAP_SYS_NICE
    #[arg(long)]
    ahead: bool,
    /// No progress, even on a terminal
    #[arg(long)]
    quiet: bool,
}

/// Whose summary.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Layout {
    /// As k6 prints it, all metrics.
    K6,
    /// As ab (ApacheBench) prints it.
    Ab,
}

/// Puts load on the address; answers with the exit status.
pub(crate) fn run(arguments: Arguments) -> u8 {
    let plan = match plan(&arguments) {
        Ok(plan) => plan,
        Err(error) => {
            files::tell(&format!("error: {error}\n"));
            return WRONG;
        }
    };
    if let Err(error) = allow_connections(&plan) {
        files::tell(&format!("error: {error}\n"));
        return FAILED;
    }
    let stop = Arc::new(AtomicBool::new(false));
    stop_on_signal(stop.clone());
    let mut progress = progress::Progress::new(&plan, arguments.quiet);
    let ran = load::run_watched(&plan, &stop, &mut |event| progress.show(event));
    progress.clear();
    match ran {
        Ok(report) => finish(&arguments, &plan, &report),
        Err(error) => {
            files::tell(&format!("error: {error}\n"));
            // What the plan says wrong is the command line's fault.
            if error.kind() == std::io::ErrorKind::InvalidInput { WRONG } else { FAILED }
        }
    }
}

fn plan(arguments: &Arguments) -> Result<LoadPlan, String> {
    let mut plan = arguments.target.plan()?;
    arguments.shape.apply(&mut plan)?;
    arguments.like.apply(&mut plan, &arguments.shape)?;
    plan.checks.clone_from(&arguments.check);
    if arguments.ahead {
        plan.precedence = load::Precedence::Ahead;
    }
    plan.detail = load::Detail { phases: true, every: Some(arguments.interval), finish: true };
    Ok(plan)
}

/// Makes room for the connections that the plan may open.
fn allow_connections(plan: &LoadPlan) -> Result<(), String> {
    let wanted = plan.most_connections() as u64 + 64;
    let limit = subak_lab::machine::raise_descriptor_limit(wanted).map_err(|e| e.to_string())?;
    match limit < wanted {
        true => Err(format!(
            "{wanted} open files are needed, one a connection, and {limit} are allowed: raise the \
             limit (ulimit -n {wanted}), or ask for fewer with --max-connections or --users"
        )),
        false => Ok(()),
    }
}

/// The first SIGINT or SIGTERM ends the load, with a summary; the second this process.
pub(super) fn stop_on_signal(stop: Arc<AtomicBool>) {
    let listen = move || -> std::io::Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async {
            use tokio::signal::unix::{SignalKind, signal};
            let mut interrupt = signal(SignalKind::interrupt())?;
            let mut terminate = signal(SignalKind::terminate())?;
            loop {
                tokio::select! { _ = interrupt.recv() => {}, _ = terminate.recv() => {} }
                if stop.swap(true, Ordering::Relaxed) {
                    std::process::exit(130);
                }
            }
        })
    };
    std::thread::spawn(listen);
}

fn finish(arguments: &Arguments, plan: &LoadPlan, report: &LoadReport) -> u8 {
    let invalid = report.invalid();
    let kept: Vec<_> = arguments.threshold.iter().map(|one| one.judge(report)).collect();
    let text = match arguments.summary {
        _ if arguments.json => {
            let mut value = summary::json(report);
            let thresholds = kept.iter().map(|kept| {
                json!({ "threshold": kept.threshold, "holds": kept.holds, "measured": kept.measured })
            });
            value["thresholds"] = thresholds.collect();
            format!("{value:#}\n")
        }
        _ if arguments.csv => summary::csv(report),
        Some(Layout::K6) => summary::k6(plan, report),
        Some(Layout::Ab) => summary::ab(plan, report),
        None => summary::text(report),
    };
    let printed = files::told(files::print(&text));
    if printed != OK {
        return printed;
    }
    // The own layout and JSON say so themselves; the others have no place for it.
    if arguments.csv || arguments.summary.is_some() {
        invalid.iter().for_each(|why| files::tell(&format!("INVALID: {why}\n")));
    }
    for kept in &kept {
        let word = if kept.holds { "holds" } else { "BROKEN" };
        files::tell(&format!("threshold {}: {word}, {}\n", kept.threshold, kept.measured));
    }
    let judged = kept.iter().all(|kept| kept.holds);
    if !kept.is_empty() && !invalid.is_empty() {
        files::tell("error: the run is not valid, so nothing is known of its thresholds\n");
        return FAILED;
    }
    if report.answered == 0 {
        files::tell(&format!("error: nothing was answered: {}\n", report.failures));
        return FAILED;
    }
    if judged { OK } else { FAILED }
}
