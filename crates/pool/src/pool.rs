//! A pool: endpoints, who of them is eligible, and the balancer compiled over those.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use arc_swap::ArcSwap;
use subak_balance::{
    Algorithm, Balancer, Endpoints, Entry, Key, LoadView, PickRequest, Previous, Recipe, Tickets,
};
use subak_base::{BitSet, Tick};

use crate::endpoint::{Endpoint, EndpointIds};
use crate::lease::{Lease, Outcome};
use crate::retry_budget::RetryBudget;
use crate::spec::{BackOffSpec, PoolSpec, RetrySpec};
use crate::wait::WaitQueue;

/// A balancer is compiled at most this often; until then picks skip over who is left out.
const COMPILE_PAUSE: Duration = Duration::from_millis(100);

/// The endpoints of one pool in one snapshot.
#[derive(Debug)]
pub struct Pool {
    name: String,
    algorithm: Algorithm,
    members: Box<[Member]>,
    list: Endpoints,
    retry: RetrySpec,
    back_off: BackOffSpec,
    queue_length: usize,
    compiled: ArcSwap<Compiled>,
    compiling: Mutex<Tick>,
    continuing: Arc<Continuing>,
}

/// An endpoint with what this snapshot says of it.
#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) endpoint: Arc<Endpoint>,
    pub(crate) max_in_flight: Option<u32>,
    pub(crate) max_connections: Option<u32>,
}

/// What goes on over reloads: the sequence's position, who waits, what was retried.
#[derive(Debug, Default)]
struct Continuing {
    tickets: TicketCounter,
    queue: WaitQueue,
    budget: RetryBudget,
}

/// The position all workers share, on a cache line of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
struct TicketCounter(AtomicU64);

impl Tickets for TicketCounter {
    #[inline]
    fn draw(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed)
    }
}

/// A balancer and the set it was compiled for, published as one.
#[derive(Debug)]
struct Compiled {
    eligible: BitSet,
    balancer: Balancer,
}

/// What a pick needs to know of its request.
#[derive(Clone, Copy, Debug)]
pub struct Acquire<'a> {
    /// What hash algorithms look at.
    pub key: Key<'a>,
    /// A random number, drawn for this request.
    pub random: u64,
    /// The moment of the pick.
    pub now: Tick,
    /// Whether the request has stood in line and is its turn; others do not overtake the line.
    pub in_turn: bool,
}

/// Why no endpoint was given.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// Some could serve the request, but all of those are at their cap: wait in line.
    Saturated,
    /// None can: there is none, none has weight, or all were tried.
    NoEndpoint,
}

impl Pool {
    /// Builds a pool. Endpoints that `ids` knows keep their state, and `previous`, the pool of the same
    /// name in the snapshot before, hands over its position, its line and each endpoint's debt.
    ///
    /// # Panics
    /// When two endpoints have one identity; the configuration does not allow it.
    pub fn build(
        spec: &PoolSpec,
        ids: &mut EndpointIds,
        previous: Option<&Pool>,
        now: Tick,
    ) -> Pool {
        let members: Box<[Member]> = spec
            .endpoints
            .iter()
            .map(|endpoint| Member {
                endpoint: ids.resolve(&spec.name, endpoint),
                max_in_flight: endpoint.max_in_flight,
                max_connections: endpoint.max_connections,
            })
            .collect();
        let entries = spec.endpoints.iter().map(|endpoint| Entry {
            identity: endpoint.identity(),
            name: endpoint.name.clone(),
            weight: endpoint.weight,
        });
        let list = Endpoints::new(entries.collect()).expect("endpoints are unique in a pool");
        let continuing = previous.map_or_else(Arc::default, |previous| previous.continuing.clone());
        let eligible = eligible(&members, &list, now);
        let before = previous.map(|previous| (previous, previous.compiled.load()));
        let balancer = Balancer::build(Recipe {
            algorithm: &spec.algorithm,
            endpoints: &list,
            eligible: &eligible,
            previous: before.as_ref().map(|(pool, compiled)| Previous {
                balancer: &compiled.balancer,
                endpoints: &pool.list,
                ticket: pool.continuing.tickets.0.load(Ordering::Relaxed),
            }),
        });
        Pool {
            name: spec.name.clone(),
            algorithm: spec.algorithm.clone(),
            members,
            list,
            retry: spec.retry,
            back_off: spec.back_off,
            queue_length: spec.queue_length,
            compiled: ArcSwap::from_pointee(Compiled { eligible, balancer }),
            compiling: Mutex::new(now),
            continuing,
        }
    }

    /// As configured.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The algorithm in force.
    pub fn algorithm(&self) -> &Algorithm {
        &self.algorithm
    }

    /// The endpoints in configured order.
    pub fn endpoints(&self) -> impl ExactSizeIterator<Item = &Arc<Endpoint>> {
        self.members.iter().map(|member| &member.endpoint)
    }

    /// Where requests wait while every endpoint is at its cap.
    pub fn queue(&self) -> &WaitQueue {
        &self.continuing.queue
    }

    /// How many may wait.
    pub fn queue_length(&self) -> usize {
        self.queue_length
    }

    /// Takes one retry from the pool's budget if there is one.
    pub fn withdraw_retry(&self, now: Tick) -> bool {
        let requests = self.members.iter().map(|member| member.endpoint.hits()).sum();
        self.continuing.budget.withdraw(&self.retry, requests, now)
    }

    /// Picks an endpoint that is not in `tried` and takes a request slot of it.
    ///
    /// Endpoints in back-off are left out while another can serve the request; when none can, the one
    /// whose back-off ends first is given: an answer from it is better than a certain failure.
    ///
    /// # Errors
    /// [`Refusal`] says whether waiting can help.
    #[inline]
    pub fn acquire(&self, request: &Acquire<'_>, tried: &BitSet) -> Result<Lease<'_>, Refusal> {
        if self.queue().waiting() > 0 && !request.in_turn {
            return Err(Refusal::Saturated);
        }
        let compiled = self.compiled.load();
        let view = View { members: &self.members };
        let mut skipped = None;
        let mut saturated = false;
        // Every turn but the last excludes one endpoint more.
        for _ in 0..=self.members.len() {
            let picked = compiled.balancer.pick(
                &view,
                &PickRequest {
                    tickets: &self.continuing.tickets,
                    random: request.random,
                    now: request.now,
                    key: request.key,
                    eligible: &compiled.eligible,
                    tried: skipped.as_ref().unwrap_or(tried),
                },
            );
            let Some(index) = picked else { break };
            let member = &self.members[index];
            if !member.endpoint.is_backing_off(request.now) {
                if member.endpoint.dispatch(member.max_in_flight) {
                    return Ok(Lease::new(self, index));
                }
                saturated = true;
            }
            skipped.get_or_insert_with(|| tried.clone()).insert(index);
        }
        self.last_resort(&compiled, tried, saturated, request.now)
    }

    /// An untried endpoint that the compiled balancer does not know of: its back-off has ended since,
    /// or, where nobody else is left, ends first.
    #[cold]
    fn last_resort(
        &self,
        compiled: &Compiled,
        tried: &BitSet,
        saturated: bool,
        now: Tick,
    ) -> Result<Lease<'_>, Refusal> {
        let mut left: Vec<usize> = (0..self.members.len())
            .filter(|index| !tried.contains(*index) && self.list.entry(*index).weight.get() > 0)
            .filter(|index| {
                let backing_off = self.members[*index].endpoint.is_backing_off(now);
                if backing_off { !saturated } else { !compiled.eligible.contains(*index) }
            })
            .collect();
        left.sort_by_key(|index| self.members[*index].endpoint.back_off.until());
        let refusal = match saturated || !left.is_empty() {
            true => Refusal::Saturated,
            false => Refusal::NoEndpoint,
        };
        let taken = left.into_iter().find(|index| {
            let member = &self.members[*index];
            member.endpoint.dispatch(member.max_in_flight)
        });
        taken.map(|index| Lease::new(self, index)).ok_or(refusal)
    }

    /// Whether any endpoint that takes requests is not in `tried`.
    pub fn has_untried(&self, tried: &BitSet) -> bool {
        let takes = |index: &usize| self.list.entry(*index).weight.get() > 0;
        (0..self.members.len()).filter(takes).any(|index| !tried.contains(index))
    }

    /// Compiles the balancer anew if who is eligible has changed; at most ten times a second. Called
    /// at every failure, and regularly by the control side, which ends back-offs.
    pub fn refresh(&self, now: Tick) {
        // Whoever holds the lock is doing just this.
        let Ok(mut last) = self.compiling.try_lock() else { return };
        if now.since(*last) < COMPILE_PAUSE {
            return;
        }
        let before = self.compiled.load();
        let eligible = eligible(&self.members, &self.list, now);
        if eligible == before.eligible {
            return;
        }
        *last = now;
        let balancer = Balancer::build(Recipe {
            algorithm: &self.algorithm,
            endpoints: &self.list,
            eligible: &eligible,
            previous: Some(Previous {
                balancer: &before.balancer,
                endpoints: &self.list,
                ticket: self.continuing.tickets.0.load(Ordering::Relaxed),
            }),
        });
        self.compiled.store(Arc::new(Compiled { eligible, balancer }));
    }

    #[inline]
    pub(crate) fn member(&self, index: usize) -> &Member {
        &self.members[index]
    }

    /// Draws the conclusions of a settled dispatch.
    #[inline]
    pub(crate) fn observe(&self, index: usize, outcome: Outcome, now: Tick) {
        let endpoint = &self.members[index].endpoint;
        match outcome {
            Outcome::Completed => {
                if endpoint.back_off.succeeded() {
                    self.refresh(now);
                }
            }
            Outcome::Unreachable => {
                endpoint.count_failure();
                endpoint.back_off.failed(&self.back_off, now);
                self.refresh(now);
            }
            Outcome::Failed => endpoint.count_failure(),
            Outcome::Cancelled => {}
        }
    }
}

fn eligible(members: &[Member], list: &Endpoints, now: Tick) -> BitSet {
    let mut set = BitSet::with_capacity(members.len());
    for (index, member) in members.iter().enumerate() {
        if list.entry(index).weight.get() > 0 && !member.endpoint.is_backing_off(now) {
            set.insert(index);
        }
    }
    set
}

/// The live load that algorithms look at.
struct View<'a> {
    members: &'a [Member],
}

impl LoadView for View<'_> {
    #[inline]
    fn in_flight(&self, index: usize) -> u32 {
        self.members[index].endpoint.in_flight()
    }
}

#[cfg(test)]
mod tests;
