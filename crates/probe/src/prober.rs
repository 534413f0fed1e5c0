//! Many questions at once, within a bound.
//!
//! Every question is a task of the runtime that starts it. At most `most` have a socket at a time;
//! the others wait their turn, first come first served. Whoever waited longer than a question may
//! take gives up, and its endpoint is none the wiser: [`Obstacle::Descriptors`]. So a thousand
//! endpoints that all hang cost a thousand small tasks, and no more sockets than were allowed.

use std::sync::Arc;
use std::time::Duration;

use subak_base::Address;
use subak_health::{Obstacle, ProbeResult};
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::agent::{AgentLine, agent_line};
use crate::check::{Check, check};
use crate::miss::Miss;
use crate::way::Way;

/// Asks endpoints, many at a time.
#[derive(Clone, Debug)]
pub struct Prober {
    sockets: Arc<Semaphore>,
}

impl Prober {
    /// At most `most` sockets at a time, and at least one.
    pub fn new(most: usize) -> Prober {
        Prober { sockets: Arc::new(Semaphore::new(most.clamp(1, Semaphore::MAX_PERMITS))) }
    }

    /// Starts a probe by this way on the runtime of the caller; `done` hears what came of it, on the same runtime.
    pub fn probe(
        &self,
        address: Address,
        (what, way): (Arc<Check>, Way),
        limit: Duration,
        done: impl FnOnce(ProbeResult) + Send + 'static,
    ) {
        let prober = self.clone();
        tokio::spawn(async move {
            let result = match prober.socket(limit).await {
                Ok(_socket) => check(&address, &what, &way, limit).await,
                Err(obstacle) => ProbeResult::Inconclusive(obstacle),
            };
            done(result);
        });
    }

    /// Asks an agent on the runtime of the caller; `done` hears what it said, on the same runtime.
    pub fn ask_agent(
        &self,
        address: Address,
        limit: Duration,
        done: impl FnOnce(Result<AgentLine, Miss>) + Send + 'static,
    ) {
        let prober = self.clone();
        tokio::spawn(async move {
            let line = match prober.socket(limit).await {
                Ok(_socket) => agent_line(&address, limit).await,
                Err(obstacle) => Err(Miss::Inconclusive(obstacle)),
            };
            done(line);
        });
    }

    /// Leave to have one socket.
    async fn socket(&self, limit: Duration) -> Result<SemaphorePermit<'_>, Obstacle> {
        if let Ok(permit) = self.sockets.try_acquire() {
            return Ok(permit);
        }
        let waited = tokio::time::timeout(limit, self.sockets.acquire()).await;
        waited.ok().and_then(Result::ok).ok_or(Obstacle::Descriptors)
    }
}
