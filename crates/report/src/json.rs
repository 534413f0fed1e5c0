//! Reports as JSON, both ways.

use std::fmt;

use crate::Report;

/// Why a text is not a report.
#[derive(Debug)]
pub struct NotAReport(serde_json::Error);

impl fmt::Display for NotAReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "this is not the JSON of a report: {}", self.0)
    }
}

impl std::error::Error for NotAReport {}

pub(crate) fn write(report: &Report) -> String {
    // Strings, numbers and lists: nothing in a report can fail to be written.
    let mut text = serde_json::to_string_pretty(report).unwrap_or_default();
    text.push('\n');
    text
}

pub(crate) fn read(text: &str) -> Result<Report, NotAReport> {
    serde_json::from_str(text).map_err(NotAReport)
}
