//! `endpoints` of a pool: addresses with options, or tables.

use std::collections::HashMap;
use std::num::{NonZeroU16, NonZeroU32};
use std::sync::Arc;

use subak_base::Weight;
use subak_health::Admin;

use super::{Reader, View, convert};
use crate::address::{self, Address};
use crate::defaults;
use crate::diagnostic::{Diagnostic, Span};
use crate::keys::Kind;
use crate::model::Endpoint;
use crate::problem::Problem;
use crate::shape::{expected, takes};
use crate::suggest::{later, nearest};
use crate::tree::{Entry, Node, Value};
use crate::vocabulary::ENDPOINT;

/// The endpoints of a pool, and where they stand.
#[derive(Default)]
pub(super) struct Read {
    pub(super) endpoints: Vec<Endpoint>,
    /// One for each of `endpoints`.
    places: Vec<Span>,
    /// Whether all that is said of them could be read.
    pub(super) complete: bool,
}

impl Read {
    /// Reports a key that has Subak ask somewhere else than at the endpoints' own addresses, when one
    /// of them is a unix socket.
    pub(super) fn have_ports(&self, reader: &mut Reader<'_>, place: Span) {
        let is_unix = |endpoint: &Endpoint| matches!(endpoint.address, Address::Unix(_));
        let Some(index) = self.endpoints.iter().position(is_unix) else { return };
        let diagnostic = Diagnostic::error(place, "a unix socket has no other port");
        let diagnostic = diagnostic.label("every endpoint is asked at a port of its address");
        reader.push(diagnostic.related(self.places[index], "this one is none"));
    }

    /// Reports a port that is one of the endpoints' own.
    pub(super) fn own_no_port(
        &self,
        reader: &mut Reader<'_>,
        node: &Node,
        port: NonZeroU16,
        what: &str,
    ) {
        let own = |endpoint: &Endpoint| match &endpoint.address {
            Address::Inet(inet) => inet.port() == port.get(),
            Address::Unix(_) => false,
        };
        let Some(index) = self.endpoints.iter().position(own) else { return };
        let message = format!("{port} is the port of an endpoint itself");
        let diagnostic = Diagnostic::error(node.span, message).label(format!("expected {what}"));
        reader.push(diagnostic.related(self.places[index], "this one"));
    }
}

pub(super) fn read_all(reader: &mut Reader<'_>, view: &View<'_>) -> Read {
    let Some(node) = view.node("endpoints") else { return Read::default() };
    let Value::Array(items) = &node.value else { return Read::default() };
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
    let mut read = Read::default();
    let mut places: HashMap<Address, Span> = HashMap::new();
    let reported = reader.report.count();
    let mut shapeless = false;
    for item in items {
        let endpoint = match &item.value {
            Value::String(text) => short(reader, item, text, &caps),
            Value::Table(entries) => {
                shapeless |= entries.iter().any(has_not_its_shape);
                long(reader, item, entries, &caps)
            }
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
        read.endpoints.push(endpoint);
        read.places.push(item.span);
    }
    let read_all = read.endpoints.len() == items.len() && reader.report.count() == reported;
    read.complete = read_all && !shapeless;
    idle(reader, node, &read.endpoints);
    read
}

/// Says when a pool takes no new work, or has nobody but backups.
fn idle(reader: &mut Reader<'_>, node: &Node, endpoints: &[Endpoint]) {
    let all = |holds: fn(&Endpoint) -> bool| !endpoints.is_empty() && endpoints.iter().all(holds);
    let has_no_weight = |endpoint: &Endpoint| endpoint.weight == Weight::ZERO;
    let warnings = [
        (all(has_no_weight), "every endpoint has weight 0", "every request is answered 503"),
        (
            all(|endpoint| endpoint.state != Admin::Ready),
            "every endpoint is in drain or maintenance",
            "every new client is answered 503",
        ),
        (
            all(|endpoint| endpoint.backup),
            "every endpoint is a backup",
            "there is nobody whom they stand in for",
        ),
    ];
    for (_, message, label) in warnings.into_iter().filter(|(holds, ..)| *holds) {
        reader.push(Diagnostic::warning(node.span, message).label(label).derived());
    }
}

/// What holds for an endpoint that says nothing itself.
struct Caps {
    max_in_flight: Option<NonZeroU32>,
    max_connections: Option<NonZeroU32>,
}

fn long(reader: &mut Reader<'_>, item: &Node, entries: &[Entry], caps: &Caps) -> Option<Endpoint> {
    let view = View::of(item, &ENDPOINT);
    let address = reader.text(view.node("address")?, address::endpoint)?;
    let value = |key: &str| {
        let entry = entries.iter().find(|entry| entry.key == key);
        entry.map(|entry| &entry.node.value)
    };
    Some(endpoint(view.string("address")?, address, value, caps))
}

/// `ADDRESS key=value …`, with the keys of the table form.
fn short(reader: &mut Reader<'_>, item: &Node, text: &str, caps: &Caps) -> Option<Endpoint> {
    let mut words = words(text);
    let (at, name) = words.next().unwrap_or((0, ""));
    let address = address::endpoint(name).map_err(|problem| problem.shifted(at, name.len()));
    let address = reader.take(item, address);
    let mut given: Vec<(&str, Value)> = Vec::new();
    for (at, word) in words {
        let option = option(word).map_err(|problem| problem.shifted(at, word.len()));
        let Some((key, value)) = reader.take(item, option) else { continue };
        if given.iter().any(|(known, _)| *known == key) {
            let problem = Problem::new(format!("`{key}` is given twice")).at(at..at + word.len());
            reader.take::<()>(item, Err(problem));
        }
        given.push((key, value));
    }
    let value = |key: &str| given.iter().find(|(known, _)| *known == key).map(|(_, value)| value);
    Some(endpoint(name, address?, value, caps))
}

/// The endpoint of that name and address, with what `value` knows of its other keys. Values of
/// another type than declared count as absent.
fn endpoint<'a>(
    name: &str,
    address: Address,
    value: impl Fn(&str) -> Option<&'a Value>,
    caps: &Caps,
) -> Endpoint {
    let number = |key: &str| match value(key) {
        Some(Value::Integer(number)) => u64::try_from(*number).ok(),
        _ => None,
    };
    let state = match value("state") {
        Some(Value::String(word)) => match &**word {
            "drain" => Admin::Drain,
            "maintenance" => Admin::Maintenance,
            _ => Admin::Ready,
        },
        _ => Admin::Ready,
    };
    Endpoint {
        name: Arc::from(name),
        address,
        weight: number("weight").and_then(convert).map_or(Weight::ONE, Weight),
        max_in_flight: number("max_in_flight").and_then(convert).or(caps.max_in_flight),
        max_connections: number("max_connections").and_then(convert).or(caps.max_connections),
        backup: matches!(value("backup"), Some(Value::Boolean(true))),
        state,
    }
}

/// Whether `shape` has reported an entry.
fn has_not_its_shape(entry: &Entry) -> bool {
    ENDPOINT.key(&entry.key).is_none_or(|key| !takes(&key.kind, &entry.node.value))
}

/// The words of a text, each with where it begins.
fn words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let begin = text.as_ptr() as usize;
    text.split_ascii_whitespace().map(move |word| (word.as_ptr() as usize - begin, word))
}

/// One `key=value`, checked against the declaration of the table form.
fn option(word: &str) -> Result<(&'static str, Value), Problem> {
    let (name, text) = word.split_once('=').unwrap_or((word, ""));
    let options = || ENDPOINT.keys.iter().filter(|key| key.name != "address");
    let Some(key) = options().find(|key| key.name == name) else {
        let names: Vec<&str> = options().map(|key| key.name).collect();
        return Err(unknown(name, &names));
    };
    let value = match key.kind {
        Kind::Integer { min, max } => {
            let digits = text.bytes().all(|byte| byte.is_ascii_digit());
            let number = text.parse().ok().filter(|number| digits && (min..=max).contains(number));
            number.map(Value::Integer)
        }
        Kind::Boolean => text.parse().ok().map(Value::Boolean),
        Kind::Choice(choices) => choices.contains(&text).then(|| Value::String(text.to_owned())),
        _ => None,
    };
    value.map(|value| (key.name, value)).ok_or_else(|| {
        let near = match key.kind {
            Kind::Choice(choices) => nearest(text, choices.iter().copied()),
            Kind::Boolean => Some("true").filter(|_| text.is_empty()),
            _ => None,
        };
        let message = format!("`{name}` does not know this value");
        Problem::expected(message, format!("expected {name}= and {}", expected(&key.kind)))
            .maybe_help(near.map(|near| format!("did you mean `{name}={near}`?")))
    })
}

/// An option that does not exist.
fn unknown(name: &str, names: &[&str]) -> Problem {
    if let Some(about) = later(name, ENDPOINT.path) {
        let problem = Problem::new(format!("`{name}` is not available in this version"));
        let help = format!("{about}: this version does not have that yet; leave the option out");
        return problem.help(help);
    }
    let help = match name {
        "max_conns" | "maxconn" => "did you mean `max_connections`?".to_string(),
        // nginx and HAProxy have words of their own for states.
        "down" | "disabled" | "maint" => "did you mean `state=maintenance`?".to_string(),
        "drain" => "did you mean `state=drain`?".to_string(),
        _ => match nearest(name, names.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("known here: {}", names.join(", ")),
        },
    };
    let message = format!("unknown option `{name}`");
    let problem = Problem::expected(message, "expected an option of an endpoint");
    problem.at(0..name.len()).help(help)
}
