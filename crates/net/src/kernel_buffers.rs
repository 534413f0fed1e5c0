//! What the kernel may hold of a connection, where memory is short: it counts in the control group too.
//!
//! By itself it takes megabytes of a response that its client does not read, and receives 64 KiB of one
//! that nobody asks for here. Everybody else keeps the kernel's own sizes, which suit fast networks.

use std::sync::atomic::{AtomicBool, Ordering};

/// Bytes that may wait for a client in the kernel, beside those that are on their way to it.
pub(crate) const UNSENT: u32 = 8 * 1024;
/// Bytes of a response that the kernel receives ahead; it doubles them for its own needs.
pub(crate) const AHEAD: u32 = 8 * 1024;

static ARE_SMALL: AtomicBool = AtomicBool::new(false);

/// From now on, for what is bound and connected.
pub fn keep_kernel_buffers_small(small: bool) {
    ARE_SMALL.store(small, Ordering::Relaxed);
}

pub(crate) fn are_small() -> bool {
    ARE_SMALL.load(Ordering::Relaxed)
}
