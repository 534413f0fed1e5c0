//! What a pick may look at besides the compiled balancer: nothing else decides it.

use std::net::IpAddr;

use subak_base::{BitSet, Tick};

/// The pool's one shared counter, drawn only by picks that need it.
pub trait Tickets {
    /// The number of tickets drawn before this one.
    fn draw(&self) -> u64;
}

/// What is known of the load of every endpoint at the moment of a pick.
///
/// Live it reads shared atomics, which may change between two reads; in the simulator, arrays.
/// Load that only some algorithms look at comes with a default, so that a view need not have it.
pub trait LoadView {
    /// Requests (TCP and UDP: connections) dispatched to the endpoint and not yet settled.
    fn in_flight(&self, index: usize) -> u32;
}

/// What the client is recognised by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Key<'a> {
    /// The request has none; algorithms that need one fall back to `round_robin`.
    None,
    /// The client's address.
    Address(IpAddr),
    /// Anything else: a header, a cookie, a path.
    Bytes(&'a [u8]),
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
