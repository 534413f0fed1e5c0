//! What operators want changed of the configuration in force, and what became of it.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use subak_config::{Layer, Masked, NotWritten, written};

/// A change of the configuration in force.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Wish {
    /// Another endpoint, as it would stand in a file.
    Add {
        /// For this pool.
        pool: String,
        /// `10.0.0.5:8080 weight=2`
        endpoint: String,
    },
    /// One endpoint less.
    Remove {
        /// Of this pool.
        pool: String,
        /// Its name or identity.
        endpoint: String,
    },
    /// How many picks a pool keeps.
    PickLog {
        /// Of this pool.
        pool: String,
        /// So many, none, or (nothing) what the files say.
        picks: Option<Option<NonZeroUsize>>,
    },
    /// What the files say now.
    Reload,
    /// Everything that was changed by API into the files.
    Save,
    /// Everything back that was changed by API.
    Clear,
    /// An earlier configuration: this generation, or the one before.
    Rollback {
        /// By its number.
        to: Option<u64>,
    },
}

/// A configuration, as texts and what lies upon them.
#[derive(Clone, Debug)]
pub struct Version {
    /// The files as they were read.
    pub files: Vec<(PathBuf, Arc<str>)>,
    /// What the API had changed.
    pub layer: Arc<Layer>,
}

/// Files with their texts.
pub type Files = Vec<(PathBuf, Arc<str>)>;

impl Version {
    /// The texts that say what this is.
    ///
    /// # Errors
    /// [`NotWritten`], which cannot be: they were read before.
    pub fn texts(&self) -> Result<Files, NotWritten> {
        let texts: Vec<Arc<str>> = self.files.iter().map(|(_, text)| text.clone()).collect();
        let written = written(&texts, &self.layer)?;
        let paths = self.files.iter().map(|(path, _)| path.clone());
        Ok(paths.zip(written.texts).collect())
    }
}

/// What a change has done.
#[derive(Clone, Debug)]
pub struct Done {
    /// In force now.
    pub generation: u64,
    /// Before and after.
    pub versions: (Version, Version),
    /// Files that were written.
    pub saved: Vec<PathBuf>,
    /// What could not be saved, and stays a change.
    pub left: usize,
    /// Edits of the files without effect, because the API has set something else.
    pub masked: Vec<Masked>,
}

/// Why nothing was changed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NotDone {
    /// No pool has this name.
    NoPool {
        /// The names there are.
        known: Vec<String>,
    },
    /// The pool has no such endpoint.
    NoEndpoint {
        /// The names there are.
        known: Vec<String>,
    },
    /// What is there is in the way.
    Conflict {
        /// What.
        error: String,
        /// What to do.
        hint: String,
    },
    /// What is asked for has errors.
    Wrong {
        /// In short.
        error: String,
        /// Each with its place, as JSON.
        diagnostics: String,
    },
    /// It is right, and could not be done.
    Failed {
        /// Why.
        error: String,
        /// What to do.
        hint: String,
    },
}

/// The configuration in force, and what stands on disk as far as it is known.
#[derive(Clone, Debug)]
pub struct ConfigTold {
    /// In force.
    pub generation: u64,
    /// What is in force.
    pub version: Version,
    /// The files as they were last read.
    pub on_disk: Files,
    /// Whether what is in force is not what those say.
    pub differs_from_file: bool,
}

/// A configuration that is or was in force.
#[derive(Clone, Debug)]
pub struct Past {
    /// Its number.
    pub generation: u64,
    /// Since when.
    pub at: SystemTime,
    /// Who put it in force.
    pub by: Arc<str>,
    /// How: `start`, `reload`, `api`, `save`, `rollback`.
    pub cause: &'static str,
    /// In a few words.
    pub summary: Arc<str>,
    /// What it was.
    pub version: Version,
    /// The one before.
    pub before: Option<Version>,
}

/// Something that has happened.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Happened {
    /// Counts, from 1.
    pub number: u64,
    /// When.
    pub at: SystemTime,
    /// `info` or `warn`.
    pub level: &'static str,
    /// Where.
    pub listener: Option<String>,
    /// Where.
    pub pool: Option<String>,
    /// Where.
    pub endpoint: Option<String>,
    /// What.
    pub text: String,
}
