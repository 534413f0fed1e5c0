//! `subak lab endpoint`: endpoints to balance over, as fast or as slow as they are told to be.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use clap::Args;
use subak_lab::cgroup::CpuLimit;
use subak_lab::endpoint::{Behaviour, EndpointSpec, Endpoints, Service};
use tokio::signal::unix::{SignalKind, signal};

use crate::cli::{FAILED, OK, WRONG};
use crate::files;

/// From one look at the counters to the next.
const EVERY: Duration = Duration::from_secs(1);
/// The largest body.
const MOST_BODY: u64 = 64 << 20;

pub(crate) const EXAMPLES: &str = "\
Each endpoint names itself in X-Endpoint; /64k is a body of 64 KiB, /__health is
answered at once, /__stats has the counters as JSON. PUT
/__condition?slow=8&lossy=0.1&failing=0.5 has it take eight times as long, close
instead of one answer in ten, and answer half of all with 500 at once, until the
next. PUT /__condition?fault=reset (close, garbage, hang, truncate, trickle)
shows a fault instead of each answer. Hits are printed every second in which
there are new ones, and at the end.

Examples:
  subak lab endpoint 127.0.0.1:9001 127.0.0.1:9002
  subak lab endpoint 127.0.0.1:9001 --service exponential:5ms --concurrency 4
  subak lab endpoint 127.0.0.1:9001 --service lognormal:20ms,1.2 --fail 1%
  subak lab endpoint 127.0.0.1:9001 --service 2ms --cpu --cpu-limit 0.5
  subak lab endpoint 127.0.0.1:9001 --service 40ms --cache 400 --hit 4ms
  curl http://127.0.0.1:9001/__stats";

/// The options of the command.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// Where endpoints listen; named a, b, c … in this order
    #[arg(required = true, value_name = "ADDRESS")]
    addresses: Vec<SocketAddr>,
    /// The name of a single endpoint
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// How long serving a request takes: 5ms, exponential:5ms, lognormal:5ms,1.2 (mean and σ) or
    /// pareto:2ms,1.5 (least and exponent) [default: no time]
    #[arg(long, value_name = "TIME")]
    service: Option<Service>,
    /// Burn that much of a core's time instead of waiting
    #[arg(long, requires = "service")]
    cpu: bool,
    /// Requests served at once, by each endpoint; others wait in line [default: all; with --cpu the
    /// number of cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    concurrency: Option<u32>,
    /// Requests in line, at most; more are answered 503
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    queue: u32,
    /// Bytes of the body [default: the endpoint's name]
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u64).range(0..=MOST_BODY))]
    body: Option<u64>,
    /// Share of requests that are answered 500, such as 1%
    #[arg(long, value_name = "SHARE", value_parser = share, default_value = "0%")]
    fail: f64,
    /// It keeps the latest objects, so many, and serves those in the time of --hit
    #[arg(long, value_name = "OBJECTS", requires_all = ["hit", "service"], value_parser = clap::value_parser!(u32).range(1..))]
    cache: Option<u32>,
    /// How long serving takes what it has kept; as --service
    #[arg(long, value_name = "TIME", requires = "cache")]
    hit: Option<Service>,
    /// Cores that this process may use, by a control group: 0.5 is half of one
    #[arg(long, value_name = "CORES")]
    cpu_limit: Option<f64>,
    /// Whatever is drawn by chance follows from it
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
}

/// Serves until a signal comes; answers with the exit status.
pub(crate) fn run(arguments: Arguments) -> u8 {
    if arguments.name.is_some() && arguments.addresses.len() > 1 {
        files::tell("error: --name is for a single endpoint\n");
        return WRONG;
    }
    match serve(&arguments) {
        Ok(()) => OK,
        Err(error) => {
            files::tell(&format!("error: {error}\n"));
            FAILED
        }
    }
}

fn serve(arguments: &Arguments) -> io::Result<()> {
    // Before any thread is started, so that all are within.
    let _limit = arguments.cpu_limit.map(CpuLimit::enter).transpose()?;
    let names: Vec<String> = (0..arguments.addresses.len())
        .map(|index| arguments.name.clone().unwrap_or_else(|| name(index)))
        .collect();
    let specs = arguments.addresses.iter().zip(&names).zip(0..).map(|((address, name), index)| {
        EndpointSpec::new(name, *address).behaving(Behaviour {
            service: arguments.service,
            works: arguments.cpu,
            concurrency: arguments.concurrency.map(|n| n as usize),
            queue: arguments.queue as usize,
            body: arguments.body.map(|bytes| bytes as usize),
            fails: arguments.fail,
            cache: arguments.cache.map(|most| most as usize).zip(arguments.hit),
            seed: arguments.seed.wrapping_add(index),
        })
    });
    let endpoints = Endpoints::start(specs.collect())?;
    for (name, address) in names.iter().zip(endpoints.addresses()) {
        files::told(files::print(&format!("{name} listens on {address}\n")));
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        let mut before = endpoints.all_hits();
        loop {
            tokio::select! {
                _ = interrupt.recv() => break,
                _ = terminate.recv() => break,
                () = tokio::time::sleep(EVERY) => {}
            }
            let hits = endpoints.all_hits();
            if hits != before {
                files::told(files::print(&line(&names, &hits)));
                before = hits;
            }
        }
        io::Result::Ok(())
    })?;
    let hits = endpoints.stop();
    files::told(files::print(&line(&names, &hits)));
    Ok(())
}

fn line(names: &[String], hits: &[u64]) -> String {
    let parts = names.iter().zip(hits).map(|(name, hits)| format!("{name} {hits}"));
    format!("hits: {}\n", parts.collect::<Vec<_>>().join(", "))
}

/// a to z, then e26 and so on.
fn name(index: usize) -> String {
    match u8::try_from(index) {
        Ok(index @ 0..26) => char::from(b'a' + index).to_string(),
        _ => format!("e{index}"),
    }
}

/// `1%` or `0.01`.
fn share(text: &str) -> Result<f64, String> {
    let share = match text.strip_suffix('%') {
        Some(percent) => percent.trim().parse::<f64>().map(|percent| percent / 100.0),
        None => text.parse::<f64>(),
    };
    let share = share.ok().filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| format!("{text:?} is no share, 0% to 100%"))
}
