//! `rate`, `in_flight`, `connections_per_client`, `allow` and `deny` of listeners and routes, `circuit` of
//! a pool.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use subak_limits::{CircuitSpec, Network, Networks, Rate};

use super::networks::network;
use super::{Reader, View, convert};
use crate::defaults::{self, MAX_LIMITS, MAX_RATE_PER_SECOND};
use crate::diagnostic::{Diagnostic, Span};
use crate::model::{
    ConnectionsPerClient, InFlight, LimitKey, Listener, Name, RateFields, RateLimit, RouteLimits,
};
use crate::problem::Problem;
use crate::tree::{Node, Value};
use crate::vocabulary::{CIRCUIT, CONNECTIONS_PER_CLIENT, IN_FLIGHT, RATE_LIMIT, ROUTE_LIMITS};

/// The limits of a route.
pub(super) fn of_route(reader: &mut Reader<'_>, view: &View<'_>) -> RouteLimits {
    let limits = view.table("limits", &ROUTE_LIMITS);
    RouteLimits {
        access: access(reader, view),
        body_bytes: limits.or_unlimited("body"),
        target_bytes: limits.size("target").and_then(convert),
        fields: limits.number("fields").and_then(convert),
        rates: rates(reader, view),
        in_flight: in_flight(reader, &limits),
    }
}

/// `allow` and `deny`.
pub(super) fn access(reader: &mut Reader<'_>, view: &View<'_>) -> Option<Networks> {
    let mut list = |key: &str| {
        let items = view.one_or_many(key).iter();
        let read = |node| Some((reader.text(node, network)?, node.span));
        items.filter_map(read).collect::<Vec<_>>()
    };
    let (allowed, denied) = (list("allow"), list("deny"));
    for (net, span) in &denied {
        if let Some((_, other)) = allowed.iter().find(|(allowed, _)| allowed == net) {
            let diagnostic = Diagnostic::error(*span, format!("{net} is both allowed and denied"));
            reader.push(diagnostic.label("denied here").related(*other, "allowed here"));
        }
    }
    let networks = |list: &[(ipnet::IpNet, _)]| {
        let one = |(net, _): &(ipnet::IpNet, _)| Network::new(net.network(), net.prefix_len());
        list.iter().map(one).collect::<Vec<_>>()
    };
    let is_any = !allowed.is_empty() || !denied.is_empty();
    is_any.then(|| Networks::new(&networks(&allowed), &networks(&denied)))
}

/// `rate`.
pub(super) fn rates(reader: &mut Reader<'_>, view: &View<'_>) -> Vec<RateLimit> {
    let items = view.one_or_many("rate");
    too_many(reader, items);
    items.iter().filter_map(|item| rate_limit(reader, item)).collect()
}

/// `in_flight`.
pub(super) fn in_flight(reader: &mut Reader<'_>, view: &View<'_>) -> Vec<InFlight> {
    let items = view.one_or_many("in_flight");
    too_many(reader, items);
    items.iter().filter_map(|item| in_flight_limit(reader, item)).collect()
}

/// Two limits of one name could not be told apart by who looks at them, nor by a reload.
pub(super) fn names_are_unique(reader: &mut Reader<'_>, place: Span, listener: &Listener) {
    let routes = || listener.routes.iter().map(|route| &route.limits);
    let rates = listener.rates.iter().chain(routes().flat_map(|limits| &limits.rates));
    let counts = listener.in_flight.iter().chain(routes().flat_map(|limits| &limits.in_flight));
    let names = rates.map(|limit| &limit.name).chain(counts.map(|limit| &limit.name));
    let mut names: Vec<&Name> = names.flatten().collect();
    names.sort();
    for pair in names.windows(2).filter(|pair| pair[0] == pair[1]) {
        let message = format!("two limits of this listener are called `{}`", pair[0]);
        reader.push(Diagnostic::error(place, message).help("give each a name of its own, or none"));
    }
}

fn too_many(reader: &mut Reader<'_>, items: &[Node]) {
    if let Some(item) = items.get(MAX_LIMITS) {
        let message = format!("there are more than {MAX_LIMITS} limits of a kind");
        let help = "put what concerns some requests only into their route";
        reader.push(Diagnostic::error(item.span, message).help(help));
    }
}

/// `connections_per_client`.
pub(super) fn per_client(reader: &mut Reader<'_>, view: &View<'_>) -> Option<ConnectionsPerClient> {
    let node = view.node("connections_per_client")?;
    let table = View::of(node, &CONNECTIONS_PER_CLIENT);
    let most = view.number("connections_per_client").or_else(|| table.number("most"))?;
    let LimitKey::Client { v4, v6 } = key(reader, &table, LimitKey::CLIENT)? else { return None };
    Some(ConnectionsPerClient { most: convert(most)?, v4, v6, entries: entries(&table) })
}

fn rate_limit(reader: &mut Reader<'_>, node: &Node) -> Option<RateLimit> {
    let view = View::of(node, &RATE_LIMIT);
    let text_node = if let Value::String(_) = node.value { node } else { view.node("rate")? };
    let (quota, window) = reader.text(text_node, rate)?;
    let Value::String(text) = &text_node.value else { return None };
    let burst = view.number("burst").and_then(convert).unwrap_or(quota);
    Some(RateLimit {
        name: name(&view),
        rate: Rate { quota, window, burst },
        text: Arc::from(&**text),
        key: key(reader, &view, LimitKey::CLIENT)?,
        status: view.number("status").and_then(convert).unwrap_or(defaults::RATE_STATUS),
        fields: match view.string("fields") {
            Some("always") => RateFields::Always,
            Some("never") => RateFields::Never,
            _ => RateFields::Refused,
        },
        dry_run: view.boolean("dry_run", false),
        entries: entries(&view),
    })
}

fn in_flight_limit(reader: &mut Reader<'_>, node: &Node) -> Option<InFlight> {
    let view = View::of(node, &IN_FLIGHT);
    let most = match &node.value {
        Value::Integer(number) => u64::try_from(*number).ok(),
        _ => view.number("most"),
    };
    let key = key(reader, &view, LimitKey::All)?;
    let status = if key == LimitKey::All { 503 } else { defaults::RATE_STATUS };
    Some(InFlight {
        name: name(&view),
        most: convert(most?)?,
        status: view.number("status").and_then(convert).unwrap_or(status),
        key,
        dry_run: view.boolean("dry_run", false),
        entries: entries(&view),
    })
}

fn name(view: &View<'_>) -> Option<Name> {
    view.string("name").map(Name::from)
}

fn entries(view: &View<'_>) -> usize {
    view.number("entries").and_then(convert).unwrap_or(defaults::LIMIT_ENTRIES)
}

fn key(reader: &mut Reader<'_>, view: &View<'_>, default: LimitKey) -> Option<LimitKey> {
    match view.node("key") {
        None => Some(default),
        Some(node) => reader.text(node, limit_key),
    }
}

/// `"100/s"`.
fn rate(text: &str) -> Result<(NonZeroU32, Duration), Problem> {
    let expected =
        "expected a number of requests and a time: \"100/s\", \"6000/m\", \"10/h\", \"50/d\"";
    let malformed = || Problem::expected("this is no rate", expected);
    let (number, unit) = text.split_once('/').ok_or_else(malformed)?;
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 86_400,
        _ => return Err(malformed()),
    };
    let quota = number.parse::<u32>().ok().and_then(NonZeroU32::new).ok_or_else(|| match number
        .parse::<u32>()
    {
        Ok(_) => malformed().help("to let nobody in: deny = [\"0.0.0.0/0\", \"::/0\"]"),
        Err(_) => malformed(),
    })?;
    if u64::from(quota.get()) > u64::from(MAX_RATE_PER_SECOND) * seconds {
        let message = format!("more than {MAX_RATE_PER_SECOND} requests a second are no limit");
        return Err(Problem::expected(message, expected));
    }
    Ok((quota, Duration::from_secs(seconds)))
}

/// `"client/24/56"`, `"header:X-Api-Key"`.
fn limit_key(text: &str) -> Result<LimitKey, Problem> {
    let expected = "expected \"client\", \"client/24/56\", \"header:NAME\", \"cookie:NAME\", \
                    \"query:NAME\", \"path\", \"host\" or \"all\"";
    let unknown = || Problem::expected("this names no key", expected);
    match text {
        "all" => return Ok(LimitKey::All),
        "path" => return Ok(LimitKey::Path),
        "host" => return Ok(LimitKey::Host),
        "client" => return Ok(LimitKey::CLIENT),
        _ => {}
    }
    if let Some(prefixes) = text.strip_prefix("client/") {
        let bits = |text: &str, most: u8| text.parse().ok().filter(|bits| *bits <= most);
        let pair = prefixes.split_once('/');
        let pair = pair.and_then(|(v4, v6)| Some((bits(v4, 32)?, bits(v6, 128)?)));
        let (v4, v6) = pair.ok_or_else(|| {
            unknown()
                .help("bits of IPv4 (at most 32), then of IPv6 (at most 128): \"client/24/56\"")
        })?;
        return Ok(LimitKey::Client { v4, v6 });
    }
    match text.split_once(':') {
        Some(("header", name)) if !name.is_empty() => Ok(LimitKey::Header(name.into())),
        Some(("cookie", name)) if !name.is_empty() => Ok(LimitKey::Cookie(name.into())),
        Some(("query", name)) if !name.is_empty() => Ok(LimitKey::Query(name.into())),
        _ => Err(unknown()),
    }
}

/// `circuit`.
pub(super) fn circuit(reader: &mut Reader<'_>, view: &View<'_>) -> Option<CircuitSpec> {
    let node = view.node("circuit")?;
    if let Value::Boolean(false) = node.value {
        return None;
    }
    let view = View::of(node, &CIRCUIT);
    let share = view.parts("share", 1000).unwrap_or(defaults::CIRCUIT_SHARE_PER_MILLE);
    let spec = CircuitSpec {
        consecutive: view.number("consecutive").and_then(convert),
        share_per_mille: (share > 0).then_some(share),
        window: view.duration("window", defaults::CIRCUIT_WINDOW),
        least: view.number("min_requests").and_then(convert).unwrap_or(defaults::CIRCUIT_LEAST),
        slow: view.node("slow").map(|_| view.duration("slow", defaults::CIRCUIT_WINDOW)),
        in_flight: view.number("max_in_flight").and_then(convert),
        open: view.duration("open", defaults::CIRCUIT_OPEN),
        trials: view.number("trials").and_then(convert).unwrap_or(defaults::CIRCUIT_TRIALS),
    };
    if (spec.consecutive, spec.share_per_mille, spec.in_flight) == (None, None, None) {
        let diagnostic = Diagnostic::error(node.span, "nothing is left that opens this circuit");
        let diagnostic = diagnostic.label("expected `share`, `consecutive` or `max_in_flight`");
        reader.push(diagnostic.help("without a circuit: circuit = false"));
    }
    Some(spec)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_have_a_number_and_a_unit() {
        for (text, quota, seconds) in
            [("100/s", 100, 1), ("6000/m", 6000, 60), ("1/h", 1, 3600), ("5/d", 5, 86_400)]
        {
            let (read, window) = rate(text).expect(text);
            assert_eq!((read.get(), window), (quota, Duration::from_secs(seconds)), "{text}");
        }
        for text in
            ["", "100", "0/s", "/s", "100/", "1.5/s", "-1/s", "100/S", "100/ms", "1000001/s"]
        {
            assert!(rate(text).is_err(), "{text}");
        }
    }

    #[test]
    fn keys_are_written_as_they_are_read() {
        let all = ["all", "client", "client/24/56", "client/0/0", "path", "host", "header:X-Key"];
        for text in all.into_iter().chain(["cookie:id", "query:token", "client/32/128"]) {
            assert_eq!(limit_key(text).map(|key| key.to_string()), Ok(text.to_owned()));
        }
        for text in ["", "Client", "client/24", "client/33/64", "client/24/129", "header:", "user"]
        {
            assert!(limit_key(text).is_err(), "{text}");
        }
    }
}
