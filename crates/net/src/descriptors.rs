//! File descriptors: how many there are, and how many of them clients and endpoints may hold.
#![allow(unsafe_code)]

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use subak_base::Tick;

/// Descriptors the process needs whatever the traffic: its files, signals, and the few sockets and
/// event queues of a usual configuration.
const OWN: usize = 64;
/// As far as they are not counted one by one: standard streams, signals, the control side, files that
/// a reload reads.
const UNCOUNTED: usize = 24;
/// What each worker has beside its listening sockets: an event queue, a way to wake it, a spare.
const PER_WORKER: usize = 4;
/// The log is told of a shortage at most this often.
const COMPLAINT_PAUSE: Duration = Duration::from_secs(10);

/// Raises the soft limit of open files to the hard one; answers with the limit in force.
///
/// # Errors
/// What the system calls report.
pub fn raise_descriptor_limit() -> io::Result<usize> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is a valid rlimit to write to.
    if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) } != 0 {
        return Err(io::Error::last_os_error());
    }
    if limit.rlim_cur < limit.rlim_max {
        let raised = libc::rlimit { rlim_cur: limit.rlim_max, rlim_max: limit.rlim_max };
        // SAFETY: `raised` is a valid rlimit to read from.
        if unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raised) } == 0 {
            limit = raised;
        }
    }
    Ok(usize::try_from(limit.rlim_cur).unwrap_or(usize::MAX))
}

/// What decides how many clients there may be.
#[derive(Clone, Copy, Debug)]
pub struct Allowance {
    /// Open files of the process at the most.
    pub limit: usize,
    /// Workers.
    pub workers: usize,
    /// Addresses that every worker listens on.
    pub addresses: usize,
    /// What the configuration says; none = as many as there is room for.
    pub configured: Option<usize>,
}

impl Allowance {
    /// Clients that the limit of open files leaves room for.
    pub fn room(&self) -> usize {
        self.traffic() / 4 * 3
    }

    /// Descriptors for clients and endpoints together.
    fn traffic(&self) -> usize {
        let own = UNCOUNTED + self.workers * (PER_WORKER + self.addresses);
        self.limit.saturating_sub(own.max(OWN)).max(4)
    }

    fn most_clients(&self) -> usize {
        let room = self.room();
        self.configured.map_or(room, |configured| configured.min(room))
    }

    fn most_endpoints(&self) -> usize {
        let traffic = self.traffic();
        traffic - self.most_clients().min(traffic / 4)
    }
}

/// How many client connections the process holds and may hold.
#[derive(Debug)]
pub struct Descriptors {
    clients: AtomicUsize,
    most_clients: AtomicUsize,
    endpoints: AtomicUsize,
    most_endpoints: AtomicUsize,
    /// How often a client came and there was no room for one more,
    full: AtomicU64,
    /// and how often there was no descriptor for a connection.
    none: AtomicU64,
    /// When the log was last told of a shortage, in ns; 0 = never.
    complained: AtomicU64,
}

impl Descriptors {
    /// Counts against what is configured, or else against what is left of the process's limit: a
    /// quarter of that stays for endpoints, and a quarter for clients.
    pub fn new(allowance: &Allowance) -> Descriptors {
        Descriptors {
            clients: AtomicUsize::new(0),
            most_clients: AtomicUsize::new(allowance.most_clients()),
            endpoints: AtomicUsize::new(0),
            most_endpoints: AtomicUsize::new(allowance.most_endpoints()),
            full: AtomicU64::new(0),
            none: AtomicU64::new(0),
            complained: AtomicU64::new(0),
        }
    }

    /// Takes a changed configuration over.
    pub fn configure(&self, allowance: &Allowance) {
        self.most_clients.store(allowance.most_clients(), Ordering::Relaxed);
        self.most_endpoints.store(allowance.most_endpoints(), Ordering::Relaxed);
    }

    /// Client connections now.
    pub fn clients(&self) -> usize {
        self.clients.load(Ordering::Relaxed)
    }

    /// Client connections at the most.
    pub fn most_clients(&self) -> usize {
        self.most_clients.load(Ordering::Relaxed)
    }

    /// A place for one more connection to an endpoint; `None`: there are as many as allowed, and the
    /// rest is for clients.
    pub fn endpoint(self: &Arc<Self>) -> Option<EndpointDescriptor> {
        let most = self.most_endpoints.load(Ordering::Relaxed);
        let below = |now: usize| (now < most).then(|| now + 1);
        match self.endpoints.fetch_update(Ordering::Relaxed, Ordering::Relaxed, below) {
            Ok(_) => Some(EndpointDescriptor(self.clone())),
            Err(_) => {
                self.note_none();
                None
            }
        }
    }

    /// Whether one more client may be accepted.
    pub(crate) fn has_room(&self) -> bool {
        self.clients() < self.most_clients()
    }

    /// A client comes, and there is no room for one more.
    #[cold]
    pub(crate) fn note_full(&self) {
        self.full.fetch_add(1, Ordering::Relaxed);
    }

    /// How often that was so.
    pub fn found_full(&self) -> u64 {
        self.full.load(Ordering::Relaxed)
    }

    /// There is no descriptor for a connection.
    #[cold]
    pub fn note_none(&self) {
        self.none.fetch_add(1, Ordering::Relaxed);
    }

    /// How often that was so.
    pub fn found_none(&self) -> u64 {
        self.none.load(Ordering::Relaxed)
    }

    /// Whether the log is to be told of a shortage now. One of several workers that ask hears yes.
    pub(crate) fn may_complain(&self, now: Tick) -> bool {
        let last = self.complained.load(Ordering::Relaxed);
        let is_due = last == 0 || now.since(Tick(last)) >= COMPLAINT_PAUSE;
        let mine = |last| {
            let now = now.0.max(1);
            self.complained.compare_exchange(last, now, Ordering::Relaxed, Ordering::Relaxed)
        };
        is_due && mine(last).is_ok()
    }

    pub(crate) fn add(&self) {
        self.clients.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn remove(&self) {
        self.clients.fetch_sub(1, Ordering::Relaxed);
    }
}

/// One connection to an endpoint in the books of the process.
#[derive(Debug)]
pub struct EndpointDescriptor(Arc<Descriptors>);

impl Drop for EndpointDescriptor {
    fn drop(&mut self) {
        self.0.endpoints.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALLOWANCE: Allowance =
        Allowance { limit: 1064, workers: 2, addresses: 2, configured: None };

    #[test]
    fn of_all_workers_one_complains_once_in_ten_seconds() {
        let descriptors = Descriptors::new(&ALLOWANCE);
        let at = |seconds: u64| Tick::from_millis(seconds * 1000);
        let complaints = [5, 5, 14, 15, 15, 24, 25].map(|now| descriptors.may_complain(at(now)));
        assert_eq!(complaints, [true, false, false, true, false, false, true]);
    }

    #[test]
    fn a_quarter_stays_for_endpoints_and_the_configuration_can_only_ask_for_less() {
        let most = |allowance| Descriptors::new(&allowance).most_clients();
        assert_eq!(most(ALLOWANCE), 750);
        assert_eq!(most(Allowance { configured: Some(100), ..ALLOWANCE }), 100);
        assert_eq!(most(Allowance { configured: Some(100_000), ..ALLOWANCE }), 750);
        assert_eq!(most(Allowance { limit: 10, ..ALLOWANCE }), 3);
        assert_eq!(most(Allowance { workers: 8, addresses: 20, ..ALLOWANCE }), 636);
    }

    #[test]
    fn a_quarter_stays_for_clients_and_places_of_endpoints_come_back() {
        let held = |allowance| {
            let descriptors = Arc::new(Descriptors::new(&allowance));
            let held: Vec<_> = std::iter::from_fn(|| descriptors.endpoint()).collect();
            assert_eq!(descriptors.found_none(), 1);
            let most = held.len();
            drop(held);
            assert!(descriptors.endpoint().is_some());
            most
        };
        assert_eq!(held(ALLOWANCE), 750);
        assert_eq!(held(Allowance { configured: Some(100), ..ALLOWANCE }), 900);
        assert_eq!(held(Allowance { limit: 10, ..ALLOWANCE }), 3);
    }
}
