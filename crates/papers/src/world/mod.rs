//! Where cells are measured: a network of this run's own with the papers' addresses, and real
//! processes in it that end with the run.

mod balancer;
mod configuration;
mod network;
mod process;
mod sampler;
mod server;
mod stage;
mod tools;

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use subak_lab::cgroup::CpuGroup;
use subak_lab::secret::Certificate;

use crate::cell::Need;

pub use balancer::Balancer;
pub use configuration::{Kind, Member, Plan};
pub use network::Network;
pub use process::Process;
pub use sampler::{CpuShares, Sampler};
pub use server::{Server, Servers, Service};
pub use stage::{Running, Stage};
pub use tools::find;

/// The surroundings of a run.
#[derive(Debug)]
pub struct World {
    directory: PathBuf,
    subak: PathBuf,
    tools: BTreeMap<Need, PathBuf>,
    has_network: bool,
    has_cpu_limit: bool,
    certificate: Certificate,
}

impl World {
    /// With a directory for configurations and logs, which is emptied, and this program's own file.
    /// `has_network` says that the process is in a network of its own, set up by [`Network`].
    ///
    /// # Errors
    /// The directory cannot be made, or no certificate.
    pub fn new(directory: &Path, subak: PathBuf, has_network: bool) -> io::Result<World> {
        let _ = fs::remove_dir_all(directory);
        fs::create_dir_all(directory)?;
        let needs = [Need::Nginx, Need::Haproxy, Need::Ab, Need::H2load, Need::K6, Need::Openssl];
        let tools =
            needs.into_iter().filter_map(|need| Some((need, find(need.command()?)?))).collect();
        let certificate = Certificate::new()?;
        let world = World {
            directory: directory.canonicalize()?,
            subak,
            tools,
            has_network,
            has_cpu_limit: CpuGroup::new(0.5).is_ok(),
            certificate,
        };
        fs::write(world.path("chain.pem"), &world.certificate.chain)?;
        fs::write(world.path("key.pem"), &world.certificate.key)?;
        Ok(world)
    }

    /// What is missing of these.
    pub fn missing(&self, needs: &[Need]) -> Option<Need> {
        let has = |need: &Need| match need {
            Need::Network => self.has_network,
            Need::CpuLimit => self.has_cpu_limit,
            tool => self.tools.contains_key(tool),
        };
        needs.iter().find(|need| !has(need)).copied()
    }

    /// A file of this run.
    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// This program.
    pub fn subak(&self) -> &Path {
        &self.subak
    }

    /// The program of somebody else.
    ///
    /// # Errors
    /// It is not there: what would help.
    pub fn tool(&self, need: Need) -> Result<&Path, String> {
        self.tools.get(&need).map(PathBuf::as_path).ok_or_else(|| need.remedy().to_owned())
    }
}
