//! Does a text have the shape that the vocabulary declares? Unknown keys, wrong types, numbers out
//! of range, missing keys and keys that exclude each other. What a string means is `read`'s business.

use crate::advice::advice;
use crate::defaults::MAX_TIME;
use crate::diagnostic::{Diagnostic, Span};
use crate::keys::{Kind, Map, Rule, Table, Without};
use crate::report::Report;
use crate::scalar;
use crate::suggest::{foreign, later, nearest};
use crate::tree::{Entry, Node, Value};
use crate::vocabulary::TABLES;

/// Keys that are named when nothing near was found.
const MAX_KEYS_LISTED: usize = 12;

/// Keys that are named when a table was expected.
const MAX_KEYS_EXPECTED: usize = 6;

/// Checks the entries of a table. `path` is how the text addresses it, `place` where to point at
/// when something is missing.
pub(crate) fn table(
    report: &mut Report<'_>,
    entries: &[Entry],
    table: &'static Table,
    path: &str,
    place: Span,
) {
    for entry in entries {
        let path = join(path, &entry.key);
        match table.key(&entry.key) {
            Some(key) => value(report, &entry.node, entry.key_span, &key.kind, &path),
            None if report.is_full() => {}
            None => report.push(unknown_key(entry, table)),
        }
    }
    let given = |name: &str| entries.iter().find(|entry| entry.key == name);
    for key in table.keys {
        if key.without == Without::Required && given(key.name).is_none() {
            let message = format!("{} lacks `{}`", named(path, table), key.name);
            report.push(
                Diagnostic::error(place, message)
                    .label(format!("expected `{}`", key.name))
                    .help(format!("for example: {} = {}", key.name, key.example))
                    .derived(),
            );
        }
    }
    for rule in table.rules {
        check_rule(report, entries, rule, table, path, place);
    }
}

fn check_rule(
    report: &mut Report<'_>,
    entries: &[Entry],
    rule: &Rule,
    table: &'static Table,
    path: &str,
    place: Span,
) {
    let (names, none_allowed, many_allowed) = match rule {
        Rule::ExactlyOne(names) => (names, false, false),
        Rule::AtLeastOne(names) => (names, false, true),
        Rule::AtMostOne(names) => (names, true, false),
    };
    let present: Vec<&Entry> =
        entries.iter().filter(|entry| names.contains(&&*entry.key)).collect();
    match &*present {
        [] if !none_allowed => {
            let message = format!("{} has none of {}", named(path, table), list(names, "and"));
            let expected = format!("expected {}", list(names, "or"));
            report.push(Diagnostic::error(place, message).label(expected).derived());
        }
        [first, others @ ..] if !many_allowed => {
            for other in others {
                let message = format!("`{}` and `{}` exclude each other", first.key, other.key);
                report.push(
                    Diagnostic::error(other.key_span, message)
                        .label(format!("expected only one of {}", list(names, "and")))
                        .related(first.key_span, "the other one"),
                );
            }
        }
        _ => {}
    }
}

fn value(report: &mut Report<'_>, node: &Node, place: Span, kind: &'static Kind, path: &str) {
    match (kind, &node.value) {
        (Kind::Boolean, Value::Boolean(_))
        | (Kind::Text(_), Value::String(_))
        | (Kind::Algorithm, Value::String(_) | Value::Table(_)) => {}
        (Kind::Integer { min, max }, Value::Integer(number)) => {
            if !(min..=max).contains(&number) {
                out_of_range(report, node, kind, path);
            }
        }
        (Kind::Ratio, Value::Integer(_) | Value::Float(_)) => {
            if ratio(&node.value).is_none() {
                out_of_range(report, node, kind, path);
            }
        }
        (Kind::Decimal { min, max }, Value::Integer(_) | Value::Float(_)) => {
            let range = f64::from(*min) / 1000.0..=f64::from(*max) / 1000.0;
            if !number(&node.value).is_some_and(|number| range.contains(&number)) {
                out_of_range(report, node, kind, path);
            }
        }
        (Kind::Duration, Value::String(text)) => {
            report.take(node, scalar::duration(text));
        }
        (Kind::DurationWithin { min_ms, max_ms }, Value::String(text)) => {
            // What lasts longer than a time limit can, or no time at all, is no time limit.
            let is_limit = *min_ms > 0 && u128::from(*max_ms) <= MAX_TIME.as_millis();
            let read = if is_limit { scalar::duration } else { scalar::any_duration };
            let duration = report.take(node, read(text));
            let range = u128::from(*min_ms)..=u128::from(*max_ms);
            if duration.is_some_and(|duration| !range.contains(&duration.as_millis())) {
                out_of_range(report, node, kind, path);
            }
        }
        (Kind::Size { min, max }, Value::String(_) | Value::Integer(_)) => {
            let bytes = match &node.value {
                Value::String(text) => report.take(node, scalar::size(text)),
                Value::Integer(number) => Some(u64::try_from(*number).unwrap_or(u64::MAX)),
                _ => None,
            };
            if bytes.is_some_and(|bytes| !(min..=max).contains(&&bytes)) {
                out_of_range(report, node, kind, path);
            }
        }
        (Kind::OrUnlimited(_), Value::String(text)) if text == "unlimited" => {}
        (Kind::OrUnlimited(inner), Value::String(text)) => {
            if matches!(inner, Kind::Size { .. }) && scalar::size(text).is_ok() {
                value(report, node, place, inner, path);
            } else {
                let near =
                    nearest(text, ["unlimited"]).map(|near| format!("did you mean \"{near}\"?"));
                let help = scalar::size(text).err().and_then(|problem| problem.help);
                let diagnostic =
                    Diagnostic::error(node.span, format!("`{path}` does not know this value"));
                report.push(
                    diagnostic
                        .label(format!("expected {}", expected(kind)))
                        .maybe_help(near.or(help)),
                );
            }
        }
        (Kind::OrUnlimited(inner), Value::Integer(_)) => value(report, node, place, inner, path),
        (Kind::Choice(choices), Value::String(text)) => {
            if !choices.contains(&&**text) {
                let near = nearest(text, choices.iter().copied());
                let diagnostic =
                    Diagnostic::error(node.span, format!("`{path}` does not know this value"))
                        .label(format!("expected {}", expected(kind)));
                report.push(
                    diagnostic.maybe_help(near.map(|near| format!("did you mean \"{near}\"?"))),
                );
            }
        }
        (Kind::List(inner) | Kind::OneOrMany(inner), Value::Array(items)) => {
            for (index, item) in items.iter().enumerate() {
                value(report, item, item.span, inner, &format!("{path}[{index}]"));
            }
            if let (Kind::OneOrMany(_), []) = (kind, &**items) {
                let diagnostic = Diagnostic::error(node.span, format!("`{path}` is empty"));
                report.push(diagnostic.label(format!("expected {}", expected(inner))));
            }
        }
        (Kind::OneOrMany(inner), _) if takes(inner, &node.value) => {
            value(report, node, place, inner, path);
        }
        (Kind::Either(kinds), _) if kinds.iter().any(|inner| takes(inner, &node.value)) => {
            for inner in kinds.iter().filter(|inner| takes(inner, &node.value)).take(1) {
                value(report, node, place, inner, path);
            }
        }
        (Kind::Table(inner), Value::Table(entries)) => table(report, entries, inner, path, place),
        (Kind::Map(map), Value::Table(entries)) => check_map(report, entries, map, path),
        _ => report.push(wrong_type(node, kind, path)),
    }
}

fn check_map(report: &mut Report<'_>, entries: &[Entry], map: &'static Map, path: &str) {
    for entry in entries {
        if !report.fits(map.pattern, &entry.key) {
            let message = format!("`{}` is not {}", entry.key, map.key);
            let diagnostic = Diagnostic::error(entry.key_span, message);
            report.push(diagnostic.label(format!("expected {}", map.key)));
        }
        value(report, &entry.node, entry.key_span, &map.value, &join(path, &entry.key));
    }
}

/// Whether a kind takes this TOML type.
pub(crate) fn takes(kind: &Kind, value: &Value) -> bool {
    match kind {
        Kind::Boolean => matches!(value, Value::Boolean(_)),
        Kind::Integer { .. } => matches!(value, Value::Integer(_)),
        Kind::Ratio | Kind::Decimal { .. } => {
            matches!(value, Value::Integer(_) | Value::Float(_))
        }
        Kind::Duration | Kind::DurationWithin { .. } | Kind::Choice(_) | Kind::Text(_) => {
            matches!(value, Value::String(_))
        }
        Kind::Size { .. } | Kind::OrUnlimited(_) => {
            matches!(value, Value::String(_) | Value::Integer(_))
        }
        Kind::List(_) => matches!(value, Value::Array(_)),
        Kind::OneOrMany(inner) => matches!(value, Value::Array(_)) || takes(inner, value),
        Kind::Either(kinds) => kinds.iter().any(|kind| takes(kind, value)),
        Kind::Table(_) | Kind::Map(_) => matches!(value, Value::Table(_)),
        Kind::Algorithm => matches!(value, Value::String(_) | Value::Table(_)),
    }
}

/// What a kind takes, as a message says it.
pub(crate) fn expected(kind: &Kind) -> String {
    match kind {
        Kind::Boolean => "true or false".to_string(),
        Kind::Integer { min, max } if *max >= i64::from(u32::MAX) => {
            format!("an integer of at least {min}")
        }
        Kind::Integer { min, max } => format!("an integer from {min} to {max}"),
        Kind::Ratio => "a number from 0 to 1 such as 0.2".to_string(),
        Kind::Decimal { min, max } => {
            format!(
                "a number from {} to {}",
                scalar::show_per_mille(*min),
                scalar::show_per_mille(*max)
            )
        }
        Kind::Duration => scalar::DURATION.to_string(),
        Kind::DurationWithin { min_ms, max_ms } => {
            format!("a duration from {} to {}", scalar::show_ms(*min_ms), scalar::show_ms(*max_ms))
        }
        Kind::Size { min, max } if *max < i64::MAX as u64 => {
            format!("a size from {} to {}", scalar::show_size(*min), scalar::show_size(*max))
        }
        Kind::Size { .. } => scalar::SIZE.to_string(),
        Kind::OrUnlimited(inner) => format!("{} or \"unlimited\"", expected(inner)),
        Kind::Choice(choices) => {
            let quoted: Vec<String> =
                choices.iter().map(|choice| format!("\"{choice}\"")).collect();
            quoted.join(" or ")
        }
        Kind::Text(text) => text.what.to_string(),
        Kind::List(inner) => format!("an array, each item {}", expected(inner)),
        Kind::OneOrMany(inner) => format!("{}, or an array of such", expected(inner)),
        Kind::Either(kinds) => kinds.iter().map(expected).collect::<Vec<_>>().join(", or "),
        Kind::Table(table) if table.keys.len() > MAX_KEYS_EXPECTED => {
            format!("a table ({})", table.what)
        }
        Kind::Table(table) => {
            let keys: Vec<&str> = table.keys.iter().map(|key| key.name).collect();
            format!("a table with {}", list(&keys, "or"))
        }
        Kind::Map(map) => format!("a table whose keys are each {}", map.key),
        Kind::Algorithm => {
            "the name of an algorithm such as \"round_robin\", or a table with its options"
                .to_string()
        }
    }
}

/// The share a number says, when it is one from 0 to 1.
pub(crate) fn ratio(value: &Value) -> Option<f64> {
    number(value).filter(|number| (0.0..=1.0).contains(number))
}

/// A number in parts of so many, rounded. What is more than 0 stays so. None of what is below 0, no
/// number, or beyond measure.
pub(crate) fn parts(value: &Value, whole: u32) -> Option<u32> {
    let number = number(value)?;
    let least = if number > 0.0 { 1.0 } else { 0.0 };
    let parts = (number * f64::from(whole)).round().max(least);
    (number >= 0.0 && parts <= f64::from(u32::MAX)).then_some(parts as u32)
}

fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Integer(number) => Some(*number as f64),
        Value::Float(number) => Some(*number),
        _ => None,
    }
}

fn out_of_range(report: &mut Report<'_>, node: &Node, kind: &Kind, path: &str) {
    let diagnostic = Diagnostic::error(node.span, format!("`{path}` is out of range"));
    report.push(diagnostic.label(format!("expected {}", expected(kind))));
}

fn wrong_type(node: &Node, kind: &'static Kind, path: &str) -> Diagnostic {
    let found = if node.expanded { "what `${…}` stands for" } else { node.value.kind() };
    let label = format!("expected {}, found {found}", expected(kind));
    Diagnostic::error(node.span, format!("`{path}` has the wrong type"))
        .label(label)
        .maybe_help(remedy(&node.value, kind, path).filter(|_| !node.expanded))
}

/// How to write what was probably meant.
fn remedy(value: &Value, kind: &'static Kind, path: &str) -> Option<String> {
    Some(match (kind, value) {
        (Kind::Duration | Kind::DurationWithin { .. }, Value::Integer(number)) => {
            format!("give it a unit: \"{number}s\" or \"{number}ms\"")
        }
        (Kind::Boolean, Value::String(text)) if text == "true" || text == "false" => {
            format!("without quotes: {text}")
        }
        (Kind::Boolean, Value::String(text)) if matches!(&**text, "on" | "yes") => {
            "write true".to_string()
        }
        (Kind::Boolean, Value::String(text)) if matches!(&**text, "off" | "no") => {
            "write false".to_string()
        }
        (Kind::Integer { .. }, Value::String(text)) if text.parse::<i64>().is_ok() => {
            format!("without quotes: {text}")
        }
        (Kind::List(Kind::Table(_)), Value::Table(_)) => format!("with two brackets: [[{path}]]"),
        (Kind::List(inner), _) if takes(inner, value) => "put it in brackets: [ … ]".to_string(),
        (Kind::Text(_), Value::Integer(number)) => format!("in quotes: \"{number}\""),
        (Kind::Either(kinds), _) => kinds.iter().find_map(|kind| remedy(value, kind, path))?,
        _ => return None,
    })
}

fn unknown_key(entry: &Entry, table: &'static Table) -> Diagnostic {
    let names: Vec<&str> = table.keys.iter().map(|key| key.name).collect();
    unknown(&entry.key, entry.key_span, &names, table.what, table.path)
}

/// An unknown key among `names`, the keys of `what`.
pub(crate) fn unknown(
    key: &str,
    span: Span,
    names: &[&str],
    what: &str,
    table_path: &str,
) -> Diagnostic {
    if let Some(about) = later(key, table_path) {
        return Diagnostic::error(span, format!("`{key}` is not available in this version"))
            .label(format!("unknown key of {what}"))
            .help(format!("{about}: this version does not have that yet; leave the key out"));
    }
    let elsewhere = |wanted: &dyn Fn(&str) -> bool| {
        let mut others = TABLES.iter().filter(|table| table.path != table_path);
        let table = others.find(|table| wanted(table.path) && table.key(key).is_some())?;
        Some(match table.path {
            "" => format!("`{key}` belongs at the top level, before the first [table]"),
            path => format!("`{key}` belongs in `{path}`"),
        })
    };
    let did_you_mean = |near: &str| format!("did you mean `{near}`?");
    let inside = |path: &str| {
        let rest = path.strip_prefix(table_path).filter(|_| !table_path.is_empty());
        rest.is_some_and(|rest| rest.starts_with('.'))
    };
    let help = advice(key, table_path)
        .map(str::to_owned)
        .or_else(|| foreign(key, names).map(did_you_mean))
        // A key of a table in this one is no slip of the fingers.
        .or_else(|| elsewhere(&inside))
        .or_else(|| nearest(key, names.iter().copied()).map(did_you_mean))
        .or_else(|| elsewhere(&|_| true))
        .unwrap_or_else(|| {
            if names.len() > MAX_KEYS_LISTED {
                format!("known here: {}, …", names[..MAX_KEYS_LISTED].join(", "))
            } else {
                format!("known here: {}", names.join(", "))
            }
        });
    Diagnostic::error(span, format!("unknown key `{key}`"))
        .label(format!("expected a key of {what}"))
        .help(help)
}

fn named(path: &str, table: &Table) -> String {
    if path.is_empty() { table.what.to_string() } else { format!("`{path}`") }
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_string() } else { format!("{path}.{key}") }
}

fn list(names: &[&str], word: &str) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    match &*quoted {
        [] => String::new(),
        [one] => one.clone(),
        [firsts @ .., last] => format!("{} {word} {last}", firsts.join(", ")),
    }
}
