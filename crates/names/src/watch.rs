//! One name: when is it asked again, and what stands for it until then?
//!
//! After an answer it is asked when the answer's time to live is over, within the bounds `min_ttl` and
//! `max_ttl`. After a failure it waits `min_ttl`, then twice as long each time, up to `negative_ttl`.
//! Up to a tenth is added by chance, so that names that were asked together part.
//!
//! What a good answer said stays in force until another good one comes, however long that takes: no
//! address at all, a name that is gone and a server that is silent are failures alike. An answer that
//! is known to lack something (one of two families, a host of a service) only adds: what it does not
//! name stays as well, and it is asked again as after a failure.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use subak_base::{Rng, Tick};
use subak_config::names::Found;

use crate::MAX_ADDRESSES;

/// How often names are asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bounds {
    /// The least from one question to the next.
    pub min_ttl: Duration,
    /// The most; not below `min_ttl`.
    pub max_ttl: Duration,
    /// The most after a failure; not below `min_ttl`.
    pub negative_ttl: Duration,
}

/// What a name was answered.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reply {
    /// Where it leads; as it came.
    pub found: Vec<Found>,
    /// For how long that holds.
    pub ttl: Duration,
    /// What is known to be missing, in words.
    pub lacks: Option<String>,
    /// What somebody should look at although nothing is missing, in words.
    pub odd: Option<String>,
}

/// What another answer has changed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Change {
    /// Who is new, or is described otherwise.
    pub came: Vec<Found>,
    /// Who was listed until now.
    pub left: Vec<Found>,
}

/// One name.
#[derive(Clone, Debug, Default)]
pub struct Watch {
    /// When it is to be asked; at once when it never was.
    due: Tick,
    is_asked: bool,
    known: Option<Known>,
    failing: Option<Failing>,
    asked: u64,
    failed: u64,
}

#[derive(Clone, Debug)]
struct Known {
    found: Arc<[Found]>,
    at: Tick,
    ttl: Duration,
}

#[derive(Clone, Debug)]
struct Failing {
    why: String,
    since: Tick,
    in_a_row: u32,
}

impl Watch {
    /// Whether it is to be asked now.
    pub fn is_due(&self, now: Tick) -> bool {
        !self.is_asked && self.due <= now
    }

    /// It is being asked.
    pub fn ask(&mut self) {
        self.is_asked = true;
        self.asked += 1;
    }

    /// Has it asked again at once.
    pub fn hurry(&mut self, now: Tick) {
        self.due = now;
    }

    /// Takes what it was answered. `Some` when another list stands for it now.
    pub fn answered(
        &mut self,
        reply: Result<Reply, String>,
        bounds: &Bounds,
        now: Tick,
        random: &mut Rng,
    ) -> Option<Change> {
        self.is_asked = false;
        match reply.and_then(with_addresses) {
            Ok(reply) => self.learn(reply, bounds, now, random),
            Err(why) => {
                self.fail(why, bounds, now, random);
                None
            }
        }
    }

    /// What stands for it; nothing when it has never been answered well.
    pub fn found(&self) -> Option<&Arc<[Found]>> {
        self.known.as_ref().map(|known| &known.found)
    }

    /// Whether it has been answered or has failed, once at least.
    pub fn is_decided(&self) -> bool {
        self.known.is_some() || self.failing.is_some()
    }

    /// How long ago the list in force was confirmed.
    pub fn age(&self, now: Tick) -> Option<Duration> {
        self.known.as_ref().map(|known| now.since(known.at))
    }

    /// How long the answer that gave the list said it would hold, from now on; zero when that is over.
    pub fn ttl_left(&self, now: Tick) -> Option<Duration> {
        self.known.as_ref().map(|known| known.at.after(known.ttl).since(now))
    }

    /// Until it is asked; nothing while it is.
    pub fn asks_in(&self, now: Tick) -> Option<Duration> {
        (!self.is_asked).then(|| self.due.since(now))
    }

    /// Why the last question failed, or its answer lacked something, and since when that is so.
    pub fn failure(&self) -> Option<(&str, Tick)> {
        self.failing.as_ref().map(|failing| (&*failing.why, failing.since))
    }

    /// Questions so far, and those of them that failed.
    pub fn counts(&self) -> (u64, u64) {
        (self.asked, self.failed)
    }

    fn learn(
        &mut self,
        reply: Reply,
        bounds: &Bounds,
        now: Tick,
        random: &mut Rng,
    ) -> Option<Change> {
        let Reply { mut found, ttl, lacks, odd } = reply;
        let before = self.known.as_ref().map(|known| known.found.clone()).unwrap_or_default();
        tidy(&mut found);
        let lacks_something = lacks.is_some();
        if lacks_something {
            let listed: HashSet<_> = found.iter().map(|one| one.address).collect();
            found.extend(before.iter().filter(|one| !listed.contains(&one.address)).cloned());
            tidy(&mut found);
        }
        let dropped = found.len().saturating_sub(MAX_ADDRESSES);
        found.truncate(MAX_ADDRESSES);
        let too_many = (dropped > 0).then(|| {
            format!("it has {dropped} addresses more than the {MAX_ADDRESSES} that are used")
        });
        let change = change(&before, &found);
        let found = match &change {
            Some(_) => found.into(),
            None => before,
        };
        self.known = Some(Known { found, at: now, ttl });
        match lacks {
            Some(why) => self.fail(why, bounds, now, random),
            None => {
                let ttl = ttl.clamp(bounds.min_ttl, bounds.max_ttl);
                self.due = now.after(jittered(ttl, bounds.min_ttl, bounds.max_ttl, random));
                self.failing = too_many.or(odd).map(|why| self.still_failing(why, now, 0));
            }
        }
        change
    }

    fn fail(&mut self, why: String, bounds: &Bounds, now: Tick, random: &mut Rng) {
        self.failed += 1;
        let in_a_row = self.failing.as_ref().map_or(0, |failing| failing.in_a_row);
        let factor = 1_u32.checked_shl(in_a_row).unwrap_or(u32::MAX);
        let wait = bounds.min_ttl.saturating_mul(factor).min(bounds.negative_ttl);
        self.due = now.after(jittered(wait, bounds.min_ttl, bounds.negative_ttl, random));
        self.failing = Some(self.still_failing(why, now, in_a_row.saturating_add(1).min(31)));
    }

    fn still_failing(&self, why: String, now: Tick, in_a_row: u32) -> Failing {
        let since = self.failing.as_ref().map_or(now, |failing| failing.since);
        Failing { why, since, in_a_row }
    }
}

/// An answer without addresses is none.
fn with_addresses(reply: Reply) -> Result<Reply, String> {
    match reply.found.is_empty() {
        true => Err(reply.lacks.or(reply.odd).unwrap_or_else(|| "it has no address".to_owned())),
        false => Ok(reply),
    }
}

/// In the order that pools see, each address once; of several the first in that order.
fn tidy(found: &mut Vec<Found>) {
    found.sort_unstable();
    let mut seen = HashSet::new();
    found.retain(|one| seen.insert(one.address));
}

fn change(before: &[Found], now: &[Found]) -> Option<Change> {
    if before == now {
        return None;
    }
    let without = |these: &[Found], those: &[Found]| {
        let those: HashSet<&Found> = those.iter().collect();
        these.iter().filter(|one| !those.contains(one)).cloned().collect()
    };
    Some(Change { came: without(now, before), left: without(before, now) })
}

/// Up to a tenth later, or where that is above the most so much earlier; never below the least.
fn jittered(wait: Duration, least: Duration, most: Duration, random: &mut Rng) -> Duration {
    let tenth = wait / 10;
    let nanos = u64::try_from(tenth.as_nanos()).unwrap_or(u64::MAX);
    let part = Duration::from_nanos(random.below(nanos.saturating_add(1)));
    match wait + tenth <= most {
        true => wait + part,
        false => wait.saturating_sub(part).max(least),
    }
}

#[cfg(test)]
mod tests;
