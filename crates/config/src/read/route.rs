//! `[[listener.NAME.route]]`.

use bytes::Bytes;
use subak_message::PathRules;

use super::{Reader, View, convert, split};
use super::{condition, limits};
use crate::defaults;
use crate::diagnostic::{Diagnostic, Span};
use crate::headers::{self, Direction};
use crate::model::{Action, Name, Page, Redirect, Respond, Route};
use crate::pattern::{self, Extent, HostPattern, PathPattern};
use crate::rewrite::{self, Rewrite};
use crate::template;
use crate::tree::{Node, Value};
use crate::vocabulary::{PATH_MATCH, REDIRECT, RESPOND, REWRITE, ROUTE};

/// The statuses of a redirect that names a new place for the same or another request.
const REDIRECT_STATUSES: [u64; 5] = [301, 302, 303, 307, 308];

/// The routes of one listener. One that an earlier one leaves nothing to is an error.
pub(crate) fn read_all(
    reader: &mut Reader<'_>,
    items: &[Node],
    pools: &[Name],
    rules: PathRules,
) -> Vec<Route> {
    let mut routes: Vec<(Route, Span)> = Vec::new();
    if let Some(first) = items.get(defaults::MAX_ROUTES) {
        let message = format!("a listener has at most {} routes", defaults::MAX_ROUTES);
        reader.push(Diagnostic::error(first.span, message));
    }
    for item in items.iter().take(defaults::MAX_ROUTES) {
        let Some(route) = read(reader, item, pools, rules) else { continue };
        if let Some((earlier, span)) = routes.iter().find(|(earlier, _)| covers(earlier, &route)) {
            let message = if (&earlier.hosts, &earlier.path, &earlier.conditions)
                == (&route.hosts, &route.path, &route.conditions)
            {
                "this route can never match: an identical one comes before it"
            } else {
                "this route can never match: an earlier one takes all it could match"
            };
            reader.push(
                Diagnostic::error(item.span, message)
                    .related(*span, "this one is tried first")
                    .help("the first route that matches decides; put the more special one first"),
            );
        }
        routes.push((route, item.span));
    }
    routes.into_iter().map(|(route, _)| route).collect()
}

/// `None` when the route cannot be compared with others because part of it is wrong.
fn read(reader: &mut Reader<'_>, item: &Node, pools: &[Name], rules: PathRules) -> Option<Route> {
    let view = View::of(item, &ROUTE);
    let mut whole = true;
    let hosts = host_patterns(reader, &view, &mut whole);
    let conditions = condition::read_all(reader, &view, rules);
    let path = match view.node("path") {
        None => Some(PathPattern::Any),
        Some(node) => path(reader, node, rules),
    };
    let action = action(reader, &view, pools);
    let balances = view.entry("pool").or_else(|| view.entry("split")).is_some();
    if let (Some(entry), false) = (view.entry("request_headers"), balances) {
        let diagnostic =
            Diagnostic::warning(entry.key_span, "request headers of a route without a pool");
        reader.push(diagnostic.label("nothing is sent to an endpoint here").derived());
    }
    if !balances {
        reader.only_with(&view, &["strip_prefix", "rewrite"], "pool");
    }
    let rewrite = rewrite(reader, &view, rules);
    let request_headers = reader.header_edits(&view, Direction::Request);
    let response_headers = reader.header_edits(&view, Direction::Response);
    let error_pages = reader.error_pages(&view);
    let limits = limits::of_route(reader, &view);
    let (path, conditions, action) = (path?, conditions?, action?);
    whole.then_some(Route {
        hosts,
        path,
        conditions,
        action,
        rewrite,
        limits,
        request_headers,
        response_headers,
        error_pages,
    })
}

/// `host`. Leaves out what is wrong.
pub(super) fn host_patterns(
    reader: &mut Reader<'_>,
    view: &View<'_>,
    whole: &mut bool,
) -> Vec<HostPattern> {
    let mut hosts = Vec::new();
    for item in view.one_or_many("host") {
        match reader.text(item, pattern::host) {
            Some(host) => hosts.push(host),
            None => *whole = false,
        }
    }
    hosts
}

/// `path`.
pub(super) fn path(reader: &mut Reader<'_>, node: &Node, rules: PathRules) -> Option<PathPattern> {
    let mut literal =
        |node: &Node, extent| reader.text(node, |text| pattern::compared(text, extent, rules));
    if let Value::String(_) = &node.value {
        return literal(node, Extent::Prefix).map(PathPattern::Prefix);
    }
    let view = View::of(node, &PATH_MATCH);
    if let Some(node) = view.node("exact") {
        literal(node, Extent::Exact).map(PathPattern::Exact)
    } else if let Some(node) = view.node("prefix") {
        literal(node, Extent::Prefix).map(PathPattern::Prefix)
    } else {
        reader.text(view.node("regex")?, pattern::regex).map(PathPattern::Regex)
    }
}

fn action(reader: &mut Reader<'_>, view: &View<'_>, pools: &[Name]) -> Option<Action> {
    let pool = view.node("pool").and_then(|node| reader.pool_name(node, pools)).map(Action::Pool);
    let redirect =
        view.node("redirect").and_then(|node| redirect(reader, node)).map(Action::Redirect);
    let respond = view.node("respond").and_then(|node| respond(reader, node)).map(Action::Respond);
    let split = view.node("split").and_then(|node| split::read(reader, node, pools));
    pool.or(split.map(Action::Split)).or(redirect).or(respond)
}

/// `strip_prefix` or `rewrite`.
fn rewrite(reader: &mut Reader<'_>, view: &View<'_>, rules: PathRules) -> Option<Rewrite> {
    let prefix = |text: &str| rewrite::prefix(text, rules);
    if let Some(node) = view.node("strip_prefix") {
        return reader.text(node, prefix).map(Rewrite::Strip);
    }
    let view = View::of(view.node("rewrite")?, &REWRITE);
    let to = view.node("to")?;
    if let Some(node) = view.node("prefix") {
        let from = reader.text(node, prefix);
        let to = reader.text(to, |text| rewrite::prefix_to(text, rules));
        return Some(Rewrite::Prefix { prefix: from?, to: to? });
    }
    let expression = reader.text(view.node("regex")?, pattern::regex)?;
    let to = reader.text(to, |text| rewrite::replacement(text, &expression))?;
    Some(Rewrite::Regex { expression, to })
}

fn redirect(reader: &mut Reader<'_>, node: &Node) -> Option<Redirect> {
    if let Value::String(_) = &node.value {
        let to = reader.text(node, template::location)?;
        return Some(Redirect { to, status: defaults::REDIRECT_STATUS });
    }
    let view = View::of(node, &REDIRECT);
    let status = view.number("status").unwrap_or(u64::from(defaults::REDIRECT_STATUS));
    if let Some(node) = view.node("status")
        && (301..=308).contains(&status)
        && !REDIRECT_STATUSES.contains(&status)
    {
        let diagnostic = Diagnostic::error(node.span, format!("{status} is no redirect"));
        reader.push(diagnostic.label("expected 301, 302, 303, 307 or 308"));
    }
    let to = reader.text(view.node("to")?, template::location)?;
    Some(Redirect { to, status: convert(status)? })
}

fn respond(reader: &mut Reader<'_>, node: &Node) -> Option<Respond> {
    if let Value::Integer(status) = &node.value {
        return Some(Respond { status: u16::try_from(*status).ok()?, page: None });
    }
    let view = View::of(node, &RESPOND);
    let given = view.node("content_type").map(|node| reader.text(node, headers::media_type));
    let status = view.number("status").and_then(convert)?;
    let source = view.entry("body").or_else(|| view.entry("file"));
    if let (Some(entry), 204 | 205 | 304) = (source, status) {
        let diagnostic = Diagnostic::error(
            entry.key_span,
            format!("an answer with status {status} has no body"),
        );
        reader.push(diagnostic.help(format!("leave `{}` out, or answer 200", entry.key)));
        return None;
    }
    let page = match source {
        None => {
            if let Some(entry) = view.entry("content_type") {
                let diagnostic =
                    Diagnostic::error(entry.key_span, "there is no body whose type this could be");
                reader.push(diagnostic.label("expected `body` or `file` beside it"));
            }
            None
        }
        Some(entry) => match (&*entry.key, &entry.node.value) {
            ("body", Value::String(text)) if text.len() > defaults::MAX_PAGE_BYTES => {
                let diagnostic = Diagnostic::error(entry.node.span, "this body is too long");
                reader.push(diagnostic.label("expected at most 1 MiB"));
                None
            }
            ("body", Value::String(text)) => {
                let content_type = given
                    .flatten()
                    .unwrap_or_else(|| headers::HeaderValue::fixed("text/plain; charset=utf-8"));
                Some(Page { content_type, body: Bytes::copy_from_slice(text.as_bytes()) })
            }
            _ => Some(reader.page(&entry.node, given.flatten())?),
        },
    };
    Some(Respond { status, page })
}

/// Whether whatever matches `later` matches `earlier` too. False when that cannot be told.
fn covers(earlier: &Route, later: &Route) -> bool {
    let hosts = earlier.hosts.is_empty()
        || !later.hosts.is_empty()
            && later
                .hosts
                .iter()
                .all(|host| earlier.hosts.iter().any(|known| covers_host(known, host)));
    let conditions = earlier.conditions.iter().all(|one| later.conditions.contains(one));
    hosts && conditions && covers_path(&earlier.path, &later.path)
}

pub(super) fn covers_host(earlier: &HostPattern, later: &HostPattern) -> bool {
    match (earlier, later) {
        (HostPattern::Suffix(earlier), HostPattern::Suffix(later)) => later.ends_with(&**earlier),
        (_, HostPattern::Exact(host)) => earlier.matches(host.as_bytes()),
        (HostPattern::Exact(_), HostPattern::Suffix(_)) => false,
    }
}

fn covers_path(earlier: &PathPattern, later: &PathPattern) -> bool {
    match (earlier, later) {
        (PathPattern::Any, _) => true,
        (PathPattern::Prefix(earlier), PathPattern::Prefix(later)) => later.starts_with(&**earlier),
        (_, PathPattern::Exact(path)) => earlier.matches(path.as_bytes()),
        _ => earlier == later,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use subak_message::PathRules;

    use super::covers;
    use crate::headers::HeaderEdits;
    use crate::model::{Action, ErrorPages, Respond, Route, RouteLimits};
    use crate::pattern::{Extent, PathPattern, host, literal, regex};

    fn route(hosts: &[&str], path: PathPattern) -> Route {
        Route {
            hosts: hosts.iter().map(|text| host(text).unwrap()).collect(),
            path,
            conditions: Vec::new(),
            action: Action::Respond(Respond { status: 404, page: None }),
            rewrite: None,
            limits: RouteLimits::default(),
            request_headers: HeaderEdits::default(),
            response_headers: HeaderEdits::default(),
            error_pages: ErrorPages::default(),
        }
    }

    const PATHS: &[&str] = &["/", "/a", "/a/", "/a/b", "/ab", "/b"];

    fn path() -> impl Strategy<Value = PathPattern> {
        let text = prop::sample::select(PATHS);
        prop_oneof![
            Just(PathPattern::Any),
            text.clone().prop_map(|text| PathPattern::Exact(
                literal(text, Extent::Exact, PathRules::DEFAULT).unwrap()
            )),
            text.prop_map(|text| PathPattern::Prefix(
                literal(text, Extent::Prefix, PathRules::DEFAULT).unwrap()
            )),
            prop::sample::select(&["^/a", "b$"][..])
                .prop_map(|text| PathPattern::Regex(regex(text).unwrap())),
        ]
    }

    fn routes() -> impl Strategy<Value = Route> {
        let known = &["a.x", "b.a.x", "x", "*.x", "*.a.x"][..];
        (prop::collection::vec(prop::sample::select(known), 0..3), path())
            .prop_map(|(hosts, path)| route(&hosts, path))
    }

    fn matches(route: &Route, host: &str, path: &str) -> bool {
        let by_host =
            route.hosts.is_empty() || route.hosts.iter().any(|one| one.matches(host.as_bytes()));
        by_host && route.path.matches(path.as_bytes())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]
        #[test]
        fn whatever_a_covered_route_takes_the_earlier_one_takes(earlier in routes(), later in routes()) {
            if covers(&earlier, &later) {
                for host in ["x", "a.x", "b.a.x", "c.b.a.x", "y", "bad.x"] {
                    for path in PATHS.iter().chain(&["/a/b/c", "/abc", "*"]) {
                        let hidden = !matches(&later, host, path) || matches(&earlier, host, path);
                        prop_assert!(hidden, "{host} {path}");
                    }
                }
            }
        }
    }

    #[test]
    fn what_is_hidden_is_found() {
        let prefix =
            |text| PathPattern::Prefix(literal(text, Extent::Prefix, PathRules::DEFAULT).unwrap());
        let exact =
            |text| PathPattern::Exact(literal(text, Extent::Exact, PathRules::DEFAULT).unwrap());
        let expression = |text| PathPattern::Regex(regex(text).unwrap());
        for (earlier, later, hidden) in [
            (route(&[], PathPattern::Any), route(&["x"], prefix("/")), true),
            (route(&[], prefix("/a")), route(&["x"], exact("/ab")), true),
            (route(&[], prefix("/a/")), route(&["x"], exact("/a")), false),
            (route(&["*.x"], prefix("/")), route(&["a.x", "*.b.x"], prefix("/")), true),
            (route(&["*.x"], prefix("/")), route(&["a.x", "x"], prefix("/")), false),
            (route(&["x"], prefix("/")), route(&[], prefix("/")), false),
            (route(&["x"], prefix("/")), route(&["x"], PathPattern::Any), false),
            (route(&["x"], expression("^/a")), route(&["x"], expression("^/a")), true),
            (route(&["x"], expression("^/a")), route(&["x"], exact("/ab")), true),
            (route(&["x"], expression("^/a")), route(&["x"], prefix("/ab")), false),
        ] {
            assert_eq!(covers(&earlier, &later), hidden, "{earlier:?} {later:?}");
        }
    }
}
