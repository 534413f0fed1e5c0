//! Configurations that were in force: who put them there, when and how, and what they were. Bounded.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::SystemTime;

use subak_admin::{Past, Version};
use subak_config::Layer;

use super::desired::Desired;

/// Configurations that are kept.
const KEPT: usize = 20;
/// Bytes of their texts; the one in force is kept however large it is.
const KEPT_BYTES: usize = 64 * 1024 * 1024;

/// How a configuration came in force.
#[derive(Clone, Debug)]
pub(super) struct Cause {
    /// `start`, `reload`, `api`, `save` or `rollback`.
    pub(super) name: &'static str,
    pub(super) by: Arc<str>,
    pub(super) summary: Arc<str>,
}

#[derive(Debug)]
struct Entry {
    /// The generations in which it was in force without a break, the first and the last.
    first: u64,
    generation: u64,
    at: SystemTime,
    cause: Cause,
    desired: Desired,
    before: Option<Desired>,
    /// What was set on endpoints and has gone into the files by this.
    saved: Layer,
}

/// The latest configurations, the one in force last.
#[derive(Debug, Default)]
pub(super) struct History {
    entries: VecDeque<Entry>,
}

impl History {
    /// Another one is in force. `saved`: settings that are now said by its files.
    pub(super) fn add(&mut self, generation: u64, cause: Cause, desired: &Desired, saved: Layer) {
        let before = self.entries.back().map(|entry| entry.desired.clone());
        let desired = desired.clone();
        let at = SystemTime::now();
        self.entries.push_back(Entry {
            first: generation,
            generation,
            at,
            cause,
            desired,
            before,
            saved,
        });
        let bytes = |entry: &Entry| {
            entry.desired.loaded.files.iter().map(|(_, text)| text.len()).sum::<usize>()
        };
        while self.entries.len() > KEPT
            || (self.entries.len() > 1
                && self.entries.iter().map(bytes).sum::<usize>() > KEPT_BYTES)
        {
            self.entries.pop_front();
        }
    }

    /// The newest one is in force still, in this generation: what was read again is the same, or only
    /// what names stand for has changed.
    pub(super) fn still(&mut self, generation: u64) {
        if let Some(newest) = self.entries.back_mut() {
            newest.generation = generation;
        }
    }

    /// What an earlier configuration would be now: this generation's, or that of the one before the
    /// newest. What is set on endpoints now stays set; what has gone into files since comes back out
    /// of them.
    pub(super) fn rollback(&self, to: Option<u64>, now: &Desired) -> Option<(u64, Desired)> {
        let at = match to {
            Some(generation) => {
                let holds = |entry: &Entry| (entry.first..=entry.generation).contains(&generation);
                self.entries.iter().position(holds)?
            }
            None => self.entries.len().checked_sub(2)?,
        };
        let entry = &self.entries[at];
        let mut layer = entry.desired.layer.without_settings();
        layer.inherit_settings(&now.layer);
        for later in self.entries.iter().skip(at + 1).rev() {
            layer.inherit_settings(&later.saved);
        }
        let loaded = entry.desired.loaded.clone();
        let desired = Desired { loaded, layer: Arc::new(layer), ..now.clone() };
        Some((entry.generation, desired))
    }

    /// The generations there are.
    pub(super) fn generations(&self) -> Vec<u64> {
        self.entries.iter().map(|entry| entry.generation).collect()
    }

    /// To be shown, the newest first.
    pub(super) fn told(&self) -> Vec<Past> {
        let told = |entry: &Entry| Past {
            generation: entry.generation,
            at: entry.at,
            by: entry.cause.by.clone(),
            cause: entry.cause.name,
            summary: entry.cause.summary.clone(),
            version: entry.desired.version(),
            before: entry.before.as_ref().map(Desired::version),
        };
        self.entries.iter().rev().map(told).collect()
    }
}

impl Desired {
    /// To be shown.
    pub(super) fn version(&self) -> Version {
        Version { files: self.loaded.files.clone(), layer: self.layer.clone() }
    }
}
