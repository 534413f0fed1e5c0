//! What was changed by API, written into the files: comments, order and layout stay.
//!
//! Nothing is written that would not read back as what is in force, and nothing over a file that
//! somebody else has changed since it was read.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use subak_admin::{Done, NotDone};
use subak_config::{Config, Layer, Pool, written};

use super::wishes::refused;
use super::{Cause, Control, Desired, Loaded};
use crate::files::{read, replace};

impl Control {
    /// Saves; `done` says what has come of it.
    pub(super) fn save(
        &mut self,
        by: &Arc<str>,
        done: impl FnOnce(&Control) -> Done,
    ) -> Result<Done, NotDone> {
        for (path, text) in &self.on_disk.files {
            if read(path).ok().as_deref() != Some(&**text) {
                let error = format!("{} has changed since it was read", path.display());
                let hint = "reload it first; what was set by API stays".to_owned();
                return Err(NotDone::Conflict { error, hint });
            }
        }
        let files = &self.desired.loaded.files;
        let texts: Vec<Arc<str>> = files.iter().map(|(_, text)| text.clone()).collect();
        let written = written(&texts, &self.desired.layer).map_err(|error| NotDone::Failed {
            error: error.to_string(),
            hint: "write it into the file by hand".to_owned(),
        })?;
        let paths = files.iter().map(|(path, _)| path.clone());
        let files: Vec<(PathBuf, Arc<str>)> = paths.zip(written.texts).collect();
        let loaded = Loaded::of_texts(&self.path, files).map_err(refused)?;
        let (loaded, layer) = (Arc::new(loaded), Arc::new(written.left));
        let mut after = Desired { loaded, layer, ..self.desired.clone() };
        if meant(&after.settle(), &after.layer) != meant(&self.config, &self.desired.layer) {
            let error = "what is in force cannot be written so that it reads back the same";
            let hint = "compare GET /v1/config/diff with the file, and write it by hand".to_owned();
            return Err(NotDone::Failed { error: error.to_owned(), hint });
        }
        let is_new = |(path, text): &&(PathBuf, Arc<str>)| {
            !self.on_disk.files.iter().any(|(known, old)| known == path && old == text)
        };
        let new: Vec<(PathBuf, Arc<str>)> =
            after.loaded.files.iter().filter(is_new).cloned().collect();
        self.write(&new)?;
        let (before, left) = (self.desired.layer.clone(), after.layer.len());
        let loaded = after.loaded.clone();
        self.put_in_force(after).map_err(refused)?;
        self.on_disk = loaded;
        let summary = format!("{} changes saved", before.len().saturating_sub(left));
        let mut saved = Layer::default();
        saved.inherit_settings(&before);
        self.note(Cause { name: "save", by: by.clone(), summary: summary.into() }, saved);
        let saved = new.into_iter().map(|(path, _)| path).collect();
        Ok(Done { saved, left, ..done(self) })
    }

    /// Writes all of these files, or none.
    fn write(&self, files: &[(PathBuf, Arc<str>)]) -> Result<(), NotDone> {
        for (index, (path, text)) in files.iter().enumerate() {
            let Err(error) = replace(path, text) else { continue };
            for (path, _) in &files[..index] {
                self.restore(path);
            }
            let who = self.account().map(|account| format!(" as {account}")).unwrap_or_default();
            let error = format!("cannot write {}{who}: {error}", path.display());
            let hint = "whoever runs subak must be able to write the file and its directory; \
                        GET /v1/config/text has what is to stand there"
                .to_owned();
            return Err(NotDone::Failed { error, hint });
        }
        Ok(())
    }

    fn restore(&self, path: &Path) {
        let old = self.on_disk.files.iter().find(|(known, _)| known == path);
        if let Some(Err(error)) = old.map(|(_, text)| replace(path, text)) {
            tracing::error!(path = %path.display(), %error, "cannot be put back as it was");
        }
    }
}

/// What pools mean together with what is set upon them. The rest is not written.
fn meant(config: &Config, layer: &Layer) -> Vec<Pool> {
    let mut pools = config.pools.clone();
    for pool in &mut pools {
        let Some(layer) = layer.pool(&pool.name) else { continue };
        for endpoint in &mut pool.endpoints {
            let Some(set) = layer.set.get(&endpoint.address) else { continue };
            endpoint.weight = set.weight.as_ref().map_or(endpoint.weight, |made| made.value);
            endpoint.state = set.state.as_ref().map_or(endpoint.state, |made| made.value.state);
        }
    }
    pools
}
