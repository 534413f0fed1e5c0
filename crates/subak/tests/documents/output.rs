//! Compares what was printed with what a document shows.
//!
//! `…` stands for anything within a line; a line of nothing else stands for any number of lines.

/// What stands for anything.
const ANYTHING: char = '…';

/// What a program printed, as lines without what cannot be seen at their ends.
pub(crate) fn lines(printed: &str) -> Vec<String> {
    printed.lines().map(|line| line.trim_end().to_owned()).collect()
}

/// Whether these lines are what is shown.
pub(crate) fn is(expected: &[String], found: &[String]) -> bool {
    let Some((first, rest)) = expected.split_first() else { return found.is_empty() };
    if is_any_lines(first) {
        return (0..=found.len()).any(|skipped| is(rest, &found[skipped..]));
    }
    match found.split_first() {
        Some((line, others)) => is_line(first, line) && is(rest, others),
        None => false,
    }
}

fn is_any_lines(expected: &str) -> bool {
    expected.trim() == ANYTHING.to_string()
}

fn is_line(expected: &str, found: &str) -> bool {
    let mut parts = expected.trim_end().split(ANYTHING);
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = found.strip_prefix(first) else { return false };
    let Some(last) = parts.next_back() else { return rest.is_empty() };
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

/// `-` is shown but was not printed, `+` was printed but is not shown.
pub(crate) fn difference(expected: &[String], found: &[String]) -> String {
    // The longest common part, by the usual table.
    let mut common = vec![vec![0_usize; found.len() + 1]; expected.len() + 1];
    for (row, shown) in expected.iter().enumerate().rev() {
        for (column, line) in found.iter().enumerate().rev() {
            common[row][column] = match is_line(shown, line) {
                true => common[row + 1][column + 1] + 1,
                false => common[row + 1][column].max(common[row][column + 1]),
            };
        }
    }
    let (mut row, mut column) = (0, 0);
    let mut out = String::new();
    while row < expected.len() || column < found.len() {
        let mut say = |sign: &str, line: &str| out += &format!("{sign} {line}\n");
        if row < expected.len() && column < found.len() && is_line(&expected[row], &found[column]) {
            say(" ", &found[column]);
            (row, column) = (row + 1, column + 1);
        } else if column == found.len()
            || row < expected.len() && common[row + 1][column] >= common[row][column + 1]
        {
            say("-", &expected[row]);
            row += 1;
        } else {
            say("+", &found[column]);
            column += 1;
        }
    }
    out
}
