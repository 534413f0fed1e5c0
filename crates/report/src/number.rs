//! Numbers as people read them: `12,000`, `0.25`, `12.3 (11.8 to 12.9)`.

use crate::Cell;

/// With `digits` behind the point, and a comma between thousands. What is not a number is a dash.
pub fn grouped(value: f64, digits: u8) -> String {
    if !value.is_finite() {
        return "–".to_owned();
    }
    let plain = format!("{:.*}", usize::from(digits), value.abs());
    let (whole, fraction) = match plain.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (plain.as_str(), None),
    };
    let nothing = plain.bytes().all(|byte| matches!(byte, b'0' | b'.'));
    let mut text = String::with_capacity(plain.len() + whole.len() / 3 + 1);
    if value < 0.0 && !nothing {
        text.push('−');
    }
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    if let Some(fraction) = fraction {
        text.push('.');
        text.push_str(fraction);
    }
    text
}

/// What a cell says, and the interval beside it.
pub(crate) fn cell(cell: &Cell) -> (String, Option<String>) {
    match cell {
        Cell::Text(text) => (text.clone(), None),
        Cell::Missing => ("–".to_owned(), None),
        Cell::Number { value, low, high, digits } => {
            let interval = match (low, high) {
                (Some(low), Some(high)) => {
                    Some(format!("{} to {}", grouped(*low, *digits), grouped(*high, *digits)))
                }
                (Some(low), None) => Some(format!("from {}", grouped(*low, *digits))),
                (None, Some(high)) => Some(format!("up to {}", grouped(*high, *digits))),
                (None, None) => None,
            };
            (grouped(*value, *digits), interval)
        }
    }
}

/// As short as it can be said to about `significant` digits: titles of points, tables of plots.
pub(crate) fn short(value: f64, significant: i32) -> String {
    if value == 0.0 || !value.is_finite() {
        return grouped(value, 0);
    }
    let before = value.abs().log10().floor() as i32 + 1;
    let digits = (significant - before).clamp(0, 9) as u8;
    let text = grouped(value, digits);
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_have_commas_and_nothing_has_no_sign() {
        assert_eq!(grouped(1_234_567.891, 1), "1,234,567.9");
        assert_eq!(grouped(999.0, 0), "999");
        assert_eq!(grouped(-12_000.0, 0), "−12,000");
        assert_eq!(grouped(-0.001, 1), "0.0");
        assert_eq!(grouped(f64::NAN, 1), "–");
    }

    #[test]
    fn short_numbers_keep_their_significant_digits() {
        assert_eq!(short(0.012_345, 3), "0.0123");
        assert_eq!(short(1.5, 4), "1.5");
        assert_eq!(short(123_456.0, 4), "123,456");
        assert_eq!(short(0.0, 4), "0");
    }
}
