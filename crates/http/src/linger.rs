//! How long an endpoint lets others wait for the rest of a response that it has begun. What waits for
//! long is told once, while it is under way: it may never end.

use std::time::Duration;

use subak_base::Tick;
use subak_net::now;
use subak_pool::Lease;

/// So long in all is worth telling: far more than the latency at which anybody ejects.
const LONG: Duration = Duration::from_secs(1);

/// The waiting for one response's body.
#[derive(Debug)]
pub(crate) struct Linger<'a> {
    /// Who wants to know; nobody does any more when it was told.
    lease: Option<&'a Lease<'a>>,
    waited: Duration,
    since: Option<Tick>,
}

impl<'a> Linger<'a> {
    /// Nothing was waited for; free where nobody wants to know.
    pub(crate) fn begin(lease: &'a Lease<'a>) -> Linger<'a> {
        let lease = lease.times_lingering().then_some(lease);
        Linger { lease, waited: Duration::ZERO, since: None }
    }

    /// The endpoint has nothing to give at this moment, and the client has taken what there was.
    #[inline]
    pub(crate) fn waits(&mut self) {
        if self.lease.is_some() {
            self.look();
        }
    }

    /// The endpoint has given something.
    #[inline]
    pub(crate) fn moved(&mut self) {
        if let Some(since) = self.since.take() {
            self.waited += now().since(since);
        }
    }

    #[cold]
    fn look(&mut self) {
        let moment = now();
        let since = *self.since.get_or_insert(moment);
        let waited = self.waited + moment.since(since);
        if waited >= LONG
            && let Some(lease) = self.lease.take()
        {
            lease.lingers(waited);
            self.since = None;
        }
    }
}
