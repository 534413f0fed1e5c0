//! The control side: the pools' own rhythm, probes and their answers, and what goes wrong with
//! endpoints.

use std::time::Duration;

use subak_base::Tick;
use subak_health::{ProbeFailure, ProbeResult, Run, StatusSet};
use subak_pool::{Event as Told, Question};

use super::Engine;
use crate::agenda::{Coming, NEVER};
use crate::condition::Condition;
use crate::draw::{happens, scaled};
use crate::event::{Observer, Why};
use crate::histogram::nanos;
use crate::outcome::PoolEvent;
use crate::scenario::Scenario;

/// From one look of a pool at the clock to the next.
const TICK: Duration = Duration::from_millis(100);

/// Told events that are kept: an endpoint that flaps for years is heard of often enough.
const EVENTS_MAX: usize = 10_000;

/// A probe under way.
#[derive(Clone, Debug)]
pub(super) struct Probe {
    balancer: usize,
    endpoint: usize,
    run: Run,
    result: ProbeResult,
}

/// Whether pools have anything to look at the clock for. Without it every look finds the same.
pub(super) fn is_needed(scenario: &Scenario) -> bool {
    let pool = &scenario.pool;
    let wants = pool.algorithm.traits().wants;
    let fails = !scenario.faults.is_empty() || scenario.patience.answer.is_some();
    let is_watched = pool.probe.is_some() || pool.eject.is_some() || pool.slow_start.is_some();
    wants.summary || wants.packets || wants.bytes || fails || is_watched
}

impl<O: Observer> Engine<'_, '_, O> {
    /// The pools begin, and so do faults.
    pub(super) fn come_in_force(&mut self) {
        for balancer in 0..self.fronts.len() {
            self.tick_one(balancer);
        }
        self.ticks = self.fronts.len() as u64;
        self.plan_rest();
    }

    pub(super) fn next_tick(&self) -> u64 {
        match self.has_ticks {
            true => nanos(TICK) / self.fronts.len() as u64 * self.ticks,
            false => NEVER,
        }
    }

    /// The next balancer's turn.
    pub(super) fn tick(&mut self) {
        let balancer = (self.ticks % self.fronts.len() as u64) as usize;
        self.ticks += 1;
        self.tick_one(balancer);
    }

    fn tick_one(&mut self, balancer: usize) {
        let now = Tick(self.now);
        let pool = self.fronts[balancer].pool;
        let told = pool.tick(now, self.random.control.next_u64());
        told.iter().for_each(|event| self.told(balancer, event));
        if pool.spec().probe.is_some() {
            for due in pool.due(now) {
                if due.question == Question::Probe {
                    self.probe(balancer, due.index, due.run);
                }
            }
        }
        self.fronts[balancer].has_news = true;
        self.has_news |= self.fronts[balancer].waiting > 0;
    }

    /// Asks an endpoint how it is.
    fn probe(&mut self, balancer: usize, endpoint: usize, run: Run) {
        let server = &self.servers[endpoint];
        let limit = run.deadline().since(run.started());
        let Condition { is_dead, is_silent, slow_per_mille, .. } = server.condition;
        let time = scaled(nanos(server.model.probe), slow_per_mille);
        let (time, result) = if is_dead {
            (0, ProbeResult::Failed(ProbeFailure::Refused))
        } else if is_silent {
            (nanos(limit), ProbeResult::Failed(ProbeFailure::FirstByteTimeout(limit)))
        } else if time > nanos(limit) {
            (nanos(limit), ProbeResult::Failed(ProbeFailure::AnswerTimeout(limit)))
        } else if happens(server.condition.lossy_per_mille, &mut self.random.control) {
            (time, ProbeResult::Failed(ProbeFailure::Reset))
        } else if happens(server.condition.failing_per_mille, &mut self.random.control) {
            let expected = StatusSet::default();
            (time, ProbeResult::Failed(ProbeFailure::Status { got: 500, expected }))
        } else {
            (time, ProbeResult::Passed)
        };
        let probe = Probe { balancer, endpoint, run, result };
        let place = self.probes.claim(|| probe.clone());
        *self.probes.get_mut(place) = probe;
        self.agenda.put(self.now.saturating_add(time), Coming::Probed(place));
    }

    /// A probe is answered, or given up.
    pub(super) fn probed(&mut self, place: u32) {
        let Probe { balancer, endpoint, run, result } = self.probes.get(place).clone();
        self.probes.release(place);
        let random = self.random.control.next_u64();
        let pool = self.fronts[balancer].pool;
        let told = pool.probed(endpoint, run, result, Tick(self.now), random);
        told.iter().for_each(|event| self.told(balancer, event));
        self.fronts[balancer].has_news = true;
        self.has_news |= self.fronts[balancer].waiting > 0;
    }

    /// Something begins or ends to be wrong with an endpoint.
    pub(super) fn change(&mut self, endpoint: usize) {
        let condition = Condition::of(&self.scenario.faults, endpoint, Tick(self.now));
        let Some(server) = self.servers.get_mut(endpoint) else { return };
        let before = std::mem::replace(&mut server.condition, condition);
        if before.admin != condition.admin {
            self.set_admin(endpoint, condition);
        }
        let dies = condition.is_dead && !before.is_dead;
        if dies || (condition.is_silent && !before.is_silent) {
            let lost = self.servers[endpoint].die();
            lost.iter().for_each(|work| self.works.release(*work));
        }
        if dies {
            let there = self.all_flights(|flight| flight.is_at(endpoint));
            for flight in there {
                if self.fail(flight, Why::Reset) {
                    self.send(flight, false);
                }
            }
        }
    }

    /// The operators want something else of an endpoint.
    fn set_admin(&mut self, endpoint: usize, condition: Condition) {
        let name = &self.scenario.pool.endpoints[endpoint].name;
        for balancer in 0..self.fronts.len() {
            let random = self.random.control.next_u64();
            let pool = self.fronts[balancer].pool;
            let told = pool.set_admin(name, condition.admin, Tick(self.now), random);
            told.ok().flatten().iter().for_each(|event| self.told(balancer, event));
            self.fronts[balancer].has_news = true;
            self.has_news |= self.fronts[balancer].waiting > 0;
        }
    }

    fn told(&mut self, balancer: usize, event: &Told) {
        if self.outcome.events.len() < EVENTS_MAX {
            let (at, balancer) = (Tick(self.now), balancer as u32);
            self.outcome.events.push(PoolEvent { at, balancer, said: event.to_string() });
        }
    }
}
