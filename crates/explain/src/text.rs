//! Explanations and picks as text for people: aligned, a question's answer in its last lines.

mod explanation;
mod picks;
mod table;

pub use explanation::explanation;
pub use picks::{one_pick, picks};

/// Whether colours are used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Style {
    /// Nothing but letters.
    Plain,
    /// With a terminal's colours.
    Color,
}

impl Style {
    fn paint(self, code: &str, text: &str) -> String {
        match self {
            Style::Plain => text.to_owned(),
            Style::Color => format!("\x1b[{code}m{text}\x1b[0m"),
        }
    }

    fn good(self, text: &str) -> String {
        self.paint("32", text)
    }

    fn bad(self, text: &str) -> String {
        self.paint("31", text)
    }

    fn strong(self, text: &str) -> String {
        self.paint("1", text)
    }

    fn faint(self, text: &str) -> String {
        self.paint("2", text)
    }
}

/// A text from elsewhere: nothing in it steers a terminal.
fn safe(text: &str) -> String {
    text.chars().map(|letter| if letter.is_control() { '\u{fffd}' } else { letter }).collect()
}

/// A number in at most three decimals.
fn number(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
