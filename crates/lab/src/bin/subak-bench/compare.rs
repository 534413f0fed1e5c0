//! The comparison: cases × rounds × balancers, on two cores.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use subak_lab::handshakes::{self, HandshakePlan};
use subak_lab::idle::{IdleConnections, Speaks};
use subak_lab::load::{self, Edge, LoadPlan};
use subak_lab::{machine, process};

use crate::balancer::{Balancer, Kind};
use crate::case::{self, ANSWER_WITHIN, Ask, Case, Silent, Version};
use crate::failure;
use crate::figures::{IdleSample, Sample, micros};
use crate::h2load::{self, Load};
use crate::report::{self, Results};
use crate::stage::Stage;

/// Descriptors a process needs beside those of its connections.
const OTHER_DESCRIPTORS: u64 = 200;
/// Requests by which the number of requests for one round of h2load is found.
const H2_TRIAL: u64 = 20_000;
/// Most rounds of an idle case: memory hardly scatters.
const IDLE_ROUNDS: usize = 3;
/// Requests that bring a fresh process to its working size before idle memory is read.
const IDLE_WARM_UP: u64 = 5_000;

#[derive(Args, Clone, Debug)]
pub(crate) struct Options {
    /// Short rounds, few of them: whether it works, not what it says
    #[arg(long)]
    quick: bool,
    /// Cases, separated by commas [default: all]
    #[arg(long, value_delimiter = ',')]
    cases: Vec<String>,
    /// Rounds of each case [default: 10, quick 2]
    #[arg(long)]
    rounds: Option<usize>,
    /// Measured seconds of each balancer in each round [default: 5, quick 1]
    #[arg(long)]
    seconds: Option<f64>,
    /// Seconds of load before each measurement [default: 1, quick 0.3]
    #[arg(long)]
    warm_up: Option<f64>,
    /// Balancers, separated by commas
    #[arg(long, value_delimiter = ',', default_value = "subak,nginx,haproxy")]
    balancers: Vec<Kind>,
    /// What Subak balances by, names separated by commas; with each it is a balancer of its own
    /// [default: round_robin]
    #[arg(long, value_delimiter = ',', value_parser = Kind::subak_by)]
    algorithm: Vec<Kind>,
    /// The Subak binary
    #[arg(long, default_value = "target/release/subak")]
    subak: PathBuf,
    /// Where results, configurations and logs go
    #[arg(long, default_value = "target/bench")]
    output: PathBuf,
    /// With an access log in JSON of the same fields, each into a file
    #[arg(long)]
    access_logs: bool,
    /// End with an error when a promise is not kept, or could not be judged
    #[arg(long)]
    enforce: bool,
}

/// Everything a round needs that stays the same.
struct Bench {
    stage: Stage,
    rounds: usize,
    window: Duration,
    warm_up: Duration,
}

/// Runs the comparison, prints the tables and writes the JSON.
pub(crate) fn run(options: &Options) -> io::Result<ExitCode> {
    let mut cases = case::choose(&options.cases).map_err(failure)?;
    if options.access_logs {
        cases.iter_mut().for_each(Case::log);
    }
    let seconds = |given: Option<f64>, quick, usual| {
        let seconds = given.unwrap_or(if options.quick { quick } else { usual });
        Duration::try_from_secs_f64(seconds).map_err(io::Error::other)
    };
    let mut stage = Stage::set(&options.subak, &options.output)?;
    stage.setting.access_logs = options.access_logs;
    let bench = Bench {
        stage,
        rounds: options.rounds.unwrap_or(if options.quick { 2 } else { 10 }).max(1),
        window: seconds(options.seconds, 1.0, 5.0)?,
        warm_up: seconds(options.warm_up, 0.3, 1.0)?,
    };

    let kinds = with_algorithms(&options.balancers, &options.algorithm);
    let versions = kinds.iter().map(|kind| kind.version(&options.subak));
    let versions = versions.collect::<io::Result<Vec<_>>>()?;
    let mut results = Results::new(&kinds, versions, bench.rounds, bench.window);
    let start = Instant::now();
    for case in cases {
        match case.ask {
            Ask::Idle { connections, silent, .. } => {
                let connections = bench.stage.reachable(connections, silent);
                let rounds = bench.idle_rounds(&case, (connections, silent), &kinds)?;
                results.add_idle(case, rounds);
            }
            _ => {
                let rounds = bench.rounds_of(&case, &kinds)?;
                results.add(case, rounds);
            }
        }
    }
    eprintln!("took {:.0} s", start.elapsed().as_secs_f64());
    println!("{}", report::markdown(&results));
    let file = write_json(&results, &options.output)?;
    eprintln!("written to {}", file.display());
    Ok(if options.enforce && !report::promises_kept(&results) {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

fn write_json(results: &Results, directory: &Path) -> io::Result<PathBuf> {
    let seconds = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_err(io::Error::other)?
        .as_secs();
    let text = serde_json::to_string_pretty(&report::json(results, seconds))?;
    let file = directory.join(format!("bench-{seconds}.json"));
    fs::write(&file, &text)?;
    fs::write(directory.join("latest.json"), &text)?;
    Ok(file)
}

/// Subak by each of these algorithms in the place of Subak; as it is when there are none.
fn with_algorithms(balancers: &[Kind], algorithms: &[Kind]) -> Vec<Kind> {
    let each = |kind: &Kind| match kind {
        Kind::Subak if !algorithms.is_empty() => algorithms.to_vec(),
        kind => vec![*kind],
    };
    balancers.iter().flat_map(each).collect()
}

/// The balancers of round `round`: each round begins with another one, so that none
/// always follows the same neighbour.
fn rotated(count: usize, round: usize) -> impl Iterator<Item = usize> {
    (0..count).map(move |index| (index + round) % count)
}

impl Bench {
    /// All rounds of a case with requests; for each balancer its samples by round.
    fn rounds_of(&self, case: &Case, kinds: &[Kind]) -> io::Result<Vec<Vec<Sample>>> {
        let balancers = kinds
            .iter()
            .map(|kind| Balancer::start(*kind, &self.stage.setting))
            .collect::<io::Result<Vec<_>>>()?;
        let mut samples = vec![Vec::with_capacity(self.rounds); kinds.len()];
        for round in 0..self.rounds {
            for index in rotated(kinds.len(), round) {
                let balancer = &balancers[index];
                let sample = match case.ask {
                    Ask::ByH2load { clients, streams, version, secure } => {
                        let target = match (secure, version) {
                            (true, _) => balancer.tls(),
                            (false, Version::Http1) => balancer.http1(),
                            (false, Version::Http2) => balancer.http2(),
                        };
                        let path = "/small";
                        let load = Load { target, path, clients, streams, version, secure };
                        self.by_h2load(balancer, &load)?
                    }
                    Ask::Handshakes { resumed } => self.handshakes(balancer, resumed)?,
                    ask => self.http1(balancer, ask)?,
                };
                eprintln!(
                    "[{}] round {}/{} {:<10} {:6.2} µs/request, {:8.0}/s, p99 {:.0} µs, {:.1} % busy{}",
                    case.name,
                    round + 1,
                    self.rounds,
                    balancer.kind,
                    sample.cpu_us(),
                    sample.per_second,
                    sample.p99_us,
                    sample.utilisation * 100.0,
                    if sample.failed > 0 {
                        format!(", {} FAILED", sample.failed)
                    } else {
                        String::new()
                    },
                );
                samples[index].push(sample);
            }
        }
        Ok(samples)
    }

    fn http1(&self, balancer: &Balancer, ask: Ask) -> io::Result<Sample> {
        let path = if let Ask::KeepAlive { path, .. } = ask { path } else { "/small" };
        let mut plan = LoadPlan::get(balancer.http1(), path);
        plan.warm_up = self.warm_up;
        plan = plan.lasting(self.window);
        plan.answer_within = ANSWER_WITHIN;
        match ask {
            Ask::KeepAlive { connections, .. } => plan = plan.users(connections),
            Ask::NewConnections { connections } => {
                plan.sources.bind.clone_from(&self.stage.sources);
                plan = plan.users(connections).with_new_connections();
            }
            Ask::Rate { connections, per_second } => plan = plan.rate(per_second, connections),
            Ask::ByH2load { .. } | Ask::Handshakes { .. } | Ask::Idle { .. } => {
                return Err(failure("not a case of HTTP/1.1 load"));
            }
        }
        let mut edges = Vec::with_capacity(2);
        let report = load::run_with(&plan, |edge| edges.push((edge, self.usage(balancer))))?;
        let [(Edge::Start, before), (Edge::End, after)] = edges.as_slice() else {
            return Err(failure("the load has no two edges"));
        };
        let (Ok(before), Ok(after)) = (before, after) else {
            return Err(failure(format!("{} ended during the measurement", balancer.kind)));
        };
        let mut sample = Usage::sample(before, after, report.answered);
        sample.per_second = report.per_second();
        sample.p50_us = micros(report.latency.quantile(0.5));
        sample.p99_us = micros(report.latency.quantile(0.99));
        sample.p999_us = micros(report.latency.quantile(0.999));
        sample.failed = report.failures.total();
        sample.backlog = report.longest_backlog;
        Ok(sample)
    }

    fn by_h2load(&self, balancer: &Balancer, load: &Load) -> io::Result<Sample> {
        let log = self.stage.setting.directory.join("h2load.log");
        let trial = h2load::run(load, H2_TRIAL, None)?;
        let requests = (trial.per_second * self.window.as_secs_f64()).max(1000.0) as u64;
        let before = self.usage(balancer)?;
        let outcome = h2load::run(load, requests, Some(&log))?;
        let after = self.usage(balancer)?;
        let mut sample = Usage::sample(&before, &after, outcome.succeeded);
        sample.per_second = outcome.per_second;
        sample.p50_us = micros(outcome.latency.quantile(0.5));
        sample.p99_us = micros(outcome.latency.quantile(0.99));
        sample.p999_us = micros(outcome.latency.quantile(0.999));
        sample.failed = outcome.failed;
        Ok(sample)
    }

    /// A sample whose requests are handshakes.
    fn handshakes(&self, balancer: &Balancer, resumed: bool) -> io::Result<Sample> {
        let plan = |time| HandshakePlan {
            target: balancer.tls(),
            sources: &self.stage.sources,
            certificate: &self.stage.setting.certificate,
            resumed,
            time,
        };
        handshakes::run(&plan(self.warm_up))?;
        let before = self.usage(balancer)?;
        let made = handshakes::run(&plan(self.window))?;
        let after = self.usage(balancer)?;
        let mut sample = Usage::sample(&before, &after, made.done);
        sample.per_second = made.done as f64 / (after.at - before.at).as_secs_f64();
        sample.p50_us = micros(made.latency.quantile(0.5));
        sample.p99_us = micros(made.latency.quantile(0.99));
        sample.p999_us = micros(made.latency.quantile(0.999));
        sample.failed = made.failed;
        Ok(sample)
    }

    /// All rounds of an idle case; for each balancer its samples by round. Each round
    /// starts a fresh process, since memory once taken is rarely given back.
    fn idle_rounds(
        &self,
        case: &Case,
        (connections, silent): (usize, Silent),
        kinds: &[Kind],
    ) -> io::Result<Vec<Vec<IdleSample>>> {
        let mut samples = vec![Vec::with_capacity(self.rounds); kinds.len()];
        for round in 0..self.rounds.min(IDLE_ROUNDS) {
            for index in rotated(kinds.len(), round) {
                let sample = self.idle(kinds[index], connections, silent)?;
                eprintln!(
                    "[{}] round {} {:<8} {:.0} bytes of its own per connection, {} of {connections} alive",
                    case.name,
                    round + 1,
                    kinds[index],
                    sample.private_dirty,
                    sample.alive,
                );
                samples[index].push(sample);
            }
        }
        Ok(samples)
    }

    fn idle(&self, kind: Kind, connections: usize, silent: Silent) -> io::Result<IdleSample> {
        let balancer = Balancer::start(kind, &self.stage.setting)?;
        let plan = LoadPlan::get(balancer.http1(), "/small").requests(IDLE_WARM_UP);
        load::run(&plan)?;
        let (before, slab_before) = (process::memory(&balancer.pids)?, process::kernel_slab()?);
        let (target, speaks) = match silent {
            Silent::Http1 => (balancer.http1(), Speaks::Http1),
            Silent::WebSocket => (balancer.http1(), Speaks::WebSocket),
            Silent::Http2 => (balancer.http2(), Speaks::Http2),
            Silent::Tls => {
                let client = self.stage.setting.certificate.client(false)?;
                (balancer.tls(), Speaks::Tls(client))
            }
        };
        // nginx has to be told which requests may become WebSockets.
        let path = if silent == Silent::WebSocket { "/ws" } else { "/small" };
        let sources = &self.stage.sources;
        let idle = IdleConnections::open(target, sources, connections, (&speaks, path))?;
        let (after, slab_after) = (process::memory(&balancer.pids)?, process::kernel_slab()?);
        let each = |before: u64, after: u64| (after as f64 - before as f64) / connections as f64;
        Ok(IdleSample {
            private_dirty: each(before.private_dirty, after.private_dirty),
            proportional: each(before.proportional, after.proportional),
            kernel_slab: each(slab_before, slab_after),
            baseline: before.proportional as f64,
            opened: connections,
            alive: idle.alive(),
        })
    }

    fn usage(&self, balancer: &Balancer) -> io::Result<Usage> {
        Ok(Usage {
            cpu: process::cpu_time(&balancer.pids)?,
            core_ns: machine::cpu_busy_ns(self.stage.setting.cpu)?,
            load_core_ns: machine::cpu_busy_ns(self.stage.load_cpu)?,
            at: Instant::now(),
        })
    }
}

impl Stage {
    /// How many of `wanted` silent connections the limit on descriptors allows: a WebSocket takes two
    /// of the balancer, and two here, where endpoints and clients are one process.
    fn reachable(&self, wanted: usize, silent: Silent) -> usize {
        let each = if silent == Silent::WebSocket { 2 } else { 1 };
        let most = self.descriptors.saturating_sub(OTHER_DESCRIPTORS) / each;
        wanted.min(usize::try_from(most).unwrap_or(wanted))
    }
}

/// What was used up to a moment.
struct Usage {
    cpu: process::CpuTime,
    core_ns: u64,
    load_core_ns: u64,
    at: Instant,
}

impl Usage {
    /// The part of a sample that follows from what was used between two moments.
    fn sample(before: &Usage, after: &Usage, answered: u64) -> Sample {
        let cpu = after.cpu.since(before.cpu);
        let wall_ns = (after.at - before.at).as_nanos().max(1) as f64;
        let requests = answered.max(1) as f64;
        Sample {
            user_us: micros(cpu.user) / requests,
            system_us: micros(cpu.system) / requests,
            utilisation: cpu.total().as_nanos() as f64 / wall_ns,
            core_busy: after.core_ns.saturating_sub(before.core_ns) as f64 / wall_ns,
            load_core_busy: after.load_core_ns.saturating_sub(before.load_core_ns) as f64 / wall_ns,
            answered,
            ..Sample::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subak_runs_by_every_algorithm_that_is_named() {
        let algorithms = [Kind::SubakBy("round_robin"), Kind::SubakBy("least_packets")];
        let chosen = with_algorithms(&[Kind::Nginx, Kind::Subak], &algorithms);
        assert_eq!(chosen, [Kind::Nginx, algorithms[0], algorithms[1]]);
        assert_eq!(with_algorithms(&[Kind::Subak], &[]), [Kind::Subak]);
    }

    #[test]
    fn every_round_begins_with_another_balancer() {
        let order: Vec<Vec<usize>> = (0..4).map(|round| rotated(3, round).collect()).collect();
        assert_eq!(order, [[0, 1, 2], [1, 2, 0], [2, 0, 1], [0, 1, 2]]);
    }
}
