//! Grafana's k6, with a script made for the run; its summary is exported as JSON and read.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::cell::{Measured, Need};
use crate::world::World;

/// The metrics of k6's summary that the paper's tables show, in their order.
pub const METRICS: [&str; 17] = [
    "data_received",
    "data_sent",
    "http_req_blocked",
    "http_req_connecting",
    "http_req_duration",
    "http_req_duration{expected_response:true}",
    "http_req_failed",
    "http_req_receiving",
    "http_req_sending",
    "http_req_tls_handshaking",
    "http_req_waiting",
    "http_reqs",
    "iteration_duration",
    "iterations",
    "vus",
    "vus_max",
    "dropped_iterations",
];

/// How k6 is called.
#[derive(Clone, Debug)]
pub struct Call {
    /// The options of the script, as JavaScript.
    pub options: String,
    /// What is asked for in each iteration, before a second of sleep.
    pub url: String,
    /// Addresses that users come from, as k6's `--local-ips` has them; one if none.
    pub sources: Option<String>,
    /// It is stopped after this, as by Ctrl-C, if it has not ended.
    pub at_most: Duration,
}

/// Stages as JavaScript.
pub fn stages(stages: &[(Duration, u32)]) -> String {
    let each = |(time, target): &(Duration, u32)| {
        format!("{{ duration: '{}ms', target: {target} }}", time.as_millis())
    };
    format!("[{}]", stages.iter().map(each).collect::<Vec<_>>().join(", "))
}

impl Call {
    fn script(&self) -> String {
        format!(
            "import http from 'k6/http';\nimport {{ sleep }} from 'k6';\n\
             export const options = {{ insecureSkipTLSVerify: true, {} }};\n\
             export default () => {{\n  http.get('{}');\n  sleep(1);\n}};\n",
            self.options, self.url
        )
    }

    /// Runs it. Every number of its summary comes back as `metric.column`.
    ///
    /// # Errors
    /// It is not there, or wrote no summary.
    pub fn run(&self, world: &World) -> Result<Measured, String> {
        let (script, summary) = (world.path("script.js"), world.path("summary.json"));
        let failed = |error: std::io::Error| format!("{}: {error}", script.display());
        fs::write(&script, self.script()).map_err(failed)?;
        let _ = fs::remove_file(&summary);
        let mut command = Command::new(world.tool(Need::K6)?);
        command.args(["run", "--quiet", "--no-color", "--no-usage-report", "--log-output=none"]);
        if let Some(sources) = &self.sources {
            command.arg(format!("--local-ips={sources}"));
        }
        command.arg("--summary-export").arg(&summary).arg(&script);
        let said = world.say(&mut command, self.at_most)?;
        let text = fs::read_to_string(&summary)
            .map_err(|error| format!("k6 wrote no summary ({error}): {}", said.text.trim()))?;
        let numbers = read(&text).ok_or_else(|| format!("k6's summary: {text}"))?;
        let commands = vec!["k6 run script.js".to_owned()];
        Ok(Measured { numbers, commands, ..Measured::default() })
    }
}

fn read(text: &str) -> Option<BTreeMap<String, f64>> {
    let json: Value = serde_json::from_str(text).ok()?;
    let metrics = json.get("metrics")?.as_object()?;
    let mut numbers = BTreeMap::new();
    for (metric, columns) in metrics {
        for (column, value) in columns.as_object()? {
            if let Some(value) = value.as_f64() {
                numbers.insert(format!("{metric}.{column}"), value);
            }
        }
    }
    Some(numbers)
}

#[cfg(test)]
mod tests {
    use super::{read, stages};
    use std::time::Duration;

    #[test]
    fn reads_the_summary_of_k6() {
        let text = r#"{ "metrics": {
            "http_req_duration{expected_response:true}": { "avg": 1.5, "p(95)": 2.25 },
            "http_req_failed": { "passes": 3, "fails": 97, "value": 0.03 } },
            "root_group": { "name": "" } }"#;
        let numbers = read(text).unwrap();
        assert_eq!(numbers["http_req_duration{expected_response:true}.p(95)"], 2.25);
        assert_eq!(numbers["http_req_failed.passes"], 3.0);
        assert_eq!(read("{}"), None);
    }

    #[test]
    fn stages_are_written_as_k6_reads_them() {
        let text = stages(&[(Duration::from_secs(300), 100), (Duration::from_secs(1), 0)]);
        assert_eq!(
            text,
            "[{ duration: '300000ms', target: 100 }, { duration: '1000ms', target: 0 }]"
        );
    }
}
