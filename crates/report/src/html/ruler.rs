//! From numbers to places on an axis, and the ticks people read them by.

use crate::{Scale, number};

/// An axis from its first to its last value.
#[derive(Debug)]
pub(super) struct Ruler {
    low: f64,
    high: f64,
    log: bool,
    /// Where a number is said, and how.
    pub(super) ticks: Vec<(f64, String)>,
}

impl Ruler {
    /// A ruler for these values with about `wanted` ticks; `zero`: begins at zero where it can.
    pub(super) fn new(
        scale: &Scale,
        values: impl Iterator<Item = f64> + Clone,
        wanted: usize,
        zero: bool,
    ) -> Ruler {
        match scale {
            Scale::Names(names) => by_names(names),
            Scale::Log => {
                let positive = values.clone().filter(|value| *value > 0.0 && value.is_finite());
                match range(positive) {
                    Some((low, high)) => by_logarithm(low, high, wanted),
                    None => by_size(0.0, 1.0, wanted),
                }
            }
            Scale::Linear => {
                let finite = values.filter(|value| value.is_finite());
                let (low, high) = range(finite).unwrap_or((0.0, 1.0));
                // Zero belongs to the picture unless everything is far away from it.
                let near = low > 0.0 && low < 0.6 * high || high < 0.0 && high > 0.6 * low;
                let (low, high) =
                    if zero || near { (low.min(0.0), high.max(0.0)) } else { (low, high) };
                by_size(low, high, wanted)
            }
        }
    }

    /// Where a value is, from 0 to 1; none where the axis has no place for it.
    pub(super) fn at(&self, value: f64) -> Option<f64> {
        if !value.is_finite() || self.log && value <= 0.0 {
            return None;
        }
        let place = |value: f64| if self.log { value.log10() } else { value };
        let (low, high) = (place(self.low), place(self.high));
        Some(((place(value) - low) / (high - low)).clamp(0.0, 1.0))
    }

    /// Where bars begin: zero, or the end of an axis that has none.
    pub(super) fn base(&self) -> f64 {
        if self.log { 0.0 } else { self.at(0.0).unwrap_or(0.0) }
    }
}

fn range(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    values.fold(None, |range, value| match range {
        None => Some((value, value)),
        Some((low, high)) => Some((low.min(value), high.max(value))),
    })
}

fn by_names(names: &[String]) -> Ruler {
    let ticks = names.iter().enumerate().map(|(index, name)| (index as f64, name.clone()));
    let high = names.len().max(1) as f64 - 0.5;
    Ruler { low: -0.5, high, log: false, ticks: ticks.collect() }
}

fn by_size(low: f64, high: f64, wanted: usize) -> Ruler {
    let (low, high) = match high - low {
        // One value: it stands in the middle.
        0.0 if low == 0.0 => (0.0, 1.0),
        0.0 => (low - low.abs() / 2.0, high + high.abs() / 2.0),
        _ => (low, high),
    };
    let rough = (high - low) / wanted.max(1) as f64;
    let power = 10f64.powi(rough.log10().floor() as i32);
    let steps = [1.0, 2.0, 5.0, 10.0].map(|step| step * power);
    let step = steps.into_iter().find(|step| *step >= rough * 0.999).unwrap_or(10.0 * power);
    let (first, last) = ((low / step + 1e-9).floor(), (high / step - 1e-9).ceil());
    let digits = (-step.log10().floor()).clamp(0.0, 9.0) as u8;
    let count = (last - first).clamp(1.0, 64.0) as usize;
    let ticks = (0..=count).map(|index| (first + index as f64) * step);
    let many = high.abs().max(low.abs()) >= 1e7;
    let label = |value: f64| match many {
        true => format!("{} M", number::short(value / 1e6, 4)),
        false => number::grouped(value, digits),
    };
    let ticks = ticks.map(|value| (value, label(value))).collect();
    Ruler { low: first * step, high: last * step, log: false, ticks }
}

fn by_logarithm(low: f64, high: f64, wanted: usize) -> Ruler {
    let decades = (high / low).log10();
    // Within few decades 2 and 5 are said too, where their labels find room.
    let steps: &[f64] =
        if decades * 3.0 <= wanted as f64 * 1.3 { &[1.0, 2.0, 5.0] } else { &[1.0] };
    let first = low.log10().floor() as i32;
    let last = (high.log10().ceil() as i32).max(first + 1);
    let every = (((last - first) as usize) / wanted.max(1)).max(1);
    let all = (first..=last).flat_map(|power| steps.iter().map(move |step| (power, *step)));
    let all: Vec<(i32, f64)> = all.map(|(power, step)| (power, step * 10f64.powi(power))).collect();
    let begin = all.iter().rev().find(|(_, at)| *at <= low * 1.000_001).map_or(low, |(_, at)| *at);
    let end = all.iter().find(|(_, at)| *at >= high * 0.999_999).map_or(high, |(_, at)| *at);
    let end = if end > begin { end } else { begin * 10.0 };
    let said = all.iter().filter(|(power, at)| {
        (begin..=end * 1.000_001).contains(at) && ((power - first) as usize).is_multiple_of(every)
    });
    let label = |value: f64| match value >= 1e7 {
        true => format!("{} M", number::short(value / 1e6, 3)),
        false => number::short(value, 3),
    };
    let ticks = said.map(|(_, at)| (*at, label(*at))).collect();
    Ruler { low: begin, high: end, log: true, ticks }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(ruler: &Ruler) -> Vec<&str> {
        ruler.ticks.iter().map(|(_, label)| label.as_str()).collect()
    }

    #[test]
    fn ticks_are_round_numbers_that_hold_all_values() {
        let ruler = Ruler::new(&Scale::Linear, [3.0, 97.0].into_iter(), 5, false);
        assert_eq!(labels(&ruler), ["0", "20", "40", "60", "80", "100"]);
        let ruler = Ruler::new(&Scale::Linear, [98.25, 98.75].into_iter(), 5, false);
        assert_eq!(labels(&ruler), ["98.2", "98.3", "98.4", "98.5", "98.6", "98.7", "98.8"]);
        let ruler = Ruler::new(&Scale::Linear, [5.0].into_iter(), 5, true);
        assert_eq!(ruler.at(5.0), Some(1.0));
    }

    #[test]
    fn a_logarithmic_axis_has_decades_and_no_place_for_zero() {
        let ruler = Ruler::new(&Scale::Log, [0.0, 1.5, 900.0].into_iter(), 5, false);
        assert_eq!(labels(&ruler), ["1", "10", "100", "1,000"]);
        assert_eq!(ruler.at(0.0), None);
        assert!((ruler.at(31.622_776_6).unwrap() - 0.5).abs() < 1e-6);
        let ruler = Ruler::new(&Scale::Log, [12.0, 48.0].into_iter(), 5, false);
        assert_eq!(labels(&ruler), ["10", "20", "50"]);
    }

    #[test]
    fn whatever_the_values_there_are_few_ticks_and_places_between_0_and_1() {
        let awkward = [0.0, -0.0, 1e-300, 1e300, -5.0, f64::NAN, f64::INFINITY, 1.0, 1.0 + 1e-12];
        for scale in [Scale::Linear, Scale::Log, Scale::Names(Vec::new())] {
            for a in awkward {
                for b in awkward {
                    let ruler = Ruler::new(&scale, [a, b].into_iter(), 5, false);
                    assert!(ruler.ticks.len() <= 66, "{scale:?} {a} {b}: {}", ruler.ticks.len());
                    for value in [a, b].into_iter().filter_map(|value| ruler.at(value)) {
                        assert!((0.0..=1.0).contains(&value), "{scale:?} {a} {b}: {value}");
                    }
                }
            }
        }
    }
}
