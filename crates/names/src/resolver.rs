//! Asks DNS servers: UDP first, TCP where an answer was cut short.
//!
//! Search domains and /etc/hosts have no say, nothing is cached: what a name in the configuration means
//! does not depend on the machine, and when it is asked again is decided elsewhere. One question may
//! take `timeout` with everything it leads to; it never blocks the thread that asks.

use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use hickory_resolver::TokioResolver;
use hickory_resolver::config::{
    ConnectionConfig, NameServerConfig, ResolveHosts, ResolverConfig, ResolverOpts,
};
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::net::{DnsError, NetError};
use hickory_resolver::proto::op::ResponseCode;
use hickory_resolver::proto::rr::{self, RData, RecordType};
use subak_config::names::Found;
use subak_config::{Families, Origin};
use tokio::task::JoinSet;

use crate::MAX_TARGETS;
use crate::records::{self, Data, Record, Target};
use crate::watch::Reply;

/// Times that a server is asked before it counts as silent; each has its part of the time limit.
const ATTEMPTS: u32 = 2;
/// Targets of one service that are looked up at a time.
const MAX_LOOKUPS: usize = 16;
/// Refused addresses that a message names.
const MAX_NAMED: usize = 3;

/// The servers, and how they are asked. A clone asks by the same sockets.
#[derive(Clone)]
pub struct Resolver {
    resolver: TokioResolver,
    families: Families,
    timeout: Duration,
}

/// Why a question has no answer.
enum Failure {
    /// There is such a name, but nothing of the kind asked for; or there is none.
    Nothing(String),
    /// It is not known.
    Unknown(String),
}

impl Failure {
    fn into_words(self) -> String {
        match self {
            Failure::Nothing(why) | Failure::Unknown(why) => why,
        }
    }
}

/// The addresses of one name.
struct Addresses {
    ips: Vec<IpAddr>,
    ttl: Duration,
    lacks: Vec<String>,
    odd: Vec<String>,
}

/// The servers that a resolv.conf(5) names.
///
/// # Errors
/// In words.
pub fn resolv_conf(path: &Path) -> Result<Vec<SocketAddr>, String> {
    let shown = path.display();
    let text = std::fs::read(path).map_err(|error| format!("{shown} cannot be read: {error}"))?;
    let (config, _) = hickory_resolver::system_conf::parse_resolv_conf(text)
        .map_err(|error| format!("{shown}: {error}"))?;
    Ok(config.name_servers.iter().map(|server| SocketAddr::new(server.ip, 53)).collect())
}

impl Resolver {
    /// Asks these servers. On a runtime.
    ///
    /// # Errors
    /// In words, when there is no server.
    pub fn new(
        servers: &[SocketAddr],
        families: Families,
        timeout: Duration,
    ) -> Result<Resolver, String> {
        if servers.is_empty() {
            return Err("there is no DNS server".to_owned());
        }
        let server = |server: &SocketAddr| {
            let connections = [ConnectionConfig::udp(), ConnectionConfig::tcp()];
            let at_port = |mut connection: ConnectionConfig| {
                connection.port = server.port();
                connection
            };
            let mut config = NameServerConfig::udp_and_tcp(server.ip());
            config.connections = connections.map(at_port).into();
            config
        };
        let servers = servers.iter().map(server).collect();
        let config = ResolverConfig::from_parts(None, Vec::new(), servers);
        let mut builder =
            TokioResolver::builder_with_config(config, TokioRuntimeProvider::default());
        *builder.options_mut() = options(timeout);
        let resolver = builder.build().map_err(|error| error.to_string())?;
        Ok(Resolver { resolver, families, timeout })
    }

    /// Asks for everything that stands for a name. On a runtime.
    ///
    /// # Errors
    /// In words.
    pub async fn ask(&self, origin: &Origin) -> Result<Reply, String> {
        let answer = async {
            match origin {
                Origin::Host { host, port } => self.host(host, *port).await,
                Origin::Service(name) => self.service(name).await,
            }
        };
        let too_late = |_| format!("no DNS server answers within {:?}", self.timeout);
        tokio::time::timeout(self.timeout, answer).await.map_err(too_late)?
    }

    async fn host(&self, host: &str, port: u16) -> Result<Reply, String> {
        let Addresses { ips, ttl, lacks, odd } =
            self.addresses(host).await.map_err(Failure::into_words)?;
        let found = ips.into_iter().map(|ip| Found {
            backup: false,
            address: SocketAddr::new(ip, port),
            weight: None,
            target: None,
        });
        Ok(Reply { found: found.collect(), ttl, lacks: joined(lacks), odd: joined(odd) })
    }

    async fn service(&self, name: &str) -> Result<Reply, String> {
        let records = self.lookup(name, RecordType::SRV).await.map_err(Failure::into_words)?;
        let answer = records::follow(name, &records)?;
        let target = |record: &&Record| match &record.data {
            Data::Service(target) => Some(target.clone()),
            _ => None,
        };
        let mut targets = records::tiers(answer.records.iter().filter_map(target).collect());
        let Some(mut ttl) = answer.ttl.filter(|_| !targets.is_empty()) else {
            return Err("it has no SRV record that names a host".to_owned());
        };
        let (mut lacks, mut odd) = (Vec::new(), Vec::new());
        if targets.len() > MAX_TARGETS {
            odd.push(format!("of {} hosts the first {MAX_TARGETS} are used", targets.len()));
            targets.truncate(MAX_TARGETS);
        }
        let mut hosts: Vec<_> = targets.iter().map(|(target, _)| target.host.clone()).collect();
        hosts.sort_unstable();
        hosts.dedup();
        let mut found = Vec::new();
        let mut running = JoinSet::new();
        let mut hosts = hosts.into_iter();
        loop {
            while running.len() < MAX_LOOKUPS
                && let Some(host) = hosts.next()
            {
                let this = self.clone();
                running.spawn(async move {
                    let addresses = this.addresses(&host).await;
                    (host, addresses)
                });
            }
            let Some(ended) = running.join_next().await else { break };
            let Ok((host, addresses)) = ended else { continue };
            match addresses {
                Ok(addresses) => {
                    ttl = ttl.min(addresses.ttl);
                    let of_host = targets.iter().filter(|(target, _)| target.host == host);
                    found.extend(of_host.flat_map(|(target, backup)| {
                        addresses.ips.iter().map(|ip| records::endpoint(target, *backup, *ip))
                    }));
                    lacks.extend(addresses.lacks.into_iter().map(|why| format!("{host}: {why}")));
                    odd.extend(addresses.odd.into_iter().map(|why| format!("{host}: {why}")));
                }
                Err(Failure::Unknown(why)) => lacks.push(format!("{host}: {why}")),
                Err(Failure::Nothing(why)) => odd.push(format!("{host}: {why}")),
            }
        }
        lacks.sort_unstable();
        odd.sort_unstable();
        Ok(Reply { found, ttl, lacks: joined(lacks), odd: joined(odd) })
    }

    /// The addresses of a host, of the families wanted.
    async fn addresses(&self, host: &str) -> Result<Addresses, Failure> {
        let (ipv4, ipv6) = match self.families {
            Families::Both => {
                let (ipv4, ipv6) = tokio::join!(
                    self.family(host, RecordType::A),
                    self.family(host, RecordType::AAAA)
                );
                (Some(ipv4), Some(ipv6))
            }
            Families::Ipv4 => (Some(self.family(host, RecordType::A).await), None),
            Families::Ipv6 => (None, Some(self.family(host, RecordType::AAAA).await)),
        };
        let mut addresses =
            Addresses { ips: Vec::new(), ttl: Duration::MAX, lacks: Vec::new(), odd: Vec::new() };
        let mut nothing = None;
        for answer in [ipv4, ipv6].into_iter().flatten() {
            match answer {
                Ok(family) => {
                    addresses.ips.extend(family.ips);
                    addresses.ttl = addresses.ttl.min(family.ttl);
                    addresses.odd.extend(family.odd);
                }
                Err(Failure::Nothing(why)) => nothing = Some(why),
                Err(Failure::Unknown(why)) => addresses.lacks.push(why),
            }
        }
        if addresses.ips.is_empty() {
            return Err(match (addresses.lacks.into_iter().next(), nothing) {
                (Some(why), _) => Failure::Unknown(why),
                (None, why) => Failure::Nothing(why.unwrap_or_else(|| "it has no address".into())),
            });
        }
        addresses.lacks.dedup();
        Ok(addresses)
    }

    async fn family(&self, host: &str, kind: RecordType) -> Result<Addresses, Failure> {
        let records = self.lookup(host, kind).await?;
        let answer = records::follow(host, &records).map_err(Failure::Unknown)?;
        let Some(ttl) = answer.ttl else {
            return Err(Failure::Unknown("the answer is not about this name".to_owned()));
        };
        let mut ips = Vec::new();
        let mut refused = Vec::new();
        for record in answer.records {
            let Data::Address(ip) = record.data else { continue };
            match records::refusal(ip) {
                None => ips.push(ip.to_canonical()),
                Some(why) => refused.push(format!("{ip} is {why}")),
            }
        }
        let odd: Vec<_> = match refused.len() {
            0 => Vec::new(),
            count => {
                refused.truncate(MAX_NAMED);
                let more = if count > MAX_NAMED { ", …" } else { "" };
                vec![format!(
                    "{count} of its addresses cannot be an endpoint's ({}{more})",
                    refused.join(", ")
                )]
            }
        };
        if ips.is_empty() {
            let why = odd.into_iter().next();
            return Err(Failure::Unknown(why.unwrap_or_else(|| "it has no address".to_owned())));
        }
        Ok(Addresses { ips, ttl, lacks: Vec::new(), odd })
    }

    async fn lookup(&self, name: &str, kind: RecordType) -> Result<Vec<Record>, Failure> {
        let refused = |error| Failure::Nothing(format!("this is no name: {error}"));
        // The dot at its end: search domains have no say.
        let asked = rr::Name::from_ascii(format!("{name}.")).map_err(refused)?;
        self.resolver.clear_lookup_cache(asked.clone(), kind);
        let lookup =
            self.resolver.lookup(asked, kind).await.map_err(|error| failure(&error, kind))?;
        Ok(lookup.answers().iter().filter_map(record).collect())
    }
}

fn options(timeout: Duration) -> ResolverOpts {
    let mut options = ResolverOpts::default();
    options.timeout = timeout / ATTEMPTS;
    options.attempts = ATTEMPTS as usize - 1;
    options.cache_size = 0;
    options.use_hosts_file = ResolveHosts::Never;
    options.preserve_intermediates = true;
    options
}

fn record(record: &rr::Record) -> Option<Record> {
    let data = match &record.data {
        RData::A(address) => Data::Address(IpAddr::V4(address.0)),
        RData::AAAA(address) => Data::Address(IpAddr::V6(address.0)),
        RData::CNAME(alias) => Data::Alias(plain(&alias.0)),
        RData::SRV(service) => Data::Service(Target {
            priority: service.priority,
            weight: service.weight,
            port: service.port,
            host: plain(&service.target),
        }),
        _ => return None,
    };
    let ttl = Duration::from_secs(u64::from(record.ttl));
    Some(Record { name: plain(&record.name), ttl, data })
}

/// In lower case, without the dot at its end.
fn plain(name: &rr::Name) -> String {
    let mut text = name.to_ascii();
    text.make_ascii_lowercase();
    text.truncate(text.trim_end_matches('.').len());
    text
}

/// What went wrong, in words that say who has to do something.
fn failure(error: &NetError, kind: RecordType) -> Failure {
    match error {
        NetError::Dns(DnsError::NoRecordsFound(nothing)) => match nothing.response_code {
            ResponseCode::NXDomain => Failure::Nothing("there is no such name (NXDOMAIN)".into()),
            ResponseCode::NoError => Failure::Nothing(format!("it has no {kind} record")),
            code => Failure::Unknown(format!("the DNS server answers: {code}")),
        },
        NetError::Dns(DnsError::ResponseCode(code)) => {
            Failure::Unknown(format!("the DNS server answers: {code}"))
        }
        NetError::Timeout => Failure::Unknown("no DNS server answers in time".into()),
        NetError::NoConnections | NetError::Io(_) => {
            Failure::Unknown(format!("no DNS server can be reached ({error})"))
        }
        other => Failure::Unknown(format!("the answer cannot be used: {other}")),
    }
}

fn joined(lacks: Vec<String>) -> Option<String> {
    let more = lacks.len().saturating_sub(MAX_NAMED);
    let mut words = lacks.into_iter().take(MAX_NAMED).collect::<Vec<_>>().join("; ");
    if more > 0 {
        words += &format!("; and {more} more");
    }
    (!words.is_empty()).then_some(words)
}

impl std::fmt::Debug for Resolver {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Resolver { families, timeout, .. } = self;
        out.debug_struct("Resolver")
            .field("families", families)
            .field("timeout", timeout)
            .finish_non_exhaustive()
    }
}
