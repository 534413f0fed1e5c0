//! The simulator against what theory knows exactly, against what can be worked out by hand, and against
//! itself.

mod queueing;
mod world;
