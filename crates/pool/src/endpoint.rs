//! One endpoint's shared state: what every worker counts and sees.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use subak_base::{Address, EndpointId, Tick};

use crate::back_off::BackOff;
use crate::spec::EndpointSpec;
use crate::wait::WaitQueue;

/// A place that serves requests, with what has been observed of it. Kept across reloads as long as
/// its pool and its identity stay, whatever happens to its weight or place.
#[derive(Debug)]
#[repr(align(128))]
pub struct Endpoint {
    id: EndpointId,
    identity: String,
    name: String,
    address: Address,
    in_flight: AtomicU32,
    connections: AtomicU32,
    hits: AtomicU64,
    failures: AtomicU64,
    retired: AtomicBool,
    pub(crate) back_off: BackOff,
    connection_line: WaitQueue,
}

impl Endpoint {
    fn new(id: EndpointId, spec: &EndpointSpec) -> Endpoint {
        Endpoint {
            id,
            identity: spec.identity(),
            name: spec.name.clone(),
            address: spec.address.clone(),
            in_flight: AtomicU32::new(0),
            connections: AtomicU32::new(0),
            hits: AtomicU64::new(0),
            failures: AtomicU64::new(0),
            retired: AtomicBool::new(false),
            back_off: BackOff::default(),
            connection_line: WaitQueue::default(),
        }
    }

    /// Stable over reloads.
    pub fn id(&self) -> EndpointId {
        self.id
    }

    /// Protocol and address.
    pub fn identity(&self) -> &str {
        &self.identity
    }

    /// As it was first written.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Where it is.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Requests dispatched and not settled.
    #[inline]
    pub fn in_flight(&self) -> u32 {
        self.in_flight.load(Ordering::Relaxed)
    }

    /// Requests dispatched so far.
    pub fn hits(&self) -> u64 {
        self.hits.load(Ordering::Relaxed)
    }

    /// Requests that failed here so far.
    pub fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }

    /// Connections open now, idle ones included.
    pub fn connections(&self) -> u32 {
        self.connections.load(Ordering::Relaxed)
    }

    /// Whether it is left out at this moment, because it refused or timed out.
    #[inline]
    pub fn is_backing_off(&self, now: Tick) -> bool {
        self.back_off.is_active(now)
    }

    /// Whether no pool has it any more: connections to it are not kept.
    #[inline]
    pub fn is_retired(&self) -> bool {
        self.retired.load(Ordering::Relaxed)
    }

    /// Where requests wait that have this endpoint but no connection to it.
    pub fn connection_line(&self) -> &WaitQueue {
        &self.connection_line
    }

    /// A slot for one more connection, unless `cap` are open.
    pub fn open_connection(self: &Arc<Self>, cap: Option<u32>) -> Option<ConnectionSlot> {
        take_below(&self.connections, cap).then(|| ConnectionSlot { endpoint: self.clone() })
    }

    /// Takes a request slot, unless `cap` are in flight.
    #[inline]
    pub(crate) fn dispatch(&self, cap: Option<u32>) -> bool {
        let taken = take_below(&self.in_flight, cap);
        if taken {
            self.hits.fetch_add(1, Ordering::Relaxed);
        }
        taken
    }

    /// Gives a request slot back.
    #[inline]
    pub(crate) fn settle(&self) {
        // Ordered before the look at the wait queue: see `WaitQueue`.
        self.in_flight.fetch_sub(1, Ordering::SeqCst);
    }

    pub(crate) fn count_failure(&self) {
        self.failures.fetch_add(1, Ordering::Relaxed);
    }
}

#[inline]
fn take_below(counter: &AtomicU32, cap: Option<u32>) -> bool {
    match cap {
        None => {
            counter.fetch_add(1, Ordering::Relaxed);
            true
        }
        Some(cap) => counter
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |now| (now < cap).then(|| now + 1))
            .is_ok(),
    }
}

/// One open connection in the books of its endpoint. Outlives the requests that use it.
#[derive(Debug)]
pub struct ConnectionSlot {
    endpoint: Arc<Endpoint>,
}

impl ConnectionSlot {
    /// The endpoint it leads to.
    pub fn endpoint(&self) -> &Arc<Endpoint> {
        &self.endpoint
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.endpoint.connections.fetch_sub(1, Ordering::SeqCst);
        self.endpoint.connection_line.notify();
    }
}

/// The endpoints of the process by pool and identity, and the numbers given out so far.
#[derive(Debug, Default)]
pub struct EndpointIds {
    known: HashMap<(String, String), Arc<Endpoint>>,
    next: u32,
}

impl EndpointIds {
    /// No endpoint yet.
    pub fn new() -> EndpointIds {
        EndpointIds::default()
    }

    /// The endpoint of that pool and identity, as it is known or made now.
    pub(crate) fn resolve(&mut self, pool: &str, spec: &EndpointSpec) -> Arc<Endpoint> {
        let next = &mut self.next;
        let known = self.known.entry((pool.to_owned(), spec.identity()));
        let endpoint = known.or_insert_with(|| {
            let id = EndpointId(*next);
            *next += 1;
            Arc::new(Endpoint::new(id, spec))
        });
        endpoint.clone()
    }

    /// Retires and forgets endpoints that no pool in `pools` has. What still runs on them finishes.
    pub fn keep<'a>(&mut self, pools: impl Iterator<Item = &'a crate::Pool>) {
        let used: std::collections::HashSet<_> =
            pools.flat_map(|pool| pool.endpoints().map(|endpoint| endpoint.id())).collect();
        self.known.retain(|_, endpoint| {
            let is_used = used.contains(&endpoint.id());
            endpoint.retired.store(!is_used, Ordering::Relaxed);
            is_used
        });
    }
}
