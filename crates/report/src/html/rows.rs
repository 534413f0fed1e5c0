//! Bars and dots over names: one row for each name, the numbers from left to right, so that names of
//! any length can be read.

use std::fmt::Write;

use super::drawing::said;
use super::escape::text;
use super::marks::{classes, mark};
use super::plane::shortened;
use super::ruler::Ruler;
use crate::{Plot, PlotKind, Point, Scale, number};

/// Height of a bar or dot.
const THICK: f64 = 16.0;
/// Between two names.
const GAP: f64 = 9.0;
/// Room above.
const TOP: f64 = 6.0;
/// Room below for ticks and the name of the axis.
const BELOW: f64 = 48.0;
/// What a letter is wide.
const LETTER: f64 = 7.2;
/// Room on the right for the value behind a bar.
const VALUE: f64 = 56.0;

/// The drawing and its height.
pub(super) fn draw(plot: &Plot, width: f64) -> (f64, String) {
    let none = Vec::new();
    let names = if let Scale::Names(names) = &plot.x.scale { names } else { &none };
    let longest = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
    let letters = longest.min((width * 0.4 / LETTER) as usize);
    let left = letters as f64 * LETTER + 14.0;
    let row = plot.series.len().max(1) as f64 * THICK + GAP;
    let bottom = TOP + names.len() as f64 * row;
    let points = plot.series.iter().flat_map(|series| &series.points);
    let ends = points.flat_map(|point| [Some(point.y), point.low, point.high]).flatten();
    let wanted = if width > 500.0 { 7 } else { 3 };
    let ruler = Ruler::new(&plot.y.scale, ends, wanted, plot.kind == PlotKind::Bars);
    let inner = width - left - VALUE;

    let mut out = String::new();
    for (value, label) in &ruler.ticks {
        let Some(at) = ruler.at(*value).map(|at| left + at * inner) else { continue };
        let _ = write!(
            out,
            "<path class=\"grid\" d=\"M{at:.1} {TOP:.1}V{bottom:.1}\"/>\
             <text class=\"tick\" x=\"{at:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            bottom + 18.0,
            text(label)
        );
    }
    for (index, name) in names.iter().enumerate() {
        let middle = TOP + index as f64 * row + row / 2.0;
        let _ = write!(
            out,
            "<text class=\"row\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}<title>{}</title></text>",
            left - 9.0,
            middle + 4.0,
            text(&shortened(name, letters)),
            text(name)
        );
    }
    let rows = Rows { plot, ruler: &ruler, left, inner, row, names: names.len() };
    for index in 0..plot.series.len() {
        let _ = write!(out, "<g class=\"{}\">", classes(index));
        rows.series(&mut out, index);
        out.push_str("</g>\n");
    }
    let _ = writeln!(
        out,
        "<path class=\"axis\" d=\"M{left:.1} {TOP:.1}V{bottom:.1}\"/>\
         <text class=\"name\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
        left + inner,
        bottom + BELOW - 9.0,
        text(&plot.y.title())
    );
    (bottom + BELOW, out)
}

struct Rows<'a> {
    plot: &'a Plot,
    ruler: &'a Ruler,
    left: f64,
    inner: f64,
    row: f64,
    names: usize,
}

impl Rows<'_> {
    fn across(&self, value: f64) -> Option<f64> {
        Some(self.left + self.ruler.at(value)? * self.inner)
    }

    fn series(&self, out: &mut String, index: usize) {
        for point in &self.plot.series[index].points {
            let row = point.x.round();
            if !(row >= 0.0 && row < self.names as f64) {
                continue;
            }
            let Some(end) = self.across(point.y) else { continue };
            let middle = TOP + row * self.row + GAP / 2.0 + (index as f64 + 0.5) * THICK;
            let title = said(self.plot, index, point);
            let base = self.left + self.ruler.base() * self.inner;
            if self.plot.kind == PlotKind::Bars {
                let _ = write!(
                    out,
                    "<rect class=\"bar\" x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\">\
                     <title>{title}</title></rect>",
                    base.min(end),
                    middle - THICK / 2.0 + 1.0,
                    (end - base).abs(),
                    THICK - 2.0
                );
            }
            let behind = self.whisker(out, point, middle).unwrap_or(end).max(end).max(base);
            if self.plot.kind == PlotKind::Dots {
                mark(out, index, end, middle, &title);
            }
            let _ = write!(
                out,
                "<text class=\"value\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
                behind + 7.0,
                middle + 4.0,
                text(&number::short(point.y, 3))
            );
        }
    }

    /// Returns where it ends on the right.
    fn whisker(&self, out: &mut String, point: &Point, y: f64) -> Option<f64> {
        let low = self.across(point.low?).unwrap_or(self.left);
        let high = self.across(point.high?)?;
        let _ = write!(
            out,
            "<path class=\"whisker\" d=\"M{low:.1} {y:.1}H{high:.1}M{low:.1} {:.1}v8M{high:.1} {:.1}v8\"/>",
            y - 4.0,
            y - 4.0
        );
        Some(high)
    }
}
