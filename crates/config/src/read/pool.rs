//! `[pool.NAME]`.

use std::num::NonZeroU32;

use subak_balance::Algorithm;
use subak_balance::catalogue::{self, Share};
use subak_health::OnAllDown;
use subak_message::grpc::Code;

use super::{
    Reader, View, balance, convert, eject, endpoint, endpoint_tls, health, limits, proxy_protocol,
    shadow, stick, streams, weigher,
};
use crate::address::Address;
use crate::defaults;
use crate::diagnostic::{Diagnostic, Span};
use crate::headers::{self, Direction};
use crate::model::{
    BackOff, ByName, Endpoint, HostForward, Name, Origin, Pool, PoolTimeouts, Queue, Retry, RetryOn,
};
use crate::pattern::{self, HostPattern};
use crate::problem::Problem;
use crate::scalar;
use crate::shape;
use crate::suggest::nearest;
use crate::tree::{Entry, Value};
use crate::vocabulary::{BACK_OFF, POOL, POOL_TIMEOUTS, QUEUE, RETRY};

pub(crate) fn read(reader: &mut Reader<'_>, entry: &Entry) -> Pool {
    let view = View::of(&entry.node, &POOL);
    let timeouts = view.table("timeouts", &POOL_TIMEOUTS);
    let queue = view.table("queue", &QUEUE);
    let idle = view.number("keep_alive_connections").and_then(convert);
    let algorithm = balance::read(reader, view.node("balance"));
    let endpoints = endpoint::read_all(reader, &view);
    let place = view.node("balance").map_or(entry.key_span, |node| node.span);
    balance::check(reader, place, &algorithm, &endpoints.endpoints);
    for key in ["slow_start", "weigher"] {
        takes_changing_weights(reader, &view, key, &algorithm);
    }
    let shadows = shadow::read(reader, &view, &endpoints.endpoints);
    let host = view.node("host").and_then(|node| reader.text(node, host));
    let host = host.unwrap_or(HostForward::Preserve);
    let tls = endpoint_tls::read(reader, &view, &endpoints);
    let proxy_protocol = proxy_protocol::sent(reader, &view);
    let towards = health::Towards { host: &host, tls: tls.as_ref(), proxy: proxy_protocol };
    Pool {
        name: Name::from(&*entry.key),
        timeouts: PoolTimeouts {
            connect: timeouts.duration("connect", defaults::CONNECT_TIMEOUT),
            first_byte: timeouts.duration("first_byte", defaults::FIRST_BYTE_TIMEOUT),
            idle: timeouts.duration("idle", defaults::IDLE_TIMEOUT),
            tunnel: timeouts.duration("tunnel", defaults::TUNNEL_TIMEOUT),
            keep_alive: timeouts.duration("keep_alive", defaults::ENDPOINT_KEEP_ALIVE_TIMEOUT),
        },
        protocol: streams::protocol(reader, &view, tls.is_some()),
        streams: streams::read(&view),
        keep_alive_connections: idle.unwrap_or(defaults::KEEP_ALIVE_CONNECTIONS),
        queue: Queue {
            length: queue.number("length").and_then(convert).unwrap_or(defaults::QUEUE_LENGTH),
            timeout: queue.duration("timeout", defaults::QUEUE_TIMEOUT),
            outage: queue
                .string("outage")
                .and_then(|text| scalar::any_duration(text).ok())
                .unwrap_or(defaults::QUEUE_OUTAGE),
        },
        retry: retry(reader, &view.table("retry", &RETRY)),
        back_off: back_off(reader, &view),
        circuit: limits::circuit(reader, &view),
        health: health::read(reader, &view, &towards, &endpoints),
        agent_check: health::agent_check(reader, &view, &endpoints),
        eject: eject::read(reader, &view),
        grpc_failures: eject::grpc_failures(reader, &view),
        on_all_down: on_all_down(reader, &view, &endpoints),
        slow_start: eject::slow_start(reader, &view),
        stick: stick::read(reader, &view),
        weigher: weigher::read(reader, &view, &endpoints),
        pick_log: view.number("pick_log").and_then(convert),
        request_headers: reader.header_edits(&view, Direction::Request),
        response_headers: reader.header_edits(&view, Direction::Response),
        host,
        tls,
        proxy_protocol,
        algorithm,
        shadows,
        endpoints: endpoints.endpoints,
        names: endpoints.names,
        caps: endpoint::caps(&view),
    }
}

/// An endpoint that is to join `pool`, in its short form. What is wrong with it, or with it in this
/// pool, is reported.
pub(crate) fn joining(reader: &mut Reader<'_>, text: &str, pool: &Pool) -> Option<Endpoint> {
    let joining = endpoint::one(reader, text, &pool.caps)?;
    let place = Span::new(0, text.len());
    let mut all = pool.endpoints.clone();
    all.push(joining.clone());
    if all.len() > defaults::MAX_ENDPOINTS {
        let message = format!("a pool has at most {} endpoints", defaults::MAX_ENDPOINTS);
        reader.push(Diagnostic::error(place, message));
    }
    let asked_at = [
        pool.health.as_ref().and_then(|health| health.port),
        pool.agent_check.as_ref().map(|agent| agent.port),
    ];
    if matches!(joining.address, Address::Unix(_)) && asked_at.iter().any(Option::is_some) {
        let diagnostic = Diagnostic::error(place, "a unix socket has no other port");
        reader.push(
            diagnostic.label("every endpoint of this pool is asked at a port of its address"),
        );
    }
    if matches!(joining.address, Address::Unix(_)) && pool.tls.is_some() {
        let diagnostic = Diagnostic::error(place, "TLS to endpoints needs network addresses");
        reader.push(diagnostic.label("this is a unix socket"));
    }
    balance::check(reader, place, &pool.algorithm, &all);
    for shadow in &pool.shadows {
        balance::check(reader, place, &shadow.algorithm, &all);
    }
    Some(joining)
}

/// Says when weights are to change all the time under an algorithm that would move clients by it.
fn takes_changing_weights(
    reader: &mut Reader<'_>,
    view: &View<'_>,
    key: &'static str,
    algorithm: &Algorithm,
) {
    let Some(entry) = view.entry(key) else { return };
    let Err(error) = algorithm.require_changing_weights() else { return };
    let message = format!("`{key}` does not go with {}", error.name);
    let mut diagnostic = Diagnostic::error(entry.key_span, message).label(error.to_string());
    if let Some(balance) = view.node("balance") {
        diagnostic = diagnostic.related(balance.span, "the algorithm");
    }
    // Somebody who wants clients to stay where they are wants another of those.
    let mut others = catalogue::all().iter().map(|listing| (listing.name, listing.algorithm()));
    let other = others
        .find(|(_, other)| other.takes_changing_weights() && other.traits().share == Share::ByKey);
    let help = other.map(|(name, _)| format!("{name} keeps clients in place while weights change"));
    reader.push(diagnostic.maybe_help(help));
}

fn on_all_down(reader: &mut Reader<'_>, view: &View<'_>, endpoints: &endpoint::Read) -> OnAllDown {
    let wanted = match view.string("on_all_down") {
        Some("fail_closed") => OnAllDown::FailClosed,
        Some("backup_only") => OnAllDown::BackupOnly,
        _ => OnAllDown::FailOpen,
    };
    if let (Some(node), OnAllDown::BackupOnly) = (view.node("on_all_down"), wanted)
        && endpoints.complete
        && !endpoints.endpoints.iter().any(|endpoint| endpoint.backup)
        && !endpoints.names.iter().any(may_have_backups)
    {
        let diagnostic = Diagnostic::error(node.span, "this pool has no backup");
        reader.push(
            diagnostic
                .label("expected an endpoint with `backup = true`")
                .help("without backups: \"fail_closed\"")
                .derived(),
        );
    }
    wanted
}

/// Whether some of what a name leads to may be backups: what SRV records say is not known yet.
fn may_have_backups(by_name: &ByName) -> bool {
    by_name.backup || matches!(by_name.origin, Origin::Service(_))
}

fn retry(reader: &mut Reader<'_>, view: &View<'_>) -> Retry {
    let share = view.node("budget").and_then(|node| shape::ratio(&node.value));
    let attempts = view.number("attempts").unwrap_or(u64::from(defaults::RETRY_ATTEMPTS));
    let per_second = view.number("min_per_second").and_then(convert);
    Retry {
        budget_per_mille: share
            .map_or(defaults::RETRY_BUDGET_PER_MILLE, |share| (share * 1000.0).round() as u32),
        min_per_second: per_second.unwrap_or(defaults::RETRY_MIN_PER_SECOND),
        attempts: convert(attempts).unwrap_or(NonZeroU32::MIN),
        on: retry_on(reader, view),
        body_bytes: view.size("body").and_then(convert).unwrap_or(defaults::RETRY_BODY_BYTES),
    }
}

fn retry_on(reader: &mut Reader<'_>, view: &View<'_>) -> RetryOn {
    if view.node("on").is_none() {
        return RetryOn { connect: true, reset: true, timeout: true, ..RetryOn::default() };
    }
    let mut on = RetryOn::default();
    for item in view.items("on") {
        match &item.value {
            Value::String(text) => match &**text {
                "connect" => on.connect = true,
                "reset" => on.reset = true,
                "timeout" => on.timeout = true,
                status => match status.strip_prefix("grpc:") {
                    Some(code) => {
                        let code = reader.take(item, grpc_code(code, "grpc:".len()));
                        on.grpc = code.map_or(on.grpc, |code| on.grpc.with(code));
                    }
                    None => on.statuses.extend(reader.take(item, retry_status(status))),
                },
            },
            Value::Integer(status) => on.statuses.extend(u16::try_from(*status)),
            _ => {}
        }
    }
    on.statuses.sort_unstable();
    on.statuses.dedup();
    on
}

/// A status of an endpoint that failed.
fn retry_status(text: &str) -> Result<u16, Problem> {
    let status = (text.len() == 3).then(|| text.parse::<u16>().ok()).flatten();
    status.filter(|status| (500..600).contains(status)).ok_or_else(|| {
        let near = nearest(text, ["connect", "reset", "timeout"]);
        let expected = "expected \"connect\", \"reset\", \"timeout\", a status from 500 to 599 or one of gRPC such as \"grpc:unavailable\"";
        Problem::expected("this is nothing a request is retried on", expected)
            .maybe_help(near.map(|near| format!("did you mean \"{near}\"?")))
    })
}

/// A status of gRPC; `at` is where its name begins in what was written.
pub(super) fn grpc_code(name: &str, at: usize) -> Result<Code, Problem> {
    let code = Code::by_name(name).filter(|code| *code != Code::Ok);
    code.ok_or_else(|| {
        let near = nearest(name, Code::ALL.map(Code::name).into_iter().skip(1));
        let expected = "expected one such as \"unavailable\" or \"resource_exhausted\"";
        Problem::expected("this is no status of a gRPC call that failed", expected)
            .at(at..at + name.len())
            .maybe_help(near.map(|near| format!("did you mean \"{near}\"?")))
    })
}

fn back_off(reader: &mut Reader<'_>, view: &View<'_>) -> BackOff {
    let table = view.table("back_off", &BACK_OFF);
    let short = view.string("back_off").and_then(|text| scalar::duration(text).ok());
    let initial = short.unwrap_or_else(|| table.duration("initial", defaults::BACK_OFF_INITIAL));
    // Who asks for a long first back-off and says nothing of the longest means at least that one.
    let max = table.duration("max", defaults::BACK_OFF_MAX.max(initial));
    if let (Some(node), true) = (table.node("max"), max < initial) {
        let initial_span = table.node("initial").map(|node| node.span);
        let mut diagnostic = Diagnostic::error(node.span, "`max` is below `initial`")
            .label(format!("expected at least {}", scalar::show_duration(initial)));
        if let Some(span) = initial_span {
            diagnostic = diagnostic.related(span, "the first back-off");
        }
        reader.push(diagnostic);
    }
    BackOff { initial, max: max.max(initial) }
}

/// The Host that endpoints see.
pub(super) fn host(text: &str) -> Result<HostForward, Problem> {
    match text {
        "preserve" => return Ok(HostForward::Preserve),
        "endpoint" => return Ok(HostForward::Endpoint),
        _ => {}
    }
    let (name, port) = match text.rsplit_once(':') {
        Some((name, port)) if !text.ends_with(']') => (name, Some(port)),
        _ => (text, None),
    };
    let port_fits = port.is_none_or(|port| {
        !port.is_empty()
            && port.bytes().all(|byte| byte.is_ascii_digit())
            && port.parse::<u16>().is_ok()
    });
    match pattern::host(name) {
        Ok(HostPattern::Exact(_)) if port_fits => headers::value(text).map(HostForward::Literal),
        _ => {
            let near = nearest(text, ["preserve", "endpoint"]);
            Err(Problem::expected(
                "this is no host",
                "expected \"preserve\", \"endpoint\" or a host such as \"app.internal\"",
            )
            .maybe_help(near.map(|near| format!("did you mean \"{near}\"?"))))
        }
    }
}
