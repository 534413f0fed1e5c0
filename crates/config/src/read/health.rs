//! `health` and `agent_check` of a pool: who asks an endpoint whether it is well, how, and when.

use std::num::NonZeroU16;
use std::sync::Arc;

use subak_health::{AgentSpec, BODY_MAX, BodyMatch, BodyMatchError, Expect, ProbeSpec, StatusSet};

use subak_message::h1::parse_request;
use subak_message::proxy_header::Version;
use subak_message::{HeadLimits, Method, RequestHead, Scheme};

use super::{Reader, View, convert, endpoint, endpoint_tls, pool};
use crate::diagnostic::Diagnostic;
use crate::headers::HeaderValue;
use crate::model::{
    AgentCheck, Check, EndpointTls, GrpcCheck, HealthCheck, HostForward, HttpCheck, SendProxy,
};
use crate::problem::Problem;
use crate::scalar;
use crate::suggest::nearest;
use crate::tree::{Node, Value};
use crate::vocabulary::{AGENT_CHECK, HEALTH, HEALTH_BODY};

/// Keys of a check that has a request.
const HTTP_ONLY: &[&str] = &["method", "status", "body"];

/// Bytes of the name of a gRPC service.
const MAX_SERVICE_BYTES: usize = 256;

/// Bytes of a path to ask for.
const MAX_TARGET_BYTES: usize = 4096;

/// How requests go to the pool's endpoints; checks go the same way unless they say otherwise.
pub(super) struct Towards<'a> {
    pub(super) host: &'a HostForward,
    pub(super) tls: Option<&'a EndpointTls>,
    pub(super) proxy: Option<SendProxy>,
}

/// `health`.
pub(super) fn read(
    reader: &mut Reader<'_>,
    view: &View<'_>,
    towards: &Towards<'_>,
    endpoints: &endpoint::Read,
) -> Option<HealthCheck> {
    let node = view.node("health")?;
    let host = towards.host;
    let version = towards.proxy.map(|proxy| proxy.version);
    if let Value::String(_) = &node.value {
        let check = reader.text(node, short)?;
        let check = check.map_or(Check::Tcp, |target| Check::Http(plain(target, host)));
        return Some(HealthCheck {
            check,
            port: None,
            tls: towards.tls.cloned(),
            proxy_protocol: version,
            spec: ProbeSpec::default(),
        });
    }
    let view = View::of(node, &HEALTH);
    let spec = spec(reader, &view);
    if let Some(port) = view.node("port") {
        endpoints.have_ports(reader, port.span);
    }
    let check = if let Some(target) = view.node("http") {
        let target = reader.text(target, target_of)?;
        Check::Http(http(reader, &view, plain(target, host)))
    } else if let Some(service) = view.node("grpc") {
        reader.only_with(&view, HTTP_ONLY, "http");
        let service = reader.text(service, service_of)?;
        let own = view.node("host").and_then(|node| reader.text(node, host_of));
        Check::Grpc(GrpcCheck { service, host: own.unwrap_or_else(|| fixed(host)) })
    } else {
        reader.only_with(&view, HTTP_ONLY, "http");
        reader.only_with(&view, &["host"], "http");
        Check::Tcp
    };
    if let Some(node) = view.node("tcp")
        && !view.boolean("tcp", true)
    {
        let diagnostic = Diagnostic::error(node.span, "`tcp` can only be true");
        reader.push(diagnostic.label("expected true").help("leave the key out"));
    }
    let tls = tls(reader, &view, towards.tls, endpoints);
    let proxy_protocol = match view.boolean("proxy_protocol", version.is_some()) {
        true => Some(version.unwrap_or(Version::V2)),
        false => None,
    };
    let port = view.number("port").and_then(convert);
    Some(HealthCheck { check, port, tls, proxy_protocol, spec })
}

/// What the pool says, unless the check says something else.
fn tls(
    reader: &mut Reader<'_>,
    view: &View<'_>,
    of_pool: Option<&EndpointTls>,
    endpoints: &endpoint::Read,
) -> Option<EndpointTls> {
    if !view.boolean("tls", of_pool.is_some()) {
        reader.only_with(view, &["server_name"], "tls");
        return None;
    }
    if let Some(node) = view.node("tls") {
        endpoints.are_no_sockets(reader, node.span, "TLS to endpoints needs network addresses");
    }
    let mut tls = of_pool.cloned().unwrap_or_default();
    let node = view.node("server_name");
    if let Some(name) = node.and_then(|node| reader.text(node, endpoint_tls::server_name)) {
        tls.server_name = Some(name);
    }
    Some(tls)
}

/// `agent_check`.
pub(super) fn agent_check(
    reader: &mut Reader<'_>,
    view: &View<'_>,
    endpoints: &endpoint::Read,
) -> Option<AgentCheck> {
    let node = view.node("agent_check")?;
    let table = View::of(node, &AGENT_CHECK);
    let port_node = if let Value::Integer(_) = node.value { node } else { table.node("port")? };
    let port = view.number("agent_check").or_else(|| table.number("port"));
    let port: NonZeroU16 = port.and_then(convert)?;
    endpoints.have_ports(reader, port_node.span);
    endpoints.own_no_port(reader, port_node, port, "the port of the agents");
    let default = AgentSpec::default();
    let interval = table.duration("interval", default.interval);
    let timeout = table.duration("timeout", default.timeout.min(interval));
    reader.at_most(&table, ("timeout", timeout), ("interval", interval));
    let jitter = table.parts("jitter", 1000);
    let jitter_per_mille = jitter.unwrap_or(default.jitter_per_mille);
    Some(AgentCheck { port, spec: AgentSpec { interval, timeout, jitter_per_mille } })
}

/// A path, or nothing for `tcp`.
fn short(text: &str) -> Result<Option<Arc<str>>, Problem> {
    if text == "tcp" {
        return Ok(None);
    }
    if text.starts_with('/') {
        return target_of(text).map(Some);
    }
    let help = match nearest(text, ["tcp"]) {
        Some(near) => format!("did you mean \"{near}\"?"),
        None if text == "http" => "say which path to ask for, such as \"/healthz\"".to_string(),
        None => format!("did you mean \"/{text}\"?"),
    };
    let expected = "expected \"tcp\", or a path to ask for such as \"/healthz\"";
    Err(Problem::expected("this is no health check", expected).help(help))
}

/// Path and query of a request.
fn target_of(text: &str) -> Result<Arc<str>, Problem> {
    if !text.starts_with('/') {
        let problem = Problem::expected("this is no path", "expected one such as \"/healthz\"");
        return Err(match text.split_once("://") {
            Some((_, rest)) => {
                let path = rest.find('/').map_or("/", |at| &rest[at..]);
                problem.help(format!("without the host: \"{path}\""))
            }
            None => problem.help(format!("paths begin with a slash: \"/{text}\"")),
        });
    }
    let odd = |character: char| !character.is_ascii_graphic() || character == '#';
    if let Some((at, character)) = text.char_indices().find(|(_, character)| odd(*character)) {
        let expected = "expected visible ASCII characters without #";
        let problem = Problem::expected("this cannot be sent in a path", expected);
        return Err(problem
            .at(at..at + character.len_utf8())
            .help("percent-encode it: a space is %20"));
    }
    if text.len() > MAX_TARGET_BYTES {
        let message = format!("a path to ask for has at most {MAX_TARGET_BYTES} bytes");
        return Err(Problem::new(message));
    }
    // Subak sends nothing that it would refuse.
    let request = format!("GET {text} HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let mut head = RequestHead::new(Scheme::Http);
    match parse_request(request.as_bytes(), &HeadLimits::default(), &mut head) {
        Ok(_) => Ok(Arc::from(text)),
        Err(error) => {
            Err(Problem::expected("this cannot be sent in a path", error.fault.message()))
        }
    }
}

/// The request for `target`, everything else as it is by default.
fn plain(target: Arc<str>, host: &HostForward) -> HttpCheck {
    HttpCheck { method: Method::Get, target, host: fixed(host), expect: Expect::default() }
}

/// The Host that a pool always sends, if there is one.
fn fixed(host: &HostForward) -> Option<HeaderValue> {
    match host {
        HostForward::Literal(host) => Some(host.clone()),
        HostForward::Preserve | HostForward::Endpoint => None,
    }
}

/// The name of a gRPC service: `package.Service`.
fn service_of(text: &str) -> Result<Arc<str>, Problem> {
    let odd = |character: char| !character.is_ascii_graphic();
    if let Some((at, character)) = text.char_indices().find(|(_, character)| odd(*character)) {
        let expected = "expected one such as \"shop.Cart\", or \"\" for the server as a whole";
        let problem = Problem::expected("this is no name of a gRPC service", expected);
        return Err(problem.at(at..at + character.len_utf8()));
    }
    if text.len() > MAX_SERVICE_BYTES {
        let message = format!("the name of a service has at most {MAX_SERVICE_BYTES} bytes");
        return Err(Problem::new(message));
    }
    Ok(Arc::from(text))
}

fn http(reader: &mut Reader<'_>, view: &View<'_>, plain: HttpCheck) -> HttpCheck {
    let method = match view.string("method") {
        Some("HEAD") => Method::Head,
        Some("OPTIONS") => Method::Options,
        _ => plain.method,
    };
    let host = view.node("host").and_then(|node| reader.text(node, host_of));
    let body = view.node("body").and_then(|node| body(reader, node));
    if let (Some(node), Some(method_node), Method::Head) =
        (view.node("body"), view.node("method"), method)
    {
        let diagnostic = Diagnostic::error(node.span, "an answer to HEAD has no body");
        let diagnostic = diagnostic.label("nothing can be expected of it");
        reader.push(diagnostic.related(method_node.span, "the method").help("ask by \"GET\""));
    }
    let status = view.node("status").and_then(|node| status(reader, node));
    HttpCheck {
        method,
        target: plain.target,
        host: host.unwrap_or(plain.host),
        expect: Expect { status: status.unwrap_or_default(), body },
    }
}

/// The Host of a check: nothing for the endpoint's own.
fn host_of(text: &str) -> Result<Option<HeaderValue>, Problem> {
    match pool::host(text) {
        Ok(HostForward::Literal(host)) => Ok(Some(host)),
        Ok(HostForward::Endpoint) => Ok(None),
        Ok(HostForward::Preserve) => Err(Problem::expected(
            "there is no client whose Host could be preserved",
            "expected \"endpoint\" or a host such as \"app.internal\"",
        )),
        Err(problem) => Err(Problem {
            expected: "expected \"endpoint\" or a host such as \"app.internal\"".to_string(),
            ..problem
        }),
    }
}

fn status(reader: &mut Reader<'_>, node: &Node) -> Option<StatusSet> {
    if let Value::Integer(status) = &node.value {
        return status.to_string().parse().ok();
    }
    reader.text(node, |text| {
        text.parse().map_err(|error: subak_health::StatusSetError| {
            let problem = Problem::expected(
                error.problem.to_string(),
                "expected statuses such as \"200-399\" or \"2xx,304\"",
            );
            // Nothing to point at where a status is missing.
            if error.at.is_empty() { problem } else { problem.at(error.at) }
        })
    })
}

fn body(reader: &mut Reader<'_>, node: &Node) -> Option<BodyMatch> {
    let contains = |text: &str| BodyMatch::contains(text).map_err(|error| unfit(&error));
    let exact = |text: &str| BodyMatch::exact(text).map_err(|error| unfit(&error));
    if let Value::String(_) = &node.value {
        return reader.text(node, contains);
    }
    let view = View::of(node, &HEALTH_BODY);
    match (view.node("contains"), view.node("exact")) {
        (Some(node), _) => reader.text(node, contains),
        (None, Some(node)) => reader.text(node, exact),
        (None, None) => None,
    }
}

fn unfit(error: &BodyMatchError) -> Problem {
    let size = scalar::show_size(BODY_MAX as u64);
    let expected = format!("expected a text of 1 to {} bytes", subak_health::TEXT_MAX);
    let problem = Problem::expected(error.to_string(), expected);
    problem.help(format!("it is looked for in the first {size} of the body"))
}

fn spec(reader: &mut Reader<'_>, view: &View<'_>) -> ProbeSpec {
    let default = ProbeSpec::default();
    let interval = view.duration("interval", default.interval);
    // Who asks often and says nothing of the rest means that it fits.
    let fast_interval = view.duration("fast_interval", default.fast_interval.min(interval));
    let timeout = view.duration("timeout", default.timeout.min(interval));
    reader.at_most(view, ("fast_interval", fast_interval), ("interval", interval));
    reader.at_most(view, ("timeout", timeout), ("interval", interval));
    ProbeSpec {
        interval,
        fast_interval,
        timeout,
        rise: view.number("rise").and_then(convert).unwrap_or(default.rise),
        fall: view.number("fall").and_then(convert).unwrap_or(default.fall),
        jitter_per_mille: view.parts("jitter", 1000).unwrap_or(default.jitter_per_mille),
        assume_up: view.string("assume") != Some("down"),
    }
}
