//! Is a client too slow? An average over the time in which it is waited for, after a grace period.
//!
//! A limit between two pieces alone lets a client hold a connection for ever with a byte a minute. The
//! clock is read only when a wait begins or ends.

use std::time::Duration;

use subak_base::Tick;
use subak_config::MinRate;

/// One client's progress in one direction of one exchange.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    waited: Duration,
    bytes: u64,
    since: Option<Tick>,
}

impl Pace {
    /// The client is waited for from now on.
    #[inline]
    pub(crate) fn waits(&mut self, now: impl FnOnce() -> Tick) {
        if self.since.is_none() {
            self.since = Some(now());
        }
    }

    /// The client has sent or taken `bytes` more.
    #[inline]
    pub(crate) fn moved(&mut self, bytes: u64, now: impl FnOnce() -> Tick) {
        self.bytes += bytes;
        if let Some(since) = self.since.take() {
            self.waited += now().since(since);
        }
    }

    /// Since when the client has been waited for this time.
    #[inline]
    pub(crate) fn since(&self) -> Option<Tick> {
        self.since
    }

    /// Whether the client is below the rate.
    #[inline]
    pub(crate) fn is_too_slow(&self, least: Option<MinRate>) -> bool {
        let Some(least) = least else { return false };
        if self.waited <= least.grace {
            return false;
        }
        let expected = self.waited.as_millis() * u128::from(least.bytes_per_second) / 1000;
        u128::from(self.bytes) < expected
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEAST: Option<MinRate> =
        Some(MinRate { bytes_per_second: 100, grace: Duration::from_secs(10) });

    fn after_seconds(pieces: u64, bytes: u64, pause_s: u64) -> bool {
        let mut pace = Pace::default();
        let mut now = 0;
        for _ in 0..pieces {
            pace.waits(|| Tick::from_millis(now * 1000));
            now += pause_s;
            pace.moved(bytes, || Tick::from_millis(now * 1000));
        }
        pace.is_too_slow(LEAST)
    }

    #[test]
    fn a_trickle_is_found_and_an_honest_slow_client_is_not() {
        assert!(after_seconds(12, 1, 1));
        assert!(!after_seconds(12, 150, 1));
        assert!(!after_seconds(9, 1, 1), "within the grace period");
    }

    #[test]
    fn time_in_which_the_client_is_not_waited_for_does_not_count() {
        let mut pace = Pace::default();
        for second in 0..100 {
            pace.moved(1, || Tick::from_millis(second * 1000));
        }
        assert!(!pace.is_too_slow(LEAST));
    }
}
