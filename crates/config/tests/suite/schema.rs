//! The JSON Schema: committed as it is generated, and true: what the parser accepts it accepts, and
//! it refuses what it can know to be wrong.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::{read, to_json};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use regex::Regex;
use serde_json::Value;
use subak_config::schema;

/// What the schema has against a value. Knows exactly the keywords that `schema` uses and panics on
/// any other, so that none can be written that nothing checks.
fn check(root: &Value, schema: &Value, value: &Value, at: &str) -> Result<(), String> {
    let fail = |what: &str| Err(format!("{at}: {what}: {value}"));
    for (keyword, rule) in schema.as_object().expect("a schema is an object") {
        let fits = match keyword.as_str() {
            "$schema" | "$defs" | "title" | "description" | "default" | "examples" => true,
            "$ref" => {
                let pointer = rule
                    .as_str()
                    .and_then(|rule| rule.strip_prefix('#'))
                    .expect("a local reference");
                check(root, root.pointer(pointer).expect("a definition"), value, at)?;
                true
            }
            "type" => match rule.as_str().expect("one type") {
                "object" => value.is_object(),
                "array" => value.is_array(),
                "string" => value.is_string(),
                "boolean" => value.is_boolean(),
                "integer" => value.is_i64() || value.is_u64(),
                "number" => value.is_number(),
                other => panic!("unknown type {other}"),
            },
            "enum" => rule.as_array().expect("a list").contains(value),
            "const" => rule == value,
            "minimum" => {
                value.as_f64().is_none_or(|value| value >= rule.as_f64().expect("a number"))
            }
            "maximum" => {
                value.as_f64().is_none_or(|value| value <= rule.as_f64().expect("a number"))
            }
            "pattern" => value.as_str().is_none_or(|value| {
                Regex::new(rule.as_str().expect("a pattern")).expect("a pattern").is_match(value)
            }),
            "minItems" => value
                .as_array()
                .is_none_or(|items| items.len() as u64 >= rule.as_u64().expect("a count")),
            "items" => {
                for (index, item) in value.as_array().into_iter().flatten().enumerate() {
                    check(root, rule, item, &format!("{at}[{index}]"))?;
                }
                true
            }
            "properties" => {
                for (key, schema) in rule.as_object().expect("an object") {
                    if let Some(inner) = value.get(key) {
                        check(root, schema, inner, &format!("{at}.{key}"))?;
                    }
                }
                true
            }
            "additionalProperties" => {
                let known = schema.get("properties").and_then(Value::as_object);
                for (key, inner) in value.as_object().into_iter().flatten() {
                    if known.is_some_and(|known| known.contains_key(key)) {
                        continue;
                    }
                    if *rule == Value::Bool(false) {
                        return fail(&format!("unknown key {key}"));
                    }
                    check(root, rule, inner, &format!("{at}.{key}"))?;
                }
                true
            }
            "propertyNames" => {
                for key in value.as_object().into_iter().flatten().map(|(key, _)| key) {
                    check(root, rule, &Value::from(key.as_str()), at)?;
                }
                true
            }
            "required" => rule
                .as_array()
                .expect("a list")
                .iter()
                .all(|key| value.get(key.as_str().expect("a key")).is_some()),
            "anyOf" => rule
                .as_array()
                .expect("a list")
                .iter()
                .any(|one| check(root, one, value, at).is_ok()),
            "allOf" => rule
                .as_array()
                .expect("a list")
                .iter()
                .all(|one| check(root, one, value, at).is_ok()),
            "oneOf" => {
                rule.as_array()
                    .expect("a list")
                    .iter()
                    .filter(|one| check(root, one, value, at).is_ok())
                    .count()
                    == 1
            }
            "not" => check(root, rule, value, at).is_err(),
            other => panic!("the schema uses {other}, which this test does not check"),
        };
        if !fits {
            return fail(keyword);
        }
    }
    Ok(())
}

fn parsed() -> Value {
    serde_json::from_str(&schema()).expect("the schema is JSON")
}

fn fits(text: &str) -> Result<(), String> {
    let schema = parsed();
    check(&schema, &schema, &to_json(text), "")
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn the_committed_schema_is_the_generated_one() {
    let path = repository().join("docs/schema/subak.schema.json");
    let generated = schema() + "\n";
    if std::env::var_os("UPDATE").is_some() {
        fs::create_dir_all(path.parent().expect("a directory")).expect("a directory");
        fs::write(&path, &generated).expect("a writable schema");
    }
    let committed = fs::read_to_string(&path).unwrap_or_default();
    assert!(committed == generated, "out of date: run this test with UPDATE=1 in the environment");
}

#[test]
fn every_example_value_in_the_schema_fits_it() {
    let schema = parsed();
    let tables =
        std::iter::once(&schema).chain(schema["$defs"].as_object().expect("definitions").values());
    let mut count = 0;
    for table in tables {
        for (key, property) in table["properties"].as_object().expect("properties") {
            for value in property["examples"]
                .as_array()
                .expect("examples")
                .iter()
                .chain(property.get("default"))
            {
                count += 1;
                check(&schema, property, value, key).unwrap_or_else(|error| panic!("{error}"));
            }
        }
    }
    assert!(count > 100, "{count}");
}

#[test]
fn every_example_file_fits() {
    for entry in fs::read_dir(repository().join("examples")).expect("examples") {
        let path = entry.expect("an entry").path();
        if path.extension().is_some_and(|extension| extension == "toml") {
            let text = fs::read_to_string(&path).expect("a readable example");
            fits(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        }
    }
}

#[test]
fn it_refuses_what_it_can_know() {
    let base =
        "[listener.web]\nbind = \"0.0.0.0:80\"\npool = \"app\"\n[pool.app]\nendpoints = []\n";
    assert_eq!(fits(base), Ok(()));
    for (from, to) in [
        ("bind = \"0.0.0.0:80\"", ""),
        ("pool = \"app\"\n", ""),
        ("pool = \"app\"\n", "pool = \"app\"\nhealth = {}\n"),
        ("pool = \"app\"\n", "pool = \"app\"\nroute = [{ pool = \"app\", respond = 404 }]\n"),
        ("pool = \"app\"\n", "route = [{ host = \"a\" }]\n"),
        ("pool = \"app\"\n", "pool = \"app\"\ntimeouts = { head = \"10\" }\n"),
        ("pool = \"app\"\n", "pool = \"app\"\nlimits = { fields = 0 }\n"),
        ("pool = \"app\"\n", "pool = \"app\"\nerror_pages = { \"200\" = \"x\" }\n"),
        ("pool = \"app\"\n", "pool = \"app\"\nprotocols = [\"h3\"]\n"),
        ("[pool.app]", "[pool.\"a b\"]"),
        ("endpoints = []", "endpoints = [1]"),
        ("endpoints = []", "endpoints = []\nbalance = \"fastest\""),
        (
            "endpoints = []",
            "endpoints = []\nbalance = { algorithm = \"ip_hash\", order = \"burst\" }",
        ),
        ("endpoints = []", "endpoints = []\nbalance = { algorithm = \"p2c\", choices = 9 }"),
        ("endpoints = []", "endpoints = []\nbalance = { algorithm = \"hash\", key = \"header\" }"),
        (
            "endpoints = []",
            "endpoints = []\nbalance = { algorithm = \"maglev\", balance_factor = 1.001 }",
        ),
        ("endpoints = []", "endpoints = []\nretry = { budget = 2 }"),
        ("endpoints = []", "endpoints = []\nretry = { on = [\"404\"] }"),
        ("endpoints = []", "endpoints = []\nhealth = \"healthz\""),
        ("endpoints = []", "endpoints = []\nhealth = { interval = \"1s\" }"),
        ("endpoints = []", "endpoints = []\nhealth = { http = \"/\", tcp = true }"),
        ("endpoints = []", "endpoints = []\nhealth = { tcp = true, jitter = 0.6 }"),
        ("endpoints = []", "endpoints = []\neject = { latency = { factor = 0.5 } }"),
        ("endpoints = []", "endpoints = []\nstick = { cookie = \"a b\" }"),
        ("endpoints = []", "endpoints = []\nstick = { path = \"/\" }"),
        ("endpoints = []", "endpoints = []\nweigher = { resource = true }"),
        ("endpoints = []", "endpoints = []\non_all_down = \"give_up\""),
        ("[listener.web]", "admin = { token_file = \"admin.token\" }\n[listener.web]"),
    ] {
        let text = base.replace(from, to);
        assert_ne!(text, base);
        assert!(fits(&text).is_err(), "{text}");
    }
}

/// Values that may stand anywhere, right or wrong.
fn value() -> impl Strategy<Value = String> {
    let scalar = prop_oneof![
        Just("true".to_string()),
        (-2i64..2000).prop_map(|number| number.to_string()),
        Just("0.5".to_string()),
        prop::sample::select(
            &[
                "10s",
                "250ms",
                "1m30s",
                "64k",
                "64KiB",
                "0",
                "unlimited",
                "h2",
                "app",
                "/x",
                "unix",
                "10.0.0.0/8",
                "connect",
                "503",
                "burst",
                "wrr",
                "ip_hash",
                "maglev",
                "uri_hash",
                "cookie:id",
                "ring",
                "original",
                "preserve",
                "10.0.0.2:80",
                "example.com",
                "https://{host}/",
                "*:81",
                "site.pem",
                "error.html",
                "text/html",
                "tcp",
                "fail_closed",
                "SUBAK",
                "source",
                "agent.token",
                "2xx",
                "",
            ][..]
        )
        .prop_map(|text| format!("\"{text}\"")),
    ];
    scalar.prop_recursive(2, 8, 3, |inner| {
        let key = prop::sample::select(
            &[
                "head",
                "rate",
                "grace",
                "body",
                "prefix",
                "exact",
                "to",
                "status",
                "set",
                "add",
                "remove",
                "algorithm",
                "order",
                "key",
                "method",
                "balance_factor",
                "choices",
                "address",
                "weight",
                "budget",
                "on",
                "length",
                "timeout",
                "initial",
                "max",
                "5xx",
                "x_forwarded",
                "http",
                "tcp",
                "port",
                "interval",
                "consecutive",
                "share",
                "over",
                "from",
                "cookie",
                "table",
                "resource",
                "token_file",
            ][..],
        );
        let table = prop::collection::btree_map(key, inner.clone(), 0..3).prop_map(|pairs| {
            let pairs: Vec<String> =
                pairs.iter().map(|(key, value)| format!("{key} = {value}")).collect();
            format!("{{ {} }}", pairs.join(", "))
        });
        let list =
            prop::collection::vec(inner, 0..3).prop_map(|items| format!("[{}]", items.join(", ")));
        prop_oneof![table, list]
    })
}

/// Keys of a listener, of a route and of a pool, each with some value.
fn document() -> impl Strategy<Value = String> {
    let keys = |table: &str| -> Vec<&'static str> {
        let found =
            subak_config::vocabulary::TABLES.iter().find(|one| one.path == table).expect("a table");
        found.keys.iter().map(|key| key.name).collect()
    };
    let pairs = |keys: Vec<&'static str>| {
        prop::collection::btree_map(prop::sample::select(keys), value(), 0..2)
    };
    let tables = ["listener.NAME", "listener.NAME.route", "pool.NAME"].map(keys);
    let [listener, route, pool] = tables.map(pairs);
    (listener, route, pool).prop_map(|(mut listener, mut route, mut pool)| {
        let text = |value: &str| value.to_string();
        listener.entry("bind").or_insert(text("\"0.0.0.0:80\""));
        listener.entry("pool").or_insert(text("\"app\""));
        listener.remove("route");
        pool.entry("endpoints").or_insert(text("[\"10.0.0.2:80\"]"));
        if !route.contains_key("redirect") && !route.contains_key("respond") {
            route.entry("pool").or_insert(text("\"app\""));
        }
        let mut out = String::new();
        for (header, pairs) in
            [("[listener.web]", listener), ("[[listener.web.route]]", route), ("[pool.app]", pool)]
        {
            out.push_str(&format!("{header}\n"));
            for (key, value) in pairs {
                out.push_str(&format!("{key} = {value}\n"));
            }
        }
        out
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    #[test]
    fn what_the_parser_accepts_the_schema_accepts(text in document()) {
        if read(&text).config.is_some() {
            prop_assert_eq!(fits(&text), Ok(()), "{}", text);
        }
    }
}

#[test]
fn the_random_documents_are_accepted_often_enough_to_mean_something() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let accepted = (0..500)
        .filter(|_| {
            let tree = document().new_tree(&mut runner).expect("a document");
            read(&tree.current()).config.is_some()
        })
        .count();
    assert!(accepted >= 25, "{accepted} of 500");
}
