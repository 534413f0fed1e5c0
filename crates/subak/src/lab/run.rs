//! `subak lab run`: a scenario in the simulator, on real servers, or both.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use clap::{Args, ValueEnum};
use subak_report::{Report, Word};
use subak_scenario::{Algorithm, Calibration, Ground, NotRun, Outcome, Scenario, Trial, builtin};
use subak_trace::Reading;

use super::keep;
use super::reading;
use super::result::{self, Progress};
use crate::cli::{FAILED, OK, WRONG};
use crate::files;

pub(crate) const EXAMPLES: &str = "\
The scenario is one of `subak lab list`, or a file. On real servers it runs this
very program, one test endpoint for each of the scenario's and a load generator,
on addresses of 127.0.0.0/8; `both` measures first what this machine adds to an
answer, tells the simulator, and compares the two. Status 1 says that something
it asserts is not so, or that a run does not count.

Examples:
  subak lab run slow-endpoint
  subak lab run slow-endpoint --on both --faster 5
  subak lab run slow-endpoint --algorithms round_robin,peak_ewma --seeds 10
  subak lab run mine.toml --output results/mine
  subak lab run failover --json";

/// The options of the command.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// A name from `subak lab list`, or a TOML file
    #[arg(value_name = "SCENARIO")]
    scenario: String,
    /// Where it runs
    #[arg(long, value_enum, default_value = "sim")]
    on: Place,
    /// Only these algorithms, or others than the scenario's
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    algorithms: Vec<String>,
    /// Runs of each algorithm in the simulator
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=1000))]
    seeds: Option<u32>,
    /// Runs of each algorithm on real servers
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=1000))]
    repetitions: Option<u32>,
    /// So many times as fast: all times of the scenario divided, all rates multiplied
    #[arg(long, value_name = "TIMES", value_parser = times, default_value = "1")]
    faster: f64,
    /// Where the result goes [default: lab-results/NAME]
    #[arg(long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// What was measured as JSON, instead of tables
    #[arg(long)]
    json: bool,
}

/// Where a scenario runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Place {
    /// In the simulator
    Sim,
    /// On real servers, here
    Real,
    /// On real servers, and in the simulator with what this machine adds
    Both,
}

/// Runs the scenario; answers with the exit status.
pub(crate) fn run(arguments: Arguments) -> u8 {
    let (name, text) = match text(&arguments.scenario) {
        Ok(found) => found,
        Err(status) => return status,
    };
    let read = subak_scenario::read(&text, Path::new(&arguments.scenario));
    let Some(mut scenario) = read.scenario else {
        files::tell(&read.sources.render(&read.diagnostics, false));
        return WRONG;
    };
    let beside = Path::new(&arguments.scenario).parent().unwrap_or(Path::new(""));
    let trace = |log: &Path| {
        let asked = subak_trace::asked(&beside.join(log), &Reading::default(), |_| {});
        let asked = asked.map_err(|error| error.to_string())?;
        reading::note(&asked.left_out);
        Ok(asked.trace())
    };
    if let Err(message) = scenario.attach(trace).and_then(|()| adapt(&mut scenario, &arguments)) {
        files::tell(&format!("error: {message}\n"));
        return WRONG;
    }
    if !scenario.attacks.is_empty() && arguments.on == Place::Sim {
        files::tell("error: not run: attacks need real servers (--on real)\n");
        return WRONG;
    }
    let directory = match keep::directory(arguments.output.as_deref(), &name) {
        Ok(directory) => directory,
        Err(message) => return files::told(Err(message)),
    };
    let (trials, setup) = match everywhere(&scenario, arguments.on) {
        Ok(done) => done,
        Err((status, message)) => {
            keep::leave(&directory);
            files::tell(&format!("error: {message}\n"));
            return status;
        }
    };
    told(
        &arguments,
        &directory,
        Outcome {
            name,
            scenario: text,
            faster: arguments.faster,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            made: result::now(),
            setup,
            trials,
        },
    )
}

/// What was measured, and what is to be said of the set-up.
type Done = (Vec<Trial>, Vec<(String, String)>);

/// The trials of all places; or the exit status and why.
fn everywhere(scenario: &Scenario, place: Place) -> Result<Done, (u8, String)> {
    let mut setup = vec![("machine".to_owned(), machine())];
    let (mut measured, mut calibration) = (Vec::new(), None);
    let endpoints = Ground::addresses(scenario).map_err(|error| (FAILED, error.to_string()))?;
    if place != Place::Sim {
        let calibrates = place == Place::Both && scenario.attacks.is_empty();
        (measured, calibration) =
            really(scenario, &endpoints, calibrates).map_err(|error| match error {
                NotRun::Unfit(why) => (WRONG, why),
                other => (FAILED, other.to_string()),
            })?;
        setup.push(("real servers".to_owned(), REAL.to_owned()));
    }
    if let Some(calibration) = &calibration {
        setup.push(("calibration".to_owned(), calibration.told()));
    }
    let mut trials = Vec::new();
    if place != Place::Real && scenario.attacks.is_empty() {
        let progress = Progress::new();
        let tell = |done, all| progress.tell(done, all, "runs in the simulator");
        let of_pool = subak_http::pool_spec;
        let as_real = calibration.as_ref().map(|calibration| (calibration, &endpoints[..]));
        trials = subak_scenario::simulate(scenario, as_real, of_pool, &tell)
            .map_err(|error| (WRONG, error.to_string()))?;
    }
    trials.append(&mut measured);
    Ok((trials, setup))
}

/// What a report says of them.
const REAL: &str = "subak serve with one worker on a core of its own; endpoints (subak lab endpoint, \
    work by timers) and load generator on another, the generator before all others where rights allow \
    that";

/// The runs on real servers, and before them what this machine adds, where it is wanted.
fn really(
    scenario: &Scenario,
    endpoints: &[SocketAddr],
    calibrates: bool,
) -> Result<(Vec<Trial>, Option<Calibration>), NotRun> {
    let stop = Arc::new(AtomicBool::new(false));
    super::load::stop_on_signal(stop.clone());
    let progress = Progress::new();
    let binary = std::env::current_exe()?;
    let tell = |done, all| progress.tell(done, all, "runs on real servers");
    let ground = Ground { binary: &binary, stop: &stop, endpoints, progress: &tell };
    let calibration = match calibrates {
        true => Some(subak_scenario::calibrate(scenario, &ground)?),
        false => None,
    };
    Ok((subak_scenario::measure(scenario, &ground)?, calibration))
}

/// The name and the text of a scenario.
fn text(scenario: &str) -> Result<(String, String), u8> {
    let path = Path::new(scenario);
    match builtin::find(scenario) {
        Some(one) => Ok((one.name.to_owned(), one.text.to_owned())),
        None if path.extension().is_none() && !path.exists() => Err(super::unknown(scenario)),
        None => match files::read(path) {
            Ok(text) => {
                let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
                Ok((name, text))
            }
            Err(message) => {
                files::tell(&format!("error: {message}\n"));
                Err(WRONG)
            }
        },
    }
}

/// What the command line says instead of the file.
fn adapt(scenario: &mut Scenario, arguments: &Arguments) -> Result<(), String> {
    if let Some(seeds) = arguments.seeds {
        scenario.seeds = seeds;
    }
    if let Some(repetitions) = arguments.repetitions {
        scenario.repetitions = repetitions;
    }
    *scenario = scenario.clone().faster(arguments.faster);
    if arguments.algorithms.is_empty() {
        return Ok(());
    }
    let mut chosen: Vec<Algorithm> = Vec::new();
    for name in &arguments.algorithms {
        let known = scenario.algorithms.iter().find(|algorithm| algorithm.name == *name);
        let algorithm = match known {
            Some(algorithm) => algorithm.clone(),
            None => Algorithm::of(name.as_str().into())?,
        };
        if chosen.iter().all(|one| one.name != algorithm.name) {
            chosen.push(algorithm);
        }
    }
    scenario.algorithms = chosen;
    Ok(())
}

/// Writes and prints what came out.
fn told(arguments: &Arguments, directory: &Path, outcome: Outcome) -> u8 {
    let report = match subak_scenario::report(&outcome) {
        Ok(report) => report,
        Err(message) => {
            files::tell(&message);
            return FAILED;
        }
    };
    let json = format!("{:#}\n", serde_json::to_value(&outcome).unwrap_or_default());
    let mut list = vec![("result.json", json.clone())];
    list.extend(result::forms(&report));
    let shown = match arguments.json {
        true => json,
        false => {
            let page = directory.join("report.html");
            format!(
                "{}\nThe whole report: {}\n",
                report.text_within(files::columns()),
                page.display()
            )
        }
    };
    match files::told(keep::write(directory, &list).and_then(|()| files::print(&shown))) {
        OK => status(&report, &outcome.trials),
        other => other,
    }
}

/// Whether all is as asserted, and every run counts.
fn status(report: &Report, trials: &[Trial]) -> u8 {
    let wrong = |word| matches!(word, Word::Fails | Word::Invalid);
    let invalid = trials.iter().flat_map(|trial| &trial.runs).any(|run| !run.invalid.is_empty());
    let fails = report.verdicts.iter().any(|verdict| wrong(verdict.word));
    if fails || invalid { FAILED } else { OK }
}

/// `5` or `0.5`.
fn times(text: &str) -> Result<f64, String> {
    let times = text.parse::<f64>().ok().filter(|times| result::FASTER.contains(times));
    times.ok_or_else(|| format!("{text:?} is no number from 0.01 to 100"))
}

fn machine() -> String {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    format!("{cores} cores, Linux {}", kernel.trim())
}
