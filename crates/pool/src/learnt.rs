//! What an algorithm learns of one endpoint, for those that learn: kept over reloads as long as the
//! algorithm stays the same, because another one would misread it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use subak_balance::catalogue::Wants;

/// One endpoint's observed load beside requests in flight.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Learnt {
    cell: AtomicU64,
}

impl Learnt {
    /// A place to learn, if there is anything to.
    pub(crate) fn for_one_who_wants(wants: Wants) -> Option<Arc<Learnt>> {
        wants.cells.then(Arc::default)
    }

    /// The algorithm's own word.
    #[inline]
    pub(crate) fn cell(&self) -> u64 {
        self.cell.load(Ordering::Relaxed)
    }

    /// Changes the word by a pure function of the old one. Of several workers none is lost.
    #[inline]
    pub(crate) fn change(&self, change: impl Fn(u64) -> u64) {
        let mut before = self.cell();
        loop {
            let after = change(before);
            let swapped = self.cell.compare_exchange_weak(
                before,
                after,
                Ordering::Relaxed,
                Ordering::Relaxed,
            );
            match swapped {
                Ok(_) => return,
                Err(now) => before = now,
            }
        }
    }
}
