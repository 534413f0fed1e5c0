//! Leaving an endpoint out for a while after it refused or timed out.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use subak_base::Tick;

use crate::spec::BackOffSpec;

/// One endpoint's back-off. Doubles with every failure after it was over, until a success.
#[derive(Debug, Default)]
pub(crate) struct BackOff {
    /// The moment it is over, in ns; 0 = none.
    until: AtomicU64,
    /// Failures in a row that each began a new back-off.
    failures: AtomicU32,
    /// Why, where more is known than that there was no connection.
    why: Mutex<Option<Arc<str>>>,
}

impl BackOff {
    /// Whether the endpoint is left out at this moment.
    #[inline]
    pub(crate) fn is_active(&self, now: Tick) -> bool {
        let until = self.until.load(Ordering::Relaxed);
        until != 0 && until > now.0
    }

    /// The moment it is over; zero without one.
    pub(crate) fn until(&self) -> Tick {
        Tick(self.until.load(Ordering::Relaxed))
    }

    /// Takes a failure in. While a back-off is active another failure changes nothing: requests that
    /// were on their way already say nothing new.
    pub(crate) fn failed(&self, spec: &BackOffSpec, now: Tick) {
        let before = self.until.load(Ordering::Relaxed);
        if before > now.0 {
            return;
        }
        let doublings = self.failures.load(Ordering::Relaxed).min(20);
        let length = spec.initial.saturating_mul(1 << doublings).min(spec.max);
        let until = now.after(length).0;
        // Of several workers that see the failure at once, one counts it.
        if self.until.compare_exchange(before, until, Ordering::Relaxed, Ordering::Relaxed).is_ok()
        {
            self.failures.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Takes a success in. Answers whether that ended a back-off (running or counted).
    #[inline]
    pub(crate) fn succeeded(&self) -> bool {
        if self.failures.load(Ordering::Relaxed) == 0 {
            return false;
        }
        self.failures.store(0, Ordering::Relaxed);
        self.until.store(0, Ordering::Relaxed);
        *self.why.lock().unwrap_or_else(PoisonError::into_inner) = None;
        true
    }

    /// Keeps why the endpoint refused.
    pub(crate) fn note(&self, why: &str) {
        *self.why.lock().unwrap_or_else(PoisonError::into_inner) = Some(why.into());
    }

    /// Why it refused, where more is known than that it did.
    pub(crate) fn why(&self) -> Option<Arc<str>> {
        self.why.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const SPEC: BackOffSpec =
        BackOffSpec { initial: Duration::from_secs(1), max: Duration::from_secs(30) };

    #[test]
    fn it_doubles_from_one_to_the_next_and_stops_at_its_maximum() {
        let back_off = BackOff::default();
        let mut now = Tick::from_millis(5);
        for expected in [1, 2, 4, 8, 16, 30, 30] {
            back_off.failed(&SPEC, now);
            assert_eq!(back_off.until(), now.after(Duration::from_secs(expected)));
            assert!(back_off.is_active(now));
            now = back_off.until();
            assert!(!back_off.is_active(now));
        }
    }

    #[test]
    fn failures_while_it_lasts_count_once_and_a_success_ends_it() {
        let back_off = BackOff::default();
        let now = Tick::from_millis(5);
        (0..10).for_each(|_| back_off.failed(&SPEC, now));
        assert_eq!(back_off.until(), now.after(Duration::from_secs(1)));
        assert!(back_off.succeeded());
        assert!(!back_off.is_active(now));
        assert!(!back_off.succeeded());
        back_off.failed(&SPEC, now);
        assert_eq!(back_off.until(), now.after(Duration::from_secs(1)));
    }
}
