//! `[listener.NAME]`.

use subak_message::EncodedSlashes;

use super::limits as too_much;
use super::{
    Reader, View, access_log, convert, http2, https, proxy_protocol, route, size, split, tls,
    trusted_proxies,
};
use crate::address;
use crate::defaults;
use crate::diagnostic::{Diagnostic, Span};
use crate::headers::{self, Direction};
use crate::model::{
    AccessLog, ForwardPath, ForwardedHeaders, Listener, ListenerLimits, ListenerTimeouts, MinRate,
    Name, PathPolicy, Protocols, Route,
};
use crate::tree::{Entry, Value};
use crate::vocabulary::{FORWARDED, LIMITS, LISTENER, LISTENER_TIMEOUTS, PATH_POLICY, RATE};

/// A listener, and where its parts stand.
pub(crate) struct Read {
    pub(crate) listener: Listener,
    /// One for each of `listener.bind`.
    pub(crate) bind_spans: Vec<Span>,
}

pub(crate) fn read(
    reader: &mut Reader<'_>,
    entry: &Entry,
    pools: &[Name],
    access_logs: &[AccessLog],
) -> Read {
    let view = View::of(&entry.node, &LISTENER);
    let mut bind = Vec::new();
    let mut bind_spans = Vec::new();
    for item in view.one_or_many("bind") {
        for address in reader.text(item, address::bind).into_iter().flatten() {
            bind.push(address);
            bind_spans.push(item.span);
        }
    }
    let path = view.table("path", &PATH_POLICY);
    let path = PathPolicy {
        merge_slashes: path.boolean("merge_slashes", true),
        encoded_slashes: match view.string("encoded_slashes") {
            Some("keep") => EncodedSlashes::Keep,
            Some("decode") => EncodedSlashes::Decode,
            _ => EncodedSlashes::Refuse,
        },
        forward: match path.string("forward") {
            Some("normalized") => ForwardPath::Normalized,
            _ => ForwardPath::Original,
        },
    };
    let forwarded = view.table("forwarded_headers", &FORWARDED);
    let mut listener = Listener {
        name: Name::from(&*entry.key),
        bind,
        tls: view.node("tls").map(|node| tls::read(reader, node)),
        protocols: protocols(reader, &view),
        half_close: view.boolean("half_close", false),
        access_logs: access_log::read(reader, &view, access_logs),
        proxy_protocol: proxy_protocol::accepted(reader, &view),
        trusted_proxies: trusted_proxies::read(reader, &view),
        timeouts: timeouts(&view.table("timeouts", &LISTENER_TIMEOUTS)),
        min_rate: min_rate(&view),
        http2: http2::read(&view),
        limits: limits(reader, &view.table("limits", &LIMITS)),
        rates: too_much::rates(reader, &view),
        in_flight: too_much::in_flight(reader, &view.table("limits", &LIMITS)),
        access: too_much::access(reader, &view),
        path,
        allow_trace: view.boolean("allow_trace", false),
        decision_header: view
            .node("decision_header")
            .and_then(|node| reader.text(node, |text| headers::name(text, Direction::Response))),
        request_headers: reader.header_edits(&view, Direction::Request),
        response_headers: reader.header_edits(&view, Direction::Response),
        forwarded_headers: ForwardedHeaders {
            x_forwarded: forwarded.boolean("x_forwarded", true),
            forwarded: forwarded.boolean("forwarded", false),
        },
        error_pages: reader.error_pages(&view),
        routes: route::read_all(reader, view.items("route"), pools, path.rules()),
        pool: view.node("pool").and_then(|node| reader.pool_name(node, pools)),
        split: view.node("split").and_then(|node| split::read(reader, node, pools)),
    };
    if let (Some(node), Some(tls)) = (view.node("tls"), &listener.tls) {
        tls::hosts(reader, node, tls, &listener.routes);
    }
    listener.response_headers.set.extend(https::hsts(reader, &view));
    if let Some(redirect) = https::redirect(reader, &view) {
        listener.routes.insert(0, redirect);
    }
    unreachable_pool(reader, &view, &listener);
    too_much::names_are_unique(reader, entry.key_span, &listener);
    Read { listener, bind_spans }
}

/// Says when a route leaves nothing to the listener's own pool.
fn unreachable_pool(reader: &mut Reader<'_>, view: &View<'_>, listener: &Listener) {
    let takes_all = |route: &Route| route.hosts.is_empty() && route.takes_every_path();
    if let Some(entry) = view.entry("pool").or_else(|| view.entry("split"))
        && listener.routes.iter().any(takes_all)
    {
        let warning = Diagnostic::warning(entry.key_span, "no request reaches this pool from here");
        reader.push(warning.label("a route of this listener takes every request").derived());
    }
}

fn protocols(reader: &mut Reader<'_>, view: &View<'_>) -> Protocols {
    let Some(node) = view.node("protocols") else {
        return Protocols { http1: true, http2: true };
    };
    let items = view.items("protocols");
    let has = |name: &str| {
        items.iter().any(|item| matches!(&item.value, Value::String(text) if text == name))
    };
    if let Value::Array(items) = &node.value
        && items.is_empty()
    {
        let diagnostic = Diagnostic::error(node.span, "no protocol is left");
        reader.push(diagnostic.label("expected \"h2\" or \"http/1.1\", or both"));
    }
    Protocols { http1: has("http/1.1"), http2: has("h2") }
}

fn timeouts(view: &View<'_>) -> ListenerTimeouts {
    ListenerTimeouts {
        head: view.duration("head", defaults::HEAD_TIMEOUT),
        body_idle: view.duration("body_idle", defaults::BODY_IDLE_TIMEOUT),
        keep_alive: view.duration("keep_alive", defaults::CLIENT_KEEP_ALIVE_TIMEOUT),
        write_idle: view.duration("write_idle", defaults::WRITE_IDLE_TIMEOUT),
    }
}

fn min_rate(view: &View<'_>) -> Option<MinRate> {
    let table = view.table("min_rate", &RATE);
    let short = view.node("min_rate").and_then(size);
    let bytes_per_second = short.or_else(|| table.size("rate")).unwrap_or(defaults::MIN_RATE);
    let grace = table.duration("grace", defaults::MIN_RATE_GRACE);
    (bytes_per_second > 0).then_some(MinRate { bytes_per_second, grace })
}

fn limits(reader: &mut Reader<'_>, view: &View<'_>) -> ListenerLimits {
    let requests = view.or_unlimited("requests_per_connection");
    let requests = requests.unwrap_or(Some(u64::from(defaults::REQUESTS_PER_CONNECTION)));
    ListenerLimits {
        head_bytes: view.size("head").and_then(convert).unwrap_or(defaults::HEAD_BYTES),
        fields: view.number("fields").and_then(convert).unwrap_or(defaults::FIELDS),
        requests_per_connection: requests.and_then(convert),
        body_bytes: view.or_unlimited("body").flatten(),
        connections: view.or_unlimited("connections").flatten().and_then(convert),
        per_client: too_much::per_client(reader, view),
        target_bytes: view.size("target").and_then(convert),
    }
}
