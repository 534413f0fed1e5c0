//! Certificates by themselves: ACME (RFC 8555) over instant-acme, on a thread of its own.
//!
//! [`Acme`] is what the control side holds. It knows which certificates listeners want, has a
//! placeholder in force until the first one is there, orders, renews and tells. Workers see none of
//! this: the control side hands them certificates and challenges whenever they have changed. Several processes may share one storage: one orders at a time, all take over what it
//! has got, and all answer challenges. Described in docs/acme.md.

#![forbid(unsafe_code)]

mod acme;
mod certificate;
mod due;
mod http;
mod keeper;
mod order;
mod state;
mod storage;

pub use acme::Acme;
pub use state::{Challenges, Counts, News, State, Told};
