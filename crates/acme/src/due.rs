//! When is the next order? Pure: the time and all that is known come in as values.
//!
//! A certificate is renewed when about two thirds of its life have passed, or within the window that
//! the authority suggests (ARI, RFC 9773). The exact moment is drawn from the certificate itself, so
//! that every process that shares it, before and after a restart, comes to the same one, and different
//! certificates do not come all at once. After failures in a row the next attempt waits, each time
//! twice as long, and at least as long as the authority has asked for.

use std::time::{Duration, SystemTime};

/// Of its life, renewal is due at `BY` at the latest, and drawn from the last `SPREAD` before it.
const BY: (u32, u32) = (2, 3);
const SPREAD: (u32, u32) = (1, 24);
/// No window makes a certificate be replaced sooner than this after it began, or half its life if that
/// is less: an authority whose windows lie in the past would be asked again and again.
const SOONEST: Duration = Duration::from_secs(2 * 60 * 60);
/// No window makes it wait longer than this part of its life.
const LATEST: (u32, u32) = (9, 10);

/// How long a certificate holds, and its share of chance.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Life {
    pub(crate) begins: SystemTime,
    pub(crate) ends: SystemTime,
    /// Uniform over certificates, always the same for one.
    pub(crate) draw: u32,
}

/// When the authority suggests to renew.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Window {
    pub(crate) begins: SystemTime,
    pub(crate) ends: SystemTime,
}

/// Failures in a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Failures {
    /// At least 1.
    pub(crate) count: u32,
    /// The last one.
    pub(crate) at: SystemTime,
    /// The authority wants to hear nothing before.
    pub(crate) not_before: Option<SystemTime>,
}

/// Between attempts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Patience {
    pub(crate) initial: Duration,
    pub(crate) max: Duration,
}

impl Life {
    /// When it is to be renewed.
    pub(crate) fn renewal(&self, window: Option<Window>) -> SystemTime {
        let length = self.length();
        let Some(window) = window else {
            let back = self.part_of(share(length, SPREAD));
            return self.begins + share(length, BY) - back;
        };
        let span = window.ends.duration_since(window.begins).unwrap_or_default();
        let drawn = window.begins + self.part_of(span);
        let soonest = self.begins + SOONEST.min(length / 2);
        let latest = self.begins + share(length, LATEST);
        drawn.clamp(soonest, latest.max(soonest))
    }

    fn length(&self) -> Duration {
        self.ends.duration_since(self.begins).unwrap_or_default()
    }

    /// As much of `span` as was drawn.
    fn part_of(&self, span: Duration) -> Duration {
        span.mul_f64(f64::from(self.draw) / (f64::from(u32::MAX) + 1.0))
    }
}

/// When an order is due; in the past: now. `life`: of what there is. `is_hurried`: somebody has looked
/// after it since the last failure, so that waiting begins anew.
pub(crate) fn due(
    life: Option<Life>,
    window: Option<Window>,
    failures: Option<Failures>,
    patience: Patience,
    is_hurried: bool,
) -> SystemTime {
    let wanted = life.map_or(SystemTime::UNIX_EPOCH, |life| life.renewal(window));
    let Some(failures) = failures else { return wanted };
    let count = if is_hurried { 1 } else { failures.count.max(1) };
    let doubled = 2u32.saturating_pow(count - 1);
    let wait = patience.initial.saturating_mul(doubled).min(patience.max);
    let patient = failures.at + wait;
    wanted.max(patient).max(failures.not_before.unwrap_or(SystemTime::UNIX_EPOCH))
}

fn share(length: Duration, (part, of): (u32, u32)) -> Duration {
    // Days to years: far from overflow.
    length * part / of
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const DAY: Duration = Duration::from_secs(24 * 60 * 60);
    const PATIENCE: Patience =
        Patience { initial: Duration::from_secs(60), max: Duration::from_secs(6 * 60 * 60) };

    fn at(seconds: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000 + seconds)
    }

    fn life(days: u32, draw: u32) -> Life {
        Life { begins: at(0), ends: at(0) + DAY * days, draw }
    }

    #[test]
    fn a_certificate_of_ninety_days_is_renewed_before_the_sixtieth() {
        assert_eq!(due(None, None, None, PATIENCE, false), SystemTime::UNIX_EPOCH);
        assert_eq!(life(90, 0).renewal(None), at(0) + DAY * 60);
        let early = life(90, u32::MAX).renewal(None);
        assert!(early < at(0) + DAY * 57 && early > at(0) + DAY * 56);
    }

    #[test]
    fn the_window_of_the_authority_goes_before_our_own_rule() {
        let window = Window { begins: at(0) + DAY * 30, ends: at(0) + DAY * 32 };
        assert_eq!(life(90, 0).renewal(Some(window)), window.begins);
        assert_eq!(life(90, 1 << 31).renewal(Some(window)), at(0) + DAY * 31);
        // Revoked for everybody: at once, but not again and again.
        let past = Window { begins: at(0) - DAY * 2, ends: at(0) - DAY };
        assert_eq!(life(90, 7).renewal(Some(past)), at(0) + SOONEST);
        let short = Life { ends: at(20), ..life(1, 7) };
        assert_eq!(short.renewal(Some(past)), at(10));
        let late = Window { begins: at(0) + DAY * 100, ends: at(0) + DAY * 101 };
        assert_eq!(life(90, 7).renewal(Some(late)), at(0) + DAY * 81);
    }

    #[test]
    fn failures_double_the_wait_up_to_its_bound() {
        let failed = |count| Some(Failures { count, at: at(0), not_before: None });
        let wait = |count| due(None, None, failed(count), PATIENCE, false);
        assert_eq!(wait(1), at(60));
        assert_eq!(wait(2), at(120));
        assert_eq!(wait(5), at(960));
        assert_eq!(wait(100), at(6 * 60 * 60));
        assert_eq!(due(None, None, failed(9), PATIENCE, true), at(60));
        let asked = Some(Failures { count: 1, at: at(0), not_before: Some(at(7200)) });
        assert_eq!(due(None, None, asked, PATIENCE, true), at(7200));
    }

    proptest! {
        #[test]
        fn whatever_the_window_says_renewal_lies_within_the_life_of_a_certificate(
            length in 1u64..100_000_000, draw: u32,
            begins in 0u64..200_000_000, span in 0u64..100_000_000, has_window: bool,
        ) {
            let life = Life { begins: at(0), ends: at(length), draw };
            let window = Window { begins: at(begins) - DAY * 1000, ends: at(begins + span) - DAY * 1000 };
            let renewal = life.renewal(has_window.then_some(window));
            prop_assert!(renewal > life.begins && renewal < life.ends);
            prop_assert_eq!(renewal, life.renewal(has_window.then_some(window)));
        }

        #[test]
        fn an_attempt_is_never_sooner_than_patience_or_the_authority_asks(
            count in 1u32..1000, initial in 1u64..1000, more in 0u64..100_000,
            ask in proptest::option::of(0u64..1_000_000), is_hurried: bool,
        ) {
            let patience = Patience {
                initial: Duration::from_secs(initial),
                max: Duration::from_secs(initial + more),
            };
            let failures = Failures { count, at: at(0), not_before: ask.map(at) };
            let due = due(None, None, Some(failures), patience, is_hurried);
            prop_assert!(due >= at(0) + patience.initial);
            prop_assert!(due >= ask.map_or(at(0), at));
            prop_assert!(due <= (at(0) + patience.max).max(ask.map_or(at(0), at)));
            let next = Failures { count: count + 1, ..failures };
            prop_assert!(super::due(None, None, Some(next), patience, is_hurried) >= due);
        }
    }
}
