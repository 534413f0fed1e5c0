//! What is counted at a pool, beside what its endpoints count.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::histogram::{Counts, Histogram};
use crate::outcome::{OUTCOMES, Outcome, PerOutcome};
use crate::shards::Shards;

/// The counters of one pool. Goes on over reloads, under the pool's name.
#[derive(Debug)]
pub struct PoolMetrics {
    shards: Shards<Shard>,
}

#[derive(Debug, Default)]
struct Shard {
    durations: Histogram,
    requests: PerOutcome,
    retries: AtomicU64,
    waits: AtomicU64,
    streams_opened: AtomicU64,
    streams_closed: AtomicU64,
    stream_resets: AtomicU64,
    goodbyes: AtomicU64,
    no_port: AtomicU64,
    bytes_in: AtomicU64,
    bytes_out: AtomicU64,
    calls: [AtomicU64; CALL_STATUSES.len()],
}

/// The statuses of gRPC, from 0 on.
pub const CALL_STATUSES: [&str; 17] = [
    "ok",
    "cancelled",
    "unknown",
    "invalid_argument",
    "deadline_exceeded",
    "not_found",
    "already_exists",
    "permission_denied",
    "resource_exhausted",
    "failed_precondition",
    "aborted",
    "out_of_range",
    "unimplemented",
    "internal",
    "unavailable",
    "data_loss",
    "unauthenticated",
];

/// What a pool has counted so far.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct PoolTotals {
    /// Requests, by [`Outcome`].
    pub requests: [u64; OUTCOMES.len()],
    /// How long those took that an endpoint answered.
    pub durations: Counts,
    /// Attempts at another endpoint.
    pub retries: u64,
    /// Requests that stood in line.
    pub waits: u64,
    /// Streams of shared connections now.
    pub streams: u64,
    /// Streams that endpoints have reset.
    pub stream_resets: u64,
    /// Shared connections that endpoints have said goodbye on (GOAWAY).
    pub goodbyes: u64,
    /// Bytes received of clients,
    pub bytes_in: u64,
    /// and sent to them.
    pub bytes_out: u64,
    /// gRPC calls that ended, by the number of their status.
    pub calls: [u64; CALL_STATUSES.len()],
}

impl PoolMetrics {
    /// For so many workers.
    pub fn new(workers: usize) -> PoolMetrics {
        PoolMetrics { shards: Shards::new(workers) }
    }

    /// A request was answered by an endpoint, so long after it was first to be given to one. What a
    /// tunnel takes is no answer's time and does not go into the durations.
    #[inline]
    pub fn answered(&self, worker: usize, outcome: Outcome, took: Duration) {
        let shard = self.shards.of(worker);
        shard.requests.count(outcome);
        if outcome != Outcome::Informational {
            shard.durations.record(took);
        }
    }

    /// A request was not answered by an endpoint, or not to the end.
    pub fn failed(&self, worker: usize) {
        self.shards.of(worker).requests.count(Outcome::None);
    }

    /// A request is tried at another endpoint.
    pub fn retried(&self, worker: usize) {
        self.shards.of(worker).retries.fetch_add(1, Ordering::Relaxed);
    }

    /// A request stands in line.
    pub fn waits(&self, worker: usize) {
        self.shards.of(worker).waits.fetch_add(1, Ordering::Relaxed);
    }

    /// A request has a stream of a shared connection.
    #[inline]
    pub fn stream_opened(&self, worker: usize) {
        self.shards.of(worker).streams_opened.fetch_add(1, Ordering::Relaxed);
    }

    /// A stream of a shared connection is over.
    #[inline]
    pub fn stream_closed(&self, worker: usize) {
        self.shards.of(worker).streams_closed.fetch_add(1, Ordering::Relaxed);
    }

    /// This machine had no port left for a connection to an endpoint.
    #[cold]
    pub fn no_port(&self, worker: usize) {
        self.shards.of(worker).no_port.fetch_add(1, Ordering::Relaxed);
    }

    /// How often that was so.
    pub fn no_ports(&self) -> u64 {
        self.shards.iter().map(|shard| shard.no_port.load(Ordering::Relaxed)).sum()
    }

    /// An endpoint has reset a stream.
    pub fn stream_reset(&self, worker: usize) {
        self.shards.of(worker).stream_resets.fetch_add(1, Ordering::Relaxed);
    }

    /// An endpoint has said goodbye on a shared connection.
    pub fn told_goodbye(&self, worker: usize) {
        self.shards.of(worker).goodbyes.fetch_add(1, Ordering::Relaxed);
    }

    /// So much was received of a client and sent to it for one request.
    #[inline]
    pub fn moved(&self, worker: usize, bytes_in: u64, bytes_out: u64) {
        let shard = self.shards.of(worker);
        shard.bytes_in.fetch_add(bytes_in, Ordering::Relaxed);
        shard.bytes_out.fetch_add(bytes_out, Ordering::Relaxed);
    }

    /// A gRPC call ended with the status of this number.
    pub fn call(&self, worker: usize, code: usize) {
        if let Some(calls) = self.shards.of(worker).calls.get(code) {
            calls.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// What has been counted so far.
    pub fn totals(&self) -> PoolTotals {
        let mut totals = PoolTotals::default();
        for shard in self.shards.iter() {
            shard.requests.add_to(&mut totals.requests);
            totals.bytes_in += shard.bytes_in.load(Ordering::Relaxed);
            totals.bytes_out += shard.bytes_out.load(Ordering::Relaxed);
            shard.durations.add_to(&mut totals.durations);
            totals.retries += shard.retries.load(Ordering::Relaxed);
            totals.waits += shard.waits.load(Ordering::Relaxed);
            for (total, calls) in totals.calls.iter_mut().zip(&shard.calls) {
                *total += calls.load(Ordering::Relaxed);
            }
            // In this order: what is read as closed has been opened.
            let closed = shard.streams_closed.load(Ordering::Acquire);
            totals.streams += shard.streams_opened.load(Ordering::Relaxed).saturating_sub(closed);
            totals.stream_resets += shard.stream_resets.load(Ordering::Relaxed);
            totals.goodbyes += shard.goodbyes.load(Ordering::Relaxed);
        }
        totals
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_add_up() {
        let metrics = PoolMetrics::new(3);
        for worker in 0..3 {
            metrics.answered(worker, Outcome::Success, Duration::from_millis(3));
        }
        metrics.answered(0, Outcome::Informational, Duration::from_secs(3600));
        metrics.failed(2);
        metrics.retried(1);
        metrics.waits(0);
        metrics.call(0, 14);
        metrics.call(2, 14);
        metrics.call(1, CALL_STATUSES.len());
        let totals = metrics.totals();
        assert_eq!(totals.requests, [1, 1, 3, 0, 0, 0]);
        assert_eq!((totals.calls[14], totals.calls.iter().sum::<u64>()), (2, 2));
        assert_eq!((totals.durations.count(), totals.retries, totals.waits), (3, 1, 1));
    }
}
