//! A shadow's decision, and what it learns from what the pool's algorithm does: the hot path.

use std::cell::Cell;
use std::sync::atomic::Ordering;

use subak_balance::{Completion, LoadView, PickRequest, Tickets};
use subak_base::{BitSet, Tick};

use super::{Shadow, Shadows};
use crate::acquire::Acquire;
use crate::compiled::Compiled;
use crate::pool::{Pool, View};

/// Endpoints that a shadow picks at the most until one could have taken the request.
const PICKS_MAX: usize = 16;

/// What the pool's algorithm has taken for this request: not there when it decided.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Taken {
    pub(crate) index: usize,
    /// What the dispatch was charged.
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
}

/// What a shadow would choose.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ShadowTrace {
    /// What it is called.
    pub name: String,
    /// The endpoint's place in the pool; none: it finds nobody.
    pub picked: Option<usize>,
    /// It has panicked, and is asked no more.
    pub is_stopped: bool,
}

impl Shadows {
    /// Lets every shadow decide on a request for which the pool's algorithm has decided.
    pub(crate) fn decide(&self, pool: &Pool, request: &Acquire<'_>, taken: Taken) {
        for (place, shadow) in self.all.iter().enumerate() {
            if shadow.is_stopped.load(Ordering::Relaxed) {
                continue;
            }
            shadow.guarded((), || {
                let asked = Asked { pool, request, place, taken: Some(taken) };
                let picked = shadow.pick(&asked, &shadow.ledger.tickets);
                shadow.count(picked, taken.index);
            });
        }
    }

    /// A request was dispatched there, whoever decided that.
    pub(crate) fn dispatched(&self, index: usize, now: Tick) {
        for shadow in self.running().filter(|shadow| shadow.wants.cells) {
            shadow.guarded((), || {
                let compiled = shadow.compiled.load();
                let account = &shadow.places[index].account;
                account.change(|cell| compiled.balancer.on_dispatch(cell, now));
            });
        }
    }

    /// And is completed, or has failed.
    pub(crate) fn completed(&self, pool: &Pool, index: usize, completion: &Completion) {
        for shadow in self.running().filter(|shadow| shadow.wants.cells) {
            shadow.guarded((), || {
                let compiled = shadow.compiled.load();
                let view = shadow.view(pool, None);
                let balancer = &compiled.balancer;
                let account = &shadow.places[index].account;
                account.change(|cell| balancer.on_complete(cell, index, completion, &view));
            });
        }
    }

    /// What each would choose, without anything being drawn or counted.
    pub(crate) fn explain(&self, pool: &Pool, request: &Acquire<'_>) -> Vec<ShadowTrace> {
        let trace = |(place, shadow): (usize, &Shadow)| {
            let look = || {
                let next = shadow.ledger.tickets.drawn();
                let asked = Asked { pool, request, place, taken: None };
                shadow.pick(&asked, &Ahead(Cell::new(next)))
            };
            let is_stopped = || shadow.is_stopped.load(Ordering::Relaxed);
            let picked = if is_stopped() { None } else { shadow.guarded(None, look) };
            ShadowTrace { name: shadow.spec.name.to_string(), picked, is_stopped: is_stopped() }
        };
        self.all.iter().enumerate().map(trace).collect()
    }
}

/// One question to a shadow.
struct Asked<'a> {
    pool: &'a Pool,
    request: &'a Acquire<'a>,
    /// The shadow's among the shadows.
    place: usize,
    taken: Option<Taken>,
}

impl Asked<'_> {
    /// Whether the endpoint could take the request now.
    fn could_take(&self, compiled: &Compiled, index: usize) -> bool {
        let member = self.pool.member(index);
        let own = u32::from(self.taken.is_some_and(|taken| taken.index == index));
        let in_flight = member.endpoint.in_flight().saturating_sub(own);
        !self.pool.is_left_out(compiled, index, self.request.now)
            && in_flight < member.cap.load(Ordering::Relaxed)
    }
}

impl Shadow {
    /// Its decision: the first that it picks and that could take the request.
    fn pick(&self, asked: &Asked<'_>, tickets: &dyn Tickets) -> Option<usize> {
        let compiled = self.compiled.load();
        let view = self.view(asked.pool, asked.taken);
        let request = asked.request;
        let question = PickRequest {
            tickets,
            random: request.random,
            now: request.now,
            key: request.shadow_keys.key(asked.place, request.key),
            eligible: &compiled.outlook.eligible,
            tried: &BitSet::EMPTY,
        };
        let first = compiled.balancer.pick(&view, &question)?;
        match asked.could_take(&compiled, first) {
            true => Some(first),
            false => pick_other(asked, &compiled, &view, question, first),
        }
    }

    fn count(&self, picked: Option<usize>, taken: usize) {
        let counts = &self.ledger.counts;
        counts.decisions.fetch_add(1, Ordering::Relaxed);
        self.places[taken].account.taken.fetch_add(1, Ordering::Relaxed);
        match picked {
            Some(index) => {
                self.places[index].account.hits.fetch_add(1, Ordering::Relaxed);
                if index == taken {
                    counts.agreements.fetch_add(1, Ordering::Relaxed);
                }
            }
            None => {
                counts.refusals.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// The load as this shadow sees it.
    pub(super) fn view<'a>(&'a self, pool: &'a Pool, taken: Option<Taken>) -> Beside<'a> {
        Beside { pool: View(pool), shadow: self, taken }
    }
}

/// The same after the first could not have taken the request.
#[cold]
fn pick_other(
    asked: &Asked<'_>,
    compiled: &Compiled,
    view: &Beside<'_>,
    question: PickRequest<'_>,
    first: usize,
) -> Option<usize> {
    let mut excluded = BitSet::EMPTY;
    excluded.insert(first);
    for _ in 1..PICKS_MAX {
        let question = PickRequest { tried: &excluded, ..question };
        let index = compiled.balancer.pick(view, &question)?;
        if asked.could_take(compiled, index) {
            return Some(index);
        }
        excluded.insert(index);
    }
    None
}

/// The pool's load as it was before the request was dispatched, with what the shadow keeps itself.
pub(super) struct Beside<'a> {
    pool: View<'a>,
    shadow: &'a Shadow,
    taken: Option<Taken>,
}

impl Beside<'_> {
    #[inline]
    fn less(&self, index: usize, of: impl Fn(&Taken) -> u64) -> u64 {
        self.taken.as_ref().filter(|taken| taken.index == index).map_or(0, of)
    }
}

impl LoadView for Beside<'_> {
    #[inline]
    fn in_flight(&self, index: usize) -> u32 {
        self.pool.in_flight(index).saturating_sub(self.less(index, |_| 1) as u32)
    }

    #[inline]
    fn cell(&self, index: usize) -> u64 {
        self.shadow.places[index].account.cell()
    }

    #[inline]
    fn packets(&self, index: usize) -> u64 {
        self.pool.packets(index).saturating_sub(self.less(index, |taken| taken.packets))
    }

    #[inline]
    fn bytes(&self, index: usize) -> u64 {
        self.pool.bytes(index).saturating_sub(self.less(index, |taken| taken.bytes))
    }

    #[inline]
    fn ramp(&self, index: usize) -> u16 {
        self.shadow.places[index].ramp.load(Ordering::Relaxed)
    }

    #[inline]
    fn summary(&self) -> u64 {
        self.shadow.summary.load(Ordering::Relaxed)
    }
}

/// Tickets as if they were drawn, one after the other.
struct Ahead(Cell<u64>);

impl Tickets for Ahead {
    fn draw(&self) -> u64 {
        let next = self.0.get();
        self.0.set(next.wrapping_add(1));
        next
    }
}
