//! One question to an agent, and when it is asked.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use subak_agent::{AgentError, Report, Token, fetch};
use subak_base::{Address, EndpointId, Tick};
use subak_config as config;
use subak_pool::Endpoint;
use tokio::sync::Semaphore;

/// When an agent is asked: at once, then at a place within the next interval that is its own, then
/// once an interval; never while the last question is open.
#[derive(Clone, Copy, Debug)]
pub(super) struct Schedule {
    next: Tick,
    /// Until the second question.
    first_pause: Option<Duration>,
    is_open: bool,
}

impl Schedule {
    /// For the agent at this place among so many.
    pub(super) fn new(now: Tick, interval: Duration, place: usize, count: usize) -> Schedule {
        let share = (place + 1) as f64 / count as f64;
        Schedule { next: now, first_pause: Some(interval.mul_f64(share)), is_open: false }
    }

    /// Begins anew. A question that is open stays so.
    pub(super) fn restart(&mut self, now: Tick, interval: Duration, place: usize, count: usize) {
        let is_open = self.is_open;
        *self = Schedule { is_open, ..Schedule::new(now, interval, place, count) };
    }

    pub(super) fn is_due(&self, now: Tick) -> bool {
        !self.is_open && self.next <= now
    }

    pub(super) fn asked(&mut self, now: Tick, interval: Duration) {
        self.is_open = true;
        let pause = self.first_pause.take().unwrap_or(interval);
        // By the clock and not by the moment it was looked at, which is up to a tick later. What was
        // missed is not made up for.
        self.next = self.next.after(pause).max(now);
    }

    pub(super) fn answered(&mut self) {
        self.is_open = false;
    }
}

/// What is asked of an agent.
#[derive(Debug)]
pub(super) struct Question {
    index: usize,
    id: EndpointId,
    address: SocketAddr,
    token: Token,
    limit: Duration,
}

/// What became of it.
#[derive(Debug)]
pub(super) struct Answer {
    /// The endpoint's place when it was asked.
    pub(super) index: usize,
    pub(super) id: EndpointId,
    pub(super) outcome: Result<Report, AgentError>,
}

impl Question {
    /// To the agent of this endpoint; none on a unix socket, where no port can be.
    pub(super) fn to(
        index: usize,
        endpoint: &Endpoint,
        spec: &config::Weigher,
        token: &Token,
    ) -> Option<Question> {
        let Address::Inet(mut address) = *endpoint.address() else { return None };
        address.set_port(spec.port.get());
        Some(Question {
            index,
            id: endpoint.id(),
            address,
            token: token.clone(),
            limit: spec.timeout,
        })
    }

    /// Asks, when there is a socket for it.
    pub(super) async fn ask(self, sockets: Arc<Semaphore>) -> Answer {
        let Question { index, id, address, token, limit } = self;
        // It is never closed.
        let _socket = sockets.acquire().await.ok();
        Answer { index, id, outcome: fetch(address, &token, limit).await }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL: Duration = Duration::from_secs(2);

    /// The moments, in milliseconds, at which an agent is asked that answers within a tick of 100 ms.
    fn asked(place: usize, count: usize, from: u64, until: u64) -> Vec<u64> {
        let mut schedule = Schedule::new(Tick::from_millis(from), INTERVAL, place, count);
        let ticks = (from..until).step_by(100);
        ticks
            .filter(|at| {
                schedule.answered();
                let is_due = schedule.is_due(Tick::from_millis(*at));
                if is_due {
                    schedule.asked(Tick::from_millis(*at), INTERVAL);
                }
                is_due
            })
            .collect()
    }

    #[test]
    fn agents_are_asked_at_once_and_then_spread_over_the_interval() {
        assert_eq!(asked(0, 4, 0, 7000), [0, 500, 2500, 4500, 6500]);
        assert_eq!(asked(1, 4, 0, 7000), [0, 1000, 3000, 5000]);
        assert_eq!(asked(3, 4, 0, 7000), [0, 2000, 4000, 6000]);
        // 1/3 of 2 s is seen at the next tick; that shifts nothing.
        assert_eq!(asked(0, 3, 0, 7000), [0, 700, 2700, 4700, 6700]);
    }

    #[test]
    fn an_open_question_keeps_others_back_and_missed_ones_are_not_made_up_for() {
        let at = Tick::from_millis;
        let mut schedule = Schedule::new(at(0), INTERVAL, 0, 1);
        schedule.asked(at(0), INTERVAL);
        assert!(!schedule.is_due(at(9000)));
        schedule.restart(at(9000), INTERVAL, 0, 1);
        assert!(!schedule.is_due(at(9000)), "still open");
        schedule.answered();
        assert!(schedule.is_due(at(9000)));
        schedule.asked(at(30_000), INTERVAL);
        schedule.answered();
        assert!(schedule.is_due(at(30_000)));
        schedule.asked(at(30_000), INTERVAL);
        schedule.answered();
        assert!(!schedule.is_due(at(31_999)) && schedule.is_due(at(32_000)));
    }
}
