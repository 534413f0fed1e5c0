//! Numbers and times as people read them. What is not known is `–`.

/// What is not known.
pub(crate) const UNKNOWN: &str = "–";

/// `12,345`
pub(crate) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// The same in at most `width` columns, from 5: `12.35M`.
pub(crate) fn count_within(number: u64, width: usize) -> String {
    let full = count(number);
    if full.len() <= width {
        return full;
    }
    let (unit, letter) = match number {
        0..1_000_000 => (1e3, 'k'),
        1_000_000..1_000_000_000 => (1e6, 'M'),
        1_000_000_000..1_000_000_000_000 => (1e9, 'G'),
        _ => (1e12, 'T'),
    };
    let number = number as f64 / unit;
    let places = [2, 1, 0].into_iter().find(|places| format!("{number:.places$}").len() < width);
    format!("{number:.*}{letter}", places.unwrap_or(0))
}

/// Lines of at most `width` columns, broken between words where that is possible; those after the first
/// are indented by two.
pub(crate) fn wrapped(text: &str, width: usize) -> Vec<String> {
    let width = width.max(8);
    let (mut lines, mut line) = (Vec::new(), String::new());
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        let mut rest: Vec<char> = word.chars().collect();
        while !rest.is_empty() {
            let indent = if lines.is_empty() { 0 } else { 2 };
            let used = line.chars().count();
            let gap = usize::from(used > indent);
            if used + gap + rest.len() <= width {
                line.push_str(&" ".repeat(gap));
                line.extend(rest.drain(..));
            } else if used > indent {
                lines.push(std::mem::replace(&mut line, "  ".to_owned()));
            } else {
                // Longer than a line: broken where the line ends.
                line.extend(rest.drain(..width - used));
            }
        }
    }
    lines.push(line);
    lines
}

/// Requests a second: `0`, `0.4`, `12.3`, `1,234`.
pub(crate) fn rate(per_second: f64) -> String {
    match per_second {
        rate if rate < 0.05 => "0".to_owned(),
        rate if rate < 99.95 => format!("{rate:.1}"),
        rate => count(rate.round() as u64),
    }
}

/// Milliseconds: `0.42`, `4.2`, `42`, `4,200`.
pub(crate) fn ms(ms: Option<f64>) -> String {
    match ms {
        None => UNKNOWN.to_owned(),
        Some(ms) if ms < 9.995 => format!("{ms:.2}"),
        Some(ms) if ms < 99.95 => format!("{ms:.1}"),
        Some(ms) => count(ms.round() as u64),
    }
}

/// A time that has gone by: `4 s`, `12 min`, `3 h 5 min`, `2 d 7 h`.
pub(crate) fn age(seconds: f64) -> String {
    let seconds = seconds.max(0.0) as u64;
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{minutes} min"),
        3600..86_400 => format!("{hours} h {} min", minutes % 60),
        _ => format!("{days} d {} h", hours % 24),
    }
}

/// Cut to so many characters, with `…` where something is missing.
pub(crate) fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let kept: String = text.chars().take(width.saturating_sub(1)).collect();
    kept + "…"
}

/// Without characters that a terminal obeys: names come from files, reasons from endpoints.
pub(crate) fn harmless(text: &str) -> String {
    text.chars().map(|char| if char.is_control() { '?' } else { char }).collect()
}

/// The same of several lines, which stay lines.
pub(crate) fn harmless_lines(text: &str) -> String {
    text.lines().map(harmless).collect::<Vec<_>>().join("\n")
}

/// `1 request`, `2 requests`.
pub(crate) fn several(number: u64, word: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {word}{plural}", count(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_between_words_and_lose_nothing() {
        assert_eq!(wrapped("nothing is eligible", 80), ["nothing is eligible"]);
        assert_eq!(wrapped("one two three four", 10), ["one two", "  three", "  four"]);
        assert_eq!(wrapped("a 0123456789abcdef", 10), ["a", "  01234567", "  89abcdef"]);
        assert_eq!(wrapped("", 10), [""]);
    }

    #[test]
    fn numbers_are_as_long_as_they_need_to_be() {
        let counts = [0, 999, 1000, 12_345, 1_234_567].map(count);
        assert_eq!(counts, ["0", "999", "1,000", "12,345", "1,234,567"]);
        let within = [9_999_999, 12_345_678, 999_999_999, u64::MAX];
        assert_eq!(
            within.map(|number| count_within(number, 8)),
            ["10.00M", "12.35M", "1000.00M", "18446744T"].map(str::to_owned)
        );
        assert_eq!([0.0, 0.44, 12.34, 1234.5].map(rate), ["0", "0.4", "12.3", "1,235"]);
        let ms = [None, Some(0.42), Some(42.0), Some(4200.4)].map(ms);
        assert_eq!(ms, ["–", "0.42", "42.0", "4,200"]);
    }

    #[test]
    fn times_have_two_units_at_most() {
        let ages = [0.4, 59.9, 61.0, 11_100.0, 198_000.0].map(age);
        assert_eq!(ages, ["0 s", "59 s", "1 min", "3 h 5 min", "2 d 7 h"]);
    }

    #[test]
    fn what_a_terminal_would_obey_is_not_shown() {
        assert_eq!(harmless("a\x1b[2Jb\nc"), "a?[2Jb?c");
        assert_eq!((cut("abcdef", 4), cut("abc", 3)), ("abc…".to_owned(), "abc".to_owned()));
    }
}
