//! A request's place in its pool's line: while all endpoints are at their caps, and while nobody can be
//! reached for a moment.

use std::cell::Cell;
use std::task::Poll;
use std::time::Duration;

use subak_base::{BitSet, Tick};
use subak_net::now;
use subak_pool::{Acquire, Lease, Refusal, Waiter};

use crate::exchange::{ClientSide, Look};
use crate::failure::Failure;
use crate::life::Place;
use crate::plan::PoolPlan;

/// While nobody can be reached, the first in line tries so often.
const AGAIN: Duration = Duration::from_millis(100);

/// A request's place in line, if it has one.
#[derive(Default)]
pub(crate) struct Line<'p> {
    waiter: Cell<Option<Waiter<'p>>>,
    /// When the request found that nobody could be reached.
    out_since: Cell<Option<Tick>>,
}

impl std::fmt::Debug for Line<'_> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Line").field("out_since", &self.out_since.get()).finish_non_exhaustive()
    }
}

/// Whoever may stand in a line.
pub(crate) trait Standing: std::fmt::Debug {
    /// Gives the place up: those behind may go on.
    fn leave(&self);
}

impl Standing for Line<'_> {
    #[inline]
    fn leave(&self) {
        if self.out_since.get().is_some() {
            drop(self.waiter.take());
        }
    }
}

impl<'p> Line<'p> {
    /// Nobody could be reached. Answers whether the request may wait for somebody.
    #[cold]
    pub(crate) fn may_wait(&self, plan: &PoolPlan, now: Tick) -> bool {
        let since = self.out_since.get().unwrap_or(now);
        let may = plan.pool.queue_length() > 0 && now.since(since) < plan.outage;
        if may {
            self.out_since.set(Some(since));
        }
        may
    }

    /// Whether the request waits because nobody could be reached.
    pub(crate) fn is_out(&self) -> bool {
        self.out_since.get().is_some()
    }

    /// Waits for a lease of an untried endpoint.
    ///
    /// While nobody can be reached, the first in line tries all the same every 100 ms, and the others
    /// wait for what comes of it.
    pub(crate) async fn wait<C: ClientSide>(
        &self,
        client: &mut C,
        plan: &'p PoolPlan,
        tried: &BitSet,
        request: Acquire<'_>,
        place: &Place<'_>,
    ) -> Result<Lease<'p>, Failure> {
        let pool = &*plan.pool;
        let mut waiter = match self.waiter.take() {
            Some(waiter) => waiter,
            None => pool.queue().join(pool.queue_length()).ok_or(Failure::QueueFull)?,
        };
        tracing::debug!(
            pool = pool.name(),
            waiting = pool.queue().waiting(),
            "a request waits for an endpoint"
        );
        plan.metrics.waits(place.worker.index());
        let joined = now();
        let mut next_try = joined.after(AGAIN);
        let mut in_turn = waiter.is_first() && !self.is_out();
        loop {
            let moment = now();
            let is_out = pool.is_out(moment);
            if is_out && !self.may_wait(plan, moment) {
                return Err(Failure::NoEndpoint);
            }
            let tries = match is_out {
                true => moment >= next_try && waiter.is_first(),
                false => in_turn,
            };
            if tries {
                next_try = moment.after(AGAIN);
                match pool.acquire(&Acquire { now: moment, in_turn: true, ..request }, tried) {
                    Ok(lease) => {
                        // Those behind wait until it is known whether it can be reached.
                        if self.is_out() {
                            self.waiter.set(Some(waiter));
                        }
                        return Ok(lease);
                    }
                    Err(Refusal::NoEndpoint) if !is_out => return Err(Failure::NoEndpoint),
                    // What has come free may be an endpoint that only this request has tried.
                    Err(Refusal::Saturated) if !tried.is_empty() => waiter.pass_on(),
                    Err(_) => {}
                }
            }
            let left = plan.queue_timeout.saturating_sub(moment.since(joined));
            let step = if self.is_out() { AGAIN.min(plan.outage) } else { left };
            place.deadline.set(step.min(left));
            std::future::poll_fn(|context| match waiter.poll_notified(context) {
                Poll::Ready(()) => Poll::Ready(Ok(())),
                Poll::Pending => match client.poll_gone(context, Look::End) {
                    Poll::Ready(fault) => Poll::Ready(Err(fault.into())),
                    Poll::Pending if place.deadline.expired(context) => {
                        let is_over = now().since(joined) >= plan.queue_timeout;
                        Poll::Ready(if is_over { Err(Failure::QueueTimeout) } else { Ok(()) })
                    }
                    Poll::Pending => Poll::Pending,
                },
            })
            .await?;
            in_turn = true;
        }
    }
}
