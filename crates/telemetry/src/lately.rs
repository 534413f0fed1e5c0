//! Has something been counted lately? For problems that are there as long as a count grows.

use std::time::{Duration, Instant};

/// What was counted is a problem for so long.
const REMEMBERED: Duration = Duration::from_secs(10);

/// A count that is looked at again and again.
#[derive(Clone, Copy, Debug, Default)]
pub struct Lately {
    known: u64,
    grown_at: Option<Instant>,
}

impl Lately {
    /// Whether the count has grown within the last ten seconds; `now` only goes forward.
    pub fn has_grown(&mut self, count: u64, now: Instant) -> bool {
        if count > self.known {
            (self.known, self.grown_at) = (count, Some(now));
        }
        self.grown_at.is_some_and(|at| now.duration_since(at) < REMEMBERED)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_that_grows_is_remembered_for_ten_seconds() {
        let mut lately = Lately::default();
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let looks = [(0, 0), (1, 1), (1, 10), (1, 11), (2, 12), (3, 20), (3, 29), (3, 30)];
        let grown = looks.map(|(count, now)| lately.has_grown(count, at(now)));
        assert_eq!(grown, [false, true, true, false, true, true, true, false]);
    }
}
