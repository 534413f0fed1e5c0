//! How many retries a pool may make: a share of its requests, and a floor.
//!
//! Without a budget, retries multiply the load exactly when endpoints fail under load. Counting needs
//! nothing on the hot path: requests are read off the endpoints' hits at the moment of a retry.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use subak_base::Tick;

use crate::spec::RetrySpec;

/// The time over which requests and retries are compared.
const WINDOW: Duration = Duration::from_secs(10);

/// Retries against requests, in windows of ten seconds.
#[derive(Debug, Default)]
pub(crate) struct RetryBudget {
    /// None before the first retry.
    window: Mutex<Option<Window>>,
    denied: AtomicU64,
}

/// A retry budget at one moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RetryBudgetStatus {
    /// Retries that it would grant now.
    pub left: u64,
    /// Retries that it has denied so far.
    pub denied: u64,
}

#[derive(Debug)]
struct Window {
    began: Tick,
    requests_before: u64,
    retries: u64,
    /// Those of them that followed a timeout.
    late: u64,
    /// What the window before left over, so that a new window does not begin at nothing.
    carried: u64,
}

impl RetryBudget {
    /// Takes one retry from the budget if there is one. `requests` is the pool's total so far. Of
    /// retries that follow a timeout there is half as much: what takes for ever here may do so elsewhere.
    pub(crate) fn withdraw(
        &self,
        spec: &RetrySpec,
        requests: u64,
        is_late: bool,
        now: Tick,
    ) -> bool {
        let mut window = match self.window.lock() {
            Ok(window) => window,
            Err(poisoned) => poisoned.into_inner(),
        };
        let window = window.get_or_insert_with(|| {
            let left = requests * u64::from(spec.budget_per_mille) / 1000;
            Window::begin(spec, left, requests, now)
        });
        if now.since(window.began) >= WINDOW {
            let left = window.allowed(spec, requests, now).saturating_sub(window.retries);
            *window = Window::begin(spec, left, requests, now);
        }
        let allowed = window.allowed(spec, requests, now);
        let granted = window.retries < allowed && (!is_late || window.late < allowed.div_ceil(2));
        if granted {
            window.retries += 1;
            window.late += u64::from(is_late);
        } else {
            self.denied.fetch_add(1, Ordering::Relaxed);
        }
        granted
    }

    /// How it is. Changes nothing.
    pub(crate) fn status(&self, spec: &RetrySpec, requests: u64, now: Tick) -> RetryBudgetStatus {
        let window = self.window.lock().unwrap_or_else(PoisonError::into_inner);
        let allowed = match &*window {
            Some(window) => window.allowed(spec, requests, now).saturating_sub(window.retries),
            None => {
                let left = requests * u64::from(spec.budget_per_mille) / 1000;
                Window::begin(spec, left, requests, now).carried
            }
        };
        RetryBudgetStatus { left: allowed, denied: self.denied.load(Ordering::Relaxed) }
    }
}

impl Window {
    /// The first second's floor is there at once, and a little of what was left before.
    fn begin(spec: &RetrySpec, left: u64, requests_before: u64, now: Tick) -> Window {
        let floor = u64::from(spec.min_per_second);
        let carried = left.min(floor.max(10)).max(floor);
        Window { began: now, requests_before, retries: 0, late: 0, carried }
    }

    fn allowed(&self, spec: &RetrySpec, requests: u64, now: Tick) -> u64 {
        let share =
            requests.saturating_sub(self.requests_before) * u64::from(spec.budget_per_mille);
        let elapsed = now.since(self.began).min(WINDOW);
        let floor = elapsed.as_millis() as u64 * u64::from(spec.min_per_second);
        (share + floor) / 1000 + self.carried
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPEC: RetrySpec = RetrySpec { budget_per_mille: 200, min_per_second: 10 };

    #[test]
    fn retries_stay_within_a_fifth_of_the_requests_and_the_floor() {
        let budget = RetryBudget::default();
        let start = Tick::from_millis(60_000);
        let mut granted = 0;
        // 1,000 requests a second for 20 s, each asking for a retry.
        for request in 0..20_000u64 {
            let now = start.after(Duration::from_millis(request));
            granted += u64::from(budget.withdraw(&SPEC, request, false, now));
        }
        let promised = 20_000 / 5 + 20 * 10;
        assert!(granted >= promised - 20, "{granted}");
        assert!(granted <= promised + 40, "{granted}");
    }

    #[test]
    fn a_quiet_pool_may_retry_at_once() {
        let budget = RetryBudget::default();
        let now = Tick::from_millis(60_000);
        assert_eq!(budget.status(&SPEC, 1, now), RetryBudgetStatus { left: 10, denied: 0 });
        let granted = (0..100).filter(|_| budget.withdraw(&SPEC, 1, false, now)).count();
        assert_eq!(granted, 10);
        assert_eq!(budget.status(&SPEC, 1, now), RetryBudgetStatus { left: 0, denied: 90 });
    }

    #[test]
    fn retries_are_allowed_from_the_first_moment_of_the_process() {
        let start = Tick::from_millis(0);
        let budget = RetryBudget::default();
        let granted = (0..100).filter(|_| budget.withdraw(&SPEC, 1, false, start)).count();
        assert_eq!(granted, 10);
        let share = RetrySpec { budget_per_mille: 100, min_per_second: 0 };
        let budget = RetryBudget::default();
        assert!(budget.withdraw(&share, 10, false, start));
        assert!(!budget.withdraw(&share, 10, false, start));
    }

    #[test]
    fn timeouts_take_half_of_what_there_is() {
        let budget = RetryBudget::default();
        let now = Tick::from_millis(60_000);
        let late = (0..100).filter(|_| budget.withdraw(&SPEC, 1, true, now)).count();
        let others = (0..100).filter(|_| budget.withdraw(&SPEC, 1, false, now)).count();
        assert_eq!((late, others), (5, 5));
        let none = RetrySpec { budget_per_mille: 0, min_per_second: 0 };
        assert!(!RetryBudget::default().withdraw(&none, 1000, true, now));
    }

    #[test]
    fn a_budget_of_nothing_grants_nothing() {
        let none = RetrySpec { budget_per_mille: 0, min_per_second: 0 };
        let budget = RetryBudget::default();
        for second in 0..100 {
            assert!(!budget.withdraw(
                &none,
                second * 1000,
                false,
                Tick::from_millis(second * 1000)
            ));
        }
    }
}
