//! Which requests of a client's HTTP/2 connection may start, and which have to end, while the client takes
//! nothing of the responses to earlier ones?
//!
//! A request that has started holds a connection to an endpoint and up to 128 KiB of its response. A
//! client that opens no windows, or does not read its socket, would have that held for all its streams. A
//! response that waits for its client is *stalled*. With `most` being `http2.stalled_streams`:
//!
//! - A connection starts `most` requests at once and as many more in every [`PACE`], until its client has
//!   taken data or a whole response. From then on requests start as they come.
//! - While `most` responses are stalled, and the client has taken less than [`PROGRESS`] of them for
//!   [`GRACE`], at most [`PROBES`] more requests are under way. The others wait.
//! - A response that becomes stalled while `most` others are ends after [`STALL`] without progress.
//!
//! Pure: the time is passed in. An ordinary request costs two comparisons.

use std::cell::Cell;
use std::num::NonZeroU32;
use std::time::Duration;

use subak_base::Tick;
use subak_pool::{WaitQueue, Waiter};

/// The time in which `most` more requests of an untried client start.
pub(super) const PACE: Duration = Duration::from_millis(500);
/// The time without progress after which a client counts as one that takes nothing.
const GRACE: Duration = Duration::from_secs(1);
/// The time without progress after which responses beyond `most` end.
const STALL: Duration = Duration::from_secs(5);
/// Bytes of stalled responses that are progress: windows of a few bytes are not.
const PROGRESS: u64 = 16 * 1024;
/// Requests beyond `most` that show whether the client has begun to take responses again: it may leave
/// some unread on purpose, as a browser does with videos that are paused.
pub(super) const PROBES: u32 = 4;

/// The requests of one connection that have started, and those whose responses are stalled.
#[derive(Debug)]
pub(super) struct Stalls {
    /// Without a limit, as large as can be.
    most: u32,
    started: Cell<u32>,
    stalled: Cell<u32>,
    /// The client has taken something, and has not stopped since.
    takes: Cell<bool>,
    /// Bytes of stalled responses that were taken since `moved`.
    taken: Cell<u64>,
    /// When there was progress last, or when `most` responses became stalled.
    moved: Cell<Tick>,
    /// When the first request of an untried client had to wait.
    held: Cell<Option<Tick>>,
    line: WaitQueue,
}

impl Stalls {
    /// A connection whose client has not been tried.
    pub(super) fn new(most: Option<NonZeroU32>) -> Stalls {
        Stalls {
            most: most.map_or(u32::MAX, NonZeroU32::get),
            started: Cell::new(0),
            stalled: Cell::new(0),
            takes: Cell::new(false),
            taken: Cell::new(0),
            moved: Cell::new(Tick::default()),
            held: Cell::new(None),
            line: WaitQueue::default(),
        }
    }

    /// Starts a request, if it need not wait.
    #[inline]
    pub(super) fn start(&self, now: impl FnOnce() -> Tick) -> bool {
        let is_free = self.takes.get() && self.stalled.get() < self.most;
        let starts = is_free || (self.line.waiting() == 0 && self.may_start(now()));
        if starts {
            self.started.update(|started| started + 1);
        }
        starts
    }

    /// Starts a request that is the first in line, if it need not wait any longer.
    pub(super) fn start_first(&self, waiter: &Waiter<'_>, now: Tick) -> bool {
        let starts = waiter.is_first() && self.may_start(now);
        if starts {
            self.started.update(|started| started + 1);
        }
        starts
    }

    /// A place in the line of requests that wait to start. A connection has a bounded number of requests.
    pub(super) fn join(&self) -> Option<Waiter<'_>> {
        self.line.join(usize::MAX)
    }

    /// A request that had started is over.
    pub(super) fn over(&self) {
        self.started.update(|started| started - 1);
        self.line.notify();
    }

    /// A response has become stalled. True: `most` others were before.
    pub(super) fn stall(&self, now: impl FnOnce() -> Tick) -> bool {
        let stalled = self.stalled.get() + 1;
        self.stalled.set(stalled);
        if stalled == self.most {
            self.moved.set(now());
            // Whoever stops is untried again, should all of them end.
            self.held.set(None);
        }
        stalled > self.most
    }

    /// A response is not stalled any more.
    pub(super) fn go_on(&self) {
        self.stalled.update(|stalled| stalled - 1);
        self.line.notify();
    }

    /// The client has taken all it was given: it takes responses.
    #[inline]
    pub(super) fn took_all(&self) {
        if !self.takes.get() {
            self.trust();
        }
    }

    /// The client has taken so much of a response that was stalled.
    pub(super) fn took_of_stalled(&self, bytes: u64, now: impl FnOnce() -> Tick) {
        let taken = self.taken.get() + bytes;
        self.taken.set(taken);
        if taken >= PROGRESS {
            self.taken.set(0);
            self.moved.set(now());
            self.took_all();
        }
    }

    /// How long a response beyond `most` may still be stalled. Zero: it has to end.
    pub(super) fn patience(&self, now: Tick) -> Duration {
        STALL.saturating_sub(now.since(self.moved.get()))
    }

    #[cold]
    fn trust(&self) {
        self.takes.set(true);
        self.held.set(None);
        self.line.notify();
    }

    #[cold]
    fn may_start(&self, now: Tick) -> bool {
        let started = self.started.get();
        if self.stalled.get() >= self.most {
            if now.since(self.moved.get()) >= GRACE {
                self.takes.set(false);
            }
            return self.takes.get() || started < self.most.saturating_add(PROBES);
        }
        if self.takes.get() {
            return true;
        }
        if started < self.most {
            return true;
        }
        let held = self.held.get().unwrap_or(now);
        self.held.set(Some(held));
        let rounds = now.since(held).as_millis() / PACE.as_millis();
        u128::from(started) < u128::from(self.most) * (rounds + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Tick {
        Tick::from_millis(10_000 + millis)
    }

    fn stalls() -> Stalls {
        Stalls::new(NonZeroU32::new(16))
    }

    /// How many of 100 requests start.
    fn started(stalls: &Stalls, millis: u64) -> usize {
        (0..100).filter(|_| stalls.start(|| at(millis))).count()
    }

    #[test]
    fn an_untried_client_gets_as_many_in_every_half_second_and_one_that_takes_gets_all() {
        let untried = stalls();
        assert_eq!(started(&untried, 0), 16);
        assert_eq!(started(&untried, 499), 0);
        assert_eq!(started(&untried, 500), 16);
        assert_eq!(started(&untried, 1750), 32);
        let takes = stalls();
        assert_eq!(started(&takes, 0), 16);
        takes.took_all();
        assert_eq!(started(&takes, 0), 100);
    }

    #[test]
    fn a_client_that_takes_nothing_holds_as_many_as_allowed_and_the_probes() {
        let stalls = stalls();
        assert_eq!(started(&stalls, 0), 16);
        let beyond = (0..16).filter(|_| stalls.stall(|| at(1))).count();
        assert_eq!(beyond, 0);
        assert_eq!(started(&stalls, 5000), PROBES as usize, "however long it waits");
        assert!(stalls.stall(|| at(5000)), "the seventeenth is beyond");
        stalls.took_of_stalled(PROGRESS - 1, || at(5000));
        assert_eq!(started(&stalls, 5000), 0, "a trickle is no progress");
        stalls.took_of_stalled(1, || at(5000));
        assert_eq!(started(&stalls, 5000), 100);
    }

    #[test]
    fn when_stalled_responses_have_ended_others_start_as_those_of_an_untried_client() {
        let stalls = stalls();
        assert_eq!(started(&stalls, 0), 16);
        assert!(!(0..16).any(|_| stalls.stall(|| at(1))));
        (0..16).for_each(|_| {
            stalls.go_on();
            stalls.over();
        });
        assert_eq!(started(&stalls, 9000), 16);
    }

    #[test]
    fn a_client_that_stops_has_a_second_of_grace_and_five_for_those_beyond() {
        let stalls = stalls();
        stalls.took_all();
        assert_eq!(started(&stalls, 0), 100);
        let beyond = (0..100).filter(|_| stalls.stall(|| at(100))).count();
        assert_eq!(beyond, 84);
        assert_eq!(started(&stalls, 1099), 100);
        assert_eq!(started(&stalls, 1100), 0);
        assert_eq!(stalls.patience(at(1100)), Duration::from_secs(4));
        stalls.took_of_stalled(PROGRESS, || at(2000));
        assert_eq!(stalls.patience(at(2000)), STALL);
        assert_eq!(stalls.patience(at(7000)), Duration::ZERO);
    }

    #[test]
    fn whoever_ends_makes_room_and_without_a_limit_nobody_waits() {
        let stalls = stalls();
        assert_eq!(started(&stalls, 0), 16);
        (0..3).for_each(|_| stalls.over());
        assert_eq!(started(&stalls, 0), 3);
        let unlimited = Stalls::new(None);
        assert_eq!(started(&unlimited, 0), 100);
        assert!(!(0..100).any(|_| unlimited.stall(|| at(0))));
        assert_eq!(started(&unlimited, 9000), 100);
    }
}
