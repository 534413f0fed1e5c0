//! A picture of figures, before anybody has drawn it.

use serde::{Deserialize, Serialize};

use crate::figure;

/// A plot.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Plot {
    /// What it shows; what the intervals in it are.
    pub caption: String,
    /// How points are drawn.
    pub kind: PlotKind,
    /// From left to right. With names, bars and dots are drawn one below the other.
    pub x: Axis,
    /// From below.
    pub y: Axis,
    /// What is compared.
    pub series: Vec<Series>,
}

/// How points are drawn.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlotKind {
    /// Joined in their order; intervals are a band.
    Lines,
    /// Each value lasts until the next point.
    Steps,
    /// A bar from zero; intervals are whiskers.
    Bars,
    /// A mark; intervals are whiskers.
    Dots,
}

/// One axis.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Axis {
    /// What it measures.
    pub label: String,
    /// In what.
    pub unit: Option<String>,
    /// How numbers become places.
    pub scale: Scale,
}

impl Axis {
    /// An axis.
    pub fn new(label: impl Into<String>, unit: Option<&str>, scale: Scale) -> Axis {
        Axis { label: label.into(), unit: unit.map(str::to_owned), scale }
    }

    /// Label and unit.
    pub(crate) fn title(&self) -> String {
        match &self.unit {
            Some(unit) if self.label.is_empty() => unit.clone(),
            Some(unit) => format!("{} ({unit})", self.label),
            None => self.label.clone(),
        }
    }
}

/// How numbers become places on an axis.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scale {
    /// By their size.
    Linear,
    /// By their logarithm; what is not above zero is not drawn, and the caption says so.
    Log,
    /// `0.0` is the first name, `1.0` the second, and so on.
    Names(Vec<String>),
}

/// Points that belong together.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Series {
    /// What they are of.
    pub name: String,
    /// From left to right.
    pub points: Vec<Point>,
}

/// One point, with the interval its value was found in.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Point {
    /// From left to right.
    #[serde(with = "figure")]
    pub x: f64,
    /// From below.
    #[serde(with = "figure")]
    pub y: f64,
    /// The lower end of `y`'s interval.
    #[serde(with = "figure::optional", default, skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
    /// The upper end of `y`'s interval.
    #[serde(with = "figure::optional", default, skip_serializing_if = "Option::is_none")]
    pub high: Option<f64>,
}

impl Point {
    /// A point without an interval.
    pub const fn new(x: f64, y: f64) -> Point {
        Point { x, y, low: None, high: None }
    }

    /// A point whose value was found between `low` and `high`.
    pub const fn between(x: f64, y: f64, low: f64, high: f64) -> Point {
        Point { x, y, low: Some(low), high: Some(high) }
    }
}
