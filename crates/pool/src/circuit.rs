//! A request's way through the circuit of its pool.

use subak_base::Tick;
use subak_health::Client;
use subak_limits::{Circuit, Entry, NoEntry, Verdict};

use crate::pool::Pool;

/// Leave to go to a pool that has a circuit. Settles once; dropped without a word it says nothing of
/// the pool.
#[derive(Debug)]
pub struct Passage<'p> {
    circuit: &'p Circuit,
    entry: Option<Entry>,
    since: Tick,
}

impl Pool {
    /// Its circuit, where it has one.
    #[inline]
    pub fn circuit(&self) -> Option<&Circuit> {
        self.circuit.as_deref()
    }
}

impl<'p> Passage<'p> {
    /// Leave for one request.
    ///
    /// # Errors
    /// [`NoEntry`]: the request is not to be tried.
    pub fn enter(circuit: &'p Circuit, now: Tick) -> Result<Passage<'p>, NoEntry> {
        Ok(Passage { circuit, entry: Some(circuit.enter(now)?), since: now })
    }

    /// Since when.
    pub fn since(&self) -> Tick {
        self.since
    }

    /// The request of this client is over.
    pub fn settle(mut self, verdict: Verdict, client: Client, now: Tick) {
        if let Some(entry) = self.entry.take() {
            self.circuit.settle(entry, verdict, client.number(), now);
        }
    }
}

impl Drop for Passage<'_> {
    fn drop(&mut self) {
        if let Some(entry) = self.entry.take() {
            self.circuit.settle(entry, Verdict::Unknown, Client::UNKNOWN.number(), self.since);
        }
    }
}
