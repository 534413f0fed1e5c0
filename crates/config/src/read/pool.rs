//! `[pool.NAME]`.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::Arc;

use subak_base::Weight;

use super::{Reader, View, balance, convert};
use crate::address::{self, Address};
use crate::defaults;
use crate::diagnostic::{Diagnostic, Span};
use crate::headers::{self, Direction};
use crate::keys::Kind;
use crate::model::{
    BackOff, Endpoint, HostForward, Name, Pool, PoolTimeouts, Queue, Retry, RetryOn,
};
use crate::pattern::{self, HostPattern};
use crate::problem::Problem;
use crate::scalar;
use crate::shape::{self, expected};
use crate::suggest::{later, nearest};
use crate::tree::{Entry, Node, Value};
use crate::vocabulary::{BACK_OFF, ENDPOINT, POOL, POOL_TIMEOUTS, QUEUE, RETRY};

pub(crate) fn read(reader: &mut Reader<'_>, entry: &Entry) -> Pool {
    let view = View::of(&entry.node, &POOL);
    let timeouts = view.table("timeouts", &POOL_TIMEOUTS);
    let queue = view.table("queue", &QUEUE);
    let idle = view.number("keep_alive_connections").and_then(convert);
    let algorithm = balance::read(reader, view.node("balance"));
    let endpoints = endpoints(reader, &view);
    let place = view.node("balance").map_or(entry.key_span, |node| node.span);
    balance::check(reader, place, &algorithm, &endpoints);
    Pool {
        name: Name::from(&*entry.key),
        algorithm,
        endpoints,
        timeouts: PoolTimeouts {
            connect: timeouts.duration("connect", defaults::CONNECT_TIMEOUT),
            first_byte: timeouts.duration("first_byte", defaults::FIRST_BYTE_TIMEOUT),
            idle: timeouts.duration("idle", defaults::IDLE_TIMEOUT),
            tunnel: timeouts.duration("tunnel", defaults::TUNNEL_TIMEOUT),
            keep_alive: timeouts.duration("keep_alive", defaults::ENDPOINT_KEEP_ALIVE_TIMEOUT),
        },
        keep_alive_connections: idle.unwrap_or(defaults::KEEP_ALIVE_CONNECTIONS),
        queue: Queue {
            length: queue.number("length").and_then(convert).unwrap_or(defaults::QUEUE_LENGTH),
            timeout: queue.duration("timeout", defaults::QUEUE_TIMEOUT),
        },
        retry: retry(reader, &view.table("retry", &RETRY)),
        back_off: back_off(reader, &view),
        request_headers: reader.header_edits(&view, Direction::Request),
        response_headers: reader.header_edits(&view, Direction::Response),
        host: view
            .node("host")
            .and_then(|node| reader.text(node, host))
            .unwrap_or(HostForward::Preserve),
    }
}

fn endpoints(reader: &mut Reader<'_>, view: &View<'_>) -> Vec<Endpoint> {
    let Some(node) = view.node("endpoints") else { return Vec::new() };
    let Value::Array(items) = &node.value else { return Vec::new() };
    let caps = Caps {
        max_in_flight: view.number("max_in_flight").and_then(convert),
        max_connections: view.number("max_connections").and_then(convert),
    };
    if items.is_empty() {
        let warning = Diagnostic::warning(node.span, "this pool has no endpoint");
        reader.push(warning.label("every request is answered 503"));
    }
    if items.len() > defaults::MAX_ENDPOINTS {
        let message = format!("a pool has at most {} endpoints", defaults::MAX_ENDPOINTS);
        reader.push(Diagnostic::error(node.span, message));
    }
    let mut endpoints: Vec<Endpoint> = Vec::new();
    let mut places: HashMap<Address, Span> = HashMap::new();
    for item in items {
        let endpoint = match &item.value {
            Value::String(text) => short_endpoint(reader, item, text, &caps),
            Value::Table(_) => long_endpoint(reader, item, &caps),
            _ => None,
        };
        let Some(endpoint) = endpoint else { continue };
        if let Some(first) = places.get(&endpoint.address) {
            let message = format!("the endpoint {} is listed twice", endpoint.address);
            reader.push(
                Diagnostic::error(item.span, message)
                    .label("the same address again")
                    .related(*first, "first here")
                    .help("to give an endpoint more, raise its weight"),
            );
            continue;
        }
        places.insert(endpoint.address.clone(), item.span);
        endpoints.push(endpoint);
    }
    if !endpoints.is_empty() && endpoints.iter().all(|endpoint| endpoint.weight == Weight::ZERO) {
        let warning = Diagnostic::warning(node.span, "every endpoint has weight 0");
        reader.push(warning.label("every request is answered 503").derived());
    }
    endpoints
}

/// What holds for an endpoint that says nothing itself.
struct Caps {
    max_in_flight: Option<NonZeroU32>,
    max_connections: Option<NonZeroU32>,
}

fn long_endpoint(reader: &mut Reader<'_>, item: &Node, caps: &Caps) -> Option<Endpoint> {
    let view = View::of(item, &ENDPOINT);
    let node = view.node("address")?;
    let address = reader.text(node, address::endpoint)?;
    Some(Endpoint {
        name: Arc::from(view.string("address")?),
        address,
        weight: view.number("weight").and_then(convert).map_or(Weight::ONE, Weight),
        max_in_flight: view.number("max_in_flight").and_then(convert).or(caps.max_in_flight),
        max_connections: view.number("max_connections").and_then(convert).or(caps.max_connections),
    })
}

/// `ADDRESS key=value …`, with the integer keys of the table form.
fn short_endpoint(
    reader: &mut Reader<'_>,
    item: &Node,
    text: &str,
    caps: &Caps,
) -> Option<Endpoint> {
    let mut words = words(text);
    let (at, name) = words.next().unwrap_or((0, ""));
    let address = address::endpoint(name).map_err(|problem| problem.shifted(at, name.len()));
    let address = reader.take(item, address);
    let mut given: Vec<(&str, u64)> = Vec::new();
    for (at, word) in words {
        let option = option(word).map_err(|problem| problem.shifted(at, word.len()));
        let Some((key, value)) = reader.take(item, option) else { continue };
        if given.iter().any(|(known, _)| *known == key) {
            let problem = Problem::new(format!("`{key}` is given twice")).at(at..at + word.len());
            reader.take::<()>(item, Err(problem));
        }
        given.push((key, value));
    }
    let value = |key: &str| given.iter().find(|(known, _)| *known == key).map(|(_, value)| *value);
    Some(Endpoint {
        name: Arc::from(name),
        address: address?,
        weight: value("weight").and_then(convert).map_or(Weight::ONE, Weight),
        max_in_flight: value("max_in_flight").and_then(convert).or(caps.max_in_flight),
        max_connections: value("max_connections").and_then(convert).or(caps.max_connections),
    })
}

/// The words of a text, each with where it begins.
fn words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let begin = text.as_ptr() as usize;
    text.split_ascii_whitespace().map(move |word| (word.as_ptr() as usize - begin, word))
}

/// One `key=value`, checked against the declaration of the table form.
fn option(word: &str) -> Result<(&'static str, u64), Problem> {
    let (name, value) = word.split_once('=').unwrap_or((word, ""));
    let integers = || ENDPOINT.keys.iter().filter(|key| matches!(key.kind, Kind::Integer { .. }));
    let Some(key) = integers().find(|key| key.name == name) else {
        if let Some(about) = later(name, ENDPOINT.path) {
            return Err(Problem::new(format!("`{name}` is not available in this version")).help(
                format!("{about}: this version does not have that yet; leave the option out"),
            ));
        }
        let names: Vec<&str> = integers().map(|key| key.name).collect();
        let help = match (name, nearest(name, names.iter().copied())) {
            ("max_conns" | "maxconn", _) => "did you mean `max_connections`?".to_string(),
            (_, Some(near)) => format!("did you mean `{near}`?"),
            (_, None) => format!("known here: {}", names.join(", ")),
        };
        let problem = Problem::expected(
            format!("unknown option `{name}`"),
            "expected an option of an endpoint",
        );
        return Err(problem.at(0..name.len()).help(help));
    };
    let range = match key.kind {
        Kind::Integer { min, max } => min..=max,
        _ => 0..=0,
    };
    let number = value
        .bytes()
        .all(|byte| byte.is_ascii_digit())
        .then(|| value.parse::<i64>().ok())
        .flatten();
    match number.filter(|number| range.contains(number)) {
        Some(number) => Ok((key.name, number.unsigned_abs())),
        None => {
            let message = format!("`{name}` does not know this value");
            let expected = format!("expected {name}= and {}", expected(&key.kind));
            Err(Problem::expected(message, expected))
        }
    }
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
        return RetryOn { connect: true, reset: true, timeout: true, statuses: Vec::new() };
    }
    let mut on = RetryOn { connect: false, reset: false, timeout: false, statuses: Vec::new() };
    for item in view.items("on") {
        match &item.value {
            Value::String(text) => match &**text {
                "connect" => on.connect = true,
                "reset" => on.reset = true,
                "timeout" => on.timeout = true,
                status => on.statuses.extend(reader.take(item, retry_status(status))),
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
        let expected = "expected \"connect\", \"reset\", \"timeout\" or a status from 500 to 599";
        Problem::expected("this is nothing a request is retried on", expected)
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
fn host(text: &str) -> Result<HostForward, Problem> {
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
