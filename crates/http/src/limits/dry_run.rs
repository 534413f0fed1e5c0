//! Lines of the log about limits on trial (`dry_run`): one for each key and second, in a table of a
//! fixed size, because anybody can cause as many refusals as there are requests.

use std::sync::atomic::{AtomicU32, Ordering};

use subak_base::Tick;

/// Places of the table: lines that one limit writes in a second at most. Keys that share a place share
/// its line.
const PLACES: usize = 64;

/// When each place last had a line, in seconds from 1; 0 = never.
#[derive(Debug)]
pub(super) struct DryRun([AtomicU32; PLACES]);

impl Default for DryRun {
    fn default() -> DryRun {
        DryRun(std::array::from_fn(|_| AtomicU32::new(0)))
    }
}

impl DryRun {
    /// Whether a line about the key of this hash is due. Of several workers that ask one hears yes.
    fn is_due(&self, hash: u64, now: Tick) -> bool {
        let place = &self.0[(hash % PLACES as u64) as usize];
        let second = (now.0 / 1_000_000_000) as u32 + 1;
        let last = place.load(Ordering::Relaxed);
        let mine =
            || place.compare_exchange(last, second, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        last != second && mine()
    }

    /// Tells the log whom the limit would have refused, unless it has been told this second.
    pub(super) fn tell(&self, hash: u64, now: Tick, limit: &str, key: impl FnOnce() -> String) {
        if self.is_due(hash, now) {
            let key = key();
            tracing::info!(limit, key, "a request would be refused (dry run)");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_a_key_and_second_and_no_more_than_there_are_places() {
        let dry_run = DryRun::default();
        let at = Tick::from_millis;
        let due = [0, 1, 999, 1000, 1001, 7000].map(|now| dry_run.is_due(5, at(now)));
        assert_eq!(due, [true, false, false, true, false, true]);
        let lines = (0..10_000).filter(|hash| dry_run.is_due(*hash, at(9000))).count();
        assert_eq!(lines, PLACES);
    }
}
