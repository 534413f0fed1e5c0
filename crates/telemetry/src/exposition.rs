//! The text that Prometheus reads, version 0.0.4: every family once, with its help, its kind and all
//! its series together.
//!
//! Source: "Exposition formats" of Prometheus's documentation.

use std::fmt::Write;

use crate::families::Family;
use crate::histogram::Counts;

/// The media type of the text.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// A text under construction.
#[derive(Debug, Default)]
pub struct Exposition {
    text: String,
}

/// The series of one family.
#[derive(Debug)]
pub struct Samples<'a> {
    text: &'a mut String,
    family: &'a Family,
}

impl Exposition {
    /// An empty text.
    pub fn new() -> Exposition {
        Exposition::default()
    }

    /// An empty text with room for so many bytes.
    pub fn with_capacity(bytes: usize) -> Exposition {
        Exposition { text: String::with_capacity(bytes) }
    }

    /// Begins a family. Each of them is to be begun once.
    pub fn family<'a>(&'a mut self, family: &'a Family) -> Samples<'a> {
        let Family { name, kind, help, .. } = family;
        // Nothing in the list of families needs to be escaped: a test holds it to that.
        let _ = writeln!(self.text, "# HELP {name} {help}\n# TYPE {name} {}", kind.name());
        Samples { text: &mut self.text, family }
    }

    /// The whole text.
    pub fn finish(self) -> String {
        self.text
    }
}

impl Samples<'_> {
    /// A whole number, with the values of the family's labels in its order.
    pub fn count(&mut self, labels: &[&str], value: u64) {
        self.name("", labels, None);
        match value {
            // Most of the numbers of a large text are 0 or 1.
            0..10 => {
                self.text.push(' ');
                self.text.push(char::from(b'0' + value as u8));
                self.text.push('\n');
            }
            _ => _ = writeln!(self.text, " {value}"),
        }
    }

    /// Any number.
    pub fn number(&mut self, labels: &[&str], value: f64) {
        self.name("", labels, None);
        let _ = match value {
            f64::INFINITY => writeln!(self.text, " +Inf"),
            f64::NEG_INFINITY => writeln!(self.text, " -Inf"),
            // `NaN` is written as Rust writes it.
            value => writeln!(self.text, " {value}"),
        };
    }

    /// A histogram.
    pub fn histogram(&mut self, labels: &[&str], counts: &Counts) {
        let mut count = 0;
        for (bound, below) in counts.cumulated() {
            self.name("_bucket", labels, Some(bound));
            let _ = writeln!(self.text, " {below}");
            count = below;
        }
        self.name("_sum", labels, None);
        let _ = writeln!(self.text, " {}", counts.sum_s());
        self.name("_count", labels, None);
        let _ = writeln!(self.text, " {count}");
    }

    fn name(&mut self, suffix: &str, labels: &[&str], bound: Option<&str>) {
        debug_assert_eq!(labels.len(), self.family.labels.len(), "{}", self.family.name);
        self.text.push_str(self.family.name);
        self.text.push_str(suffix);
        let named = self.family.labels.iter().copied().zip(labels.iter().copied());
        let mut before = '{';
        for (name, value) in named.chain(bound.map(|bound| ("le", bound))) {
            self.text.push(before);
            self.text.push_str(name);
            self.text.push_str("=\"");
            escape(value, self.text);
            self.text.push('"');
            before = ',';
        }
        if before == ',' {
            self.text.push('}');
        }
    }
}

/// A label's value may hold anything; three characters are written otherwise.
fn escape(value: &str, text: &mut String) {
    if !value.bytes().any(|byte| matches!(byte, b'\\' | b'"' | b'\n')) {
        text.push_str(value);
        return;
    }
    for character in value.chars() {
        match character {
            '\\' => text.push_str("\\\\"),
            '"' => text.push_str("\\\""),
            '\n' => text.push_str("\\n"),
            other => text.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Histogram, families};
    use std::time::Duration;

    #[test]
    fn a_family_is_written_with_its_help_kind_and_series() {
        let mut text = Exposition::new();
        text.family(&families::GENERATION).count(&[], 3);
        let mut samples = text.family(&families::LISTENER_REQUESTS);
        samples.count(&["a\"b\\c\nd", "2xx"], 5);
        samples.count(&["web", "none"], 0);
        let mut samples = text.family(&families::PROCESS_CPU);
        samples.number(&[], 1.5);
        samples.number(&[], f64::INFINITY);
        samples.number(&[], f64::NEG_INFINITY);
        samples.number(&[], f64::NAN);
        let expected = "\
# HELP subak_generation Counts configurations put in force since the process began.
# TYPE subak_generation gauge
subak_generation 3
# HELP subak_listener_requests_total Requests, by the first digit of the status they were answered with; none: no answer, or not a whole one.
# TYPE subak_listener_requests_total counter
subak_listener_requests_total{listener=\"a\\\"b\\\\c\\nd\",status=\"2xx\"} 5
subak_listener_requests_total{listener=\"web\",status=\"none\"} 0
# HELP process_cpu_seconds_total CPU time of the process, user and system.
# TYPE process_cpu_seconds_total counter
process_cpu_seconds_total 1.5
process_cpu_seconds_total +Inf
process_cpu_seconds_total -Inf
process_cpu_seconds_total NaN
";
        assert_eq!(text.finish(), expected);
    }

    #[test]
    fn a_histogram_is_cumulated_and_ends_with_sum_and_count() {
        let histogram = Histogram::default();
        histogram.record(Duration::from_millis(3));
        histogram.record(Duration::from_secs(100));
        let mut counts = Counts::default();
        histogram.add_to(&mut counts);
        let mut text = Exposition::new();
        text.family(&families::POOL_DURATION).histogram(&["app"], &counts);
        let text = text.finish();
        let name = "subak_pool_request_duration_seconds";
        for line in [
            "_bucket{pool=\"app\",le=\"0.002\"} 0\n",
            "_bucket{pool=\"app\",le=\"0.005\"} 1\n",
            "_bucket{pool=\"app\",le=\"60\"} 1\n",
            "_bucket{pool=\"app\",le=\"+Inf\"} 2\n",
            "_sum{pool=\"app\"} 100.003\n",
            "_count{pool=\"app\"} 2\n",
        ] {
            assert!(text.contains(&format!("\n{name}{line}")), "{line}\n{text}");
        }
    }

    #[test]
    fn no_help_needs_to_be_escaped() {
        for family in families::ALL {
            assert!(!family.help.contains(['\\', '\n']), "{}", family.name);
        }
    }
}
