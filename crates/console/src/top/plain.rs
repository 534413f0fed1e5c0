//! `--once`: the same picture as text, as long as it needs to be, for logs and for terminals that can
//! only print lines.

use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;

use super::draw::{Canvas, Pen};
use super::state::{State, Update};
use super::table;
use crate::paint::Paint;
use crate::status::Status;
use crate::{ctl, written};

/// Columns where nobody says how many there are.
const COLUMNS: u16 = 100;
/// Rows that are drawn at once.
const ROWS: usize = 500;

/// The picture of this status.
pub(super) fn picture(status: Status, utf8: bool) -> String {
    let width = crossterm::terminal::size().map_or(COLUMNS, |(width, _)| width.max(80));
    let pen = Pen { colours: false, utf8 };
    let pools: Vec<String> = status.pools.iter().map(|pool| pool.name.clone()).collect();
    let mut text = String::new();
    // The table tells of pools.
    let head =
        ctl::overview(&Status { pools: Vec::new(), ..status.clone() }, Paint { colours: false });
    text += &written::harmless_lines(head.trim_end());
    text += "\n\n";
    let mut state = State::new();
    state.take(Update::Status(Box::new(status)), 0.0);
    pools.iter().for_each(|pool| state.fold(pool, false));
    let rows = state.rows().len();
    state.room = ROWS;
    for first in (0..rows.max(1)).step_by(ROWS) {
        state.first_row = first;
        let height = 1 + ROWS.min(rows - first);
        let area = Rect { x: 0, y: 0, width, height: height as u16 };
        let mut buffer = Buffer::empty(area);
        table::draw(&state, &mut Canvas { buffer: &mut buffer, area, pen }, 0, false);
        let lines = lines(&buffer);
        // Headings stand there once.
        let skipped = usize::from(first > 0);
        lines.iter().skip(skipped).for_each(|line| text += &(line.trim_end().to_owned() + "\n"));
    }
    text
}

/// What stands in a buffer, line by line.
pub(super) fn lines(buffer: &Buffer) -> Vec<String> {
    let area = buffer.area;
    let line = |y| {
        let cell = |x| buffer.cell((x, y)).map_or(" ", |cell| cell.symbol());
        (area.left()..area.right()).map(cell).collect::<String>()
    };
    (area.top()..area.bottom()).map(line).collect()
}
