//! docs/metrics.md is written by the list of families. `UPDATE=1 cargo test -p subak-telemetry` writes
//! it anew.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use subak_telemetry::{BOUNDS, Cause, Flood, ProblemKind, families};

const INTRODUCTION: &str = "\
# Metrics

`GET /metrics` on the [Admin API](admin.md) answers in the text format of Prometheus, version 0.0.4, or in OpenMetrics 1.0.0 where `Accept` asks for `application/openmetrics-text`: a counter's family is named without `_total` there, and `le=\"1\"` is `le=\"1.0\"`.

```yaml not-run=\"of Prometheus' configuration\"
# prometheus.yml, with admin = { tcp = \"127.0.0.1:9000\", token_file = \"/etc/subak/token\" }
scrape_configs:
  - job_name: subak
    authorization: { credentials_file: /etc/subak/token }
    static_configs: [{ targets: [\"127.0.0.1:9000\"] }]
```

[packaging/prometheus/alerts.yml](../packaging/prometheus/alerts.yml) has alert rules, and tests for them that `promtool test rules` runs; [packaging/grafana/subak.json](../packaging/grafana/subak.json) is a dashboard to import.

Counters go on over reloads, as long as the listener or pool keeps its name and the endpoint its pool and address. Counting costs the data path five additions a request to counters that no other worker writes, and one to a counter of the endpoint; nothing is looked up by name while a request is served.
";

fn document() -> String {
    let mut text = INTRODUCTION.to_owned();
    text.push_str("\n## All of them\n\n| name | kind | labels | says |\n|---|---|---|---|\n");
    for family in families::ALL {
        let labels: Vec<_> = family.labels.iter().map(|label| format!("`{label}`")).collect();
        let (name, kind) = (family.name, family.kind.name());
        writeln!(text, "| `{name}` | {kind} | {} | {} |", labels.join(", "), family.help)
            .expect("writing to memory");
    }
    text.push_str("\n## Labels\n\n`listener` and `pool` are names of the configuration; `endpoint` is the endpoint as it is written there, without its options. `status` is one of `1xx` (a tunnel), `2xx`, `3xx`, `4xx`, `5xx`, `none`. `state` is one of `ready`, `drain`, `maintenance`, `down`, `back_off`. `class` is one of `free`, `normal`, `overload`. `result` is one of `ok`, `refused`; of an access log `written`, `dropped`, of a probe `ok`, `failed`, `inconclusive`. `kind` of a probe is `probe` or `agent`. `direction` is `in` or `out`. `log` is where the lines go.\n\nWhy a request was not served:\n\n| `cause` | `fault` | means |\n|---|---|---|\n");
    for cause in Cause::ALL {
        let (name, fault, meaning) = (cause.name(), cause.blame().name(), cause.meaning());
        writeln!(text, "| `{name}` | `{fault}` | {meaning} |").expect("writing to memory");
    }
    text.push_str("\nWhat clients can do too much of on an HTTP/2 connection:\n\n| `kind` | means |\n|---|---|\n");
    for flood in Flood::ALL {
        writeln!(text, "| `{}` | {} |", flood.name(), flood.meaning()).expect("writing to memory");
    }
    text.push_str("\nWhat can be wrong:\n\n| `kind` | means |\n|---|---|\n");
    for kind in ProblemKind::ALL {
        writeln!(text, "| `{}` | {} |", kind.name(), kind.meaning()).expect("writing to memory");
    }
    let bounds: Vec<_> = BOUNDS.iter().map(|(_, text)| format!("`{text}`")).collect();
    writeln!(text, "\n`le` of a histogram, in seconds: {}, `+Inf`.", bounds.join(", "))
        .expect("writing to memory");
    text
}

#[test]
fn the_document_lists_what_is_shown() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/metrics.md");
    let expected = document();
    if std::env::var_os("UPDATE").is_some() {
        fs::write(&path, &expected).expect("write docs/metrics.md");
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == expected,
        "docs/metrics.md is out of date: UPDATE=1 cargo test -p subak-telemetry"
    );
}
