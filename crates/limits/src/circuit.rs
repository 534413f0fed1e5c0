//! Is it of any use to ask this pool now? A circuit that opens when too much of it fails.
//!
//! Closed, it counts how requests end: so many failures in a row, or too large a share of those that
//! ended within the window, open it. Open, everything is refused until a time has passed. Then it is
//! half open: a few requests are let through as trials. All of them well: it closes and begins to count
//! anew; one failed: it is open for another such time. An ejection leaves out one endpoint because
//! others do better; a circuit gives up a whole pool because nobody does.
//!
//! Where a pool answers several clients, failures of one alone do not open it: a client can ask for what
//! fails.
//!
//! A request that was slower than `slow` counts as a failure. What says nothing of the pool, because
//! the client left or the request never came to an endpoint, counts as nothing.
//!
//! Cost while closed: one addition to enter, two to leave. The window is ten slices, so it is right to
//! a tenth of itself.

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use subak_base::Tick;

use crate::clients::Clients;

/// Slices of a window.
const SLICES: usize = 10;

/// How long one waits who finds all trials under way.
const TRIAL_WAIT: Duration = Duration::from_secs(1);

/// When a circuit opens, and for how long.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CircuitSpec {
    /// Failures in a row that open it; none: they do not.
    pub consecutive: Option<NonZeroU32>,
    /// The share of requests in the window that opens it, in thousandths; none: none does.
    pub share_per_mille: Option<u32>,
    /// What the share is of.
    pub window: Duration,
    /// Requests in the window below which the share says nothing.
    pub least: u32,
    /// Slower than this is failed; none: however slow.
    pub slow: Option<Duration>,
    /// Requests at once, beyond which they are refused whatever the state; none: no limit.
    pub in_flight: Option<NonZeroU32>,
    /// How long it stays open.
    pub open: Duration,
    /// Trials that have to be well before it closes.
    pub trials: NonZeroU32,
}

/// In which state a circuit is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CircuitState {
    /// Requests go through.
    Closed,
    /// They are refused, for so long.
    Open(Duration),
    /// A few are let through.
    HalfOpen,
}

impl CircuitState {
    /// As it is shown.
    pub fn name(self) -> &'static str {
        match self {
            CircuitState::Closed => "closed",
            CircuitState::Open(_) => "open",
            CircuitState::HalfOpen => "half_open",
        }
    }
}

/// How a request ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// The pool answered, after this time.
    Well(Duration),
    /// It did not, or with an error.
    Failed,
    /// It says nothing of the pool.
    Unknown,
}

/// Leave to go to the pool; to be given back by [`Circuit::settle`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub struct Entry {
    /// The half-open time of which this is a trial.
    trial: Option<u64>,
}

/// Why there is no leave.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NoEntry {
    /// It is open, for so long.
    Open(Duration),
    /// As many are under way as may be.
    Full,
}

/// A circuit at one moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CircuitTotals {
    /// Its state.
    pub state: CircuitState,
    /// How often it has opened.
    pub opened: u64,
    /// Requests refused because it was open,
    pub refused: u64,
    /// and because too many were under way.
    pub full: u64,
    /// Requests under way.
    pub in_flight: u32,
    /// Requests in the window, and how many of them failed.
    pub recent: (u32, u32),
    /// Failures in a row.
    pub row: u32,
}

/// The circuit of one pool. Shared by all threads.
#[derive(Debug)]
pub struct Circuit {
    spec: CircuitSpec,
    slice_ns: u64,
    /// Until when everything is refused, in nanoseconds; 0: it is closed.
    until: AtomicU64,
    in_flight: AtomicU32,
    row: AtomicU32,
    slices: [Slice; SLICES],
    clients: Clients,
    trials: Mutex<Trials>,
    opened: AtomicU64,
    refused: AtomicU64,
    full: AtomicU64,
}

#[derive(Debug, Default)]
struct Slice {
    /// Which slice of time it counts; 0: none yet.
    number: AtomicU64,
    /// All, and above 32 bits those that failed.
    ended: AtomicU64,
}

/// The half-open time, whether it has begun or not. Whoever changes the state holds it.
#[derive(Debug, Default)]
struct Trials {
    /// Which one, so that a trial of an earlier one counts for nothing.
    number: u64,
    under_way: u32,
    well: u32,
}

impl Circuit {
    /// A closed one.
    pub fn new(spec: CircuitSpec) -> Circuit {
        let slice = spec.window.as_nanos() / SLICES as u128;
        Circuit {
            slice_ns: u64::try_from(slice).unwrap_or(u64::MAX).max(1),
            spec,
            until: AtomicU64::new(0),
            in_flight: AtomicU32::new(0),
            row: AtomicU32::new(0),
            slices: Default::default(),
            clients: Clients::default(),
            trials: Mutex::default(),
            opened: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            full: AtomicU64::new(0),
        }
    }

    /// What it goes by.
    pub fn spec(&self) -> &CircuitSpec {
        &self.spec
    }

    /// Leave for one request.
    ///
    /// # Errors
    /// [`NoEntry`]; the request is not to be tried.
    #[inline]
    pub fn enter(&self, now: Tick) -> Result<Entry, NoEntry> {
        let most = self.spec.in_flight.map_or(u32::MAX, NonZeroU32::get);
        let more = |count: u32| (count < most).then(|| count + 1);
        if self.in_flight.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_err() {
            self.full.fetch_add(1, Ordering::Relaxed);
            return Err(NoEntry::Full);
        }
        if self.until.load(Ordering::Relaxed) == 0 {
            return Ok(Entry { trial: None });
        }
        let entered = self.try_it(now);
        if entered.is_err() {
            self.in_flight.fetch_sub(1, Ordering::Relaxed);
            self.refused.fetch_add(1, Ordering::Relaxed);
        }
        entered
    }

    /// Whether a request would be refused. Changes nothing.
    pub fn look(&self, now: Tick) -> Result<(), NoEntry> {
        let most = self.spec.in_flight.map_or(u32::MAX, NonZeroU32::get);
        if self.in_flight.load(Ordering::Relaxed) >= most {
            return Err(NoEntry::Full);
        }
        self.leave_for(&self.lock(), now).map(|_| ())
    }

    /// The request of this client (as a number; 0: unknown) is over. True when the state has changed by
    /// it.
    #[inline]
    pub fn settle(&self, entry: Entry, verdict: Verdict, client: u32, now: Tick) -> bool {
        self.in_flight.fetch_sub(1, Ordering::Relaxed);
        let verdict = match (verdict, self.spec.slow) {
            (Verdict::Well(took), Some(slow)) if took > slow => Verdict::Failed,
            (verdict, _) => verdict,
        };
        match entry.trial {
            Some(trial) => self.settle_trial(trial, verdict, now),
            // What began before it opened says nothing new.
            None if self.until.load(Ordering::Relaxed) != 0 => false,
            None => match verdict {
                Verdict::Well(_) => {
                    if self.row.load(Ordering::Relaxed) != 0 {
                        self.row.store(0, Ordering::Relaxed);
                    }
                    self.count(false, now);
                    self.clients.well(client, now);
                    false
                }
                Verdict::Failed => self.fail(client, now),
                Verdict::Unknown => false,
            },
        }
    }

    /// How it is.
    pub fn totals(&self, now: Tick) -> CircuitTotals {
        let state = match self.until.load(Ordering::Relaxed) {
            0 => CircuitState::Closed,
            until if until > now.0 => CircuitState::Open(Tick(until).since(now)),
            _ => CircuitState::HalfOpen,
        };
        CircuitTotals {
            state,
            opened: self.opened.load(Ordering::Relaxed),
            refused: self.refused.load(Ordering::Relaxed),
            full: self.full.load(Ordering::Relaxed),
            in_flight: self.in_flight.load(Ordering::Relaxed),
            recent: self.recent(now),
            row: self.row.load(Ordering::Relaxed),
        }
    }

    /// Leave while it is not closed, or has just closed.
    #[cold]
    fn try_it(&self, now: Tick) -> Result<Entry, NoEntry> {
        let mut trials = self.lock();
        let trial = self.leave_for(&trials, now)?;
        if trial.is_some() {
            trials.under_way += 1;
        }
        Ok(Entry { trial })
    }

    fn leave_for(&self, trials: &Trials, now: Tick) -> Result<Option<u64>, NoEntry> {
        match self.until.load(Ordering::Relaxed) {
            0 => Ok(None),
            until if until > now.0 => Err(NoEntry::Open(Tick(until).since(now))),
            _ if trials.under_way + trials.well < self.spec.trials.get() => Ok(Some(trials.number)),
            _ => Err(NoEntry::Open(TRIAL_WAIT.min(self.spec.open))),
        }
    }

    #[cold]
    fn settle_trial(&self, trial: u64, verdict: Verdict, now: Tick) -> bool {
        let mut trials = self.lock();
        if trials.number != trial {
            return false;
        }
        trials.under_way -= 1;
        match verdict {
            Verdict::Unknown => false,
            Verdict::Failed => {
                self.open(&mut trials, now);
                true
            }
            Verdict::Well(_) => {
                trials.well += 1;
                let closes = trials.well >= self.spec.trials.get();
                if closes {
                    *trials = Trials { number: trials.number + 1, under_way: 0, well: 0 };
                    self.row.store(0, Ordering::Relaxed);
                    self.slices.iter().for_each(|slice| slice.number.store(0, Ordering::Relaxed));
                    self.until.store(0, Ordering::Relaxed);
                }
                closes
            }
        }
    }

    #[cold]
    fn fail(&self, client: u32, now: Tick) -> bool {
        self.clients.failed(client, self.spec.window, now);
        let row = self.row.fetch_add(1, Ordering::Relaxed).saturating_add(1);
        self.count(true, now);
        let too_many = self.spec.consecutive.is_some_and(|most| row >= most.get());
        let too_large = self.spec.share_per_mille.is_some_and(|share| {
            let (all, failed) = self.recent(now);
            all >= self.spec.least && u64::from(failed) * 1000 >= u64::from(all) * u64::from(share)
        });
        if !(too_many || too_large) || !self.clients.agree(self.spec.window, now) {
            return false;
        }
        let mut trials = self.lock();
        let opens = self.until.load(Ordering::Relaxed) == 0;
        if opens {
            self.open(&mut trials, now);
        }
        opens
    }

    fn open(&self, trials: &mut Trials, now: Tick) {
        *trials = Trials { number: trials.number + 1, under_way: 0, well: 0 };
        self.opened.fetch_add(1, Ordering::Relaxed);
        self.until.store(now.after(self.spec.open).0.max(1), Ordering::Relaxed);
    }

    #[inline]
    fn count(&self, failed: bool, now: Tick) {
        let number = now.0 / self.slice_ns + 1;
        let slice = &self.slices[(number % SLICES as u64) as usize];
        let known = slice.number.load(Ordering::Relaxed);
        if known != number {
            let first =
                slice.number.compare_exchange(known, number, Ordering::Relaxed, Ordering::Relaxed);
            if first.is_ok() {
                slice.ended.store(0, Ordering::Relaxed);
            }
        }
        slice.ended.fetch_add(1 | u64::from(failed) << 32, Ordering::Relaxed);
    }

    /// All that ended within the window, and those that failed.
    fn recent(&self, now: Tick) -> (u32, u32) {
        let current = now.0 / self.slice_ns + 1;
        let slices = self.slices.iter().filter(|slice| {
            let number = slice.number.load(Ordering::Relaxed);
            number != 0 && number + SLICES as u64 > current
        });
        let sum: u64 = slices.map(|slice| slice.ended.load(Ordering::Relaxed)).sum();
        (sum as u32, (sum >> 32) as u32)
    }

    fn lock(&self) -> MutexGuard<'_, Trials> {
        self.trials.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
