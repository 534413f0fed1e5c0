//! Columns that stand below each other.

/// Which side of its column a cell keeps to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Left,
    Right,
}

/// The rows, their columns two spaces apart. No spaces at the ends of lines.
pub(super) fn aligned(sides: &[Side], rows: &[Vec<String>]) -> Vec<String> {
    let width = |column: usize| {
        let widths = rows.iter().filter_map(|row| row.get(column));
        widths.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..sides.len()).map(width).collect();
    let line = |row: &Vec<String>| {
        let cell = |(column, cell): (usize, &String)| {
            let gap = " ".repeat(widths[column].saturating_sub(cell.chars().count()));
            match sides[column] {
                Side::Left => format!("{cell}{gap}"),
                Side::Right => format!("{gap}{cell}"),
            }
        };
        let cells: Vec<String> = row.iter().enumerate().map(cell).collect();
        cells.join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::{Side, aligned};

    #[test]
    fn cells_keep_to_their_side() {
        let row = |cells: [&str; 3]| cells.map(str::to_owned).to_vec();
        let rows = [row(["name", "n", "why"]), row(["ä", "10", ""])];
        let lines = aligned(&[Side::Left, Side::Right, Side::Left], &rows);
        assert_eq!(lines, ["name   n  why", "ä     10"]);
    }
}
