//! What the tries of one request say of the endpoints that failed it: a request that broke at one and was
//! answered by another speaks against the first, one that broke everywhere against itself.

use subak_base::{BitSet, Tick};
use subak_pool::{Lease, Outcome, Pool};

use crate::failure::Failure;

/// The endpoints at which a request broke before the first byte of a response.
#[derive(Debug)]
pub(crate) struct Evidence {
    broken: BitSet,
    why: String,
}

impl Evidence {
    /// No try has failed.
    pub(crate) const NONE: Evidence = Evidence { broken: BitSet::EMPTY, why: String::new() };

    /// Settles a try that failed, and keeps what it says.
    #[cold]
    pub(crate) fn failed(
        &mut self,
        lease: Lease<'_>,
        failure: &Failure,
        is_answered: bool,
        now: Tick,
    ) {
        let (endpoint, index) = (lease.endpoint().clone(), lease.index());
        let outcome = failure.outcome(is_answered);
        // What TLS says of itself is known already, in more words.
        if outcome == Outcome::Unreachable && !matches!(failure, Failure::Tls(_)) {
            endpoint.note_refusal(&failure.reason());
        }
        lease.settle(outcome, now);
        if outcome == Outcome::Broken {
            self.broken.insert(index);
            self.why = failure.reason();
            if endpoint.is_backing_off(now) {
                endpoint.note_refusal(&self.why);
            }
        }
    }

    /// An endpoint has answered the request, with this status.
    #[inline]
    pub(crate) fn answered(&self, pool: &Pool, status: u16, now: Tick) {
        if !self.broken.is_empty() {
            self.conclude(pool, status, now);
        }
    }

    #[cold]
    fn conclude(&self, pool: &Pool, status: u16, now: Tick) {
        // It fails here too, if in another way.
        if status >= 500 {
            return pool.withdraw(&self.broken);
        }
        pool.confirm(&self.broken, now);
        for index in self.broken.iter() {
            if let Some(endpoint) = pool.endpoint(index).filter(|one| one.is_backing_off(now)) {
                endpoint.note_refusal(&self.why);
            }
        }
    }

    /// No endpoint has answered the request.
    pub(crate) fn gave_up(&self, pool: &Pool) {
        if self.broken.iter().nth(1).is_some() {
            pool.withdraw(&self.broken);
        }
    }
}
