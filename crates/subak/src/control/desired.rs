//! What is to be in force: the files, what their names stand for, and what the API has changed.
//!
//! A reload replaces the files, another answer of DNS the names, a change by API the layer; each makes
//! a new value of this, and one function puts it in force, one after the other, on one thread. The
//! rules of precedence are [`Layer`]'s, those of names [`Answers`]'.

use std::sync::Arc;

use subak_config::names::{Answers, Oddity, Resolved};
use subak_config::{Config, Layer};

use super::loaded::Loaded;

/// What is to be in force. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Desired {
    pub(crate) loaded: Arc<Loaded>,
    pub(crate) names: Arc<Answers>,
    pub(crate) layer: Arc<Layer>,
    /// What files and names came to when this was settled last.
    pub(super) below: Option<Arc<Resolved>>,
}

impl Desired {
    /// What the files say with what their names stand for, and nothing else.
    pub(crate) fn of_files(loaded: Loaded, names: Answers) -> Desired {
        let names = Arc::new(names);
        Desired { loaded: Arc::new(loaded), names, layer: Arc::default(), below: None }
    }

    /// What the layer is laid upon.
    pub(crate) fn below(&self) -> Config {
        match &self.below {
            Some(below) => below.config.clone(),
            None => self.loaded.config.clone(),
        }
    }

    /// What somebody should look at about the names.
    pub(crate) fn oddities(&self) -> &[Oddity] {
        self.below.as_ref().map_or(&[], |below| &below.oddities)
    }

    /// What is in force by this, after forgetting what no longer has anything below it.
    pub(crate) fn settle(&mut self) -> Config {
        let before = self.below.take();
        let before = before.as_ref().map(|before| &before.config);
        self.below = Some(Arc::new(self.names.apply(&self.loaded.config, before)));
        let below = self.below();
        if self.layer.is_empty() {
            return below;
        }
        Arc::make_mut(&mut self.layer).settle(&below);
        self.layer.apply(&below)
    }
}
