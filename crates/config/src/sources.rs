//! The texts of a configuration: the file it begins with and those it includes, one after the other.
//!
//! A place is a range of bytes of all texts together, so that one [`Span`] says file, line and column.
//! Each text is followed by a line break of its own, so that no line belongs to two files.

use std::path::{Path, PathBuf};

use crate::diagnostic::{Diagnostic, Lines, Span, json_of};
use crate::render;

/// The texts of a configuration, at least one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sources {
    text: String,
    files: Vec<Source>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct Source {
    path: PathBuf,
    span: Span,
}

impl Sources {
    /// The text a configuration begins with.
    pub fn new(text: &str, origin: &Path) -> Sources {
        let span = Span::new(0, text.len());
        let first = Source { path: origin.to_owned(), span };
        Sources { text: text.to_owned(), files: vec![first] }
    }

    /// One more text; where it begins.
    pub(crate) fn add(&mut self, text: &str, path: PathBuf) -> usize {
        self.text.push('\n');
        let start = self.text.len();
        self.text.push_str(text);
        self.files.push(Source { path, span: Span::new(start, self.text.len()) });
        start
    }

    /// Every file with its text as written, the one it begins with first.
    pub fn files(&self) -> impl ExactSizeIterator<Item = (&Path, &str)> {
        self.files.iter().map(|source| {
            (&*source.path, self.text.get(source.span.start..source.span.end).unwrap_or_default())
        })
    }

    /// The file of a place, and the place in that file's text.
    pub fn place(&self, span: Span) -> (&Path, Span) {
        let index = self.index_of(span);
        (&self.files[index].path, self.local(index, span))
    }

    /// All diagnostics for people, as [`render`](crate::render()) does for one text.
    pub fn render(&self, diagnostics: &[Diagnostic], color: bool) -> String {
        render::all(diagnostics, self, color)
    }

    /// The first error in one line, with its place; empty without one.
    pub fn brief(&self, diagnostics: &[Diagnostic]) -> String {
        crate::render::brief(diagnostics, self)
    }

    /// All diagnostics as JSON, as [`to_json`](crate::to_json) does for one text.
    pub fn to_json(&self, diagnostics: &[Diagnostic]) -> String {
        json_of(diagnostics, self)
    }

    /// All texts together.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Which file a place is in.
    pub(crate) fn index_of(&self, span: Span) -> usize {
        self.files.partition_point(|source| source.span.start <= span.start).saturating_sub(1)
    }

    /// A place within the text of a file.
    pub(crate) fn local(&self, index: usize, span: Span) -> Span {
        let whole = self.files[index].span;
        let within = |at: usize| at.clamp(whole.start, whole.end) - whole.start;
        Span::new(within(span.start), within(span.end))
    }

    /// The lines of each file.
    pub(crate) fn lines(&self) -> Vec<(&Path, Lines<'_>)> {
        self.files().map(|(path, text)| (path, Lines::new(text))).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::Sources;
    use crate::diagnostic::Span;

    #[test]
    fn a_place_says_its_file() {
        let mut sources = Sources::new("ab", Path::new("a"));
        assert_eq!(sources.add("", "empty".into()), 3);
        assert_eq!(sources.add("cd\n", "b".into()), 4);
        for (span, expected) in [
            ((0, 1), ("a", (0, 1))),
            ((2, 2), ("a", (2, 2))),
            ((3, 3), ("empty", (0, 0))),
            ((4, 6), ("b", (0, 2))),
            ((7, 99), ("b", (3, 3))),
        ] {
            let (path, place) = sources.place(Span::new(span.0, span.1));
            assert_eq!(
                (path, place),
                (Path::new(expected.0), Span::new(expected.1.0, expected.1.1))
            );
        }
        let files: Vec<_> = sources.files().map(|(_, text)| text).collect();
        assert_eq!(files, ["ab", "", "cd\n"]);
    }
}
