//! What tells series apart: colour, dashes and the shape of marks, each of them enough by itself.

use std::fmt::Write;

/// Colours of the style sheet.
const COLOURS: usize = 8;
/// Ways of dashing in the style sheet.
const DASHES: usize = 4;
/// Shapes of [`mark`].
const SHAPES: usize = 6;

/// The classes of the series with this index. No two of the first 32 are the same.
pub(super) fn classes(index: usize) -> String {
    format!("c{} d{}", index % COLOURS, (index + index / COLOURS) % DASHES)
}

/// A mark of about 8 × 8 around a place.
pub(super) fn mark(out: &mut String, index: usize, x: f64, y: f64, title: &str) {
    let (l, r, t, b) = (x - 4.0, x + 4.0, y - 4.0, y + 4.0);
    let shape = match index % SHAPES {
        0 => format!("<circle class=\"mark\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.8\""),
        1 => format!(
            "<rect class=\"mark\" x=\"{:.1}\" y=\"{:.1}\" width=\"7\" height=\"7\"",
            x - 3.5,
            y - 3.5
        ),
        2 => polygon(&[(x, t - 0.5), (r + 0.5, b), (l - 0.5, b)]),
        3 => polygon(&[(x, t - 1.0), (r + 1.0, y), (x, b + 1.0), (l - 1.0, y)]),
        4 => polygon(&[(l - 0.5, t), (r + 0.5, t), (x, b + 0.5)]),
        _ => {
            let (w, n) = (1.6, 4.6);
            polygon(&[
                (x - w, y - n),
                (x + w, y - n),
                (x + w, y - w),
                (x + n, y - w),
                (x + n, y + w),
                (x + w, y + w),
                (x + w, y + n),
                (x - w, y + n),
                (x - w, y + w),
                (x - n, y + w),
                (x - n, y - w),
                (x - w, y - w),
            ])
        }
    };
    out.push_str(&shape);
    if title.is_empty() {
        out.push_str("/>");
    } else {
        let _ = write!(out, "><title>{title}</title></{}>", &shape[1..end_of_name(&shape)]);
    }
}

fn polygon(corners: &[(f64, f64)]) -> String {
    let corners: Vec<String> = corners.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
    format!("<polygon class=\"mark\" points=\"{}\"", corners.join(" "))
}

fn end_of_name(shape: &str) -> usize {
    shape.find(' ').unwrap_or(shape.len())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn thirty_two_series_differ() {
        let all: BTreeSet<String> = (0..32).map(classes).collect();
        assert_eq!(all.len(), 32);
    }
}
