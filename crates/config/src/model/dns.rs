//! Names in the place of addresses: what stands for endpoints that DNS knows, and who is asked.

use std::fmt;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use subak_base::Weight;
use subak_health::Admin;

/// A name that endpoints are resolved from: in lower case, without a dot at its end.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Origin {
    /// Every address of a host, at one port.
    Host {
        /// Its name.
        host: Arc<str>,
        /// Never 0.
        port: u16,
    },
    /// What the SRV records of this name list.
    Service(Arc<str>),
}

impl Origin {
    /// The name that is asked.
    pub fn name(&self) -> &str {
        match self {
            Origin::Host { host, .. } => host,
            Origin::Service(name) => name,
        }
    }
}

/// As configurations write it.
impl fmt::Display for Origin {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Host { host, port } => write!(out, "{host}:{port}"),
            Origin::Service(name) => write!(out, "srv:{name}"),
        }
    }
}

/// Endpoints of a pool that are given by a name.
#[derive(Clone, PartialEq, Debug)]
pub struct ByName {
    /// The name; each once in a pool.
    pub origin: Origin,
    /// How many endpoints with addresses stand before it.
    pub place: usize,
    /// The share of each address; of a service's where its records say none.
    pub weight: Weight,
    /// As of an endpoint.
    pub max_in_flight: Option<NonZeroU32>,
    /// As of an endpoint.
    pub max_connections: Option<NonZeroU32>,
    /// Whether all of them are backups, whatever a service's records say.
    pub backup: bool,
    /// What the file wants of each.
    pub state: Admin,
}

/// `dns`: how names are resolved.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Dns {
    /// Who is asked; none: whom /etc/resolv.conf names.
    pub servers: Vec<SocketAddr>,
    /// Which addresses are asked for.
    pub families: Families,
    /// For one answer, with everything that it leads to.
    pub timeout: Duration,
    /// The least from one question to the next.
    pub min_ttl: Duration,
    /// The most from one question to the next.
    pub max_ttl: Duration,
    /// The most from one failure to the next question; at least `min_ttl`.
    pub negative_ttl: Duration,
}

/// Which addresses of a name are asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Families {
    /// IPv4 and IPv6.
    Both,
    /// A records alone.
    Ipv4,
    /// AAAA records alone.
    Ipv6,
}
