//! A configuration in several files: `include = ["conf.d/*.toml"]`.
//!
//! Files are read once each, a file before those it includes, these in the order in which they are
//! named and, of one pattern, in the order of their names. Their tables are put together by name:
//! each listener and each pool is defined in one place. Routes of a listener may be added by any file
//! and are tried in the order in which the files are read.

use std::path::{Component, Path, PathBuf};

use crate::defaults::{MAX_CONFIG_BYTES, MAX_INCLUDE_DEPTH, MAX_INCLUDED_FILES};
use crate::diagnostic::{Diagnostic, Span};
use crate::expand;
use crate::files::Files;
use crate::sources::Sources;
use crate::tree::{self, Entry, Node, Value};

/// What was read of all files.
pub(crate) struct Included {
    pub(crate) sources: Sources,
    /// The top level, put together.
    pub(crate) root: Vec<Entry>,
    /// What is no TOML, and values from outside that are not there: what else is wrong with their
    /// lines only follows from that.
    pub(crate) syntax: Vec<Diagnostic>,
    /// What else is wrong so far.
    pub(crate) found: Vec<Diagnostic>,
}

/// Reads a text, and the files that it includes.
pub(crate) fn read(text: &str, origin: &Path, files: &dyn Files) -> Included {
    let included = Included {
        sources: Sources::new(text, origin),
        root: Vec::new(),
        syntax: Vec::new(),
        found: Vec::new(),
    };
    let seen = vec![(tidy(origin), None)];
    let mut reading = Reading { included, files, seen, room: MAX_CONFIG_BYTES, items: Vec::new() };
    reading.text(text.to_owned(), origin, 0, 0);
    let Reading { mut included, items, .. } = reading;
    if let Some(first) = items.first() {
        // So that their shape is checked like that of any other key.
        let key_span = first.span;
        let node = Node { span: key_span, value: Value::Array(items), expanded: false };
        included.root.push(Entry { key: "include".to_string(), key_span, node });
    }
    included
}

struct Reading<'a> {
    included: Included,
    files: &'a dyn Files,
    /// Every file so far, and where it is included.
    seen: Vec<(PathBuf, Option<Span>)>,
    /// Bytes that may still be put into strings.
    room: usize,
    /// Every item of every `include`.
    items: Vec<Node>,
}

impl Reading<'_> {
    /// Takes a text into the configuration that begins at `base`, and then what it includes.
    fn text(&mut self, text: String, path: &Path, base: usize, depth: usize) {
        let (mut entries, mut syntax) = tree::read(&text);
        syntax.iter_mut().for_each(|one| one.shift(base));
        self.included.syntax.append(&mut syntax);
        entries.iter_mut().for_each(|entry| entry.shift(base));
        let directory = path.parent().unwrap_or(Path::new("")).to_path_buf();
        let texts = self.included.sources.text();
        let reporting = (&mut self.included.syntax, &mut self.room);
        expand::entries(&mut entries, texts, &directory, self.files, reporting);
        let include = entries.iter().position(|entry| entry.key == "include");
        let include = include.map(|at| entries.remove(at));
        merge(&mut self.included.root, entries, &mut self.included.found);
        let Some(include) = include else { return };
        let items = match include.node.value {
            Value::Array(items) => items,
            value => vec![Node { value, ..include.node }],
        };
        for item in items {
            self.named(&item, &directory, depth);
            self.items.push(item);
        }
    }

    /// The files that one item of `include` names.
    fn named(&mut self, item: &Node, directory: &Path, depth: usize) {
        // `shape` says what else it is.
        let Value::String(text) = &item.value else { return };
        if text.is_empty() || text.contains('\0') {
            let problem = Diagnostic::error(item.span, "this is no path");
            self.push(problem.label("expected the path of a file, or a pattern"));
        } else if text.contains("**") {
            let problem = Diagnostic::error(item.span, "`**` is not known here");
            self.push(problem.label("`*` stands for any name in one directory"));
        } else if text.contains(['*', '?', '[']) {
            let pattern = glob::Pattern::escape(&directory.to_string_lossy());
            let pattern = Path::new(&pattern).join(text);
            match self.files.matching(&pattern, MAX_INCLUDED_FILES) {
                Ok(mut paths) => {
                    paths.sort();
                    for path in paths {
                        self.file(&path, item, depth);
                    }
                }
                Err(error) => {
                    let problem = Diagnostic::error(item.span, format!("this pattern: {error}"));
                    self.push(problem.label("expected one such as \"conf.d/*.toml\""));
                }
            }
        } else {
            self.file(&directory.join(text), item, depth);
        }
    }

    fn file(&mut self, path: &Path, item: &Node, depth: usize) {
        let name = tidy(path);
        let shown = path.display();
        if let Some((_, first)) = self.seen.iter().find(|(known, _)| *known == name) {
            let problem = Diagnostic::error(item.span, format!("{shown} is included twice"));
            let problem = problem.label("each file is read once");
            let problem = match first {
                Some(first) => problem.related(*first, "first here"),
                None => problem.help("it is the file that everything begins with"),
            };
            return self.push(problem);
        }
        if depth >= MAX_INCLUDE_DEPTH {
            let message = format!("files include files more than {MAX_INCLUDE_DEPTH} deep");
            return self.push(Diagnostic::error(item.span, message));
        }
        if self.seen.len() >= MAX_INCLUDED_FILES {
            let message = format!("more than {MAX_INCLUDED_FILES} files are included");
            return self.push(Diagnostic::error(item.span, message));
        }
        self.seen.push((name, Some(item.span)));
        let left = MAX_CONFIG_BYTES.saturating_sub(self.included.sources.text().len() + 1);
        let read = self.files.read(path, left).map_err(|error| {
            let (message, help) = match error.kind() {
                std::io::ErrorKind::NotFound => (
                    format!("there is no file {shown}"),
                    "paths are relative to the file that includes them",
                ),
                std::io::ErrorKind::FileTooLarge => (
                    format!("all files together have more than {MAX_CONFIG_BYTES} bytes"),
                    "leave something out",
                ),
                _ => (
                    format!("{shown} cannot be read: {error}"),
                    "it has to be a file that whoever runs subak can read",
                ),
            };
            Diagnostic::error(item.span, message).label("expected a readable file").help(help)
        });
        let text = read.and_then(|bytes| {
            String::from_utf8(bytes).map_err(|_| {
                let problem = Diagnostic::error(item.span, format!("{shown} is no text"));
                problem.label("expected a text of UTF-8")
            })
        });
        match text {
            Ok(text) => {
                let base = self.included.sources.add(&text, path.to_owned());
                self.text(text, path, base, depth + 1);
            }
            Err(problem) => self.push(problem),
        }
    }

    fn push(&mut self, problem: Diagnostic) {
        self.included.found.push(problem);
    }
}

/// Puts the top level of one more file to that of those before it.
fn merge(root: &mut Vec<Entry>, entries: Vec<Entry>, found: &mut Vec<Diagnostic>) {
    for entry in entries {
        let Some(first) = root.iter_mut().find(|first| first.key == entry.key) else {
            root.push(entry);
            continue;
        };
        match (&*first.key, &mut first.node.value, entry.node.value) {
            ("listener", Value::Table(listeners), Value::Table(more)) => {
                more.into_iter().for_each(|more| listener(listeners, more, found));
            }
            ("pool", Value::Table(pools), Value::Table(more)) => {
                for more in more {
                    match pools.iter().find(|first| first.key == more.key) {
                        Some(first) => found.push(twice("the pool ", first, &more)),
                        None => pools.push(more),
                    }
                }
            }
            (_, _, value) => {
                let node = Node { value, ..entry.node };
                found.push(twice("", first, &Entry { node, ..entry }));
            }
        }
    }
}

/// A listener, or only routes that are added to one.
fn listener(listeners: &mut Vec<Entry>, mut more: Entry, found: &mut Vec<Diagnostic>) {
    let Some(first) = listeners.iter_mut().find(|first| first.key == more.key) else {
        listeners.push(more);
        return;
    };
    if !adds_routes(first) && !adds_routes(&more) {
        found.push(twice("the listener ", first, &more));
        return;
    }
    // What is said of the listener as a whole is said where it is defined.
    if adds_routes(first) {
        std::mem::swap(&mut first.key_span, &mut more.key_span);
        std::mem::swap(&mut first.node.span, &mut more.node.span);
    }
    let (Value::Table(keys), Value::Table(more)) = (&mut first.node.value, more.node.value) else {
        return;
    };
    for entry in more {
        match (keys.iter_mut().find(|key| key.key == entry.key), entry.node.value) {
            (None, value) => keys.push(Entry { node: Node { value, ..entry.node }, ..entry }),
            (
                Some(Entry { node: Node { value: Value::Array(routes), .. }, .. }),
                Value::Array(more),
            ) => {
                routes.extend(more);
            }
            // One of both is no list of routes, which `shape` says of the first.
            (Some(first), value) => first.node.value = value,
        }
    }
}

/// Whether a listener's table has routes and nothing else.
fn adds_routes(listener: &Entry) -> bool {
    let Value::Table(keys) = &listener.node.value else { return false };
    matches!(&**keys, [only] if only.key == "route")
}

fn twice(what: &str, first: &Entry, again: &Entry) -> Diagnostic {
    let how = if what.is_empty() { "given" } else { "defined" };
    Diagnostic::error(again.key_span, format!("{what}`{}` is {how} twice", again.key))
        .label("the same name again")
        .related(first.key_span, "first here")
}

/// A path without `.` and, where that needs no look at the disk, without `..`.
fn tidy(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir
                if matches!(out.components().next_back(), Some(Component::Normal(_))) =>
            {
                out.pop();
            }
            other => out.push(other),
        }
    }
    out
}
