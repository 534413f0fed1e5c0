//! A configuration as it was read: what it means, and the texts it stands in.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use subak_config::Config;

use super::NotInForce;

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
        let rendered = outcome.render(false);
        let Some(config) = outcome.config else { return Err(NotInForce::Wrong(rendered)) };
        if !outcome.diagnostics.is_empty() {
            tracing::warn!("{}", rendered.trim_end());
        }
        let files = outcome.sources.files();
        let files = files.map(|(path, text)| (path.to_owned(), text.into())).collect();
        Ok(Loaded { config, files, at: SystemTime::now() })
    }
}
