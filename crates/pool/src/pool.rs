//! A pool: endpoints, who of them is eligible, and the balancer compiled over those.
//!
//! This file has what a pool is made of and how one is built. What it does is elsewhere:
//! [`acquire`](crate::acquire) is the hot path, [`control`](crate::control) and
//! [`eligibility`](crate::eligibility) the control side.

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwap;
use subak_balance::catalogue::Wants;
use subak_balance::{Algorithm, FULL, LoadView, Tickets};
use subak_base::{BitSet, EndpointId, Tick};
use subak_health::{Because, State, Tier};
use subak_limits::{Circuit, CircuitSpec};

use crate::compiled::Compiled;
use crate::control::Control;
use crate::eligibility::{Facts, Outlook};
use crate::endpoint::{Endpoint, EndpointIds, NO_CAP};
use crate::learnt::{Learnt, welcome};
use crate::packets::Traffic;
use crate::pick_log::PickLog;
use crate::retry_budget::{RetryBudget, RetryBudgetStatus};
use crate::shadow::Shadows;
use crate::spec::{EndpointSpec, PoolSpec};
use crate::standing::{Questions, Standing};
use crate::stick_table::StickTable;
use crate::wait::WaitQueue;

/// The endpoints of one pool in one snapshot.
#[derive(Debug)]
pub struct Pool {
    pub(crate) spec: PoolSpec,
    pub(crate) questions: Questions,
    /// Counts the pools of this name, in the order they were built.
    pub(crate) generation: u64,
    pub(crate) members: Box<[Member]>,
    /// Endpoints by what their clients are recognised by, in its order.
    by_stick_key: Box<[(u64, u32)]>,
    /// What the algorithm looks at; with its shadows, as far as packets and bytes go.
    pub(crate) wants: Wants,
    /// Whether anybody learns from how long answers take,
    times_answers: bool,
    /// and whether ejections do.
    pub(crate) times_ejections: bool,
    /// Whether a dispatch or a settlement is more than counting.
    pub(crate) has_extras: bool,
    /// What the balancer said of the whole pool.
    pub(crate) summary: AtomicU64,
    pub(crate) compiled: ArcSwap<Compiled>,
    /// When it was compiled last; held by whoever compiles.
    pub(crate) compiling: Mutex<Tick>,
    pub(crate) table: Option<StickTable>,
    pub(crate) circuit: Option<Arc<Circuit>>,
    pub(crate) shadows: Option<Box<Shadows>>,
    pub(crate) log: Option<Arc<PickLog>>,
    pub(crate) continuing: Arc<Continuing>,
}

/// An endpoint with what this snapshot says of it.
#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) endpoint: Arc<Endpoint>,
    /// As configured, or less where its agent wants that.
    pub(crate) cap: AtomicU32,
    /// How many of its keys it takes, in 1/1024.
    pub(crate) ramp: AtomicU16,
    pub(crate) learnt: Option<Arc<Learnt>>,
}

/// What goes on over reloads: the sequence's position, who waits, what was retried, what is known of
/// the endpoints' health.
#[derive(Debug, Default)]
pub(crate) struct Continuing {
    pub(crate) tickets: TicketCounter,
    queue: WaitQueue,
    budget: RetryBudget,
    generations: AtomicU64,
    control: Mutex<Control>,
}

/// The position all workers share, on a cache line of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct TicketCounter(pub(crate) AtomicU64);

impl TicketCounter {
    /// How many have been drawn so far.
    pub(crate) fn drawn(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Tickets for TicketCounter {
    #[inline]
    fn draw(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed)
    }
}

impl Continuing {
    /// What the control side knows. Nobody compiles a balancer while holding it: a request whose
    /// failure ejects its endpoint waits for it.
    pub(crate) fn control(&self) -> MutexGuard<'_, Control> {
        self.control.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pool {
    /// Builds a pool. Endpoints that `ids` knows keep their state, and `previous`, the pool of the same
    /// name in the snapshot before, hands over its position, its line and each endpoint's debt. Nothing
    /// of what runs is touched: the new pool takes over with its first [`tick`](Pool::tick).
    ///
    /// # Panics
    /// When two endpoints have one identity; the configuration does not allow it.
    pub fn build(
        spec: &PoolSpec,
        ids: &mut EndpointIds,
        previous: Option<&Pool>,
        now: Tick,
    ) -> Pool {
        let own = spec.algorithm.traits().wants;
        let beside = Shadows::wants_of(spec);
        let (packets, bytes) = (own.packets || beside.packets, own.bytes || beside.bytes);
        let wants = Wants { packets, bytes, ..own };
        let learner = previous.filter(|previous| previous.spec.algorithm == spec.algorithm);
        let learnt: HashMap<EndpointId, &Arc<Learnt>> = learner
            .iter()
            .flat_map(|pool| &pool.members)
            .filter_map(|member| Some((member.endpoint.id(), member.learnt.as_ref()?)))
            .collect();
        let member = |endpoint: &EndpointSpec| {
            let known = ids.resolve(&spec.name, endpoint);
            let learnt = learnt.get(&known.id()).map(|before| Learnt::going_on(before, wants));
            Member {
                endpoint: known,
                cap: AtomicU32::new(endpoint.max_in_flight.unwrap_or(NO_CAP)),
                ramp: AtomicU16::new(FULL),
                learnt: learnt.or_else(|| Learnt::for_one_who_wants(wants)),
            }
        };
        let members: Box<[Member]> = spec.endpoints.iter().map(member).collect();
        let joins = |index: usize| !learnt.contains_key(&members[index].endpoint.id());
        let continuing = previous.map_or_else(Arc::default, |previous| previous.continuing.clone());
        let foreseen =
            |algorithm: &Algorithm| foreseen((spec, algorithm), &members, &continuing, now);
        let facts = foreseen(&spec.algorithm);
        let outlook = Outlook::of(&facts, spec.on_all_down, &spec.algorithm.traits());
        publish_ramps(&members, &outlook);
        welcome_newcomers(&members, &outlook, joins, now);
        let before = previous.map(|previous| previous.compiled.load());
        let compiled = Compiled::first(
            &spec.algorithm,
            &spec.endpoints,
            outlook,
            before.as_ref().map(|before| &***before),
            continuing.tickets.drawn(),
        );
        let shadows = Shadows::build(spec, &members, foreseen, previous, now);
        let mut by_stick_key: Box<[_]> = (0..)
            .zip(&members)
            .map(|(index, member): (u32, &Member)| (member.endpoint.stick_key(), index))
            .collect();
        by_stick_key.sort_unstable();
        let log = spec.pick_log.map(|capacity| pick_log(capacity, previous));
        let clients = previous.and_then(|pool| pool.table.as_ref());
        let table = spec.stick_table.map(|spec| StickTable::new(spec, clients));
        let has_cells = wants.cells || beside.cells;
        let times_ejections = spec.eject.as_ref().is_some_and(|eject| eject.latency.is_some());
        let has_extras = has_cells || packets || bytes || log.is_some() || times_ejections;
        Pool {
            questions: Questions { probe: spec.probe.clone(), agent: spec.agent.clone() },
            generation: continuing.generations.fetch_add(1, Ordering::Relaxed) + 1,
            members,
            by_stick_key,
            wants,
            times_answers: has_cells || times_ejections,
            times_ejections,
            has_extras,
            summary: AtomicU64::new(learner.map_or(0, |pool| pool.summary())),
            compiled: ArcSwap::from_pointee(compiled),
            compiling: Mutex::new(now),
            table,
            shadows,
            circuit: spec.circuit.as_ref().map(|circuit| self::circuit(circuit, previous)),
            log,
            continuing,
            spec: spec.clone(),
        }
    }

    /// What it was built from.
    pub fn spec(&self) -> &PoolSpec {
        &self.spec
    }

    /// The load as algorithms see it.
    pub fn load(&self) -> impl LoadView + '_ {
        View(self)
    }

    /// As configured.
    pub fn name(&self) -> &str {
        &self.spec.name
    }

    /// The algorithm in force.
    pub fn algorithm(&self) -> &Algorithm {
        &self.spec.algorithm
    }

    /// What the algorithm looks at besides requests in flight, and its shadows as far as packets and
    /// bytes go: whoever has the traffic counts those, and extracts keys, only for a pool that wants
    /// them.
    pub fn wants(&self) -> Wants {
        self.wants
    }

    /// Whether it is of any use to look at the clock when an answer begins.
    pub fn times_answers(&self) -> bool {
        self.times_answers
    }

    /// Whether anybody may take new work, and not only because all are down and are tried all the same.
    pub fn has_somebody_well(&self) -> bool {
        let outlook = &self.compiled.load().outlook;
        !outlook.eligible.is_empty() && !outlook.because.is_desperate()
    }

    /// Whether nobody takes a request at this moment, though people want them to: all are in back-off
    /// or down.
    pub fn is_out(&self, now: Tick) -> bool {
        let compiled = self.compiled.load();
        let outlook = &compiled.outlook;
        let takes = |index: usize| !self.is_left_out(&compiled, index, now);
        outlook.because != Because::NobodyLeft && !outlook.reserve.iter().any(takes)
    }

    /// Whether another endpoint than this one could be given that is not in `tried`.
    pub fn has_other(&self, tried: &BitSet, index: usize) -> bool {
        let compiled = self.compiled.load();
        compiled.outlook.reserve.without(tried).any(|other| other != index)
    }

    /// The endpoints in configured order.
    pub fn endpoints(&self) -> impl ExactSizeIterator<Item = &Arc<Endpoint>> {
        self.members.iter().map(|member| &member.endpoint)
    }

    /// The endpoint at this place.
    pub fn endpoint(&self, index: usize) -> Option<&Arc<Endpoint>> {
        self.members.get(index).map(|member| &member.endpoint)
    }

    /// Where requests wait while every endpoint is at its cap.
    pub fn queue(&self) -> &WaitQueue {
        &self.continuing.queue
    }

    /// How many may wait.
    pub fn queue_length(&self) -> usize {
        self.spec.queue_length
    }

    /// Takes one retry from the pool's budget if there is one.
    pub fn withdraw_retry(&self, now: Tick) -> bool {
        let requests = self.members.iter().map(|member| member.endpoint.hits()).sum();
        self.continuing.budget.withdraw(&self.spec.retry, requests, false, now)
    }

    /// The same for a retry that follows a timeout, of which there are fewer.
    pub fn withdraw_late_retry(&self, now: Tick) -> bool {
        let requests = self.members.iter().map(|member| member.endpoint.hits()).sum();
        self.continuing.budget.withdraw(&self.spec.retry, requests, true, now)
    }

    /// How the retry budget is.
    pub fn retry_budget(&self, now: Tick) -> RetryBudgetStatus {
        let requests = self.members.iter().map(|member| member.endpoint.hits()).sum();
        self.continuing.budget.status(&self.spec.retry, requests, now)
    }

    /// The endpoint whose [`stick_key`](Endpoint::stick_key) this is.
    pub fn stick(&self, key: u64) -> Option<usize> {
        let found = self.by_stick_key.binary_search_by_key(&key, |(key, _)| *key).ok()?;
        Some(self.by_stick_key[found].1 as usize)
    }

    /// Whether a client that belongs to this endpoint may stay with it: as long as it is ready or
    /// drains, whatever its weight; not when it is down, ejected, in back-off or in maintenance.
    pub fn may_stay(&self, index: usize, now: Tick) -> bool {
        self.may_stay_by(&self.compiled.load(), index, now)
    }

    pub(crate) fn may_stay_by(&self, compiled: &Compiled, index: usize, now: Tick) -> bool {
        let Some(Member { endpoint, .. }) = self.members.get(index) else { return false };
        let may = match endpoint.state() {
            State::Ready | State::Drain | State::BackOff => true,
            State::Down => compiled.outlook.because.is_desperate(),
            State::Maintenance => false,
        };
        may && compiled.outlook.stays.contains(index) && !endpoint.is_backing_off(now)
    }

    /// Whether it has been found out since the balancer was compiled that the endpoint is not to be
    /// given.
    #[inline]
    pub(crate) fn is_left_out(&self, compiled: &Compiled, index: usize, now: Tick) -> bool {
        let endpoint = &self.members[index].endpoint;
        !endpoint.is_open(now) && !self.is_tried_all_the_same(compiled, endpoint, now)
    }

    /// Whether it is given although it is down, because all are.
    #[cold]
    fn is_tried_all_the_same(&self, compiled: &Compiled, endpoint: &Endpoint, now: Tick) -> bool {
        let is_down = endpoint.state() == State::Down;
        is_down && compiled.outlook.because.is_desperate() && !endpoint.is_backing_off(now)
    }

    #[inline]
    pub(crate) fn member(&self, index: usize) -> &Member {
        &self.members[index]
    }

    pub(crate) fn summary(&self) -> u64 {
        self.summary.load(Ordering::Relaxed)
    }
}

/// The live load that algorithms look at.
pub(crate) struct View<'a>(pub(crate) &'a Pool);

impl LoadView for View<'_> {
    #[inline]
    fn in_flight(&self, index: usize) -> u32 {
        self.0.members[index].endpoint.in_flight()
    }

    #[inline]
    fn cell(&self, index: usize) -> u64 {
        self.0.members[index].learnt.as_ref().map_or(0, |learnt| learnt.cell())
    }

    #[inline]
    fn packets(&self, index: usize) -> u64 {
        let learnt = self.0.members[index].learnt.as_ref();
        learnt.and_then(|learnt| learnt.packets.as_ref()).map_or(0, Traffic::sum)
    }

    #[inline]
    fn bytes(&self, index: usize) -> u64 {
        let learnt = self.0.members[index].learnt.as_ref();
        learnt.and_then(|learnt| learnt.bytes.as_ref()).map_or(0, Traffic::sum)
    }

    #[inline]
    fn ramp(&self, index: usize) -> u16 {
        self.0.members[index].ramp.load(Ordering::Relaxed)
    }

    #[inline]
    fn summary(&self) -> u64 {
        self.0.summary()
    }
}

/// Shows the ramps to picks.
pub(crate) fn publish_ramps(members: &[Member], outlook: &Outlook) {
    let ramps = outlook.ramps.iter().copied().chain(std::iter::repeat(FULL));
    for (member, ramp) in members.iter().zip(ramps) {
        member.ramp.store(ramp, Ordering::Relaxed);
    }
}

/// Gives those who [join](welcome) an account to begin with.
pub(crate) fn welcome_newcomers(
    members: &[Member],
    outlook: &Outlook,
    joins: impl Fn(usize) -> bool,
    now: Tick,
) {
    let (newcomers, others): (Vec<usize>, Vec<usize>) =
        outlook.eligible.iter().partition(|index| joins(*index));
    let accounts = |indices: Vec<usize>| {
        let account =
            |index: usize| Some((&**members[index].learnt.as_ref()?, outlook.weights[index]));
        indices.into_iter().filter_map(account).collect::<Vec<_>>()
    };
    welcome(&accounts(newcomers), &accounts(others), now);
}

impl EndpointSpec {
    pub(crate) fn tier(&self) -> Tier {
        if self.backup { Tier::Backup } else { Tier::Primary }
    }
}

/// What will be known of the endpoints once the pool that is being built is in force.
fn foreseen(
    (spec, algorithm): (&PoolSpec, &Algorithm),
    members: &[Member],
    continuing: &Continuing,
    now: Tick,
) -> Vec<Facts> {
    let control = continuing.control();
    let takes_changing = algorithm.takes_changing_weights();
    let fact = |(endpoint, member): (&EndpointSpec, &Member)| {
        let standing = control.standing(member.endpoint.id());
        let (state, weights, ramp) = match standing {
            Some(standing) => (
                standing.state_with(endpoint.admin, now),
                standing.weights(endpoint.weight, takes_changing),
                standing.ramp(spec.slow_start.as_ref(), now),
            ),
            None => {
                let questions = Questions { probe: spec.probe.clone(), agent: None };
                let mut random = subak_base::Rng::new(0);
                let standing = Standing::new(endpoint.admin, &questions, now, &mut random);
                let weights = standing.weights(endpoint.weight, takes_changing);
                (standing.work_state(), weights, u32::from(FULL))
            }
        };
        let is_backing_off = member.endpoint.is_backing_off(now);
        Facts { tier: endpoint.tier(), state, is_backing_off, weights, ramp }
    };
    spec.endpoints.iter().zip(members).map(fact).collect()
}

/// The log goes on over a reload; where that changes its size, with a copy of the latest records.
fn pick_log(capacity: NonZeroUsize, previous: Option<&Pool>) -> Arc<PickLog> {
    let before = previous.and_then(|pool| pool.log.as_ref());
    let kept = before.filter(|log| log.capacity() == capacity);
    let copy = || Arc::new(PickLog::new(capacity, before.map(|log| &**log)));
    kept.cloned().unwrap_or_else(copy)
}

/// The circuit goes on over a reload that leaves it the same.
fn circuit(spec: &CircuitSpec, previous: Option<&Pool>) -> Arc<Circuit> {
    let before = previous.and_then(|pool| pool.circuit.as_ref());
    let same = before.filter(|circuit| circuit.spec() == spec).cloned();
    same.unwrap_or_else(|| Arc::new(Circuit::new(spec.clone())))
}

#[cfg(test)]
mod tests;
