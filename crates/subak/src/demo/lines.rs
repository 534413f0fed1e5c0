//! What is printed where nothing can be drawn: a line a second, and what happens between. Before and
//! after it, on a terminal too, the configuration and the last words.

use std::fmt::Write as _;
use std::io::{self, Stdout, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use super::{ENDPOINTS, Tally};

/// How many of the last answers stand in a line.
pub(super) const LAST: usize = 12;

/// Standard output.
pub(super) struct Lines {
    out: Stdout,
    /// Seconds of the last line.
    told: u64,
}

impl Lines {
    pub(super) fn new() -> Lines {
        Lines { out: io::stdout(), told: 0 }
    }

    /// Says what will be seen, and by what configuration.
    pub(super) fn introduce(&mut self, configuration: &str) -> io::Result<()> {
        let indented: String = configuration.lines().map(|line| format!("    {line}\n")).collect();
        writeln!(
            self.out,
            "Subak before three endpoints of its own, by this configuration:\n{}",
            indented.replace("    \n", "\n")
        )?;
        self.out.flush()
    }

    /// Says how to call it by TLS.
    pub(super) fn explain_tls(&mut self, listen: SocketAddr, chain: &Path) -> io::Result<()> {
        let (port, chain) = (listen.port(), chain.display());
        writeln!(
            self.out,
            "Its certificate is its own, as long as this runs. Another client trusts it by\n    \
             curl --cacert {chain} https://localhost:{port}/\nor does not care: curl -k \
             https://{listen}/\n"
        )?;
        self.out.flush()
    }

    /// Says that something has happened.
    pub(super) fn tell(&mut self, event: &str) -> io::Result<()> {
        writeln!(self.out, "      {event}")
    }

    /// Shows this moment, once a second.
    pub(super) fn show(&mut self, tally: &Tally, elapsed: Duration) -> io::Result<()> {
        let seconds = elapsed.as_secs();
        if seconds == self.told {
            return Ok(());
        }
        self.told = seconds;
        writeln!(self.out, "{}", line(tally, seconds))?;
        self.out.flush()
    }

    /// The last words.
    pub(super) fn conclude(&mut self, tally: &Tally, elapsed: Duration) -> io::Result<()> {
        let answered = ENDPOINTS.iter().zip(tally.answered);
        let answered: Vec<_> =
            answered.map(|((name, _, _), count)| format!("{name} {count}")).collect();
        let failed = match &tally.first_failure {
            None => "none failed".to_owned(),
            Some(why) => format!("{} failed, the first by: {why}", tally.failed),
        };
        let sent = tally.sent - tally.under_way();
        writeln!(
            self.out,
            "{sent} requests in {:.1} s: {}; {failed}.",
            elapsed.as_secs_f64(),
            answered.join(", ")
        )?;
        self.out.flush()
    }
}

/// One moment in one line.
fn line(tally: &Tally, seconds: u64) -> String {
    let mut line = format!("{seconds:>3} s");
    for ((name, _, _), answered) in ENDPOINTS.iter().zip(tally.answered) {
        // Writing to memory does not fail.
        let _ = write!(line, "   {name} {answered:<4}");
    }
    let _ = write!(line, "   failed {}   last ", tally.failed);
    line.extend(tally.last.iter().map(|index| ENDPOINTS[*index].0));
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_fits_eighty_columns_after_a_day() {
        let tally = Tally {
            answered: [9_999_999, 1, 2_345_678],
            failed: 99_999,
            last: vec![2; LAST],
            ..Tally::default()
        };
        let line = line(&tally, 86_400);
        assert!(line.chars().count() <= 79, "{} columns: {line}", line.chars().count());
    }
}
