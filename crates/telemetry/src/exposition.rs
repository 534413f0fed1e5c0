//! The text that Prometheus reads, in two dialects: every family once, with its help, its kind and all
//! its series together.
//!
//! OpenMetrics differs in what surrounds the samples: a counter's family is named without `_total`, a
//! family whose name ends in a unit says so, bounds of histograms are written as floating point
//! numbers, and a last line tells that the text is whole.
//!
//! Sources: "Exposition formats" of Prometheus's documentation (0.0.4), the OpenMetrics specification
//! (1.0.0).

use std::fmt::Write;

use crate::families::{Family, Kind};
use crate::histogram::Counts;

/// How the text is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Dialect {
    /// Prometheus's own, version 0.0.4.
    Prometheus,
    /// OpenMetrics, version 1.0.0.
    OpenMetrics,
}

impl Dialect {
    /// The media type of the text.
    pub fn content_type(self) -> &'static str {
        match self {
            Dialect::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
            Dialect::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

/// A text under construction.
#[derive(Debug)]
pub struct Exposition {
    text: String,
    dialect: Dialect,
}

/// The series of one family.
#[derive(Debug)]
pub struct Samples<'a> {
    text: &'a mut String,
    family: &'a Family,
    dialect: Dialect,
}

impl Exposition {
    /// An empty text.
    pub fn new(dialect: Dialect) -> Exposition {
        Exposition { text: String::new(), dialect }
    }

    /// An empty text with room for so many bytes.
    pub fn with_capacity(dialect: Dialect, bytes: usize) -> Exposition {
        Exposition { text: String::with_capacity(bytes), dialect }
    }

    /// Begins a family. Each of them is to be begun once.
    pub fn family<'a>(&'a mut self, family: &'a Family) -> Samples<'a> {
        let Family { name, kind, help, .. } = family;
        let name = match (self.dialect, kind) {
            (Dialect::OpenMetrics, Kind::Counter) => name.strip_suffix("_total").unwrap_or(name),
            _ => name,
        };
        // Nothing in the list of families needs to be escaped: a test holds it to that.
        let _ = writeln!(self.text, "# HELP {name} {help}\n# TYPE {name} {}", kind.name());
        if let (Dialect::OpenMetrics, Some(unit)) = (self.dialect, unit(name)) {
            let _ = writeln!(self.text, "# UNIT {name} {unit}");
        }
        Samples { text: &mut self.text, family, dialect: self.dialect }
    }

    /// The whole text.
    pub fn finish(mut self) -> String {
        if self.dialect == Dialect::OpenMetrics {
            self.text.push_str("# EOF\n");
        }
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
            let is_bound = bound.is_some() && name == "le";
            if is_bound && self.dialect == Dialect::OpenMetrics && is_whole(value) {
                self.text.push_str(".0");
            }
            self.text.push('"');
            before = ',';
        }
        if before == ',' {
            self.text.push('}');
        }
    }
}

/// The unit that a name ends in.
fn unit(name: &str) -> Option<&str> {
    let (_, last) = name.rsplit_once('_')?;
    ["seconds", "bytes", "ratio"].contains(&last).then_some(last)
}

/// Whether a bound is written without a point.
fn is_whole(bound: &str) -> bool {
    bound.bytes().all(|byte| byte.is_ascii_digit())
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
        let mut text = Exposition::new(Dialect::Prometheus);
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
        let mut text = Exposition::new(Dialect::Prometheus);
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
    fn openmetrics_names_families_without_total_tells_units_and_ends() {
        let histogram = Histogram::default();
        histogram.record(Duration::from_millis(3));
        let mut counts = Counts::default();
        histogram.add_to(&mut counts);
        let mut text = Exposition::new(Dialect::OpenMetrics);
        text.family(&families::LISTENER_BYTES).count(&["web", "in"], 5);
        text.family(&families::PROCESS_CPU).number(&[], 1.5);
        text.family(&families::GENERATION).count(&[], 3);
        text.family(&families::POOL_DURATION).histogram(&["app"], &counts);
        let text = text.finish();
        for (name, unit) in [("subak_listener_bytes", "bytes"), ("process_cpu_seconds", "seconds")]
        {
            assert!(
                text.contains(&format!("# TYPE {name} counter\n# UNIT {name} {unit}\n")),
                "{text}"
            );
        }
        assert!(
            text.contains("\nsubak_listener_bytes_total{listener=\"web\",direction=\"in\"} 5\n")
        );
        assert!(text.contains("# TYPE subak_generation gauge\nsubak_generation 3\n"), "{text}");
        for (bound, below) in [("0.005", 1), ("1.0", 1), ("60.0", 1), ("+Inf", 1)] {
            let line = format!("_bucket{{pool=\"app\",le=\"{bound}\"}} {below}\n");
            assert!(text.contains(&line), "{line}{text}");
        }
        assert!(text.ends_with("\n# EOF\n"), "{text}");
    }

    #[test]
    fn no_help_needs_to_be_escaped() {
        for family in families::ALL {
            assert!(!family.help.contains(['\\', '\n']), "{}", family.name);
        }
    }
}
