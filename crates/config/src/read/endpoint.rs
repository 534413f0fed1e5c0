//! `endpoints` of a pool: addresses with options, or tables.

use std::collections::HashMap;
use std::num::NonZeroU16;
use std::sync::Arc;

use subak_base::Weight;
use subak_health::Admin;

use super::{Reader, View, convert};
use crate::address::{self, Address, Place};
use crate::defaults;
use crate::diagnostic::{Diagnostic, Span};
use crate::keys::Kind;
use crate::model::{ByName, Caps, Endpoint, Origin};
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
    /// Those that are given by name.
    pub(super) names: Vec<ByName>,
    /// One for each of `names`.
    name_places: Vec<Span>,
    /// Whether all that is said of them could be read.
    pub(super) complete: bool,
}

impl Read {
    /// Reports a key that has Subak ask somewhere else than at the endpoints' own addresses, when one
    /// of them is a unix socket.
    pub(super) fn have_ports(&self, reader: &mut Reader<'_>, place: Span) {
        let Some(index) = self.socket() else { return };
        let diagnostic = Diagnostic::error(place, "a unix socket has no other port");
        let diagnostic = diagnostic.label("every endpoint is asked at a port of its address");
        reader.push(diagnostic.related(self.places[index], "this one is none"));
    }

    /// Reports a key that wants network addresses, when one of them is a unix socket.
    pub(super) fn are_no_sockets(&self, reader: &mut Reader<'_>, place: Span, message: &str) {
        let Some(index) = self.socket() else { return };
        let diagnostic = Diagnostic::error(place, message);
        reader.push(diagnostic.related(self.places[index], "this is a unix socket"));
    }

    /// The first that is a unix socket.
    fn socket(&self) -> Option<usize> {
        let is_unix = |endpoint: &Endpoint| matches!(endpoint.address, Address::Unix(_));
        self.endpoints.iter().position(is_unix)
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
        let named = |by_name: &ByName| matches!(by_name.origin, Origin::Host { port: own, .. } if own == port.get());
        let place = self.endpoints.iter().position(own).map(|index| self.places[index]);
        let named = || self.names.iter().position(named).map(|index| self.name_places[index]);
        let Some(place) = place.or_else(named) else { return };
        let message = format!("{port} is the port of an endpoint itself");
        let diagnostic = Diagnostic::error(node.span, message).label(format!("expected {what}"));
        reader.push(diagnostic.related(place, "this one"));
    }
}

pub(super) fn read_all(reader: &mut Reader<'_>, view: &View<'_>) -> Read {
    let Some(node) = view.node("endpoints") else { return Read::default() };
    let Value::Array(items) = &node.value else { return Read::default() };
    let caps = caps(view);
    if items.is_empty() {
        let warning = Diagnostic::warning(node.span, "this pool has no endpoint");
        reader.push(warning.label("every request is answered 503"));
    }
    if items.len() > defaults::MAX_ENDPOINTS {
        let message = format!("a pool has at most {} endpoints", defaults::MAX_ENDPOINTS);
        reader.push(Diagnostic::error(node.span, message));
    }
    let mut read = Read::default();
    let mut places: HashMap<Place, Span> = HashMap::new();
    let reported = reader.report.count();
    let mut shapeless = false;
    for item in items {
        let given = match &item.value {
            Value::String(text) => short(reader, item, text, &caps),
            Value::Table(entries) => {
                shapeless |= entries.iter().any(has_not_its_shape);
                long(reader, item, entries, &caps)
            }
            _ => None,
        };
        let Some((place, name, terms)) = given else { continue };
        if let Some(first) = places.get(&place) {
            let (what, again) = match &place {
                Place::Address(_) => ("endpoint", "the same address again"),
                Place::Name(_) => ("name", "the same name again"),
            };
            let message = format!("the {what} {place} is listed twice");
            reader.push(
                Diagnostic::error(item.span, message)
                    .label(again)
                    .related(*first, "first here")
                    .help("to give an endpoint more, raise its weight"),
            );
            continue;
        }
        places.insert(place.clone(), item.span);
        match place {
            Place::Address(address) => {
                read.endpoints.push(terms.endpoint(name, address));
                read.places.push(item.span);
            }
            Place::Name(origin) => {
                read.names.push(terms.by_name(origin, read.endpoints.len()));
                read.name_places.push(item.span);
            }
        }
    }
    let read_all =
        read.endpoints.len() + read.names.len() == items.len() && reader.report.count() == reported;
    read.complete = read_all && !shapeless;
    idle(reader, node, &read);
    read
}

/// `max_in_flight` and `max_connections` of a pool.
pub(super) fn caps(view: &View<'_>) -> Caps {
    Caps {
        max_in_flight: view.number("max_in_flight").and_then(convert),
        max_connections: view.number("max_connections").and_then(convert),
    }
}

/// Says when a pool takes no new work, or has nobody but backups.
fn idle(reader: &mut Reader<'_>, node: &Node, read: &Read) {
    let endpoints = read.endpoints.iter().map(|one| (one.weight, one.state, one.backup));
    let names = read.names.iter().map(|one| (one.weight, one.state, one.backup));
    let given: Vec<_> = endpoints.chain(names).collect();
    let all =
        |holds: fn(&(Weight, Admin, bool)) -> bool| !given.is_empty() && given.iter().all(holds);
    let warnings = [
        (
            all(|(weight, ..)| *weight == Weight::ZERO),
            "every endpoint has weight 0",
            "every request is answered 503",
        ),
        (
            all(|(_, state, _)| *state != Admin::Ready),
            "every endpoint is in drain or maintenance",
            "every new client is answered 503",
        ),
        (
            all(|(.., backup)| *backup),
            "every endpoint is a backup",
            "there is nobody whom they stand in for",
        ),
    ];
    for (_, message, label) in warnings.into_iter().filter(|(holds, ..)| *holds) {
        reader.push(Diagnostic::warning(node.span, message).label(label).derived());
    }
}

/// An endpoint of a pool that is there already, in its short form.
pub(super) fn one(reader: &mut Reader<'_>, text: &str, caps: &Caps) -> Option<Endpoint> {
    let span = Span::new(0, text.len());
    let node = Node { span, value: Value::String(text.to_owned()), expanded: false };
    let (place, name, terms) = short(reader, &node, text, caps)?;
    match place {
        Place::Address(address) => Some(terms.endpoint(name, address)),
        Place::Name(_) => {
            let problem = Problem::expected("this is a name", "expected an address and a port");
            let help = "add one of its addresses here, or the name to the pool's endpoints in the file, \
                        and reload";
            let problem = problem.help(help);
            reader.take(&node, Err(problem.at(0..name.len())))
        }
    }
}

/// What is said of an endpoint, or of all that a name leads to.
struct Terms {
    weight: Weight,
    caps: Caps,
    backup: bool,
    state: Admin,
}

impl Terms {
    fn endpoint(self, name: &str, address: Address) -> Endpoint {
        Endpoint {
            name: Arc::from(name),
            address,
            origin: None,
            host: None,
            weight: self.weight,
            max_in_flight: self.caps.max_in_flight,
            max_connections: self.caps.max_connections,
            backup: self.backup,
            state: self.state,
        }
    }

    fn by_name(self, origin: Origin, place: usize) -> ByName {
        ByName {
            origin,
            place,
            weight: self.weight,
            max_in_flight: self.caps.max_in_flight,
            max_connections: self.caps.max_connections,
            backup: self.backup,
            state: self.state,
        }
    }
}

type Given<'a> = (Place, &'a str, Terms);

fn long<'a>(
    reader: &mut Reader<'_>,
    item: &'a Node,
    entries: &[Entry],
    caps: &Caps,
) -> Option<Given<'a>> {
    let view = View::of(item, &ENDPOINT);
    let place = reader.text(view.node("address")?, address::endpoint)?;
    let value = |key: &str| {
        let entry = entries.iter().find(|entry| entry.key == key);
        entry.map(|entry| &entry.node.value)
    };
    if let (Place::Name(Origin::Service(_)), Some(node)) = (&place, view.node("weight")) {
        reader.take::<()>(node, Err(weight_of_service()));
    }
    Some((place, view.string("address")?, terms(value, caps)))
}

/// `ADDRESS key=value …`, with the keys of the table form.
fn short<'a>(
    reader: &mut Reader<'_>,
    item: &Node,
    text: &'a str,
    caps: &Caps,
) -> Option<Given<'a>> {
    let mut words = words(text);
    let (at, name) = words.next().unwrap_or((0, ""));
    let place = address::endpoint(name).map_err(|problem| problem.shifted(at, name.len()));
    let place = reader.take(item, place);
    let mut given: Vec<(&str, Value)> = Vec::new();
    for (at, word) in words {
        let option = option(word).map_err(|problem| problem.shifted(at, word.len()));
        let Some((key, value)) = reader.take(item, option) else { continue };
        if let (Some(Place::Name(Origin::Service(_))), "weight") = (&place, key) {
            let problem = weight_of_service().at(at..at + word.len());
            reader.take::<()>(item, Err(problem));
        }
        if given.iter().any(|(known, _)| *known == key) {
            let problem = Problem::new(format!("`{key}` is given twice")).at(at..at + word.len());
            reader.take::<()>(item, Err(problem));
        }
        given.push((key, value));
    }
    let value = |key: &str| given.iter().find(|(known, _)| *known == key).map(|(_, value)| value);
    Some((place?, name, terms(value, caps)))
}

/// A weight where the records have their own.
fn weight_of_service() -> Problem {
    let expected = "expected no weight";
    Problem::expected("SRV records say the weights", expected).help("leave `weight` out")
}

/// What `value` knows of the keys. Values of another type than declared count as absent.
fn terms<'a>(value: impl Fn(&str) -> Option<&'a Value>, caps: &Caps) -> Terms {
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
    Terms {
        weight: number("weight").and_then(convert).map_or(Weight::ONE, Weight),
        caps: Caps {
            max_in_flight: number("max_in_flight").and_then(convert).or(caps.max_in_flight),
            max_connections: number("max_connections").and_then(convert).or(caps.max_connections),
        },
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
        "check" | "inter" | "fastinter" | "downinter" | "rise" | "fall" => {
            "the pool says how its endpoints are checked: health = { http = \"/\", interval = \"2s\", rise = 2, fall = 3 }".to_string()
        }
        "max_fails" | "fail_timeout" | "observe" | "error-limit" => {
            "the pool says when failures put an endpoint out: eject = { consecutive = 3, base = \"10s\" }".to_string()
        }
        "ssl" | "verify" | "sni" | "ca-file" | "crt" => {
            "the pool says how TLS is spoken to its endpoints: tls = true, or a table".to_string()
        }
        "send-proxy" | "send-proxy-v2" => {
            "the pool says so: proxy_protocol = \"v1\" or \"v2\"".to_string()
        }
        "cookie" => "the pool says how clients are kept: stick = { cookie = \"NAME\" }".to_string(),
        "slow_start" | "slowstart" => "the pool says so: slow_start = \"30s\"".to_string(),
        _ => match nearest(name, names.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("known here: {}", names.join(", ")),
        },
    };
    let message = format!("unknown option `{name}`");
    let problem = Problem::expected(message, "expected an option of an endpoint");
    problem.at(0..name.len()).help(help)
}
