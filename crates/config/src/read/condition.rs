//! `method`, `client`, `header`, `cookie`, `query` and `not` of a route.

use subak_message::PathRules;

use super::networks::networks;
use super::route::{host_patterns, path};
use super::{Reader, View, one_or_many};
use crate::condition::{Condition, Networks, Test, ValuePattern, ValueTest};
use crate::defaults::MAX_CONDITIONS;
use crate::diagnostic::Diagnostic;
use crate::headers::{self, HeaderName};
use crate::pattern;
use crate::problem::Problem;
use crate::tree::{Entry, Node, Value};
use crate::vocabulary::{ROUTE_NOT, VALUE_MATCH};

/// The longest method that a request may have.
const MAX_METHOD_BYTES: usize = 32;

/// All conditions of a route but its own `host` and `path`, in the order of the reference. `None`
/// when one of them is wrong.
pub(super) fn read_all(
    reader: &mut Reader<'_>,
    view: &View<'_>,
    rules: PathRules,
) -> Option<Vec<Condition>> {
    let mut whole = true;
    let mut tests = beside(reader, view, &mut whole);
    let mut conditions: Vec<Condition> =
        tests.drain(..).map(|test| Condition { negated: false, test }).collect();
    if let Some(node) = view.node("not") {
        let view = View::of(node, &ROUTE_NOT);
        let mut refused = Vec::new();
        let hosts = host_patterns(reader, &view, &mut whole);
        refused.extend((!hosts.is_empty()).then_some(Test::Host(hosts)));
        if let Some(node) = view.node("path") {
            match path(reader, node, rules) {
                Some(path) => refused.push(Test::Path(path)),
                None => whole = false,
            }
        }
        refused.append(&mut beside(reader, &view, &mut whole));
        conditions.extend(refused.into_iter().map(|test| Condition { negated: true, test }));
    }
    if conditions.len() > MAX_CONDITIONS
        && let Some(entry) = view.entries.first()
    {
        let message = format!("a route has at most {MAX_CONDITIONS} conditions");
        reader.push(Diagnostic::error(entry.key_span, message));
    }
    whole.then_some(conditions)
}

/// What `view` asks for besides host and path.
fn beside(reader: &mut Reader<'_>, view: &View<'_>, whole: &mut bool) -> Vec<Test> {
    let mut tests = Vec::new();
    let mut methods = Vec::new();
    for item in view.one_or_many("method") {
        match reader.text(item, method) {
            Some(method) => methods.push(method),
            None => *whole = false,
        }
    }
    tests.extend((!methods.is_empty()).then_some(Test::Method(methods)));
    if view.node("client").is_some() {
        let items = view.one_or_many("client");
        let (networks, unix) = networks(reader, items);
        *whole &= networks.len() + usize::from(unix) >= items.len().min(1);
        tests.push(Test::Client(Networks { networks, unix }));
    }
    for entry in view.entries_of("header") {
        let name = header_name(reader, entry);
        match name.zip(values(reader, &entry.node)) {
            Some((name, values)) => tests.push(Test::Header(name, values)),
            None => *whole = false,
        }
    }
    for entry in view.entries_of("cookie") {
        match values(reader, &entry.node) {
            Some(values) => tests.push(Test::Cookie(entry.key.as_str().into(), values)),
            None => *whole = false,
        }
    }
    for entry in view.entries_of("query") {
        match values(reader, &entry.node) {
            Some(values) => tests.push(Test::Query(entry.key.as_str().into(), values)),
            None => *whole = false,
        }
    }
    tests
}

/// A method as requests write it.
fn method(text: &str) -> Result<Box<str>, Problem> {
    let problem =
        || Problem::expected("no request has this method", "expected a method such as \"GET\"");
    if !headers::is_name(text) || text.len() > MAX_METHOD_BYTES {
        return Err(problem());
    }
    let upper = text.to_ascii_uppercase();
    if upper == "CONNECT" {
        return Err(problem().help("CONNECT is always refused"));
    }
    let known = subak_message::Method::from_bytes(upper.as_bytes()) != subak_message::Method::Other;
    if known && upper != text {
        return Err(problem().help(format!("methods are written in capitals: \"{upper}\"")));
    }
    Ok(text.into())
}

/// A field's name. The host has a key of its own, which knows its spellings.
fn header_name(reader: &mut Reader<'_>, entry: &Entry) -> Option<HeaderName> {
    if entry.key.eq_ignore_ascii_case("host") {
        let diagnostic = Diagnostic::error(entry.key_span, "Host is not matched as a header");
        reader.push(diagnostic.help("use the key `host` of the route"));
        return None;
    }
    // `shape` has said so of one that is no header name.
    headers::any_name(&entry.key)
}

/// A value, a table of tests, or a list of them.
fn values(reader: &mut Reader<'_>, node: &Node) -> Option<Vec<ValuePattern>> {
    let items = one_or_many(node);
    let found: Vec<ValuePattern> = items.iter().filter_map(|item| value(reader, item)).collect();
    (found.len() == items.len()).then_some(found)
}

fn value(reader: &mut Reader<'_>, node: &Node) -> Option<ValuePattern> {
    if let Value::String(text) = &node.value {
        return Some(ValuePattern { tests: vec![ValueTest::Exact(text.as_str().into())] });
    }
    let view = View::of(node, &VALUE_MATCH);
    let mut tests = Vec::new();
    for entry in view.entries {
        let Value::String(text) = &entry.node.value else { continue };
        let text = text.as_str();
        tests.push(match &*entry.key {
            "exact" => ValueTest::Exact(text.into()),
            "prefix" => ValueTest::Prefix(text.into()),
            "suffix" => ValueTest::Suffix(text.into()),
            "contains" => ValueTest::Contains(text.into()),
            "regex" => ValueTest::Regex(reader.text(&entry.node, pattern::regex)?),
            _ => continue,
        });
    }
    match view.node("present").map(|node| &node.value) {
        Some(Value::Boolean(true)) => tests.push(ValueTest::Present),
        Some(Value::Boolean(false)) if tests.is_empty() => tests.push(ValueTest::Absent),
        Some(Value::Boolean(false)) => {
            let diagnostic = Diagnostic::error(node.span, "what is not there has no value");
            reader.push(diagnostic.label("expected `present = false` alone"));
            return None;
        }
        _ => {}
    }
    (!tests.is_empty()).then_some(ValuePattern { tests })
}
