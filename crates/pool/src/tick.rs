//! The control side's work on a pool: the clock, questions and answers, what people set.
//!
//! Nothing here is called for a request, but for two: a failure that ejects its endpoint, and a
//! change of the back-offs, after which a balancer is compiled at once (at most about ten times a
//! second; until then picks skip over who is left out). What people set is in force when the call
//! that set it returns, however often that is.
//!
//! Locks, in this order: whoever compiles, then the control side's knowledge. The second is held for
//! O(n) at most, some 100 ns an endpoint, never while a balancer is compiled.

use std::error::Error;
use std::fmt;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError, TryLockError};
use std::time::Duration;

use subak_balance::weights::Factor;
use subak_base::{BitSet, Rng, Tick, Weight};
use subak_health::{Admin, AgentReply, ProbeResult, Reason, Run, Sample, State};

use crate::control::Control;
use crate::eligibility::{Facts, Outlook};
use crate::event::Event;
use crate::pool::{Pool, View, publish_ramps, welcome_newcomers};
use crate::standing::{Question, Standing};

/// A balancer is compiled at most this often, but for what people set. A little less than a tick of
/// the control side, so that one that comes a moment early is not for nothing.
const COMPILE_PAUSE: Duration = Duration::from_millis(95);

/// A question that is to be asked now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Due {
    /// Of the endpoint at this place in the pool.
    pub index: usize,
    /// In which way.
    pub question: Question,
    /// To be given back with the answer.
    pub run: Run,
}

/// The pool has no endpoint of this name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UnknownEndpoint;

impl fmt::Display for UnknownEndpoint {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("the pool has no endpoint of this name, address or identity")
    }
}

impl Error for UnknownEndpoint {}

impl Pool {
    /// Looks at the clock and at what requests have counted: ejects and takes back, ends back-offs,
    /// moves slow starts on, summarises, and compiles what has changed. To be called about ten times a
    /// second, and at once when the pool comes in force, for then it takes over from the one before.
    /// Answers what has happened since the last time.
    pub fn tick(&self, now: Tick, random: u64) -> Vec<Event> {
        let mut random = Rng::new(random);
        let mut control = self.continuing.control();
        control.adopt(self, now, &mut random);
        for (index, member) in self.members.iter().enumerate() {
            let change = control.standings[index].look(member.endpoint.back_off.fault(), now);
            let event = control.changed(index, change);
            event.into_iter().for_each(|event| control.keep(event));
        }
        self.judge(&mut control, now);
        drop(control);
        let learnt = self.members.iter().filter_map(|member| member.learnt.as_ref());
        learnt.flat_map(|learnt| learnt.traffics()).for_each(|traffic| traffic.expire(now));
        if self.wants.summary {
            let summary = self.compiled.load().balancer.summarise(&View(self), now);
            self.summary.store(summary, Ordering::Relaxed);
        }
        self.refresh(now);
        self.refresh_shadows(now);
        std::mem::take(&mut self.continuing.control().events)
    }

    /// Ejects by what was counted.
    fn judge(&self, control: &mut Control, now: Tick) {
        let mut samples: Vec<Sample> =
            self.members.iter().map(|member| member.endpoint.sample()).collect();
        control.suspects.observe(&samples, self.spec.eject.as_ref(), now);
        let Some(mut ejections) = control.ejections.take() else { return };
        for (index, sample) in samples.iter_mut().enumerate() {
            self.doubt(control, index, sample, now);
        }
        ejections.consider(&self.considered(control), now, &mut control.changes);
        ejections.observe(&samples, now, &mut control.changes);
        control.ejections = Some(ejections);
        control.apply_ejections(now);
    }

    /// Who would take work if it were not ejected.
    fn considered(&self, control: &Control) -> BitSet {
        let would_work = |index: &usize| {
            let standing = &control.standings[*index];
            let verdict = standing.availability.verdict();
            let is_only_ejected = matches!(verdict.reason, Reason::Ejected { .. })
                && standing.availability.layers().admin().0 == Admin::Ready;
            let configured = self.spec.endpoints[*index].weight;
            let has_weight = standing.weights(configured, false).base() > Weight::ZERO;
            has_weight && (verdict.state == State::Ready || is_only_ejected)
        };
        (0..self.members.len()).filter(would_work).collect()
    }

    /// The questions that are due, begun now: each is to be answered by [`Pool::probed`] or
    /// [`Pool::agent_answered`], in time or later.
    pub fn due(&self, now: Tick) -> Vec<Due> {
        let mut control = self.continuing.control();
        let mut due = Vec::new();
        if !control.is_of(self) {
            return due;
        }
        let Control { standings, dues, questions, .. } = &mut *control;
        for (index, (standing, next)) in standings.iter_mut().zip(dues).enumerate() {
            if *next <= now {
                standing
                    .ask(questions, now, |question, run| due.push(Due { index, question, run }));
                *next = standing.next_due();
            }
        }
        due
    }

    /// The moment of the next question; none when nobody is asked.
    pub fn next_due(&self) -> Option<Tick> {
        let control = self.continuing.control();
        if !control.is_of(self) {
            return None;
        }
        control.dues.iter().copied().min().filter(|next| *next < Tick(u64::MAX))
    }

    /// Takes the result of a probe in. One that comes after its question was given up is ignored.
    pub fn probed(
        &self,
        index: usize,
        run: Run,
        result: ProbeResult,
        now: Tick,
        random: u64,
    ) -> Option<Event> {
        let mut control = self.continuing.control();
        let place = control.place(self, index)?;
        let Control { standings, questions, tally, .. } = &mut *control;
        tally.probed(&result);
        let (came_up, change) = standings[place].probed(questions, run, result, now, random);
        if came_up {
            self.members[index].endpoint.back_off.clear();
        }
        let event = control.changed(place, change)?;
        drop(control);
        self.refresh(now);
        Some(event)
    }

    /// Takes an agent's answer in, or that there was none.
    pub fn agent_answered(
        &self,
        index: usize,
        run: Run,
        reply: Option<&AgentReply>,
        now: Tick,
        random: u64,
    ) -> Option<Event> {
        let mut control = self.continuing.control();
        let place = control.place(self, index)?;
        let Control { standings, questions, tally, .. } = &mut *control;
        tally.agent_answered(reply.is_some());
        let before = standings[place].availability.verdict().reason.clone();
        let (is_news, change) = standings[place].agent_answered(questions, run, reply, now, random);
        let event = control.changed(place, change).or_else(|| control.agent_argues(place, &before));
        let cap = control.standings[place].cap(&self.spec.endpoints[index]);
        self.members[index].cap.store(cap, Ordering::Relaxed);
        drop(control);
        if is_news {
            self.refresh(now);
        }
        event
    }

    /// Sets what is wanted of an endpoint, which is found by name, address or identity; none takes back
    /// what was set before. Holds over reloads until the endpoint leaves the configuration. Who is set
    /// ready is ejected no longer.
    ///
    /// # Errors
    /// When there is no such endpoint.
    pub fn set_admin(
        &self,
        endpoint: &str,
        wanted: Option<Admin>,
        now: Tick,
        random: u64,
    ) -> Result<Option<Event>, UnknownEndpoint> {
        let index = self.find(endpoint).ok_or(UnknownEndpoint)?;
        let mut control = self.continuing.control();
        let place = control.place(self, index).ok_or(UnknownEndpoint)?;
        let lifted = match wanted {
            Some(Admin::Ready) => control.lift(place, now),
            _ => None,
        };
        let Control { standings, questions, .. } = &mut *control;
        let change = standings[place].set_admin(wanted, questions, now, random);
        let event = match (lifted, control.changed(place, change)) {
            (Some(first), Some(last)) => {
                control.keep(first);
                Some(last)
            }
            (first, last) => first.or(last),
        };
        drop(control);
        self.refresh_at_once(now);
        Ok(event)
    }

    /// Sets an endpoint's weight; none goes back to the configured one. Nothing that was observed is
    /// reset by that.
    ///
    /// # Errors
    /// When there is no such endpoint.
    pub fn set_weight(
        &self,
        endpoint: &str,
        weight: Option<Weight>,
        now: Tick,
    ) -> Result<(), UnknownEndpoint> {
        let index = self.find(endpoint).ok_or(UnknownEndpoint)?;
        let mut control = self.continuing.control();
        let place = control.place(self, index).ok_or(UnknownEndpoint)?;
        control.standings[place].operator = weight;
        drop(control);
        self.refresh_at_once(now);
        Ok(())
    }

    /// Sets what the weigher makes of endpoints' reports, by their places in the pool.
    pub fn set_factors(&self, factors: &[(usize, Factor)], now: Tick) {
        let mut control = self.continuing.control();
        for (index, factor) in factors {
            if let Some(place) = control.place(self, *index) {
                control.standings[place].weigher = *factor;
            }
        }
        drop(control);
        self.refresh(now);
    }

    /// The place of an endpoint by name as it is written, address or identity.
    pub fn find(&self, endpoint: &str) -> Option<usize> {
        let mut specs = self.spec.endpoints.iter();
        let by_name = specs.position(|spec| spec.name == endpoint);
        by_name.or_else(|| {
            self.members.iter().position(|member| {
                let identity = member.endpoint.identity();
                identity == endpoint || member.endpoint.address().to_string() == endpoint
            })
        })
    }

    /// Compiles the balancer anew if anything has changed; at most about ten times a second. Called at
    /// every failure too, by whatever worker it happens on.
    pub(crate) fn refresh(&self, now: Tick) {
        let mut last = match self.compiling.try_lock() {
            Ok(last) => last,
            Err(TryLockError::Poisoned(poisoned)) => PoisonError::into_inner(poisoned),
            // Whoever holds the lock is doing just this.
            Err(TryLockError::WouldBlock) => return,
        };
        if now.since(*last) >= COMPILE_PAUSE {
            self.compile(&mut last, now);
        }
    }

    /// The same, now, after whoever is compiling: for what people set, who are told what came of it.
    fn refresh_at_once(&self, now: Tick) {
        let mut last = self.compiling.lock().unwrap_or_else(PoisonError::into_inner);
        self.compile(&mut last, now);
        drop(last);
        self.refresh_shadows(now);
    }

    /// Lets the shadows see what has changed. Never called by a worker.
    fn refresh_shadows(&self, now: Tick) {
        if let Some(shadows) = &self.shadows {
            shadows.refresh(self, now, |takes_changing| self.facts(now, takes_changing));
        }
    }

    /// Compiles the balancer anew if anything has changed; the caller holds the lock, with the moment
    /// of the last time.
    fn compile(&self, last: &mut Tick, now: Tick) {
        let takes_changing = self.spec.algorithm.takes_changing_weights();
        let Some(facts) = self.facts(now, takes_changing) else { return };
        let before = self.compiled.load();
        let outlook = Outlook::of(&facts, self.spec.on_all_down, &self.spec.algorithm.traits());
        if outlook == before.outlook {
            return;
        }
        *last = now;
        let Pool { spec, members, .. } = self;
        let ticket = self.continuing.tickets.drawn();
        let next = before.next(&spec.algorithm, &spec.endpoints, outlook, ticket);
        publish_ramps(members, &next.outlook);
        let joins = |index: usize| !before.outlook.eligible.contains(index);
        welcome_newcomers(members, &next.outlook, joins, now);
        let (from, to) = (before.outlook.because, next.outlook.because);
        self.compiled.store(Arc::new(next));
        if from != to {
            self.continuing.control().keep(Event::Selection { from, to, at: now });
        }
        // Those at the head of the line may have somewhere to go now.
        self.queue().notify();
    }

    /// What is known of the endpoints, with weights that change all the time or without; none when
    /// another generation has taken over.
    fn facts(&self, now: Tick, takes_changing: bool) -> Option<Vec<Facts>> {
        let control = self.continuing.control();
        if !control.is_of(self) {
            return None;
        }
        let fact = |(index, standing): (usize, &Standing)| {
            let (spec, member) = (&self.spec.endpoints[index], &self.members[index]);
            member.cap.store(standing.cap(spec), Ordering::Relaxed);
            Facts {
                tier: spec.tier(),
                state: standing.work_state(),
                is_backing_off: member.endpoint.is_backing_off(now),
                weights: standing.weights(spec.weight, takes_changing),
                ramp: standing.ramp(self.spec.slow_start.as_ref(), now),
            }
        };
        Some(control.standings.iter().enumerate().map(fact).collect())
    }
}
