//! Which endpoint takes the next request? Every algorithm Subak knows, as pure functions.
//!
//! A [`Balancer`] is compiled off the hot path from a list of [`Endpoints`], the set of those that
//! are eligible, and an [`Algorithm`]; it is immutable afterwards. [`Balancer::pick`] is a function
//! of that balancer, a [`LoadView`] and a [`PickRequest`]: this crate holds no clock, no randomness,
//! no atomics and does no input or output, so the same code serves live traffic, the packet plane
//! (as [`Table`]s) and the simulator, and a recorded pick replays bit for bit. No pick allocates.
//!
//! ```
//! use std::cell::Cell;
//! use subak_balance::{Balancer, Endpoints, Entry, Key, LoadView, PickRequest, Recipe, Tickets, catalogue};
//! use subak_base::{BitSet, Tick, Weight};
//!
//! struct Counter(Cell<u64>);
//! impl Tickets for Counter {
//!     fn draw(&self) -> u64 {
//!         self.0.replace(self.0.get() + 1)
//!     }
//! }
//! struct Idle;
//! impl LoadView for Idle {
//!     fn in_flight(&self, _: usize) -> u32 {
//!         0
//!     }
//! }
//!
//! let entry = |name: &str, weight| Entry::new(name, name, Weight(weight));
//! let endpoints = Endpoints::new(vec![entry("a", 5), entry("b", 1), entry("c", 1)])?;
//! let eligible = BitSet::full(endpoints.len());
//! let algorithm = catalogue::find("wrr").unwrap().algorithm();
//! let recipe = Recipe { algorithm: &algorithm, endpoints: &endpoints, eligible: &eligible, previous: None };
//! let balancer = Balancer::build(recipe);
//!
//! let tickets = Counter(Cell::new(0));
//! let picks: String = (0..7)
//!     .map(|_| {
//!         let request = PickRequest {
//!             tickets: &tickets,
//!             random: 0,
//!             now: Tick(0),
//!             key: Key::None,
//!             eligible: &eligible,
//!             tried: &BitSet::EMPTY,
//!         };
//!         endpoints.entry(balancer.pick(&Idle, &request).unwrap()).name.clone()
//!     })
//!     .collect();
//! assert_eq!(picks, "aabacaa");
//! # Ok::<(), subak_balance::DuplicateIdentity>(())
//! ```
//!
//! To add an algorithm: one file under `rules/` and its line in `rules.rs`; the catalogue, the
//! configuration's names and options, the conformance suite and the benchmarks follow from that.

#![forbid(unsafe_code)]

mod balancer;
pub mod catalogue;
mod chain;
pub mod conformance;
mod consistent;
mod crc32;
mod draw;
mod endpoints;
mod fixed;
mod hash64;
mod key;
mod latency;
mod least;
mod options;
mod request;
mod rotation;
mod rounding;
mod rules;
mod score;
mod shares;
mod split;
mod table;
pub mod weigher;
pub mod weights;
mod window;

pub use balancer::{Balancer, Completion, Previous, Recipe};
pub use catalogue::Algorithm;
pub use consistent::BalanceFactor;
pub use endpoints::{DuplicateIdentity, Endpoints, Entry};
pub use hash64::hash64;
pub use key::{FIVE_TUPLE_OCTETS, Key, KeySource, five_tuple};
pub use request::{FULL, LoadView, PickRequest, Tickets};
pub use rotation::{Beginning, Order, Owed};
pub use rounding::Rounding;
pub use rules::{Choices, Measure, Method, Octets};
pub use score::Score;
pub use split::Split;
pub use table::Table;
pub use window::{BUCKET, BUCKETS, Window};
