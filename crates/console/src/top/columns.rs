//! How wide each column is on a screen of a given width. 80 columns show everything; wider ones give
//! bars, names and reasons more room.

/// Widths in characters; 0 for a column that is left out. Between two columns stands one space.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Columns {
    pub(crate) name: usize,
    pub(crate) weight: usize,
    pub(crate) hits: usize,
    pub(crate) bar: usize,
    pub(crate) share: usize,
    pub(crate) rate: usize,
    pub(crate) in_flight: usize,
    pub(crate) latency: usize,
    pub(crate) failed: usize,
    pub(crate) state: usize,
}

/// Before the first column: whether a pool is open, or an endpoint belongs to it.
pub(crate) const INDENT: usize = 2;
/// The state alone, without its reason.
const STATE: usize = 7;
/// Bars are no longer than this; then reasons get the room.
const MAX_BAR: usize = 30;

impl Columns {
    /// For a screen `width` wide, and names of which the longest has `longest` characters.
    pub(crate) fn new(width: usize, longest: usize) -> Columns {
        let wide = width >= 100;
        let mut columns = Columns {
            name: 0,
            weight: 3,
            hits: if wide { 11 } else { 8 },
            bar: 0,
            share: if wide { 6 } else { 4 },
            rate: if wide { 8 } else { 6 },
            in_flight: if wide { 6 } else { 4 },
            latency: 6,
            failed: if wide { 7 } else { 4 },
            state: STATE,
        };
        // What does not fit is left out, the least important first.
        for left_out in 0..4 {
            if columns.taken() + INDENT + 12 + 6 <= width {
                break;
            }
            match left_out {
                0 => columns.weight = 0,
                1 => columns.failed = 0,
                2 => columns.in_flight = 0,
                _ => columns.share = 0,
            }
        }
        let left = width.saturating_sub(columns.taken() + INDENT);
        let most = if wide { 20 + (width - 100) / 3 } else { left.saturating_sub(8).max(12) };
        columns.name = longest.clamp(12, most.clamp(12, 48));
        let left = left.saturating_sub(columns.name + 1);
        columns.bar = if wide { (left / 2).clamp(6, MAX_BAR) } else { left.clamp(4, MAX_BAR) };
        columns.state += left.saturating_sub(columns.bar);
        columns
    }

    /// What all columns but name and bar take, with the spaces before them.
    fn taken(&self) -> usize {
        [
            self.weight,
            self.hits,
            self.share,
            self.rate,
            self.in_flight,
            self.latency,
            self.failed,
            self.state,
        ]
        .into_iter()
        .filter(|width| *width > 0)
        .map(|width| width + 1)
        .sum()
    }

    /// Whether there is room for the reason of a state.
    pub(crate) fn shows_reason(&self) -> bool {
        self.state > STATE + 8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn width(columns: Columns) -> usize {
        INDENT + columns.name + columns.bar + 1 + columns.taken()
    }

    #[test]
    fn whatever_the_width_the_table_fits_and_from_eighty_on_nothing_is_left_out() {
        for screen in 50..300 {
            for longest in [0, 13, 20, 200] {
                let columns = Columns::new(screen, longest);
                assert!(width(columns) <= screen.max(60), "{screen}, {longest}: {columns:?}");
                assert!(screen < 80 || columns.weight * columns.failed * columns.share > 0);
                assert!(screen < 80 || columns.bar >= 6 && columns.name >= longest.min(20));
            }
        }
    }
}
