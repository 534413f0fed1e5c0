//! `hsts` and `redirect_to_https` of a listener: a field of every answer, and a route before all others.

use super::{Reader, View, convert};
use crate::condition::{Condition, Test};
use crate::diagnostic::Diagnostic;
use crate::headers::{HeaderEdits, HeaderName, HeaderValue};
use crate::model::{Action, ErrorPages, Redirect, Route};
use crate::pattern::PathPattern;
use crate::scalar;
use crate::template::{Part, Template, Variable};
use crate::tree::Value;
use crate::vocabulary::{HSTS, HTTPS_REDIRECT};

const FIELD: &str = "Strict-Transport-Security";
/// Statuses that say where to go for the same thing.
const STATUSES: [u64; 4] = [301, 302, 307, 308];
/// Where authorities look for answers to their challenges (RFC 8555, 8.3): by HTTP without TLS.
const CHALLENGES: &str = "/.well-known/acme-challenge/";
const HTTPS: u16 = 443;

/// The field that `hsts` sets.
pub(super) fn hsts(
    reader: &mut Reader<'_>,
    listener: &View<'_>,
) -> Option<(HeaderName, HeaderValue)> {
    let node = listener.node("hsts")?;
    if listener.node("tls").is_none() {
        let diagnostic = Diagnostic::error(node.span, "`hsts` goes with `tls` only");
        let diagnostic = diagnostic.label("browsers ignore it where they come without TLS");
        reader.push(diagnostic.help("put it on the listener that has `tls`"));
    }
    let own = listener.table("response_headers", &crate::vocabulary::HEADERS);
    if let Some(entry) =
        own.entries_of("set").iter().find(|entry| entry.key.eq_ignore_ascii_case(FIELD))
    {
        let diagnostic = Diagnostic::error(entry.key_span, format!("{FIELD} is set twice"));
        reader.push(diagnostic.label("here").related(node.span, "and by `hsts`"));
    }
    let table = View::of(node, &HSTS);
    let max_age = match &node.value {
        Value::String(text) => scalar::any_duration(text).ok(),
        _ => table.string("max_age").and_then(|text| scalar::any_duration(text).ok()),
    };
    let mut value = format!("max-age={}", max_age?.as_secs());
    for (key, word) in [("include_subdomains", "; includeSubDomains"), ("preload", "; preload")] {
        value.push_str(if table.boolean(key, false) { word } else { "" });
    }
    Some((HeaderName::of(FIELD), HeaderValue::of(&value)))
}

/// The route that `redirect_to_https` stands for. It does not take challenges of ACME.
pub(super) fn redirect(reader: &mut Reader<'_>, listener: &View<'_>) -> Option<Route> {
    let node = listener.node("redirect_to_https")?;
    let table = View::of(node, &HTTPS_REDIRECT);
    let port = match &node.value {
        Value::Boolean(false) => return None,
        Value::Integer(port) => u16::try_from(*port).ok(),
        _ => table.number("port").and_then(convert),
    };
    if listener.node("tls").is_some() {
        let message = "`redirect_to_https` goes without `tls` only";
        let diagnostic = Diagnostic::error(node.span, message);
        reader.push(diagnostic.label("who comes here comes by HTTPS already"));
    }
    let status = table.number("status").unwrap_or(308);
    if let Some(node) = table.node("status").filter(|_| !STATUSES.contains(&status)) {
        let diagnostic = Diagnostic::error(node.span, "this status is for something else");
        reader.push(diagnostic.label("expected 301, 302, 307 or 308"));
    }
    let mut parts = vec![Part::Text("https://".into()), Part::Variable(Variable::Host)];
    if let Some(port) = port.filter(|port| *port != HTTPS) {
        parts.push(Part::Text(format!(":{port}").into()));
    }
    parts.push(Part::Variable(Variable::PathAndQuery));
    let challenges = Test::Path(PathPattern::Prefix(CHALLENGES.into()));
    Some(Route {
        hosts: Vec::new(),
        path: PathPattern::Any,
        conditions: vec![Condition { negated: true, test: challenges }],
        action: Action::Redirect(Redirect { to: Template { parts }, status: convert(status)? }),
        rewrite: None,
        request_headers: HeaderEdits::default(),
        response_headers: HeaderEdits::default(),
        error_pages: ErrorPages::default(),
        limits: Default::default(),
    })
}
