//! How much is too much? Token buckets by key, counts of what is under way by key, networks that may
//! and may not, and the circuit of a pool.
//!
//! Everything here is pure: the moment is passed in, keys are 64-bit hashes that the caller makes with
//! a secret of its own, and nothing waits. Tables have a fixed number of places, which are shared by
//! all threads without a lock.

#![forbid(unsafe_code)]

mod circuit;
mod clients;
mod count;
mod names;
mod networks;
mod rate;
mod sets;

pub use circuit::{Circuit, CircuitSpec, CircuitState, CircuitTotals, Entry, NoEntry, Verdict};
pub use count::{Counted, Counts};
pub use names::Names;
pub use networks::{Network, Networks};
pub use rate::{Level, Rate, RateTable, Refused, Taken};
