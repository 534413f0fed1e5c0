//! What a pick was decided by, and the pick made once more from that alone.

use std::cell::{Cell, RefCell};

use subak_balance::{Balancer, Key, PickRequest};
use subak_base::{BitSet, Tick};

use super::Read;
use super::views::{Replay, Ticket};

/// All that a balancer looks at for one pick.
#[derive(Clone, Copy, Debug)]
pub struct Evidence<'a> {
    /// Who may take new work.
    pub eligible: &'a BitSet,
    /// Who could not be picked any more.
    pub tried: &'a BitSet,
    /// The moment.
    pub now: Tick,
    /// What the client was recognised by.
    pub key: Key<'a>,
    /// The ticket, if one was drawn.
    pub ticket: Option<u64>,
    /// The random word.
    pub random: u64,
    /// Every value of the load that was read, in order.
    pub reads: &'a [Read],
}

impl Evidence<'_> {
    /// What this balancer makes of it. None when it looks at anything but what was looked at then, or
    /// in another order.
    pub fn decide(&self, balancer: &Balancer) -> Option<Option<usize>> {
        let replay =
            Replay { left: RefCell::new(self.reads.iter()), has_diverged: Cell::new(false) };
        let ticket = Ticket { ticket: self.ticket, drawn: Cell::new(false) };
        let picked = balancer.pick(&replay, &self.question(&ticket));
        let is_same = !replay.has_diverged.get()
            && replay.left.borrow().len() == 0
            && ticket.drawn.get() == self.ticket.is_some();
        is_same.then_some(picked)
    }

    /// What the balancer was asked.
    pub(super) fn question<'a>(&'a self, tickets: &'a Ticket) -> PickRequest<'a> {
        PickRequest {
            tickets,
            random: self.random,
            now: self.now,
            key: self.key,
            eligible: self.eligible,
            tried: self.tried,
        }
    }
}
