//! Endpoints and a balancer before them, and the directory where they keep what they need.

use std::fs;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use serde::Deserialize;
use subak_lab::endpoint::{Condition, Service as Wanted};
use subak_lab::process;

use super::balancer::Balancer;
use super::process::{Process, addresses};
use super::{Cores, Ground, NotRun};
use crate::configuration;
use crate::model::{Algorithm, Endpoint, Scenario, Service};

/// An endpoint tells what it has counted within this time.
const TELLS_WITHIN: Duration = Duration::from_secs(20);

/// What serves in one run. Dropping it ends and removes everything.
#[derive(Debug)]
pub(super) struct World {
    pub(super) balancers: Vec<Balancer>,
    pub(super) endpoints: Endpoints,
    _directory: Directory,
}

impl World {
    pub(super) fn start(
        scenario: &Scenario,
        algorithm: &Algorithm,
        ground: &Ground<'_>,
        cores: Cores,
        seed: u64,
    ) -> Result<World, NotRun> {
        let directory = Directory::create()?;
        let endpoints = Endpoints::start(&scenario.endpoints, ground, cores, seed, &directory.0)?;
        let behind: Vec<String> = endpoints.all.iter().map(|one| one.address.to_string()).collect();
        let listen = addresses(scenario.balancers.count as usize)?;
        let balancers = listen.into_iter().enumerate().map(|(number, listen)| {
            let text = configuration::text(scenario, algorithm, &listen.to_string(), &behind);
            configuration::pool(&text).map_err(NotRun::Unfit)?;
            let core = cores.balancer;
            Ok(Balancer::start(ground.binary, &text, listen, core, &directory.0, number)?)
        });
        let balancers = balancers.collect::<Result<_, NotRun>>()?;
        Ok(World { balancers, endpoints, _directory: directory })
    }

    /// Where clients ask: the balancers.
    pub(super) fn targets(&self) -> Vec<SocketAddr> {
        self.balancers.iter().map(|one| one.process.address).collect()
    }

    /// The processes of all balancers.
    pub(super) fn balancers_pids(&self) -> io::Result<Vec<u32>> {
        let trees = self.balancers.iter().map(|one| process::tree(one.process.pid()));
        Ok(trees.collect::<io::Result<Vec<_>>>()?.concat())
    }
}

/// A directory that is removed with what is in it.
#[derive(Debug)]
struct Directory(PathBuf);

impl Directory {
    fn create() -> io::Result<Directory> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("subak-lab-{}-{number}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        fs::create_dir(&directory)?;
        Ok(Directory(directory))
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// All endpoints of a run, each a process.
#[derive(Debug)]
pub(super) struct Endpoints {
    pub(super) all: Vec<Running>,
}

impl Endpoints {
    fn start(
        models: &[Endpoint],
        ground: &Ground<'_>,
        cores: Cores,
        seed: u64,
        directory: &Path,
    ) -> io::Result<Endpoints> {
        let one = |(index, (model, address)): (usize, (&Endpoint, &SocketAddr))| {
            let (address, binary) = (*address, ground.binary.to_owned());
            let mut arguments = vec!["lab".to_owned(), "endpoint".to_owned(), address.to_string()];
            let name = format!("e{index}");
            // Seeds of different runs and endpoints lie far apart.
            let seed = seed.wrapping_mul(1_000_003).wrapping_add(index as u64);
            let mut option = |option: &str, value: String| {
                arguments.extend([format!("--{option}"), value]);
            };
            option("name", name.clone());
            option("seed", seed.to_string());
            option("service", wanted(model.service).to_string());
            option("concurrency", model.concurrency.to_string());
            option("queue", model.queue.to_string());
            if let Some((objects, hit)) = model.cache {
                option("cache", objects.to_string());
                option("hit", wanted(hit).to_string());
            }
            let log = directory.join(format!("{name}.log"));
            let core = cores.others;
            let mut running = Running {
                address,
                process: None,
                before: Told::default(),
                binary,
                arguments,
                core,
                log,
            };
            running.start()?;
            Ok(running)
        };
        let models = models.iter().zip(ground.endpoints).enumerate();
        let all = models.map(one).collect::<io::Result<_>>()?;
        Ok(Endpoints { all })
    }

    /// What each has counted.
    pub(super) fn told(&self) -> io::Result<Vec<Told>> {
        self.all.iter().map(Running::told).collect()
    }
}

/// A service time as the test endpoints have it: log-normal by its mean, not its median.
fn wanted(service: Service) -> Wanted {
    match service {
        Service::Constant(time) => Wanted::Constant(time),
        Service::Exponential(mean) => Wanted::Exponential(mean),
        Service::LogNormal(median, sigma) => {
            Wanted::LogNormal(median.mul_f64((sigma * sigma / 2.0).exp()), sigma)
        }
        Service::Pareto(least, alpha) => Wanted::Pareto(least, alpha),
    }
}

/// What an endpoint has counted, as its statistics name it.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
pub(super) struct Told {
    pub(super) hits: u64,
    pub(super) served: u64,
    #[serde(rename = "service_seconds")]
    pub(super) service_s: f64,
    #[serde(rename = "late_seconds")]
    pub(super) late_s: f64,
}

#[derive(Deserialize)]
struct Statistics {
    endpoints: [Told; 1],
}

/// One endpoint, alive or not.
#[derive(Debug)]
pub(super) struct Running {
    pub(super) address: SocketAddr,
    process: Option<Process>,
    /// What it counted in earlier lives.
    before: Told,
    binary: PathBuf,
    arguments: Vec<String>,
    core: usize,
    log: PathBuf,
}

impl Running {
    /// Gives it a process, unless it has one.
    pub(super) fn start(&mut self) -> io::Result<()> {
        if self.process.is_none() {
            let mut command = Command::new(&self.binary);
            command.args(&self.arguments);
            self.process = Some(Process::start(command, self.address, self.core, &self.log)?);
        }
        Ok(())
    }

    /// Kills its process; its connections break, and new ones are refused.
    pub(super) fn kill(&mut self) -> io::Result<()> {
        self.before = self.told()?;
        self.process = None;
        Ok(())
    }

    /// Stops it where it is: the kernel still takes connections and requests for it. Or lets it go on.
    pub(super) fn freeze(&self, is_to: bool) -> io::Result<()> {
        let Some(process) = &self.process else { return Ok(()) };
        if is_to { process::pause(process.pid()) } else { process::go_on(process.pid()) }
    }

    /// Puts it into a condition, if it lives.
    pub(super) fn set(&self, condition: Condition) -> io::Result<()> {
        if self.process.is_some() {
            self.ask(&format!("PUT /__condition?{}", condition.query()))?;
        }
        Ok(())
    }

    fn told(&self) -> io::Result<Told> {
        let before = self.before;
        if self.process.is_none() {
            return Ok(before);
        }
        let body = self.ask("GET /__stats")?;
        let Statistics { endpoints: [now] } = serde_json::from_str(&body)?;
        Ok(Told {
            hits: before.hits + now.hits,
            served: before.served + now.served,
            service_s: before.service_s + now.service_s,
            late_s: before.late_s + now.late_s,
        })
    }

    /// The body of its answer; it closes the connection behind it.
    fn ask(&self, what: &str) -> io::Result<String> {
        let mut stream = TcpStream::connect(self.address)?;
        stream.set_read_timeout(Some(TELLS_WITHIN))?;
        stream.write_all(format!("{what} HTTP/1.1\r\nHost: e\r\n\r\n").as_bytes())?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        match answer.split_once("\r\n\r\n") {
            Some((head, body)) if head.starts_with("HTTP/1.1 200 ") => Ok(body.to_owned()),
            _ => Err(io::Error::other(format!("a test endpoint answers {what}: {answer}"))),
        }
    }
}
