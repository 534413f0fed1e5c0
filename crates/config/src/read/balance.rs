//! `balance` of a pool: an algorithm of the catalogue by name, or a table of its name and options.

use subak_balance::catalogue::{self, Listing, OptionError, OptionKind, OptionSpec, OptionValue};
use subak_balance::{Algorithm, Endpoints, Entry};
use subak_base::Weight;

use super::Reader;
use crate::diagnostic::{Diagnostic, Span};
use crate::model::Endpoint;
use crate::problem::Problem;
use crate::shape;
use crate::suggest::nearest;
use crate::tree::{self, Node, Value};

/// The algorithm at `node`; the default one where that says none, or was reported.
pub(super) fn read(reader: &mut Reader<'_>, node: Option<&Node>) -> Algorithm {
    named(reader, node).map_or_else(default, |(algorithm, _)| algorithm)
}

/// The same with what it is called: its name, and options that are not at their default. None where
/// something was reported.
pub(super) fn named(reader: &mut Reader<'_>, node: Option<&Node>) -> Option<(Algorithm, String)> {
    let (name, options): (Option<&Node>, &[tree::Entry]) =
        match node.map(|node| (node, &node.value)) {
            Some((node, Value::String(_))) => (Some(node), &[]),
            Some((_, Value::Table(entries))) => {
                let name = entries.iter().find(|entry| entry.key == "algorithm");
                (name.map(|entry| &entry.node), entries)
            }
            _ => (None, &[]),
        };
    let (listing, name) = listing(reader, name)?;
    let mut given: Vec<(&str, OptionValue<'_>)> = Vec::new();
    let mut is_whole = true;
    for entry in options.iter().filter(|entry| entry.key != "algorithm") {
        let Some(option) = listing.options.iter().find(|option| option.name == entry.key) else {
            reader.push(unknown_option(entry, listing));
            is_whole = false;
            continue;
        };
        let value = value(&entry.node.value, &option.kind);
        // Each alone first, so that every wrong one is reported.
        let alone = value.map(|value| listing.configure(name, &[(option.name, value)]));
        match (value, alone) {
            (Some(value), Some(Ok(_) | Err(OptionError::Conflict { .. }))) => {
                given.push((option.name, value))
            }
            (_, alone) => {
                refused(reader, entry, option, alone.and_then(Result::err));
                is_whole = false;
            }
        }
    }
    let configured = listing.configure(name, &given);
    let algorithm = configured.map_err(|error| conflict(reader, options, &error)).ok()?;
    is_whole.then(|| (algorithm, called(listing, name, &given)))
}

/// What an algorithm is called that goes by `name` with these options.
fn called(listing: &Listing, name: &str, given: &[(&str, OptionValue<'_>)]) -> String {
    let presets = listing.presets.iter().filter(|(alias, ..)| *alias == name);
    let presets = presets.map(|(_, option, value)| (*option, *value));
    let all: Vec<(&str, OptionValue<'_>)> = presets.chain(given.iter().copied()).collect();
    let mut called = listing.name.to_owned();
    for option in listing.options {
        let set = all.iter().rev().find(|(name, _)| *name == option.name);
        match set.map(|(_, value)| *value).filter(|value| Some(*value) != option.default) {
            None => {}
            Some(OptionValue::Text(text)) => called += &format!(" {}={text}", option.name),
            Some(value) => called += &format!(" {}={value}", option.name),
        }
    }
    called
}

/// Whether the algorithm can work on these endpoints, and whether something else were better.
pub(super) fn check(
    reader: &mut Reader<'_>,
    place: Span,
    algorithm: &Algorithm,
    endpoints: &[Endpoint],
) {
    let entries = endpoints
        .iter()
        .map(|endpoint| Entry::new(endpoint.address.to_string(), &*endpoint.name, endpoint.weight));
    let Ok(list) = Endpoints::new(entries.collect()) else { return };
    tell_roundings(reader, place, algorithm, endpoints);
    if let Err(unfit) = algorithm.check(&list) {
        let message = format!("{} cannot work on these endpoints", algorithm.listing().name);
        reader.push(Diagnostic::error(place, message).label(unfit.to_string()));
    } else if let Some(advice) = algorithm.advice(list.len()) {
        let message = format!("{} is dear in a pool of this size", algorithm.listing().name);
        reader.push(Diagnostic::warning(place, message).label(advice));
    }
}

/// Says whose share is clearly another than its weight, because cycles and tables have whole places.
fn tell_roundings(
    reader: &mut Reader<'_>,
    place: Span,
    algorithm: &Algorithm,
    endpoints: &[Endpoint],
) {
    // Backups work alone, when no primary does.
    let has_primary = endpoints.iter().any(|one| !one.backup && one.weight > Weight::ZERO);
    let weight = |one: &Endpoint| if has_primary && one.backup { 0 } else { one.weight.get() };
    let weights: Vec<u64> = endpoints.iter().map(weight).collect();
    let roundings = algorithm.roundings(&weights);
    let Some(worst) = roundings.first() else { return };
    let others = match roundings.len() - 1 {
        0 => String::new(),
        1 => "; another is off by more than 5 %, too".to_owned(),
        others => format!("; {others} others are off by more than 5 %, too"),
    };
    let name = algorithm.listing().name;
    let warning = Diagnostic::warning(place, format!("{name} rounds these weights"));
    let help = format!(
        "{name} divides requests into {} equal parts; weights are relative, and those whose sum is far \
         below that are kept",
        worst.places.1
    );
    let worst_of_all = &endpoints[worst.index].name;
    reader.push(warning.label(format!("{worst_of_all} {worst}{others}")).help(help).derived());
}

/// An option that does not go with the others.
fn conflict(reader: &mut Reader<'_>, options: &[tree::Entry], error: &OptionError) {
    let OptionError::Conflict { name, because } = error else { return };
    if let Some(entry) = options.iter().find(|entry| entry.key == *name) {
        let message = format!("`{name}` does not go with the other options");
        reader.push(Diagnostic::error(entry.key_span, message).label(*because));
    }
}

fn default() -> Algorithm {
    catalogue::find(catalogue::DEFAULT).expect("the default is in the catalogue").algorithm()
}

/// The listing that a name stands for, and the name it was called by.
fn listing<'a>(
    reader: &mut Reader<'_>,
    node: Option<&'a Node>,
) -> Option<(&'static Listing, &'a str)> {
    let Some(node) = node else {
        return catalogue::find(catalogue::DEFAULT).map(|listing| (listing, listing.name));
    };
    let Value::String(name) = &node.value else {
        let label = format!("expected the name of an algorithm, found {}", node.value.kind());
        reader.push(Diagnostic::error(node.span, "`algorithm` has the wrong type").label(label));
        return None;
    };
    let found = catalogue::find(name).map(|listing| (listing, &**name));
    if found.is_none() {
        let near = nearest(name, catalogue::names());
        let near = near.map(|near| format!("did you mean \"{near}\"?"));
        let help = foreign_algorithm(name).map(str::to_owned).or(near);
        let names: Vec<&str> = catalogue::all().iter().map(|listing| listing.name).collect();
        let expected = format!("expected one of {}", names.join(", "));
        let diagnostic = Diagnostic::error(node.span, format!("there is no algorithm `{name}`"));
        reader.push(diagnostic.label(expected).maybe_help(help));
    }
    found
}

/// What an algorithm of another program is here.
fn foreign_algorithm(name: &str) -> Option<&'static str> {
    Some(match name.to_ascii_lowercase().replace(['-', ' '], "_").as_str() {
        "ring_hash" | "ketama" | "consistent" | "consistent_hash" | "hash_consistent" => {
            "balance = { algorithm = \"hash\", key = \"source\", method = \"maglev\" } keeps clients where they are; method = \"ring\" picks what nginx's `consistent` picks"
        }
        "source" => "did you mean \"source_hash\"?",
        "uri" | "url" => "did you mean \"uri_hash\"?",
        "least_request" | "least_requests" | "leastreq" => {
            "did you mean \"least_connections\" or \"power_of_two\"?"
        }
        "static_rr" | "roundrobin" => "did you mean \"round_robin\"?",
        "sticky" | "cookie" => "clients are kept by `stick` of the pool, whatever the algorithm",
        _ => return None,
    })
}

/// A value of the tree as the catalogue takes it.
fn value<'a>(value: &'a Value, kind: &OptionKind) -> Option<OptionValue<'a>> {
    match (kind, value) {
        (OptionKind::Words(_) | OptionKind::Text { .. }, Value::String(text)) => {
            Some(OptionValue::Text(text))
        }
        (OptionKind::Integer { .. }, Value::Integer(number)) => {
            u32::try_from(*number).ok().map(OptionValue::Integer)
        }
        (OptionKind::Decimal { .. }, Value::Integer(number)) => {
            let thousandths = number.checked_mul(1000)?;
            u32::try_from(thousandths).ok().map(OptionValue::Thousandths)
        }
        (OptionKind::Decimal { .. }, Value::Float(number)) => {
            let thousandths = (number * 1000.0).round();
            let fits = (0.0..=f64::from(u32::MAX)).contains(&thousandths);
            fits.then_some(OptionValue::Thousandths(thousandths as u32))
        }
        _ => None,
    }
}

/// An option of the algorithm with a value it cannot have.
fn refused(
    reader: &mut Reader<'_>,
    entry: &tree::Entry,
    option: &OptionSpec,
    error: Option<OptionError>,
) {
    let node = &entry.node;
    let expected = format!("expected {}", option.kind);
    let (message, expected) = match (&node.value, &option.kind) {
        (Value::String(_), OptionKind::Words(_) | OptionKind::Text { .. }) => {
            (format!("`{}` does not know this value", entry.key), expected)
        }
        (Value::Integer(_), OptionKind::Integer { .. } | OptionKind::Decimal { .. })
        | (Value::Float(_), OptionKind::Decimal { .. }) => {
            (format!("`{}` is out of range", entry.key), expected)
        }
        (value, _) => {
            let message = format!("`{}` has the wrong type", entry.key);
            (message, format!("{expected}, found {}", value.kind()))
        }
    };
    let mut problem = Problem::expected(message, expected);
    if let Some(OptionError::Value { problem: Some(found), .. }) = error {
        problem = problem.at(found.at.clone());
        problem.message = format!("{}: {}", problem.message, found.message);
    }
    let near = match &node.value {
        Value::String(text) => near(text, &option.kind),
        _ => None,
    };
    let problem = problem.maybe_help(near.map(|near| format!("did you mean \"{near}\"?")));
    reader.take::<()>(node, Err(problem));
}

/// The value that was probably meant.
fn near(text: &str, kind: &OptionKind) -> Option<String> {
    match kind {
        OptionKind::Words(words) => nearest(text, words.iter().copied()).map(str::to_owned),
        OptionKind::Text { forms, .. } => {
            // Of `header:NAME` what stands before the colon; the name stays as it is.
            let (word, name) = text.split_once(':').unwrap_or((text, "NAME"));
            let words = forms.iter().map(|form| form.split(':').next().unwrap_or(form));
            let found = nearest(word, words)?;
            let takes_name = !forms.contains(&found);
            let meant = if takes_name { format!("{found}:{name}") } else { found.to_owned() };
            (meant != text).then_some(meant)
        }
        OptionKind::Integer { .. } | OptionKind::Decimal { .. } => None,
    }
}

fn unknown_option(entry: &tree::Entry, listing: &Listing) -> Diagnostic {
    let owners: Vec<&str> = catalogue::all()
        .iter()
        .filter(|other| other.options.iter().any(|option| option.name == entry.key))
        .map(|other| other.name)
        .collect();
    if !owners.is_empty() {
        let message = format!("`{}` is no option of {}", entry.key, listing.name);
        return Diagnostic::error(entry.key_span, message)
            .label(format!("an option of {}", owners.join(", ")));
    }
    let mut names = vec!["algorithm"];
    names.extend(listing.options.iter().map(|option| option.name));
    shape::unknown(&entry.key, entry.key_span, &names, "an algorithm's table", "pool.NAME.balance")
}
