//! How a request ended, in six words: the first digit of its status, or none.

use std::sync::atomic::{AtomicU64, Ordering};

/// What a client was answered.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Outcome {
    /// Nothing, or not all of it: the client left, or its answer was cut off.
    None,
    /// 101, which turns the connection into a tunnel. No other 1xx ends a request.
    Informational,
    /// 2xx.
    Success,
    /// 3xx.
    Redirection,
    /// 4xx.
    ClientError,
    /// 5xx.
    ServerError,
}

/// Every outcome, in the order of its number.
pub const OUTCOMES: [Outcome; 6] = [
    Outcome::None,
    Outcome::Informational,
    Outcome::Success,
    Outcome::Redirection,
    Outcome::ClientError,
    Outcome::ServerError,
];

impl Outcome {
    /// That of a status.
    #[inline]
    pub fn of_status(status: u16) -> Outcome {
        match status / 100 {
            1 => Outcome::Informational,
            2 => Outcome::Success,
            3 => Outcome::Redirection,
            4 => Outcome::ClientError,
            5 => Outcome::ServerError,
            _ => Outcome::None,
        }
    }

    /// The value of the label `status`.
    pub fn name(self) -> &'static str {
        match self {
            Outcome::None => "none",
            Outcome::Informational => "1xx",
            Outcome::Success => "2xx",
            Outcome::Redirection => "3xx",
            Outcome::ClientError => "4xx",
            Outcome::ServerError => "5xx",
        }
    }
}

/// A counter for each outcome.
#[derive(Debug, Default)]
pub struct PerOutcome([AtomicU64; OUTCOMES.len()]);

impl PerOutcome {
    #[inline]
    pub(crate) fn count(&self, outcome: Outcome) {
        self.0[outcome as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Adds the counts to `totals`.
    pub(crate) fn add_to(&self, totals: &mut [u64; OUTCOMES.len()]) {
        for (total, count) in totals.iter_mut().zip(&self.0) {
            *total += count.load(Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{OUTCOMES, Outcome};

    #[test]
    fn every_status_has_its_outcome() {
        for (number, outcome) in OUTCOMES.into_iter().enumerate() {
            assert_eq!(outcome as usize, number);
        }
        for status in 100..600 {
            let name = Outcome::of_status(status).name();
            assert_eq!(name, format!("{}xx", status / 100));
        }
        assert_eq!(Outcome::of_status(0), Outcome::None);
        assert_eq!(Outcome::of_status(u16::MAX), Outcome::None);
    }
}
