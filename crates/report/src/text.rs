//! A report in a terminal: the answer, the verdicts, and its tables in columns.

use std::fmt::Write;

use crate::{Block, Cell, Report, Table, number};

pub(crate) fn page(report: &Report) -> String {
    let mut out = format!("{}\n", report.title);
    for text in [&report.question, &report.answer].into_iter().filter(|text| !text.is_empty()) {
        let _ = writeln!(out, "{text}");
    }
    if !report.verdicts.is_empty() {
        out.push('\n');
    }
    for verdict in &report.verdicts {
        let (sign, word) = (verdict.word.sign(), verdict.word.as_str());
        let _ = writeln!(out, "{sign} {word:<14} {}", verdict.claim);
        if !verdict.because.is_empty() {
            let _ = writeln!(out, "                 {}", verdict.because);
        }
    }
    for section in &report.sections {
        let _ = writeln!(out, "\n{}", section.heading);
        for block in &section.blocks {
            match block {
                Block::Table(shown) => {
                    let _ = write!(out, "\n{}\n{}", shown.caption, table(shown));
                }
                Block::Text(text) => {
                    let _ = writeln!(out, "\n{text}");
                }
                Block::Plot(_) | Block::Data(_) | Block::Commands(_) => {}
            }
        }
    }
    without_controls(&out)
}

/// In columns, words from the left and numbers from the right.
pub(crate) fn table(table: &Table) -> String {
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
    let mut out = String::new();
    for line in &lines {
        let cells = line.iter().enumerate().map(|(index, text)| match table.is_numeric(index) {
            true => format!("{text:>0$}", widths[index]),
            false => format!("{text:<0$}", widths[index]),
        });
        let _ = writeln!(out, "{}", cells.collect::<Vec<_>>().join("  ").trim_end());
    }
    out
}

/// Nothing in a report tells a terminal what to do.
pub(crate) fn without_controls(text: &str) -> String {
    text.chars().map(|one| if one.is_control() && one != '\n' { '\u{fffd}' } else { one }).collect()
}
