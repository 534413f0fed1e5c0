//! What a pick may look at besides the compiled balancer: nothing else decides it.

use subak_base::{BitSet, Tick};

use crate::key::Key;

/// The pool's one shared counter, drawn only by picks that need it.
pub trait Tickets {
    /// The number of tickets drawn before this one.
    fn draw(&self) -> u64;
}

/// A [`LoadView::ramp`] of an endpoint that takes its whole share.
pub const FULL: u16 = 1024;

/// What is known of the load of every endpoint at the moment of a pick.
///
/// Live it reads shared atomics, which may change between two reads; in the simulator, arrays.
/// What only some algorithms look at has a default, so that a view need not have it:
/// [`Balancer::wants`](crate::Balancer::wants) tells what is looked at.
pub trait LoadView {
    /// Requests (TCP and UDP: connections) dispatched to the endpoint and not yet settled.
    fn in_flight(&self, index: usize) -> u32;

    /// What the algorithm in force keeps of the endpoint: see
    /// [`Balancer::on_complete`](crate::Balancer::on_complete). Starts at 0.
    fn cell(&self, _index: usize) -> u64 {
        0
    }

    /// Packets to and from the endpoint in the last 14 s.
    fn packets(&self, _index: usize) -> u64 {
        0
    }

    /// Bytes to and from the endpoint in the last 14 s.
    fn bytes(&self, _index: usize) -> u64 {
        0
    }

    /// How much of its share the endpoint takes in slow start, in 1/1024; [`FULL`] outside of it.
    /// Looked at by algorithms that thin keys: see
    /// [`Traits::thins_keys`](crate::catalogue::Traits). For all others slow start is a layer of the
    /// weight.
    fn ramp(&self, _index: usize) -> u16 {
        FULL
    }

    /// What [`Balancer::summarise`](crate::Balancer::summarise) last said of the whole pool. Starts
    /// at 0.
    fn summary(&self) -> u64 {
        0
    }
}

/// One question to a [`Balancer`](crate::Balancer).
#[derive(Clone, Copy)]
pub struct PickRequest<'a> {
    /// The pool's ticket counter.
    pub tickets: &'a dyn Tickets,
    /// A word uniform over all 64-bit values, fresh for this pick.
    pub random: u64,
    /// The moment of the pick.
    pub now: Tick,
    /// What the client is recognised by.
    pub key: Key<'a>,
    /// Endpoints that may take new work now. The balancer may have been compiled from an older set.
    pub eligible: &'a BitSet,
    /// Endpoints this request has been sent to already, or that were found at their cap for it.
    pub tried: &'a BitSet,
}
