//! What a person sees: on a terminal a small table that is drawn again and again, elsewhere a line a
//! second.

use std::fmt::Write as _;
use std::io::{self, IsTerminal, Stdout, Write};
use std::net::SocketAddr;
use std::time::Duration;

use super::{ENDPOINTS, Tally};

/// How many of the last answers are shown in the table, and in a line.
pub(super) const LAST: usize = 32;
const LAST_IN_LINE: usize = 12;
/// Columns of the longest bar.
const BAR: usize = 18;

const HIDE_CURSOR: &str = "\x1b[?25l";
const SHOW_CURSOR: &str = "\x1b[?25h";
/// Lines that are too long for the window are cut instead of continued on the next.
const CUT_LINES: &str = "\x1b[?7l";
const CONTINUE_LINES: &str = "\x1b[?7h";
const CLEAR_BELOW: &str = "\x1b[J";

/// How an endpoint is doing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    Serving,
    Stopped,
    /// Running again, and Subak has not tried it yet.
    LeftOut,
}

/// One endpoint.
pub(super) struct Row {
    pub(super) name: &'static str,
    pub(super) address: SocketAddr,
    pub(super) delay: Duration,
    pub(super) weight: u16,
    pub(super) answered: u64,
    pub(super) state: State,
}

/// What there is to see at one moment.
pub(super) struct View<'a> {
    pub(super) listen: SocketAddr,
    pub(super) algorithm: &'a str,
    pub(super) elapsed: Duration,
    pub(super) rows: Vec<Row>,
    /// Endpoints of the last answers, the newest last.
    pub(super) last: &'a [usize],
    pub(super) failed: u64,
    /// Attempts that failed at one endpoint and went to another.
    pub(super) elsewhere: u64,
}

/// Standard output. Leaves a terminal as it found it.
pub(super) struct Screen {
    out: Stdout,
    live: bool,
    paint: Paint,
    /// Lines of the last drawing.
    drawn: usize,
    /// Seconds of the last line, where lines are printed.
    told: u64,
}

impl Screen {
    pub(super) fn new() -> Screen {
        let out = io::stdout();
        let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        let live = out.is_terminal() && !dumb;
        let paint = Paint {
            color: live && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()),
            block: if speaks_utf8() { '█' } else { '#' },
        };
        Screen { out, live, paint, drawn: 0, told: 0 }
    }

    /// Whether this is a terminal.
    pub(super) fn is_live(&self) -> bool {
        self.live
    }

    /// Says what will be seen, and by what configuration.
    pub(super) fn introduce(&mut self, configuration: &str) -> io::Result<()> {
        let indented: String = configuration.lines().map(|line| format!("    {line}\n")).collect();
        writeln!(
            self.out,
            "Subak before three endpoints of its own, by this configuration:\n{}",
            indented.replace("    \n", "\n")
        )?;
        if self.live {
            write!(self.out, "{HIDE_CURSOR}")?;
        }
        self.out.flush()
    }

    /// Says that something has happened. A terminal's table shows it by itself.
    pub(super) fn tell(&mut self, event: &str) -> io::Result<()> {
        match self.live {
            true => Ok(()),
            false => writeln!(self.out, "      {event}"),
        }
    }

    /// Shows this moment.
    pub(super) fn draw(&mut self, view: &View<'_>) -> io::Result<()> {
        if !self.live {
            let seconds = view.elapsed.as_secs();
            if seconds == self.told {
                return Ok(());
            }
            self.told = seconds;
            writeln!(self.out, "{}", line(view))?;
            return self.out.flush();
        }
        let lines = table(view, self.paint);
        let mut frame = String::from(CUT_LINES);
        if self.drawn > 0 {
            // Writing to memory does not fail.
            let _ = write!(frame, "\x1b[{}A\r", self.drawn);
        }
        for line in &lines {
            let _ = writeln!(frame, "{line}\x1b[K");
        }
        frame += CLEAR_BELOW;
        frame += CONTINUE_LINES;
        self.drawn = lines.len();
        self.out.write_all(frame.as_bytes())?;
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
        // Over what the terminal has made of Ctrl-C.
        let start = if self.live { "\r\x1b[K" } else { "" };
        let sent = tally.sent - tally.under_way();
        writeln!(
            self.out,
            "{start}{sent} requests in {:.1} s: {}; {failed}.",
            elapsed.as_secs_f64(),
            answered.join(", ")
        )?;
        self.out.flush()
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        if self.live {
            // A terminal that is gone needs no cursor.
            let _ = write!(self.out, "{CONTINUE_LINES}{SHOW_CURSOR}");
            let _ = self.out.flush();
        }
    }
}

fn speaks_utf8() -> bool {
    let set = |name: &&str| std::env::var(name).is_ok_and(|value| !value.is_empty());
    let name = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find(set);
    let value = name.and_then(|name| std::env::var(name).ok()).unwrap_or_default();
    let value = value.to_ascii_lowercase();
    value.contains("utf-8") || value.contains("utf8")
}

/// Colours and characters that the terminal has.
#[derive(Clone, Copy)]
struct Paint {
    color: bool,
    block: char,
}

impl Paint {
    fn endpoint(self, index: usize, text: &str) -> String {
        self.code([36, 33, 35][index % 3], text)
    }

    fn strong(self, text: &str) -> String {
        self.code(1, text)
    }

    fn code(self, code: u8, text: &str) -> String {
        match self.color {
            true => format!("\x1b[{code}m{text}\x1b[0m"),
            false => text.to_owned(),
        }
    }
}

/// The table: at most 79 columns.
fn table(view: &View<'_>, paint: Paint) -> Vec<String> {
    let answered: u64 = view.rows.iter().map(|row| row.answered).sum();
    let most = view.rows.iter().map(|row| row.answered).max().unwrap_or(0).max(1);
    let title =
        format!("{} on http://{}/ for {} s", view.algorithm, view.listen, view.elapsed.as_secs());
    let mut lines = vec![
        paint.strong(&title),
        String::new(),
        format!("  {:<17} weight  takes  {:<BAR$}  answers  share", "endpoint", ""),
    ];
    for (index, row) in view.rows.iter().enumerate() {
        let length = (row.answered * BAR as u64).div_ceil(most) as usize;
        let bar: String = std::iter::repeat_n(paint.block, length.min(BAR)).collect();
        let share = row.answered as f64 * 100.0 / answered.max(1) as f64;
        let name = format!("{} {}", row.name, row.address);
        let state = match row.state {
            State::Serving => String::new(),
            State::Stopped => paint.code(31, "stopped"),
            State::LeftOut => paint.code(33, "left out"),
        };
        lines.push(format!(
            "  {} {:>6} {:>3} ms  {}{} {:>8} {share:>5.1}% {state}",
            paint.endpoint(index, &format!("{name:<17}")),
            row.weight,
            row.delay.as_millis(),
            paint.endpoint(index, &bar),
            " ".repeat(BAR.saturating_sub(length)),
            row.answered,
        ));
    }
    let last: Vec<_> =
        view.last.iter().map(|index| paint.endpoint(*index, ENDPOINTS[*index].0)).collect();
    let failed = match view.failed {
        0 => paint.code(32, "none failed"),
        failed => paint.code(31, &format!("{failed} failed")),
    };
    lines.push(String::new());
    lines.push(format!("  last    {}", last.join(" ")));
    lines.push(format!(
        "  {answered} answers, {failed}; {} attempts went on to another endpoint",
        view.elsewhere
    ));
    lines.push(String::new());
    lines.push("  Now and then an endpoint is stopped. Ctrl-C ends this.".to_owned());
    lines
}

/// One moment in one line.
fn line(view: &View<'_>) -> String {
    let mut line = format!("{:>3} s", view.elapsed.as_secs());
    for row in &view.rows {
        // Writing to memory does not fail.
        let _ = write!(line, "   {} {:<4}", row.name, row.answered);
    }
    let _ = write!(line, "   failed {}   last ", view.failed);
    let shown = view.last.len().saturating_sub(LAST_IN_LINE);
    line.extend(view.last[shown..].iter().map(|index| ENDPOINTS[*index].0));
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(answered: [u64; 3], last: &[usize]) -> View<'_> {
        let rows =
            answered.into_iter().zip(ENDPOINTS).map(|(answered, (name, delay, weight))| Row {
                name,
                address: "127.0.0.1:65535".parse().unwrap(),
                delay,
                weight,
                answered,
                state: State::LeftOut,
            });
        View {
            listen: "127.0.0.1:65535".parse().unwrap(),
            algorithm: "least_connections",
            elapsed: Duration::from_secs(86_400),
            rows: rows.collect(),
            last,
            failed: 99_999,
            elsewhere: 99_999,
        }
    }

    #[test]
    fn the_table_fits_eighty_columns_after_a_day() {
        let paint = Paint { color: false, block: '#' };
        for line in table(&view([49_999_999, 1, 12_345_678], &[2; LAST]), paint) {
            assert!(line.chars().count() <= 79, "{} columns: {line}", line.chars().count());
        }
        let line = line(&view([9_999_999, 1, 2_345_678], &[2; LAST]));
        assert!(line.chars().count() <= 79, "{} columns: {line}", line.chars().count());
    }

    #[test]
    fn bars_are_as_long_as_the_counts_say_and_none_is_as_long_as_nothing() {
        let paint = Paint { color: false, block: '#' };
        let bars = |answered| {
            let lines = table(&view(answered, &[]), paint);
            [3, 4, 5].map(|row: usize| lines[row].matches('#').count())
        };
        assert_eq!(bars([18, 9, 1]), [18, 9, 1]);
        assert_eq!(bars([0, 0, 0]), [0, 0, 0]);
        assert_eq!(bars([1_000_000, 500_000, 1]), [18, 9, 1]);
    }

    #[test]
    fn without_colours_nothing_but_text_is_drawn() {
        let plain = table(&view([1, 2, 3], &[0, 1]), Paint { color: false, block: '#' });
        assert!(plain.iter().all(|line| !line.contains('\x1b')));
        let painted = table(&view([1, 2, 3], &[0, 1]), Paint { color: true, block: '#' });
        assert!(painted.iter().any(|line| line.contains('\x1b')));
    }
}
