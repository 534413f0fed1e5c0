//! What is counted at a listener.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::cause::Cause;
use crate::flood::Flood;
use crate::outcome::{OUTCOMES, Outcome, PerOutcome};
use crate::shards::Shards;

/// Why a client's connection was closed before anything of it was read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Turned {
    /// Its network may not in.
    Network,
    /// It has as many connections as it may have.
    PerClient,
    /// It comes from outside of `proxy_protocol.from`.
    ProxySource,
    /// It begins without a PROXY header.
    ProxyAbsent,
    /// Its PROXY header cannot be read.
    ProxyMalformed,
    /// Its PROXY header was not whole in time.
    ProxyLate,
    /// It ended before its PROXY header.
    ProxyCut,
}

impl Turned {
    /// Every reason, in the order of its number.
    pub const ALL: [Turned; 7] = [
        Turned::Network,
        Turned::PerClient,
        Turned::ProxySource,
        Turned::ProxyAbsent,
        Turned::ProxyMalformed,
        Turned::ProxyLate,
        Turned::ProxyCut,
    ];

    /// The value of the label `why`.
    pub fn name(self) -> &'static str {
        match self {
            Turned::Network => "network",
            Turned::PerClient => "per_client",
            Turned::ProxySource => "proxy_source",
            Turned::ProxyAbsent => "proxy_absent",
            Turned::ProxyMalformed => "proxy_malformed",
            Turned::ProxyLate => "proxy_late",
            Turned::ProxyCut => "proxy_cut",
        }
    }
}

/// The counters of one listener. Goes on over reloads, under the listener's name.
#[derive(Debug)]
pub struct ListenerMetrics {
    shards: Shards<Shard>,
}

#[derive(Debug, Default)]
struct Shard {
    requests: PerOutcome,
    accepted: AtomicU64,
    refused: AtomicU64,
    evicted: AtomicU64,
    crowded: AtomicU64,
    turned: [AtomicU64; Turned::ALL.len()],
    handshakes_failed: AtomicU64,
    failures: [AtomicU64; Cause::ALL.len()],
    floods: [AtomicU64; Flood::ALL.len()],
    streams_opened: AtomicU64,
    streams_closed: AtomicU64,
    bytes_in: AtomicU64,
    bytes_out: AtomicU64,
}

/// What a listener has counted so far.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct ListenerTotals {
    /// Requests, by [`Outcome`].
    pub requests: [u64; OUTCOMES.len()],
    /// Connections that were accepted.
    pub accepted: u64,
    /// Connections that were closed at once: the listener had as many as allowed.
    pub refused: u64,
    /// Idle connections that were closed to make room for newcomers.
    pub evicted: u64,
    /// Connections that were closed at once because of their client, by [`Turned`].
    pub turned: [u64; Turned::ALL.len()],
    /// TLS handshakes that came to nothing.
    pub handshakes_failed: u64,
    /// Requests that were not served, by [`Cause`].
    pub failures: [u64; Cause::ALL.len()],
    /// HTTP/2 connections that were ended because the client did too much of something, by [`Flood`].
    pub floods: [u64; Flood::ALL.len()],
    /// Streams of HTTP/2 connections now.
    pub streams: u64,
    /// Bytes received of clients,
    pub bytes_in: u64,
    /// and sent to them.
    pub bytes_out: u64,
}

impl ListenerMetrics {
    /// For so many workers.
    pub fn new(workers: usize) -> ListenerMetrics {
        ListenerMetrics { shards: Shards::new(workers) }
    }

    /// A request has ended.
    #[inline]
    pub fn request(&self, worker: usize, outcome: Outcome) {
        self.shards.of(worker).requests.count(outcome);
    }

    /// A request was not served; it has ended by this outcome.
    pub fn failure(&self, worker: usize, cause: Cause, outcome: Outcome) {
        let shard = self.shards.of(worker);
        shard.requests.count(outcome);
        shard.failures[cause as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// A connection was accepted.
    #[inline]
    pub fn accepted(&self, worker: usize) {
        self.shards.of(worker).accepted.fetch_add(1, Ordering::Relaxed);
    }

    /// A connection was closed at once.
    pub fn refused(&self, worker: usize) {
        self.shards.of(worker).refused.fetch_add(1, Ordering::Relaxed);
    }

    /// An idle connection was closed to make room for a newcomer.
    pub fn evicted(&self, worker: usize) {
        self.shards.of(worker).evicted.fetch_add(1, Ordering::Relaxed);
    }

    /// A newcomer found as many connections as the listener may have.
    pub fn crowded(&self, worker: usize) {
        self.shards.of(worker).crowded.fetch_add(1, Ordering::Relaxed);
    }

    /// How often that was so.
    pub fn found_full(&self) -> u64 {
        self.shards.iter().map(|shard| shard.crowded.load(Ordering::Relaxed)).sum()
    }

    /// How many requests failed for this cause.
    pub fn failed_for(&self, cause: Cause) -> u64 {
        let failures = self.shards.iter().map(|shard| &shard.failures[cause as usize]);
        failures.map(|count| count.load(Ordering::Relaxed)).sum()
    }

    /// A connection was closed at once because of its client.
    pub fn turned(&self, worker: usize, why: Turned) {
        self.shards.of(worker).turned[why as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// A TLS handshake came to nothing.
    pub fn handshake_failed(&self, worker: usize) {
        self.shards.of(worker).handshakes_failed.fetch_add(1, Ordering::Relaxed);
    }

    /// An HTTP/2 connection was ended because the client did too much of this.
    pub fn flooded(&self, worker: usize, flood: Flood) {
        self.shards.of(worker).floods[flood as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// A request has come on a stream of an HTTP/2 connection.
    #[inline]
    pub fn stream_opened(&self, worker: usize) {
        self.shards.of(worker).streams_opened.fetch_add(1, Ordering::Relaxed);
    }

    /// A stream of an HTTP/2 connection is over.
    #[inline]
    pub fn stream_closed(&self, worker: usize) {
        self.shards.of(worker).streams_closed.fetch_add(1, Ordering::Release);
    }

    /// So much was received of a client and sent to it for one request.
    #[inline]
    pub fn moved(&self, worker: usize, bytes_in: u64, bytes_out: u64) {
        let shard = self.shards.of(worker);
        shard.bytes_in.fetch_add(bytes_in, Ordering::Relaxed);
        shard.bytes_out.fetch_add(bytes_out, Ordering::Relaxed);
    }

    /// What has been counted so far.
    pub fn totals(&self) -> ListenerTotals {
        let mut totals = ListenerTotals::default();
        for shard in self.shards.iter() {
            shard.requests.add_to(&mut totals.requests);
            totals.bytes_in += shard.bytes_in.load(Ordering::Relaxed);
            totals.bytes_out += shard.bytes_out.load(Ordering::Relaxed);
            // In this order: what is read as closed has been opened.
            let closed = shard.streams_closed.load(Ordering::Acquire);
            totals.streams += shard.streams_opened.load(Ordering::Relaxed).saturating_sub(closed);
            totals.accepted += shard.accepted.load(Ordering::Relaxed);
            totals.refused += shard.refused.load(Ordering::Relaxed);
            totals.evicted += shard.evicted.load(Ordering::Relaxed);
            totals.handshakes_failed += shard.handshakes_failed.load(Ordering::Relaxed);
            for (total, count) in totals.turned.iter_mut().zip(&shard.turned) {
                *total += count.load(Ordering::Relaxed);
            }
            for (total, count) in totals.failures.iter_mut().zip(&shard.failures) {
                *total += count.load(Ordering::Relaxed);
            }
            for (total, count) in totals.floods.iter_mut().zip(&shard.floods) {
                *total += count.load(Ordering::Relaxed);
            }
        }
        totals
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_add_up() {
        let metrics = ListenerMetrics::new(2);
        metrics.accepted(0);
        metrics.request(0, Outcome::Success);
        metrics.request(1, Outcome::Success);
        metrics.failure(1, Cause::NoRoute, Outcome::ClientError);
        metrics.refused(1);
        metrics.turned(1, Turned::PerClient);
        metrics.handshake_failed(0);
        metrics.stream_opened(0);
        metrics.stream_opened(1);
        metrics.stream_closed(1);
        metrics.flooded(0, Flood::Pings);
        metrics.flooded(1, Flood::Pings);
        let totals = metrics.totals();
        assert_eq!(totals.requests, [0, 0, 2, 0, 1, 0]);
        assert_eq!((totals.accepted, totals.refused, totals.handshakes_failed), (1, 1, 1));
        assert_eq!(totals.turned, [0, 1, 0, 0, 0, 0, 0]);
        assert_eq!(totals.streams, 1);
        assert_eq!(totals.failures[Cause::NoRoute as usize], 1);
        assert_eq!(totals.failures.iter().sum::<u64>(), 1);
        assert_eq!(totals.floods[Flood::Pings as usize], 2);
        assert_eq!(totals.floods.iter().sum::<u64>(), 2);
    }
}
