//! From the tree to the model. `shape` has already said what is structurally wrong; here a value of
//! the wrong shape counts as absent, and what is reported is what only meaning can tell.

mod access_log;
mod acme;
mod admin;
mod balance;
mod check;
mod condition;
mod cookies;
mod dns;
mod eject;
mod endpoint;
mod endpoint_tls;
mod health;
mod http2;
mod https;
mod limits;
mod listener;
mod networks;
pub(crate) mod pool;
mod proxy_protocol;
mod route;
mod secret;
mod service;
mod shadow;
mod split;
mod stick;
mod streams;
mod tls;
mod trusted_proxies;
mod weigher;

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;

use crate::defaults;
use crate::diagnostic::{Diagnostic, Span};
use crate::files::Files;
use crate::fixed_text::{self, Place};
use crate::headers::{self, Direction, HeaderEdits, HeaderName, HeaderValue};
use crate::keys::Table;
use crate::model::{Config, ErrorPages, Name, Page};
use crate::problem::Problem;
use crate::report::Report;
use crate::scalar;
use crate::shape;
use crate::sources::Sources;
use crate::suggest::nearest;
use crate::tree::{Entry, Node, Value};
use crate::vocabulary::{HEADERS, ROOT};

/// Builds the model. Worth something only when no error was reported.
pub(crate) fn config(reader: &mut Reader<'_>, root: &[Entry]) -> Config {
    let root = View { entries: root, table: &ROOT };
    let pool_entries = root.entries_of("pool");
    let names: Vec<Name> = pool_entries.iter().map(|entry| Name::from(&*entry.key)).collect();
    let listener_entries = root.entries_of("listener");
    let access_logs = access_log::read(reader, &root, &[]);
    let listeners: Vec<_> = listener_entries
        .iter()
        .map(|entry| listener::read(reader, entry, &names, &access_logs))
        .collect();
    let pools: Vec<_> = pool_entries.iter().map(|entry| pool::read(reader, entry)).collect();
    check::listeners(reader, &root, &listeners);
    check::unused_pools(reader, pool_entries, listener_entries);
    cookies::shared(reader, &listeners, &pools, pool_entries);
    let admin = admin::read(reader, &root, &listeners);
    let acme = acme::read(reader, &root, &listeners);
    let service = service::read(reader, &root);
    let dns = dns::read(reader, &root);
    check::names(reader, &root, &pools);
    Config {
        workers: root.number("workers").and_then(convert),
        shutdown_timeout: root.duration("shutdown_timeout", defaults::SHUTDOWN_TIMEOUT),
        max_connections: root.number("max_connections").and_then(convert),
        buffers: root.size("buffers").and_then(convert),
        user: service.user,
        group: service.group,
        pid_file: service.pid_file,
        admin,
        dns,
        acme,
        listeners: listeners.into_iter().map(|read| read.listener).collect(),
        pools,
    }
}

/// What reading needs besides the tree.
pub(crate) struct Reader<'a> {
    pub(crate) report: Report<'a>,
    pub(crate) files: &'a dyn Files,
    /// Relative paths are relative to the file they stand in.
    pub(crate) sources: &'a Sources,
}

impl Reader<'_> {
    fn push(&mut self, diagnostic: Diagnostic) {
        self.report.push(diagnostic);
    }

    fn take<T>(&mut self, node: &Node, result: Result<T, Problem>) -> Option<T> {
        self.report.take(node, result)
    }

    /// A string, read further.
    fn text<T>(&mut self, node: &Node, read: impl FnOnce(&str) -> Result<T, Problem>) -> Option<T> {
        let Value::String(text) = &node.value else { return None };
        let result = read(text);
        self.take(node, result)
    }

    /// A pool's name that is known.
    fn pool_name(&mut self, node: &Node, names: &[Name]) -> Option<Name> {
        self.text(node, |text| {
            names.iter().find(|name| ***name == *text).cloned().ok_or_else(|| {
                let near = nearest(text, names.iter().map(|name| &**name));
                let help = match near {
                    Some(near) => format!("did you mean \"{near}\"?"),
                    None => "declare it as [pool.NAME]".to_string(),
                };
                Problem::expected(
                    format!("there is no pool `{text}`"),
                    "expected the name of a pool",
                )
                .help(help)
            })
        })
    }

    /// What a relative path at `node` is relative to: the directory of the file it stands in.
    fn directory(&self, node: &Node) -> PathBuf {
        let (origin, _) = self.sources.place(node.span);
        origin.parent().unwrap_or(Path::new("")).to_path_buf()
    }

    /// The bytes of the file that `node` names.
    fn file(&mut self, node: &Node, limit: usize) -> Option<(PathBuf, Bytes)> {
        let files = self.files;
        let Value::String(text) = &node.value else { return None };
        let path = self.directory(node).join(text);
        let result = if text.is_empty() || text.contains('\0') {
            Err(Problem::expected("this is no path", "expected the path of a file"))
        } else {
            files.read(&path, limit).map_err(|error| file_problem(&path, &error, limit))
        };
        self.take(node, result).map(|bytes| (path, Bytes::from(bytes)))
    }

    /// Reports keys that mean something only beside `with`, which is not there.
    fn only_with(&mut self, view: &View<'_>, names: &[&str], with: &str) {
        for entry in names.iter().filter_map(|name| view.entry(name)) {
            let message = format!("`{}` goes with `{with}` only", entry.key);
            let diagnostic = Diagnostic::error(entry.key_span, message);
            self.push(diagnostic.label(format!("there is no `{with}`")).derived());
        }
    }

    /// Reports a duration that is above another one of its table.
    fn at_most(
        &mut self,
        view: &View<'_>,
        (low, low_value): (&'static str, Duration),
        (high, high_value): (&'static str, Duration),
    ) {
        // One that is not given has been made to fit.
        let Some(node) = view.node(low).filter(|_| low_value > high_value) else { return };
        let message = format!("`{low}` is above `{high}`");
        let expected = format!("expected at most {}", scalar::show_duration(high_value));
        let mut diagnostic = Diagnostic::error(node.span, message).label(expected);
        if let Some(high_node) = view.node(high) {
            diagnostic = diagnostic.related(high_node.span, format!("`{high}`"));
        }
        self.push(diagnostic);
    }

    /// `request_headers` or `response_headers`.
    fn header_edits(&mut self, view: &View<'_>, direction: Direction) -> HeaderEdits {
        let key = match direction {
            Direction::Request => "request_headers",
            Direction::Response => "response_headers",
        };
        let view = view.table(key, &HEADERS);
        let mut edits = HeaderEdits::default();
        for item in view.items("remove") {
            edits.remove.extend(self.text(item, |text| headers::name(text, direction)));
        }
        let mut seen: Vec<(String, Span)> = Vec::new();
        for entry in view.entries_of("set") {
            let lower = entry.key.to_ascii_lowercase();
            if let Some((_, first)) = seen.iter().find(|(name, _)| *name == lower) {
                let message = format!("`{}` is set twice", entry.key);
                self.push(
                    Diagnostic::error(entry.key_span, message)
                        .label("header names are the same in any case")
                        .related(*first, "first here"),
                );
            }
            seen.push((lower, entry.key_span));
            let name = self.header_name(entry, direction);
            let value = self.header_value(&entry.node);
            edits.set.extend(name.zip(value));
        }
        for entry in view.entries_of("add") {
            let name = self.header_name(entry, direction);
            for item in one_or_many(&entry.node) {
                let value = self.header_value(item);
                edits.add.extend(name.clone().zip(value));
            }
        }
        edits
    }

    fn header_value(&mut self, node: &Node) -> Option<HeaderValue> {
        // What came from outside is not shown either where it is wrong.
        let read = |text: &str| {
            let problem = |problem: Problem| Problem {
                help: problem.help.filter(|_| !node.expanded),
                ..problem
            };
            // What came from outside is not looked at for variables: a password may have a `$`.
            let text = if node.expanded {
                Cow::Borrowed(text)
            } else {
                fixed_text::fixed(text, Place::Header)?
            };
            headers::value(&text).map_err(problem)
        };
        Some(self.text(node, read)?.hide(node.expanded))
    }

    fn header_name(&mut self, entry: &Entry, direction: Direction) -> Option<HeaderName> {
        match headers::name(&entry.key, direction) {
            Ok(name) => Some(name),
            // `shape` has said so of one that is no header name at all.
            Err(_) if !headers::is_name(&entry.key) => None,
            Err(problem) => {
                let diagnostic = Diagnostic::error(entry.key_span, problem.message);
                self.push(diagnostic.label(problem.expected).maybe_help(problem.help));
                None
            }
        }
    }

    /// `error_pages`.
    fn error_pages(&mut self, view: &View<'_>) -> ErrorPages {
        let mut pages = ErrorPages::default();
        for entry in view.entries_of("error_pages") {
            let Some(page) = self.page(&entry.node, None) else { continue };
            match &*entry.key {
                "4xx" => pages.by_class.push((4, page)),
                "5xx" => pages.by_class.push((5, page)),
                status => pages.by_status.extend(status.parse().ok().map(|status| (status, page))),
            }
        }
        pages
    }

    /// A page from the file that `node` names.
    fn page(&mut self, node: &Node, content_type: Option<HeaderValue>) -> Option<Page> {
        let (path, body) = self.file(node, defaults::MAX_PAGE_BYTES)?;
        let content_type = content_type.unwrap_or_else(|| headers::media_type_of(&path));
        Some(Page { content_type, body })
    }
}

fn file_problem(path: &Path, error: &std::io::Error, limit: usize) -> Problem {
    let message = match error.kind() {
        std::io::ErrorKind::NotFound => format!("there is no file {}", path.display()),
        std::io::ErrorKind::PermissionDenied => format!("{} may not be read", path.display()),
        std::io::ErrorKind::FileTooLarge => {
            format!("{} is larger than {}", path.display(), scalar::show_size(limit as u64))
        }
        _ => format!("{} cannot be read: {error}", path.display()),
    };
    let help = match error.kind() {
        std::io::ErrorKind::NotFound => Some("paths are relative to the file they stand in"),
        std::io::ErrorKind::PermissionDenied => Some(
            "who runs subak must be able to read it: `chgrp` it to that user's group, `chmod g+r` it",
        ),
        _ => None,
    };
    Problem::expected(message, "expected a readable file").maybe_help(help.map(String::from))
}

/// A table with its declaration. Values of another type than declared count as absent.
pub(crate) struct View<'a> {
    pub(crate) entries: &'a [Entry],
    pub(crate) table: &'static Table,
}

impl<'a> View<'a> {
    /// The table in an entry; empty when it is none.
    fn of(node: &'a Node, table: &'static Table) -> View<'a> {
        View { entries: table_entries(node), table }
    }

    fn entry(&self, name: &str) -> Option<&'a Entry> {
        debug_assert!(
            self.table.key(name).is_some(),
            "{name} is not declared in {}",
            self.table.path
        );
        self.entries.iter().find(|entry| entry.key == name)
    }

    fn node(&self, name: &str) -> Option<&'a Node> {
        self.entry(name).map(|entry| &entry.node)
    }

    /// The table under a key; empty when there is none.
    fn table(&self, name: &str, table: &'static Table) -> View<'a> {
        View { entries: self.entries_of(name), table }
    }

    /// The entries of the table under a key.
    fn entries_of(&self, name: &str) -> &'a [Entry] {
        self.node(name).map_or(&[], table_entries)
    }

    /// The items of the array under a key.
    fn items(&self, name: &str) -> &'a [Node] {
        match self.node(name).map(|node| &node.value) {
            Some(Value::Array(items)) => items,
            _ => &[],
        }
    }

    /// The items of the array under a key, or the one value that stands there instead.
    fn one_or_many(&self, name: &str) -> &'a [Node] {
        self.node(name).map_or(&[], one_or_many)
    }

    fn boolean(&self, name: &str, default: bool) -> bool {
        match self.node(name).map(|node| &node.value) {
            Some(Value::Boolean(truth)) => *truth,
            _ => default,
        }
    }

    fn string(&self, name: &str) -> Option<&'a str> {
        match self.node(name).map(|node| &node.value) {
            Some(Value::String(text)) => Some(text),
            _ => None,
        }
    }

    fn number(&self, name: &str) -> Option<u64> {
        match self.node(name).map(|node| &node.value) {
            Some(Value::Integer(number)) => u64::try_from(*number).ok(),
            _ => None,
        }
    }

    fn duration(&self, name: &str, default: Duration) -> Duration {
        self.string(name).and_then(|text| scalar::duration(text).ok()).unwrap_or(default)
    }

    fn size(&self, name: &str) -> Option<u64> {
        self.node(name).and_then(size)
    }

    /// A share or a decimal, in parts of so many.
    fn parts(&self, name: &str, whole: u32) -> Option<u32> {
        self.node(name).and_then(|node| shape::parts(&node.value, whole))
    }

    /// `None`: nothing said; `Some(None)`: unlimited.
    fn or_unlimited(&self, name: &str) -> Option<Option<u64>> {
        match self.string(name) {
            Some("unlimited") => Some(None),
            _ => self.size(name).map(Some),
        }
    }
}

fn table_entries(node: &Node) -> &[Entry] {
    match &node.value {
        Value::Table(entries) => entries,
        _ => &[],
    }
}

fn one_or_many(node: &Node) -> &[Node] {
    match &node.value {
        Value::Array(items) => items,
        _ => std::slice::from_ref(node),
    }
}

fn size(node: &Node) -> Option<u64> {
    match &node.value {
        Value::String(text) => scalar::size(text).ok(),
        Value::Integer(number) => u64::try_from(*number).ok(),
        _ => None,
    }
}

/// To a type with a narrower range, or one without zero; `None` outside of it, which `shape` has
/// then reported.
fn convert<T: Narrow>(number: u64) -> Option<T> {
    T::narrow(number)
}

/// A number type of the model.
trait Narrow: Sized {
    fn narrow(number: u64) -> Option<Self>;
}

impl Narrow for std::num::NonZeroUsize {
    fn narrow(number: u64) -> Option<Self> {
        usize::try_from(number).ok().and_then(Self::new)
    }
}

impl Narrow for std::num::NonZeroU32 {
    fn narrow(number: u64) -> Option<Self> {
        u32::try_from(number).ok().and_then(Self::new)
    }
}

impl Narrow for usize {
    fn narrow(number: u64) -> Option<Self> {
        usize::try_from(number).ok()
    }
}

impl Narrow for u32 {
    fn narrow(number: u64) -> Option<Self> {
        u32::try_from(number).ok()
    }
}

impl Narrow for std::num::NonZeroU16 {
    fn narrow(number: u64) -> Option<Self> {
        u16::try_from(number).ok().and_then(Self::new)
    }
}

impl Narrow for u16 {
    fn narrow(number: u64) -> Option<Self> {
        u16::try_from(number).ok()
    }
}
