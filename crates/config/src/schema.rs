//! The vocabulary as a JSON Schema (draft 2020-12), for editors and other tools.
//!
//! The schema accepts whatever the parser accepts; the parser knows more (addresses, names of pools,
//! files), so a text that fits the schema can still be wrong.

use serde_json::{Map as Object, Value, json};
use subak_balance::catalogue::{self, OptionKind, OptionSpec};

use crate::keys::{Key, Kind, Rule, Table, Without};
use crate::scalar;
use crate::vocabulary::{ROOT, TABLES};

/// The schema of a whole configuration, as indented JSON.
pub fn schema() -> String {
    let mut root = table(&ROOT);
    root["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    root["title"] = json!("Subak configuration");
    let definitions: Object<String, Value> = TABLES
        .iter()
        .filter(|table| !std::ptr::eq(**table, &ROOT))
        .map(|one| (definition_name(one), table(one)))
        .collect();
    root["$defs"] = Value::Object(definitions);
    format!("{root:#}")
}

fn definition_name(table: &Table) -> String {
    let path = table.path.replace(".NAME", "").replace(", ", "_or_");
    path.replace('.', "_")
}

fn table(table: &Table) -> Value {
    let properties: Object<String, Value> =
        table.keys.iter().map(|key| (key.name.to_string(), property(key))).collect();
    let mut value = json!({
        "type": "object",
        "description": table.doc,
        "properties": properties,
        "additionalProperties": false,
    });
    let required: Vec<&str> = table
        .keys
        .iter()
        .filter(|key| key.without == Without::Required)
        .map(|key| key.name)
        .collect();
    if !required.is_empty() {
        value["required"] = json!(required);
    }
    let rules: Vec<Value> = table.rules.iter().map(rule).collect();
    if !rules.is_empty() {
        value["allOf"] = json!(rules);
    }
    value
}

fn rule(rule: &Rule) -> Value {
    let each = |names: &[&str]| -> Vec<Value> {
        names.iter().map(|name| json!({ "required": [name] })).collect()
    };
    match rule {
        Rule::ExactlyOne(names) => json!({ "oneOf": each(names) }),
        Rule::AtLeastOne(names) => json!({ "anyOf": each(names) }),
        Rule::AtMostOne(names) => json!({ "not": { "required": names } }),
    }
}

fn property(key: &Key) -> Value {
    let mut value = kind(&key.kind);
    value["description"] = json!(key.doc);
    match key.without {
        Without::Default(default) => {
            value["default"] = toml_value(default);
        }
        Without::Absent(words) => {
            value["description"] = json!(format!("{} Without it: {words}.", key.doc));
        }
        Without::Required => {}
    }
    value["examples"] = json!([toml_value(key.example)]);
    value
}

/// A value of the vocabulary, which is TOML, as JSON.
fn toml_value(text: &str) -> Value {
    let (entries, errors) = crate::tree::read(&format!("value = {text}"));
    assert!(errors.is_empty(), "the vocabulary holds {text}");
    entries.first().map_or(Value::Null, |entry| entry.node.value.to_json())
}

fn kind(of: &Kind) -> Value {
    match of {
        Kind::Boolean => json!({ "type": "boolean" }),
        Kind::Integer { min, max } => json!({ "type": "integer", "minimum": min, "maximum": max }),
        Kind::Ratio => json!({ "type": "number", "minimum": 0, "maximum": 1 }),
        Kind::Decimal { min, max } => json!({
            "type": "number", "minimum": f64::from(*min) / 1000.0, "maximum": f64::from(*max) / 1000.0,
        }),
        Kind::Duration | Kind::DurationWithin { .. } => {
            json!({ "type": "string", "pattern": scalar::DURATION_PATTERN })
        }
        Kind::Size { min, max } => json!({ "anyOf": [
            { "type": "integer", "minimum": min, "maximum": max },
            { "type": "string", "pattern": scalar::SIZE_PATTERN },
        ] }),
        Kind::OrUnlimited(inner) => json!({ "anyOf": [kind(inner), { "const": "unlimited" }] }),
        Kind::Choice(choices) => json!({ "enum": choices }),
        Kind::Text(text) => match text.pattern {
            Some(pattern) => json!({ "type": "string", "pattern": pattern }),
            None => json!({ "type": "string" }),
        },
        Kind::List(inner) => json!({ "type": "array", "items": kind(inner) }),
        Kind::OneOrMany(inner) => json!({ "anyOf": [
            kind(inner),
            { "type": "array", "items": kind(inner), "minItems": 1 },
        ] }),
        Kind::Either(kinds) => json!({ "anyOf": kinds.iter().map(kind).collect::<Vec<_>>() }),
        Kind::Table(table) => json!({ "$ref": format!("#/$defs/{}", definition_name(table)) }),
        Kind::Map(map) => json!({
            "type": "object",
            "propertyNames": { "pattern": map.pattern },
            "additionalProperties": kind(&map.value),
        }),
        Kind::Algorithm => algorithm(),
    }
}

/// Names, and for each entry of the catalogue a table with its own options.
fn algorithm() -> Value {
    let names: Vec<&str> = catalogue::names().collect();
    let mut forms = vec![json!({ "enum": names })];
    for listing in catalogue::all() {
        let mut own = vec![listing.name];
        own.extend(listing.aliases);
        let mut properties = Object::new();
        properties.insert(
            "algorithm".to_string(),
            json!({ "enum": own, "description": listing.summary }),
        );
        for option in listing.options {
            properties.insert(option.name.to_string(), algorithm_option(option));
        }
        let mut form =
            json!({ "type": "object", "properties": properties, "additionalProperties": false });
        if listing.name != catalogue::DEFAULT {
            form["required"] = json!(["algorithm"]);
        }
        forms.push(form);
    }
    json!({ "anyOf": forms })
}

fn algorithm_option(option: &OptionSpec) -> Value {
    let thousandths = |number: u32| json!(f64::from(number) / 1000.0);
    let mut value = match option.kind {
        OptionKind::Words(words) => json!({ "enum": words }),
        OptionKind::Integer { min, max } => {
            json!({ "type": "integer", "minimum": min, "maximum": max })
        }
        OptionKind::Decimal { min, max } => json!({
            "type": "number", "minimum": thousandths(min), "maximum": thousandths(max),
        }),
        OptionKind::Text { pattern, .. } => json!({ "type": "string", "pattern": pattern }),
    };
    value["description"] = json!(option.summary);
    if let Some(default) = option.default {
        value["default"] = toml_value(&default.to_string());
    }
    value
}
