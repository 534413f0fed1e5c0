//! How much has gone over a connection to an endpoint that its pool has not been told yet?
//!
//! Only pools whose algorithm looks at packets or bytes are told: at the end of every exchange, and
//! once a second on a long one. The last reading stays with the connection while it is idle.

use std::cell::Cell;
use std::time::Duration;

use subak_base::Tick;
use subak_net::Counters;
use subak_pool::Lease;

/// How often a long exchange is told of.
const EVERY: Duration = Duration::from_secs(1);

/// Packets of an exchange over a connection that counts none: one there and one back.
const WITHOUT_PACKETS: u64 = 2;

/// The counters of one connection as its pool knows them. Exchanges that share a connection share
/// these: what went over it is told once, by whoever looks first.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    told: Cell<Counters>,
}

/// One exchange on a connection that is counted.
#[derive(Debug)]
pub(crate) struct Metering<'a> {
    meter: &'a Meter,
    lease: &'a Lease<'a>,
    next: Tick,
}

impl Meter {
    /// Counts for this lease, if its pool wants that.
    pub(crate) fn begin<'a>(&'a self, lease: &'a Lease<'_>) -> Option<Metering<'a>> {
        let next = lease.since().after(EVERY);
        lease.is_counted().then_some(Metering { meter: self, lease, next })
    }

    /// Tells the pool what it does not know yet; at the end of an exchange.
    pub(crate) fn end(&self, lease: &Lease<'_>, counters: Counters, now: Tick) {
        let packets = self.tell(lease, counters, now);
        if packets.is_none() {
            lease.count(WITHOUT_PACKETS, 0, now);
        }
    }

    /// Answers how many packets there were, if they are counted.
    fn tell(&self, lease: &Lease<'_>, counters: Counters, now: Tick) -> Option<u64> {
        let before = self.told.replace(counters);
        let packets = counters.packets.zip(before.packets.or(Some(0)));
        let packets = packets.map(|(after, before)| after.saturating_sub(before));
        lease.count(packets.unwrap_or(0), counters.bytes.saturating_sub(before.bytes), now);
        packets
    }
}

impl Metering<'_> {
    /// Once a second, tells the pool what it does not know yet.
    pub(crate) fn look(&mut self, now: Tick, counters: impl FnOnce() -> Counters) {
        if now >= self.next {
            self.meter.tell(self.lease, counters(), now);
            self.next = now.after(EVERY);
        }
    }
}
