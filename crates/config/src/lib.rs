//! The TOML configuration: every error in one run, each with its place and its remedy.
//!
//! ```
//! use std::path::Path;
//!
//! let text = r#"
//! [listener.web]
//! bind = "0.0.0.0:80"
//! pool = "app"
//!
//! [pool.app]
//! endpoints = ["10.0.0.2:8080", "10.0.0.3:8080 weight=2"]
//! "#;
//! let outcome = subak_config::parse(text, Path::new("subak.toml"));
//! let config = outcome.config.expect("no errors");
//! assert_eq!(config.pool("app").unwrap().endpoints.len(), 2);
//! ```
//!
//! How a text is read: the TOML parser gives a tree with places (`tree`), into which files (`include`)
//! and values from outside (`expand`) are put; the tree is compared with
//! the declared vocabulary (`vocabulary`, `shape`); what strings mean, and what tables mean together,
//! becomes the model (`read`). Each step reports what it finds and goes on, so that one run finds
//! everything. The same declaration gives the JSON Schema ([`schema`]) and the reference
//! ([`reference`]).

#![forbid(unsafe_code)]

pub mod defaults;

mod address;
mod advice;
mod condition;
mod diagnostic;
mod expand;
mod files;
mod fixed_text;
mod format;
mod headers;
mod include;
pub mod keys;
mod layer;
mod model;
pub mod names;
mod origin;
mod pattern;
mod problem;
mod read;
pub mod reference;
mod render;
mod report;
mod rewrite;
mod scalar;
mod schema;
mod shape;
mod sources;
mod suggest;
mod syntax;
mod template;
mod tree;
#[rustfmt::skip]
pub mod vocabulary;

use std::path::Path;
use std::time::Duration;

pub use address::Address;
pub use condition::{Condition, Networks, Test, ValuePattern, ValueTest};
pub use condition::{all_match, any_matches, parameters};
pub use diagnostic::{Diagnostic, MAX_DIAGNOSTICS, Severity, Span, to_json};
pub use files::{Disk, Files, InMemory};
pub use format::{MAX_COLUMNS, format};
pub use headers::{HeaderEdits, HeaderName, HeaderValue};
pub use ipnet::IpNet;
pub use layer::{Added, Layer, MAX_CHANGED_ENDPOINTS, Made, Masked, PoolLayer, Set, Wanted};
pub use layer::{NotWritten, Written, written};
pub use model::*;
pub use pattern::{Expression, HostPattern, PathPattern};
pub use render::{render, summary};
pub use rewrite::{Replacement, Rewrite};
pub use schema::schema;
pub use sources::Sources;
pub use suggest::{is_opposite, nearest};
pub use template::{Part, Template, Variable};

use diagnostic::Lines;
use include::Included;
use read::Reader;
use report::Report;

/// What became of a text.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Present exactly when no diagnostic is an error.
    pub config: Option<Config>,
    /// In the order of the text; at most [`MAX_DIAGNOSTICS`], and one more that says so.
    pub diagnostics: Vec<Diagnostic>,
    /// The text and those of the files it includes, to which places refer.
    pub sources: Sources,
}

impl Outcome {
    /// All diagnostics for people, each with its file; see [`Sources::render`].
    pub fn render(&self, color: bool) -> String {
        self.sources.render(&self.diagnostics, color)
    }
}

/// Reads a configuration. `origin` is where the text came from: the files it names are relative to
/// that file's directory. Named files are read from disk.
pub fn parse(text: &str, origin: &Path) -> Outcome {
    parse_with(text, origin, &Disk)
}

/// Reads a configuration whose named files come from `files`.
pub fn parse_with(text: &str, origin: &Path, files: &dyn Files) -> Outcome {
    if text.len() > defaults::MAX_CONFIG_BYTES {
        let message = format!("a configuration has at most {} bytes", defaults::MAX_CONFIG_BYTES);
        return Outcome {
            config: None,
            diagnostics: vec![Diagnostic::error(Span::default(), message)],
            sources: Sources::new(text, origin),
        };
    }
    let Included { sources, mut root, syntax, found } = include::read(text, origin, files);
    let broken: Vec<Span> = syntax.iter().map(|diagnostic| diagnostic.span).collect();
    expand::fit(&mut root, &vocabulary::ROOT);
    let mut report = Report::new(sources.text(), found);
    shape::table(&mut report, &root, &vocabulary::ROOT, "", Span::default());
    let mut reader = Reader { report, files, sources: &sources };
    let config = read::config(&mut reader, &root);
    let mut diagnostics = syntax;
    diagnostics.extend(trusted(reader.report.finish(), &broken, sources.text()));
    diagnostics.sort_by_key(|diagnostic| diagnostic.span);
    let failed = diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error);
    limit(&mut diagnostics);
    Outcome { config: (!failed).then_some(config), diagnostics, sources }
}

/// Reads an endpoint that is to join `pool`, as it would stand in a file: `10.0.0.5:8080 weight=2`.
///
/// # Errors
/// Everything that is wrong with it, with places in `text`. Warnings are none.
pub fn joining(text: &str, pool: &Pool) -> Result<Endpoint, Vec<Diagnostic>> {
    let report = Report::new(text, Vec::new());
    let sources = Sources::new(text, Path::new(""));
    let mut reader = Reader { report, files: &Disk, sources: &sources };
    let joining = read::pool::joining(&mut reader, text, pool);
    let mut errors = reader.report.finish();
    errors.retain(|diagnostic| diagnostic.severity == Severity::Error);
    joining.filter(|_| errors.is_empty()).ok_or(errors)
}

/// A duration as configurations have it: `250ms`, `1m30s`.
///
/// # Errors
/// A message that says what was expected.
pub fn duration(text: &str) -> Result<Duration, String> {
    scalar::duration(text).map_err(|problem| {
        let said = [Some(problem.message), Some(problem.expected), problem.help];
        said.into_iter().flatten().collect::<Vec<_>>().join(", ")
    })
}

/// Without what only follows from syntax errors: what is said to be missing, and whatever stands on
/// the same line as one.
fn trusted(diagnostics: Vec<Diagnostic>, broken: &[Span], text: &str) -> Vec<Diagnostic> {
    if broken.is_empty() {
        return diagnostics;
    }
    let lines = Lines::new(text);
    let broken: Vec<usize> = broken.iter().map(|span| lines.line_of(span.start)).collect();
    let trusted =
        |one: &Diagnostic| !one.derived && !broken.contains(&lines.line_of(one.span.start));
    diagnostics.into_iter().filter(trusted).collect()
}

fn limit(diagnostics: &mut Vec<Diagnostic>) {
    if diagnostics.len() > MAX_DIAGNOSTICS {
        // What matters goes first when not everything is shown.
        diagnostics.sort_by_key(|diagnostic| diagnostic.severity);
        diagnostics.truncate(MAX_DIAGNOSTICS);
        let last = diagnostics.last().map_or(Span::default(), |diagnostic| diagnostic.span);
        diagnostics.push(Diagnostic::warning(
            last,
            format!("only the first {MAX_DIAGNOSTICS} findings are shown"),
        ));
    }
}
