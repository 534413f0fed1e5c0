//! Colours for lines of text, where they are wanted: on a terminal, without `NO_COLOR`.

use std::io::IsTerminal;

/// What a text is about, which decides its colour.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Tone {
    /// As it is.
    Plain,
    /// A heading.
    Strong,
    /// Well.
    Good,
    /// To be looked at.
    Warn,
    /// Wrong.
    Bad,
    /// Of little weight.
    Faint,
}

impl Tone {
    /// Of an endpoint in this state.
    pub(crate) fn of_state(state: &str, eligible: bool) -> Tone {
        match state {
            "ready" if eligible => Tone::Good,
            "down" => Tone::Bad,
            _ => Tone::Warn,
        }
    }

    fn code(self) -> Option<u8> {
        match self {
            Tone::Plain => None,
            Tone::Strong => Some(1),
            Tone::Good => Some(32),
            Tone::Warn => Some(33),
            Tone::Bad => Some(31),
            Tone::Faint => Some(2),
        }
    }
}

/// Colours, or none.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Paint {
    pub(crate) colours: bool,
}

impl Paint {
    /// As standard output and the environment want it.
    pub(crate) fn of_output() -> Paint {
        Paint { colours: std::io::stdout().is_terminal() && wants_colours() }
    }

    pub(crate) fn text(self, tone: Tone, text: &str) -> String {
        match tone.code() {
            Some(code) if self.colours && !text.is_empty() => format!("\x1b[{code}m{text}\x1b[0m"),
            _ => text.to_owned(),
        }
    }

    /// A unified diff, added and removed lines in colours.
    pub(crate) fn diff(self, diff: &str) -> String {
        let paint = |line: &str| {
            let tone = match line.as_bytes() {
                [b'+', b'+', b'+', ..] | [b'-', b'-', b'-', ..] => Tone::Strong,
                [b'+', ..] => Tone::Good,
                [b'-', ..] => Tone::Bad,
                [b'@', ..] => Tone::Faint,
                _ => Tone::Plain,
            };
            self.text(tone, line) + "\n"
        };
        diff.lines().map(paint).collect()
    }
}

/// Whether the environment allows colours: <https://no-color.org>.
pub(crate) fn wants_colours() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()) && !is_dumb()
}

/// Whether the terminal can only print lines.
pub(crate) fn is_dumb() -> bool {
    std::env::var_os("TERM").is_none_or(|term| term == "dumb" || term.is_empty())
}

/// Whether the terminal shows more than ASCII.
pub(crate) fn speaks_utf8() -> bool {
    let set = |name: &&str| std::env::var(name).is_ok_and(|value| !value.is_empty());
    let name = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find(set);
    let value = name.and_then(|name| std::env::var(name).ok()).unwrap_or_default();
    let value = value.to_ascii_lowercase();
    value.contains("utf-8") || value.contains("utf8")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_colours_a_diff_is_what_it_was() {
        let diff = "--- a\n+++ b\n@@ -1 +1 @@\n-one\n+two\n three\n";
        assert_eq!(Paint { colours: false }.diff(diff), diff);
        let painted = Paint { colours: true }.diff(diff);
        assert!(
            painted.contains("\x1b[31m-one\x1b[0m\n\x1b[32m+two\x1b[0m\n three\n"),
            "{painted}"
        );
    }
}
