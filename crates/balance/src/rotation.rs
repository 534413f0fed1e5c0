//! Compiled round robin: the sequence of picks, worked out beforehand and walked by one position.
//!
//! *Smooth* is the sequence of smooth weighted round robin: at every step each endpoint's current
//! weight grows by its weight, the largest is picked (first in the list on a tie) and loses the sum
//! of weights. *Burst* is the classic form: w picks in a row, then the next endpoint.
//!
//! Smooth weights are divided by their greatest common divisor, burst weights are not (the runs
//! would change). A cycle is at most [`CYCLE_MAX`] picks (or one an endpoint, if there are more of
//! those); weights that need more are rounded by largest remainder, to at least 1.
//!
//! Every pick draws a ticket of the pool's one counter; ticket − `started` is its position, so the
//! picks of all workers together follow the sequence. Entries that cannot take the request are
//! skipped forward.
//!
//! A rebuild does not restart. Each endpoint's *debt*, the picks it is owed (current weight ÷ sum of
//! weights, fixed point), is carried over, also while it is absent; the sequence begins with a
//! prefix that works the debts off. Burst carries the run it is in.

mod burst;
mod smooth;

use subak_base::Weight;

use crate::balancer::Recipe;
use crate::options::{OptionKind, OptionValue, Setting, TextProblem};
use crate::request::PickRequest;
use crate::rules::candidates;
use crate::shares;

/// Picks in the longest cycle (unless there are more endpoints).
const CYCLE_MAX: usize = 65_536;

/// Entries of the sequence one pick looks at before it takes any candidate: bounds the cost where
/// nearly all are tried or at their cap.
const SKIPS_MAX: usize = 128;

/// How the picks of an endpoint lie in a cycle.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Order {
    /// Spread as evenly as the weights allow: 5:1:1 gives a a b a c a a.
    #[default]
    Smooth,
    /// All in a row: 5:1:1 gives a a a a a b c.
    Burst,
}

impl Setting for Order {
    const SUMMARY: &'static str =
        "spread an endpoint's picks over the cycle, or take them in a row";
    const KIND: OptionKind = OptionKind::Words(&["smooth", "burst"]);
    const DEFAULT: Option<OptionValue<'static>> = Some(OptionValue::Text("smooth"));

    fn from_text(text: &str) -> Result<Order, Option<TextProblem>> {
        match text {
            "smooth" => Ok(Order::Smooth),
            "burst" => Ok(Order::Burst),
            _ => Err(None),
        }
    }
}

/// The compiled sequence.
#[derive(Debug)]
pub(crate) struct Rotation {
    /// Ticket of the first entry.
    started: u64,
    /// The prefix, then one cycle.
    sequence: Box<[u32]>,
    prefix: usize,
    /// Picks of each endpoint in one cycle; 0 for the absent.
    shares: Box<[u32]>,
    ledger: Ledger,
}

/// What the next rebuild needs to carry on.
#[derive(Debug)]
enum Ledger {
    /// Debt of each endpoint of the list when the sequence began, in [`smooth::PICK`]s.
    Smooth { debts: Box<[i64]> },
    /// Where the sequence began; the rest follows from the position in it.
    Burst { start: burst::Start },
}

/// Where a balancer's round robin begins, as follows from all there has been before it: with this and
/// what else it was compiled from, the same balancer can be [compiled again](crate::Balancer::resume).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Beginning {
    /// The first ticket that it counts from.
    pub ticket: u64,
    /// What it is in the middle of.
    pub owed: Owed,
}

/// What a round robin is in the middle of.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Owed {
    /// What each endpoint of the list is owed, in 2⁻³² of a pick.
    Debts(Box<[i64]>),
    /// So many picks of the endpoint at this place in a row, then its successors.
    Run {
        /// Of the list.
        endpoint: usize,
        /// How many.
        picks: u32,
    },
}

impl Rotation {
    pub(crate) fn build(recipe: &Recipe<'_>) -> Rotation {
        let shares = Rotation::shares_of(recipe);
        let started = recipe.previous.map_or(0, |previous| previous.ticket);
        match recipe.algorithm.order() {
            Order::Smooth => {
                let debts = smooth::carry(recipe, &shares);
                Rotation::smooth(started, shares, debts)
            }
            Order::Burst => {
                let start = burst::carry(recipe, &shares);
                Rotation::burst(started, shares, start)
            }
        }
    }

    /// Compiles what began there. None for a beginning of another list or of another order.
    pub(crate) fn resume(recipe: &Recipe<'_>, beginning: &Beginning) -> Option<Rotation> {
        let shares = Rotation::shares_of(recipe);
        match (recipe.algorithm.order(), &beginning.owed) {
            (Order::Smooth, Owed::Debts(debts)) => {
                let fits = debts.len() == shares.len() && smooth::can_owe(debts);
                fits.then(|| Rotation::smooth(beginning.ticket, shares, debts.clone()))
            }
            (Order::Burst, Owed::Run { endpoint, picks }) => {
                let fits = *endpoint < shares.len().max(1);
                let start = burst::Start { index: *endpoint, picks: *picks };
                fits.then(|| Rotation::burst(beginning.ticket, shares, start))
            }
            _ => None,
        }
    }

    /// Where it began.
    pub(crate) fn beginning(&self) -> Beginning {
        let owed = match &self.ledger {
            Ledger::Smooth { debts } => Owed::Debts(debts.clone()),
            Ledger::Burst { start } => Owed::Run { endpoint: start.index, picks: start.picks },
        };
        Beginning { ticket: self.started, owed }
    }

    fn smooth(started: u64, shares: Box<[u32]>, debts: Box<[i64]>) -> Rotation {
        let (sequence, prefix) = smooth::compile(&shares, &debts);
        Rotation { started, sequence, prefix, shares, ledger: Ledger::Smooth { debts } }
    }

    fn burst(started: u64, shares: Box<[u32]>, start: burst::Start) -> Rotation {
        let (sequence, prefix) = burst::compile(&shares, start);
        Rotation { started, sequence, prefix, shares, ledger: Ledger::Burst { start } }
    }

    /// Picks of each endpoint in one cycle.
    fn shares_of(recipe: &Recipe<'_>) -> Box<[u32]> {
        let weights = recipe.endpoints.iter().enumerate().map(|(index, entry)| {
            if recipe.eligible.contains(index) { entry.weight.get() } else { 0 }
        });
        picks_by_weight(&weights.collect::<Vec<_>>(), recipe.algorithm.order())
    }

    /// The endpoint whose turn it is among the candidates. Draws a ticket.
    #[inline]
    pub(crate) fn next(&self, weights: &[Weight], request: &PickRequest<'_>) -> Option<usize> {
        let ticket = request.tickets.draw();
        if let Some(index) = self.sequence.get(self.place(ticket)) {
            let index = *index as usize;
            if request.eligible.contains(index) && !request.tried.contains(index) {
                return Some(index);
            }
        }
        self.skip(ticket, weights, request)
    }

    /// The next entry of the sequence that is a candidate; after too many that are not, the
    /// candidates in turn.
    #[cold]
    fn skip(&self, ticket: u64, weights: &[Weight], request: &PickRequest<'_>) -> Option<usize> {
        let count = candidates(weights, request).count() as u64;
        if count == 0 {
            return None;
        }
        let mut place = self.place(ticket);
        for _ in 0..self.sequence.len().min(SKIPS_MAX) {
            let index = self.sequence[place] as usize;
            if request.eligible.contains(index) && !request.tried.contains(index) {
                return Some(index);
            }
            place = if place + 1 < self.sequence.len() { place + 1 } else { self.prefix };
        }
        candidates(weights, request).nth((ticket % count) as usize)
    }

    /// How many picks from `ticket` on it is the endpoint's turn; none for one that is absent.
    pub(crate) fn distance(&self, ticket: u64, index: usize) -> Option<u64> {
        let place = self.place(ticket);
        let ahead = self.sequence.iter().skip(place).chain(self.cycle());
        ahead.zip(0..).find(|(next, _)| **next as usize == index).map(|(_, distance)| distance)
    }

    /// Picks of each endpoint in one cycle.
    pub(crate) fn shares(&self) -> &[u32] {
        &self.shares
    }

    pub(crate) fn prefix(&self) -> &[u32] {
        &self.sequence[..self.prefix]
    }

    pub(crate) fn cycle(&self) -> &[u32] {
        &self.sequence[self.prefix..]
    }

    /// Where a ticket falls in `sequence`; 0 if that is empty. A ticket drawn before the sequence
    /// began, by a worker that lost the race, wraps to somewhere in the cycle.
    #[inline]
    fn place(&self, ticket: u64) -> usize {
        let position = ticket.wrapping_sub(self.started);
        let (prefix, length) = (self.prefix as u64, self.sequence.len() as u64);
        if position < length {
            position as usize
        } else {
            (prefix + (position - prefix).checked_rem(length - prefix).unwrap_or(0)) as usize
        }
    }
}

/// The picks of each endpoint in one cycle: proportional to the weights, exactly if that fits.
fn picks_by_weight(weights: &[u64], order: Order) -> Box<[u32]> {
    places(weights, order).into_iter().map(|picks| picks as u32).collect()
}

/// The same, as wide as weights are.
pub(crate) fn places(weights: &[u64], order: Order) -> Vec<u64> {
    match order {
        Order::Smooth => shares::reduced(weights, CYCLE_MAX),
        Order::Burst => shares::limited(weights, CYCLE_MAX),
    }
}
