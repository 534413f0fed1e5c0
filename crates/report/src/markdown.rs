//! A report as Markdown: what documents and terminals show. A plot becomes a table of its points.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::text::without_controls;
use crate::{Block, Cell, Column, Plot, Report, Scale, Table, number};

/// Rows of the table that a plot becomes; of more points, evenly chosen ones are shown.
const MAX_PLOT_ROWS: usize = 40;

pub(crate) fn page(report: &Report) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "# {}\n", line(&report.title));
    for text in [&report.question, &report.answer].into_iter().filter(|text| !text.is_empty()) {
        paragraphs(&mut out, text);
    }
    if !report.verdicts.is_empty() {
        let _ = writeln!(out, "## Verdict\n\n| claim | verdict | because |\n|---|---|---|");
        for verdict in &report.verdicts {
            let (claim, because) = (in_table(&verdict.claim), in_table(&verdict.because));
            let _ = writeln!(out, "| {claim} | **{}** | {because} |", verdict.word.as_str());
        }
        out.push('\n');
    }
    for section in &report.sections {
        let _ = writeln!(out, "## {}\n", line(&section.heading));
        for block in &section.blocks {
            match block {
                Block::Text(text) => paragraphs(&mut out, text),
                Block::Table(shown) => table(&mut out, shown),
                Block::Plot(plot) => table(&mut out, &as_table(plot)),
                Block::Commands(list) => commands(&mut out, list),
                Block::Data(_) => {}
            }
        }
    }
    if !report.setup.is_empty() || !report.made.is_empty() {
        let _ = writeln!(out, "## Set-up\n\n| | |\n|---|---|");
        for (name, value) in &report.setup {
            let _ = writeln!(out, "| {} | {} |", in_table(name), in_table(value));
        }
        if !report.made.is_empty() {
            let _ = writeln!(out, "| made | {} |", in_table(&report.made));
        }
        out.push('\n');
    }
    if !report.repeat.is_empty() {
        let _ = writeln!(out, "## To repeat it\n");
        commands(&mut out, &report.repeat);
    }
    while out.ends_with("\n\n") {
        out.pop();
    }
    without_controls(&out)
}

fn table(out: &mut String, table: &Table) {
    if !table.caption.is_empty() {
        paragraphs(out, &table.caption);
    }
    let head = |column: &Column| match &column.unit {
        Some(unit) => format!("{} ({})", in_table(&column.name), in_table(unit)),
        None => in_table(&column.name),
    };
    let names: Vec<String> = table.columns.iter().map(head).collect();
    let rules = (0..table.columns.len()).map(|index| match table.is_numeric(index) {
        true => "---:",
        false => "---",
    });
    let _ = writeln!(out, "| {} |", names.join(" | "));
    let _ = writeln!(out, "|{}|", rules.collect::<Vec<_>>().join("|"));
    for row in &table.rows {
        let cells = (0..table.columns.len()).map(|index| {
            let (text, interval) = number::cell(row.get(index).unwrap_or(&Cell::Missing));
            match interval {
                Some(interval) => format!("{} ({interval})", in_table(&text)),
                None => in_table(&text),
            }
        });
        let _ = writeln!(out, "| {} |", cells.collect::<Vec<_>>().join(" | "));
    }
    out.push('\n');
}

/// One row for each place on the x axis, one column for each series.
fn as_table(plot: &Plot) -> Table {
    let mut places: BTreeMap<u64, (f64, Vec<Cell>)> = BTreeMap::new();
    for (index, series) in plot.series.iter().enumerate() {
        for point in series.points.iter().filter(|point| point.x.is_finite()) {
            let row = places
                .entry(ordered(point.x))
                .or_insert_with(|| (point.x, vec![Cell::Missing; plot.series.len()]));
            let digits = digits(point.y);
            row.1[index] =
                Cell::Number { value: point.y, low: point.low, high: point.high, digits };
        }
    }
    let name = |x: f64| match &plot.x.scale {
        Scale::Names(names) => {
            names.get(x.round().max(0.0) as usize).cloned().unwrap_or_else(|| number::short(x, 4))
        }
        _ => number::short(x, 6),
    };
    let every = places.len().div_ceil(MAX_PLOT_ROWS).max(1);
    let rows = places
        .values()
        .step_by(every)
        .map(|(x, cells)| [vec![Cell::Text(name(*x))], cells.clone()].concat())
        .collect();
    let columns = plot.series.iter().map(|series| {
        let name = if series.name.is_empty() { &plot.y.label } else { &series.name };
        Column { name: name.clone(), unit: plot.y.unit.clone() }
    });
    let columns = std::iter::once(Column::new(plot.x.title())).chain(columns).collect();
    let mut caption = plot.caption.clone();
    if every > 1 {
        let _ = write!(caption, " (Every {every}th point.)");
    }
    Table { caption, columns, rows }
}

/// Floating-point numbers in their order.
fn ordered(value: f64) -> u64 {
    let bits = (value + 0.0).to_bits();
    if bits >> 63 == 1 { !bits } else { bits | 1 << 63 }
}

/// Digits behind the point that leave four in all.
fn digits(value: f64) -> u8 {
    if value == 0.0 || !value.is_finite() {
        return 0;
    }
    (3 - value.abs().log10().floor() as i32).clamp(0, 9) as u8
}

fn commands(out: &mut String, list: &[String]) {
    let longest = list.iter().flat_map(|text| text.split(|c| c != '`')).map(str::len).max();
    let fence = "`".repeat(longest.unwrap_or(0).max(2) + 1);
    let _ = writeln!(out, "{fence}console");
    for command in list {
        let _ = writeln!(out, "$ {command}");
    }
    let _ = writeln!(out, "{fence}\n");
}

/// Each paragraph in one line, nothing of it taken for Markdown's own signs.
fn paragraphs(out: &mut String, text: &str) {
    for paragraph in text.split("\n\n").filter(|text| !text.trim().is_empty()) {
        let _ = writeln!(out, "{}\n", line(paragraph));
    }
}

fn in_table(text: &str) -> String {
    line(text).replace('|', "\\|")
}

/// One line in which `<`, `*`, `_`, `` ` `` and the like are themselves. Words with an underscore
/// inside, as algorithms have, need no sign: Markdown takes none there for emphasis.
fn line(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut out = String::with_capacity(text.len());
    let letters: Vec<char> = text.chars().collect();
    for (index, letter) in letters.iter().enumerate() {
        let inside = |at: Option<usize>| {
            at.and_then(|at| letters.get(at)).is_some_and(|next| next.is_alphanumeric())
        };
        let in_word = inside(index.checked_sub(1)) && inside(index.checked_add(1));
        match letter {
            '_' if in_word => out.push('_'),
            '\\' | '`' | '*' | '_' | '<' | '[' | ']' => {
                out.push('\\');
                out.push(*letter);
            }
            '&' => out.push_str("&amp;"),
            '#' | '+' | '>' if index == 0 => {
                out.push('\\');
                out.push(*letter);
            }
            letter => out.push(*letter),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_of_markdown_are_only_signs() {
        assert_eq!(line("a_b *c* <d>\n e|f"), r"a_b \*c\* \<d> e|f");
        assert_eq!(in_table("a|b"), r"a\|b");
    }

    #[test]
    fn numbers_keep_their_order() {
        let mut numbers = vec![3.0, -2.0, 0.0, -1.0, 2.5];
        numbers.sort_by_key(|number| ordered(*number));
        assert_eq!(numbers, [-2.0, -1.0, 0.0, 2.5, 3.0]);
    }
}
