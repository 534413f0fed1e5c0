//! A plot as a figure: caption, legend, and the drawing twice, wide for desks and paper, narrow for
//! phones, so that letters keep their size. The style sheet shows one of them.

use std::collections::BTreeSet;
use std::fmt::Write;

use super::escape::text;
use super::marks::{classes, mark};
use super::{plane, rows};
use crate::{Plot, PlotKind, Point, Scale, number};

/// Width of the wide drawing.
const WIDE: f64 = 880.0;
/// Width of the narrow one: what a phone of 390 pixels has left.
const NARROW: f64 = 350.0;

pub(super) fn figure(out: &mut String, plot: &Plot, number: usize) {
    out.push_str("<figure class=\"plot\">\n");
    let mut caption = text(&plot.caption);
    let left_out = left_out(plot);
    if left_out > 0 {
        let points = if left_out == 1 { "point has" } else { "points have" };
        let _ =
            write!(caption, " <span class=\"unit\">({left_out} {points} no place on it.)</span>");
    }
    if !caption.is_empty() {
        let _ = writeln!(out, "<figcaption>{caption}</figcaption>");
    }
    // Also of one: of several that are compared, the others may not have been measured.
    if plot.series.iter().any(|series| !series.name.is_empty()) {
        legend(out, plot);
    }
    let in_rows = matches!(plot.kind, PlotKind::Bars | PlotKind::Dots)
        && matches!(plot.x.scale, Scale::Names(_));
    for (class, width) in [("wide", WIDE), ("narrow", NARROW)] {
        let (height, drawing) =
            if in_rows { rows::draw(plot, width) } else { plane::draw(plot, width) };
        let id = format!("p{number}{class}");
        let _ = writeln!(
            out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"{class}\" role=\"img\" \
             viewBox=\"0 0 {width:.0} {height:.0}\" aria-labelledby=\"{id}\">\
             <title id=\"{id}\">{}</title>\n{drawing}</svg>",
            text(if plot.caption.is_empty() { &plot.y.label } else { &plot.caption }),
        );
    }
    out.push_str("</figure>\n");
}

/// What a mark says of itself when it is pointed at.
pub(super) fn said(plot: &Plot, series: usize, point: &Point) -> String {
    let value = |value: f64, axis: &crate::Axis| match &axis.unit {
        Some(unit) => format!("{} {unit}", number::short(value, 4)),
        None => number::short(value, 4),
    };
    let x = match &plot.x.scale {
        Scale::Names(names) => {
            names.get(point.x.round().max(0.0) as usize).cloned().unwrap_or_default()
        }
        _ => format!("{} {}", plot.x.label, value(point.x, &plot.x)),
    };
    let interval = match (point.low, point.high) {
        (Some(low), Some(high)) => {
            format!(" ({} to {})", number::short(low, 4), number::short(high, 4))
        }
        _ => String::new(),
    };
    let name = &plot.series[series].name;
    let name = if name.is_empty() { String::new() } else { format!("{name}, ") };
    text(&format!("{name}{x}: {}{interval}", value(point.y, &plot.y)))
}

/// Points that a logarithm has no place for, and those that are not numbers.
fn left_out(plot: &Plot) -> usize {
    let no_place = |value: f64, scale: &Scale| {
        !value.is_finite() || matches!(scale, Scale::Log) && value <= 0.0
    };
    let points = plot.series.iter().flat_map(|series| &series.points);
    points.filter(|one| no_place(one.x, &plot.x.scale) || no_place(one.y, &plot.y.scale)).count()
}

fn legend(out: &mut String, plot: &Plot) {
    out.push_str("<ul class=\"legend\">");
    let mut seen = BTreeSet::new();
    for (index, series) in plot.series.iter().enumerate() {
        if !seen.insert(&series.name) {
            continue;
        }
        let _ = write!(
            out,
            "<li><svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 34 14\" width=\"34\" \
             height=\"14\" aria-hidden=\"true\"><g class=\"{}\">",
            classes(index)
        );
        match plot.kind {
            PlotKind::Bars => {
                out.push_str("<rect class=\"bar\" x=\"4\" y=\"2\" width=\"26\" height=\"10\"/>");
            }
            PlotKind::Dots => mark(out, index, 17.0, 7.0, ""),
            PlotKind::Steps => out.push_str("<path class=\"line\" d=\"M1 7H33\"/>"),
            PlotKind::Lines => {
                out.push_str("<path class=\"line\" d=\"M1 7H33\"/>");
                mark(out, index, 17.0, 7.0, "");
            }
        }
        let _ = write!(out, "</g></svg>{}</li>", text(&series.name));
    }
    out.push_str("</ul>\n");
}
