//! Names as endpoints: what stands for `app.internal:8080` at this moment?
//!
//! A [`Book`] has one [`Watch`] for each name: it says when the name is to be asked, takes the answer,
//! and keeps the last good one for as long as there is no better. Both are pure: time and randomness
//! are handed in, nobody is asked. [`records`] makes addresses of records, and believes none that
//! do not belong to the name. The [`Resolver`] asks: over UDP, over TCP where an answer was cut short.
//!
//! Bounds: [`MAX_ADDRESSES`] of one name, [`MAX_TARGETS`] of one service, [`MAX_ASKING`] questions at a
//! time.

#![forbid(unsafe_code)]

mod book;
pub mod records;
mod resolver;
mod watch;

pub use book::{Book, Told, Waiting};
pub use resolver::{Resolver, resolv_conf};
pub use watch::{Bounds, Change, Reply, Watch};

/// Addresses of one name that are used.
pub const MAX_ADDRESSES: usize = 1000;
/// Hosts of one service whose addresses are asked for.
pub const MAX_TARGETS: usize = 256;
/// Names that are asked at a time.
pub const MAX_ASKING: usize = 64;
