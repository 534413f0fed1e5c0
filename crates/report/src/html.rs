//! A report as one HTML file. Styles and plots are inside; there is no script, no font and no
//! address of anything else, so it looks the same as an attachment, offline and on paper.
//!
//! It is well-formed XML too, so that any parser can judge it.

mod drawing;
mod escape;
mod marks;
mod plane;
mod rows;
mod ruler;

use std::fmt::Write;

use escape::{paragraphs, text};

use crate::{Block, Cell, Report, Table, Verdict, number};

const STYLE: &str = include_str!("html/style.css");

pub(crate) fn page(report: &Report) -> String {
    let mut out = String::with_capacity(64 * 1024);
    let title = text(&report.title);
    let _ = write!(
        out,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n\
         <meta name=\"color-scheme\" content=\"light dark\"/>\n\
         <title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n\
         <header>\n<h1>{title}</h1>\n"
    );
    if !report.question.is_empty() {
        let _ = writeln!(out, "<div class=\"question\">{}</div>", paragraphs(&report.question));
    }
    if !report.answer.is_empty() {
        let _ = writeln!(out, "<div class=\"answer\">{}</div>", paragraphs(&report.answer));
    }
    out.push_str("</header>\n");
    if !report.verdicts.is_empty() {
        verdicts(&mut out, &report.verdicts);
    }
    let mut plots = 0;
    for section in &report.sections {
        let _ = writeln!(out, "<section>\n<h2>{}</h2>", text(&section.heading));
        for block in &section.blocks {
            match block {
                Block::Text(words) => out.push_str(&paragraphs(words)),
                Block::Table(shown) => table(&mut out, shown),
                Block::Commands(list) => commands(&mut out, list),
                Block::Data(_) => {}
                Block::Plot(plot) => {
                    plots += 1;
                    drawing::figure(&mut out, plot, plots);
                }
            }
        }
        out.push_str("</section>\n");
    }
    setup(&mut out, report);
    if !report.repeat.is_empty() {
        out.push_str("<section>\n<h2>To repeat it</h2>\n");
        commands(&mut out, &report.repeat);
        out.push_str("</section>\n");
    }
    out.push_str("</main>\n</body>\n</html>\n");
    out
}

fn verdicts(out: &mut String, verdicts: &[Verdict]) {
    out.push_str("<section>\n<h2>Verdict</h2>\n<ul class=\"verdicts\">\n");
    for Verdict { claim, word, because } in verdicts {
        let mood = format!("{:?}", word.mood()).to_lowercase();
        let _ = write!(
            out,
            "<li><span class=\"word {mood}\">{} {}</span><div><p class=\"claim\">{}</p>",
            word.sign(),
            word.as_str(),
            text(claim)
        );
        if !because.is_empty() {
            let _ = write!(out, "<p class=\"because\">{}</p>", text(because));
        }
        out.push_str("</div></li>\n");
    }
    out.push_str("</ul>\n</section>\n");
}

fn table(out: &mut String, table: &Table) {
    let side = |index| if table.is_numeric(index) { " class=\"number\"" } else { "" };
    out.push_str("<figure class=\"table\">\n");
    if !table.caption.is_empty() {
        let _ = writeln!(out, "<figcaption>{}</figcaption>", text(&table.caption));
    }
    // A part that can be scrolled must be reachable by keyboard.
    out.push_str("<div class=\"scroll\" tabindex=\"0\"><table>\n<thead><tr>");
    for (index, column) in table.columns.iter().enumerate() {
        let _ = write!(out, "<th scope=\"col\"{}>{}", side(index), text(&column.name));
        if let Some(unit) = &column.unit {
            let _ = write!(out, " <span class=\"unit\">{}</span>", text(unit));
        }
        out.push_str("</th>");
    }
    out.push_str("</tr></thead>\n<tbody>\n");
    for row in &table.rows {
        out.push_str("<tr>");
        for index in 0..table.columns.len() {
            let (words, interval) = number::cell(row.get(index).unwrap_or(&Cell::Missing));
            // Several figures in a cell stay in one line: 3,000 / 3,000.
            let side = match words.contains(char::is_alphabetic) {
                false if !table.is_numeric(index) => " class=\"figures\"",
                _ => side(index),
            };
            let _ = write!(out, "<td{side}>{}", text(&words));
            if let Some(interval) = interval {
                let _ = write!(out, " <span class=\"interval\">{}</span>", text(&interval));
            }
            out.push_str("</td>");
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody>\n</table></div>\n</figure>\n");
}

fn setup(out: &mut String, report: &Report) {
    if report.setup.is_empty() && report.made.is_empty() {
        return;
    }
    out.push_str("<section>\n<h2>Set-up</h2>\n<dl>\n");
    let made = (!report.made.is_empty()).then_some(("made", report.made.as_str()));
    let pairs = report.setup.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    for (name, value) in pairs.chain(made) {
        let _ = writeln!(out, "<dt>{}</dt><dd>{}</dd>", text(name), text(value));
    }
    out.push_str("</dl>\n</section>\n");
}

fn commands(out: &mut String, list: &[String]) {
    out.push_str("<pre>");
    for command in list {
        let _ = write!(
            out,
            "<span class=\"line-of\"><span class=\"prompt\">$ </span>{}</span>",
            text(command)
        );
    }
    out.push_str("</pre>\n");
}
