//! What the process says of itself, on standard error.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;

/// Begins to log by a filter such as `info` or `warn,subak_http=debug`.
///
/// # Errors
/// A message for the user when the filter cannot be read.
pub(crate) fn start(filter: &str) -> Result<(), String> {
    let parsed = EnvFilter::try_new(filter).map_err(|error| {
        format!("--log {filter}: {error}\n  one of error, warn, info, debug, or target=level pairs")
    })?;
    let on_terminal = std::io::stderr().is_terminal();
    tracing_subscriber::fmt()
        .with_env_filter(parsed)
        .with_writer(std::io::stderr)
        .with_ansi(on_terminal && std::env::var_os("NO_COLOR").is_none())
        .with_target(false)
        // Its way to report a log that takes nothing would end the process.
        .log_internal_errors(false)
        .init();
    Ok(())
}
