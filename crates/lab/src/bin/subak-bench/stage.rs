//! What every measurement stands on: two CPUs, endpoints, a place for files.

use std::fs;
use std::io;
use std::net::IpAddr;
use std::path::Path;

use subak_lab::endpoint::{EndpointSpec, Endpoints};
use subak_lab::machine;
use subak_lab::secret::Certificate;

use crate::balancer::Setting;
use crate::{during, failure};

/// How many endpoints are balanced over.
const ENDPOINTS: usize = 3;
/// Descriptors for both sides of 10,000 WebSockets, with room. The balancers inherit the limit.
const DESCRIPTORS: u64 = 24_000;

/// A prepared machine. The thread that set it is the load generator.
pub(crate) struct Stage {
    pub(crate) setting: Setting,
    /// The CPU that endpoints and clients share.
    pub(crate) load_cpu: usize,
    /// How many descriptors a process may have open.
    pub(crate) descriptors: u64,
    /// Addresses for clients to connect from.
    pub(crate) sources: Vec<IpAddr>,
    _endpoints: Endpoints,
}

impl Stage {
    /// Pins the calling thread to the second allowed CPU, starts the endpoints beside
    /// it and leaves the first to balancers. Files go below `output`.
    pub(crate) fn set(subak: &Path, output: &Path) -> io::Result<Stage> {
        let cpus = machine::allowed_cpus()?;
        let &[balancer_cpu, load_cpu, ..] = &cpus[..] else {
            return Err(failure("two CPUs are needed: one for the balancer, one for the load"));
        };
        let descriptors = machine::raise_descriptor_limit(DESCRIPTORS)?;
        if descriptors < DESCRIPTORS {
            eprintln!("only {descriptors} descriptors are allowed: fewer than 10,000 WebSockets");
        }
        fs::create_dir_all(output).map_err(during(output.display()))?;
        // nginx and HAProxy resolve relative paths each in its own way.
        let directory = fs::canonicalize(output)?.join("run");
        fs::create_dir_all(&directory).map_err(during(directory.display()))?;

        machine::pin_to(load_cpu)?;
        let any = "127.0.0.1:0".parse().map_err(io::Error::other)?;
        let spec = |index| EndpointSpec::new(format!("e{index}"), any);
        let endpoints = Endpoints::start_on((0..ENDPOINTS).map(spec).collect(), Some(load_cpu))?;
        Ok(Stage {
            setting: Setting {
                subak: subak.to_owned(),
                directory,
                endpoints: endpoints.addresses().to_vec(),
                cpu: balancer_cpu,
                certificate: Certificate::new()?,
                access_logs: false,
            },
            load_cpu,
            descriptors,
            sources: (2..=9).map(|last| IpAddr::from([127, 0, 0, last])).collect(),
            _endpoints: endpoints,
        })
    }
}
