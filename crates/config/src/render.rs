//! Diagnostics for people: the line, a caret below the place, what was expected, what to do.
//!
//! ```text
//! error: unknown key `bnd` in [listener.web]
//!   --> subak.toml:2:1
//!    |
//!  2 | bnd = "0.0.0.0:80"
//!    | ^^^ expected a key of a listener
//!    = help: did you mean `bind`?
//! ```

use std::fmt::Write;
use std::path::Path;

use crate::diagnostic::{Diagnostic, Lines, Severity, Span};
use crate::sources::Sources;

/// Characters of a line that are shown; a longer one is cut around the place.
const MAX_LINE_CHARS: usize = 140;
/// Columns a tab takes.
const TAB: &str = "    ";

/// All diagnostics, one after the other, each followed by an empty line. `origin` is named as the
/// file; `color` adds ANSI colours. Control characters of the text are not passed on.
pub fn render(diagnostics: &[Diagnostic], text: &str, origin: &Path, color: bool) -> String {
    all(diagnostics, &Sources::new(text, origin), color)
}

/// The same for several texts.
pub(crate) fn all(diagnostics: &[Diagnostic], sources: &Sources, color: bool) -> String {
    let lines = sources.lines();
    let paint = Paint { color };
    let mut out = String::new();
    for diagnostic in diagnostics {
        one(&mut out, diagnostic, (sources, &lines), &paint);
        out.push('\n');
    }
    out
}

/// One line that counts errors and warnings, such as `2 errors, 1 warning`; `None` without any.
pub fn summary(diagnostics: &[Diagnostic]) -> Option<String> {
    let count = |severity| diagnostics.iter().filter(|one| one.severity == severity).count();
    let parts: Vec<String> = [Severity::Error, Severity::Warning]
        .into_iter()
        .map(|severity| (severity.as_str(), count(severity)))
        .filter(|(_, count)| *count > 0)
        .map(|(word, count)| format!("{count} {word}{}", if count == 1 { "" } else { "s" }))
        .collect();
    if parts.is_empty() { None } else { Some(parts.join(", ")) }
}

/// The first error in one line, with its place: `conf.d/a.toml:2:1: unknown key …, and 3 more`.
pub(crate) fn brief(diagnostics: &[Diagnostic], sources: &Sources) -> String {
    let lines = sources.lines();
    let mut errors = diagnostics.iter().filter(|one| one.severity == Severity::Error);
    let Some(first) = errors.next() else { return String::new() };
    let file = sources.index_of(first.span);
    let (path, of_file) = &lines[file];
    let (line, column) = of_file.position(sources.local(file, first.span).start);
    let message: String =
        first.message.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let more = match errors.count() {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    format!("{}:{line}:{column}: {message}{more}", path.display())
}

/// A place that is shown: its file, where in it, the words beside it.
struct Place<'a> {
    file: usize,
    span: Span,
    label: &'a str,
    tone: Tone,
}

fn one(
    out: &mut String,
    diagnostic: &Diagnostic,
    (sources, lines): (&Sources, &[(&Path, Lines<'_>)]),
    paint: &Paint,
) {
    let tone = match diagnostic.severity {
        Severity::Error => Tone::Error,
        Severity::Warning => Tone::Warning,
    };
    let place = |span: Span, label, tone| {
        let file = sources.index_of(span);
        Place { file, span: sources.local(file, span), label, tone }
    };
    let main = place(diagnostic.span, &*diagnostic.label, tone);
    let main_file = main.file;
    let (line, column) = lines[main_file].1.position(main.span.start);
    let mut places: Vec<Place<'_>> = diagnostic
        .related
        .iter()
        .map(|(span, label)| place(*span, &**label, Tone::Frame))
        .chain([main])
        .collect();
    // The file it is about first.
    places.sort_by_key(|place| (place.file != main_file, place.file, place.span));
    let line_of = |place: &Place<'_>| lines[place.file].1.line_of(place.span.start);
    let last = places.iter().map(line_of).max().unwrap_or(0);
    let gutter = (last + 1).to_string().len();

    let severity = paint.tone(tone, diagnostic.severity.as_str());
    put(out, format_args!("{severity}: {}\n", paint.strong(&clean(&diagnostic.message))));
    let bar = paint.tone(Tone::Frame, "|");
    let header = |out: &mut String, arrow: &str, file: usize, line: usize, column: usize| {
        let arrow = paint.tone(Tone::Frame, arrow);
        let name = clean(&lines[file].0.to_string_lossy());
        put(out, format_args!("{:gutter$}{arrow} {name}:{line}:{column}\n", ""));
        put(out, format_args!(" {:gutter$} {bar}\n", ""));
    };
    header(out, "-->", main_file, line, column);
    let mut file = main_file;
    let mut shown: Option<(usize, String)> = None;
    for place in places {
        let lines = &lines[place.file].1;
        if place.file != file {
            file = place.file;
            shown = None;
            let (line, column) = lines.position(place.span.start);
            header(out, ":::", file, line, column);
        }
        let Place { span, label, tone, .. } = place;
        let at = lines.line_of(span.start);
        let whole = lines.span(at);
        let excerpt = Excerpt::new(lines.text(), whole, span);
        // Two places of one long line may need two cuts of it.
        if shown.as_ref() != Some(&(at, excerpt.text.clone())) {
            if shown.is_some_and(|(shown, _)| at > shown + 1) {
                put(out, format_args!("{}\n", paint.tone(Tone::Frame, "...")));
            }
            let number = paint.tone(Tone::Frame, &format!("{:>gutter$}", at + 1));
            put(out, format_args!("{}\n", format!(" {number} {bar} {}", excerpt.text).trim_end()));
            shown = Some((at, excerpt.text.clone()));
        }
        let mark = if matches!(tone, Tone::Frame) { "-" } else { "^" }.repeat(excerpt.width);
        let words = if label.is_empty() { mark } else { format!("{mark} {}", clean(label)) };
        let words = paint.tone(tone, &words);
        put(
            out,
            format_args!(" {:gutter$} {bar} {:indent$}{words}\n", "", "", indent = excerpt.indent),
        );
    }
    if let Some(help) = &diagnostic.help {
        let equals = paint.tone(Tone::Frame, "=");
        for (index, line) in help.lines().enumerate() {
            let head = if index == 0 { format!("{equals} help: ") } else { " ".repeat(8) };
            put(out, format_args!(" {:gutter$} {head}{}\n", "", clean(line)));
        }
    }
}

/// Formatting into a `String` cannot fail.
fn put(out: &mut String, arguments: std::fmt::Arguments<'_>) {
    let _ = out.write_fmt(arguments);
}

/// The part of a line that is shown, and where the mark goes below it.
struct Excerpt {
    text: String,
    indent: usize,
    width: usize,
}

impl Excerpt {
    fn new(text: &str, line: Span, place: Span) -> Excerpt {
        let start = place.start.clamp(line.start, line.end);
        let end = place.end.clamp(start, line.end);
        let (before, marked, after) =
            (&text[line.start..start], &text[start..end], &text[end..line.end]);
        let length = |part: &str| part.chars().count();
        let (mut before, mut marked, mut after) =
            (before.to_string(), marked.to_string(), after.to_string());
        if length(&before) + length(&marked) + length(&after) > MAX_LINE_CHARS {
            let third = MAX_LINE_CHARS / 3;
            let skip = length(&before).saturating_sub(third);
            if skip > 0 {
                before = format!("…{}", before.chars().skip(skip).collect::<String>());
            }
            for part in [&mut marked, &mut after] {
                if length(part) > third {
                    *part = part.chars().take(third).chain(['…']).collect();
                }
            }
        }
        let (before, marked, after) = (clean(&before), clean(&marked), clean(&after));
        Excerpt {
            indent: before.chars().count(),
            width: marked.chars().count().max(1),
            text: format!("{before}{marked}{after}"),
        }
    }
}

/// Tabs as spaces, other control characters as a replacement.
fn clean(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\t' => out.push_str(TAB),
            // Also what turns the direction of a line around, or hides in it.
            '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
                out.push('\u{fffd}');
            }
            control if control.is_control() => out.push('\u{fffd}'),
            plain => out.push(plain),
        }
    }
    out
}

#[derive(Clone, Copy)]
enum Tone {
    Error,
    Warning,
    Frame,
}

struct Paint {
    color: bool,
}

impl Paint {
    fn tone(&self, tone: Tone, text: &str) -> String {
        match tone {
            Tone::Error => self.wrap("1;31", text),
            Tone::Warning => self.wrap("1;33", text),
            Tone::Frame => self.wrap("1;34", text),
        }
    }

    fn strong(&self, text: &str) -> String {
        self.wrap("1", text)
    }

    fn wrap(&self, code: &str, text: &str) -> String {
        if self.color { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_string() }
    }
}
