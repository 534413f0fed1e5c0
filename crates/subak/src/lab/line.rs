//! How far a command is: one line on a terminal, which changes; nothing elsewhere.

use std::io::{IsTerminal, Write};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Written at most so often.
const EVERY: Duration = Duration::from_millis(100);

/// Cells of a bar.
const CELLS: usize = 24;

/// The line, on standard error.
pub(super) struct Line {
    is_shown: bool,
    last: Mutex<Option<Instant>>,
}

impl Line {
    pub(super) fn new(is_quiet: bool) -> Line {
        let is_shown = !is_quiet && std::io::stderr().is_terminal();
        Line { is_shown, last: Mutex::new(None) }
    }

    /// Whether there is somebody to see it.
    pub(super) fn is_shown(&self) -> bool {
        self.is_shown
    }

    /// Shows what `text` says, unless it was written a moment ago.
    pub(super) fn show(&self, text: impl FnOnce() -> String) {
        if !self.is_shown {
            return;
        }
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if last.is_none_or(|last| last.elapsed() >= EVERY) {
            *last = Some(Instant::now());
            // A terminal that is too narrow cuts it off: what went on to a next line would stay there.
            write(&format!("\r\x1b[K\x1b[?7l{}\x1b[?7h", text()));
        }
    }

    /// Takes the line away again.
    pub(super) fn clear(&self) {
        if self.is_shown {
            write("\r\x1b[K");
        }
    }
}

/// A share, 0 to 1, as a bar.
pub(super) fn bar(share: f64) -> String {
    let full = ((share.clamp(0.0, 1.0) * CELLS as f64) as usize).min(CELLS);
    format!("[{}{}]", "=".repeat(full), " ".repeat(CELLS - full))
}

/// A terminal that is gone is no reason to end a measurement.
fn write(text: &str) {
    let mut stderr = std::io::stderr();
    let _ = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
}
