//! The alert rules and the dashboard name what there is. Their rules are tried by promtool where it is
//! installed; Grafana is not asked, its file is looked at.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use subak_telemetry::{Kind, families};

fn packaging() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging")
}

/// Every word of a text that looks like a metric of ours.
fn named(text: &str) -> BTreeSet<&str> {
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    words.filter(|word| word.starts_with("subak_") || word.starts_with("process_")).collect()
}

#[test]
fn rules_and_dashboard_name_metrics_that_exist() {
    let mut known = BTreeSet::new();
    for family in families::ALL {
        known.insert(family.name.to_owned());
        if family.kind == Kind::Histogram {
            known.extend(["_bucket", "_sum", "_count"].map(|end| format!("{}{end}", family.name)));
        }
    }
    for file in ["prometheus/alerts.yml", "prometheus/alerts-test.yml", "grafana/subak.json"] {
        let text = std::fs::read_to_string(packaging().join(file)).expect(file);
        let named = named(&text);
        assert!(named.len() > 3, "{file}: {named:?}");
        for name in named {
            assert!(known.contains(name), "{file}: there is no metric {name}");
        }
    }
}

#[test]
fn the_dashboard_is_one() {
    let text = std::fs::read_to_string(packaging().join("grafana/subak.json")).expect("the file");
    let dashboard: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert!(dashboard["schemaVersion"].is_u64() && dashboard["title"].is_string());
    let panels = dashboard["panels"].as_array().expect("panels");
    let mut ids = BTreeSet::new();
    for panel in panels {
        assert!(ids.insert(panel["id"].as_u64().expect("an id")), "{panel}");
        let place = &panel["gridPos"];
        let (x, w) = (place["x"].as_u64().expect("x"), place["w"].as_u64().expect("w"));
        assert!(x + w <= 24, "{panel}");
        for target in panel["targets"].as_array().expect("targets") {
            let expression = target["expr"].as_str().expect("an expression");
            let brackets =
                |open, close| expression.matches(open).count() == expression.matches(close).count();
            assert!(brackets('(', ')') && brackets('{', '}') && brackets('[', ']'), "{expression}");
        }
    }
}

#[test]
fn promtool_finds_the_rules_right() {
    let directory = packaging().join("prometheus");
    for arguments in [["check", "rules", "alerts.yml"], ["test", "rules", "alerts-test.yml"]] {
        let run = Command::new("promtool").args(arguments).current_dir(&directory).output();
        let Ok(output) = run else {
            eprintln!("SKIPPED: promtool is not installed (Debian: prometheus)");
            return;
        };
        let said = [output.stdout, output.stderr].concat();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&said));
    }
}
