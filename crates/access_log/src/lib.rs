//! The access log: a line for every request that was answered or failed.
//!
//! The data side fills an [`Entry`] of what is known already, and a [`Format`], compiled when a snapshot
//! is built, writes it to the end of its worker's own buffer ([`Tails`]): no lock, no allocation, no
//! formatting machinery, one clock reading a second. Full buffers go through a bounded queue to the
//! [sink](Sinks)'s own thread, which alone touches files and sockets and may wait for them as long as it
//! has to. What does not fit into the queue is dropped and counted; a worker never waits.
//!
//! What a client has sent is escaped ([`escape`]), so that it can neither begin another line nor end a
//! value. Bounds: 8 KiB of a value, 64 KiB a buffer, 64 buffers a sink.

#![forbid(unsafe_code)]

mod captured;
mod choice;
mod compiled;
mod destination;
mod encode;
mod entry;
mod escape;
mod fields;
mod format;
mod number;
mod outlet;
mod page;
mod sink;
mod sinks;
mod syslog;
mod tails;
mod wall;
mod writer;

pub use captured::Captured;
pub use choice::{Choice, Class, Classes};
pub use compiled::{Compiled, Wanted};
pub use destination::{Destination, Server};
pub use entry::{Entry, Headers, Sticking};
pub use fields::Field;
pub use format::{Format, Unknown};
pub use sink::{Sink, Totals};
pub use sinks::Sinks;
pub use syslog::{FACILITIES, Syslog};
pub use tails::Tails;
