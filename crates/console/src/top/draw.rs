//! Draws everything into a buffer: title, problems, the table, what is known of the choice, events,
//! and the line at the bottom in which questions are asked.

use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use ratatui_core::style::{Color, Modifier, Style};

use super::columns::{Columns, INDENT};
use super::keys::KEYS;
use super::rows::Row;
use super::state::{Mode, State};
use super::table;
use crate::ctl::{because, told};
use crate::paint::Tone;
use crate::status::{Status, total};
use crate::written::{age, count, cut, harmless, rate, several, wrapped};

/// Listeners, problems and events that are shown at most.
const MAX_LISTENERS: usize = 3;
const MAX_PROBLEMS: usize = 4;
const MAX_EVENTS: usize = 5;

/// What the terminal can show.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pen {
    pub(crate) colours: bool,
    pub(crate) utf8: bool,
}

impl Pen {
    pub(crate) fn style(self, tone: Tone) -> Style {
        let colour = |colour| if self.colours { Style::new().fg(colour) } else { Style::new() };
        match tone {
            Tone::Plain => Style::new(),
            Tone::Strong => Style::new().add_modifier(Modifier::BOLD),
            Tone::Good => colour(Color::Green),
            Tone::Warn => colour(Color::Yellow),
            Tone::Bad => colour(Color::Red).add_modifier(Modifier::BOLD),
            Tone::Faint if self.colours => Style::new().add_modifier(Modifier::DIM),
            Tone::Faint => Style::new(),
        }
    }

    pub(crate) fn bar(self, eligible: bool) -> Style {
        match (self.colours, eligible) {
            (true, true) => Style::new().fg(Color::Cyan),
            (true, false) => Style::new().add_modifier(Modifier::DIM),
            _ => Style::new(),
        }
    }

    /// `text` where the terminal has only ASCII.
    pub(crate) fn char(self, char: char, ascii: char) -> char {
        if self.utf8 { char } else { ascii }
    }

    fn text(self, text: &str) -> String {
        if self.utf8 {
            return text.to_owned();
        }
        let ascii = |char| match char {
            '–' | '─' | '·' => '-',
            '…' => '.',
            '│' => '|',
            '↑' => '^',
            '↓' => 'v',
            '←' => '<',
            '→' => '>',
            '▾' => 'v',
            '▸' => '>',
            '●' => '*',
            char if char.is_ascii() => char,
            _ => '?',
        };
        text.chars().map(ascii).collect()
    }
}

/// A place to draw, line by line.
pub(crate) struct Canvas<'a> {
    pub(crate) buffer: &'a mut Buffer,
    pub(crate) area: Rect,
    pub(crate) pen: Pen,
}

impl Canvas<'_> {
    /// Puts a text at a place, cut at `width`. What lies outside is left out.
    pub(crate) fn put(&mut self, x: usize, y: usize, text: &str, width: usize, style: Style) {
        let (across, down) = (usize::from(self.area.width), usize::from(self.area.height));
        if x >= across || y >= down {
            return;
        }
        let text = self.pen.text(&harmless(text));
        let width = width.min(across - x);
        let (x, y) = (self.area.x + x as u16, self.area.y + y as u16);
        self.buffer.set_stringn(x, y, text, width, style);
    }

    /// Texts in their tones, one behind the other.
    fn line(&mut self, y: usize, parts: &[(Tone, String)]) {
        let mut x = 0;
        for (tone, text) in parts {
            let style = self.pen.style(*tone);
            self.put(x, y, text, usize::MAX, style);
            x += text.chars().count();
        }
    }

    /// A whole line in one style, also where nothing stands.
    pub(crate) fn fill(&mut self, y: usize, style: Style) {
        if y < usize::from(self.area.height) {
            let area = Rect { y: self.area.y + y as u16, height: 1, ..self.area };
            self.buffer.set_style(area, style);
        }
    }
}

/// Draws the whole screen. Notes how many rows it has room for.
pub(crate) fn screen(state: &mut State, buffer: &mut Buffer, area: Rect, pen: Pen, now_s: f64) {
    let mut canvas = Canvas { buffer, area, pen };
    let (width, height) = (usize::from(area.width), usize::from(area.height));
    let mut y = title(state, &mut canvas, now_s);
    let Some(status) = &state.status else {
        let place = match &*state.place {
            "" => "looking for a Subak that runs".to_owned(),
            place => format!("asking {place}"),
        };
        canvas.put(0, y + 1, &place, width, Style::new());
        footer(state, &mut canvas);
        return;
    };
    y = problems(status, &mut canvas, y);
    if height >= 16 {
        y = listeners(state, status, &mut canvas, y);
    }
    let details = if height >= 16 { 2 } else { 0 };
    let events = match height {
        0..20 => 0,
        20..30 => state.events.len().min(3),
        _ => state.events.len().min(MAX_EVENTS),
    };
    let rows_end = height.saturating_sub(1 + details + events).max(y + 2);
    state.room = rows_end.saturating_sub(y + 1).max(1);
    state.keep_choice();
    table::draw(state, &mut canvas, y, true);
    if details > 0 {
        choice(state, &mut canvas, rows_end);
    }
    for (index, event) in state.events.iter().rev().take(events).rev().enumerate() {
        let time = event.at.split('T').nth(1).unwrap_or(&event.at).trim_end_matches('Z');
        let tone = match &*event.level {
            "error" => Tone::Bad,
            "warn" => Tone::Warn,
            _ => Tone::Faint,
        };
        let time = time.split('.').next().unwrap_or_default();
        canvas.line(
            rows_end + details + index,
            &[(Tone::Faint, format!("{time} ")), (tone, told(event))],
        );
    }
    footer(state, &mut canvas);
    if state.mode == Mode::Help {
        help(&mut canvas);
    }
}

/// `Subak 0.1.0 · up 3 h 5 min · generation 4 · 12 connections · 1,234 req/s`
fn title(state: &State, canvas: &mut Canvas<'_>, now_s: f64) -> usize {
    let Some(status) = &state.status else {
        canvas.line(0, &[(Tone::Strong, "Subak".to_owned())]);
        return lost(state, canvas, now_s);
    };
    let stopping = if status.stopping { " · STOPPING" } else { "" };
    let changes = match &status.config {
        Some(config) if config.changes > 0 => format!(" (+{} by API)", config.changes),
        _ => String::new(),
    };
    let per_second = state
        .total_rate()
        .map_or_else(String::new, |per_second| format!(" · {} req/s", rate(per_second)));
    let text = format!(
        " {} · up {} · generation {}{changes} · {} conns{per_second}{stopping}",
        status.version,
        age(status.uptime_s),
        status.generation,
        count(status.connections as u64),
    );
    let paused = if state.paused { " · PAUSED" } else { "" };
    canvas.line(
        0,
        &[(Tone::Strong, "Subak".to_owned()), (Tone::Plain, text), (Tone::Warn, paused.to_owned())],
    );
    lost(state, canvas, now_s)
}

/// That nobody answers, in a line of its own: behind the others it would be cut off first. The line after.
fn lost(state: &State, canvas: &mut Canvas<'_>, now_s: f64) -> usize {
    let Some((since, _)) = &state.lost else { return 1 };
    let text = format!("! NO ANSWER for {}, trying again", age(now_s - since));
    canvas.line(1, &[(Tone::Bad, text)]);
    2
}

/// Each problem whole, in several lines where one is too short for it.
fn problems(status: &Status, canvas: &mut Canvas<'_>, mut y: usize) -> usize {
    let width = usize::from(canvas.area.width);
    let end = y + (usize::from(canvas.area.height) / 3).max(1);
    let mut shown = 0;
    for problem in status.problems.iter().take(MAX_PROBLEMS) {
        let text = format!(
            "! {} {}: {} ({})",
            problem.kind,
            problem.what,
            problem.detail,
            age(problem.for_s)
        );
        let lines = wrapped(&harmless(&text), width);
        if shown > 0 && y + lines.len() > end {
            break;
        }
        for line in lines.into_iter().take(end.saturating_sub(y).max(1)) {
            canvas.line(y, &[(Tone::Bad, line)]);
            y += 1;
        }
        shown += 1;
    }
    let more = status.problems.len().saturating_sub(shown);
    if more > 0 {
        canvas.line(y, &[(Tone::Bad, format!("! and {more} more: subak ctl status"))]);
        y += 1;
    }
    y
}

fn listeners(state: &State, status: &Status, canvas: &mut Canvas<'_>, mut y: usize) -> usize {
    // A problem's lines are worth more than a listener's.
    let room = MAX_LISTENERS.saturating_sub(status.problems.len()).max(1);
    for listener in status.listeners.iter().take(room) {
        let by = |class: &str| listener.requests.get(class).copied().unwrap_or_default();
        let tls = if listener.tls { " tls" } else { "" };
        let first = listener
            .certificates
            .iter()
            .min_by(|one, other| one.expires_in_s.total_cmp(&other.expires_in_s));
        let urgent = first.filter(|certificate| certificate.is_urgent());
        let expiry = urgent.map(|certificate| format!(" · certificate {}", certificate.expiry()));
        let streams = match listener.streams {
            0 => String::new(),
            streams => format!(" with {}", several(streams, "stream")),
        };
        let errors = if by("5xx") > 0 { Tone::Bad } else { Tone::Plain };
        canvas.line(
            y,
            &[
                (Tone::Strong, listener.name.clone()),
                (Tone::Plain, format!(" {}{tls}", listener.addresses.join(", "))),
                (Tone::Plain, format!(" · {} conns", count(listener.connections as u64))),
                (Tone::Plain, streams),
                (Tone::Plain, format!(" · {} answered", count(total(&listener.requests)))),
                (Tone::Plain, format!(" · {} 4xx", count(by("4xx")))),
                (errors, format!(" · {} 5xx", count(by("5xx")))),
                (Tone::Bad, expiry.unwrap_or_default()),
            ],
        );
        y += 1;
    }
    let more = status.listeners.len().saturating_sub(room);
    if more > 0 && state.room > 4 {
        canvas.line(y, &[(Tone::Faint, format!("and {more} listeners more: subak ctl status"))]);
        y += 1;
    }
    y
}

/// Two lines about the row that is chosen.
fn choice(state: &State, canvas: &mut Canvas<'_>, y: usize) {
    let width = usize::from(canvas.area.width);
    let rule = canvas.pen.char('─', '-').to_string().repeat(width);
    canvas.put(0, y, &rule, width, canvas.pen.style(Tone::Faint));
    let (head, text) = match state.chosen() {
        None => return,
        Some(Row::Pool(pool)) => {
            let counts = pool.counts();
            let text = format!(
                " {}: {} of {} eligible, {}{}; {} retries, {} waiting",
                pool.algorithm,
                counts.eligible,
                counts.total,
                pool.because,
                states(&counts),
                count(pool.retries),
                count(pool.waiting as u64),
            );
            (pool.name.clone(), text)
        }
        Some(Row::Endpoint(pool, endpoint)) => {
            let weight = endpoint.weight;
            let of_name = endpoint.origin.as_deref().map(|origin| format!(" ({origin})"));
            let text = format!(
                "{} {}: {}; weight {} of {}; {} conns{}",
                of_name.unwrap_or_default(),
                endpoint.state,
                because(endpoint),
                weight.in_force,
                weight.operator.unwrap_or(weight.configured),
                endpoint.connections,
                match endpoint.streams {
                    0 => String::new(),
                    streams => format!(" with {}", several(streams.into(), "stream")),
                },
            );
            let drain =
                endpoint.drain.map(|drain| format!("; {}", crate::ctl::progress(endpoint, &drain)));
            (format!("{} {}", pool.name, endpoint.name), text + &drain.unwrap_or_default())
        }
        Some(Row::Shadow(pool, _)) => {
            let caution = pool.shadows.as_ref().map_or("", |shadows| &shadows.caution);
            // Where there is no room for what to do instead, a whole sentence.
            let first = caution.split(';').next().unwrap_or_default();
            let told = if caution.chars().count() > width { first } else { caution };
            canvas.line(y + 1, &[(Tone::Warn, told.to_owned())]);
            return;
        }
    };
    canvas.line(y + 1, &[(Tone::Strong, cut(&head, width / 2)), (Tone::Plain, text)]);
}

fn states(counts: &crate::status::Counts) -> String {
    let each = [
        ("down", counts.down),
        ("in back-off", counts.back_off),
        ("drain", counts.drain),
        ("maintenance", counts.maintenance),
    ];
    each.into_iter()
        .filter(|(_, number)| *number > 0)
        .map(|(word, number)| format!(", {number} {word}"))
        .collect()
}

/// The last line: a question, a message, or the keys.
fn footer(state: &State, canvas: &mut Canvas<'_>) {
    let y = usize::from(canvas.area.height).saturating_sub(1);
    let width = usize::from(canvas.area.width);
    canvas.put(0, y, &" ".repeat(width), width, Style::new());
    let ask = Style::new().add_modifier(Modifier::REVERSED);
    let text = match &state.mode {
        Mode::Confirm(change) => {
            // Question and warning must stand there whole, whatever the name's length.
            let end = " y yes, n no ";
            let mut head = format!(" {} {}", change.words, change.warning);
            if head.chars().count() + end.len() > width && !change.warning.is_empty() && y > 0 {
                head = format!(" {}", change.words);
                let warning = format!(" {} ", change.warning);
                canvas.put(0, y - 1, &" ".repeat(width), width, Style::new());
                canvas.put(0, y - 1, &warning, width, canvas.pen.style(Tone::Bad).patch(ask));
            }
            format!("{}{end}", cut(&head, width.saturating_sub(end.len())))
        }
        Mode::Weight { endpoint, text, .. } => {
            format!(" Weight of {endpoint}, 0 to 65535, nothing takes it back: {text}_ ")
        }
        Mode::Filter => {
            format!(" Only rows with: {}_  Enter keeps it, Esc shows all ", state.filter)
        }
        Mode::Browse | Mode::Help => {
            if let Some((tone, text)) = &state.message {
                canvas.line(y, &[(*tone, text.clone())]);
            } else if let Some((_, why)) = &state.lost {
                canvas.line(y, &[(Tone::Bad, why.lines().next().unwrap_or_default().to_owned())]);
            } else {
                let filter = match &*state.filter {
                    "" => String::new(),
                    filter => format!("[only {filter}] "),
                };
                let keys = "? help  q quit  s sort  / filter  d drain  m maint  e ready  w weight  c clear";
                canvas.line(y, &[(Tone::Warn, filter), (Tone::Faint, keys.to_owned())]);
            }
            return;
        }
    };
    canvas.put(0, y, &text, width, ask);
}

/// The keys, in a box in the middle.
fn help(canvas: &mut Canvas<'_>) {
    let (width, height) = (usize::from(canvas.area.width), usize::from(canvas.area.height));
    let wide = 74.min(width);
    let (left, top) = ((width - wide) / 2, height.saturating_sub(KEYS.len() + 3) / 2);
    let blank = " ".repeat(wide);
    let style = canvas.pen.style(Tone::Plain);
    let edge = Style::new().add_modifier(Modifier::REVERSED);
    canvas.put(left, top, &blank, wide, edge);
    canvas.put(
        left,
        top,
        " Keys                                          any key goes on",
        wide,
        edge,
    );
    for (index, (keys, text)) in KEYS.iter().enumerate() {
        let y = top + 1 + index;
        canvas.put(left, y, &blank, wide, style);
        canvas.put(left + 1, y, keys, 12, canvas.pen.style(Tone::Strong));
        canvas.put(left + 14, y, text, wide.saturating_sub(14), style);
    }
    canvas.put(left, top + 1 + KEYS.len(), &blank, wide, edge);
}

/// The columns of this screen.
pub(crate) fn columns(state: &State, width: usize) -> Columns {
    let status = state.status.as_ref();
    let pools = status.map_or(&[][..], |status| &status.pools);
    // A pool's row has its algorithm behind its name, and runs on over the column of weights.
    let heads = pools.iter().map(|pool| {
        (pool.name.chars().count() + pool.algorithm.chars().count() + 1).saturating_sub(4)
    });
    let names = pools
        .iter()
        .flat_map(|pool| pool.listed().unwrap_or_default())
        .map(|endpoint| endpoint.name.chars().count());
    let longest = heads.chain(names);
    Columns::new(width.max(INDENT + 1), longest.max().unwrap_or(0))
}
