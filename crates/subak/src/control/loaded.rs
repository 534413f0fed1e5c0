//! A configuration as it was read: what it means, and the texts it stands in.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use subak_config::{Config, Disk, Files, Outcome};

use super::{Findings, NotInForce};

/// What the files say.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) config: Config,
    /// Every file with its text, the first one first.
    pub(crate) files: Vec<(PathBuf, Arc<str>)>,
    /// When they were read.
    pub(crate) at: SystemTime,
}

impl Loaded {
    /// Reads, parses and reports. Warnings are logged, errors returned, both with their places.
    ///
    /// # Errors
    /// [`NotInForce::Unreadable`] and [`NotInForce::Wrong`].
    pub(crate) fn load(path: &Path) -> Result<Loaded, NotInForce> {
        let text = crate::files::read(path).map_err(NotInForce::Unreadable)?;
        Loaded::parse(&text, path)
    }

    /// Parses and reports a text that stands, or would stand, at `path`.
    ///
    /// # Errors
    /// [`NotInForce::Wrong`] with everything that is wrong with it.
    pub(crate) fn parse(text: &str, path: &Path) -> Result<Loaded, NotInForce> {
        let outcome = subak_config::parse(text, path);
        Loaded::of(outcome)
    }

    fn of(outcome: Outcome) -> Result<Loaded, NotInForce> {
        let rendered = outcome.render(false);
        let Some(config) = outcome.config else {
            let json = outcome.sources.to_json(&outcome.diagnostics);
            let brief = outcome.sources.brief(&outcome.diagnostics);
            return Err(NotInForce::Wrong(Findings { rendered, brief, json }));
        };
        if !outcome.diagnostics.is_empty() {
            tracing::warn!("{}", rendered.trim_end());
        }
        let files = outcome.sources.files();
        let files = files.map(|(path, text)| (path.to_owned(), text.into())).collect();
        Ok(Loaded { config, files, at: SystemTime::now() })
    }

    /// Reads these texts as if they stood in the files; the first is that of `path`.
    ///
    /// # Errors
    /// [`NotInForce::Wrong`].
    pub(crate) fn of_texts(
        path: &Path,
        files: Vec<(PathBuf, Arc<str>)>,
    ) -> Result<Loaded, NotInForce> {
        let text = files.first().map(|(_, text)| text.clone()).unwrap_or_default();
        Loaded::of(subak_config::parse_with(&text, path, &Overlay { files: &files }))
    }
}

/// The disk, with other texts in some of its files.
struct Overlay<'a> {
    files: &'a [(PathBuf, Arc<str>)],
}

impl Files for Overlay<'_> {
    fn read(&self, path: &Path, limit: usize) -> io::Result<Vec<u8>> {
        match self.files.iter().find(|(known, _)| known == path) {
            Some((_, text)) if text.len() <= limit => Ok(text.as_bytes().to_vec()),
            Some(_) => Err(io::ErrorKind::FileTooLarge.into()),
            None => Disk.read(path, limit),
        }
    }

    fn open_to_all(&self, path: &Path) -> bool {
        Disk.open_to_all(path)
    }

    fn matching(&self, pattern: &Path, limit: usize) -> Result<Vec<PathBuf>, String> {
        Disk.matching(pattern, limit)
    }

    fn variable(&self, name: &str) -> Option<Result<String, OsString>> {
        Disk.variable(name)
    }

    fn now(&self) -> SystemTime {
        Disk.now()
    }
}
