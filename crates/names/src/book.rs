//! All names of a configuration: who is to be asked now, and what they stand for together.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use subak_base::{Rng, Tick};
use subak_config::Origin;
use subak_config::names::Answers;

use crate::MAX_ASKING;
use crate::watch::{Bounds, Change, Reply, Watch};

/// The names, and what is known of each.
#[derive(Clone, Debug)]
pub struct Book {
    bounds: Bounds,
    names: BTreeMap<Origin, Watch>,
    asking: usize,
    /// Where looking for names that are due goes on, so that all get their turn.
    next: Option<Origin>,
}

/// Somebody who waits for an answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Waiting {
    /// The name.
    pub origin: Origin,
}

/// What is known of a name.
#[derive(Clone, PartialEq, Debug)]
pub struct Told {
    /// As configurations write it.
    pub name: String,
    /// Where it leads.
    pub addresses: Vec<String>,
    /// How long ago the list in force was confirmed; nothing when there never was one.
    pub age: Option<Duration>,
    /// For how long it holds by its own word.
    pub ttl_left: Option<Duration>,
    /// Until it is asked; nothing while it is.
    pub asks_in: Option<Duration>,
    /// Why it could not be resolved as a whole, and for how long that has been so.
    pub failing: Option<(String, Duration)>,
    /// Questions so far.
    pub asked: u64,
    /// Those of them that failed.
    pub failed: u64,
}

impl Book {
    /// Without names.
    pub fn new(bounds: Bounds) -> Book {
        Book { bounds, names: BTreeMap::new(), asking: 0, next: None }
    }

    /// Has these names from now on; those that stay keep what is known of them.
    pub fn keep(&mut self, bounds: Bounds, origins: BTreeSet<Origin>) {
        self.bounds = bounds;
        self.names.retain(|origin, _| origins.contains(origin));
        for origin in origins {
            self.names.entry(origin).or_default();
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Whom to ask now. Each has to be [answered](Book::answered), whatever comes of it.
    pub fn due(&mut self, now: Tick) -> Vec<Waiting> {
        let room = MAX_ASKING.saturating_sub(self.asking);
        let from = self.next.take();
        let (later, first): (Vec<_>, Vec<_>) =
            self.names.iter_mut().partition(|(origin, _)| Some(*origin) < from.as_ref());
        let mut due = first.into_iter().chain(later).filter(|(_, watch)| watch.is_due(now));
        let mut waiting = Vec::new();
        for (origin, watch) in due.by_ref().take(room) {
            watch.ask();
            waiting.push(Waiting { origin: origin.clone() });
        }
        self.next = due.next().map(|(origin, _)| origin.clone());
        self.asking += waiting.len();
        waiting
    }

    /// Takes an answer. `Some` when another list stands for the name now. Of a name that has gone in
    /// the meantime nothing is taken.
    pub fn answered(
        &mut self,
        waiting: &Waiting,
        reply: Result<Reply, String>,
        now: Tick,
        random: &mut Rng,
    ) -> Option<Change> {
        self.asking = self.asking.saturating_sub(1);
        self.names.get_mut(&waiting.origin)?.answered(reply, &self.bounds, now, random)
    }

    /// Has everybody who failed asked again at once, for instance because other servers are asked now.
    pub fn hurry(&mut self, now: Tick) {
        for watch in self.names.values_mut().filter(|watch| watch.failure().is_some()) {
            watch.hurry(now);
        }
    }

    /// Whether each name has been answered or has failed.
    pub fn is_decided(&self) -> bool {
        self.names.values().all(Watch::is_decided)
    }

    /// What they stand for.
    pub fn answers(&self) -> Answers {
        let known =
            |(origin, watch): (&Origin, &Watch)| Some((origin.clone(), watch.found()?.clone()));
        Answers(self.names.iter().filter_map(known).collect())
    }

    /// Why names fail, by name; with the age of what stands for them.
    pub fn failures(&self, now: Tick) -> impl Iterator<Item = (&Origin, &str, Option<Duration>)> {
        self.names.iter().filter_map(move |(origin, watch)| {
            let (why, _) = watch.failure()?;
            Some((origin, why, watch.age(now)))
        })
    }

    /// What is known of each.
    pub fn told(&self, now: Tick) -> Vec<Told> {
        let told = |(origin, watch): (&Origin, &Watch)| {
            let (asked, failed) = watch.counts();
            let found = watch.found().map_or(&[][..], |found| found);
            Told {
                name: origin.to_string(),
                addresses: found.iter().map(|one| one.address.to_string()).collect(),
                age: watch.age(now),
                ttl_left: watch.ttl_left(now),
                asks_in: watch.asks_in(now),
                failing: watch.failure().map(|(why, since)| (why.to_owned(), now.since(since))),
                asked,
                failed,
            }
        };
        self.names.iter().map(told).collect()
    }
}

#[cfg(test)]
mod tests;
