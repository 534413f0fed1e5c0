//! The control side: from a configuration file to a published snapshot, again and again.

mod told;

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use subak_base::{Address, Rng};
use subak_config::Config;
use subak_http::{Service, ServiceError};
use subak_net::{
    Allowance, BindError, Descriptors, Fleet, FleetOptions, ListenSocket, ListenerId, Sockets,
    WorkerId, now, suitable_workers,
};
use subak_pool::{EndpointIds, Pool};
use subak_service::Account;
use subak_telemetry::{ProblemKind, Problems, Registry};

use crate::application::{Snapshot, Subak};
use crate::checks::{Checks, log};
use crate::settle::{self, NotSettled, Settled};
use crate::weighing::Weighing;

/// Why a configuration was not put in force. Then nothing at all has changed.
#[derive(Debug)]
pub(crate) enum NotInForce {
    /// The file cannot be read.
    Unreadable(String),
    /// It has errors, which stand in the text.
    Wrong(String),
    /// A certificate cannot be used.
    Service(ServiceError),
    /// An address cannot be bound.
    Bind(BindError),
    /// It cannot run as it is to: as this user, with this pid file.
    Settle(NotSettled),
    /// Workers cannot be started.
    Workers(std::io::Error),
}

impl fmt::Display for NotInForce {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotInForce::Unreadable(message) => out.write_str(message),
            NotInForce::Wrong(rendered) => out.write_str(rendered.trim_end()),
            NotInForce::Service(error) => error.fmt(out),
            NotInForce::Bind(error) => error.fmt(out),
            NotInForce::Settle(error) => error.fmt(out),
            NotInForce::Workers(error) => write!(
                out,
                "cannot start workers: {error}\n  fewer of them (workers = 1) need fewer threads and \
                 descriptors; see `ulimit -u` and `ulimit -n`"
            ),
        }
    }
}

/// A running fleet, and what it was made from.
pub(crate) struct Control {
    path: PathBuf,
    fleet: Fleet<Subak>,
    descriptors: Arc<Descriptors>,
    descriptor_limit: usize,
    workers: usize,
    ids: EndpointIds,
    telemetry: Registry,
    listening: HashMap<Address, ListenerId>,
    next_listener: u32,
    snapshot: Arc<Snapshot>,
    config: Config,
    checks: Checks,
    weighing: Weighing,
    random: Rng,
    problems: Problems,
    /// Reloads that were put in force, and those that changed nothing.
    reloads: u64,
    reloads_refused: u64,
    stopping: bool,
    settled: Settled,
}

/// What a configuration makes of what is there.
struct Plan {
    snapshot: Snapshot,
    listening: HashMap<Address, ListenerId>,
    opened: Vec<(ListenerId, Vec<ListenSocket>)>,
    closed: Vec<ListenerId>,
    next_listener: u32,
}

impl Control {
    /// Reads a configuration and serves by it.
    ///
    /// # Errors
    /// [`NotInForce`]; then nothing runs.
    pub(crate) fn start(path: &Path, descriptor_limit: usize) -> Result<Control, NotInForce> {
        Control::with(load(path)?, path, descriptor_limit)
    }

    /// Serves by a configuration that has been read; reloads read `path`.
    ///
    /// # Errors
    /// [`NotInForce`]; then nothing runs.
    pub(crate) fn with(
        config: Config,
        path: &Path,
        descriptor_limit: usize,
    ) -> Result<Control, NotInForce> {
        let workers = config.workers.map_or_else(suitable_workers, std::num::NonZeroUsize::get);
        let allowance = allowance(&config, descriptor_limit, workers);
        let descriptors = Arc::new(Descriptors::new(&allowance));
        let options = FleetOptions { workers, descriptors: descriptors.clone(), seed: seed() };
        let nothing = Snapshot { generation: 0, services: HashMap::new(), pools: HashMap::new() };
        let mut ids = EndpointIds::new();
        let mut telemetry = Registry::new(workers);
        let plan =
            plan(&config, &nothing, (&HashMap::new(), 0), workers, &mut ids, &mut telemetry)?;
        // After everything that takes root's rights, before any thread that could keep them.
        let settled = Settled::by(&config, path).map_err(NotInForce::Settle)?;
        let snapshot = Arc::new(plan.snapshot);
        let fleet = Fleet::start(&options, &snapshot).map_err(NotInForce::Workers)?;
        fleet.publish(&snapshot, plan.opened, &plan.closed);
        let mut control = Control {
            path: path.to_owned(),
            fleet,
            descriptors,
            descriptor_limit,
            workers,
            ids,
            telemetry,
            listening: plan.listening,
            next_listener: plan.next_listener,
            snapshot,
            checks: Checks::new(descriptor_limit, &config),
            config,
            weighing: Weighing::new(descriptor_limit),
            random: Rng::new(seed()),
            problems: Problems::default(),
            reloads: 0,
            reloads_refused: 0,
            stopping: false,
            settled,
        };
        control.tick_pools();
        Ok(control)
    }

    /// Reads the configuration again and puts it in force as a whole.
    ///
    /// # Errors
    /// [`NotInForce`]; then everything is as it was.
    pub(crate) fn reload(&mut self) -> Result<(), NotInForce> {
        let reloaded = self.put_in_force();
        let what = self.path.display().to_string();
        match &reloaded {
            Ok(()) => {
                self.reloads += 1;
                self.problems.end(ProblemKind::Config, &what);
            }
            Err(reason) => {
                self.reloads_refused += 1;
                let detail = format!(
                    "the last reload changed nothing; put the file right (subak check) and reload: {reason}"
                );
                self.problems.begin(ProblemKind::Config, &what, detail);
            }
        }
        reloaded
    }

    fn put_in_force(&mut self) -> Result<(), NotInForce> {
        let config = load(&self.path)?;
        let plan = plan(
            &config,
            &self.snapshot,
            (&self.listening, self.next_listener),
            self.workers,
            &mut self.ids,
            &mut self.telemetry,
        );
        // Before workers hear of it: what ends between now and then finds its endpoint retired.
        let pools = plan.as_ref().map_or(&self.snapshot.pools, |plan| &plan.snapshot.pools);
        self.ids.keep(pools.values().map(|pool| &**pool));
        let config_now = plan.as_ref().map_or(&self.config, |_| &config);
        self.telemetry.keep(
            |name| config_now.listener(name).is_some(),
            |name| config_now.pool(name).is_some(),
        );
        let plan = plan?;
        for pool in &self.config.pools {
            if config.pool(&pool.name).is_none() {
                self.problems.end(ProblemKind::Pool, &pool.name);
            }
        }
        if config.workers != self.config.workers {
            tracing::warn!("workers = … takes effect at the next start");
        }
        settle::warn_of_what_waits(&self.config, &config);
        self.descriptors.configure(&allowance(&config, self.descriptor_limit, self.workers));
        let snapshot = Arc::new(plan.snapshot);
        self.fleet.publish(&snapshot, plan.opened, &plan.closed);
        for (address, id) in &self.listening {
            if plan.closed.contains(id) {
                remove_socket_file(address);
            }
        }
        self.listening = plan.listening;
        self.next_listener = plan.next_listener;
        self.snapshot = snapshot;
        self.checks.configure(&config);
        self.weighing.keep(|name| config.pool(name).is_some());
        self.config = config;
        self.tick_pools();
        Ok(())
    }

    /// What is wrong now, for whoever finds something.
    pub(crate) fn problems(&self) -> &Problems {
        &self.problems
    }

    /// Lets pools look at the clock and at what was counted, logs what has happened to them, asks
    /// endpoints what is due, and weighs them. Called about ten times a second, and whenever other pools come in force.
    pub(crate) fn tick_pools(&mut self) {
        let now = now();
        for pool in self.snapshot.pools.values() {
            for event in pool.tick(now, self.random.next_u64()) {
                log(pool.name(), &event);
            }
            self.checks.ask(pool, now, &mut self.random);
            let weigher = self.config.pool(pool.name()).and_then(|pool| pool.weigher.as_ref());
            self.weighing.attend(pool, weigher, now);
            note_who_is_well(pool, &self.problems);
        }
    }

    /// The configuration in force.
    pub(crate) fn config(&self) -> &Config {
        &self.config
    }

    /// Counts configurations put in force.
    pub(crate) fn generation(&self) -> u64 {
        self.snapshot.generation
    }

    /// How many workers serve.
    pub(crate) fn workers(&self) -> usize {
        self.fleet.workers()
    }

    /// The pool of this name.
    pub(crate) fn pool(&self, name: &str) -> Option<&Pool> {
        self.snapshot.pools.get(name).map(|pool| &**pool)
    }

    /// Whether a drain has ended: nobody new can arrive, and all clients have been served.
    pub(crate) fn has_drained(&self) -> bool {
        !self.fleet.is_accepting() && self.fleet.connections() == 0
    }

    /// Who this process runs as, where the configuration says it.
    pub(crate) fn account(&self) -> Option<&Account> {
        self.settled.account()
    }

    /// Asks the workers whether they turn.
    pub(crate) fn ask_alive(&self) {
        self.fleet.ask_alive();
    }

    /// Workers that have not answered that.
    pub(crate) fn silent_workers(&self) -> impl Iterator<Item = WorkerId> {
        self.fleet.silent()
    }

    /// Client connections now.
    pub(crate) fn connections(&self) -> usize {
        self.fleet.connections()
    }

    /// Stops accepting; what is under way finishes. Socket files go at once: a successor may put its
    /// own there before this process ends.
    pub(crate) fn drain(&mut self) {
        self.stopping = true;
        self.listening.keys().for_each(remove_socket_file);
        self.fleet.drain();
    }

    /// Ends everything now.
    pub(crate) fn end(self) {
        self.fleet.end();
    }
}

/// A pool that nobody may serve is a problem.
fn note_who_is_well(pool: &Pool, problems: &Problems) {
    if pool.has_somebody_well() {
        problems.end(ProblemKind::Pool, pool.name());
    } else {
        let detail = "no endpoint is ready for requests; the pool's status says of each why";
        problems.begin(ProblemKind::Pool, pool.name(), detail.into());
    }
}

/// Reads, parses and reports. Warnings are logged, errors returned, both with their places.
fn load(path: &Path) -> Result<Config, NotInForce> {
    let text = crate::files::read(path).map_err(NotInForce::Unreadable)?;
    parse(&text, path)
}

/// Parses and reports a text that stands, or would stand, at `path`.
///
/// # Errors
/// [`NotInForce::Wrong`] with everything that is wrong with it.
pub(crate) fn parse(text: &str, path: &Path) -> Result<Config, NotInForce> {
    let outcome = subak_config::parse(text, path);
    let rendered = subak_config::render(&outcome.diagnostics, text, path, false);
    match outcome.config {
        Some(config) => {
            if !outcome.diagnostics.is_empty() {
                tracing::warn!("{}", rendered.trim_end());
            }
            Ok(config)
        }
        None => Err(NotInForce::Wrong(rendered)),
    }
}

/// Works out the next snapshot and binds what it needs. Nothing of what runs is touched.
fn plan(
    config: &Config,
    before: &Snapshot,
    (listening_before, mut next_listener): (&HashMap<Address, ListenerId>, u32),
    workers: usize,
    ids: &mut EndpointIds,
    telemetry: &mut Registry,
) -> Result<Plan, NotInForce> {
    let pools = Service::pools(config, ids, &before.pools, now());
    let mut services = HashMap::new();
    let mut listening = HashMap::new();
    let mut opened = Vec::new();
    let mut own: Vec<_> = listening_before.keys().cloned().collect();
    for listener in &config.listeners {
        let previous = before.services.values().find(|service| service.name() == &*listener.name);
        let previous = previous.map(|service| &**service);
        let service = Service::build(listener, config, &pools, previous, telemetry);
        let service = Arc::new(service.map_err(NotInForce::Service)?);
        for address in &listener.bind {
            let id = match listening_before.get(address) {
                Some(id) => *id,
                None => {
                    let id = ListenerId(next_listener);
                    next_listener += 1;
                    let bound = Sockets { workers, own: &own }.bind(address);
                    opened.push((id, bound.map_err(NotInForce::Bind)?));
                    own.push(address.clone());
                    id
                }
            };
            listening.insert(address.clone(), id);
            services.insert(id, service.clone());
        }
    }
    let gone = listening_before.iter().filter(|(address, _)| !listening.contains_key(*address));
    let closed = gone.map(|(_, id)| *id).collect();
    let snapshot = Snapshot { generation: before.generation + 1, services, pools };
    Ok(Plan { snapshot, listening, opened, closed, next_listener })
}

fn allowance(config: &Config, limit: usize, workers: usize) -> Allowance {
    Allowance {
        limit,
        workers,
        addresses: config.listeners.iter().map(|listener| listener.bind.len()).sum(),
        configured: config.max_connections.map(std::num::NonZeroUsize::get),
    }
}

fn remove_socket_file(address: &Address) {
    if let Address::Unix(path) = address {
        let _ = std::fs::remove_file(path);
    }
}

/// A seed from the operating system, by way of the standard library's keyed hasher.
fn seed() -> u64 {
    use std::hash::{BuildHasher, Hasher};
    std::collections::hash_map::RandomState::new().build_hasher().finish()
}
