//! The parts of a report, in the order in which they are read.

use serde::{Deserialize, Serialize};

use crate::{Plot, Table};

/// A heading and what stands under it.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Section {
    /// A few words.
    pub heading: String,
    /// What stands under it.
    pub blocks: Vec<Block>,
}

impl Section {
    /// A section with these blocks.
    pub fn new(heading: impl Into<String>, blocks: Vec<Block>) -> Section {
        Section { heading: heading.into(), blocks }
    }
}

/// One thing to read or to look at.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Block {
    /// Plain text; an empty line begins a new paragraph.
    Text(String),
    /// Rows of figures.
    Table(Table),
    /// A picture of figures.
    Plot(Plot),
    /// Rows that are too many to be read: for programs, in JSON only.
    Data(Table),
    /// Commands as they are typed.
    Commands(Vec<String>),
}
