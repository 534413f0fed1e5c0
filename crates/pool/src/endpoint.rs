//! One endpoint's shared state: what every worker counts and sees.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use subak_base::{Address, EndpointId, Tick};
use subak_health::{CLIENT_WINDOW, Client, Sample, State};

use crate::back_off::BackOff;
use crate::latencies::Latencies;
use crate::spec::EndpointSpec;
use crate::wait::WaitQueue;

/// A place that serves requests, with what has been observed of it. Kept across reloads as long as
/// its pool and its identity stay, whatever happens to its weight or place.
#[derive(Debug)]
#[repr(align(128))]
pub struct Endpoint {
    id: EndpointId,
    identity: String,
    stick_key: u64,
    name: String,
    address: Address,
    in_flight: AtomicU32,
    connections: AtomicU32,
    streams: AtomicU32,
    hits: AtomicU64,
    failures: AtomicU64,
    /// Those of them that timed out.
    late: AtomicU64,
    /// Failures since the last success, timeouts left out.
    consecutive: AtomicU32,
    /// Successes, and the sum of their latencies in µs in pools that eject for those.
    completed: AtomicU64,
    latency_us: AtomicU64,
    /// Responses under way that are part of that sum.
    lingered: AtomicU64,
    /// Whom it has answered last, and when that was another than the time before, in ns.
    last_client: AtomicU32,
    mixed_at: AtomicU64,
    /// Its state as of the control side's last word, a [`State`] by its place in [`State::ALL`].
    state: AtomicU8,
    retired: AtomicBool,
    pub(crate) back_off: BackOff,
    connection_line: WaitQueue,
    latencies: Arc<Latencies>,
}

impl Endpoint {
    fn new(id: EndpointId, spec: &EndpointSpec) -> Endpoint {
        let identity = spec.identity();
        Endpoint {
            id,
            stick_key: stick_key(&identity),
            identity,
            name: spec.name.clone(),
            address: spec.address.clone(),
            in_flight: AtomicU32::new(0),
            connections: AtomicU32::new(0),
            streams: AtomicU32::new(0),
            hits: AtomicU64::new(0),
            failures: AtomicU64::new(0),
            late: AtomicU64::new(0),
            consecutive: AtomicU32::new(0),
            completed: AtomicU64::new(0),
            latency_us: AtomicU64::new(0),
            lingered: AtomicU64::new(0),
            last_client: AtomicU32::new(0),
            mixed_at: AtomicU64::new(0),
            state: AtomicU8::new(READY),
            retired: AtomicBool::new(false),
            back_off: BackOff::default(),
            connection_line: WaitQueue::default(),
            latencies: Arc::default(),
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

    /// What a client can be given to be recognised by: see [`Pool::stick`](crate::Pool::stick). A pure
    /// function of the identity, so it is good over restarts and for other Subaks.
    pub fn stick_key(&self) -> u64 {
        self.stick_key
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

    /// Requests that failed here so far: no answer, a broken one, or a 5xx.
    pub fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }

    /// Connections open now, idle ones included.
    pub fn connections(&self) -> u32 {
        self.connections.load(Ordering::Relaxed)
    }

    /// Streams of its connections now, where requests share them.
    pub fn streams(&self) -> u32 {
        self.streams.load(Ordering::Relaxed)
    }

    /// A request has a stream of one of its connections.
    #[inline]
    pub fn stream_opened(&self) {
        self.streams.fetch_add(1, Ordering::Relaxed);
    }

    /// It has it no more.
    #[inline]
    pub fn stream_closed(&self) {
        self.streams.fetch_sub(1, Ordering::Relaxed);
    }

    /// Why it refused the connection that is about to be counted as such; forgotten when it answers
    /// again. For what is seldom: behind a lock.
    pub fn note_refusal(&self, why: &str) {
        self.back_off.note(why);
    }

    /// Whether it is left out at this moment, because it refused or broke requests.
    #[inline]
    pub fn is_backing_off(&self, now: Tick) -> bool {
        self.back_off.is_active(now)
    }

    /// Whether it has not answered since it refused or broke requests, its time over or not.
    pub fn is_in_back_off(&self) -> bool {
        self.back_off.has_begun()
    }

    /// Whether it takes requests at this moment like any other, whatever a balancer was compiled from.
    #[inline]
    pub(crate) fn is_open(&self, now: Tick) -> bool {
        self.state.load(Ordering::Relaxed) == READY && !self.is_backing_off(now)
    }

    /// Its state as of the control side's last word.
    pub(crate) fn state(&self) -> State {
        State::ALL[usize::from(self.state.load(Ordering::Relaxed)) % State::ALL.len()]
    }

    /// Shows a state to picks at once, before a balancer is compiled. They see a back-off themselves.
    pub(crate) fn show(&self, state: State) {
        let state = if state == State::BackOff { State::Ready } else { state };
        let place = State::ALL.iter().position(|one| *one == state).unwrap_or(0);
        self.state.store(place as u8, Ordering::Relaxed);
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
        let cap = cap.unwrap_or(NO_CAP);
        take_below(&self.connections, cap).then(|| ConnectionSlot { endpoint: self.clone() })
    }

    /// Takes a request slot, unless `cap` are in flight.
    #[inline]
    pub(crate) fn dispatch(&self, cap: u32) -> bool {
        let taken = take_below(&self.in_flight, cap);
        if taken {
            self.hits.fetch_add(1, Ordering::Relaxed);
        }
        taken
    }

    /// Gives a request slot back that was taken for nothing.
    #[cold]
    pub(crate) fn recall(&self) {
        self.hits.fetch_sub(1, Ordering::Relaxed);
        self.settle();
    }

    /// Gives a request slot back.
    #[inline]
    pub(crate) fn settle(&self) {
        // Ordered before the look at the wait queue: see `WaitQueue`.
        self.in_flight.fetch_sub(1, Ordering::SeqCst);
    }

    /// It has answered to the end, so many nanoseconds after the dispatch. Tunnels are not for here.
    #[inline]
    pub fn count_answer(&self, nanos: u64) {
        self.latencies.count(nanos);
    }

    /// How long its answers took.
    pub(crate) fn latencies(&self) -> &Arc<Latencies> {
        &self.latencies
    }

    /// Answers how many have failed in a row.
    pub(crate) fn count_failure(&self) -> u32 {
        self.failures.fetch_add(1, Ordering::Relaxed);
        self.consecutive.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Counts a timeout, which is no part of a row.
    pub(crate) fn count_late(&self) {
        self.failures.fetch_add(1, Ordering::Relaxed);
        self.late.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts an answer to this client, and ends a row of failures.
    #[inline]
    pub(crate) fn count_success(&self, client: Client, now: Tick) {
        self.completed.fetch_add(1, Ordering::Relaxed);
        if self.consecutive.load(Ordering::Relaxed) != 0 {
            self.consecutive.store(0, Ordering::Relaxed);
        }
        let last = self.last_client.load(Ordering::Relaxed);
        if last != client.number() {
            self.last_client.store(client.number(), Ordering::Relaxed);
            if last != 0 {
                self.mixed_at.store(now.0, Ordering::Relaxed);
            }
        }
    }

    /// Whether it has answered several clients lately.
    pub(crate) fn is_mixed(&self, now: Tick) -> bool {
        let mixed_at = self.mixed_at.load(Ordering::Relaxed);
        mixed_at != 0 && now.since(Tick(mixed_at)) <= CLIENT_WINDOW
    }

    pub(crate) fn count_latency(&self, latency: Duration) {
        let latency_us = u64::try_from(latency.as_micros()).unwrap_or(u64::MAX);
        self.latency_us.fetch_add(latency_us, Ordering::Relaxed);
    }

    /// A response is under way on which was waited for so long.
    pub(crate) fn count_lingering(&self, waited: Duration) {
        self.lingered.fetch_add(1, Ordering::Relaxed);
        self.count_latency(waited);
    }

    /// How many it has completed, and how many have failed.
    pub(crate) fn ended(&self) -> (u64, u64) {
        (self.completed.load(Ordering::Relaxed), self.failures())
    }

    /// The counters that ejections are judged by.
    pub(crate) fn sample(&self) -> Sample {
        Sample {
            failed: self.failures(),
            late: self.late.load(Ordering::Relaxed),
            consecutive: self.consecutive.load(Ordering::Relaxed),
            completed: self.completed.load(Ordering::Relaxed),
            latency_us: self.latency_us.load(Ordering::Relaxed),
            lingered: self.lingered.load(Ordering::Relaxed),
            ..Sample::default()
        }
    }
}

/// The place of [`State::Ready`] in [`State::ALL`].
const READY: u8 = 0;

/// A cap that is none.
pub(crate) const NO_CAP: u32 = u32::MAX;

#[inline]
fn take_below(counter: &AtomicU32, cap: u32) -> bool {
    if cap == NO_CAP {
        counter.fetch_add(1, Ordering::Relaxed);
        return true;
    }
    counter
        .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |now| (now < cap).then(|| now + 1))
        .is_ok()
}

/// FNV-1a over 64 bits, then the finaliser of SplitMix64: identities that differ in their last digit
/// differ everywhere. Frozen: clients come back with it.
fn stick_key(identity: &str) -> u64 {
    let fold = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3);
    let mut z = identity.bytes().fold(0xCBF2_9CE4_8422_2325, fold);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
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

#[cfg(test)]
mod tests {
    use super::stick_key;

    #[test]
    fn a_stick_key_is_what_it_always_was() {
        let keys = ["", "http://127.0.0.1:80", "http://127.0.0.1:81", "http://[::1]:80"];
        assert_eq!(
            keys.map(stick_key),
            [
                0xF52A_15E9_A9B5_E89B,
                0x032D_DFB9_A58F_AB69,
                0x38FB_3454_5FEA_F836,
                0x3C97_4037_20B5_C3F6,
            ]
        );
    }
}
