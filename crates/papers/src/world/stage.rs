//! Servers and a balancer before them, as a cell wants them.

use std::net::{IpAddr, SocketAddr};
use std::thread;
use std::time::{Duration, Instant};

use super::{Balancer, CpuShares, Kind, Member, Plan, Sampler, Servers, Service, World};
use crate::cell::{Measured, Need};
use crate::statistics::jain;

/// No hit for so long: all are written down.
const QUIET: Duration = Duration::from_millis(200);
/// Servers that still write after this are asked by somebody else.
const LAST_HITS: Duration = Duration::from_secs(5);

/// A balancer, its algorithm, its servers.
#[derive(Clone, Debug)]
pub struct Stage {
    /// Who balances; none: clients ask the first server themselves.
    pub kind: Option<Kind>,
    /// By its name in the catalogue, or `five_tuple_hash`.
    pub algorithm: &'static str,
    /// Where clients ask.
    pub front: SocketAddr,
    /// Where the servers are.
    pub servers: Vec<SocketAddr>,
    /// Their weights.
    pub weights: Vec<u32>,
    /// What they do.
    pub service: Vec<Service>,
    /// The proxy before the balancer whose X-Forwarded-For is believed; none: nobody's.
    pub trusts: Option<IpAddr>,
    /// Whether clients speak TLS.
    pub tls: bool,
    /// Whether connections are balanced, and not requests.
    pub layer_4: bool,
}

/// A stage with its processes; dropping it ends them.
#[derive(Debug)]
pub struct Running {
    /// In the order of the stage.
    pub servers: Servers,
    balancer: Option<Balancer>,
    before: Vec<u64>,
}

impl Stage {
    /// What must be there for it.
    pub fn needs(&self, tool: Option<Need>) -> Vec<Need> {
        let mut needs = vec![Need::Network];
        needs.extend(match self.kind {
            Some(Kind::Haproxy) => Some(Need::Haproxy),
            Some(Kind::Nginx) => Some(Need::Nginx),
            Some(Kind::Subak) | None => None,
        });
        needs.extend(self.service.iter().flat_map(|service| service.needs()));
        needs.extend(tool);
        needs.sort();
        needs.dedup();
        needs
    }

    /// Starts everything.
    ///
    /// # Errors
    /// Something does not come up.
    pub fn start(&self, world: &World) -> Result<Running, String> {
        let wanted: Vec<(SocketAddr, Service)> =
            self.servers.iter().copied().zip(self.service.iter().cloned()).collect();
        let servers = Servers::start(world, &wanted)?;
        let members = self.servers.iter().zip(&self.weights);
        let members =
            members.map(|(address, weight)| Member { address: *address, weight: *weight });
        let balancer = match self.kind {
            None => None,
            Some(kind) => Some(Balancer::start(
                world,
                &Plan {
                    kind,
                    listen: self.front,
                    algorithm: self.algorithm.to_owned(),
                    members: members.collect(),
                    trusts: self.trusts,
                    tls: self.tls,
                    layer_4: self.layer_4,
                },
            )?),
        };
        let before = servers.hits();
        Ok(Running { servers, balancer, before })
    }
}

impl Running {
    /// Hits since the start, by server. A server writes down a request after it has answered: they are
    /// looked at until no more come.
    pub fn hits(&self) -> Vec<u64> {
        let begun = Instant::now();
        let mut hits = self.servers.hits();
        while begun.elapsed() < LAST_HITS {
            thread::sleep(QUIET);
            let before = std::mem::replace(&mut hits, self.servers.hits());
            if before == hits {
                break;
            }
        }
        hits.iter().zip(&self.before).map(|(now, before)| now - before).collect()
    }

    /// Does something, and adds to what it measured: hits, their evenness, CPU of servers and of the
    /// balancer in percent of a core.
    ///
    /// # Errors
    /// As `work`.
    pub fn measure(
        &self,
        work: impl FnOnce() -> Result<Measured, String>,
    ) -> Result<Measured, String> {
        let servers = self.servers.sampler();
        let balancer = self.balancer.as_ref().map(|balancer| Sampler::start(vec![balancer.id()]));
        let done = work();
        let shares = servers.stop();
        let balancer = balancer.map(Sampler::stop).unwrap_or_default();
        let mut measured = done?;
        for (index, CpuShares { mean, max }) in shares.iter().enumerate() {
            let name = |what: &str| format!("cpu_{what}_{}_percent", index + 1);
            measured = measured.number(name("mean"), mean * 100.0).number(name("max"), max * 100.0);
        }
        let most = |of: fn(&CpuShares) -> f64| shares.iter().map(of).fold(0.0, f64::max) * 100.0;
        measured = measured
            .number("cpu_mean_percent", most(|share| share.mean))
            .number("cpu_max_percent", most(|share| share.max));
        if let Some(share) = balancer.first() {
            measured = measured.number("cpu_balancer_percent", share.mean * 100.0);
        }
        let hits = self.hits();
        let fairness = jain(&hits);
        Ok(measured.number("jain", fairness).counts("hits", hits))
    }
}
