//! The words every other crate uses: identity, weight, time, bit sets and seeded randomness.
//!
//! Nothing here knows about networks, HTTP or clocks. There are no dependencies, so that the pure
//! crates on top of this one build for any target.

#![forbid(unsafe_code)]

mod address;
mod bitset;
mod decision;
mod rng;
mod tick;
mod weight;

pub use address::Address;
pub use bitset::BitSet;
pub use decision::{DecisionId, NoDecisionId};
pub use rng::Rng;
pub use tick::Tick;
pub use weight::Weight;

/// The stable identity of an endpoint inside one process.
///
/// Given out once per identity (protocol and resolved address) and kept across reloads, whatever
/// happens to its weight or its place in the list. The dense index of a snapshot is another thing.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct EndpointId(pub u32);
