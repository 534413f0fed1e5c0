//! What the papers' load generators say, read: ab, h2load, k6; and our own, in their place.

pub mod ab;
pub mod generator;
pub mod h2load;
pub mod k6;

use std::time::Duration;

/// How the number of users or of iterations changes: how long, and where to.
pub type Stages = Vec<(Duration, u32)>;

/// The number that follows a name in a text.
fn number_after(text: &str, name: &str) -> Option<f64> {
    let at = text.find(name)?;
    let rest = text[at + name.len()..].trim_start();
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
    rest[..end].parse().ok()
}
