//! The servers behind a balancer, each a process of its own, so that each one's CPU time is known:
//! nginx where the paper had it or sends a page, else this project's own test endpoint.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use subak_lab::cgroup::CpuGroup;
use subak_lab::process;

use super::balancer::{listening, write};
use super::configuration::{nginx_paths, nginx_user};
use super::{Process, Sampler, World};
use crate::cell::Need;

/// A test endpoint tells its counters within this.
const TELLS_WITHIN: Duration = Duration::from_secs(2);

/// What a server does with a request.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Service {
    /// nginx sends a file of so many bytes, as fast as it can.
    Page(usize),
    /// The same by a machine that has so much of a core.
    PageWithin(usize, f64),
    /// `subak lab endpoint`: an application that takes time. Time passes by timer, so that it is kept
    /// however busy this machine is.
    Application {
        /// Bytes.
        body: usize,
        /// As `--service` has it.
        time: &'static str,
        /// Requests in service at once; others wait in line.
        at_once: u32,
        /// Requests in line; more are answered with 503.
        queue: u32,
    },
    /// `subak lab endpoint` that answers at once, with so many bytes.
    Instant(usize),
}

impl Service {
    /// What must be there for it.
    pub fn needs(self) -> &'static [Need] {
        match self {
            Service::Page(_) => &[Need::Nginx],
            Service::PageWithin(..) => &[Need::Nginx, Need::CpuLimit],
            Service::Application { .. } | Service::Instant(_) => &[],
        }
    }

    fn bytes(self) -> usize {
        match self {
            Service::Page(bytes)
            | Service::PageWithin(bytes, _)
            | Service::Instant(bytes)
            | Service::Application { body: bytes, .. } => bytes,
        }
    }

    fn is_nginx(self) -> bool {
        matches!(self, Service::Page(_) | Service::PageWithin(..))
    }
}

/// One running server; dropping it ends it.
#[derive(Debug)]
pub struct Server {
    /// Where it listens.
    pub address: SocketAddr,
    process: Process,
    /// nginx: a byte for each request, then the end of the line.
    log: Option<PathBuf>,
    /// Hits until it was killed.
    last: Option<u64>,
    /// Behind its process, so that it is empty when it is removed.
    _group: Option<CpuGroup>,
}

impl Server {
    fn start(
        world: &World,
        index: usize,
        address: SocketAddr,
        service: Service,
    ) -> Result<Server, String> {
        let (mut command, log) = match service.is_nginx() {
            true => nginx(world, index, address, service)?,
            false => (endpoint(world, address, service), None),
        };
        let mut process = Process::start(world, &mut command, "server")?;
        listening(address, &mut process)?;
        let group = match service {
            Service::PageWithin(_, cores) => Some(within(cores, process.id())?),
            _ => None,
        };
        Ok(Server { address, process, log, last: None, _group: group })
    }

    /// Requests it has answered.
    pub fn hits(&self) -> u64 {
        let Some(log) = &self.log else {
            return self.last.or_else(|| told(self.address, "hits")).unwrap_or(0);
        };
        let log = fs::read(log).unwrap_or_default();
        log.iter().filter(|byte| **byte == b'\n').count() as u64
    }

    /// Ends it at once, as a machine that loses power does.
    pub fn kill(&mut self) {
        self.last = Some(self.hits());
        self.process.kill();
    }
}

/// Moves a process and all that it has started to a group with so much of a core.
fn within(cores: f64, root: u32) -> Result<CpuGroup, String> {
    let failed = |error: std::io::Error| error.to_string();
    let group = CpuGroup::new(cores).map_err(failed)?;
    for one in process::tree(root).map_err(failed)? {
        group.take(one).map_err(failed)?;
    }
    Ok(group)
}

fn endpoint(world: &World, address: SocketAddr, service: Service) -> Command {
    let mut command = Command::new(world.subak());
    command.args(["lab", "endpoint", &address.to_string()]);
    command.args(["--body", &service.bytes().to_string()]);
    if let Service::Application { time, at_once, queue, .. } = service {
        command.args(["--service", time, "--concurrency", &at_once.to_string()]);
        command.args(["--queue", &queue.to_string()]);
    }
    command
}

/// A counter of a test endpoint; none when it does not answer.
fn told(address: SocketAddr, counter: &str) -> Option<u64> {
    let mut stream = TcpStream::connect_timeout(&address, TELLS_WITHIN).ok()?;
    stream.set_read_timeout(Some(TELLS_WITHIN)).ok()?;
    write!(stream, "GET /__stats HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (_, body) = answer.split_once("\r\n\r\n")?;
    let json: serde_json::Value = serde_json::from_str(body).ok()?;
    json["endpoints"][0][counter].as_u64()
}

fn nginx(
    world: &World,
    index: usize,
    address: SocketAddr,
    service: Service,
) -> Result<(Command, Option<PathBuf>), String> {
    let home = world.path(&format!("server-{index}"));
    let failed = |error| format!("{}: {error}", home.display());
    let _ = fs::remove_dir_all(&home);
    fs::create_dir_all(&home).map_err(failed)?;
    write(&home.join("index.html"), &"x".repeat(service.bytes()))?;
    let file = home.join("nginx.conf");
    write(&file, &nginx_text(&home, address))?;
    let mut command = Command::new(world.tool(Need::Nginx)?);
    command.args(["-e", "stderr", "-c"]).arg(&file);
    Ok((command, Some(home.join("requests"))))
}

fn nginx_text(home: &Path, address: SocketAddr) -> String {
    let home = home.display();
    format!(
        "{}daemon off;\n\
         worker_processes 1;\n\
         pid {home}/nginx.pid;\n\
         error_log stderr error;\n\
         events {{ worker_connections 16000; }}\n\
         http {{\n    log_format hit '.';\n    access_log {home}/requests hit;\n{}    \
         server {{\n        listen {address} backlog=4096;\n        root {home};\n    }}\n}}\n",
        nginx_user(),
        nginx_paths(&home),
    )
}

/// All servers of a cell.
#[derive(Debug)]
pub struct Servers {
    all: Vec<Server>,
}

impl Servers {
    /// Starts one at each address.
    ///
    /// # Errors
    /// One is not there or does not come up.
    pub fn start(world: &World, wanted: &[(SocketAddr, Service)]) -> Result<Servers, String> {
        let start = |(index, (address, service)): (usize, &(SocketAddr, Service))| {
            Server::start(world, index, *address, *service)
        };
        Ok(Servers { all: wanted.iter().enumerate().map(start).collect::<Result<_, _>>()? })
    }

    /// Requests each has answered.
    pub fn hits(&self) -> Vec<u64> {
        self.all.iter().map(Server::hits).collect()
    }

    /// Begins to watch how busy each is.
    pub fn sampler(&self) -> Sampler {
        Sampler::start(self.all.iter().map(|server| server.process.id()).collect())
    }

    /// The server of this index.
    pub fn get_mut(&mut self, index: usize) -> Option<&mut Server> {
        self.all.get_mut(index)
    }
}
