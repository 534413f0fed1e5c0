//! What was a pick decided by? A bounded log of the latest picks with everything that each looked at,
//! so that a live decision can be repeated bit for bit.
//!
//! Off by default: a pick that is logged allocates, and takes one lock. A record holds the balancer it
//! was made by, so the log keeps alive those that its records need: with a log of some thousands of
//! picks, as a rule one or two.

mod evidence;
mod views;

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use subak_balance::{Beginning, Endpoints, Key, PickRequest, Score};
use subak_base::{BitSet, DecisionId, Tick, Weight};

use crate::acquire::Acquire;
use crate::compiled::Compiled;
use crate::lease::Outcome;
use crate::pool::{Pool, View};
pub use evidence::Evidence;
use views::{Noted, Recall, Ticket, Watched};

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
    /// Who asked.
    pub from: Option<IpAddr>,
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
    /// When it ended there.
    pub settled: Option<Tick>,
    /// What was said of its end.
    pub ending: Ending,
    compiled: Arc<Compiled>,
}

/// How a request ended at an endpoint, as far as somebody has [said](crate::Lease::tell) so.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Ending {
    /// The status it answered.
    pub status: Option<u16>,
    /// What went wrong.
    pub failure: Option<Box<str>>,
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
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
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
        match self.by {
            PickedBy::Balancer => self.evidence().decide(&self.compiled.balancer),
            PickedBy::Stickiness | PickedBy::LastResort => None,
        }
    }

    /// What it was decided by, beside the balancer.
    pub fn evidence(&self) -> Evidence<'_> {
        Evidence {
            eligible: &self.compiled.outlook.eligible,
            tried: &self.tried,
            now: self.now,
            key: self.key.key(),
            ticket: self.ticket,
            random: self.random,
            reads: &self.reads,
        }
    }

    /// The list its balancer was compiled from, with the weights in force.
    pub fn list(&self) -> &Endpoints {
        &self.compiled.list
    }

    /// Where its balancer's round robin began.
    pub fn beginning(&self) -> Beginning {
        self.compiled.balancer.beginning()
    }

    /// Who was eligible.
    pub fn eligible(&self) -> &BitSet {
        &self.compiled.outlook.eligible
    }

    /// The pool's endpoints at the time, with their weights in force.
    pub fn endpoints(&self) -> impl ExactSizeIterator<Item = (&str, Weight)> {
        self.compiled.list.iter().map(|entry| (&*entry.name, entry.weight))
    }

    /// What the pick compared of each endpoint, from what was recorded alone; none where it did not
    /// look, or no balancer picked. What was looked at twice counts as it was first.
    pub fn scores(&self) -> Vec<Option<Score>> {
        let ticket = Ticket { ticket: self.ticket, drawn: Cell::new(false) };
        let evidence = self.evidence();
        let request = evidence.question(&ticket);
        let mut values = HashMap::new();
        for read in &self.reads {
            values.entry((read.index, read.kind)).or_insert(read.value);
        }
        let recall = Recall { values, index: Cell::new(0), is_missing: Cell::new(false) };
        let score = |index: usize| {
            recall.index.set(index);
            recall.is_missing.set(false);
            ticket.drawn.set(false);
            let score = self.compiled.balancer.score(&recall, &request, index);
            let is_known = !recall.is_missing.get();
            let is_drawn = self.ticket.is_some() || !ticket.drawn.get();
            score.filter(|_| self.by == PickedBy::Balancer && is_known && is_drawn)
        };
        (0..self.compiled.list.len()).map(score).collect()
    }
}

impl RecordedKey {
    /// As it was.
    pub fn key(&self) -> Key<'_> {
        match self {
            RecordedKey::None => Key::None,
            RecordedKey::Address(address) => Key::Address(*address),
            RecordedKey::Bytes(bytes) => Key::Bytes(bytes),
        }
    }
}

/// The latest picks of a pool.
#[derive(Debug)]
pub(crate) struct PickLog {
    capacity: NonZeroUsize,
    records: Mutex<VecDeque<PickRecord>>,
}

impl PickLog {
    /// An empty one, or one that begins with the latest records of another.
    pub(crate) fn new(capacity: NonZeroUsize, before: Option<&PickLog>) -> PickLog {
        let latest = |before: &PickLog| {
            let records = before.lock();
            let extra = records.len().saturating_sub(capacity.get());
            records.iter().skip(extra).cloned().collect()
        };
        PickLog { capacity, records: Mutex::new(before.map(latest).unwrap_or_default()) }
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
    pub(crate) fn settled(&self, number: u64, outcome: Outcome, now: Option<Tick>) {
        self.change(number, |record| {
            if record.outcome.is_none() {
                (record.outcome, record.settled) = (Some(outcome), now);
            }
        });
    }

    /// Writes down what is said of how it went.
    #[cold]
    pub(crate) fn tell(&self, number: u64, ending: Ending) {
        self.change(number, |record| record.ending = ending);
    }

    fn change(&self, number: u64, change: impl FnOnce(&mut PickRecord)) {
        let mut records = self.lock();
        let Some(first) = records.front().map(|record| record.number) else { return };
        let place = number.checked_sub(first).and_then(|place| usize::try_from(place).ok());
        if let Some(record) = place.and_then(|place| records.get_mut(place)) {
            change(record);
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
    /// The latest picks of which `is_wanted` holds, so many at the most, the newest first, if the pool
    /// keeps them.
    pub fn latest_picks(
        &self,
        count: usize,
        is_wanted: impl Fn(&PickRecord) -> bool,
    ) -> Option<Vec<PickRecord>> {
        let log = self.log.as_ref()?;
        let records = log.lock();
        let wanted = records.iter().rev().filter(|record| is_wanted(record));
        Some(wanted.take(count).cloned().collect())
    }

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
        from: request.from,
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
        settled: None,
        ending: Ending::default(),
        compiled: compiled.clone(),
    }
}
