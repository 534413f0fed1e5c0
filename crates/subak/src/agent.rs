//! `subak agent`: measures this machine and tells whoever asks, until a signal comes.

use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::{ArgGroup, Args};
use subak_agent::measure::{self, MeasureError, Roots, Sampler, Speed};
use subak_agent::{Agent, Http, Options, Report, StartError, Token};
use subak_balance::weigher::{Coefficients, PerResource, Resource};
use tokio::signal::unix::{SignalKind, signal};

use crate::cli::{FAILED, OK, WRONG};
use crate::logging::{self, LogFormat};

/// Shorter ones cost more than they tell: the kernel counts processor time in steps of 10 ms.
const MIN_INTERVAL: Duration = Duration::from_millis(100);
/// Readings in a window, at most.
const MAX_WINDOW_READINGS: u32 = 500;

/// The options of the command.
#[derive(Args, Debug)]
#[command(group(ArgGroup::new("told").required(true).multiple(true).args(["listen", "agent_check", "once"])))]
pub(crate) struct Arguments {
    /// Where reports are given over HTTP, as GET /v1/report; may be repeated
    #[arg(long, value_name = "ADDRESS", requires = "token_file")]
    listen: Vec<SocketAddr>,
    /// The file with the token that whoever asks for a report must show: 16 visible characters
    /// or more
    #[arg(long, value_name = "FILE", requires = "listen")]
    token_file: Option<PathBuf>,
    /// Where HAProxy's agent-check is answered, without a token; may be repeated
    #[arg(long, value_name = "ADDRESS")]
    agent_check: Vec<SocketAddr>,
    /// Print one report and end
    #[arg(long, conflicts_with_all = ["listen", "agent_check"])]
    once: bool,
    /// From one reading to the next
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = subak_config::duration)]
    interval: Duration,
    /// The time that shares and rates are taken over [default: three times the interval]
    #[arg(long, value_name = "DURATION", value_parser = subak_config::duration)]
    window: Option<Duration>,
    /// The control group whose limits and use count, as in /proc/PID/cgroup [default: the root,
    /// which is the machine, or in a container its own limits]
    #[arg(long, value_name = "NAME", default_value = "/", hide_default_value = true)]
    cgroup: PathBuf,
    /// A disk that counts; may be repeated [default: all that are devices]
    #[arg(long, value_name = "NAME")]
    disk: Vec<String>,
    /// A network interface that counts; may be repeated [default: those with a default route]
    #[arg(long, value_name = "NAME")]
    interface: Vec<String>,
    /// What the disks can transfer together, such as 500MB/s; counts as capacity
    #[arg(long, value_name = "SPEED")]
    disk_speed: Option<Speed>,
    /// What an interface can transfer, such as 1Gbit/s [default: what its driver says]
    #[arg(long, value_name = "SPEED")]
    network_speed: Option<Speed>,
    /// What each resource counts for in the percentage of agent-check; one left out counts for
    /// nothing
    #[arg(long, value_name = "SHARES", default_value = "cpu=60,memory=10,disk=10,network=20")]
    #[arg(value_parser = coefficients)]
    load: Coefficients,
    /// What is logged to standard error: error, warn, info, debug, or a filter
    #[arg(long, value_name = "FILTER", default_value = "info")]
    log: String,
    /// How it is logged [default: journal where systemd's journal listens, else text]
    #[arg(long, value_name = "FORMAT", value_enum)]
    log_format: Option<LogFormat>,
}

pub(crate) const EXAMPLES: &str = "\
The report is described in docs/agent.md. The token goes over the wire as it is:
listen on a private network.

Examples:
  openssl rand -hex 32 > token; chmod 600 token
  subak agent --listen 10.0.0.2:9180 --token-file token
  curl -H \"Authorization: Bearer $(cat token)\" http://10.0.0.2:9180/v1/report
  subak agent --agent-check 10.0.0.2:9999 --load cpu=80,memory=20
  subak agent --once --cgroup /system.slice/app.service | jq .";

/// Measures and tells; answers with the exit status.
pub(crate) fn run(arguments: Arguments) -> u8 {
    let _flush = match logging::start(&arguments.log, arguments.log_format) {
        Ok(flush) => flush,
        Err(message) => {
            eprintln!("error: {message}");
            return WRONG;
        }
    };
    if let Err(error) = logging::write_by_thread() {
        eprintln!("error: the thread that writes the log cannot be started: {error}");
        return FAILED;
    }
    let window = arguments.window.unwrap_or(arguments.interval.saturating_mul(3));
    if let Err(message) = check_times(arguments.interval, window) {
        tracing::error!("not started: {message}");
        return WRONG;
    }
    let measure = measure::Options {
        interval: arguments.interval,
        window,
        cgroup: arguments.cgroup,
        disks: arguments.disk,
        interfaces: arguments.interface,
        disk_speed: arguments.disk_speed,
        network_speed: arguments.network_speed,
    };
    if arguments.once {
        return once(measure);
    }
    let http = match arguments.token_file.as_deref().map(read_token).transpose() {
        Ok(token) => token.map(|token| Http { listen: arguments.listen, token }),
        Err(error) => {
            tracing::error!("not started: {error}");
            return WRONG;
        }
    };
    let agent_check = arguments.agent_check;
    serve(Options { measure, http, agent_check, load: arguments.load })
}

fn check_times(interval: Duration, window: Duration) -> Result<(), String> {
    if interval < MIN_INTERVAL {
        return Err(format!("--interval {interval:?} is below {MIN_INTERVAL:?}"));
    }
    if window < interval {
        return Err(format!("--window {window:?} is shorter than --interval {interval:?}"));
    }
    if window > interval.saturating_mul(MAX_WINDOW_READINGS) {
        return Err(format!(
            "--window {window:?} holds more than {MAX_WINDOW_READINGS} times --interval {interval:?}"
        ));
    }
    Ok(())
}

fn read_token(path: &Path) -> Result<Token, subak_agent::TokenError> {
    let token = Token::read(path)?;
    let mode = std::fs::metadata(path).map_or(0, |metadata| metadata.mode());
    if mode & 0o007 != 0 {
        tracing::warn!("every user can read {0}: chmod o= {0}", path.display());
    }
    Ok(token)
}

fn once(measure: measure::Options) -> u8 {
    let interval = measure.interval;
    let mut sampler = match Sampler::new(measure, Roots::default()) {
        Ok(sampler) => sampler,
        Err(error) => return not_started(&error.into()),
    };
    std::thread::sleep(interval);
    let sample = sampler.sample();
    println!("{}", Report::of(&sample, Instant::now()).to_json());
    OK
}

fn not_started(error: &StartError) -> u8 {
    tracing::error!("not started: {error}");
    match error {
        StartError::Measure(MeasureError::NoCpu { .. }) | StartError::Bind { .. } => FAILED,
        StartError::Measure(_) => WRONG,
    }
}

fn serve(options: Options) -> u8 {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => {
            tracing::error!(%error, "cannot start: raise `ulimit -n` (LimitNOFILE in systemd)");
            return FAILED;
        }
    };
    runtime.block_on(async {
        let signals = signal(SignalKind::terminate())
            .and_then(|terminate| Ok((terminate, signal(SignalKind::interrupt())?)));
        let (mut terminate, mut interrupt) = match signals {
            Ok(signals) => signals,
            Err(error) => {
                tracing::error!(%error, "cannot listen for signals");
                return FAILED;
            }
        };
        let agent = match Agent::start(options) {
            Ok(agent) => agent,
            Err(error) => return not_started(&error),
        };
        for interface in agent.interfaces_without_speed() {
            tracing::warn!(
                interface,
                "does not count, its driver does not say how fast it is: --network-speed does"
            );
        }
        for address in agent.http_addresses() {
            tracing::info!(%address, "reports at /v1/report");
        }
        for address in agent.agent_check_addresses() {
            tracing::info!(%address, "answering agent-check");
        }
        agent
            .run(async {
                tokio::select! {
                    _ = terminate.recv() => {}
                    _ = interrupt.recv() => {}
                }
            })
            .await;
        tracing::info!("stopped");
        OK
    })
}

/// `cpu=60,memory=10`: names of resources with whole numbers, of which only the ratio matters.
fn coefficients(text: &str) -> Result<Coefficients, String> {
    let expected = "expected shares such as cpu=60,memory=10,disk=10,network=20";
    let mut each = PerResource::default();
    let mut named = Vec::new();
    for part in text.split(',') {
        let (name, share) = part.split_once('=').ok_or(expected)?;
        let resource = Resource::ALL.into_iter().find(|resource| resource.name() == name);
        let resource =
            resource.ok_or_else(|| format!("there is no resource {name}, {expected}"))?;
        if named.contains(&resource) {
            return Err(format!("{name} is there twice"));
        }
        named.push(resource);
        *each.get_mut(resource) = share.parse().map_err(|_| expected)?;
    }
    Coefficients::new(each).ok_or_else(|| "one of them has to count for something".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_named_and_what_is_left_out_counts_for_nothing() {
        let given = coefficients("network=1,cpu=3").unwrap();
        assert_eq!(*given.each(), PerResource { cpu: 3, network: 1, ..Default::default() });
        assert_eq!(
            coefficients("cpu=60,memory=10,disk=10,network=20"),
            Ok(Coefficients::DEFAULT),
            "the default of --load"
        );
        for text in
            ["", "cpu", "cpu=", "cpu=x", "cpu=-1", "cpu=1,", "gpu=1", "cpu=1,cpu=2", "cpu=0"]
        {
            assert!(coefficients(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_window_has_at_least_one_interval_and_not_endlessly_many() {
        let seconds = Duration::from_secs;
        assert!(check_times(seconds(1), seconds(1)).is_ok());
        assert!(check_times(seconds(1), seconds(500)).is_ok());
        for (interval, window) in [
            (Duration::from_millis(99), seconds(1)),
            (seconds(2), seconds(1)),
            (seconds(1), seconds(501)),
        ] {
            assert!(check_times(interval, window).is_err(), "{interval:?} {window:?}");
        }
    }
}
