//! Algorithms whose every decision can be looked up in a flat table.
//!
//! A table is what a data plane needs that cannot run this crate: user space computes, the plane
//! looks up. Entries hold indices into the pool's list.

/// The flat form of a compiled balancer. Holds no endpoint that was not eligible when it was built.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Table<'a> {
    /// Picks in order of tickets: first all of `prefix`, then `cycle` for ever. Both are empty when
    /// nothing is eligible.
    Sequence {
        /// Picks before the cycle begins.
        prefix: &'a [u32],
        /// Picks of one full cycle.
        cycle: &'a [u32],
    },
    /// One slot per value of a client's hash, which is below the number of slots.
    Address {
        /// Endpoint for every hash of an IPv4 client; [`Table::NO_SLOT`] where the sequence decides.
        ipv4: &'a [u32],
        /// The same for IPv6 clients.
        ipv6: &'a [u32],
        /// The cycle that decides where a slot does not.
        cycle: &'a [u32],
    },
    /// The slot is the 64-bit hash of the key modulo the number of slots.
    Slots {
        /// The endpoint of every slot. Empty when nothing is eligible.
        slots: &'a [u32],
        /// The cycle that decides for what has no key.
        cycle: &'a [u32],
    },
}

impl Table<'_> {
    /// A slot that names no endpoint.
    pub const NO_SLOT: u32 = u32::MAX;
}
