//! What a run came to.

use std::time::Duration;

use subak_base::Tick;

use crate::event::Why;
use crate::histogram::Latency;

/// What became of the requests of one run.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Outcome {
    /// Requests that arrived.
    pub requests: u64,
    /// Requests that were answered well.
    pub answered: u64,
    /// The others.
    pub failures: Failures,
    /// Dispatches beyond each request's first.
    pub retries: u64,
    /// Retries that the pool's budget denied.
    pub denied: u64,
    /// From arrival to answer, of those that were answered well and arrived after the warm-up.
    pub latency: Latency,
    /// By endpoint.
    pub endpoints: Vec<EndpointOutcome>,
    /// What happened over time.
    pub series: Vec<Moment>,
    /// Changes of endpoints' states, as the pools told them.
    pub events: Vec<PoolEvent>,
    /// When the last request ended.
    pub ended: Tick,
}

/// Requests that were not answered well, by why.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Failures {
    /// Nobody could take it.
    pub no_endpoint: u64,
    /// The pool's line was full.
    pub line_full: u64,
    /// It stood in line too long.
    pub line_timeout: u64,
    /// The connection was refused, and by all others too.
    pub refused: u64,
    /// The connection broke.
    pub reset: u64,
    /// There was no answer in time.
    pub timeout: u64,
    /// The answer was a 5xx.
    pub error: u64,
    /// The client left.
    pub abandoned: u64,
    /// It hung at the end of the run.
    pub unfinished: u64,
}

impl Failures {
    /// All of them.
    pub fn total(&self) -> u64 {
        self.named().iter().map(|(_, count)| count).sum()
    }

    /// One more.
    pub(crate) fn add(&mut self, why: Why) {
        *match why {
            Why::NoEndpoint => &mut self.no_endpoint,
            Why::LineFull => &mut self.line_full,
            Why::LineTimeout => &mut self.line_timeout,
            Why::Refused => &mut self.refused,
            Why::Reset => &mut self.reset,
            Why::Timeout => &mut self.timeout,
            Why::Error => &mut self.error,
            Why::Abandoned => &mut self.abandoned,
            Why::Unfinished => &mut self.unfinished,
        } += 1;
    }

    /// By name.
    pub fn named(&self) -> [(&'static str, u64); 9] {
        [
            ("no endpoint", self.no_endpoint),
            ("line full", self.line_full),
            ("too long in line", self.line_timeout),
            ("refused", self.refused),
            ("reset", self.reset),
            ("timeout", self.timeout),
            ("5xx", self.error),
            ("client left", self.abandoned),
            ("unfinished", self.unfinished),
        ]
    }
}

/// What one endpoint did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct EndpointOutcome {
    /// Requests that were sent to it.
    pub hits: u64,
    /// Answers to the end that were not 5xx.
    pub answered: u64,
    /// Requests that failed here.
    pub failed: u64,
    /// Of its answers those from its cache.
    pub cached: u64,
    /// For how long its slots were at work, all together.
    pub busy: Duration,
}

/// What happened in one step of the series.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Moment {
    /// When the step began.
    pub from: Duration,
    /// Requests that arrived.
    pub arrived: u64,
    /// Requests that were answered well.
    pub answered: u64,
    /// Requests that failed.
    pub failed: u64,
    /// Of those answered well, half took no longer.
    pub p50: Duration,
    /// 95 % took no longer.
    pub p95: Duration,
    /// 99 % took no longer.
    pub p99: Duration,
    /// Requests sent to each endpoint.
    pub hits: Vec<u64>,
    /// Requests in flight to each endpoint at the step's end.
    pub in_flight: Vec<u32>,
}

/// Something a pool told.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PoolEvent {
    /// When.
    pub at: Tick,
    /// Which balancer's.
    pub balancer: u32,
    /// In the words of the log.
    pub said: String,
}

impl Outcome {
    /// Requests sent to each endpoint.
    pub fn hits(&self) -> Vec<u64> {
        self.endpoints.iter().map(|endpoint| endpoint.hits).collect()
    }

    /// Jain's fairness index of the hits.
    pub fn jain(&self) -> f64 {
        jain(self.endpoints.iter().map(|endpoint| endpoint.hits as f64))
    }

    /// Requests that failed, of all.
    pub fn failed_share(&self) -> f64 {
        match self.requests {
            0 => 0.0,
            requests => self.failures.total() as f64 / requests as f64,
        }
    }
}

/// Jain's fairness index, (Σx)² ÷ (n Σx²): 1 when all are equal, 1/n when one has everything.
pub fn jain(values: impl Iterator<Item = f64>) -> f64 {
    let (mut count, mut sum, mut squares) = (0.0, 0.0, 0.0);
    for value in values {
        count += 1.0;
        sum += value;
        squares += value * value;
    }
    if squares == 0.0 { 1.0 } else { sum * sum / (count * squares) }
}

#[cfg(test)]
mod tests {
    use super::jain;

    #[test]
    fn jain_is_1_for_equals_and_1_nth_for_one_alone() {
        assert!((jain([3.0, 3.0, 3.0].into_iter()) - 1.0).abs() < 1e-12);
        assert!((jain([5.0, 0.0, 0.0, 0.0].into_iter()) - 0.25).abs() < 1e-12);
        let of_20_000 = jain([6667.0, 6667.0, 6666.0].into_iter());
        assert!((of_20_000 - 0.999_999_995).abs() < 1e-10, "{of_20_000}");
    }
}
