//! Rows of figures with their units and spreads.

use serde::{Deserialize, Serialize};

use crate::figure;

/// A table.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Table {
    /// What it shows; what the ranges in it are.
    pub caption: String,
    /// From left to right.
    pub columns: Vec<Column>,
    /// Each as long as there are columns; what a row lacks is shown as missing.
    pub rows: Vec<Vec<Cell>>,
}

/// What a column holds.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// The unit of its numbers.
    pub unit: Option<String>,
}

impl Column {
    /// A column without a unit.
    pub fn new(name: impl Into<String>) -> Column {
        Column { name: name.into(), unit: None }
    }

    /// A column of numbers with a unit.
    pub fn with_unit(name: impl Into<String>, unit: impl Into<String>) -> Column {
        Column { name: name.into(), unit: Some(unit.into()) }
    }
}

/// What stands in one place of a table.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cell {
    /// Words.
    Text(String),
    /// A number, and the interval it was found in.
    Number {
        /// The number.
        #[serde(with = "figure")]
        value: f64,
        /// The lower end of its interval.
        #[serde(with = "figure::optional", default, skip_serializing_if = "Option::is_none")]
        low: Option<f64>,
        /// The upper end of its interval.
        #[serde(with = "figure::optional", default, skip_serializing_if = "Option::is_none")]
        high: Option<f64>,
        /// How many digits behind the point are shown.
        digits: u8,
    },
    /// Nothing is known.
    Missing,
}

impl Cell {
    /// Words.
    pub fn text(text: impl Into<String>) -> Cell {
        Cell::Text(text.into())
    }

    /// A number without an interval.
    pub const fn number(value: f64, digits: u8) -> Cell {
        Cell::Number { value, low: None, high: None, digits }
    }

    /// A number that was found between `low` and `high`.
    pub const fn between(value: f64, low: f64, high: f64, digits: u8) -> Cell {
        Cell::Number { value, low: Some(low), high: Some(high), digits }
    }

    /// A whole number.
    pub const fn count(value: u64) -> Cell {
        Cell::number(value as f64, 0)
    }
}

impl Table {
    /// Whether a column holds numbers, and so is set from the right.
    pub(crate) fn is_numeric(&self, column: usize) -> bool {
        let mut cells = self.rows.iter().filter_map(|row| row.get(column)).peekable();
        cells.peek().is_some() && cells.all(|cell| !matches!(cell, Cell::Text(_)))
    }
}
