//! A balancer that runs as a process, by a configuration made for it.

use std::fs;
use std::net::TcpStream;
use std::process::Command;
use std::time::{Duration, Instant};

use super::configuration::{Kind, Plan};
use super::{Process, World};
use crate::cell::Need;

/// How long a balancer or server may take to listen.
const LISTENS_WITHIN: Duration = Duration::from_secs(15);

/// A running balancer; dropping it ends it.
#[derive(Debug)]
pub struct Balancer {
    process: Process,
}

impl Balancer {
    /// Starts it and waits until it listens.
    ///
    /// # Errors
    /// It has no such algorithm, is not there, or does not come up: what it said.
    pub fn start(world: &World, plan: &Plan) -> Result<Balancer, String> {
        let name = plan.kind.name();
        let text = plan
            .text(&world.directory)
            .ok_or_else(|| format!("{name} has no {}", plan.algorithm))?;
        let file = world.path("balancer.conf");
        write(&file, &text)?;
        let mut command = match plan.kind {
            Kind::Subak => {
                let mut command = Command::new(world.subak());
                command.args(["serve", "--log", "warn", "--config"]).arg(&file);
                command
            }
            Kind::Nginx => {
                let mut command = Command::new(world.tool(Need::Nginx)?);
                command.args(["-e", "stderr", "-c"]).arg(&file);
                command
            }
            Kind::Haproxy => {
                let both = format!("{}{}", world.certificate.chain, world.certificate.key);
                write(&world.path("both.pem"), &both)?;
                let mut command = Command::new(world.tool(Need::Haproxy)?);
                command.args(["-db", "-q", "-f"]).arg(&file);
                command
            }
        };
        let mut process = Process::start(world, &mut command, plan.kind.key())?;
        listening(plan.listen, &mut process)?;
        Ok(Balancer { process })
    }

    /// Its process.
    pub fn id(&self) -> u32 {
        self.process.id()
    }
}

pub(super) fn write(file: &std::path::Path, text: &str) -> Result<(), String> {
    fs::write(file, text).map_err(|error| format!("{}: {error}", file.display()))
}

/// Waits until the process listens there.
pub(super) fn listening(
    address: std::net::SocketAddr,
    process: &mut Process,
) -> Result<(), String> {
    let deadline = Instant::now() + LISTENS_WITHIN;
    while TcpStream::connect_timeout(&address, Duration::from_secs(1)).is_err() {
        if process.ended()?.is_some() || Instant::now() > deadline {
            return Err(format!("nobody listens on {address}: {}", process.said().trim()));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}
