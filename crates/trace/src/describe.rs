//! The traffic of a log, in a few figures: how much, how evenly, from whom, for what.

use crate::log::Log;

/// Steps of the plot of the rate.
const STEPS: u64 = 120;

/// Figures of a log.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Traffic {
    pub(crate) lasts_s: f64,
    /// Requests a second.
    pub(crate) mean: f64,
    /// In the busiest second.
    pub(crate) peak: u64,
    /// The variance of requests by second in their mean: 1 where one has nothing to do with the other,
    /// more where they come in bursts or the rate changes.
    pub(crate) burstiness: f64,
    /// Seconds since the beginning, and requests a second from there on.
    pub(crate) rates: Vec<(f64, f64)>,
    pub(crate) clients: Share,
    pub(crate) uris: Share,
}

/// How many there are, and what share of the requests the busiest have.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Share {
    pub(crate) count: usize,
    /// Of the busiest one.
    pub(crate) first: f64,
    /// Of the ten busiest.
    pub(crate) ten: f64,
}

/// Counts.
pub(crate) fn traffic(log: &Log) -> Traffic {
    let first = log.requests.first().map_or(0, |request| request.arrived);
    let lasts = log.requests.last().map_or(0, |request| request.arrived) - first;
    let count = log.requests.len() as f64;
    let mut by_second = std::collections::BTreeMap::<u64, u64>::new();
    let mut by_step = vec![0_u64; STEPS as usize];
    for request in &log.requests {
        let at = request.arrived - first;
        *by_second.entry(at / 1_000_000_000).or_default() += 1;
        by_step[(at * STEPS / (lasts + 1)) as usize] += 1;
    }
    // The last second is not a whole one.
    let seconds = (lasts / 1_000_000_000).max(1);
    let whole = || by_second.range(..seconds).map(|(_, count)| *count as f64);
    let mean = whole().sum::<f64>() / seconds as f64;
    let squares: f64 = whole().map(|count| count * count).sum();
    let variance = squares / seconds as f64 - mean * mean;
    let lasts_s = (lasts as f64 / 1e9).max(1e-9);
    let step_s = lasts_s / STEPS as f64;
    let rates = by_step.iter().enumerate();
    Traffic {
        lasts_s,
        mean: count / lasts_s,
        peak: by_second.values().max().copied().unwrap_or(0),
        burstiness: if mean > 0.0 { variance / mean } else { 0.0 },
        rates: rates.map(|(step, count)| (step as f64 * step_s, *count as f64 / step_s)).collect(),
        clients: share(log.clients.len(), log.requests.iter().map(|request| request.client)),
        uris: share(log.uris.len(), log.requests.iter().map(|request| request.uri)),
    }
}

fn share(most: usize, numbers: impl Iterator<Item = u32>) -> Share {
    let mut counts = vec![0_u64; most];
    numbers.for_each(|number| counts[number as usize] += 1);
    counts.retain(|count| *count > 0);
    counts.sort_unstable_by(|one, other| other.cmp(one));
    let all = counts.iter().sum::<u64>().max(1) as f64;
    let first = |most: usize| counts.iter().take(most).sum::<u64>() as f64 / all;
    Share { count: counts.len(), first: first(1), ten: first(10) }
}

#[cfg(test)]
mod tests {
    use super::traffic;
    use crate::log::tests::log_of;

    #[test]
    fn even_traffic_and_bursts() {
        let even: Vec<_> = (0..10_000).map(|at| (at, 1, 0)).collect();
        let found = traffic(&log_of(&["a"], &even));
        assert_eq!((found.peak, found.mean.round()), (1000, 1000.0));
        assert!(found.burstiness < 0.01, "{}", found.burstiness);
        assert_eq!((found.clients.count, found.clients.first), (1, 1.0));
        let bursts: Vec<_> = (0..10_000).map(|at| (at / 1000 * 5000 + at % 10, 1, 0)).collect();
        let found = traffic(&log_of(&["a"], &bursts));
        assert!(found.burstiness > 500.0, "{}", found.burstiness);
    }
}
