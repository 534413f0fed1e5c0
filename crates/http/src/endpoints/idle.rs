//! One worker's idle connections to endpoints, each lent to one exchange at a time (HTTP/1).

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use subak_base::{EndpointId, Tick};
use subak_net::tls::client::TlsTarget;
use subak_net::{Deadline, now};
use subak_pool::Endpoint;

use super::Connection;
use crate::plan::PoolPlan;
use crate::worker::Worker;

#[derive(Debug)]
struct Idle {
    connection: Box<Connection>,
    expires: Tick,
}

impl Idle {
    fn announces(&self, header: Option<&[u8]>) -> bool {
        self.connection.header.as_deref() == header
    }

    /// Nothing has arrived, and it is not closed.
    fn is_good(&mut self) -> bool {
        self.connection.stream.is_quiet()
    }
}

/// One worker's idle connections, last used first.
#[derive(Debug, Default)]
pub(crate) struct IdleConnections {
    by_endpoint: RefCell<HashMap<EndpointId, Vec<Idle>, IdHash>>,
}

impl IdleConnections {
    /// An idle connection that is still good. What was made before a reload that wants TLS or the PROXY
    /// protocol otherwise is closed. Where clients are announced, it is one that announces this one.
    #[inline]
    pub(crate) fn take(
        &self,
        endpoint: &Endpoint,
        plan: &PoolPlan,
        header: Option<&[u8]>,
    ) -> Option<Box<Connection>> {
        let mut by_endpoint = self.by_endpoint.borrow_mut();
        let idle = by_endpoint.get_mut(&endpoint.id())?;
        loop {
            let at = match header {
                None => idle.len().checked_sub(1)?,
                Some(_) => idle.iter().rposition(|idle| idle.announces(header))?,
            };
            let mut idle = idle.remove(at);
            if idle.announces(header)
                && is_secured_as(idle.connection.target.as_ref(), endpoint, plan)
                && idle.is_good()
            {
                idle.connection.reused = true;
                return Some(idle.connection);
            }
        }
    }

    /// Keeps a connection for the next exchange.
    #[inline]
    pub(crate) fn put_back(&self, connection: Box<Connection>, plan: &PoolPlan, now: Tick) {
        let endpoint = connection.slot.endpoint();
        // Somebody waits for a connection, perhaps on another worker: make room. And nobody will ask
        // again for an endpoint that was removed while this exchange was under way.
        if endpoint.connection_line().waiting() > 0 || endpoint.is_retired() {
            return;
        }
        let mut by_endpoint = self.by_endpoint.borrow_mut();
        let idle = by_endpoint.entry(endpoint.id()).or_default();
        // One that announces a client is soon of use to nobody: the oldest makes room.
        if idle.len() >= plan.most_idle && plan.most_idle > 0 && connection.header.is_some() {
            idle.remove(0);
        }
        if idle.len() < plan.most_idle {
            idle.push(Idle { connection, expires: now.after(plan.keep_alive) });
        }
    }

    /// Closes what has been idle too long, and what endpoints have closed.
    pub(crate) fn sweep(&self, now: Tick) {
        for idle in self.by_endpoint.borrow_mut().values_mut() {
            idle.retain_mut(|idle| idle.expires > now && idle.is_good());
            if idle.len() * 4 < idle.capacity() {
                idle.shrink_to(idle.len() * 2);
            }
        }
    }

    /// Closes connections to endpoints that `used` does not know.
    pub(crate) fn keep(&self, used: impl Fn(EndpointId) -> bool) {
        self.by_endpoint.borrow_mut().retain(|endpoint, _| used(*endpoint));
    }

    /// Closes the connection to an endpoint that has been idle longest.
    pub(crate) fn close_one(&self, endpoint: EndpointId) {
        if let Some(idle) = self.by_endpoint.borrow_mut().get_mut(&endpoint)
            && !idle.is_empty()
        {
            idle.remove(0);
        }
    }

    /// Closes all of them.
    pub(crate) fn close_all(&self) {
        self.by_endpoint.borrow_mut().clear();
    }
}

/// Whether a connection is secured as the pool wants it.
#[inline]
pub(super) fn is_secured_as(
    target: Option<&Arc<TlsTarget>>,
    endpoint: &Endpoint,
    plan: &PoolPlan,
) -> bool {
    match (&plan.tls, target) {
        (None, None) => true,
        (Some(tls), Some(target)) => {
            tls.target(endpoint.address()).is_some_and(|wanted| Arc::ptr_eq(wanted, target))
        }
        _ => false,
    }
}

/// Moments to look for idle connections that are over.
pub(crate) const SWEEP_EVERY: Duration = Duration::from_secs(1);

/// Sweeps what one worker keeps, connections and all else, for ever.
pub(crate) async fn sweep_for_ever(worker: std::rc::Rc<Worker>) {
    let pause = Deadline::new();
    loop {
        pause.set(SWEEP_EVERY);
        pause.passed().await;
        worker.sweep(now());
    }
}

/// Endpoint numbers are small and given out in order: no need to scramble them with a keyed hash.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct IdHash;

impl std::hash::BuildHasher for IdHash {
    type Hasher = IdHasher;

    fn build_hasher(&self) -> IdHasher {
        IdHasher(0)
    }
}

/// Spreads a 32-bit number by one multiplication.
#[derive(Debug)]
pub(crate) struct IdHasher(u64);

impl std::hash::Hasher for IdHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    #[inline]
    fn write_u32(&mut self, number: u32) {
        self.0 = u64::from(number).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }
}
