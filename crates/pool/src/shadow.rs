//! What would other algorithms have decided? Shadows: algorithms that decide beside a pool's own, and
//! send nothing anywhere.
//!
//! A shadow is asked once a request: at its first try, and only where the pool's algorithm has decided
//! (not where the client belonged to an endpoint, nor where nobody was left to choose from). It has a
//! balancer, tickets, cells and ramps of its own, so that nothing it does can be seen by the pool's
//! algorithm; it is asked after that has decided and the slot has been taken, and sees the load as it
//! was before. It is given the same random word: what differs is the algorithm, not the luck. No lock is
//! taken. Who panics is asked no more; requests do not notice.
//!
//! What a shadow learns, it learns from what the pool's algorithm has done: in flight and latencies are
//! those of traffic that went elsewhere. So agreement is not a forecast.
//!
//! Balancers of shadows are compiled on the control side, with every tick and after what people set,
//! never by a worker: after a failure a shadow goes on for up to a tick with whom it knows, and picks
//! again where one is left out.
//!
//! Cost: a pick each, three or four counters, and 24 bytes an endpoint beside the compiled balancer.

mod decide;
mod keys;
mod status;

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use subak_balance::catalogue::Wants;
use subak_balance::{Algorithm, FULL, KeySource};
use subak_base::{EndpointId, Tick};

use crate::compiled::Compiled;
use crate::eligibility::{Facts, Outlook};
use crate::pool::{Member, Pool, TicketCounter};
use crate::spec::{PoolSpec, ShadowSpec};
pub use decide::ShadowTrace;
pub(crate) use decide::Taken;
pub use keys::ShadowKeys;
pub use status::{ShadowStatus, imbalance};

/// What must not be concluded from what shadows have decided: for whoever shows it.
pub const NO_FORECAST: &str = "agreement is not a forecast: a shadow sees load that the pool's \
                               algorithm made; subak lab whatif simulates";

/// The shadows of a pool that has any.
#[derive(Debug)]
pub(crate) struct Shadows {
    all: Box<[Shadow]>,
    /// Held by whoever compiles them.
    compiling: Mutex<()>,
}

/// One algorithm that decides beside the pool's own.
#[derive(Debug)]
struct Shadow {
    spec: ShadowSpec,
    wants: Wants,
    compiled: ArcSwap<Compiled>,
    /// In the order of the pool's members.
    places: Box<[Place]>,
    /// What the balancer said of the whole pool.
    summary: AtomicU64,
    ledger: Arc<Ledger>,
    /// It has panicked, and is asked no more.
    is_stopped: AtomicBool,
}

/// An endpoint, as one shadow has it.
#[derive(Debug)]
struct Place {
    /// How many of its keys it takes, in 1/1024.
    ramp: AtomicU16,
    account: Arc<Account>,
}

/// What is kept of an endpoint over reloads.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Account {
    /// The shadow's own word.
    cell: AtomicU64,
    /// How often the shadow has chosen it.
    hits: AtomicU64,
    /// How often the pool's algorithm has, of the same requests.
    taken: AtomicU64,
}

/// What is kept of a shadow over reloads.
#[derive(Debug)]
struct Ledger {
    tickets: TicketCounter,
    counts: Counts,
    /// When counting began.
    since: Tick,
}

#[derive(Debug, Default)]
#[repr(align(128))]
struct Counts {
    decisions: AtomicU64,
    agreements: AtomicU64,
    refusals: AtomicU64,
}

/// What a pool that is being built takes its shadows over from.
struct Before<'a> {
    pool: Option<&'a Pool>,
    places: HashMap<EndpointId, usize>,
    now: Tick,
}

impl Shadows {
    /// The shadows of this specification. One that the pool had before goes on where it was; another
    /// begins as the pool's algorithm would have begun if it had been changed to that. Counting begins
    /// anew when the pool's own algorithm is another than before.
    pub(crate) fn build(
        spec: &PoolSpec,
        members: &[Member],
        facts: impl Fn(&Algorithm) -> Vec<Facts>,
        previous: Option<&Pool>,
        now: Tick,
    ) -> Option<Box<Shadows>> {
        if spec.shadows.is_empty() {
            return None;
        }
        let ids = previous.into_iter().flat_map(Pool::endpoints).map(|endpoint| endpoint.id());
        let before = Before { pool: previous, places: ids.zip(0..).collect(), now };
        let shadow = |shadow: &ShadowSpec| {
            let facts = facts(&shadow.algorithm);
            let outlook = Outlook::of(&facts, spec.on_all_down, &shadow.algorithm.traits());
            Shadow::build(spec, shadow, members, outlook, &before)
        };
        let all = spec.shadows.iter().map(shadow).collect();
        Some(Box::new(Shadows { all, compiling: Mutex::new(()) }))
    }

    /// Compiles those anew for which anything has changed, and lets those summarise that do. `facts`
    /// tells what is known of the endpoints, with weights that change all the time or without.
    pub(crate) fn refresh(
        &self,
        pool: &Pool,
        now: Tick,
        facts: impl Fn(bool) -> Option<Vec<Facts>>,
    ) {
        let _compiling = self.compiling.lock().unwrap_or_else(PoisonError::into_inner);
        let mut known: [Option<Vec<Facts>>; 2] = [None, None];
        for shadow in self.running() {
            let traits = shadow.spec.algorithm.traits();
            let known = &mut known[usize::from(traits.takes_changing_weights)];
            if known.is_none() {
                *known = facts(traits.takes_changing_weights);
            }
            // None: another generation has taken over.
            let Some(facts) = known else { return };
            let outlook = Outlook::of(facts, pool.spec.on_all_down, &traits);
            shadow.guarded((), || shadow.refresh(pool, outlook, now));
        }
    }

    /// What they look at that is counted for the whole pool.
    pub(crate) fn wants_of(spec: &PoolSpec) -> Wants {
        let each = spec.shadows.iter().map(|shadow| shadow.algorithm.traits().wants);
        each.fold(Wants::NOTHING, |all, one| Wants {
            cells: all.cells || one.cells,
            summary: all.summary || one.summary,
            packets: all.packets || one.packets,
            bytes: all.bytes || one.bytes,
            key: all.key || one.key,
        })
    }

    fn running(&self) -> impl Iterator<Item = &Shadow> {
        self.all.iter().filter(|shadow| !shadow.is_stopped.load(Ordering::Relaxed))
    }
}

impl Shadow {
    fn build(
        pool: &PoolSpec,
        spec: &ShadowSpec,
        members: &[Member],
        outlook: Outlook,
        before: &Before<'_>,
    ) -> Shadow {
        let known = before.pool.and_then(|pool| Some((pool, pool.shadows.as_ref()?.find(spec)?)));
        let goes_on = known.filter(|(before, _)| before.spec.algorithm == pool.algorithm);
        let account = |member: &Member| {
            let same = |(_, shadow): (&Pool, &Shadow)| {
                let place = before.places.get(&member.endpoint.id())?;
                Some(shadow.places.get(*place)?.account.clone())
            };
            let learnt = || known.and_then(same).map_or(0, |account| account.cell());
            goes_on.and_then(same).unwrap_or_else(|| Arc::new(Account::beginning_with(learnt())))
        };
        let place = |member| Place { ramp: AtomicU16::new(FULL), account: account(member) };
        let places: Box<[Place]> = members.iter().map(place).collect();
        let ticket = match (known, before.pool) {
            (Some((_, shadow)), _) => shadow.ledger.tickets.drawn(),
            (None, Some(pool)) => pool.continuing.tickets.drawn(),
            (None, None) => 0,
        };
        let compiled = known.map(|(_, shadow)| &shadow.compiled);
        let compiled = compiled.or_else(|| before.pool.map(|pool| &pool.compiled));
        let compiled = compiled.map(|compiled| compiled.load());
        let compiled = Compiled::first(
            &spec.algorithm,
            &pool.endpoints,
            outlook,
            compiled.as_ref().map(|before| &***before),
            ticket,
        );
        publish_ramps(&places, &compiled.outlook);
        let summary = known.map_or(0, |(_, shadow)| shadow.summary.load(Ordering::Relaxed));
        let new_ledger = || Ledger {
            tickets: TicketCounter(AtomicU64::new(ticket)),
            counts: Counts::default(),
            since: before.now,
        };
        Shadow {
            wants: spec.algorithm.traits().wants,
            compiled: ArcSwap::from_pointee(compiled),
            places,
            summary: AtomicU64::new(summary),
            ledger: goes_on
                .map_or_else(|| Arc::new(new_ledger()), |(_, shadow)| shadow.ledger.clone()),
            is_stopped: AtomicBool::new(false),
            spec: spec.clone(),
        }
    }

    fn refresh(&self, pool: &Pool, outlook: Outlook, now: Tick) {
        if self.wants.summary {
            let balancer = &self.compiled.load().balancer;
            let summary = balancer.summarise(&self.view(pool, None), now);
            self.summary.store(summary, Ordering::Relaxed);
        }
        let before = self.compiled.load();
        if outlook == before.outlook {
            return;
        }
        let ticket = self.ledger.tickets.drawn();
        let next = before.next(&self.spec.algorithm, &pool.spec.endpoints, outlook, ticket);
        publish_ramps(&self.places, &next.outlook);
        self.compiled.store(Arc::new(next));
    }

    /// What `work` says, or `otherwise` from the first panic on. It has been reported as panics are.
    fn guarded<T>(&self, otherwise: T, work: impl FnOnce() -> T) -> T {
        // What it leaves half done is the shadow's own, which nobody looks at any more.
        catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| {
            self.is_stopped.store(true, Ordering::Relaxed);
            otherwise
        })
    }
}

impl Shadows {
    fn find(&self, spec: &ShadowSpec) -> Option<&Shadow> {
        self.all.iter().find(|shadow| shadow.spec == *spec)
    }
}

impl Account {
    fn beginning_with(cell: u64) -> Account {
        Account { cell: AtomicU64::new(cell), ..Account::default() }
    }

    fn cell(&self) -> u64 {
        self.cell.load(Ordering::Relaxed)
    }

    /// Changes the cell by a pure function of the old one. Of several workers none is lost.
    fn change(&self, change: impl Fn(u64) -> u64) {
        let changed = |cell| Some(change(cell));
        let _ = self.cell.fetch_update(Ordering::Relaxed, Ordering::Relaxed, changed);
    }
}

fn publish_ramps(places: &[Place], outlook: &Outlook) {
    let ramps = outlook.ramps.iter().copied().chain(std::iter::repeat(FULL));
    for (place, ramp) in places.iter().zip(ramps) {
        place.ramp.store(ramp, Ordering::Relaxed);
    }
}

impl Pool {
    /// Whether other algorithms decide beside its own.
    #[inline]
    pub fn has_shadows(&self) -> bool {
        self.shadows.is_some()
    }

    /// Where the keys of its shadows come from, one after the other; none for one that hashes nothing.
    pub fn shadow_keys(&self) -> impl Iterator<Item = Option<&KeySource>> {
        self.spec.shadows.iter().map(|shadow| shadow.algorithm.key())
    }
}

#[cfg(test)]
mod tests;
