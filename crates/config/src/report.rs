//! Where diagnostics are collected while a text is read.

use std::collections::HashMap;

use regex::Regex;

use crate::diagnostic::{Diagnostic, MAX_DIAGNOSTICS, Span};
use crate::problem::Problem;
use crate::tree::{Node, Value};

pub(crate) struct Report<'a> {
    text: &'a str,
    diagnostics: Vec<Diagnostic>,
    /// The vocabulary's patterns that were needed so far, compiled.
    patterns: HashMap<&'static str, Regex>,
}

impl<'a> Report<'a> {
    pub(crate) fn new(text: &'a str, diagnostics: Vec<Diagnostic>) -> Report<'a> {
        Report { text, diagnostics, patterns: HashMap::new() }
    }

    /// Whether nothing more is kept.
    pub(crate) fn is_full(&self) -> bool {
        self.diagnostics.len() > MAX_DIAGNOSTICS
    }

    /// How much was reported so far.
    pub(crate) fn count(&self) -> usize {
        self.diagnostics.len()
    }

    /// Whether a text fits a pattern of the vocabulary.
    pub(crate) fn fits(&mut self, pattern: &'static str, text: &str) -> bool {
        let compile = || Regex::new(pattern).expect("the vocabulary's patterns are tested");
        self.patterns.entry(pattern).or_insert_with(compile).is_match(text)
    }

    pub(crate) fn push(&mut self, diagnostic: Diagnostic) {
        // One more than is shown, so that it can be said that there are more.
        if !self.is_full() {
            self.diagnostics.push(diagnostic);
        }
    }

    /// A problem with the string at `node`.
    pub(crate) fn problem(&mut self, node: &Node, problem: Problem) {
        let span = problem.at.as_ref().and_then(|at| self.within(node, at.start, at.end));
        let span = span.unwrap_or(node.span);
        let diagnostic = Diagnostic::error(span, problem.message).label(problem.expected);
        self.push(diagnostic.maybe_help(problem.help));
    }

    /// The value, or a diagnostic and nothing.
    pub(crate) fn take<T>(&mut self, node: &Node, result: Result<T, Problem>) -> Option<T> {
        result.map_err(|problem| self.problem(node, problem)).ok()
    }

    /// The place of a part of a string. Only known when the string is written without escapes.
    fn within(&self, node: &Node, start: usize, end: usize) -> Option<Span> {
        let Value::String(string) = &node.value else { return None };
        let raw = self.text.get(node.span.start..node.span.end)?;
        let inner = raw.get(1..raw.len().checked_sub(1)?)?;
        if inner != string || !string.is_char_boundary(start) || !string.is_char_boundary(end) {
            return None;
        }
        Some(Span::new(node.span.start + 1 + start, node.span.start + 1 + end))
    }

    pub(crate) fn finish(self) -> Vec<Diagnostic> {
        self.diagnostics
    }
}
