//! Aligned columns of text, as wide as what stands in them.

use crate::paint::{Paint, Tone};
use crate::written::harmless;

/// Between two columns.
const GAP: &str = "  ";

/// On which side a column's texts begin.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Align {
    Left,
    Right,
}

/// A table with headings.
#[derive(Debug)]
pub(crate) struct Table {
    headings: Vec<(&'static str, Align)>,
    rows: Vec<Vec<(Tone, String)>>,
}

impl Table {
    /// A heading that begins with `>` stands over a column that ends on the right.
    pub(crate) fn new(headings: &[&'static str]) -> Table {
        let heading = |heading: &&'static str| match heading.strip_prefix('>') {
            Some(rest) => (rest, Align::Right),
            None => (*heading, Align::Left),
        };
        Table { headings: headings.iter().map(heading).collect(), rows: Vec::new() }
    }

    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = (Tone, String)>) {
        let cells = cells.into_iter().map(|(tone, text)| (tone, harmless(&text)));
        self.rows.push(cells.collect());
    }

    /// Its lines, headings first.
    pub(crate) fn lines(&self, paint: Paint) -> Vec<String> {
        let widths: Vec<usize> = (0..self.headings.len())
            .map(|column| {
                let cells = self.rows.iter().filter_map(|row| row.get(column));
                let widest = cells.map(|(_, text)| text.chars().count()).max().unwrap_or(0);
                widest.max(self.headings[column].0.chars().count())
            })
            .collect();
        let headings = self.headings.iter().map(|(text, _)| (Tone::Faint, (*text).to_owned()));
        let headings: Vec<_> = headings.collect();
        std::iter::once(&headings)
            .chain(&self.rows)
            .map(|row| self.line(row, &widths, paint))
            .collect()
    }

    fn line(&self, row: &[(Tone, String)], widths: &[usize], paint: Paint) -> String {
        let mut line = String::new();
        for (index, (tone, text)) in row.iter().enumerate() {
            let space = " ".repeat(widths[index].saturating_sub(text.chars().count()));
            let text = paint.text(*tone, text);
            if index > 0 {
                line += GAP;
            }
            match self.headings[index].1 {
                Align::Right => line += &(space + &text),
                // Nothing stands to the right of the last column.
                Align::Left if index + 1 == row.len() => line += &text,
                Align::Left => line += &(text + &space),
            }
        }
        line.truncate(line.trim_end().len());
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let mut table = Table::new(&["name", ">hits", "state"]);
        for row in [["a", "1,000", "ready"], ["long–name", "7", ""]] {
            table.row(row.map(|cell| (Tone::Plain, cell.to_owned())));
        }
        let lines = table.lines(Paint { colours: false });
        assert_eq!(
            lines,
            ["name        hits  state", "a          1,000  ready", "long–name      7"]
        );
        let painted = table.lines(Paint { colours: true });
        assert_eq!(painted[1], "a          1,000  ready", "{painted:?}");
    }
}
