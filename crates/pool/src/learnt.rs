//! What an algorithm learns of one endpoint, for those that learn: kept over reloads as long as the
//! algorithm stays the same, because another one would misread it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use subak_balance::Window;
use subak_balance::catalogue::Wants;
use subak_base::{Tick, Weight};

use crate::packets::Traffic;

/// One endpoint's observed load beside requests in flight.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct Learnt {
    cell: AtomicU64,
    pub(crate) packets: Option<Traffic>,
    pub(crate) bytes: Option<Traffic>,
}

impl Learnt {
    /// A place to learn, if there is anything to.
    pub(crate) fn for_one_who_wants(wants: Wants) -> Option<Arc<Learnt>> {
        let traffic = |wanted: bool| wanted.then(Traffic::default);
        let learnt = Learnt {
            cell: AtomicU64::new(0),
            packets: traffic(wants.packets),
            bytes: traffic(wants.bytes),
        };
        (wants.cells || wants.packets || wants.bytes).then(|| Arc::new(learnt))
    }

    /// The same, where what is counted of traffic is what is wanted now; else another one that begins
    /// with what is known. What is under way meanwhile settles with the one before.
    pub(crate) fn going_on(before: &Arc<Learnt>, wants: Wants) -> Arc<Learnt> {
        if (before.packets.is_some(), before.bytes.is_some()) == (wants.packets, wants.bytes) {
            return before.clone();
        }
        let traffic = |known: &Option<Traffic>, wanted: bool| {
            wanted.then(|| known.as_ref().map(Traffic::copied).unwrap_or_default())
        };
        Arc::new(Learnt {
            cell: AtomicU64::new(before.cell()),
            packets: traffic(&before.packets, wants.packets),
            bytes: traffic(&before.bytes, wants.bytes),
        })
    }

    /// What is counted of the endpoint's traffic.
    pub(crate) fn traffics(&self) -> impl Iterator<Item = &Traffic> {
        self.packets.iter().chain(&self.bytes)
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

/// Gives those who join or return the mean per weight of the others' traffic: with nothing on its
/// account one would get every request for seconds, and then none.
pub(crate) fn welcome(newcomers: &[(&Learnt, Weight)], others: &[(&Learnt, Weight)], now: Tick) {
    let fill = |traffic: fn(&Learnt) -> Option<&Traffic>| {
        let sums =
            || others.iter().filter_map(|(one, weight)| Some((traffic(one)?.sum(), *weight)));
        for (newcomer, weight) in newcomers {
            if let Some(traffic) = traffic(newcomer)
                && sums().next().is_some()
            {
                traffic.fill(Window::joining(sums(), *weight), now);
            }
        }
    };
    fill(|learnt| learnt.packets.as_ref());
    fill(|learnt| learnt.bytes.as_ref());
}
