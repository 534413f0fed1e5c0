//! What an experiment found, as a value that can be kept, sent and looked at.
//!
//! A [`Report`] says what was asked, how it was tried, what came out with which spread, and how to
//! do it again. It is made once and shown in three ways:
//!
//! | form | for |
//! |---|---|
//! | [`Report::html`] | people: one file with tables and plots, without network, scripts or fonts |
//! | [`Report::markdown`] | documents; plots become tables |
//! | [`Report::text`] | terminals: tables in columns |
//! | [`Report::json`] | programs, and [`Report::from_json`]: nothing is lost, to the last bit |
//!
//! The crate computes nothing: intervals and verdicts come from whoever measured. It knows no
//! clock; when the report was made is passed in.

#![forbid(unsafe_code)]

mod block;
mod figure;
mod html;
mod json;
mod markdown;
mod number;
mod plot;
mod table;
mod text;
mod verdict;

use serde::{Deserialize, Serialize};

pub use block::{Block, Section};
pub use json::NotAReport;
pub use number::grouped;
pub use plot::{Axis, Plot, PlotKind, Point, Scale, Series};
pub use table::{Cell, Column, Table};
pub use verdict::{Verdict, Word};

/// What an experiment found.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Report {
    /// What it is about, in a few words.
    pub title: String,
    /// What was asked.
    pub question: String,
    /// What came out, in one or two sentences; empty where the verdicts say it.
    pub answer: String,
    /// When it was made, as people read it.
    pub made: String,
    /// The conditions: versions, machine, load. Name and value.
    pub setup: Vec<(String, String)>,
    /// What was claimed or asserted, and what became of it.
    pub verdicts: Vec<Verdict>,
    /// The results.
    pub sections: Vec<Section>,
    /// Commands that do it again.
    pub repeat: Vec<String>,
}

impl Report {
    /// One HTML file that needs nothing else: styles and plots are inside, there is no script.
    pub fn html(&self) -> String {
        html::page(self)
    }

    /// Markdown with tables; a plot becomes a table of its points.
    pub fn markdown(&self) -> String {
        markdown::page(self)
    }

    /// For a terminal: the answer, the verdicts and the tables in columns, without the plots.
    pub fn text(&self) -> String {
        self.text_within(usize::MAX)
    }

    /// The same in lines of at most so many columns: sentences are wrapped, and a wider table is divided
    /// into parts that each begin with its first column. Words longer than a line stay whole.
    pub fn text_within(&self, columns: usize) -> String {
        text::page(self, columns)
    }

    /// JSON that [`Report::from_json`] makes the same report of.
    pub fn json(&self) -> String {
        json::write(self)
    }

    /// Reads what [`Report::json`] wrote.
    ///
    /// # Errors
    /// The text is not JSON, or not a report; the message says where.
    pub fn from_json(text: &str) -> Result<Report, NotAReport> {
        json::read(text)
    }
}
