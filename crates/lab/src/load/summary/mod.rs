//! A report as people and programs read it: text, JSON, CSV, and the layouts of k6 and ab.

mod ab;
mod csv;
mod json;
mod k6;
mod text;

pub use ab::ab;
pub use csv::csv;
pub use json::json;
pub use k6::k6;
pub use text::text;

use std::time::Duration;

/// Milliseconds.
fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

#[cfg(test)]
mod tests;
