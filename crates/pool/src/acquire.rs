//! The hot path: which endpoint takes this request? Picks and accounts in one step.

use std::cell::Cell;
use std::net::IpAddr;
use std::sync::Arc;

use subak_balance::{Key, LoadView, PickRequest};
use subak_base::{BitSet, DecisionId, Tick};
use subak_health::{Client, OnAllDown, State, Tier};

use crate::back_off::Entry;
use crate::compiled::Compiled;
use crate::lease::Lease;
use crate::pick_log::PickedBy;
use crate::pool::{Pool, View};
use crate::shadow::{ShadowKeys, Shadows};
use crate::stick_table::StickTable;

/// What a pick needs to know of its request.
#[derive(Clone, Copy, Debug)]
pub struct Acquire<'a> {
    /// What hash algorithms look at.
    pub key: Key<'a>,
    /// What the pool's shadows look at instead, where it has some.
    pub shadow_keys: &'a ShadowKeys,
    /// A random number, drawn for this request.
    pub random: u64,
    /// The moment of the pick.
    pub now: Tick,
    /// Whether the request has stood in line and is its turn; others do not overtake the line.
    pub in_turn: bool,
    /// The index of the endpoint that the client says it belongs to.
    pub stick: Option<usize>,
    /// The hash by which the client is found in the pool's table, where there is one.
    pub client: Option<u64>,
    /// Who asks, for the pick log.
    pub from: Option<IpAddr>,
    /// The name by which the pick log knows the request, where somebody wants to find it again.
    pub decision: Option<DecisionId>,
}

/// Why no endpoint was given.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// Some could serve the request, but all of those are at their cap: wait in line.
    Saturated,
    /// None can: there is none, none has weight, none is ready, or all were tried.
    NoEndpoint,
}

impl Pool {
    /// Picks an endpoint that is not in `tried` and takes a request slot of it.
    ///
    /// A client that belongs to an endpoint is given that one while it [may stay](Pool::may_stay);
    /// when the endpoint is at its cap, another one for this request.
    ///
    /// Endpoints in back-off are left out while another can serve the request. When none can, and the
    /// pool fails open, the one whose back-off ends first is given: an answer from it is better than a
    /// certain failure.
    ///
    /// # Errors
    /// [`Refusal`] says whether waiting can help.
    #[inline]
    pub fn acquire(&self, request: &Acquire<'_>, tried: &BitSet) -> Result<Lease<'_>, Refusal> {
        if self.queue().waiting() > 0 && !request.in_turn {
            return Err(Refusal::Saturated);
        }
        let compiled = self.compiled.load();
        match &self.shadows {
            None => self.give(&Taker::of(self, request), &compiled, request, tried),
            Some(shadows) => self.acquire_beside(shadows, &compiled, request, tried),
        }
    }

    /// The same where other algorithms decide beside the pool's own: afterwards.
    #[inline(never)]
    fn acquire_beside(
        &self,
        shadows: &Shadows,
        compiled: &Arc<Compiled>,
        request: &Acquire<'_>,
        tried: &BitSet,
    ) -> Result<Lease<'_>, Refusal> {
        let hand = Noting { taker: Taker::of(self, request), by: Cell::new(PickedBy::Balancer) };
        let lease = self.give(&hand, compiled, request, tried)?;
        if hand.by.get() == PickedBy::Balancer && tried.is_empty() {
            shadows.decide(self, request, lease.taken());
        }
        shadows.dispatched(lease.index(), request.now);
        Ok(lease)
    }

    /// The same by another view of the load than the pool's own: how it was a moment ago, or what several
    /// pools before the same endpoints have in flight together. Such picks are not logged, and no shadow
    /// decides beside them.
    ///
    /// # Errors
    /// As [`acquire`](Pool::acquire).
    pub fn acquire_by<L: LoadView>(
        &self,
        load: &L,
        request: &Acquire<'_>,
        tried: &BitSet,
    ) -> Result<Lease<'_>, Refusal> {
        if self.queue().waiting() > 0 && !request.in_turn {
            return Err(Refusal::Saturated);
        }
        let compiled = self.compiled.load();
        let taker = Taker::of(self, request);
        self.give(&Informed { taker, load }, &compiled, request, tried)
    }

    /// Where the request goes: one way for those that go it and for those that only want to know it.
    #[inline]
    pub(crate) fn give<H: Hand>(
        &self,
        hand: &H,
        compiled: &Arc<Compiled>,
        request: &Acquire<'_>,
        tried: &BitSet,
    ) -> Result<H::Given, Refusal> {
        let asked = Asked { compiled, request, tried };
        match request.stick.is_some() || request.client.is_some() {
            true => self.give_sticky(hand, &asked),
            false => self.give_balanced(hand, &asked),
        }
    }

    /// By the algorithm.
    #[inline]
    fn give_balanced<H: Hand>(&self, hand: &H, asked: &Asked<'_>) -> Result<H::Given, Refusal> {
        let (picked, record) = hand.pick(asked, asked.tried);
        if let Some(index) = picked
            && !self.is_left_out(asked.compiled, index, asked.request.now)
            && let Some(given) = hand.take(index, asked.request.now, record, Way::Ordinary)
        {
            return Ok(given);
        }
        self.give_other(hand, asked, picked)
    }

    /// The same after the first pick could not be taken.
    #[cold]
    fn give_other<H: Hand>(
        &self,
        hand: &H,
        asked: &Asked<'_>,
        mut picked: Option<usize>,
    ) -> Result<H::Given, Refusal> {
        let Asked { compiled, request, tried } = *asked;
        let mut excluded = tried.clone();
        let mut saturated = false;
        // Every turn excludes one endpoint more, so this ends.
        while let Some(index) = picked {
            saturated |= !self.is_left_out(compiled, index, request.now);
            excluded.insert(index);
            let (next, record) = hand.pick(asked, &excluded);
            if let Some(index) = next
                && !self.is_left_out(compiled, index, request.now)
                && let Some(given) = hand.take(index, request.now, record, Way::Ordinary)
            {
                return Ok(given);
            }
            picked = next;
        }
        self.last_resort(hand, asked, saturated)
    }

    /// For a client that may belong to an endpoint.
    #[inline(never)]
    fn give_sticky<H: Hand>(&self, hand: &H, asked: &Asked<'_>) -> Result<H::Given, Refusal> {
        let Asked { compiled, request, tried } = *asked;
        let now = request.now;
        let table = request.client.zip(self.table.as_ref());
        let known = || table.and_then(|(client, table)| self.stick(hand.find(table, client, now)?));
        let home = request.stick.filter(|index| *index < self.members.len()).or_else(known);
        let home = home.filter(|index| self.may_stay_by(compiled, *index, now));
        if let Some(index) = home.filter(|index| !tried.contains(*index)) {
            let record = hand.note(PickedBy::Stickiness, index, asked);
            if let Some(given) = hand.take(index, now, record, Way::Ordinary) {
                return Ok(given);
            }
        }
        let given = self.give_balanced(hand, asked)?;
        // Who has only found its endpoint full comes back to it; whom it has failed goes on with the
        // one that answers.
        if home.is_none_or(|home| tried.contains(home))
            && let Some((client, table)) = table
        {
            hand.put(table, client, &given, now);
        }
        Ok(given)
    }

    /// An untried endpoint that the compiled balancer does not give: its back-off has ended since; it
    /// is a backup, and all others were tried; or, where nobody else is left, its back-off ends first.
    #[cold]
    fn last_resort<H: Hand>(
        &self,
        hand: &H,
        asked: &Asked<'_>,
        saturated: bool,
    ) -> Result<H::Given, Refusal> {
        let Asked { compiled, request, tried } = *asked;
        let outlook = &compiled.outlook;
        let now = request.now;
        let is_backup = |index: usize| self.spec.endpoints[index].tier() == Tier::Backup;
        let may_fail = |index: usize| match self.spec.on_all_down {
            OnAllDown::FailOpen => true,
            OnAllDown::FailClosed => false,
            OnAllDown::BackupOnly => is_backup(index),
        };
        let is_left_out = |index: usize| self.is_left_out(compiled, index, now);
        let is_shut = |index: usize| {
            let state = self.members[index].endpoint.state();
            matches!(state, State::Drain | State::Maintenance)
        };
        let mut left: Vec<usize> = outlook
            .reserve
            .without(tried)
            .filter(|index| !is_shut(*index))
            .filter(|index| match (is_left_out(*index), outlook.eligible.contains(*index)) {
                (true, _) => !saturated && may_fail(*index),
                (false, true) => false,
                (false, false) => !saturated || !is_backup(*index),
            })
            .collect();
        let until = |index: usize| self.members[index].endpoint.back_off.until();
        left.sort_by_key(|index| (is_left_out(*index), is_backup(*index), until(*index)));
        let refusal = match saturated || !left.is_empty() {
            true => Refusal::Saturated,
            false => Refusal::NoEndpoint,
        };
        for index in left {
            if let Some(mut given) = hand.take(index, now, 0, Way::LastResort) {
                hand.note_last_resort(&mut given, index, asked);
                return Ok(given);
            }
        }
        Err(refusal)
    }

    /// Whether an endpoint that could be given is not in `tried`.
    pub fn has_untried(&self, tried: &BitSet) -> bool {
        self.compiled.load().outlook.reserve.without(tried).next().is_some()
    }

    /// The question to the balancer.
    #[inline]
    pub(crate) fn ask<'a>(
        &'a self,
        compiled: &'a Compiled,
        request: &Acquire<'a>,
        tried: &'a BitSet,
    ) -> PickRequest<'a> {
        PickRequest {
            tickets: &self.continuing.tickets,
            random: request.random,
            now: request.now,
            key: request.key,
            eligible: &compiled.outlook.eligible,
            tried,
        }
    }

    /// The balancer's word, and the number of its record. A function of its own, because every
    /// algorithm is inlined into it.
    #[inline(never)]
    fn pick(
        &self,
        compiled: &Arc<Compiled>,
        request: &Acquire<'_>,
        tried: &BitSet,
    ) -> (Option<usize>, u64) {
        match &self.log {
            None => {
                let asked = self.ask(compiled, request, tried);
                (compiled.balancer.pick(&View(self), &asked), 0)
            }
            Some(log) => log.pick(self, compiled, request, tried),
        }
    }
}

/// A request, what it is asked of, and whom it has tried.
#[derive(Clone, Copy)]
pub(crate) struct Asked<'a> {
    pub(crate) compiled: &'a Arc<Compiled>,
    pub(crate) request: &'a Acquire<'a>,
    pub(crate) tried: &'a BitSet,
}

/// What is done at each step of the way: the real thing, or nothing but looking.
pub(crate) trait Hand {
    /// What is given at the end.
    type Given;

    /// The balancer's word when these are excluded, and the number of its record.
    fn pick(&self, asked: &Asked<'_>, excluded: &BitSet) -> (Option<usize>, u64);

    /// A slot of this endpoint, if there is one.
    fn take(&self, index: usize, now: Tick, record: u64, way: Way) -> Option<Self::Given>;

    /// The number of a record of a pick that no balancer made; 0 without a log.
    fn note(&self, by: PickedBy, index: usize, asked: &Asked<'_>) -> u64;

    /// The same after it was given, by the last resort.
    fn note_last_resort(&self, given: &mut Self::Given, index: usize, asked: &Asked<'_>);

    /// The stick key of the endpoint that the client belongs to.
    fn find(&self, table: &StickTable, client: u64, now: Tick) -> Option<u64>;

    /// The client belongs to this endpoint from now on.
    fn put(&self, table: &StickTable, client: u64, given: &Self::Given, now: Tick);
}

/// In which way a request comes to an endpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Way {
    /// Because it takes work.
    Ordinary,
    /// Because nobody else is left, in back-off or not.
    LastResort,
}

/// Takes what it is given.
struct Taker<'p> {
    pool: &'p Pool,
    client: Client,
}

impl<'p> Taker<'p> {
    #[inline]
    fn of(pool: &'p Pool, request: &Acquire<'_>) -> Taker<'p> {
        Taker { pool, client: request.from.map_or(Client::UNKNOWN, Client::of) }
    }
}

impl<'p> Hand for Taker<'p> {
    type Given = Lease<'p>;

    #[inline]
    fn pick(&self, asked: &Asked<'_>, excluded: &BitSet) -> (Option<usize>, u64) {
        self.pool.pick(asked.compiled, asked.request, excluded)
    }

    #[inline]
    fn take(&self, index: usize, now: Tick, record: u64, way: Way) -> Option<Lease<'p>> {
        let member = self.pool.member(index);
        let cap = member.cap.load(std::sync::atomic::Ordering::Relaxed);
        if !member.endpoint.dispatch(cap) {
            return None;
        }
        let entered = member.endpoint.back_off.enter(&self.pool.spec.back_off, self.client, now);
        let Some(entry) = entered.or((way == Way::LastResort).then_some(Entry::Open)) else {
            member.endpoint.recall();
            return None;
        };
        let lease = Lease::new(self.pool, index, (self.client, entry), now, record);
        if self.pool.has_extras {
            lease.charge();
        }
        Some(lease)
    }

    fn note(&self, by: PickedBy, index: usize, asked: &Asked<'_>) -> u64 {
        let (pool, Asked { compiled, request, tried }) = (self.pool, *asked);
        let log = pool.log.as_ref();
        log.map_or(0, |log| log.note(by, index, pool.generation, compiled, request, tried))
    }

    fn note_last_resort(&self, lease: &mut Lease<'p>, index: usize, asked: &Asked<'_>) {
        lease.record = self.note(PickedBy::LastResort, index, asked);
    }

    fn find(&self, table: &StickTable, client: u64, now: Tick) -> Option<u64> {
        table.find(client, now)
    }

    fn put(&self, table: &StickTable, client: u64, lease: &Lease<'p>, now: Tick) {
        table.put(client, lease.endpoint().stick_key(), now);
    }
}

/// Takes what it is given, and remembers who has decided.
struct Noting<'p> {
    taker: Taker<'p>,
    by: Cell<PickedBy>,
}

impl<'p> Hand for Noting<'p> {
    type Given = Lease<'p>;

    #[inline]
    fn pick(&self, asked: &Asked<'_>, excluded: &BitSet) -> (Option<usize>, u64) {
        self.by.set(PickedBy::Balancer);
        self.taker.pick(asked, excluded)
    }

    #[inline]
    fn take(&self, index: usize, now: Tick, record: u64, way: Way) -> Option<Lease<'p>> {
        self.taker.take(index, now, record, way)
    }

    fn note(&self, by: PickedBy, index: usize, asked: &Asked<'_>) -> u64 {
        self.by.set(by);
        self.taker.note(by, index, asked)
    }

    fn note_last_resort(&self, lease: &mut Lease<'p>, index: usize, asked: &Asked<'_>) {
        self.by.set(PickedBy::LastResort);
        self.taker.note_last_resort(lease, index, asked);
    }

    fn find(&self, table: &StickTable, client: u64, now: Tick) -> Option<u64> {
        self.taker.find(table, client, now)
    }

    fn put(&self, table: &StickTable, client: u64, lease: &Lease<'p>, now: Tick) {
        self.taker.put(table, client, lease, now);
    }
}

/// Takes what it is given, and is told of the load by somebody else.
struct Informed<'p, 'l, L> {
    taker: Taker<'p>,
    load: &'l L,
}

impl<'p, L: LoadView> Hand for Informed<'p, '_, L> {
    type Given = Lease<'p>;

    #[inline]
    fn pick(&self, asked: &Asked<'_>, excluded: &BitSet) -> (Option<usize>, u64) {
        let Asked { compiled, request, .. } = *asked;
        let question = self.taker.pool.ask(compiled, request, excluded);
        (compiled.balancer.pick(self.load, &question), 0)
    }

    #[inline]
    fn take(&self, index: usize, now: Tick, record: u64, way: Way) -> Option<Lease<'p>> {
        self.taker.take(index, now, record, way)
    }

    fn note(&self, _by: PickedBy, _index: usize, _asked: &Asked<'_>) -> u64 {
        0
    }

    fn note_last_resort(&self, _lease: &mut Lease<'p>, _index: usize, _asked: &Asked<'_>) {}

    fn find(&self, table: &StickTable, client: u64, now: Tick) -> Option<u64> {
        self.taker.find(table, client, now)
    }

    fn put(&self, table: &StickTable, client: u64, lease: &Lease<'p>, now: Tick) {
        self.taker.put(table, client, lease, now);
    }
}
