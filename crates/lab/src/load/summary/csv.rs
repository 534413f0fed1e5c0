//! The report interval by interval, as CSV.

use std::fmt::Write;

use super::super::LoadReport;
use super::millis;

/// One line for each interval, below one that names the columns and their units.
pub fn csv(report: &LoadReport) -> String {
    let mut out =
        "at_s,took_s,load,in_flight,answered,failed,mean_ms,p50_ms,p95_ms,p99_ms,max_ms\n"
            .to_owned();
    for moment in &report.moments {
        // Writing to a String cannot fail.
        let _ = writeln!(
            out,
            "{:.3},{:.3},{},{},{},{},{:.3},{:.3},{:.3},{:.3},{:.3}",
            moment.at.as_secs_f64(),
            moment.took.as_secs_f64(),
            moment.load,
            moment.in_flight,
            moment.answered,
            moment.failed,
            millis(moment.mean),
            millis(moment.p50),
            millis(moment.p95),
            millis(moment.p99),
            millis(moment.max),
        );
    }
    out
}
