//! What several tests need: the files that examples name, and TOML as JSON.
#![allow(dead_code, reason = "each test uses its part")]

use std::path::{Path, PathBuf};

use serde_json::Value;
use subak_config::{InMemory, Outcome, parse_with};
use toml::de::{DeTable, DeValue};

/// The files that examples name.
pub(crate) fn files() -> InMemory {
    let pages = ["502.html", "error.html", "busy.html", "404.html"];
    let mut files = InMemory::default();
    for page in pages {
        files.files.insert(PathBuf::from(page), b"<p>sorry</p>\n".to_vec());
    }
    for (name, contents) in [
        ("site.pem", &include_bytes!("../../../certificate/testdata/site.pem")[..]),
        ("site.key", include_bytes!("../../../certificate/testdata/site.key")),
        ("site.ocsp", include_bytes!("../../../certificate/testdata/site.ocsp")),
        ("other.pem", include_bytes!("../../../certificate/testdata/other.pem")),
        ("other.key", include_bytes!("../../../certificate/testdata/other.key")),
        ("ca.pem", include_bytes!("../../../certificate/testdata/ca.pem")),
        ("internal.pem", include_bytes!("../../../certificate/testdata/ca.pem")),
        ("client.pem", include_bytes!("../../../certificate/testdata/other.pem")),
        ("client.key", include_bytes!("../../../certificate/testdata/other.key")),
        ("revoked.pem", include_bytes!("../../../certificate/testdata/ca.crl")),
        ("clients.pem", include_bytes!("../../../certificate/testdata/ca.pem")),
        ("clients.crl", include_bytes!("../../../certificate/testdata/ca.crl")),
    ] {
        files.files.insert(PathBuf::from(name), contents.to_vec());
    }
    files.files.insert(
        PathBuf::from("eab.key"),
        b"zWNDZM6eQGHWpSRTPal5eIUYFTu7EajVIoguysqZ9wG4\n".to_vec(),
    );
    for name in ["admin.token", "agent.token"] {
        files.files.insert(PathBuf::from(name), format!("{name}-0123456789\n").into_bytes());
    }
    let keys = b"# the new one first\n00ff00ff00ff00ff00ff00ff00ff00ff\n\nan old key of words\n";
    files.files.insert(PathBuf::from("session.keys"), keys.to_vec());
    let more = b"[pool.more]\nendpoints = [\"10.0.0.4:8080\"]\n".to_vec();
    files.files.insert(PathBuf::from("conf.d/more.toml"), more);
    files
}

/// Reads a text whose files are those of [`files`].
pub(crate) fn read(text: &str) -> Outcome {
    parse_with(text, Path::new("subak.toml"), &files())
}

/// Valid TOML as JSON.
pub(crate) fn to_json(text: &str) -> Value {
    let table = DeTable::parse(text).expect("valid TOML");
    table_to_json(table.get_ref())
}

fn table_to_json(table: &DeTable<'_>) -> Value {
    let entries = table
        .iter()
        .map(|(key, value)| (key.get_ref().to_string(), value_to_json(value.get_ref())));
    Value::Object(entries.collect())
}

fn value_to_json(value: &DeValue<'_>) -> Value {
    match value {
        DeValue::String(text) => Value::from(text.as_ref()),
        DeValue::Integer(integer) => {
            Value::from(i64::from_str_radix(integer.as_str(), integer.radix()).expect("in range"))
        }
        DeValue::Float(float) => Value::from(float.as_str().parse::<f64>().expect("a float")),
        DeValue::Boolean(truth) => Value::from(*truth),
        DeValue::Datetime(datetime) => Value::from(datetime.to_string()),
        DeValue::Array(items) => items.iter().map(|item| value_to_json(item.get_ref())).collect(),
        DeValue::Table(table) => table_to_json(table),
    }
}
