//! What has happened lately: states that changed, reloads, what operators did, problems. For who looks
//! on; the log has it all, and for longer.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use subak_admin::Happened;
use subak_health::{Because, State};
use subak_pool::Event;
use subak_telemetry::{Problem, Problems};

/// Events that are kept.
const KEPT: usize = 1000;

/// The latest events; clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Events(Arc<Mutex<Ring>>);

#[derive(Debug, Default)]
struct Ring {
    /// How many there were so far.
    count: u64,
    kept: VecDeque<Happened>,
    /// The problems that were told.
    problems: Vec<Problem>,
}

impl Events {
    /// Says in the log and here what has happened to a pool.
    pub(crate) fn of_pool(&self, pool: &str, event: &Event) {
        let level = match is_bad_news(event) {
            true => {
                tracing::warn!(pool, "{event}");
                "warn"
            }
            false => {
                tracing::info!(pool, "{event}");
                "info"
            }
        };
        let endpoint = match event {
            Event::Endpoint { name, .. } | Event::Reason { name, .. } => Some(name.to_string()),
            Event::Selection { .. } => None,
        };
        self.keep(level, Some(pool), endpoint, event.to_string());
    }

    /// Says it of one endpoint.
    pub(crate) fn of_endpoint(&self, pool: &str, endpoint: &str, text: String) {
        tracing::info!(pool, endpoint, "{text}");
        self.keep("info", Some(pool), Some(endpoint.to_owned()), text);
    }

    /// Keeps what the log is told elsewhere.
    pub(crate) fn keep(
        &self,
        level: &'static str,
        pool: Option<&str>,
        endpoint: Option<String>,
        text: String,
    ) {
        let mut ring = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        ring.push(level, pool, endpoint, text);
    }

    /// Tells of problems that have begun or ended since the last time. The log has them already.
    pub(crate) fn follow(&self, problems: &Problems) {
        let now = problems.list();
        let mut ring = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_same = |one: &Problem, other: &Problem| {
            one.kind == other.kind && one.what == other.what && one.since == other.since
        };
        let before = std::mem::take(&mut ring.problems);
        for ended in before.iter().filter(|old| !now.iter().any(|new| is_same(old, new))) {
            let text = format!("no problem any more: {} {}", ended.kind.name(), ended.what);
            ring.push("info", None, None, text);
        }
        for begun in now.iter().filter(|new| !before.iter().any(|old| is_same(old, new))) {
            let text = format!("problem: {} {}: {}", begun.kind.name(), begun.what, begun.detail);
            ring.push("warn", None, None, text);
        }
        ring.problems = now;
    }

    /// Those after this number, and the number of the last.
    pub(crate) fn after(&self, number: u64) -> (u64, Vec<Happened>) {
        let ring = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let after = ring.kept.iter().filter(|event| event.number > number).cloned().collect();
        (ring.count, after)
    }
}

impl Ring {
    fn push(
        &mut self,
        level: &'static str,
        pool: Option<&str>,
        endpoint: Option<String>,
        text: String,
    ) {
        self.count += 1;
        let (number, pool) = (self.count, pool.map(str::to_owned));
        let at = SystemTime::now();
        self.kept.push_back(Happened { number, at, level, listener: None, pool, endpoint, text });
        if self.kept.len() > KEPT {
            self.kept.pop_front();
        }
    }
}

/// Whether somebody might have to do something.
fn is_bad_news(event: &Event) -> bool {
    match event {
        Event::Endpoint { transition, .. } => {
            matches!(transition.to, State::Down | State::BackOff)
        }
        Event::Reason { state, .. } => *state == State::Down,
        Event::Selection { to, .. } => !matches!(to, Because::PrimariesReady),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use subak_telemetry::ProblemKind;

    #[test]
    fn the_latest_events_are_kept_and_numbered() {
        let events = Events::default();
        for number in 1..=KEPT + 5 {
            events.keep("info", Some("app"), None, format!("event {number}"));
        }
        let (last, kept) = events.after(0);
        assert_eq!((last, kept.len()), (1005, KEPT));
        assert_eq!((kept[0].number, &*kept[0].text), (6, "event 6"));
        let (_, new) = events.after(1004);
        assert_eq!(new.len(), 1);
        assert!(events.after(1005).1.is_empty() && events.after(u64::MAX).1.is_empty());
    }

    #[test]
    fn a_problem_is_told_when_it_begins_and_when_it_ends() {
        let (events, problems) = (Events::default(), Problems::default());
        problems.begin(ProblemKind::Config, "subak.toml", "put it right".into());
        events.follow(&problems);
        events.follow(&problems);
        problems.end(ProblemKind::Config, "subak.toml");
        events.follow(&problems);
        let texts: Vec<String> = events.after(0).1.into_iter().map(|event| event.text).collect();
        let expected =
            ["problem: config subak.toml: put it right", "no problem any more: config subak.toml"];
        assert_eq!(texts, expected);
    }
}
