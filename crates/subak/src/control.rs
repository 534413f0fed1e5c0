//! The control side: from what is desired to a published snapshot, again and again.
//!
//! [`Desired`] says what is to be in force. A reload and a change by API each make another
//! value of it; all of them end in [`Control::put_in_force`], on one thread, one after the other.

mod acme;
mod change;
mod desired;
mod difference;
mod drains;
mod explain;
mod history;
mod limits;
mod loaded;
mod plan;
mod refused;
mod save;
mod shortages;
mod socket_files;
mod told;
mod wishes;

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use subak_access_log::Sinks;
use subak_acme::Acme;
use subak_base::{Address, Rng, Tick};
use subak_config::{Config, Layer, Made, Masked, Set};
use subak_health::Fault;
use subak_limits::CircuitState;
use subak_net::{Descriptors, Fleet, FleetOptions, ListenerId, WorkerId, now, suitable_workers};
use subak_pool::{EndpointIds, Pool};
use subak_service::Account;
use subak_telemetry::{ProblemKind, Problems, Registry};

use crate::application::{Snapshot, Subak};
use crate::certificates::Certificates;
use crate::checks::Checks;
use crate::events::Events;
use crate::names::Names;
use crate::settle::{self, Settled};
use crate::weighing::Weighing;
use desired::Desired;
use difference::Difference;
use drains::Drains;
use history::{Cause, History};
pub(crate) use loaded::Loaded;
use plan::{allowance, bound_memory, plan};
pub(crate) use refused::{Findings, NotInForce};
use shortages::Shortages;
use socket_files::SocketFiles;

/// How long pools are not looked at while a reload waits for names.
const NAMES_TURN: Duration = Duration::from_millis(100);
/// How long the last lines of access logs may take at the end.
const LAST_LINES: Duration = Duration::from_secs(2);

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
    socket_files: SocketFiles,
    snapshot: Arc<Snapshot>,
    desired: Desired,
    /// The files as they were last read, which after a rollback are not what is in force.
    on_disk: Arc<Loaded>,
    history: History,
    events: Events,
    drains: Drains,
    /// What is in force by what is desired.
    config: Config,
    names: Names,
    acme: Acme,
    checks: Checks,
    weighing: Weighing,
    certificates: Certificates,
    random: Rng,
    problems: Problems,
    access_logs: Sinks,
    shortages: Shortages,
    /// Reloads that were put in force, and those that changed nothing.
    reloads: u64,
    reloads_refused: u64,
    stopping: bool,
    settled: Settled,
}

impl Control {
    /// Reads a configuration and serves by it.
    ///
    /// # Errors
    /// [`NotInForce`]; then nothing runs.
    pub(crate) async fn start(path: &Path, descriptor_limit: usize) -> Result<Control, NotInForce> {
        Control::with(Loaded::load(path)?, path, descriptor_limit).await
    }

    /// Serves by a configuration that has been read; reloads read `path`. Waits for names once, so that
    /// pools begin with endpoints.
    ///
    /// # Errors
    /// [`NotInForce`]; then nothing runs.
    pub(crate) async fn with(
        loaded: Loaded,
        path: &Path,
        descriptor_limit: usize,
    ) -> Result<Control, NotInForce> {
        let events = Events::default();
        let mut names = Names::new(&loaded.config, seed(), events.clone());
        names.first().await;
        let mut desired = Desired::of_files(loaded, names.answers());
        let config = desired.settle();
        let workers = config.workers.map_or_else(suitable_workers, std::num::NonZeroUsize::get);
        let allowance = allowance(&config, (descriptor_limit, true), workers);
        bound_memory(&config, workers);
        let descriptors = Arc::new(Descriptors::new(&allowance));
        let options = FleetOptions { workers, descriptors: descriptors.clone(), seed: seed() };
        let nothing = Snapshot::default();
        let mut ids = EndpointIds::new();
        let mut telemetry = Registry::new(workers);
        let problems = Problems::default();
        let mut access_logs = Sinks::new(problems.clone());
        let counted = (&mut telemetry, &mut access_logs);
        let plan = plan(&config, &nothing, (&HashMap::new(), 0), workers, &mut ids, counted)?;
        // After everything that takes root's rights, before any thread that could keep them.
        let settled = Settled::by(&config, path).map_err(NotInForce::Settle)?;
        access_logs.start();
        let mut acme = Acme::new(problems.clone());
        acme.configure(&config);
        acme::install(&acme, &config, &plan.snapshot);
        let snapshot = Arc::new(plan.snapshot);
        let fleet = Fleet::start(&options, &snapshot).map_err(NotInForce::Workers)?;
        fleet.publish(&snapshot, plan.opened, &plan.closed);
        let mut socket_files = SocketFiles::default();
        socket_files.note(plan.listening.keys());
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
            socket_files,
            snapshot,
            checks: Checks::new(descriptor_limit, &config, events.clone()),
            on_disk: desired.loaded.clone(),
            names,
            acme,
            desired,
            history: History::default(),
            events,
            drains: Drains::default(),
            config,
            weighing: Weighing::new(descriptor_limit),
            certificates: Certificates::default(),
            random: Rng::new(seed()),
            problems,
            access_logs,
            shortages: Shortages::default(),
            reloads: 0,
            reloads_refused: 0,
            stopping: false,
            settled,
        };
        control.names.note(control.desired.oddities());
        let cause = Cause { name: "start", by: "start".into(), summary: "read at start".into() };
        control.history.add(control.generation(), cause, &control.desired, Layer::default());
        control.tick_pools();
        Ok(control)
    }

    /// Asks for names that are new in the files and waits for their first answers, as long as one may
    /// take: a reload then gives their pools endpoints at once. Errors of the files are the reload's.
    pub(crate) async fn expect_names(&mut self) {
        let Ok(loaded) = Loaded::load(&self.path) else { return };
        if !self.names.expect(&loaded.config) {
            return;
        }
        let deadline = tokio::time::Instant::now() + self.names.patience();
        while !self.names.wait(NAMES_TURN).await && tokio::time::Instant::now() < deadline {
            self.tick_pools();
        }
    }

    /// Reads the configuration again and puts it in force as a whole. `by`: who wants that. Answers with
    /// edits of the files that have no effect, because the API has set something else.
    ///
    /// # Errors
    /// [`NotInForce`]; then everything is as it was.
    pub(crate) fn reload(&mut self, by: &Arc<str>) -> Result<Vec<Masked>, NotInForce> {
        let reloaded = self.read_again(by);
        let what = self.path.display().to_string();
        match &reloaded {
            Ok(masked) => {
                for masked in masked {
                    tracing::warn!("the file was edited without effect: {masked}");
                    self.events.keep("warn", None, None, masked.to_string());
                }
                self.reloads += 1;
                self.acme.hurry();
                self.problems.end(ProblemKind::Config, &what);
            }
            Err(reason) => {
                self.reloads_refused += 1;
                self.names.forget_others(&self.config);
                let detail = format!(
                    "the last reload changed nothing; put the file right (subak check) and reload: {}",
                    reason.brief()
                );
                self.problems.begin(ProblemKind::Config, &what, detail);
                let who = self.account().map(|account| format!(" (running as {account})"));
                let who = who.unwrap_or_default();
                tracing::error!("not reloaded{who}, nothing has changed: {reason}");
                let text = format!("not reloaded, as {by} wanted: the configuration is refused");
                self.events.keep("warn", None, None, text);
            }
        }
        reloaded
    }

    fn read_again(&mut self, by: &Arc<str>) -> Result<Vec<Masked>, NotInForce> {
        let loaded = Arc::new(Loaded::load(&self.path)?);
        let before = self.desired.clone();
        let config_before = self.config.clone();
        let below_before = before.below();
        let names = Arc::new(self.names.answers());
        self.put_in_force(Desired { loaded: loaded.clone(), names, ..before.clone() })?;
        self.names.are_in_force();
        self.on_disk = loaded;
        let masked = self.desired.layer.masked(&below_before, &self.desired.below());
        let is_same = self.config == config_before
            && self.desired.loaded.files == before.loaded.files
            && self.desired.layer == before.layer;
        let generation = self.generation();
        if is_same {
            self.history.still(generation);
            return Ok(masked);
        }
        let difference = Difference::between(&config_before, &self.config);
        let text = format!("configuration reloaded by {by}: generation {generation}; {difference}");
        let level = match difference.takes_away {
            true => {
                tracing::warn!("the files were read again: {difference}");
                "warn"
            }
            false => {
                tracing::info!("the files were read again: {difference}");
                "info"
            }
        };
        self.events.keep(level, None, None, text);
        let cause =
            Cause { name: "reload", by: by.clone(), summary: difference.to_string().into() };
        self.history.add(generation, cause, &self.desired, Layer::default());
        Ok(masked)
    }

    /// Puts something else in force, as a whole or not at all: what the files say now, what the API
    /// has changed, what names stand for.
    ///
    /// # Errors
    /// [`NotInForce`]; then everything is as it was.
    fn put_in_force(&mut self, mut desired: Desired) -> Result<(), NotInForce> {
        let config = desired.settle();
        let plan = plan(
            &config,
            &self.snapshot,
            (&self.listening, self.next_listener),
            self.workers,
            &mut self.ids,
            (&mut self.telemetry, &mut self.access_logs),
        );
        // Before workers hear of it: what ends between now and then finds its endpoint retired.
        let pools = plan.as_ref().map_or(&self.snapshot.pools, |plan| &plan.snapshot.pools);
        self.ids.keep(pools.values().map(|pool| &**pool));
        let config_now = plan.as_ref().map_or(&self.config, |_| &config);
        self.telemetry.keep(
            |name| config_now.listener(name).is_some(),
            |name| config_now.pool(name).is_some(),
        );
        let logs = config_now.listeners.iter().flat_map(|listener| &listener.access_logs);
        let logs: BTreeSet<_> = logs.map(|log| log.destination.clone()).collect();
        self.access_logs.keep(|destination| logs.contains(destination));
        let plan = plan?;
        self.access_logs.start();
        for pool in &self.config.pools {
            if config.pool(&pool.name).is_none() {
                self.problems.end(ProblemKind::Pool, &pool.name);
                let scope = format!("{} ", pool.name);
                self.problems.replace(ProblemKind::Endpoint, &scope, Vec::new());
                self.problems.end(ProblemKind::Circuit, &pool.name);
                self.problems.end(ProblemKind::Certificate, &format!("pool {}", pool.name));
            }
        }
        if config.workers != self.config.workers {
            tracing::warn!("workers = … takes effect at the next start");
        }
        settle::warn_of_what_waits(&self.config, &config);
        self.descriptors.configure(&allowance(
            &config,
            (self.descriptor_limit, false),
            self.workers,
        ));
        bound_memory(&config, self.workers);
        self.acme.configure(&config);
        acme::install(&self.acme, &config, &plan.snapshot);
        let snapshot = Arc::new(plan.snapshot);
        self.fleet.publish(&snapshot, plan.opened, &plan.closed);
        for (address, id) in &self.listening {
            if plan.closed.contains(id) {
                self.socket_files.remove(address);
            }
        }
        self.socket_files.note(plan.listening.keys());
        self.listening = plan.listening;
        self.next_listener = plan.next_listener;
        self.snapshot = snapshot;
        self.checks.configure(&config);
        self.names.configure(&config);
        self.names.note(desired.oddities());
        self.weighing.keep(|name| config.pool(name).is_some());
        self.config = config;
        self.drains.keep(&self.snapshot.pools);
        let before = std::mem::replace(&mut self.desired, desired);
        self.certificates.look_soon();
        self.tick_pools();
        self.tell_pools(&before.layer);
        Ok(())
    }

    /// Takes what names have been answered, asks whoever is due, and puts what has changed in force.
    /// Called as often as pools are ticked.
    pub(crate) fn attend_names(&mut self) {
        if !self.names.attend(&self.problems) {
            return;
        }
        let names = Arc::new(self.names.answers());
        let desired = Desired { names, ..self.desired.clone() };
        match self.put_in_force(desired) {
            Ok(()) => self.history.still(self.generation()),
            Err(reason) => {
                let text = format!("what names stand for now is not in force: {reason}");
                tracing::error!("{text}");
                self.events.keep("warn", None, None, text);
            }
        }
    }

    /// Looks at the files of certificates, where that is due. Called as often as pools are ticked.
    pub(crate) fn attend_certificates(&mut self) {
        let services: HashMap<_, _> =
            self.snapshot.services.values().map(|one| (one.name(), one)).collect();
        let listeners = self.config.listeners.iter().filter_map(|listener| {
            let tls = services.get(&*listener.name)?.tls()?;
            Some((&listener.name, listener.tls.as_ref()?, tls))
        });
        self.certificates.attend(listeners, (&self.problems, &self.events));
    }

    /// What is wrong now, for whoever finds something.
    pub(crate) fn problems(&self) -> &Problems {
        &self.problems
    }

    /// Has pools know what is set on their endpoints, where that is something else than `before`.
    fn tell_pools(&mut self, before: &Layer) {
        let now = now();
        let layer = self.desired.layer.clone();
        let names: BTreeSet<_> = layer.pools.keys().chain(before.pools.keys()).collect();
        for name in names {
            let Some(pool) = self.snapshot.pools.get(&**name) else { continue };
            let of =
                |layer: &Layer| layer.pool(name).map(|pool| pool.set.clone()).unwrap_or_default();
            let (old, new) = (of(before), of(&layer));
            let addresses: BTreeSet<_> = old.keys().chain(new.keys()).collect();
            for address in addresses {
                let nothing = Set::default();
                let (old, new) =
                    (old.get(address).unwrap_or(&nothing), new.get(address).unwrap_or(&nothing));
                let endpoint = address.to_string();
                if value(&old.weight) != value(&new.weight) {
                    // Who has left the pool has nothing to be told.
                    _ = pool.set_weight(&endpoint, value(&new.weight), now);
                }
                let state = |set: &Set| value(&set.state).map(|wanted| wanted.state);
                if state(old) != state(new) {
                    let random = self.random.next_u64();
                    let event = pool.set_admin(&endpoint, state(new), now, random);
                    event
                        .ok()
                        .flatten()
                        .iter()
                        .for_each(|event| self.events.of_pool(pool.name(), event));
                }
            }
        }
    }

    /// Lets pools look at the clock and at what was counted, logs what has happened to them, asks
    /// endpoints what is due, and weighs them. Called about ten times a second, and whenever other pools come in force.
    pub(crate) fn tick_pools(&mut self) {
        let now = now();
        for pool in self.snapshot.pools.values() {
            for event in pool.tick(now, self.random.next_u64()) {
                self.events.of_pool(pool.name(), &event);
            }
            self.checks.ask(pool, now, &mut self.random);
            let weigher = self.config.pool(pool.name()).and_then(|pool| pool.weigher.as_ref());
            self.weighing.attend(pool, weigher, now);
            note_who_is_well(pool, &self.problems);
            note_back_offs(pool, &self.problems);
            note_circuit(pool, now, &self.problems);
            note_who_is_verified(&self.config, pool, &self.problems);
            self.drains.attend(pool, now, &self.events);
        }
        self.access_logs.look();
        let Control { shortages, config, descriptors, telemetry, problems, .. } = self;
        shortages.look(config, descriptors, telemetry, problems);
        self.end_drains(now);
        self.events.follow(&self.problems);
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

    /// Opens the files of access logs again: somebody has moved them away.
    pub(crate) fn reopen_access_logs(&self) {
        self.access_logs.reopen();
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

    /// Stops accepting; what is under way finishes. The pid file and socket files go at once, and before
    /// the ports do: a successor that can bind those finds the way free.
    pub(crate) fn drain(&mut self) {
        self.stopping = true;
        self.settled.give_way();
        self.listening.keys().for_each(|address| self.socket_files.remove(address));
        self.fleet.drain();
    }

    /// Ends everything now.
    pub(crate) fn end(self) {
        self.fleet.end();
        // With it the last who could log go, and the logs can be written to their ends.
        drop(self.snapshot);
        self.access_logs.close(LAST_LINES);
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

/// An endpoint in back-off is a problem until it has answered again.
fn note_back_offs(pool: &Pool, problems: &Problems) {
    let scope = format!("{} ", pool.name());
    let problem = |(name, fault): (&str, Fault)| {
        let detail = format!("{fault}; it takes one request at a time until it answers one");
        (format!("{scope}{name}"), detail)
    };
    problems.replace(ProblemKind::Endpoint, &scope, pool.back_offs().map(problem).collect());
}

/// A circuit that is not closed is a problem.
fn note_circuit(pool: &Pool, now: Tick, problems: &Problems) {
    match pool.circuit().map(|circuit| circuit.totals(now)) {
        Some(totals) if totals.state != CircuitState::Closed => {
            let detail = format!(
                "too many requests failed: the circuit is {}, and requests are answered 503 at once \
                 but for trials; see why its endpoints fail",
                totals.state.name()
            );
            problems.begin(ProblemKind::Circuit, pool.name(), detail);
        }
        _ => problems.end(ProblemKind::Circuit, pool.name()),
    }
}

/// A pool whose endpoints can be anybody is a problem as long as it is so.
fn note_who_is_verified(config: &Config, pool: &Pool, problems: &Problems) {
    let configured = config.pool(pool.name());
    let what = format!("pool {}", pool.name());
    match configured.and_then(|pool| pool.tls.as_ref()) {
        Some(tls) if !tls.verify => {
            let detail = "its endpoints' certificates are not verified (tls.verify = false): whoever \
                          is on the way can read and change everything; name who is trusted by tls.ca";
            problems.begin(ProblemKind::Certificate, &what, detail.into());
        }
        _ => problems.end(ProblemKind::Certificate, &what),
    }
}

fn value<T: Copy>(made: &Option<Made<T>>) -> Option<T> {
    made.as_ref().map(|made| made.value)
}

/// A seed from the operating system, by way of the standard library's keyed hasher.
fn seed() -> u64 {
    use std::hash::{BuildHasher, Hasher};
    std::collections::hash_map::RandomState::new().build_hasher().finish()
}
