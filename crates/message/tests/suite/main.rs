//! Messages, judged by slow readings of the same bytes.

mod ambiguous;
mod cost;
mod differential;
mod faults;
mod h2;
mod properties;
mod write;
