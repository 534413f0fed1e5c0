//! A report in a terminal: the answer, the verdicts, and its tables in columns.

use std::fmt::Write;

use crate::{Block, Cell, Report, Table, number};

/// Under a verdict's claim.
const INDENT: usize = 17;

pub(crate) fn page(report: &Report, columns: usize) -> String {
    let mut out = String::new();
    for text in [&report.title, &report.question, &report.answer] {
        if !text.is_empty() {
            paragraph(&mut out, text, 0, columns);
        }
    }
    if !report.verdicts.is_empty() {
        out.push('\n');
    }
    for verdict in &report.verdicts {
        let (sign, word) = (verdict.word.sign(), verdict.word.as_str());
        let claim = format!("{sign} {word:<14} {}", verdict.claim);
        paragraph(&mut out, &claim, INDENT, columns);
        if !verdict.because.is_empty() {
            out.push_str(&" ".repeat(INDENT));
            paragraph(&mut out, &verdict.because, INDENT, columns);
        }
    }
    for section in &report.sections {
        let _ = writeln!(out, "\n{}", section.heading);
        for block in &section.blocks {
            match block {
                Block::Table(shown) => {
                    out.push('\n');
                    paragraph(&mut out, &shown.caption, 0, columns);
                    out.push_str(&table(shown, columns));
                }
                Block::Text(text) => {
                    out.push('\n');
                    paragraph(&mut out, text, 0, columns);
                }
                Block::Plot(_) | Block::Data(_) | Block::Commands(_) => {}
            }
        }
    }
    without_controls(&out)
}

/// Lines of at most so many columns, broken where a space is; those after the first are indented. What
/// stands on the last line of `out` already is taken to be as wide as the indent.
fn paragraph(out: &mut String, text: &str, indent: usize, columns: usize) {
    for line in text.split('\n') {
        let begins_inside = !out.is_empty() && !out.ends_with('\n');
        let mut used = if begins_inside { indent } else { 0 };
        // Spaces inside are kept: columns of a verdict stand below each other.
        for (index, word) in line.split(' ').enumerate() {
            let gap = usize::from(index > 0);
            let width = word.chars().count();
            if index > 0 && used > indent && used + gap + width > columns {
                out.push('\n');
                out.push_str(&" ".repeat(indent));
                used = indent;
            } else {
                out.push_str(&" ".repeat(gap));
                used += gap;
            }
            out.push_str(word);
            used += width;
        }
        out.push('\n');
    }
}

/// In columns, words from the left and numbers from the right; in parts, where it is wider than `most`.
pub(crate) fn table(table: &Table, most: usize) -> String {
    let head = table.columns.iter().map(|column| match &column.unit {
        Some(unit) => format!("{} {unit}", column.name),
        None => column.name.clone(),
    });
    let cell = |row: &Vec<Cell>, index: usize| {
        let (text, interval) = number::cell(row.get(index).unwrap_or(&Cell::Missing));
        interval.map_or(text.clone(), |interval| format!("{text} ({interval})"))
    };
    let rows = table
        .rows
        .iter()
        .map(|row| (0..table.columns.len()).map(|index| cell(row, index)).collect::<Vec<_>>());
    let lines: Vec<Vec<String>> = std::iter::once(head.collect()).chain(rows).collect();
    let width = |index: usize| {
        lines.iter().map(|line: &Vec<String>| line[index].chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..table.columns.len()).map(width).collect();
    let parts = parts(&widths, most).into_iter().map(|part| {
        let mut out = String::new();
        for line in &lines {
            let cells = part.iter().map(|index| match table.is_numeric(*index) {
                true => format!("{:>1$}", line[*index], widths[*index]),
                false => format!("{:<1$}", line[*index], widths[*index]),
            });
            let _ = writeln!(out, "{}", cells.collect::<Vec<_>>().join(GAP).trim_end());
        }
        out
    });
    parts.collect::<Vec<_>>().join("\n")
}

/// Between columns.
const GAP: &str = "  ";

/// The columns of each part: the first in all of them, the others in order, as many as there is room for
/// and one at least.
fn parts(widths: &[usize], most: usize) -> Vec<Vec<usize>> {
    let Some(first) = widths.first() else { return Vec::new() };
    let mut parts = vec![vec![0]];
    let mut used = *first;
    for (index, width) in widths.iter().enumerate().skip(1) {
        let part = parts.last_mut().expect("never empty");
        let with = used.saturating_add(GAP.len() + width);
        if with > most && part.len() > 1 {
            parts.push(vec![0, index]);
            used = first + GAP.len() + width;
        } else {
            part.push(index);
            used = with;
        }
    }
    parts
}

/// Nothing in a report tells a terminal what to do.
pub(crate) fn without_controls(text: &str) -> String {
    text.chars().map(|one| if one.is_control() && one != '\n' { '\u{fffd}' } else { one }).collect()
}
