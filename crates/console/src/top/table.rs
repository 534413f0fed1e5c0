//! The table in the middle: a line of headings, then a row for each pool and endpoint.

use ratatui_core::style::{Modifier, Style};

use super::bar::bar;
use super::columns::{Columns, INDENT};
use super::draw::{Canvas, columns};
use super::rows::{Row, Sort, in_flight};
use super::state::{RECENT_S, State};
use crate::ctl::{because, expected_share, percent, state_word, times};
use crate::paint::Tone;
use crate::status::{Endpoint, Pool, Shadow, total};
use crate::written::{UNKNOWN, count_within, cut, ms, rate};

/// Of a shadow's name at least so many characters are shown.
const SHADOW_NAME_MIN: usize = 12;

/// What stands in one line of the table.
struct Cells<'c, 'b> {
    canvas: &'c mut Canvas<'b>,
    y: usize,
    x: usize,
}

/// Draws headings at `y` and the rows below that have room. `marks` shows which row is chosen.
pub(crate) fn draw(state: &State, canvas: &mut Canvas<'_>, y: usize, marks: bool) {
    let columns = columns(state, usize::from(canvas.area.width));
    headings(state, canvas, y, columns);
    let rows = state.rows();
    let first = state.first_row.min(rows.len().saturating_sub(1));
    for (index, row) in rows.iter().skip(first).take(state.room).enumerate() {
        let y = y + 1 + index;
        match row {
            Row::Pool(pool) => pool_row(state, canvas, y, columns, pool),
            Row::Endpoint(pool, endpoint) => {
                endpoint_row(state, canvas, y, columns, pool, endpoint)
            }
            Row::Shadow(_, shadow) => shadow_row(canvas, y, shadow),
        }
        if marks && state.chosen.as_ref() == Some(&row.key()) {
            canvas.fill(y, Style::new().add_modifier(Modifier::REVERSED));
        }
    }
    if rows.is_empty() && !state.filter.is_empty() {
        let text = format!("nothing contains {:?}; Esc shows all", state.filter);
        canvas.put(INDENT, y + 1, &text, usize::MAX, canvas.pen.style(Tone::Faint));
    } else if rows.len() > first + state.room && marks {
        let below = format!(" {} more below ", rows.len() - first - state.room);
        let at = usize::from(canvas.area.width).saturating_sub(below.len());
        canvas.put(at, y + state.room + 1, &below, below.len(), canvas.pen.style(Tone::Faint));
    }
}

impl<'c, 'b> Cells<'c, 'b> {
    fn new(canvas: &'c mut Canvas<'b>, y: usize) -> Cells<'c, 'b> {
        Cells { canvas, y, x: 0 }
    }

    fn left(&mut self, width: usize, text: &str, style: Style) {
        if width > 0 {
            self.canvas.put(self.x, self.y, &cut(text, width), width, style);
            self.x += width + 1;
        }
    }

    fn right(&mut self, width: usize, text: &str, style: Style) {
        if width > 0 {
            let text = cut(text, width);
            let at = self.x + width - text.chars().count().min(width);
            self.canvas.put(at, self.y, &text, width, style);
            self.x += width + 1;
        }
    }
}

fn headings(state: &State, canvas: &mut Canvas<'_>, y: usize, columns: Columns) {
    let wide = columns.failed > 4;
    let base = Style::new().add_modifier(Modifier::BOLD | Modifier::UNDERLINED);
    canvas.fill(y, base);
    let style = |sort| match state.sort == sort {
        true => base.add_modifier(Modifier::REVERSED),
        false => base,
    };
    let failed = if wide { "failed" } else { "fail" };
    let of = match (state.recent, columns.bar >= 14) {
        (false, true) => "share of all".to_owned(),
        (false, false) => "share".to_owned(),
        (true, true) => format!("share of {RECENT_S} s"),
        (true, false) => format!("{RECENT_S} s"),
    };
    let mut cells = Cells::new(canvas, y);
    cells.left(INDENT + columns.name, "pool, endpoint", style(Sort::Name));
    cells.right(columns.weight, "wt", base);
    cells.right(columns.hits, "hits", style(Sort::Hits));
    cells.left(columns.bar, &of, base);
    cells.right(columns.share, "%", base);
    cells.right(columns.rate, "req/s", style(Sort::Rate));
    cells.right(columns.in_flight, if wide { "flight" } else { "now" }, style(Sort::InFlight));
    cells.right(columns.latency, "ms", style(Sort::Latency));
    cells.right(columns.failed, failed, style(Sort::Failed));
    cells.left(columns.state, "state", style(Sort::State));
}

fn pool_row(state: &State, canvas: &mut Canvas<'_>, y: usize, columns: Columns, pool: &Pool) {
    let pen = canvas.pen;
    let counts = pool.counts();
    let mark = if state.is_open(pool) { pen.char('▾', 'v') } else { pen.char('▸', '>') };
    let name = format!("{mark} {} {}", pool.name, pool.algorithm);
    let strong = pen.style(Tone::Strong);
    let failed = pool.requests.get("5xx").copied().unwrap_or_default();
    let (median, late) = match &pool.durations {
        Some(durations) => (durations.p50_ms, durations.p99_ms),
        None => (None, None),
    };
    let late = late.map_or_else(String::new, |late| format!("p99 {} ms", ms(Some(late))));
    let eligible = counts.tone();
    let waiting = match pool.waiting {
        0 => String::new(),
        waiting => format!(", {waiting} wait"),
    };
    let of = match columns.shows_reason() {
        true => format!("{} of {} eligible{waiting}", counts.eligible, counts.total),
        false => format!("{}/{}", counts.eligible, counts.total),
    };
    let under_way = match pool.listed() {
        Some(_) => count_within(in_flight(pool), columns.in_flight.max(4)),
        None => UNKNOWN.to_owned(),
    };
    let mut cells = Cells::new(canvas, y);
    // The algorithm's name runs on over the column of weights.
    let over = if columns.weight > 0 { columns.weight + 1 } else { 0 };
    cells.left(INDENT + columns.name + over, &name, strong);
    cells.right(columns.hits, &count_within(total(&pool.requests), columns.hits), strong);
    let share = if columns.share > 0 { columns.share + 1 } else { 0 };
    cells.left(columns.bar + share, &late, Style::new());
    let per_second = state.pool_rate(&pool.name).map_or(UNKNOWN.to_owned(), rate);
    cells.right(columns.rate, &per_second, strong);
    cells.right(columns.in_flight, &under_way, Style::new());
    cells.right(columns.latency, &ms(median), Style::new());
    let tone = if failed > 0 { Tone::Bad } else { Tone::Plain };
    cells.right(columns.failed, &count_within(failed, columns.failed.max(4)), pen.style(tone));
    cells.left(columns.state, &of, pen.style(eligible));
}

fn endpoint_row(
    state: &State,
    canvas: &mut Canvas<'_>,
    y: usize,
    columns: Columns,
    pool: &Pool,
    endpoint: &Endpoint,
) {
    let pen = canvas.pen;
    let all = pool.listed().unwrap_or_default();
    let shares = Shares::of(state, pool, all);
    let hits = state.hits(pool, endpoint);
    let share = hits as f64 / shares.hits.max(1) as f64;
    let expected = expected_share(endpoint, all);
    let bar = bar(share, expected, shares.longest, columns.bar, pen.utf8);
    let track = state.track(pool, endpoint);
    let per_second = track.and_then(|track| track.hits.per_second());
    let fails_now = track.is_some_and(|track| track.failures.recent() > 0);
    let set = endpoint.weight.operator.is_some();
    let tone = Tone::of_state(&endpoint.state, endpoint.eligible);
    let word = match columns.shows_reason() {
        true if tone != Tone::Good => format!("{}: {}", state_word(endpoint), because(endpoint)),
        _ => state_word(endpoint),
    };
    let plain = Style::new();
    let style = |bad: bool, tone: Tone| if bad { pen.style(tone) } else { plain };
    let mut cells = Cells::new(canvas, y);
    cells.x = INDENT;
    cells.left(columns.name, &endpoint.name, plain);
    let weight = count_within(endpoint.weight.in_force.into(), columns.weight.max(5));
    cells.right(columns.weight, &weight.replace(',', ""), style(set, Tone::Warn));
    cells.right(columns.hits, &count_within(endpoint.hits, columns.hits), plain);
    let at = cells.x;
    cells.left(columns.bar, &bar.text, pen.bar(endpoint.eligible));
    if let Some(mark) = bar.mark {
        let char = pen.char('│', '|').to_string();
        cells.canvas.put(at + mark, y, &char, 1, plain);
    }
    let percent = match columns.share {
        6 => format!("{:.1}", share * 100.0),
        _ => format!("{:.0}", share * 100.0),
    };
    cells.right(columns.share, &percent, plain);
    cells.right(columns.rate, &per_second.map_or(UNKNOWN.to_owned(), rate), plain);
    let cap = endpoint.max_in_flight.is_some_and(|cap| endpoint.in_flight >= cap);
    let under_way = count_within(endpoint.in_flight.into(), columns.in_flight.max(4));
    cells.right(columns.in_flight, &under_way, style(cap, Tone::Warn));
    cells.right(columns.latency, &ms(endpoint.typical_ms()), plain);
    let failed = count_within(endpoint.failures, columns.failed.max(4));
    cells.right(columns.failed, &failed, style(fails_now, Tone::Bad));
    cells.left(columns.state, &word, pen.style(tone));
}

/// `shadow peak_ewma: agrees in 82.3% of 12,000; imbalance 1.04, the pool's 1.01`
fn shadow_row(canvas: &mut Canvas<'_>, y: usize, shadow: &Shadow) {
    let pen = canvas.pen;
    let told = match (shadow.stopped, shadow.agreement) {
        (true, _) => "has failed, and is asked no more until a reload".to_owned(),
        (false, None) => "has not decided yet".to_owned(),
        (false, Some(agreement)) => {
            let refused = match shadow.refusals {
                0 => String::new(),
                refused => format!(", {} refused", count_within(refused, 6)),
            };
            format!(
                "agrees in {} of {}{refused}; imbalance {}, pool's {}",
                percent(agreement),
                count_within(shadow.decisions, 9),
                times(shadow.imbalance),
                times(shadow.pool_imbalance),
            )
        }
    };
    let mut cells = Cells::new(canvas, y);
    cells.x = INDENT;
    // What it found is worth more than the last of its options.
    let room = usize::from(cells.canvas.area.width).saturating_sub(INDENT + 9);
    let name = cut(&shadow.name, room.saturating_sub(told.chars().count()).max(SHADOW_NAME_MIN));
    let head = format!("shadow {name}:");
    cells.left(head.chars().count(), &head, Style::new());
    let tone = if shadow.stopped { Tone::Bad } else { Tone::Faint };
    cells.left(told.chars().count(), &told, pen.style(tone));
}

/// What the bars of a pool are measured by.
struct Shares {
    hits: u64,
    /// The largest share, wanted or real: as long as the column is wide.
    longest: f64,
}

impl Shares {
    fn of(state: &State, pool: &Pool, all: &[Endpoint]) -> Shares {
        let each = all.iter().map(|endpoint| state.hits(pool, endpoint));
        let (mut hits, mut most) = (0_u64, 0_u64);
        each.for_each(|each| (hits, most) = (hits + each, most.max(each)));
        let weights = all.iter().filter(|endpoint| endpoint.eligible);
        let weights = weights.map(|endpoint| u64::from(endpoint.weight.in_force));
        let (mut sum, mut heaviest) = (0_u64, 0_u64);
        weights.for_each(|weight| (sum, heaviest) = (sum + weight, heaviest.max(weight)));
        let part = |one: u64, all: u64| one as f64 / all.max(1) as f64;
        Shares { hits, longest: part(most, hits).max(part(heaviest, sum)) }
    }
}
