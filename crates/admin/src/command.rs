//! What the Admin API asks of the control side, and what it is told.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use subak_access_log::Totals as AccessLogTotals;
use subak_balance::weigher::Weighed;
use subak_base::Tick;
use subak_explain::{BadQuestion, Explanation, Picks, Question, Search};
use subak_pool::{EndpointStatus, Pool, PoolStatus};
use subak_telemetry::{ListenerTotals, PoolTotals, Problem};
use tokio::sync::oneshot;

use crate::change::Change;
use crate::limits::LimitView;
use crate::wish::{ConfigTold, Done, Happened, NotDone, Past, Wish};

/// Something to be done by the control side, between its ticks and reloads.
#[derive(Debug)]
pub enum Command {
    /// Tell everything.
    Look {
        /// Of the pools, of this one alone.
        pool: Option<String>,
        /// Where to.
        reply: oneshot::Sender<Overview>,
    },
    /// Tell where a request would go.
    Explain {
        /// Which request.
        question: Question,
        /// Where to.
        reply: oneshot::Sender<Result<Explanation, BadQuestion>>,
    },
    /// Tell where requests went.
    Picks {
        /// Which requests.
        search: Search,
        /// Where to.
        reply: oneshot::Sender<Result<PickLogs, NotChanged>>,
    },
    /// Tell of one endpoint, after changing it where that is asked for.
    Endpoint {
        /// The pool's name.
        pool: String,
        /// The endpoint's name or identity.
        endpoint: String,
        /// What to set first.
        change: Option<Change>,
        /// Who asks.
        by: Arc<str>,
        /// Where to.
        reply: oneshot::Sender<Result<EndpointTold, NotChanged>>,
    },
    /// Change the configuration in force.
    Wish {
        /// How.
        wish: Wish,
        /// Who asks.
        by: Arc<str>,
        /// Where to.
        reply: oneshot::Sender<Result<Done, NotDone>>,
    },
    /// Tell what the configuration in force is.
    Config {
        /// Where to.
        reply: oneshot::Sender<ConfigTold>,
    },
    /// Tell what it was before.
    History {
        /// Where to; the newest first.
        reply: oneshot::Sender<Vec<Past>>,
    },
    /// Tell what has happened.
    Events {
        /// Since the event of this number.
        after: u64,
        /// Where to, with the number of the last.
        reply: oneshot::Sender<(u64, Vec<Happened>)>,
    },
}

/// Records of picks, taken from the logs at one moment.
#[derive(Clone, Debug)]
pub struct PickLogs {
    /// What is wanted of them.
    pub search: Search,
    /// The pools.
    pub pools: Vec<Arc<Pool>>,
    /// The moment.
    pub now: Tick,
}

impl PickLogs {
    /// What was found. Goes through the logs: not on the control side's thread.
    pub fn told(&self) -> Picks {
        Picks::find(self.pools.iter().map(|pool| &**pool), &self.search, self.now)
    }
}

/// An endpoint at one moment.
#[derive(Clone, Debug)]
pub struct EndpointTold {
    /// The moment.
    pub now: Tick,
    /// The endpoint.
    pub status: EndpointStatus,
    /// What else is known of it.
    pub note: Note,
    /// What the pool's weigher makes of it, where it has one.
    pub weighed: Option<Weighed>,
}

/// What the control side knows of an endpoint and its pool does not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Note {
    /// Whether it was added by API.
    pub is_added: bool,
    /// When its drain becomes maintenance.
    pub deadline: Option<Tick>,
    /// Since when nothing is left on it, while it drains.
    pub empty_since: Option<Tick>,
}

/// Why there was nothing to tell or to change, and nothing was changed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NotChanged {
    /// No pool has this name.
    NoPool {
        /// The names there are.
        known: Vec<String>,
    },
    /// The pool has no such endpoint.
    NoEndpoint {
        /// The names there are.
        known: Vec<String>,
    },
}

/// Everything that is shown, at one moment.
#[derive(Clone, Debug)]
pub struct Overview {
    /// The moment.
    pub now: Tick,
    /// Of the program.
    pub version: &'static str,
    /// Counts configurations put in force.
    pub generation: u64,
    /// Reloads that were put in force.
    pub reloads: u64,
    /// Reloads that changed nothing, because they could not be put in force.
    pub reloads_refused: u64,
    /// Threads that serve.
    pub workers: usize,
    /// Client connections.
    pub connections: usize,
    /// Whether it is on its way to stop.
    pub stopping: bool,
    /// What became of the lines of access logs.
    pub access_logs: Vec<AccessLogTotals>,
    /// Client connections that there may be.
    pub most_connections: usize,
    /// Lines of the process's log that were dropped.
    pub log_lines_dropped: u64,
    /// What is wrong now.
    pub problems: Vec<Problem>,
    /// Where what is in force comes from.
    pub config: ConfigView,
    /// Names among the endpoints, sorted.
    pub names: Vec<subak_names::Told>,
    /// Limits of the listeners and their routes.
    pub limits: Vec<LimitView>,
    /// Certificates that are wanted by ACME.
    pub acme: Vec<AcmeView>,
    /// In configured order.
    pub listeners: Vec<ListenerView>,
    /// In configured order.
    pub pools: Vec<PoolView>,
}

impl Overview {
    /// How many endpoints are shown.
    pub(crate) fn endpoints(&self) -> usize {
        self.pools.iter().map(|pool| pool.status.endpoints.len()).sum()
    }
}

/// The configuration in force, in short.
#[derive(Clone, Debug)]
pub struct ConfigView {
    /// The file that was named at start.
    pub path: PathBuf,
    /// Every file that was read, that one first.
    pub files: Vec<PathBuf>,
    /// When they were read.
    pub loaded_at: SystemTime,
    /// How much the API has changed since.
    pub changes: usize,
    /// Whether what is in force is not what the files say.
    pub differs_from_file: bool,
}

/// A listener at one moment.
#[derive(Clone, Debug)]
pub struct ListenerView {
    /// As configured.
    pub name: String,
    /// Where it listens.
    pub addresses: Vec<String>,
    /// Whether it speaks TLS.
    pub tls: bool,
    /// What it proves its names by.
    pub certificates: Vec<CertificateView>,
    /// What it speaks, as ALPN names it, the preferred first.
    pub protocols: Vec<&'static str>,
    /// In the order in which they are asked; last, what takes the rest.
    pub routes: Vec<RouteView>,
    /// Client connections.
    pub connections: usize,
    /// What it has counted.
    pub totals: ListenerTotals,
}

/// A certificate that is served.
#[derive(Clone, Debug)]
pub struct CertificateView {
    /// The file it was read from, or where else it comes from.
    pub source: String,
    /// The names it is good for.
    pub names: Vec<String>,
    /// Who has signed it.
    pub issuer: String,
    /// Its number, hexadecimal.
    pub serial: String,
    /// SHA-256, hexadecimal.
    pub fingerprint: String,
    /// What it signs with.
    pub key: &'static str,
    /// When it expires.
    pub expires_at: SystemTime,
    /// Whether an OCSP response is stapled.
    pub is_stapled: bool,
}

/// A route at one moment.
#[derive(Clone, Debug)]
pub struct RouteView {
    /// What it asks of a request.
    pub matches: String,
    /// What it does with it.
    pub action: String,
    /// Its place among the routes of the file, from 1; none: what the listener says itself.
    pub index: Option<usize>,
    /// Requests that it has taken.
    pub hits: u64,
}

/// A certificate that is wanted by ACME, at one moment.
#[derive(Clone, Debug)]
pub struct AcmeView {
    /// What it stands for.
    pub names: Vec<String>,
    /// `placeholder`, `issued` or `expired`.
    pub state: &'static str,
    /// Who has issued it.
    pub issuer: Option<String>,
    /// When the one in force begins and ends.
    pub life: Option<(SystemTime, SystemTime)>,
    /// When it is ordered next; none: as soon as it can be.
    pub next_order: Option<SystemTime>,
    /// Whether the authority has suggested that moment.
    pub by_authority: bool,
    /// Orders in a row that came to nothing, of all processes.
    pub failures: u32,
    /// Why the last one did.
    pub problem: Option<String>,
    /// Whether another process orders, so that this one waits.
    pub waits: bool,
    /// Key and chain.
    pub file: PathBuf,
    /// Certificates that this process has received.
    pub issued: u64,
    /// Its orders that came to nothing.
    pub failed: u64,
}

/// A pool at one moment.
#[derive(Clone, Debug)]
pub struct PoolView {
    /// The pool and its endpoints.
    pub status: PoolStatus,
    /// One for each of its endpoints.
    pub notes: Vec<Note>,
    /// What it has counted.
    pub totals: PoolTotals,
    /// What its weigher makes of each endpoint, where it has one.
    pub weighed: Option<Vec<Weighed>>,
    /// How unevenly its endpoints are used, where that is known.
    pub imbalance_ppm: Option<u64>,
}
