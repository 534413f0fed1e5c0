//! What is to be in force: the files, and what the API has changed.
//!
//! A reload replaces the files, a change by API the layer; both make a new value of this, and one
//! function puts it in force, one after the other, on one thread. The rules of precedence are
//! [`Layer`]'s.

use std::sync::Arc;

use subak_config::{Config, Layer};

use super::loaded::Loaded;

/// What is to be in force. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Desired {
    pub(crate) loaded: Arc<Loaded>,
    pub(crate) layer: Arc<Layer>,
}

impl Desired {
    /// What the files say, and nothing else.
    pub(crate) fn of_files(loaded: Loaded) -> Desired {
        Desired { loaded: Arc::new(loaded), layer: Arc::default() }
    }

    /// What the layer is laid upon.
    pub(crate) fn below(&self) -> Config {
        self.loaded.config.clone()
    }

    /// What is in force by this, after forgetting what no longer has anything below it.
    pub(crate) fn settle(&mut self) -> Config {
        let below = self.below();
        if self.layer.is_empty() {
            return below;
        }
        Arc::make_mut(&mut self.layer).settle(&below);
        self.layer.apply(&below)
    }
}
