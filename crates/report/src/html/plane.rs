//! Plots between two axes: lines, steps, and bars or dots over numbers.

use std::fmt::Write;

use super::drawing::said;
use super::escape::text;
use super::marks::{classes, mark};
use super::ruler::Ruler;
use crate::{Plot, PlotKind, Point, Scale, Series};

/// Points that each get a mark; more would be a carpet.
const MAX_MARKS: usize = 40;
/// Room above for the name of the y axis.
const TOP: f64 = 30.0;
/// Room below for ticks and the name of the x axis.
const BELOW: f64 = 48.0;
/// What a letter of a tick is wide.
const LETTER: f64 = 7.0;

/// The drawing and its height.
pub(super) fn draw(plot: &Plot, width: f64) -> (f64, String) {
    let wide = width > 500.0;
    let points = plot.series.iter().flat_map(|series| &series.points);
    let ends = points.clone().flat_map(|point| [Some(point.y), point.low, point.high]).flatten();
    let from_zero = plot.kind == PlotKind::Bars;
    let y = Ruler::new(&plot.y.scale, ends, if wide { 6 } else { 5 }, from_zero);
    let x = points.map(|point| point.x);
    let x = Ruler::new(&plot.x.scale, x, if wide { 9 } else { 4 }, false);
    let longest = y.ticks.iter().map(|(_, label)| label.chars().count()).max().unwrap_or(1);
    let left = longest as f64 * LETTER + 14.0;
    let height = if wide { 400.0 } else { 300.0 };
    // Half of the last tick stands out to the right.
    let inner = (width - left - 22.0, height - TOP - BELOW);
    let frame = Frame { left, inner, x, y };
    let mut out = String::new();
    frame.axes(&mut out, plot, width, height);
    for (index, series) in plot.series.iter().enumerate() {
        let _ = write!(out, "<g class=\"{}\">", classes(index));
        frame.series(&mut out, plot, index, series);
        out.push_str("</g>\n");
    }
    (height, out)
}

struct Frame {
    left: f64,
    inner: (f64, f64),
    x: Ruler,
    y: Ruler,
}

impl Frame {
    fn across(&self, x: f64) -> Option<f64> {
        Some(self.left + self.x.at(x)? * self.inner.0)
    }

    fn down(&self, y: f64) -> Option<f64> {
        Some(TOP + (1.0 - self.y.at(y)?) * self.inner.1)
    }

    fn place(&self, point: &Point) -> Option<(f64, f64)> {
        Some((self.across(point.x)?, self.down(point.y)?))
    }

    fn axes(&self, out: &mut String, plot: &Plot, width: f64, height: f64) {
        let (right, bottom) = (self.left + self.inner.0, TOP + self.inner.1);
        for (value, label) in &self.y.ticks {
            let Some(at) = self.down(*value) else { continue };
            let _ = write!(
                out,
                "<path class=\"grid\" d=\"M{:.1} {at:.1}H{right:.1}\"/>\
                 <text class=\"tick\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                self.left,
                self.left - 7.0,
                at + 4.0,
                text(label)
            );
        }
        let named = matches!(plot.x.scale, Scale::Names(_));
        let fits = (self.inner.0 / LETTER / self.x.ticks.len().max(1) as f64).max(3.0) as usize;
        for (value, label) in &self.x.ticks {
            let Some(at) = self.across(*value) else { continue };
            let label = if named { shortened(label, fits) } else { label.clone() };
            let _ = write!(
                out,
                "<path class=\"axis\" d=\"M{at:.1} {bottom:.1}v5\"/>\
                 <text class=\"tick\" x=\"{at:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
                bottom + 19.0,
                text(&label)
            );
        }
        let _ = writeln!(
            out,
            "<path class=\"axis\" d=\"M{:.1} {bottom:.1}H{right:.1}\"/>\
             <text class=\"name\" x=\"4\" y=\"15\">{}</text>\
             <text class=\"name\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            self.left,
            text(&plot.y.title()),
            width - 22.0,
            height - 8.0,
            text(&plot.x.title())
        );
    }

    fn series(&self, out: &mut String, plot: &Plot, index: usize, series: &Series) {
        match plot.kind {
            PlotKind::Lines => {
                self.band(out, series);
                self.line(out, series, false);
            }
            PlotKind::Steps => self.line(out, series, true),
            PlotKind::Bars => return self.bars(out, plot, index, series),
            PlotKind::Dots => {}
        }
        let marked = match plot.kind {
            PlotKind::Dots => true,
            PlotKind::Lines => series.points.len() <= MAX_MARKS,
            _ => false,
        };
        for point in series.points.iter().filter(|_| marked) {
            let Some((x, y)) = self.place(point) else { continue };
            if plot.kind == PlotKind::Dots {
                self.whisker(out, x, point);
            }
            mark(out, index, x, y, &said(plot, index, point));
        }
    }

    /// Interrupted where a point has no place. Of more points than the drawing has columns, the
    /// highest and the lowest of each column are drawn.
    fn line(&self, out: &mut String, series: &Series, steps: bool) {
        let mut path = String::new();
        let mut before: Option<f64> = None;
        for point in thinned(&series.points, self.inner.0 as usize) {
            let Some((x, y)) = self.place(point) else {
                before = None;
                continue;
            };
            let _ = match before {
                None => write!(path, "M{x:.1} {y:.1}"),
                Some(_) if steps => write!(path, "H{x:.1}V{y:.1}"),
                Some(_) => write!(path, "L{x:.1} {y:.1}"),
            };
            before = Some(y);
        }
        if !path.is_empty() {
            let _ = write!(out, "<path class=\"line\" d=\"{path}\"/>");
        }
    }

    /// Between the lower and the upper ends, for each run of points that have both.
    fn band(&self, out: &mut String, series: &Series) {
        let edge = |point: &&Point| {
            let x = self.across(point.x)?;
            // On a logarithmic axis an interval that reaches zero reaches the end of the axis.
            let low = self.down(point.low?).unwrap_or(TOP + self.inner.1);
            Some((x, low, self.down(point.high?)?))
        };
        let points = thinned(&series.points, self.inner.0 as usize);
        let edges: Vec<Option<(f64, f64, f64)>> = points.iter().map(edge).collect();
        for run in edges.split(Option::is_none).filter(|run| run.len() > 1) {
            let run: Vec<_> = run.iter().flatten().collect();
            let upper = run.iter().map(|(x, _, high)| format!("{x:.1},{high:.1}"));
            let lower = run.iter().rev().map(|(x, low, _)| format!("{x:.1},{low:.1}"));
            let corners: Vec<String> = upper.chain(lower).collect();
            let _ = write!(out, "<polygon class=\"band\" points=\"{}\"/>", corners.join(" "));
        }
    }

    fn bars(&self, out: &mut String, plot: &Plot, index: usize, series: &Series) {
        let count = plot.series.iter().map(|series| series.points.len()).max().unwrap_or(1);
        let thick =
            (self.inner.0 / (count.max(1) * plot.series.len()) as f64 * 0.8).clamp(1.0, 40.0);
        let shift = (index as f64 - (plot.series.len() as f64 - 1.0) / 2.0) * thick;
        let base = TOP + (1.0 - self.y.base()) * self.inner.1;
        for point in &series.points {
            let Some((x, y)) = self.place(point) else { continue };
            let (x, top) = (x + shift, y.min(base));
            let _ = write!(
                out,
                "<rect class=\"bar\" x=\"{:.1}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{:.1}\">\
                 <title>{}</title></rect>",
                x - thick / 2.0,
                thick.max(2.0) - 1.0,
                (y - base).abs(),
                said(plot, index, point)
            );
            self.whisker(out, x, point);
        }
    }

    fn whisker(&self, out: &mut String, x: f64, point: &Point) {
        let (Some(low), Some(high)) = (point.low, point.high) else { return };
        let low = self.down(low).unwrap_or(TOP + self.inner.1);
        let Some(high) = self.down(high) else { return };
        let _ = write!(
            out,
            "<path class=\"whisker\" d=\"M{x:.1} {low:.1}V{high:.1}M{:.1} {low:.1}h8M{:.1} {high:.1}h8\"/>",
            x - 4.0,
            x - 4.0
        );
    }
}

/// At most four points for each column: the first, the last, and those between with the highest and
/// the lowest value.
fn thinned(points: &[Point], columns: usize) -> Vec<&Point> {
    if points.len() <= 4 * columns.max(1) {
        return points.iter().collect();
    }
    let size = points.len().div_ceil(columns.max(1));
    let mut kept = Vec::with_capacity(4 * columns);
    for column in points.chunks(size) {
        let by = |a: &(usize, &Point), b: &(usize, &Point)| a.1.y.total_cmp(&b.1.y);
        let low = column.iter().enumerate().min_by(by).map_or(0, |(index, _)| index);
        let high = column.iter().enumerate().max_by(by).map_or(0, |(index, _)| index);
        let mut of = vec![0, low, high, column.len() - 1];
        of.sort_unstable();
        of.dedup();
        kept.extend(of.into_iter().map(|index| &column[index]));
    }
    kept
}

/// At most `letters` letters, one of which says that some are missing: in the middle, for names that
/// begin alike often end differently.
pub(super) fn shortened(label: &str, letters: usize) -> String {
    let count = label.chars().count();
    if count <= letters {
        return label.to_owned();
    }
    let kept = letters.saturating_sub(1);
    let (start, end) = (kept.div_ceil(2), kept / 2);
    let tail = label.chars().skip(count - end);
    label.chars().take(start).chain(std::iter::once('…')).chain(tail).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_long_keeps_both_of_its_ends() {
        assert_eq!(shortened("round_robin", 11), "round_robin");
        assert_eq!(shortened("one address, IP_HASH", 11), "one a…_HASH");
        assert_eq!(shortened("größer", 4), "gr…r");
        assert_eq!((shortened("ab", 1), shortened("ab", 0)), ("…".to_owned(), "…".to_owned()));
    }

    #[test]
    fn thinning_keeps_the_extremes() {
        let mut points: Vec<Point> = (0..100_000).map(|x| Point::new(f64::from(x), 5.0)).collect();
        points[4_321].y = 99.0;
        points[77_777].y = -1.0;
        let kept = thinned(&points, 100);
        assert!(kept.len() <= 400);
        assert!(kept.iter().any(|point| point.y == 99.0));
        assert!(kept.iter().any(|point| point.y == -1.0));
        assert!(kept.is_sorted_by(|a, b| a.x < b.x));
    }
}
