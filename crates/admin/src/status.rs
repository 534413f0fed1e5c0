//! `/v1/status`: what is going on, as JSON. Names end in their units; what is not known is null.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use serde::Serialize;
use subak_access_log::Totals as AccessLogTotals;
use subak_balance::weigher::{PerResource, Ppm, Standing, Weighed};
use subak_balance::weights::Factor;
use subak_base::Tick;
use subak_health::{Admin, Source, State, Tier};
use subak_pool::{EndpointStatus, Quantiles, WeightStatus};
use subak_telemetry::{Counts, OUTCOMES, Problem};

use crate::acme;
use crate::command::{Note, Overview, PoolView};
use crate::guards::{self, Circuit, RetryBudget};
use crate::limits;
use crate::moment::rfc3339;

mod listener;
mod shadow;

pub(crate) use shadow::weights as shadow_weights;

use listener::{Listener, listener};

/// Everything.
#[derive(Serialize, Debug)]
pub(crate) struct Status<'a> {
    version: &'a str,
    pid: u32,
    uptime_s: f64,
    stopping: bool,
    generation: u64,
    reloads: u64,
    reloads_refused: u64,
    workers: usize,
    connections: usize,
    problems: Vec<Wrong<'a>>,
    access_logs: Vec<AccessLog<'a>>,
    started_at: String,
    config: Config<'a>,
    names: Vec<Name<'a>>,
    limits: Vec<limits::Brief<'a>>,
    acme: Vec<acme::Brief<'a>>,
    listeners: Vec<Listener<'a>>,
    pools: Vec<Pool<'a>>,
}

/// Something that is wrong now.
#[derive(Serialize, Debug)]
struct Wrong<'a> {
    kind: &'static str,
    what: &'a str,
    detail: &'a str,
    for_s: f64,
}

/// Where what is in force comes from.
#[derive(Serialize, Debug)]
struct Config<'a> {
    path: Cow<'a, str>,
    files: Vec<Cow<'a, str>>,
    generation: u64,
    loaded_at: String,
    changes: usize,
    differs_from_file: bool,
}

/// A name among endpoints.
#[derive(Serialize, Debug)]
struct Name<'a> {
    name: &'a str,
    addresses: &'a [String],
    age_s: Option<f64>,
    ttl_left_s: Option<f64>,
    asks_in_s: Option<f64>,
    failing: Option<&'a str>,
    failing_for_s: Option<f64>,
    asked: u64,
    failed: u64,
}

/// What became of the lines of one access log.
#[derive(Serialize, Debug)]
struct AccessLog<'a> {
    to: &'a str,
    lines_written: u64,
    lines_dropped: u64,
    bytes_written: u64,
}

/// One pool.
#[derive(Serialize, Debug)]
pub(crate) struct Pool<'a> {
    name: &'a str,
    algorithm: &'a str,
    eligible: usize,
    because: String,
    waiting: usize,
    /// Of the endpoints that it has now.
    hits: u64,
    requests: BTreeMap<&'static str, u64>,
    bytes_in: u64,
    bytes_out: u64,
    durations: Durations,
    retries: u64,
    retry_budget: RetryBudget,
    circuit: Option<Circuit>,
    waits: u64,
    imbalance: Option<f64>,
    shadows: Option<shadow::Shadows<'a>>,
    endpoints: Endpoints<'a>,
}

/// The endpoints of a pool, or how many there are.
#[derive(Serialize, Debug)]
#[serde(untagged)]
enum Endpoints<'a> {
    Listed(Vec<Endpoint<'a>>),
    Counted(Counted),
}

#[derive(Serialize, Debug)]
struct Counted {
    total: usize,
    eligible: usize,
    down: usize,
    drain: usize,
    maintenance: usize,
    back_off: usize,
}

/// How much is told of each pool.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Detail {
    /// Its endpoints.
    Whole,
    /// How many it has, in which state.
    Short,
}

/// How long requests took; quantiles are estimates from [`subak_telemetry::Counts`].
#[derive(Serialize, Debug)]
struct Durations {
    count: u64,
    mean_ms: Option<f64>,
    p50_ms: Option<f64>,
    p90_ms: Option<f64>,
    p99_ms: Option<f64>,
    p999_ms: Option<f64>,
}

/// One endpoint.
#[derive(Serialize, Debug)]
pub(crate) struct Endpoint<'a> {
    id: u32,
    name: &'a str,
    identity: &'a str,
    address: &'a str,
    origin: Option<&'a str>,
    tier: &'static str,
    state: String,
    reason: String,
    state_for_s: f64,
    wanted: Wanted,
    eligible: bool,
    back_off_for_s: Option<f64>,
    refusal: Option<&'a str>,
    hits: u64,
    failures: u64,
    in_flight: u32,
    max_in_flight: Option<u32>,
    connections: u32,
    streams: u32,
    latency_ms: Option<f64>,
    latency: Option<Latency>,
    packets_14s: Option<u64>,
    bytes_14s: Option<u64>,
    sessions: Option<usize>,
    weight: Weight,
    probe: Option<Probe>,
    agent_heard_s_ago: Option<f64>,
    resources: Option<Resources>,
    source: &'static str,
    drain: Option<Drain>,
}

/// How long an endpoint's answers took, from the dispatch to their end.
#[derive(Serialize, Debug)]
struct Latency {
    p50_ms: f64,
    p90_ms: f64,
    p99_ms: f64,
}

/// What is left on an endpoint that drains.
#[derive(Serialize, Debug)]
struct Drain {
    for_s: f64,
    /// Until it goes into maintenance, where a deadline was set.
    deadline_in_s: Option<f64>,
    sessions_left: Option<usize>,
    in_flight: u32,
    connections: u32,
    is_empty: bool,
    empty_for_s: Option<f64>,
}

/// What is wanted of an endpoint, whatever its state.
#[derive(Serialize, Debug)]
struct Wanted {
    state: String,
    by: &'static str,
}

#[derive(Serialize, Debug)]
struct Weight {
    configured: u16,
    operator: Option<u16>,
    weigher: f64,
    agent: f64,
    slow_start: f64,
    in_force: u16,
}

#[derive(Serialize, Debug)]
struct Probe {
    result: String,
    s_ago: f64,
}

/// What the weigher knows: C, L, U, the factor and the class.
#[derive(Serialize, Debug)]
struct Resources {
    reports: &'static str,
    factor: f64,
    #[serde(flatten)]
    measured: Option<Measured>,
}

#[derive(Serialize, Debug)]
struct Measured {
    capacity: f64,
    load: f64,
    load_in_force: f64,
    jitter_per_s: f64,
    utilisation: f64,
    class: &'static str,
    classes: BTreeMap<&'static str, &'static str>,
}

/// Everything, to be shown.
pub(crate) fn of_all(overview: &Overview, detail: Detail) -> Status<'_> {
    Status {
        version: overview.version,
        pid: std::process::id(),
        uptime_s: seconds(overview.now.since(Tick(0))),
        stopping: overview.stopping,
        generation: overview.generation,
        reloads: overview.reloads,
        reloads_refused: overview.reloads_refused,
        workers: overview.workers,
        connections: overview.connections,
        problems: overview.problems.iter().map(wrong).collect(),
        access_logs: overview.access_logs.iter().map(access_log).collect(),
        started_at: rfc3339(SystemTime::now() - overview.now.since(Tick(0))),
        config: config(overview),
        names: overview.names.iter().map(name).collect(),
        limits: overview.limits.iter().map(limits::brief).collect(),
        acme: overview.acme.iter().map(acme::brief).collect(),
        listeners: overview.listeners.iter().map(listener).collect(),
        pools: of_pools(overview, detail),
    }
}

/// The pools of it.
pub(crate) fn of_pools(overview: &Overview, detail: Detail) -> Vec<Pool<'_>> {
    overview.pools.iter().map(|view| pool(view, overview.now, detail)).collect()
}

/// One endpoint, to be shown.
pub(crate) fn of_endpoint<'a>(
    status: &'a EndpointStatus,
    note: Note,
    weighed: Option<&Weighed>,
    now: Tick,
) -> Endpoint<'a> {
    let in_future = |tick: Tick| seconds(tick.since(now));
    let ago = |tick: Tick| seconds(now.since(tick));
    Endpoint {
        id: status.id.0,
        name: &status.name,
        identity: &status.identity,
        address: &status.address,
        origin: status.origin.as_deref(),
        tier: match status.tier {
            Tier::Primary => "primary",
            Tier::Backup => "backup",
        },
        state: status.state.to_string(),
        reason: status.reason.to_string(),
        state_for_s: ago(status.since),
        wanted: wanted(status.wanted),
        eligible: status.is_eligible,
        back_off_for_s: status.back_off_until.map(in_future),
        refusal: status.refusal.as_deref(),
        hits: status.hits,
        failures: status.failures,
        in_flight: status.in_flight,
        max_in_flight: status.max_in_flight,
        connections: status.connections,
        streams: status.streams,
        latency_ms: status.latency.map(|latency| latency.as_micros() as f64 / 1e3),
        latency: status.latencies.quantiles().map(latency),
        packets_14s: status.packets,
        bytes_14s: status.bytes,
        sessions: status.sessions,
        weight: weight(&status.weight),
        probe: status
            .last_probe
            .as_ref()
            .map(|(result, at)| Probe { result: result.to_string(), s_ago: ago(*at) }),
        agent_heard_s_ago: status.agent_heard.map(ago),
        resources: weighed.map(resources),
        source: match (note.is_added, &status.origin) {
            (true, _) => "api",
            (false, Some(_)) => "dns",
            (false, None) => "file",
        },
        drain: (status.state == State::Drain).then(|| Drain {
            for_s: ago(status.since),
            deadline_in_s: note.deadline.map(in_future),
            sessions_left: status.sessions,
            in_flight: status.in_flight,
            connections: status.connections,
            is_empty: note.empty_since.is_some(),
            empty_for_s: note.empty_since.map(ago),
        }),
    }
}

fn wrong(problem: &Problem) -> Wrong<'_> {
    Wrong {
        kind: problem.kind.name(),
        what: &problem.what,
        detail: &problem.detail,
        for_s: seconds(problem.since.elapsed().unwrap_or_default()),
    }
}

fn config(overview: &Overview) -> Config<'_> {
    let view = &overview.config;
    Config {
        path: view.path.to_string_lossy(),
        files: view.files.iter().map(|path| path.to_string_lossy()).collect(),
        generation: overview.generation,
        loaded_at: rfc3339(view.loaded_at),
        changes: view.changes,
        differs_from_file: view.differs_from_file,
    }
}

fn name(view: &subak_names::Told) -> Name<'_> {
    Name {
        name: &view.name,
        addresses: &view.addresses,
        age_s: view.age.map(seconds),
        ttl_left_s: view.ttl_left.map(seconds),
        asks_in_s: view.asks_in.map(seconds),
        failing: view.failing.as_ref().map(|(why, _)| &**why),
        failing_for_s: view.failing.as_ref().map(|(_, lasted)| seconds(*lasted)),
        asked: view.asked,
        failed: view.failed,
    }
}

fn access_log(totals: &AccessLogTotals) -> AccessLog<'_> {
    AccessLog {
        to: &totals.destination,
        lines_written: totals.written_lines,
        lines_dropped: totals.dropped_lines,
        bytes_written: totals.written_bytes,
    }
}

/// In microseconds' resolution.
fn latency(quantiles: Quantiles) -> Latency {
    let ms = |nanos: u64| (nanos / 1_000) as f64 / 1e3;
    let Quantiles { p50_ns, p90_ns, p99_ns } = quantiles;
    Latency { p50_ms: ms(p50_ns), p90_ms: ms(p90_ns), p99_ms: ms(p99_ns) }
}

fn pool(view: &PoolView, now: Tick, detail: Detail) -> Pool<'_> {
    let PoolView { status, notes, totals, weighed, imbalance_ppm } = view;
    let endpoint = |(index, (status, note)): (usize, (_, &Note))| {
        let weighed = weighed.as_ref().and_then(|weighed| weighed.get(index));
        of_endpoint(status, *note, weighed, now)
    };
    Pool {
        name: &status.name,
        algorithm: status.algorithm,
        eligible: status.endpoints.iter().filter(|endpoint| endpoint.is_eligible).count(),
        because: status.because.to_string(),
        waiting: status.waiting,
        hits: status.endpoints.iter().map(|endpoint| endpoint.hits).sum(),
        requests: by_status(totals.requests),
        bytes_in: totals.bytes_in,
        bytes_out: totals.bytes_out,
        durations: durations(&totals.durations),
        retries: totals.retries,
        retry_budget: guards::retry_budget(status.retry_budget),
        circuit: status.circuit.map(guards::circuit),
        waits: totals.waits,
        imbalance: imbalance_ppm.map(parts),
        shadows: shadow::shadows(status, detail),
        endpoints: match detail {
            Detail::Whole => Endpoints::Listed(
                status.endpoints.iter().zip(notes).enumerate().map(endpoint).collect(),
            ),
            Detail::Short => Endpoints::Counted(counted(&status.endpoints)),
        },
    }
}

fn counted(endpoints: &[EndpointStatus]) -> Counted {
    let in_state =
        |state: State| endpoints.iter().filter(|endpoint| endpoint.state == state).count();
    Counted {
        total: endpoints.len(),
        eligible: endpoints.iter().filter(|endpoint| endpoint.is_eligible).count(),
        down: in_state(State::Down),
        drain: in_state(State::Drain),
        maintenance: in_state(State::Maintenance),
        back_off: in_state(State::BackOff),
    }
}

fn durations(counts: &Counts) -> Durations {
    // In microseconds' resolution.
    let short = |ms: f64| (ms * 1e3).round() / 1e3;
    let quantile = |part| counts.quantile_ms(part).map(short);
    let count = counts.count();
    Durations {
        count,
        mean_ms: (count > 0).then(|| short(counts.sum_s() * 1e3 / count as f64)),
        p50_ms: quantile(0.5),
        p90_ms: quantile(0.9),
        p99_ms: quantile(0.99),
        p999_ms: quantile(0.999),
    }
}

fn wanted((state, by): (Admin, Source)) -> Wanted {
    let by = match by {
        Source::File => "file",
        Source::Api => "api",
        Source::Agent => "agent",
    };
    Wanted { state: state.to_string(), by }
}

fn weight(layers: &WeightStatus) -> Weight {
    Weight {
        configured: layers.configured.0,
        operator: layers.operator.map(|weight| weight.0),
        weigher: factor(layers.weigher),
        agent: f64::from(layers.agent_percent) / 100.0,
        slow_start: factor(layers.ramp),
        in_force: layers.in_force.0,
    }
}

fn resources(weighed: &Weighed) -> Resources {
    let measured = weighed.measured.as_ref().map(|measured| Measured {
        capacity: ratio(measured.capacity),
        load: ratio(measured.load),
        load_in_force: ratio(measured.load_in_force),
        jitter_per_s: parts(measured.jitter_ppm_per_second),
        utilisation: parts(measured.utilisation_ppm),
        class: measured.class.name(),
        classes: known(&measured.classes).map(|(name, class)| (name, class.name())).collect(),
    });
    Resources {
        reports: match weighed.standing {
            Standing::Current => "current",
            Standing::Held => "held",
            Standing::Silent => "silent",
        },
        factor: factor(weighed.factor),
        measured,
    }
}

fn known<T>(each: &PerResource<Option<T>>) -> impl Iterator<Item = (&'static str, &T)> {
    each.iter().filter_map(|(resource, value)| Some((resource.name(), value.as_ref()?)))
}

fn by_status(counts: [u64; OUTCOMES.len()]) -> BTreeMap<&'static str, u64> {
    OUTCOMES.iter().map(|outcome| outcome.name()).zip(counts).collect()
}

/// In milliseconds' resolution.
pub(crate) fn seconds(duration: Duration) -> f64 {
    duration.as_millis() as f64 / 1e3
}

pub(crate) fn factor(factor: Factor) -> f64 {
    (f64::from(factor.get()) / f64::from(Factor::UNIT) * 1e4).round() / 1e4
}

pub(crate) fn ratio(part: Ppm) -> f64 {
    parts(u64::from(part.get()))
}

pub(crate) fn parts(parts: u64) -> f64 {
    parts as f64 / 1e6
}
