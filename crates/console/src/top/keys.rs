//! What a key does. Changes are asked about before they are made.

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::rows::Row;
use super::state::{Change, Mode, State};
use crate::paint::Tone;
use crate::written::several;

/// A filter, or a weight, is no longer than this.
const MAX_TYPED: usize = 60;

/// What a key makes the program do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Action {
    /// Nothing beyond what it has changed on the screen.
    None,
    /// End.
    Quit,
    /// Ask for the status at once.
    Refresh,
    /// Set this.
    Change(Change),
}

/// The keys, for the help.
pub(crate) const KEYS: [(&str, &str); 16] = [
    ("↑ ↓  j k", "choose; PgUp PgDn Home End go further"),
    ("← →  Enter", "fold or open a pool; f folds or opens all"),
    ("s  r", "sort by the next column; turn the order around"),
    ("/", "show only what contains a text; Esc shows all again"),
    ("t", "shares of all requests, or of the last 10 s"),
    ("d", "drain: nothing new, what is under way finishes"),
    ("m", "maintenance: no work at all, no probes"),
    ("e", "ready: let it work, whatever the file or its agent want"),
    ("w", "weight"),
    ("c", "clear: take back what was set by hand"),
    ("p  Space", "pause the picture"),
    ("R", "ask at once"),
    ("?", "this"),
    ("q  Ctrl-C", "end"),
    ("│", "in a bar: the share that the weights in force give"),
    ("eligible", "may get new work now, out of all"),
];

/// Does what the key says.
pub(crate) fn press(state: &mut State, key: KeyEvent) -> Action {
    if key.kind == KeyEventKind::Release {
        return Action::None;
    }
    if key.modifiers.contains(KeyModifiers::CONTROL) {
        return match key.code {
            KeyCode::Char('c' | 'd') => Action::Quit,
            KeyCode::Char('l') => Action::Refresh,
            _ => Action::None,
        };
    }
    match &mut state.mode {
        Mode::Help => {
            state.mode = Mode::Browse;
            Action::None
        }
        Mode::Filter => filter(state, key.code),
        Mode::Weight { .. } => weight(state, key.code),
        Mode::Confirm(change) => {
            let change = change.clone();
            state.mode = Mode::Browse;
            match key.code {
                KeyCode::Char('y' | 'Y') => Action::Change(change),
                _ => {
                    state.message = Some((Tone::Plain, "left as it was".to_owned()));
                    Action::None
                }
            }
        }
        Mode::Browse => browse(state, key.code),
    }
}

fn browse(state: &mut State, code: KeyCode) -> Action {
    state.message = None;
    let page = state.room.max(2) as isize - 1;
    match code {
        KeyCode::Char('q') => return Action::Quit,
        KeyCode::Char('R') => return Action::Refresh,
        KeyCode::Up | KeyCode::Char('k') => state.step(-1),
        KeyCode::Down | KeyCode::Char('j') => state.step(1),
        KeyCode::PageUp => state.step(-page),
        KeyCode::PageDown => state.step(page),
        KeyCode::Home | KeyCode::Char('g') => state.step(isize::MIN),
        KeyCode::End | KeyCode::Char('G') => state.step(isize::MAX),
        KeyCode::Left => return fold(state, Some(true)),
        KeyCode::Right => return fold(state, Some(false)),
        KeyCode::Enter => return fold(state, None),
        KeyCode::Char('f') => {
            state.fold_all();
            state.keep_choice();
            return Action::Refresh;
        }
        KeyCode::Char('s') => {
            state.sort = state.sort.next();
            state.keep_choice();
            state.message = Some((Tone::Plain, format!("sorted by {}", state.sort.name())));
        }
        KeyCode::Char('r') => {
            state.reversed = !state.reversed;
            state.keep_choice();
        }
        KeyCode::Char('/') => state.mode = Mode::Filter,
        KeyCode::Esc => {
            state.filter.clear();
            state.keep_choice();
        }
        KeyCode::Char('t') => {
            state.recent = !state.recent;
            let of = if state.recent { "the last 10 s" } else { "all requests" };
            state.message = Some((Tone::Plain, format!("shares of {of}")));
        }
        KeyCode::Char('p' | ' ') => state.paused = !state.paused,
        KeyCode::Char('?' | 'h') => state.mode = Mode::Help,
        KeyCode::Char('d') => confirm(state, "drain", r#"{"state":"drain"}"#),
        KeyCode::Char('m') => confirm(state, "maintenance", r#"{"state":"maintenance"}"#),
        KeyCode::Char('e') => confirm(state, "ready", r#"{"state":"ready"}"#),
        KeyCode::Char('c') => confirm(state, "clear", r#"{"state":null,"weight":null}"#),
        KeyCode::Char('w') => ask_weight(state),
        _ => {}
    }
    Action::None
}

/// Folds (`Some(true)`), opens, or does the other of both.
fn fold(state: &mut State, wanted: Option<bool>) -> Action {
    let Some(row) = state.chosen() else { return Action::None };
    let pool = row.pool();
    let (name, folded) = (pool.name.clone(), wanted.unwrap_or(state.is_open(pool)));
    state.fold(&name, folded);
    state.keep_choice();
    Action::Refresh
}

/// The endpoint that is chosen: its pool and its name.
fn endpoint(state: &mut State) -> Option<(String, String)> {
    if let Some(Row::Endpoint(pool, endpoint)) = state.chosen() {
        return Some((pool.name.clone(), endpoint.name.clone()));
    }
    state.message = Some((Tone::Warn, "choose an endpoint first".to_owned()));
    None
}

fn confirm(state: &mut State, what: &str, body: &str) {
    let warning = match state.chosen() {
        Some(Row::Endpoint(pool, endpoint)) => warning(what, pool, endpoint),
        _ => String::new(),
    };
    let Some((pool, endpoint)) = endpoint(state) else { return };
    let words = match what {
        "drain" => format!("Drain {endpoint}?"),
        "maintenance" => format!("Maintenance for {endpoint}?"),
        "ready" => format!("Make {endpoint} ready?"),
        _ => format!("Take back what was set on {endpoint}?"),
    };
    let body = body.to_owned();
    state.mode = Mode::Confirm(Change { pool, endpoint, body, words, warning });
}

/// What follows from taking this endpoint out.
fn warning(what: &str, pool: &crate::status::Pool, endpoint: &crate::status::Endpoint) -> String {
    if !matches!(what, "drain" | "maintenance") {
        return String::new();
    }
    if endpoint.eligible && pool.counts().eligible == 1 {
        return "It is the LAST eligible one of its pool.".to_owned();
    }
    match endpoint.in_flight {
        0 => String::new(),
        under_way => format!("{} under way.", several(under_way.into(), "request")),
    }
}

fn ask_weight(state: &mut State) {
    if let Some((pool, endpoint)) = endpoint(state) {
        state.mode = Mode::Weight { pool, endpoint, text: String::new() };
    }
}

fn filter(state: &mut State, code: KeyCode) -> Action {
    match code {
        KeyCode::Enter => state.mode = Mode::Browse,
        KeyCode::Esc => {
            state.filter.clear();
            state.mode = Mode::Browse;
        }
        KeyCode::Backspace => {
            state.filter.pop();
        }
        KeyCode::Char(char) if state.filter.chars().count() < MAX_TYPED => state.filter.push(char),
        _ => {}
    }
    state.keep_choice();
    Action::None
}

fn weight(state: &mut State, code: KeyCode) -> Action {
    let Mode::Weight { pool, endpoint, text } = &mut state.mode else { return Action::None };
    match code {
        KeyCode::Esc => state.mode = Mode::Browse,
        KeyCode::Backspace => {
            text.pop();
        }
        KeyCode::Char(digit) if digit.is_ascii_digit() && text.len() < 5 => text.push(digit),
        KeyCode::Enter => {
            let (pool, endpoint, text) = (pool.clone(), endpoint.clone(), text.clone());
            let (body, words) = match text.parse::<u16>() {
                Ok(weight) => {
                    (format!("{{\"weight\":{weight}}}"), format!("Weight {weight} for {endpoint}?"))
                }
                Err(_) if text.is_empty() => (
                    r#"{"weight":null}"#.to_owned(),
                    format!("Take back the weight of {endpoint}?"),
                ),
                Err(_) => {
                    let why = format!("{text} is above 65535, the largest weight");
                    state.message = Some((Tone::Bad, why));
                    state.mode = Mode::Browse;
                    return Action::None;
                }
            };
            let warning = if body.contains(":0}") { "It gets no new work." } else { "" };
            let warning = warning.to_owned();
            state.mode = Mode::Confirm(Change { pool, endpoint, body, words, warning });
        }
        _ => {}
    }
    Action::None
}
