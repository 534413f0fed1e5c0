//! Asks endpoints what is due: probes and agents, on the control side's runtime.
//!
//! Pools say who is to be asked and when, `subak-probe` does the asking; this brings the two together
//! and the answers back. An answer that comes after a reload is given to the pool that asked, which
//! shares what it knows of its endpoints with its successor.

mod hearsay;

use std::collections::HashMap;
use std::num::NonZeroU16;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use subak_base::{Address, EndpointId, Rng, Tick};
use subak_config::{self as config, Config, EndpointProtocol};
use subak_health::Run;
use subak_http::PoolTls;
use subak_message::proxy_header::Version;
use subak_net::now;
use subak_pool::{Due, Endpoint, Event, Pool, Question};
use subak_probe::{AgentLine, Check, GrpcCheck, HttpCheck, Miss, Prober, Spoken, Way, with_port};

use crate::events::Events;
use hearsay::{Hearsay, News};

/// Of all descriptors, probes may have one in so many at a time, and at most so many.
const SHARE_OF_DESCRIPTORS: usize = 8;
const MOST_SOCKETS: usize = 4096;

/// What is asked, and the sockets for it.
#[derive(Debug)]
pub(crate) struct Checks {
    prober: Prober,
    pools: HashMap<String, PoolChecks>,
    latest: Latest,
    events: Events,
}

/// What endpoints of one pool are asked.
#[derive(Clone, Debug, Default)]
struct PoolChecks {
    check: Option<Arc<Check>>,
    /// How endpoints are asked that were resolved from a name.
    named: HashMap<Address, Arc<Check>>,
    /// Another port than the endpoint's own.
    port: Option<u16>,
    /// By TLS; none: in clear.
    tls: Option<Arc<PoolTls>>,
    /// Which header of the PROXY protocol comes first.
    proxy: Option<Version>,
    http: Spoken,
    agent_port: Option<u16>,
}

impl Checks {
    /// For a process that may have so many descriptors.
    pub(crate) fn new(descriptor_limit: usize, config: &Config, events: Events) -> Checks {
        let most = (descriptor_limit / SHARE_OF_DESCRIPTORS).min(MOST_SOCKETS);
        let prober = Prober::new(most);
        let mut checks =
            Checks { prober, pools: HashMap::new(), latest: Latest::default(), events };
        checks.configure(config);
        checks
    }

    /// Takes a changed configuration over. What is odd about agents is said once more.
    pub(crate) fn configure(&mut self, config: &Config) {
        self.latest = Latest::default();
        let before = std::mem::take(&mut self.pools);
        let of = |pool: &config::Pool| {
            let before = before.get(&*pool.name).and_then(|checks| checks.tls.as_deref());
            (pool.name.to_string(), PoolChecks::of(pool, before))
        };
        self.pools = config.pools.iter().map(of).collect();
    }

    /// Starts what is due in this pool. On a runtime.
    pub(crate) fn ask(&self, pool: &Arc<Pool>, now: Tick, random: &mut Rng) {
        let Some(checks) = self.pools.get(pool.name()) else { return };
        for due in pool.due(now) {
            self.start(checks, pool.clone(), due, random.next_u64());
        }
    }

    fn start(&self, checks: &PoolChecks, pool: Arc<Pool>, due: Due, random: u64) {
        let Due { index, question, run } = due;
        let Some(endpoint) = pool.endpoints().nth(index).cloned() else { return };
        let check = checks.named.get(endpoint.address()).or(checks.check.as_ref());
        match (question, check, checks.agent_port) {
            (Question::Probe, Some(check), _) => {
                let address = at(endpoint.address(), checks.port);
                let Some(way) = checks.way(endpoint.address()) else { return };
                let events = self.events.clone();
                self.prober.probe(address, (check.clone(), way), limit(run), move |result| {
                    let event = pool.probed(index, run, result, now(), random);
                    event.iter().for_each(|event| events.of_pool(pool.name(), event));
                });
            }
            (Question::Agent, _, Some(port)) => {
                let address = with_port(endpoint.address(), port);
                let (latest, events) = (self.latest.clone(), self.events.clone());
                self.prober.ask_agent(address, limit(run), move |line| {
                    latest.hear(&endpoint, pool.name(), &line);
                    let reply = line.as_ref().ok().map(|line| &line.reply);
                    let event = pool.agent_answered(index, run, reply, now(), random);
                    let told = event.filter(|event| latest.is_to_be_told(&endpoint, event));
                    told.iter().for_each(|event| events.of_pool(pool.name(), event));
                });
            }
            // A pool asks nothing that its configuration does not say.
            _ => {}
        }
    }
}

/// What has been said of each agent's answers, so that it is not said all the time.
#[derive(Clone, Debug, Default)]
struct Latest(Arc<Mutex<HashMap<EndpointId, Hearsay>>>);

impl Latest {
    fn hear(&self, endpoint: &Endpoint, pool: &str, line: &Result<AgentLine, Miss>) {
        let warnings = line.as_ref().map(|line| line.warnings.as_slice());
        let news = self.of(endpoint, |hearsay| hearsay.hear(warnings, now()));
        let endpoint = endpoint.name();
        for news in news {
            match news {
                News::Silent(miss) => {
                    tracing::warn!(pool, endpoint, "its agent does not answer: {miss}");
                }
                News::AnswersAgain => tracing::info!(pool, endpoint, "its agent answers again"),
                News::Odd(what) => tracing::warn!(pool, endpoint, "its agent said: {what}"),
            }
        }
    }

    /// Every change of a state is; another reason for the same state is not all the time.
    fn is_to_be_told(&self, endpoint: &Endpoint, event: &Event) -> bool {
        match event {
            Event::Reason { reason, .. } => {
                self.of(endpoint, |hearsay| hearsay.argues(&reason.to_string(), now()))
            }
            Event::Endpoint { .. } | Event::Selection { .. } => true,
        }
    }

    fn of<T>(&self, endpoint: &Endpoint, ask: impl FnOnce(&mut Hearsay) -> T) -> T {
        let mut latest = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        ask(latest.entry(endpoint.id()).or_default())
    }
}

impl PoolChecks {
    fn of(pool: &config::Pool, before: Option<&PoolTls>) -> PoolChecks {
        let health = pool.health.as_ref();
        let mut check = health.and_then(|health| check(&pool.name, &health.check)).map(Arc::new);
        let tls = health.and_then(|health| {
            let wanted = health.tls.as_ref()?;
            let protocols: &[&'static [u8]] = match health.check {
                config::Check::Tcp => &[],
                config::Check::Http(_) => match spoken(pool) {
                    Spoken::Http1 => &[b"http/1.1"],
                    Spoken::Http2 => &[b"h2"],
                    Spoken::Agreed => &[b"h2", b"http/1.1"],
                },
                config::Check::Grpc(_) => &[b"h2"],
            };
            Some(PoolTls::build(wanted, protocols, &pool.endpoints, before).map(Arc::new))
        });
        let tls = tls.transpose().unwrap_or_else(|error| {
            tracing::error!(pool = %pool.name, "no health check: {error}");
            check = None;
            None
        });
        PoolChecks {
            named: check.as_deref().map_or_else(HashMap::new, |check| named(check, pool)),
            check,
            port: health.and_then(|health| health.port).map(NonZeroU16::get),
            tls,
            proxy: health.and_then(|health| health.proxy_protocol),
            http: spoken(pool),
            agent_port: pool.agent_check.as_ref().map(|agent| agent.port.get()),
        }
    }
}

impl PoolChecks {
    /// How the endpoint at this address is reached; none: there is no name for its certificate.
    fn way(&self, endpoint: &Address) -> Option<Way> {
        let tls = match &self.tls {
            None => None,
            Some(tls) => Some(tls.target(endpoint)?.clone()),
        };
        Some(Way { proxy: self.proxy, tls, http: self.http })
    }
}

/// What endpoints with names are asked, by their addresses.
fn named(check: &Check, pool: &config::Pool) -> HashMap<Address, Arc<Check>> {
    let named = |endpoint: &config::Endpoint| {
        let name = endpoint.host.as_deref()?;
        let check = match check {
            Check::Tcp => return None,
            Check::Http(http) => Check::Http(http.named(name)),
            Check::Grpc(grpc) => Check::Grpc(grpc.named(name)),
        };
        Some((endpoint.address.clone(), Arc::new(check)))
    };
    pool.endpoints.iter().filter_map(named).collect()
}

fn check(pool: &str, check: &config::Check) -> Option<Check> {
    // The configuration takes nothing that is refused here; should it, nobody is asked.
    match check {
        config::Check::Tcp => Some(Check::Tcp),
        config::Check::Http(http) => {
            let host = http.host.as_ref().map(config::HeaderValue::as_str);
            let check = HttpCheck::new(http.method, &http.target, host, http.expect.clone());
            let refused = |error: &_| tracing::error!(pool, "no health check: {error}");
            check.inspect_err(refused).ok().map(Check::Http)
        }
        config::Check::Grpc(grpc) => {
            let host = grpc.host.as_ref().map(config::HeaderValue::as_str);
            let check = GrpcCheck::new(&grpc.service, host);
            if check.is_none() {
                tracing::error!(pool, "no health check: the service's name is too long");
            }
            check.map(Check::Grpc)
        }
    }
}

/// Which HTTP this pool's probes speak: that of its requests. What listens at another port is there for
/// the probes, and is asked in the way that everybody understands.
fn spoken(pool: &config::Pool) -> Spoken {
    let is_elsewhere = pool.health.as_ref().is_some_and(|health| health.port.is_some());
    match pool.protocol {
        _ if is_elsewhere => Spoken::Http1,
        EndpointProtocol::Http1 => Spoken::Http1,
        EndpointProtocol::Http2 => Spoken::Http2,
        EndpointProtocol::Auto => Spoken::Agreed,
    }
}

/// How long the answer to a question may take.
fn limit(run: Run) -> Duration {
    run.deadline().since(run.started())
}

/// Where a probe goes.
fn at(address: &Address, port: Option<u16>) -> Address {
    port.map_or_else(|| address.clone(), |port| with_port(address, port))
}
