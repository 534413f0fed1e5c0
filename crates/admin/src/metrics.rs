//! `/metrics`: everything that is counted, as Prometheus reads it.

mod shadow;

use std::time::UNIX_EPOCH;

use subak_balance::weigher::{Class, Measured, Standing};
use subak_health::State;
use subak_pool::{Answers, EndpointStatus};
use subak_telemetry::{
    CALL_STATUSES, Cause, Dialect, Exposition, Family, Flood, OUTCOMES, Turned, families,
};

use crate::command::{Overview, PoolView};
use crate::process::Process;
use crate::status::{factor, parts, ratio};

/// Bytes of the text for each endpoint, and for the rest: about so many.
const ENDPOINT_BYTES: usize = 1024;
const OTHER_BYTES: usize = 64 * 1024;

/// The whole text.
pub(crate) fn text(overview: &Overview, dialect: Dialect) -> String {
    let mut text =
        Exposition::with_capacity(dialect, OTHER_BYTES + overview.endpoints() * ENDPOINT_BYTES);
    whole(&mut text, overview);
    limits(&mut text, overview);
    listeners(&mut text, overview);
    pools(&mut text, &overview.pools);
    endpoints(&mut text, &overview.pools);
    process(&mut text, &Process::read());
    text.finish()
}

fn whole(text: &mut Exposition, overview: &Overview) {
    text.family(&families::BUILD_INFO).count(&[overview.version], 1);
    text.family(&families::GENERATION).count(&[], overview.generation);
    let mut reloads = text.family(&families::RELOADS);
    reloads.count(&["ok"], overview.reloads);
    reloads.count(&["refused"], overview.reloads_refused);
    text.family(&families::WORKERS).count(&[], overview.workers as u64);
    text.family(&families::CONNECTIONS).count(&[], overview.connections as u64);
    text.family(&families::CONNECTIONS_LIMIT).count(&[], overview.most_connections as u64);
    names(text, &overview.names);
    crate::acme::metrics(text, &overview.acme);
    let mut lines = text.family(&families::ACCESS_LOG_LINES);
    for log in &overview.access_logs {
        lines.count(&[&log.destination, "written"], log.written_lines);
        lines.count(&[&log.destination, "dropped"], log.dropped_lines);
    }
    let mut bytes = text.family(&families::ACCESS_LOG_BYTES);
    for log in &overview.access_logs {
        bytes.count(&[&log.destination], log.written_bytes);
    }
    text.family(&families::LOG_LINES_DROPPED).count(&[], overview.log_lines_dropped);
    let mut problems = text.family(&families::PROBLEM);
    for problem in &overview.problems {
        problems.count(&[problem.kind.name(), &problem.what], 1);
    }
}

fn names(text: &mut Exposition, names: &[subak_names::Told]) {
    let mut addresses = text.family(&families::NAME_ADDRESSES);
    for name in names {
        addresses.count(&[&name.name], name.addresses.len() as u64);
    }
    let mut age = text.family(&families::NAME_AGE);
    for name in names {
        if let Some(known) = name.age {
            age.number(&[&name.name], known.as_secs_f64());
        }
    }
    let mut asked = text.family(&families::NAME_ASKED);
    for name in names {
        asked.count(&[&name.name], name.asked);
    }
    let mut failed = text.family(&families::NAME_FAILED);
    for name in names {
        failed.count(&[&name.name], name.failed);
    }
}

fn limits(text: &mut Exposition, overview: &Overview) {
    let mut refused = text.family(&families::LIMIT_REFUSED);
    for limit in &overview.limits {
        let dry_run = if limit.is_dry_run { "true" } else { "false" };
        refused.count(&[&limit.listener, &limit.name, dry_run], limit.refused);
    }
    let mut forgotten = text.family(&families::LIMIT_FORGOTTEN);
    for limit in &overview.limits {
        forgotten.count(&[&limit.listener, &limit.name], limit.forgotten);
    }
}

fn listeners(text: &mut Exposition, overview: &Overview) {
    let listeners = &overview.listeners;
    let mut connections = text.family(&families::LISTENER_CONNECTIONS);
    for listener in listeners {
        connections.count(&[&listener.name], listener.connections as u64);
    }
    let mut streams = text.family(&families::LISTENER_STREAMS);
    for listener in listeners {
        streams.count(&[&listener.name], listener.totals.streams);
    }
    let mut accepted = text.family(&families::LISTENER_ACCEPTED);
    for listener in listeners {
        accepted.count(&[&listener.name], listener.totals.accepted);
    }
    let mut refused = text.family(&families::LISTENER_REFUSED);
    for listener in listeners {
        refused.count(&[&listener.name], listener.totals.refused);
    }
    let mut evicted = text.family(&families::LISTENER_EVICTED);
    for listener in listeners {
        evicted.count(&[&listener.name], listener.totals.evicted);
    }
    let mut turned = text.family(&families::LISTENER_TURNED_AWAY);
    for listener in listeners {
        for (why, count) in Turned::ALL.into_iter().zip(listener.totals.turned) {
            turned.count(&[&listener.name, why.name()], count);
        }
    }
    let mut failed = text.family(&families::LISTENER_HANDSHAKES_FAILED);
    for listener in listeners.iter().filter(|listener| listener.tls) {
        failed.count(&[&listener.name], listener.totals.handshakes_failed);
    }
    let mut expiry = text.family(&families::CERTIFICATE_EXPIRY);
    for listener in listeners {
        let mut seen: Vec<&str> = Vec::new();
        for certificate in &listener.certificates {
            // Two that were read from one file are one.
            if !seen.contains(&&*certificate.source) {
                seen.push(&certificate.source);
                let since = certificate.expires_at.duration_since(UNIX_EPOCH).unwrap_or_default();
                expiry.count(&[&listener.name, &certificate.source], since.as_secs());
            }
        }
    }
    let mut requests = text.family(&families::LISTENER_REQUESTS);
    for listener in listeners {
        for (outcome, count) in OUTCOMES.into_iter().zip(listener.totals.requests) {
            requests.count(&[&listener.name, outcome.name()], count);
        }
    }
    let mut bytes = text.family(&families::LISTENER_BYTES);
    for listener in listeners {
        bytes.count(&[&listener.name, "in"], listener.totals.bytes_in);
        bytes.count(&[&listener.name, "out"], listener.totals.bytes_out);
    }
    let mut failures = text.family(&families::LISTENER_FAILURES);
    for listener in listeners {
        for (cause, count) in Cause::ALL.into_iter().zip(listener.totals.failures) {
            failures.count(&[&listener.name, cause.blame().name(), cause.name()], count);
        }
    }
    let mut floods = text.family(&families::LISTENER_FLOODS);
    for listener in listeners.iter().filter(|listener| listener.protocols.contains(&"h2")) {
        for (flood, count) in Flood::ALL.into_iter().zip(listener.totals.floods) {
            floods.count(&[&listener.name, flood.name()], count);
        }
    }
}

fn pools(text: &mut Exposition, pools: &[PoolView]) {
    let mut states = text.family(&families::POOL_ENDPOINTS);
    for PoolView { status, .. } in pools {
        for state in State::ALL {
            let count = status.endpoints.iter().filter(|endpoint| endpoint.state == state).count();
            states.count(&[&status.name, &state.to_string()], count as u64);
        }
    }
    let mut eligible = text.family(&families::POOL_ELIGIBLE);
    for PoolView { status, .. } in pools {
        let count = status.endpoints.iter().filter(|endpoint| endpoint.is_eligible).count();
        eligible.count(&[&status.name], count as u64);
    }
    let mut waiting = text.family(&families::POOL_WAITING);
    for PoolView { status, .. } in pools {
        waiting.count(&[&status.name], status.waiting as u64);
    }
    let mut requests = text.family(&families::POOL_REQUESTS);
    for PoolView { status, totals, .. } in pools {
        for (outcome, count) in OUTCOMES.into_iter().zip(totals.requests) {
            requests.count(&[&status.name, outcome.name()], count);
        }
    }
    let mut calls = text.family(&families::POOL_CALLS);
    for PoolView { status, totals, .. } in pools {
        for (code, count) in CALL_STATUSES.into_iter().zip(totals.calls) {
            // Most pools have none.
            if count > 0 {
                calls.count(&[&status.name, code], count);
            }
        }
    }
    let mut durations = text.family(&families::POOL_DURATION);
    for PoolView { status, totals, .. } in pools {
        durations.histogram(&[&status.name], &totals.durations);
    }
    let mut bytes = text.family(&families::POOL_BYTES);
    for PoolView { status, totals, .. } in pools {
        bytes.count(&[&status.name, "in"], totals.bytes_in);
        bytes.count(&[&status.name, "out"], totals.bytes_out);
    }
    let mut retries = text.family(&families::POOL_RETRIES);
    for PoolView { status, totals, .. } in pools {
        retries.count(&[&status.name], totals.retries);
    }
    guards(text, pools);
    let mut waits = text.family(&families::POOL_WAITS);
    for PoolView { status, totals, .. } in pools {
        waits.count(&[&status.name], totals.waits);
    }
    let mut streams = text.family(&families::POOL_STREAMS);
    for PoolView { status, totals, .. } in pools {
        streams.count(&[&status.name], totals.streams);
    }
    let mut resets = text.family(&families::POOL_STREAM_RESETS);
    for PoolView { status, totals, .. } in pools {
        resets.count(&[&status.name], totals.stream_resets);
    }
    let mut goodbyes = text.family(&families::POOL_GOODBYES);
    for PoolView { status, totals, .. } in pools {
        goodbyes.count(&[&status.name], totals.goodbyes);
    }
    let mut probes = text.family(&families::POOL_PROBES);
    for PoolView { status, .. } in pools {
        for (kind, answers) in [("probe", status.tally.probes), ("agent", status.tally.agents)] {
            let Answers { ok, failed, inconclusive } = answers;
            // Most pools have no agents.
            if ok + failed + inconclusive > 0 || kind == "probe" {
                probes.count(&[&status.name, kind, "ok"], ok);
                probes.count(&[&status.name, kind, "failed"], failed);
                probes.count(&[&status.name, kind, "inconclusive"], inconclusive);
            }
        }
    }
    let mut transitions = text.family(&families::POOL_TRANSITIONS);
    for PoolView { status, .. } in pools {
        for (state, count) in State::ALL.iter().zip(status.tally.transitions) {
            transitions.count(&[&status.name, &state.to_string()], count);
        }
    }
    shadow::shadows(text, pools);
    let mut imbalance = text.family(&families::POOL_IMBALANCE);
    for PoolView { status, imbalance_ppm, .. } in pools {
        if let Some(ppm) = imbalance_ppm {
            imbalance.number(&[&status.name], parts(*ppm));
        }
    }
}

/// What keeps a pool that fails from being asked even more.
fn guards(text: &mut Exposition, pools: &[PoolView]) {
    let mut denied = text.family(&families::POOL_RETRIES_DENIED);
    for PoolView { status, .. } in pools {
        denied.count(&[&status.name], status.retry_budget.denied);
    }
    let mut left = text.family(&families::POOL_RETRY_BUDGET);
    for PoolView { status, .. } in pools {
        left.count(&[&status.name], status.retry_budget.left);
    }
    let circuits =
        || pools.iter().filter_map(|pool| Some((&*pool.status.name, pool.status.circuit?)));
    let mut states = text.family(&families::POOL_CIRCUIT);
    for (name, circuit) in circuits() {
        for state in ["closed", "open", "half_open"] {
            states.count(&[name, state], u64::from(circuit.state.name() == state));
        }
    }
    let mut opened = text.family(&families::POOL_CIRCUIT_OPENED);
    for (name, circuit) in circuits() {
        opened.count(&[name], circuit.opened);
    }
    let mut refused = text.family(&families::POOL_CIRCUIT_REFUSED);
    for (name, circuit) in circuits() {
        refused.count(&[name, "open"], circuit.refused);
        refused.count(&[name, "full"], circuit.full);
    }
}

/// A figure of an endpoint, where it has it.
type Count = fn(&EndpointStatus) -> Option<u64>;

fn endpoints(text: &mut Exposition, pools: &[PoolView]) {
    let mut states = text.family(&families::ENDPOINT_STATE);
    let named = State::ALL.map(|state| (state, state.to_string()));
    for PoolView { status, .. } in pools {
        for endpoint in &status.endpoints {
            for (state, name) in &named {
                let labels = [&*status.name, &endpoint.name, name];
                states.count(&labels, u64::from(endpoint.state == *state));
            }
        }
    }
    let counts: [(&Family, Count); 8] = [
        (&families::ENDPOINT_ELIGIBLE, |endpoint| Some(u64::from(endpoint.is_eligible))),
        (&families::ENDPOINT_HITS, |endpoint| Some(endpoint.hits)),
        (&families::ENDPOINT_FAILURES, |endpoint| Some(endpoint.failures)),
        (&families::ENDPOINT_IN_FLIGHT, |endpoint| Some(endpoint.in_flight.into())),
        (&families::ENDPOINT_CONNECTIONS, |endpoint| Some(endpoint.connections.into())),
        (&families::ENDPOINT_STREAMS, |endpoint| Some(endpoint.streams.into())),
        (&families::ENDPOINT_WEIGHT, |endpoint| Some(endpoint.weight.in_force.get())),
        (&families::ENDPOINT_SESSIONS, |endpoint| endpoint.sessions.map(|count| count as u64)),
    ];
    for (family, count) in counts {
        let mut samples = text.family(family);
        for PoolView { status, .. } in pools {
            for endpoint in &status.endpoints {
                if let Some(count) = count(endpoint) {
                    samples.count(&[&status.name, &endpoint.name], count);
                }
            }
        }
    }
    let mut latencies = text.family(&families::ENDPOINT_LATENCY);
    for PoolView { status, .. } in pools {
        for endpoint in &status.endpoints {
            if let Some(latency) = endpoint.latency {
                latencies.number(&[&status.name, &endpoint.name], latency.as_secs_f64());
            }
        }
    }
    weighed(text, pools);
}

/// A share that an endpoint reports.
type Ratio = fn(&Measured) -> f64;

/// What the weighers of pools make of their endpoints' reports.
fn weighed(text: &mut Exposition, pools: &[PoolView]) {
    let each = || {
        pools.iter().flat_map(|view| {
            let weighed = view.weighed.iter().flatten();
            let endpoints = view.status.endpoints.iter().zip(weighed);
            endpoints.map(|(endpoint, weighed)| (&*view.status.name, &*endpoint.name, weighed))
        })
    };
    let ratios: [(&Family, Ratio); 3] = [
        (&families::ENDPOINT_CAPACITY, |measured| ratio(measured.capacity)),
        (&families::ENDPOINT_LOAD, |measured| ratio(measured.load)),
        (&families::ENDPOINT_UTILISATION, |measured| parts(measured.utilisation_ppm)),
    ];
    for (family, ratio) in ratios {
        let mut samples = text.family(family);
        for (pool, endpoint, weighed) in each() {
            if let Some(measured) = &weighed.measured {
                samples.number(&[pool, endpoint], ratio(measured));
            }
        }
    }
    let mut classes = text.family(&families::ENDPOINT_CLASS);
    for (pool, endpoint, weighed) in each() {
        for class in Class::ALL.into_iter().filter(|_| weighed.measured.is_some()) {
            let is_it = weighed.measured.is_some_and(|measured| measured.class == class);
            classes.count(&[pool, endpoint, class.name()], u64::from(is_it));
        }
    }
    let mut factors = text.family(&families::ENDPOINT_FACTOR);
    for (pool, endpoint, weighed) in each() {
        factors.number(&[pool, endpoint], factor(weighed.factor));
    }
    let mut reporting = text.family(&families::ENDPOINT_REPORTING);
    for (pool, endpoint, weighed) in each() {
        let is_current = weighed.standing == Standing::Current;
        reporting.count(&[pool, endpoint], u64::from(is_current));
    }
}

fn process(text: &mut Exposition, process: &Process) {
    let numbers =
        [(&families::PROCESS_START, process.start_time_s), (&families::PROCESS_CPU, process.cpu_s)];
    for (family, number) in numbers {
        let mut samples = text.family(family);
        number.into_iter().for_each(|number| samples.number(&[], number));
    }
    let counts = [
        (&families::PROCESS_RESIDENT, process.resident_bytes),
        (&families::PROCESS_OPEN_FDS, process.open_descriptors),
        (&families::PROCESS_MAX_FDS, process.most_descriptors),
    ];
    for (family, count) in counts {
        let mut samples = text.family(family);
        count.into_iter().for_each(|count| samples.count(&[], count));
    }
}
