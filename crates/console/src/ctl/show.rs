//! `status`, `pools`, `endpoints`, `endpoint`: what is going on, in tables.

use super::names::{Named, find, told_of};
use super::{Context, Failure};
use crate::ask::Answer;
use crate::paint::{Paint, Tone};
use crate::status::{BRIEF, Endpoint, Pool, Status, total};
use crate::table::Table;
use crate::written::{UNKNOWN, age, count, cut, harmless, ms, several};

/// Of the names of one certificate, so many characters.
const MAX_NAMES_WIDTH: usize = 40;

/// Everything at a glance.
pub(super) fn status(context: &Context) -> Result<(), Failure> {
    if context.json {
        return context.raw("/v1/status");
    }
    let status: Status = context.client.get(BRIEF)?.json()?;
    context.say(&overview(&status, context.paint))
}

/// What `status` prints.
pub(crate) fn overview(status: &Status, paint: Paint) -> String {
    let mut lines = Vec::new();
    for problem in &status.problems {
        let text = format!("{} {}: {}", problem.kind, problem.what, problem.detail);
        let mark = paint.text(Tone::Bad, "problem");
        lines.push(format!("{mark} {} ({})", harmless(&text), age(problem.for_s)));
    }
    let stopping = if status.stopping { ", stopping" } else { "" };
    lines.push(format!(
        "Subak {}, process {}, up {}{stopping}; {}, {}",
        harmless(&status.version),
        status.pid,
        age(status.uptime_s),
        several(status.workers as u64, "worker"),
        several(status.connections as u64, "connection"),
    ));
    let changes = match &status.config {
        Some(config) if config.changes > 0 => {
            format!("; {} by the API (subak ctl config changes)", several(config.changes, "change"))
        }
        _ => String::new(),
    };
    let refused = match status.reloads_refused {
        0 => String::new(),
        refused => format!(", {} refused", several(refused, "reload")),
    };
    let differs = match &status.config {
        Some(config) if config.differs_from_file => {
            "; differs from the file (subak ctl config diff)"
        }
        _ => "",
    };
    let generation = status.generation;
    lines.push(format!("configuration: generation {generation}{refused}{changes}{differs}"));
    lines.push(String::new());
    let mut table =
        Table::new(&["listener", "addresses", "tls", ">connections", ">requests", ">4xx", ">5xx"]);
    for listener in &status.listeners {
        let by = |class: &str| listener.requests.get(class).copied().unwrap_or_default();
        table.row([
            (Tone::Plain, listener.name.clone()),
            (Tone::Plain, listener.addresses.join(", ")),
            (Tone::Plain, if listener.tls { "yes" } else { "no" }.to_owned()),
            (Tone::Plain, count(listener.connections as u64)),
            (Tone::Plain, count(total(&listener.requests))),
            (Tone::Plain, count(by("4xx"))),
            (bad_if(by("5xx") > 0), count(by("5xx"))),
        ]);
    }
    lines.extend(table.lines(paint));
    lines.extend(certificate_lines(status, paint));
    if !status.pools.is_empty() {
        lines.push(String::new());
        lines.extend(pool_lines(&status.pools, paint));
        lines.extend(shadow_lines(&status.pools, paint));
    }
    lines.join("\n")
}

/// What is served by TLS and until when; nothing where there is no TLS.
fn certificate_lines(status: &Status, paint: Paint) -> Vec<String> {
    if status.listeners.iter().all(|listener| listener.certificates.is_empty()) {
        return Vec::new();
    }
    let mut table = Table::new(&["listener", "certificate", "names", "key", "expires"]);
    for listener in &status.listeners {
        for certificate in &listener.certificates {
            let day = certificate.expires_at.get(..10).unwrap_or_default();
            table.row([
                (Tone::Plain, listener.name.clone()),
                (Tone::Plain, certificate.source.clone()),
                (Tone::Plain, cut(&certificate.names.join(", "), MAX_NAMES_WIDTH)),
                (Tone::Plain, certificate.key.clone()),
                (bad_if(certificate.is_urgent()), format!("{day}, {}", certificate.expiry())),
            ]);
        }
    }
    [vec![String::new()], table.lines(paint)].concat()
}

/// The routes of every listener, in the order in which they are asked.
pub(super) fn routes(context: &Context) -> Result<(), Failure> {
    let answer = context.client.get(BRIEF)?;
    if context.json {
        let status: serde_json::Value = answer.json()?;
        return context.say(&format!("{:#}", status["listeners"]));
    }
    let status: Status = answer.json()?;
    let mut table = Table::new(&["listener", ">route", ">hits", "asks for", "does"]);
    for listener in &status.listeners {
        for route in &listener.routes {
            table.row([
                (Tone::Strong, listener.name.clone()),
                (Tone::Plain, route.index.map_or_else(|| UNKNOWN.to_owned(), |n| n.to_string())),
                (Tone::Plain, count(route.hits)),
                (Tone::Plain, route.matches.clone()),
                (Tone::Plain, route.action.clone()),
            ]);
        }
    }
    context.say(&table.lines(context.paint).join("\n"))
}

pub(super) fn pools(context: &Context) -> Result<(), Failure> {
    if context.json {
        return context.raw("/v1/pools");
    }
    let status: Status = context.client.get(BRIEF)?.json()?;
    let mut lines = pool_lines(&status.pools, context.paint);
    lines.extend(shadow_lines(&status.pools, context.paint));
    context.say(&lines.join("\n"))
}

/// What decides beside these pools' algorithms, one in a line; nothing where nothing does.
fn shadow_lines<'a>(pools: impl IntoIterator<Item = &'a Pool>, paint: Paint) -> Vec<String> {
    let each = pools.into_iter().filter_map(|pool| Some((pool, pool.shadows.as_ref()?)));
    let mut table = Table::new(&[
        "pool",
        "shadow",
        ">agrees",
        ">decisions",
        ">refused",
        ">imbalance",
        ">pool's own",
    ]);
    let mut caution = None;
    for (pool, shadows) in each {
        caution = Some(&shadows.caution);
        for shadow in &shadows.algorithms {
            let stopped = if shadow.stopped { " (failed: stopped)" } else { "" };
            let tone = if shadow.stopped { Tone::Bad } else { Tone::Plain };
            table.row([
                (Tone::Strong, pool.name.clone()),
                (tone, format!("{}{stopped}", shadow.name)),
                (Tone::Plain, shadow.agreement.map_or_else(|| UNKNOWN.to_owned(), percent)),
                (Tone::Plain, count(shadow.decisions)),
                (warn_if(shadow.refusals > 0), count(shadow.refusals)),
                (Tone::Plain, times(shadow.imbalance)),
                (Tone::Faint, times(shadow.pool_imbalance)),
            ]);
        }
    }
    let Some(caution) = caution else { return Vec::new() };
    let mut lines = vec![String::new()];
    lines.extend(table.lines(paint));
    lines.push(paint.text(Tone::Faint, &harmless(caution)));
    lines
}

/// A ratio to the mean: `1.04`.
pub(crate) fn times(ratio: Option<f64>) -> String {
    ratio.map_or_else(|| UNKNOWN.to_owned(), |ratio| format!("{ratio:.2}"))
}

/// Pools, one in a line.
fn pool_lines(pools: &[Pool], paint: Paint) -> Vec<String> {
    let mut table = Table::new(&[
        "pool",
        "algorithm",
        ">eligible",
        ">down",
        ">requests",
        ">5xx",
        ">retries",
        ">waiting",
        ">p50 ms",
        ">p99 ms",
    ]);
    for pool in pools {
        let counts = pool.counts();
        let tone = counts.tone();
        let errors = pool.requests.get("5xx").copied().unwrap_or_default();
        let durations = pool.durations.clone().unwrap_or_default();
        table.row([
            (Tone::Strong, pool.name.clone()),
            (Tone::Plain, pool.algorithm.clone()),
            (tone, format!("{} of {}", counts.eligible, counts.total)),
            (bad_if(counts.down > 0), count(counts.down as u64)),
            (Tone::Plain, count(total(&pool.requests))),
            (bad_if(errors > 0), count(errors)),
            (Tone::Plain, count(pool.retries)),
            (warn_if(pool.waiting > 0), count(pool.waiting as u64)),
            (Tone::Plain, ms(durations.p50_ms)),
            (Tone::Plain, ms(durations.p99_ms)),
        ]);
    }
    table.lines(paint)
}

pub(super) fn endpoints(context: &Context, pool: Option<&str>) -> Result<(), Failure> {
    let Some(pool) = pool else {
        let answer = context.client.get("/v1/status")?;
        if context.json {
            let status: serde_json::Value = answer.json()?;
            return context.say(&format!("{:#}", status["pools"]));
        }
        let status: Status = answer.json()?;
        let shown: Vec<String> =
            status.pools.iter().map(|pool| listing(pool, context.paint)).collect();
        return context.say(&shown.join("\n\n"));
    };
    let told = told_of(context, pool)?;
    if context.json {
        return context.say(&format!("{told:#}"));
    }
    let pool: Pool = serde_json::from_value(told)
        .map_err(|error| crate::AskError::NotUnderstood(error.to_string()))?;
    context.say(&listing(&pool, context.paint))
}

/// A pool's heading and its endpoints.
pub(crate) fn listing(pool: &Pool, paint: Paint) -> String {
    let counts = pool.counts();
    let mut lines = vec![format!(
        "{}  {}, {} of {} eligible: {}",
        paint.text(Tone::Strong, &harmless(&pool.name)),
        pool.algorithm,
        counts.eligible,
        counts.total,
        harmless(&pool.because),
    )];
    let mut table = Table::new(&[
        "endpoint",
        ">weight",
        ">hits",
        ">share",
        ">expected",
        ">in flight",
        ">ms",
        ">failed",
        "state",
        "because",
    ]);
    let endpoints = pool.listed().unwrap_or_default();
    for endpoint in endpoints {
        table.row(endpoint_cells(endpoint, endpoints));
    }
    lines.extend(table.lines(paint));
    lines.extend(shadow_lines([pool], paint));
    lines.join("\n")
}

fn endpoint_cells(endpoint: &Endpoint, all: &[Endpoint]) -> [(Tone, String); 10] {
    let hits: u64 = all.iter().map(|endpoint| endpoint.hits).sum();
    [
        (Tone::Plain, endpoint.name.clone()),
        (Tone::Plain, endpoint.weight.in_force.to_string()),
        (Tone::Plain, count(endpoint.hits)),
        (Tone::Plain, percent(endpoint.hits as f64 / hits.max(1) as f64)),
        (Tone::Faint, percent(expected_share(endpoint, all))),
        (Tone::Plain, count(endpoint.in_flight.into())),
        (Tone::Plain, ms(endpoint.typical_ms())),
        (bad_if(endpoint.failures > 0), count(endpoint.failures)),
        (Tone::of_state(&endpoint.state, endpoint.eligible), state_word(endpoint)),
        (Tone::Faint, because(endpoint)),
    ]
}

/// The share that its weight gives an endpoint among those that are eligible.
pub(crate) fn expected_share(endpoint: &Endpoint, all: &[Endpoint]) -> f64 {
    let weights = all.iter().filter(|other| other.eligible);
    let weights: u64 = weights.map(|other| u64::from(other.weight.in_force)).sum();
    match endpoint.eligible && weights > 0 {
        true => f64::from(endpoint.weight.in_force) / weights as f64,
        false => 0.0,
    }
}

/// The state in one word, the one that explains most.
pub(crate) fn state_word(endpoint: &Endpoint) -> String {
    match &*endpoint.state {
        "back_off" => "backoff".to_owned(),
        "ready" if endpoint.tier == "backup" => "backup".to_owned(),
        "maintenance" => "maint".to_owned(),
        state => state.to_owned(),
    }
}

/// Why it is in its state, since when, and who wants it.
pub(crate) fn because(endpoint: &Endpoint) -> String {
    let mut parts = vec![format!("{} for {}", endpoint.reason, age(endpoint.state_for_s))];
    let refusal = endpoint.refusal.as_deref();
    if endpoint.state == "back_off" {
        let why = refusal.unwrap_or("its requests failed");
        let next = match endpoint.back_off_for_s.filter(|left| *left > 0.0) {
            Some(left) => format!("left out for {left:.1} s more"),
            None => "the next request tries it".to_owned(),
        };
        // What it is for in front: on a narrow screen there may be no room for more.
        parts = vec![why.to_owned(), next, format!("for {}", age(endpoint.state_for_s))];
    } else {
        parts.extend(refusal.map(str::to_owned));
    }
    // The reason often says so already.
    if endpoint.wanted.by == "api" && !endpoint.reason.ends_with("by the API") {
        parts.push(format!("{} set by the API", endpoint.wanted.state));
    }
    if let Some(weight) = endpoint.weight.operator {
        parts.push(format!("weight {weight} set by the API"));
    }
    parts.join("; ")
}

pub(super) fn endpoint(context: &Context, named: &Named) -> Result<(), Failure> {
    let (found, answer) = find(context, named)?;
    context.answer(&answer, || Ok(details(&found.pool, &answer.json()?, context.paint)))
}

/// The answer to a change: the endpoint as it is now.
pub(super) fn changed(context: &Context, pool: &str, answer: &Answer) -> Result<(), Failure> {
    context.answer(answer, || {
        let endpoint: Endpoint = answer.json()?;
        Ok(format!(
            "{} of pool {}: {}, weight {} ({})",
            harmless(&endpoint.name),
            harmless(pool),
            endpoint.state,
            endpoint.weight.in_force,
            harmless(&because(&endpoint)),
        ))
    })
}

/// Everything that is known of an endpoint, one thing in a line.
fn details(pool: &str, endpoint: &Endpoint, paint: Paint) -> String {
    let mut lines = vec![paint.text(Tone::Strong, &harmless(&endpoint.name))];
    let mut line = |key: &str, text: String| {
        lines.push(format!("  {:<12} {}", key, harmless(&text)));
    };
    line("pool", pool.to_owned());
    line("address", endpoint.address.clone());
    if let Some(origin) = &endpoint.origin {
        line("from name", origin.clone());
    }
    line("state", format!("{}: {}", endpoint.state, because(endpoint)));
    line("wanted", format!("{} by {}", endpoint.wanted.state, endpoint.wanted.by));
    line("eligible", if endpoint.eligible { "yes" } else { "no" }.to_owned());
    let weight = endpoint.weight;
    let operator = weight.operator.map(|weight| format!(", by the API {weight}"));
    line(
        "weight",
        format!(
            "{} in force: configured {}{}; × weigher {} × agent {} × slow start {}",
            weight.in_force,
            weight.configured,
            operator.unwrap_or_default(),
            weight.weigher,
            weight.agent,
            weight.slow_start
        ),
    );
    line("hits", format!("{}, {} failed", count(endpoint.hits), count(endpoint.failures)));
    let cap = endpoint.max_in_flight.map_or_else(String::new, |cap| format!(" of at most {cap}"));
    line(
        "in flight",
        format!(
            "{}{cap}; {}, {}",
            endpoint.in_flight,
            several(endpoint.connections.into(), "connection"),
            several(endpoint.streams.into(), "stream")
        ),
    );
    let latency = endpoint.latency.map(|latency| {
        format!(
            "p50 {}, p90 {}, p99 {} ms",
            ms(latency.p50_ms),
            ms(latency.p90_ms),
            ms(latency.p99_ms)
        )
    });
    line(
        "latency",
        latency.unwrap_or_else(|| match endpoint.latency_ms {
            Some(_) => format!("{} ms", ms(endpoint.latency_ms)),
            None => UNKNOWN.to_owned(),
        }),
    );
    if let Some(sessions) = endpoint.sessions {
        line("sessions", count(sessions));
    }
    if let Some(probe) = &endpoint.probe {
        line("last probe", format!("{}, {} ago", probe.result, age(probe.s_ago)));
    }
    if let Some(drain) = &endpoint.drain {
        line("drain", super::drain::progress(endpoint, drain));
    }
    lines.join("\n")
}

pub(crate) fn percent(share: f64) -> String {
    format!("{:.1}%", share * 100.0)
}

fn bad_if(bad: bool) -> Tone {
    if bad { Tone::Bad } else { Tone::Plain }
}

fn warn_if(warn: bool) -> Tone {
    if warn { Tone::Warn } else { Tone::Plain }
}
