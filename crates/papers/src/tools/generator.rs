//! Our own load generator beside the papers' ones: at a rate, whether or not earlier requests were
//! answered, or as users; from as many client addresses as are wanted. What users see is told by k6's
//! names, so that both stand in one table.

use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use subak_lab::histogram::Histogram;
use subak_lab::load::{
    self, Event, LoadPlan, LoadReport, Moment, Precedence, Profile, Shape, Spacing, Stage, Think,
};
use subak_lab::trust::{self, Trust};

use super::Stages;
use crate::cell::Measured;

/// Connections that a load has at most: those who wait for a server that is behind have one each.
const MOST: usize = 8000;
/// Connections that a proxy keeps to the balancer.
const KEPT: usize = 64;
/// As k6 has it.
const ANSWER_WITHIN: Duration = Duration::from_secs(60);
/// What a user of the papers does after each answer.
const THINK: Duration = Duration::from_secs(1);

/// Whom clients ask, and where they come from.
#[derive(Clone, Debug)]
pub struct Clients {
    /// The balancer.
    pub target: SocketAddr,
    /// Over TLS.
    pub tls: bool,
    /// Their addresses, taken in turn; none: the kernel's choice.
    pub sources: Vec<IpAddr>,
    /// Who stands behind a source, by X-Forwarded-For, taken in turn; none: nobody.
    pub behind: Vec<IpAddr>,
}

impl Clients {
    /// Over cleartext.
    pub fn of(target: SocketAddr, sources: Vec<IpAddr>) -> Clients {
        Clients { target, tls: false, sources, behind: Vec::new() }
    }

    /// Over cleartext, and all of them behind one proxy.
    pub fn behind(proxy: IpAddr, target: SocketAddr, behind: Vec<IpAddr>) -> Clients {
        Clients { target, tls: false, sources: vec![proxy], behind }
    }

    fn plan(&self, time: Duration) -> Result<LoadPlan, String> {
        let mut plan = LoadPlan::get(self.target, "/").lasting(time);
        if self.tls {
            plan.tls = Some(trust::client(&Trust::Anybody, &self.target.ip().to_string())?);
        }
        plan.sources.bind.clone_from(&self.sources);
        plan.sources.forwarded.clone_from(&self.behind);
        plan.warm_up = Duration::ZERO;
        plan.detail.finish = true;
        plan.precedence = Precedence::AheadIfAllowed;
        Ok(plan)
    }
}

/// So many requests a second for a while.
///
/// # Errors
/// The system refuses.
pub fn at_rate(clients: &Clients, rate: f64, time: Duration) -> Result<Measured, String> {
    let connections = clients.sources.len().max(clients.behind.len()).clamp(64, MOST);
    let plan = clients.plan(time)?.rate(rate, connections).lasting(time);
    let report = load::run(&plan).map_err(|error| error.to_string())?;
    Ok(judged(plain(&report), &report))
}

/// The same where only what it costs the servers is asked for: a start that is late by milliseconds
/// changes nothing, requests that never started do.
///
/// # Errors
/// The system refuses.
pub fn cost_at_rate(clients: &Clients, rate: f64, time: Duration) -> Result<Measured, String> {
    let mut measured = at_rate(clients, rate, time)?;
    let answered = measured.numbers.get("answered").copied().unwrap_or(0.0);
    let due = rate * time.as_secs_f64();
    // The first and the last may be in the window or not.
    if answered + 2.0 >= due * 0.99 {
        measured.invalid = None;
    }
    Ok(measured)
}

/// One request from each address, one after the other.
///
/// # Errors
/// The system refuses.
pub fn one_each(clients: &Clients) -> Result<Measured, String> {
    let plan = clients.plan(Duration::MAX)?.with_new_connections().users(1);
    let plan = plan.requests(clients.sources.len() as u64);
    Ok(plain(&load::run(&plan).map_err(|error| error.to_string())?))
}

/// One request from each of those behind a proxy, evenly over a while; connections are the proxy's.
///
/// # Errors
/// The system refuses.
pub fn one_each_behind(clients: &Clients, time: Duration) -> Result<Measured, String> {
    let all = clients.behind.len() as u64;
    let rate = all as f64 / time.as_secs_f64();
    let plan = clients.plan(Duration::MAX)?.rate(rate, KEPT).requests(all);
    Ok(plain(&load::run(&plan).map_err(|error| error.to_string())?))
}

/// Users who ask, wait for the answer and think for a second, as many as the stages say.
///
/// # Errors
/// The system refuses.
pub fn users(clients: &Clients, stages: &Stages) -> Result<Measured, String> {
    let stage = |(over, to): &(Duration, u32)| Stage { to: f64::from(*to), over: *over };
    let profile = Profile::stages(0.0, stages.iter().map(stage).collect());
    let mut plan = clients.plan(profile.length())?;
    plan.shape = Shape::Users { profile, think: Think::Constant(THINK) };
    plan.answer_within = ANSWER_WITHIN;
    plan.detail.phases = true;
    let report = load::run(&plan).map_err(|error| error.to_string())?;
    Ok(judged(by_k6s_names(&report), &report))
}

/// Requests begin at a rate that goes from one stage to the next (requests a second). `ends` looks at
/// every interval of this length, and may end the load.
///
/// # Errors
/// The system refuses.
pub fn rising(
    clients: &Clients,
    stages: Vec<(Duration, f64)>,
    every: Duration,
    mut ends: impl FnMut(&Moment) -> bool,
) -> Result<(Measured, LoadReport), String> {
    let stages: Vec<Stage> =
        stages.iter().map(|(over, to)| Stage { to: *to, over: *over }).collect();
    let profile = Profile::stages(0.0, stages);
    let mut plan = clients.plan(profile.length())?;
    plan.shape = Shape::Rate { profile, spacing: Spacing::Even, connections: 64, most: MOST };
    plan.detail.phases = true;
    plan.detail.every = Some(every);
    let stop = AtomicBool::new(false);
    let report = load::run_watched(&plan, &stop, &mut |event| {
        if let Event::Moment(moment) = event
            && ends(moment)
        {
            stop.store(true, Ordering::Relaxed);
        }
    });
    let report = report.map_err(|error| error.to_string())?;
    Ok((judged(by_k6s_names(&report), &report), report))
}

/// A generator that was behind spoils times.
fn judged(mut measured: Measured, report: &LoadReport) -> Measured {
    let faults = report.invalid();
    if !faults.is_empty() {
        measured.invalid = Some(faults.join("; "));
    }
    measured
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn plain(report: &LoadReport) -> Measured {
    let of = |share| ms(report.latency.quantile(share));
    Measured::default()
        .number("answered", report.answered as f64)
        .number("failed", report.failures.total() as f64)
        .number("failed_percent", report.failed_share() * 100.0)
        .number("rate_per_s", report.per_second())
        .number("median_ms", of(0.5))
        .number("p95_ms", of(0.95))
        .number("p99_ms", of(0.99))
}

fn by_k6s_names(report: &LoadReport) -> Measured {
    let mut measured = Measured::default();
    let mut trend = |metric: &str, times: &Histogram| {
        let of = |share| times.quantile(share);
        let columns = [
            ("avg", times.mean()),
            ("min", times.min()),
            ("med", of(0.5)),
            ("max", times.max()),
            ("p(90)", of(0.9)),
            ("p(95)", of(0.95)),
        ];
        for (column, time) in columns {
            measured.numbers.insert(format!("{metric}.{column}"), ms(time));
        }
    };
    if let Some(phases) = &report.phases {
        trend("http_req_blocked", &phases.blocked);
        trend("http_req_connecting", &phases.connecting);
        trend("http_req_tls_handshaking", &phases.tls);
        trend("http_req_sending", &phases.sending);
        trend("http_req_waiting", &phases.waiting);
        trend("http_req_receiving", &phases.receiving);
        trend("http_req_duration", &phases.duration);
        trend("http_req_duration{expected_response:true}", &phases.answered);
        trend("iteration_duration", &phases.iteration);
    }
    let seconds = report.elapsed.as_secs_f64().max(1e-9);
    let ended = report.ended() as f64;
    for (metric, count) in [
        ("data_received", report.received as f64),
        ("data_sent", report.sent as f64),
        ("http_reqs", ended),
        ("iterations", ended),
    ] {
        measured = measured
            .number(format!("{metric}.count"), count)
            .number(format!("{metric}.rate"), count / seconds);
    }
    measured
        .number("http_req_failed.passes", report.failures.total() as f64)
        .number("http_req_failed.value", report.failed_share())
        .number("vus_max.value", report.most_users as f64)
        .number("dropped_iterations.count", report.not_started as f64)
}
