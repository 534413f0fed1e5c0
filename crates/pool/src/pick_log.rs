//! What was a pick decided by? A bounded log of the latest picks with everything that each looked at,
//! so that a live decision can be repeated bit for bit.
//!
//! Off by default: a pick that is logged allocates, and takes one lock. A record holds the balancer it
//! was made by, so the log keeps alive those that its records need: with a log of some thousands of
//! picks, as a rule one or two.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::net::IpAddr;
use std::num::NonZeroUsize;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use subak_balance::{Key, LoadView, PickRequest, Tickets};
use subak_base::{BitSet, DecisionId, Tick};

use crate::acquire::Acquire;
use crate::eligibility::Compiled;
use crate::lease::Outcome;
use crate::pool::{Pool, View};

/// One pick.
#[derive(Clone, Debug)]
pub struct PickRecord {
    /// Counts the records of a log, from 1.
    pub number: u64,
    /// The request's; picks of one request have the same.
    pub decision: Option<DecisionId>,
    /// The pool's generation.
    pub generation: u64,
    /// The version of the balancer and its eligible set in that generation.
    pub version: u64,
    /// Who decided.
    pub by: PickedBy,
    /// The endpoints that could not be picked any more.
    pub tried: BitSet,
    /// The moment.
    pub now: Tick,
    /// What the client was recognised by.
    pub key: RecordedKey,
    /// The ticket, if one was drawn.
    pub ticket: Option<u64>,
    /// The random word.
    pub random: u64,
    /// Every value of the load that was read, in order.
    pub reads: Box<[Read]>,
    /// The endpoint's place in the pool.
    pub picked: Option<usize>,
    /// How the request ended there. None while it is under way, and for a pick that was passed over
    /// because the endpoint was found at its cap or left out.
    pub outcome: Option<Outcome>,
    compiled: Arc<Compiled>,
}

/// Who decided on an endpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PickedBy {
    /// The algorithm.
    Balancer,
    /// The client belonged to it.
    Stickiness,
    /// The balancer gave none.
    LastResort,
}

/// A key that outlives its request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RecordedKey {
    /// None.
    None,
    /// An address.
    Address(IpAddr),
    /// Anything else.
    Bytes(Box<[u8]>),
}

/// One look at the load.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Read {
    /// Of the endpoint at this place; 0 for the pool's summary.
    pub index: usize,
    /// At what.
    pub kind: ReadKind,
    /// What was seen.
    pub value: u64,
}

/// What a pick looks at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReadKind {
    /// [`LoadView::in_flight`].
    InFlight,
    /// [`LoadView::cell`].
    Cell,
    /// [`LoadView::packets`].
    Packets,
    /// [`LoadView::bytes`].
    Bytes,
    /// [`LoadView::ramp`].
    Ramp,
    /// [`LoadView::summary`].
    Summary,
}

impl PickRecord {
    /// Picks again, by the same balancer, from what was recorded alone. None when the record is not of
    /// a balancer's pick, or the balancer looks at anything but what it looked at then.
    pub fn replay(&self) -> Option<Option<usize>> {
        if self.by != PickedBy::Balancer {
            return None;
        }
        let replay =
            Replay { left: RefCell::new(self.reads.iter()), has_diverged: Cell::new(false) };
        let ticket = Ticket { ticket: self.ticket, drawn: Cell::new(false) };
        let key = match &self.key {
            RecordedKey::None => Key::None,
            RecordedKey::Address(address) => Key::Address(*address),
            RecordedKey::Bytes(bytes) => Key::Bytes(bytes),
        };
        let request = PickRequest {
            tickets: &ticket,
            random: self.random,
            now: self.now,
            key,
            eligible: &self.compiled.outlook.eligible,
            tried: &self.tried,
        };
        let picked = self.compiled.balancer.pick(&replay, &request);
        let is_same = !replay.has_diverged.get()
            && replay.left.borrow().len() == 0
            && ticket.drawn.get() == self.ticket.is_some();
        is_same.then_some(picked)
    }

    /// Who was eligible.
    pub fn eligible(&self) -> &BitSet {
        &self.compiled.outlook.eligible
    }
}

/// The latest picks of a pool.
#[derive(Debug)]
pub(crate) struct PickLog {
    capacity: NonZeroUsize,
    records: Mutex<VecDeque<PickRecord>>,
}

impl PickLog {
    pub(crate) fn new(capacity: NonZeroUsize) -> PickLog {
        PickLog { capacity, records: Mutex::default() }
    }

    pub(crate) fn capacity(&self) -> NonZeroUsize {
        self.capacity
    }

    /// The newest last.
    pub(crate) fn records(&self) -> Vec<PickRecord> {
        self.lock().iter().cloned().collect()
    }

    /// Lets the balancer pick, and writes down what it looked at.
    #[cold]
    pub(crate) fn pick(
        &self,
        pool: &Pool,
        compiled: &Arc<Compiled>,
        request: &Acquire<'_>,
        tried: &BitSet,
    ) -> (Option<usize>, u64) {
        let view = Watched { view: View(pool), reads: RefCell::default() };
        let tickets = Noted { counter: &pool.continuing.tickets.0, drawn: Cell::new(None) };
        let asked = PickRequest { tickets: &tickets, ..pool.ask(compiled, request, tried) };
        let picked = compiled.balancer.pick(&view, &asked);
        let record = PickRecord {
            ticket: tickets.drawn.get(),
            reads: view.reads.take().into(),
            picked,
            ..blank(PickedBy::Balancer, pool.generation, compiled, request, tried)
        };
        (picked, self.append(record))
    }

    /// Writes down a pick that no balancer made.
    #[cold]
    pub(crate) fn note(
        &self,
        by: PickedBy,
        index: usize,
        generation: u64,
        compiled: &Arc<Compiled>,
        request: &Acquire<'_>,
        tried: &BitSet,
    ) -> u64 {
        let blank = blank(by, generation, compiled, request, tried);
        self.append(PickRecord { picked: Some(index), ..blank })
    }

    /// Writes down how it went; the first word counts.
    #[cold]
    pub(crate) fn settled(&self, number: u64, outcome: Outcome) {
        let mut records = self.lock();
        let Some(first) = records.front().map(|record| record.number) else { return };
        let place = number.checked_sub(first).and_then(|place| usize::try_from(place).ok());
        if let Some(record) = place.and_then(|place| records.get_mut(place)) {
            record.outcome.get_or_insert(outcome);
        }
    }

    fn append(&self, mut record: PickRecord) -> u64 {
        let mut records = self.lock();
        let number = records.back().map_or(1, |last| last.number + 1);
        record.number = number;
        if records.len() >= self.capacity.get() {
            records.pop_front();
        }
        records.push_back(record);
        number
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<PickRecord>> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pool {
    /// The latest picks, the newest last, if the pool keeps them.
    pub fn pick_log(&self) -> Option<Vec<PickRecord>> {
        self.log.as_ref().map(|log| log.records())
    }
}

fn blank(
    by: PickedBy,
    generation: u64,
    compiled: &Arc<Compiled>,
    request: &Acquire<'_>,
    tried: &BitSet,
) -> PickRecord {
    PickRecord {
        number: 0,
        decision: request.decision,
        generation,
        version: compiled.version,
        by,
        tried: tried.clone(),
        now: request.now,
        key: match request.key {
            Key::None => RecordedKey::None,
            Key::Address(address) => RecordedKey::Address(address),
            Key::Bytes(bytes) => RecordedKey::Bytes(bytes.into()),
        },
        ticket: None,
        random: request.random,
        reads: Box::default(),
        picked: None,
        outcome: None,
        compiled: compiled.clone(),
    }
}

/// The pool's counter, with a note of what was drawn.
struct Noted<'a> {
    counter: &'a AtomicU64,
    drawn: Cell<Option<u64>>,
}

impl Tickets for Noted<'_> {
    fn draw(&self) -> u64 {
        let ticket = self.counter.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        self.drawn.set(Some(ticket));
        ticket
    }
}

/// The ticket of a record.
struct Ticket {
    ticket: Option<u64>,
    drawn: Cell<bool>,
}

impl Tickets for Ticket {
    fn draw(&self) -> u64 {
        self.drawn.set(true);
        self.ticket.unwrap_or(0)
    }
}

/// A view that writes down what is read of it.
struct Watched<'a> {
    view: View<'a>,
    reads: RefCell<Vec<Read>>,
}

impl Watched<'_> {
    fn note(&self, index: usize, kind: ReadKind, value: u64) -> u64 {
        self.reads.borrow_mut().push(Read { index, kind, value });
        value
    }
}

impl LoadView for Watched<'_> {
    fn in_flight(&self, index: usize) -> u32 {
        self.note(index, ReadKind::InFlight, u64::from(self.view.in_flight(index))) as u32
    }

    fn cell(&self, index: usize) -> u64 {
        self.note(index, ReadKind::Cell, self.view.cell(index))
    }

    fn packets(&self, index: usize) -> u64 {
        self.note(index, ReadKind::Packets, self.view.packets(index))
    }

    fn bytes(&self, index: usize) -> u64 {
        self.note(index, ReadKind::Bytes, self.view.bytes(index))
    }

    fn ramp(&self, index: usize) -> u16 {
        self.note(index, ReadKind::Ramp, u64::from(self.view.ramp(index))) as u16
    }

    fn summary(&self) -> u64 {
        self.note(0, ReadKind::Summary, self.view.summary())
    }
}

/// A view that shows what was read then.
struct Replay<'a> {
    left: RefCell<std::slice::Iter<'a, Read>>,
    has_diverged: Cell<bool>,
}

impl Replay<'_> {
    fn next(&self, index: usize, kind: ReadKind) -> u64 {
        match self.left.borrow_mut().next() {
            Some(read) if (read.index, read.kind) == (index, kind) => read.value,
            _ => {
                self.has_diverged.set(true);
                0
            }
        }
    }
}

impl LoadView for Replay<'_> {
    fn in_flight(&self, index: usize) -> u32 {
        self.next(index, ReadKind::InFlight) as u32
    }

    fn cell(&self, index: usize) -> u64 {
        self.next(index, ReadKind::Cell)
    }

    fn packets(&self, index: usize) -> u64 {
        self.next(index, ReadKind::Packets)
    }

    fn bytes(&self, index: usize) -> u64 {
        self.next(index, ReadKind::Bytes)
    }

    fn ramp(&self, index: usize) -> u16 {
        self.next(index, ReadKind::Ramp) as u16
    }

    fn summary(&self) -> u64 {
        self.next(0, ReadKind::Summary)
    }
}
