//! Where would a request go, and why? Goes the way of [`Pool::acquire`] without touching anything: no
//! ticket is drawn, no slot taken, no client remembered, nothing written down.
//!
//! So the answer holds for the next request that is like this one and draws the same random word, as
//! long as no other comes first. Off the hot path: O(n) and more, allocates.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use subak_balance::{PickRequest, Score, Tickets};
use subak_base::{BitSet, Tick, Weight};
use subak_health::{Because, Reason, State, Tier};

use crate::acquire::{Acquire, Asked, Hand, Refusal, Way};
use crate::compiled::Compiled;
use crate::endpoint::NO_CAP;
use crate::pick_log::PickedBy;
use crate::pool::{Pool, View};
use crate::shadow::ShadowTrace;
use crate::stick_table::StickTable;

/// A pick that did not happen.
#[derive(Clone, PartialEq, Debug)]
pub struct PickTrace {
    /// The pool's generation.
    pub generation: u64,
    /// The version of the balancer in that generation.
    pub version: u64,
    /// The rule by which endpoints are eligible.
    pub because: Because,
    /// Requests that stand in line before it.
    pub waiting: usize,
    /// The endpoint and who decides on it, or why there is none.
    pub given: Result<(usize, PickedBy), Refusal>,
    /// The ticket that was looked at, where the algorithm draws one.
    pub ticket: Option<u64>,
    /// Endpoints that were picked first and could not take it, in order.
    pub passed: Vec<usize>,
    /// Where the client belongs, if it does.
    pub home: Option<Home>,
    /// All endpoints, in configured order.
    pub candidates: Vec<Candidate>,
    /// What the pool's shadows would choose; empty where the algorithm does not decide.
    pub shadows: Vec<ShadowTrace>,
}

/// The endpoint that a sticky client belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Home {
    /// Its place in the pool.
    pub index: usize,
    /// Whether the client says so itself, by a cookie; else the pool's table does.
    pub by_cookie: bool,
    /// Whether the client may stay.
    pub stays: bool,
}

/// One endpoint, as a pick sees it.
#[derive(Clone, PartialEq, Debug)]
pub struct Candidate {
    /// As it is written.
    pub name: String,
    /// In force.
    pub weight: Weight,
    /// Whether it is a backup.
    pub is_backup: bool,
    /// Requests under way.
    pub in_flight: u32,
    /// Of which there may be so many.
    pub max_in_flight: Option<u32>,
    /// What the algorithm compares; none where it does not look at it.
    pub score: Option<Score>,
    /// How much of its share it takes after it came back, in 1/1024, where that thins keys.
    pub ramp: u16,
    /// Why it cannot be picked; none: it can.
    pub excluded: Option<Exclusion>,
}

/// Why an endpoint cannot be picked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Exclusion {
    /// The request has been there.
    Tried,
    /// It is not ready.
    State {
        /// What it is.
        state: State,
        /// Why.
        reason: Reason,
    },
    /// It refused or timed out a moment ago.
    BackOff {
        /// Until then.
        until: Tick,
        /// Why, where more is known than that.
        why: Option<Arc<str>>,
    },
    /// Its weight in force is 0.
    NoWeight,
    /// A backup, and a primary can do it.
    NotNeeded,
    /// It has as many requests under way as it may have.
    Full,
    /// It can be picked again in a moment, when the balancer has been compiled anew.
    NotYet,
}

impl Pool {
    /// Where this request would go, and why.
    pub fn explain(&self, request: &Acquire<'_>, tried: &BitSet) -> PickTrace {
        let compiled = self.compiled.load_full();
        let looker = Looker::new(self);
        let given = self.give(&looker, &compiled, request, tried);
        let ticket = looker.ticket.get();
        let still = Still(ticket.unwrap_or(looker.next));
        let passed = looker.passed.into_inner();
        // Who was picked and could not take it was compared with all, the others without those.
        let mut excluded = tried.clone();
        passed.iter().for_each(|index| excluded.insert(*index));
        let score = |index: usize| {
            let tried = if passed.contains(&index) { tried } else { &excluded };
            let asked = self.ask(&compiled, request, tried);
            let asked = PickRequest { tickets: &still, ..asked };
            compiled.balancer.score(&View(self), &asked, index)
        };
        let exclusions = self.exclusions(&compiled, request.now, tried);
        let candidates = exclusions.into_iter().enumerate().map(|(index, excluded)| {
            let (member, spec) = (&self.members[index], &self.spec.endpoints[index]);
            let cap = member.cap.load(Ordering::Relaxed);
            Candidate {
                name: spec.name.clone(),
                weight: compiled.outlook.weights[index],
                is_backup: spec.backup,
                in_flight: member.endpoint.in_flight(),
                max_in_flight: (cap != NO_CAP).then_some(cap),
                score: score(index),
                ramp: member.ramp.load(Ordering::Relaxed),
                excluded,
            }
        });
        PickTrace {
            generation: self.generation,
            version: compiled.version,
            because: compiled.outlook.because,
            waiting: self.queue().waiting(),
            given,
            ticket,
            home: self.home(&compiled, request),
            candidates: candidates.collect(),
            shadows: match (&self.shadows, given) {
                (Some(shadows), Ok((_, PickedBy::Balancer))) => shadows.explain(self, request),
                _ => Vec::new(),
            },
            passed,
        }
    }

    /// Why each endpoint cannot be picked.
    fn exclusions(&self, compiled: &Compiled, now: Tick, tried: &BitSet) -> Vec<Option<Exclusion>> {
        let control = self.continuing.control();
        let exclusion = |index: usize| {
            let (member, spec) = (&self.members[index], &self.spec.endpoints[index]);
            let endpoint = &member.endpoint;
            let is_eligible = compiled.outlook.eligible.contains(index);
            let state = endpoint.state();
            if tried.contains(index) {
                return Some(Exclusion::Tried);
            }
            if state != State::Ready && (!is_eligible || self.is_left_out(compiled, index, now)) {
                let standing = control.standing(endpoint.id());
                let reason = standing.map_or(Reason::Nothing, |standing| {
                    standing.availability.verdict().reason.clone()
                });
                return Some(Exclusion::State { state, reason });
            }
            if endpoint.is_backing_off(now) {
                let (until, why) = (endpoint.back_off.until(), endpoint.back_off.why());
                return Some(Exclusion::BackOff { until, why });
            }
            if compiled.outlook.weights[index] == Weight::ZERO {
                return Some(Exclusion::NoWeight);
            }
            let is_backup = spec.tier() == Tier::Backup;
            match is_eligible {
                false if is_backup && compiled.outlook.because == Because::PrimariesReady => {
                    Some(Exclusion::NotNeeded)
                }
                false => Some(Exclusion::NotYet),
                true => is_full(self, index).then_some(Exclusion::Full),
            }
        };
        (0..self.members.len()).map(exclusion).collect()
    }

    fn home(&self, compiled: &Compiled, request: &Acquire<'_>) -> Option<Home> {
        let by_cookie = request.stick.filter(|index| *index < self.members.len());
        let by_table = || {
            let (client, table) = request.client.zip(self.table.as_ref())?;
            self.stick(table.look_up(client, request.now)?)
        };
        let index = by_cookie.or_else(by_table)?;
        let stays = self.may_stay_by(compiled, index, request.now);
        Some(Home { index, by_cookie: by_cookie.is_some(), stays })
    }
}

fn is_full(pool: &Pool, index: usize) -> bool {
    let member = pool.member(index);
    member.endpoint.in_flight() >= member.cap.load(Ordering::Relaxed)
}

/// Goes the way and takes nothing.
struct Looker<'p> {
    pool: &'p Pool,
    /// The ticket that the next request draws.
    next: u64,
    /// The one that the last pick looked at.
    ticket: Cell<Option<u64>>,
    /// Who has decided last.
    by: Cell<PickedBy>,
    passed: RefCell<Vec<usize>>,
}

impl<'p> Looker<'p> {
    fn new(pool: &'p Pool) -> Looker<'p> {
        Looker {
            pool,
            next: pool.continuing.tickets.drawn(),
            ticket: Cell::new(None),
            by: Cell::new(PickedBy::Balancer),
            passed: RefCell::default(),
        }
    }
}

/// Tickets as if they were drawn, one after the other.
impl Tickets for Looker<'_> {
    fn draw(&self) -> u64 {
        let ticket = self.ticket.get().map_or(self.next, |last| last.wrapping_add(1));
        self.ticket.set(Some(ticket));
        ticket
    }
}

impl Hand for Looker<'_> {
    type Given = (usize, PickedBy);

    fn pick(&self, asked: &Asked<'_>, excluded: &BitSet) -> (Option<usize>, u64) {
        let request = self.pool.ask(asked.compiled, asked.request, excluded);
        let request = PickRequest { tickets: self, ..request };
        let picked = asked.compiled.balancer.pick(&View(self.pool), &request);
        self.by.set(PickedBy::Balancer);
        // Until it is taken.
        self.passed.borrow_mut().extend(picked);
        (picked, 0)
    }

    fn take(&self, index: usize, _: Tick, _: u64, _: Way) -> Option<(usize, PickedBy)> {
        if is_full(self.pool, index) {
            return None;
        }
        self.passed.borrow_mut().pop_if(|last| *last == index);
        Some((index, self.by.get()))
    }

    fn note(&self, by: PickedBy, index: usize, _: &Asked<'_>) -> u64 {
        self.by.set(by);
        self.passed.borrow_mut().push(index);
        0
    }

    fn note_last_resort(&self, given: &mut (usize, PickedBy), _: usize, _: &Asked<'_>) {
        given.1 = PickedBy::LastResort;
    }

    fn find(&self, table: &StickTable, client: u64, now: Tick) -> Option<u64> {
        table.look_up(client, now)
    }

    fn put(&self, _: &StickTable, _: u64, _: &(usize, PickedBy), _: Tick) {}
}

/// Always the same ticket.
struct Still(u64);

impl Tickets for Still {
    fn draw(&self) -> u64 {
        self.0
    }
}
