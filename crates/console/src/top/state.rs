//! What `top` knows and shows: the latest status, rates, what is chosen, what is typed. Pure: the
//! moment is passed in, in seconds.

use std::collections::{HashMap, HashSet, VecDeque};

use super::rows::{Key, Of, Row, Sort};
use crate::paint::Tone;
use crate::status::{Endpoint, Endpoints, Event, Pool, Status, total};

/// Rates are means over this time, in seconds.
const RATE_OVER_S: f64 = 3.0;
/// Recent shares are those of this time, in seconds.
pub(crate) const RECENT_S: f64 = 10.0;
/// Readings of one counter that are kept.
const MAX_READINGS: usize = 64;
/// Events that are kept.
const MAX_EVENTS: usize = 100;
/// Above this many endpoints pools begin folded.
const FOLD_ABOVE: usize = 100;

/// What the person is doing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Mode {
    /// Looks.
    Browse,
    /// Reads about the keys.
    Help,
    /// Types what rows must contain.
    Filter,
    /// Types a weight for this endpoint.
    Weight { pool: String, endpoint: String, text: String },
    /// Is asked whether this is meant.
    Confirm(Change),
}

/// Something to be set on an endpoint.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Change {
    pub(crate) pool: String,
    pub(crate) endpoint: String,
    /// JSON.
    pub(crate) body: String,
    /// `drain 10.0.0.4:8080`
    pub(crate) words: String,
    /// What follows from it.
    pub(crate) warning: String,
}

/// What arrives from the process that is looked at.
#[derive(Clone, Debug)]
pub(crate) enum Update {
    /// Where it was found.
    Found(String),
    /// How it is.
    Status(Box<Status>),
    /// What has happened.
    Events(Vec<Event>),
    /// Nobody answers, and why.
    Lost(String),
    /// What became of a change.
    Changed(Result<String, String>),
}

/// Readings of a counter.
#[derive(Clone, Default, Debug)]
pub(crate) struct Track {
    readings: VecDeque<(f64, u64)>,
}

impl Track {
    fn read(&mut self, now_s: f64, count: u64) {
        // A process that was started again counts from nothing.
        if self.readings.back().is_some_and(|(_, last)| count < *last) {
            self.readings.clear();
        }
        self.readings.push_back((now_s, count));
        let old = self.readings.iter().take_while(|(at, _)| *at < now_s - RECENT_S).count();
        let surplus = self.readings.len().saturating_sub(MAX_READINGS);
        self.readings.drain(..old.saturating_sub(1).max(surplus));
    }

    /// How much was counted in the last seconds, and in how many.
    fn since(&self, window_s: f64) -> Option<(u64, f64)> {
        let (now, last) = *self.readings.back()?;
        let (then, first) = *self.readings.iter().find(|(at, _)| *at >= now - window_s - 0.5)?;
        (now > then).then(|| (last - first, now - then))
    }

    pub(crate) fn per_second(&self) -> Option<f64> {
        self.since(RATE_OVER_S).map(|(count, seconds)| count as f64 / seconds)
    }

    pub(crate) fn recent(&self) -> u64 {
        self.since(RECENT_S).map_or(0, |(count, _)| count)
    }
}

/// What is counted of an endpoint.
#[derive(Clone, Default, Debug)]
pub(crate) struct EndpointTrack {
    pub(crate) hits: Track,
    pub(crate) failures: Track,
}

/// Everything.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) place: String,
    pub(crate) status: Option<Status>,
    pub(crate) lost: Option<(f64, String)>,
    pub(crate) events: VecDeque<Event>,
    /// The last line about what the person did, and its colour.
    pub(crate) message: Option<(Tone, String)>,
    pub(crate) mode: Mode,
    pub(crate) paused: bool,
    pub(crate) sort: Sort,
    pub(crate) reversed: bool,
    pub(crate) filter: String,
    /// Whether shares are those of the last seconds.
    pub(crate) recent: bool,
    pub(crate) chosen: Option<Key>,
    /// The first row on the screen.
    pub(crate) first_row: usize,
    /// Rows that the last drawing had room for.
    pub(crate) room: usize,
    folded: HashMap<String, bool>,
    pools: HashMap<String, Track>,
    endpoints: HashMap<(String, u32), EndpointTrack>,
    total: Track,
}

impl State {
    pub(crate) fn new() -> State {
        State {
            place: String::new(),
            status: None,
            lost: None,
            events: VecDeque::new(),
            message: None,
            mode: Mode::Browse,
            paused: false,
            sort: Sort::Configured,
            reversed: false,
            filter: String::new(),
            recent: false,
            chosen: None,
            first_row: 0,
            room: 20,
            folded: HashMap::new(),
            pools: HashMap::new(),
            endpoints: HashMap::new(),
            total: Track::default(),
        }
    }

    /// Takes in what has arrived.
    pub(crate) fn take(&mut self, update: Update, now_s: f64) {
        match update {
            Update::Found(place) => self.place = place,
            Update::Status(status) => {
                self.lost = None;
                if !self.paused {
                    self.take_status(*status, now_s);
                }
            }
            Update::Events(events) => {
                self.events.extend(events);
                let old = self.events.len().saturating_sub(MAX_EVENTS);
                self.events.drain(..old);
            }
            Update::Lost(why) => {
                let since = self.lost.as_ref().map_or(now_s, |(since, _)| *since);
                self.lost = Some((since, why));
            }
            Update::Changed(Ok(done)) => self.message = Some((Tone::Good, done)),
            Update::Changed(Err(why)) => self.message = Some((Tone::Bad, why)),
        }
    }

    fn take_status(&mut self, mut status: Status, now_s: f64) {
        self.keep_endpoints(&mut status);
        let all: u64 = status.listeners.iter().map(|listener| total(&listener.requests)).sum();
        self.total.read(now_s, all);
        let mut there = HashSet::new();
        for pool in &status.pools {
            let track = self.pools.entry(pool.name.clone()).or_default();
            track.read(now_s, total(&pool.requests));
            for endpoint in pool.listed().unwrap_or_default() {
                let key = (pool.name.clone(), endpoint.id);
                let track = self.endpoints.entry(key.clone()).or_default();
                track.hits.read(now_s, endpoint.hits);
                track.failures.read(now_s, endpoint.failures);
                there.insert(key);
            }
        }
        self.endpoints.retain(|key, _| there.contains(key));
        self.pools.retain(|name, _| status.pool(name).is_some());
        self.status = Some(status);
        self.keep_choice();
    }

    /// A pool whose endpoints were not asked for this time keeps those that are known, so that a
    /// screen that scrolls is not empty for a moment.
    fn keep_endpoints(&mut self, status: &mut Status) {
        let Some(before) = &mut self.status else { return };
        for pool in &mut status.pools {
            let old = before.pools.iter_mut().find(|old| old.name == pool.name);
            if let (Endpoints::Counted(counts), Some(old)) = (&pool.endpoints, old)
                && old.listed().is_some_and(|listed| listed.len() == counts.total)
            {
                pool.endpoints = std::mem::take(&mut old.endpoints);
            }
        }
    }

    /// The rows, in order.
    pub(crate) fn rows(&self) -> Vec<Row<'_>> {
        super::rows::all(self)
    }

    /// Whether a pool shows its endpoints.
    pub(crate) fn is_open(&self, pool: &Pool) -> bool {
        match self.folded.get(&pool.name) {
            Some(folded) => !folded,
            None => {
                let pools = self.status.as_ref().map_or(&[][..], |status| &status.pools);
                let all: usize = pools.iter().map(|pool| pool.counts().total).sum();
                all <= FOLD_ABOVE || pools.len() == 1
            }
        }
    }

    pub(crate) fn fold(&mut self, pool: &str, folded: bool) {
        self.folded.insert(pool.to_owned(), folded);
    }

    /// Folds or opens all pools.
    pub(crate) fn fold_all(&mut self) {
        let Some(status) = &self.status else { return };
        let any_open = status.pools.iter().any(|pool| self.is_open(pool));
        let names: Vec<String> = status.pools.iter().map(|pool| pool.name.clone()).collect();
        self.folded = names.into_iter().map(|name| (name, any_open)).collect();
    }

    /// The pools whose endpoints are on the screen.
    pub(crate) fn wanted(&self) -> Vec<String> {
        let rows = self.rows();
        let first = self.first_row.min(rows.len());
        let shown = &rows[first..rows.len().min(first + self.room)];
        let mut wanted: Vec<String> = Vec::new();
        for row in shown {
            let pool = row.pool();
            if self.is_open(pool) && wanted.last() != Some(&pool.name) {
                wanted.push(pool.name.clone());
            }
        }
        wanted
    }

    /// Requests a second that listeners answer.
    pub(crate) fn total_rate(&self) -> Option<f64> {
        self.total.per_second()
    }

    pub(crate) fn pool_rate(&self, pool: &str) -> Option<f64> {
        self.pools.get(pool).and_then(Track::per_second)
    }

    pub(crate) fn track(&self, pool: &Pool, endpoint: &Endpoint) -> Option<&EndpointTrack> {
        self.endpoints.get(&(pool.name.clone(), endpoint.id))
    }

    /// What an endpoint's bar shows: hits since the start, or of the last seconds.
    pub(crate) fn hits(&self, pool: &Pool, endpoint: &Endpoint) -> u64 {
        match self.recent {
            true => self.track(pool, endpoint).map_or(0, |track| track.hits.recent()),
            false => endpoint.hits,
        }
    }

    /// Moves the choice by so many rows.
    pub(crate) fn step(&mut self, rows: isize) {
        let keys: Vec<Key> = self.rows().iter().map(Row::key).collect();
        let at = self.chosen_row(&keys).unwrap_or(0);
        let to = at.saturating_add_signed(rows).min(keys.len().saturating_sub(1));
        self.chosen = keys.get(to).cloned();
        self.scroll_to(to);
    }

    fn chosen_row(&self, keys: &[Key]) -> Option<usize> {
        let chosen = self.chosen.as_ref()?;
        keys.iter().position(|key| key == chosen).or_else(|| {
            // An endpoint that is folded away, or gone: its pool.
            keys.iter().position(|key| key.pool == chosen.pool)
        })
    }

    /// After rows have come, gone or moved: the choice stays what it was, and on the screen.
    pub(crate) fn keep_choice(&mut self) {
        let keys: Vec<Key> = self.rows().iter().map(Row::key).collect();
        let at = self.chosen_row(&keys).unwrap_or(0);
        self.chosen = keys.get(at).cloned();
        self.scroll_to(at);
    }

    fn scroll_to(&mut self, row: usize) {
        let lowest = row.saturating_sub(self.room.saturating_sub(1));
        self.first_row = self.first_row.clamp(lowest, row);
    }

    /// The row that is chosen.
    pub(crate) fn chosen(&self) -> Option<Row<'_>> {
        let chosen = self.chosen.as_ref()?;
        let pool = self.status.as_ref()?.pool(&chosen.pool)?;
        match &chosen.of {
            Of::Pool => Some(Row::Pool(pool)),
            Of::Endpoint(id) => {
                let mut endpoints = pool.listed()?.iter();
                let found = endpoints.find(|endpoint| endpoint.id == *id);
                found.map(|found| Row::Endpoint(pool, found))
            }
            Of::Shadow(name) => {
                let mut shadows = pool.shadows.as_ref()?.algorithms.iter();
                let found = shadows.find(|shadow| shadow.name == *name);
                found.map(|found| Row::Shadow(pool, found))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_a_mean_and_begins_anew_with_the_process() {
        let mut track = Track::default();
        track.read(0.0, 100);
        assert_eq!(track.per_second(), None, "one reading is no rate");
        track.read(1.0, 200);
        track.read(2.0, 500);
        assert_eq!(track.per_second(), Some(200.0));
        (3..40).for_each(|second| track.read(f64::from(second), 500));
        assert_eq!((track.per_second(), track.recent()), (Some(0.0), 0));
        track.read(40.0, 3);
        assert_eq!(track.per_second(), None);
        assert!(track.readings.len() <= MAX_READINGS);
    }
}
