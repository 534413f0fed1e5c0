//! Whose requests fail, and whether others are answered well meanwhile.
//!
//! One client can ask for what fails. Where a pool answers several clients, a circuit wants to hear it
//! of two. O(1), no lock; two racing failures may count as one, which delays an opening by a request.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use subak_base::Tick;

/// Stands for several clients.
const SEVERAL: u32 = u32::MAX;

/// The clients of one pool, as numbers; 0 is one nobody knows.
#[derive(Debug, Default)]
pub(crate) struct Clients {
    /// Whose requests failed lately; 0: nobody's.
    failed: AtomicU32,
    failed_at: AtomicU64,
    /// Who was answered well last, and when that was another than the time before.
    well: AtomicU32,
    mixed_at: AtomicU64,
}

impl Clients {
    /// A request of this client failed.
    pub(crate) fn failed(&self, client: u32, window: Duration, now: Tick) {
        let is_old = !is_recent(&self.failed_at, window, now);
        self.failed_at.store(now.0.max(1), Ordering::Relaxed);
        let known = self.failed.load(Ordering::Relaxed);
        let next = match known {
            _ if client == 0 => SEVERAL,
            0 => client,
            _ if is_old || known == client => client,
            _ => SEVERAL,
        };
        self.failed.store(next, Ordering::Relaxed);
    }

    /// A request of this client was answered well.
    #[inline]
    pub(crate) fn well(&self, client: u32, now: Tick) {
        let last = self.well.load(Ordering::Relaxed);
        if last != client {
            self.well.store(client, Ordering::Relaxed);
            if last != 0 {
                self.mixed_at.store(now.0.max(1), Ordering::Relaxed);
            }
        }
    }

    /// Whether failures speak against the pool: of several clients, or of the only one there is.
    pub(crate) fn agree(&self, window: Duration, now: Tick) -> bool {
        self.failed.load(Ordering::Relaxed) == SEVERAL || !is_recent(&self.mixed_at, window, now)
    }
}

fn is_recent(at: &AtomicU64, window: Duration, now: Tick) -> bool {
    let at = at.load(Ordering::Relaxed);
    at != 0 && now.since(Tick(at)) <= window
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: Duration = Duration::from_secs(10);

    #[test]
    fn one_of_several_clients_is_not_enough_and_the_only_one_is() {
        let clients = Clients::default();
        let mut now = Tick::from_millis(60_000);
        clients.failed(1, WINDOW, now);
        assert!(clients.agree(WINDOW, now), "it is alone");
        clients.well(1, now);
        assert!(clients.agree(WINDOW, now));
        clients.well(2, now);
        clients.failed(1, WINDOW, now);
        assert!(!clients.agree(WINDOW, now));
        clients.failed(3, WINDOW, now);
        assert!(clients.agree(WINDOW, now));
        // What is long ago does not count.
        now = now.after(WINDOW * 2);
        clients.well(1, now);
        clients.failed(1, WINDOW, now);
        assert!(!clients.agree(WINDOW, now));
        now = now.after(WINDOW * 2);
        assert!(clients.agree(WINDOW, now));
        clients.failed(0, WINDOW, now);
        clients.well(3, now);
        assert!(clients.agree(WINDOW, now), "nobody knows whose");
    }
}
