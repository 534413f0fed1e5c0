//! One endpoint's bar: how long it is, its part of the pool's requests, and a mark where its weight
//! would have it end.

/// Eighths of a block.
const EIGHTHS: [char; 8] = ['█', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];

/// A bar, as text and the place of its mark.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Bar {
    pub(crate) text: String,
    /// The column of the mark; none for an endpoint that is to get nothing.
    pub(crate) mark: Option<usize>,
}

/// The bar of `share`, where `full` is as long as the column is wide.
pub(crate) fn bar(share: f64, expected: f64, full: f64, width: usize, utf8: bool) -> Bar {
    let long = |share: f64| if full > 0.0 { (share / full).clamp(0.0, 1.0) } else { 0.0 };
    // Whoever has anything at all has something to show.
    let least = if share > 0.0 { 1 } else { 0 };
    let eighths = ((long(share) * (width * 8) as f64).round() as usize).max(least);
    let mut text: String = match utf8 {
        true => "█".repeat(eighths / 8),
        false => "#".repeat(eighths.div_ceil(8)),
    };
    if utf8 && !eighths.is_multiple_of(8) {
        text.push(EIGHTHS[eighths % 8]);
    }
    let at = (long(expected) * width as f64).round() as usize;
    let mark = (expected > 0.0 && width > 0).then(|| at.clamp(1, width) - 1);
    Bar { text, mark }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_as_long_as_its_share_and_ends_at_its_mark_when_it_has_what_it_should() {
        let ascii = |share, expected| bar(share, expected, 0.5, 10, false);
        assert_eq!(ascii(0.5, 0.5), Bar { text: "#".repeat(10), mark: Some(9) });
        assert_eq!(ascii(0.25, 0.25), Bar { text: "#".repeat(5), mark: Some(4) });
        assert_eq!(ascii(0.0, 0.25).text, "");
        assert_eq!(ascii(0.000_1, 0.0), Bar { text: "#".to_owned(), mark: None });
        assert_eq!(bar(0.0, 0.0, 0.0, 10, true), Bar { text: String::new(), mark: None });
        assert_eq!(bar(0.26, 0.5, 0.5, 10, true).text, "█████▎");
        assert_eq!(bar(9.0, 9.0, 0.5, 4, true), Bar { text: "████".to_owned(), mark: Some(3) });
    }
}
