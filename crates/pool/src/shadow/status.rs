//! What a pool's shadows have decided, in plain values, for whoever shows it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use subak_base::{Tick, Weight};

use super::{Shadow, Shadows};

/// A shadow at one moment. Counted since the pool has had it, or since the pool's own algorithm is what
/// it is.
#[derive(Clone, PartialEq, Debug)]
pub struct ShadowStatus {
    /// What it is called: the algorithm, and options that are not at their default.
    pub name: String,
    /// How long it has been counted.
    pub counted: Duration,
    /// Requests that it has decided on, and so has the pool's algorithm.
    pub decisions: u64,
    /// Of those: where both have chosen the same endpoint.
    pub agreements: u64,
    /// Of those: where it has found nobody.
    pub refusals: u64,
    /// How often it has chosen each endpoint, in configured order.
    pub hits: Vec<u64>,
    /// How often the pool's algorithm has, of the same requests.
    pub taken: Vec<u64>,
    /// It has panicked, and is asked no more.
    pub is_stopped: bool,
}

impl ShadowStatus {
    /// The share of its decisions in which both have chosen the same.
    pub fn agreement(&self) -> Option<f64> {
        (self.decisions > 0).then(|| self.agreements as f64 / self.decisions as f64)
    }
}

/// How unevenly `hits` lie: the most that one endpoint has for its weight, as a multiple of what all
/// have for theirs. 1 is even. Endpoints of weight 0 do not count; none without hits.
pub fn imbalance(hits: &[u64], weights: &[Weight]) -> Option<f64> {
    let weighed = hits.iter().zip(weights).filter(|(_, weight)| **weight > Weight::ZERO);
    let (all, sum) =
        weighed.clone().fold((0, 0), |(hits, sum), (hit, weight)| (hits + hit, sum + weight.get()));
    let most = weighed.map(|(hits, weight)| *hits as f64 / weight.get() as f64).reduce(f64::max)?;
    (all > 0).then(|| most * sum as f64 / all as f64)
}

impl Shadows {
    pub(crate) fn status(&self, now: Tick) -> Vec<ShadowStatus> {
        self.all.iter().map(|shadow| shadow.status(now)).collect()
    }
}

impl Shadow {
    fn status(&self, now: Tick) -> ShadowStatus {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let counts = &self.ledger.counts;
        // In this order, so that none that was counted in between makes a share larger than 1.
        let (agreements, refusals) = (read(&counts.agreements), read(&counts.refusals));
        let accounts = || self.places.iter().map(|place| &place.account);
        ShadowStatus {
            name: self.spec.name.to_string(),
            counted: now.since(self.ledger.since),
            agreements,
            refusals,
            hits: accounts().map(|account| read(&account.hits)).collect(),
            taken: accounts().map(|account| read(&account.taken)).collect(),
            decisions: read(&counts.decisions),
            is_stopped: self.is_stopped.load(Ordering::Relaxed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn imbalance_is_by_weight_and_of_those_that_have_one() {
        let of = |hits: &[u64], weights: &[u16]| {
            let weights: Vec<Weight> = weights.iter().map(|weight| Weight(*weight)).collect();
            imbalance(hits, &weights)
        };
        assert_eq!(of(&[10, 10, 10], &[1, 1, 1]), Some(1.0));
        assert_eq!(of(&[20, 10], &[2, 1]), Some(1.0));
        assert_eq!(of(&[30, 10, 20], &[1, 1, 1]), Some(1.5));
        assert_eq!(of(&[40, 0], &[1, 3]), Some(4.0));
        assert_eq!(of(&[10, 10, 99], &[1, 1, 0]), Some(1.0));
        assert_eq!((of(&[0, 0], &[1, 1]), of(&[], &[]), of(&[5], &[0])), (None, None, None));
    }
}
