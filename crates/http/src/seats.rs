//! Client connections of one worker, and which of them are idle: where there are as many as allowed, a
//! newcomer takes the place of one that is idle.
//!
//! Idle is a connection without a request for [`IDLE`]: first go those that have never brought one, then
//! those that wait for another, the longest idle before the others. So silent connections, however many
//! are made, do not take the places of clients that ask again and again. A connection that begins or ends
//! a request writes one cell; only a newcomer that needs a place looks through all of them, for
//! [`CANDIDATES`] at a time.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use subak_net::{Alarm, Deadline, uptime};

use crate::worker::{Listener, Worker};

/// A connection without a request is idle after so long.
const IDLE: Duration = Duration::from_secs(1);
/// Idle connections that one search finds.
const CANDIDATES: usize = 64;
/// After a search in vain there is none for so long.
const BARREN: Duration = Duration::from_millis(50);

/// The connections of one worker.
#[derive(Debug, Default)]
pub(crate) struct Seats {
    taken: RefCell<Vec<Rc<Seat>>>,
    /// Those to go first when a newcomer last looked, the first last.
    candidates: RefCell<Vec<(Standing, Rc<Seat>)>>,
    /// Until then nobody need look again.
    barren_until: Cell<Duration>,
}

/// One connection.
#[derive(Debug)]
struct Seat {
    /// Its place in [`Seats::taken`].
    index: Cell<usize>,
    state: Cell<State>,
    listener: Rc<Listener>,
    /// Ends its wait.
    alarm: Alarm,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// No request is under way.
    Waiting(Standing),
    /// A request is under way.
    Busy,
    /// Has to go.
    Evicted,
}

/// What decides which idle connection goes first: the least.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Standing {
    has_asked: bool,
    /// In the time of [`uptime`].
    since: Duration,
}

/// A connection's place, given back when it is dropped.
pub(crate) struct Seated {
    worker: Rc<Worker>,
    seat: Rc<Seat>,
}

impl Seats {
    /// A place for a connection that waits with this limit.
    pub(crate) fn take(
        worker: &Rc<Worker>,
        listener: &Rc<Listener>,
        deadline: &Deadline,
    ) -> Seated {
        let seats = &worker.seats;
        let mut taken = seats.taken.borrow_mut();
        let seat = Rc::new(Seat {
            index: Cell::new(taken.len()),
            state: Cell::new(State::Waiting(Standing { has_asked: false, since: uptime() })),
            listener: listener.clone(),
            alarm: deadline.alarm(),
        });
        taken.push(seat.clone());
        Seated { worker: worker.clone(), seat }
    }

    /// Ends one idle connection; of one listener only, by `Service::house`. False when none is idle.
    #[cold]
    pub(crate) fn evict(&self, house: Option<usize>, worker: usize) -> bool {
        let Some(seat) = self.first_to_go(house, uptime()) else { return false };
        seat.state.set(State::Evicted);
        seat.listener.service().metrics.evicted(worker);
        seat.alarm.ring();
        true
    }

    fn first_to_go(&self, house: Option<usize>, now: Duration) -> Option<Rc<Seat>> {
        if let Some(seat) = self.candidate(house, now) {
            return Some(seat);
        }
        if now < self.barren_until.get() {
            return None;
        }
        let taken = self.taken.borrow();
        let mut idle: Vec<_> = taken
            .iter()
            .filter(|seat| seat.is_of(house))
            .filter_map(|seat| Some((seat.idle(now)?, seat.clone())))
            .collect();
        drop(taken);
        idle.sort_unstable_by_key(|(standing, _)| *standing);
        idle.truncate(CANDIDATES);
        idle.reverse();
        if idle.is_empty() {
            self.barren_until.set(now + BARREN);
        }
        self.candidates.replace(idle);
        self.candidate(house, now)
    }

    /// The next of the candidates that is still as idle as it was.
    fn candidate(&self, house: Option<usize>, now: Duration) -> Option<Rc<Seat>> {
        let mut candidates = self.candidates.borrow_mut();
        let is_good = |(standing, seat): &(Standing, Rc<Seat>)| {
            seat.idle(now) == Some(*standing) && seat.is_of(house)
        };
        let place = candidates.iter().rposition(is_good)?;
        let (_, seat) = candidates.remove(place);
        Some(seat)
    }
}

impl Seat {
    /// How it stands among those that are idle; `None` when it is not.
    fn idle(&self, now: Duration) -> Option<Standing> {
        match self.state.get() {
            State::Waiting(standing) if now.saturating_sub(standing.since) >= IDLE => {
                Some(standing)
            }
            _ => None,
        }
    }

    fn is_of(&self, house: Option<usize>) -> bool {
        house.is_none_or(|house| self.listener.service().house() == house)
    }
}

impl Seated {
    /// A request begins.
    #[inline]
    pub(crate) fn busy(&self) {
        self.seat.state.set(State::Busy);
    }

    /// No request is under way, and one may come.
    #[inline]
    pub(crate) fn idle(&self) {
        let standing = Standing { has_asked: true, since: uptime() };
        self.seat.state.set(State::Waiting(standing));
    }

    /// Whether it has to go, to make room for a newcomer.
    pub(crate) fn is_evicted(&self) -> bool {
        self.seat.state.get() == State::Evicted
    }
}

impl Drop for Seated {
    fn drop(&mut self) {
        self.seat.state.set(State::Evicted);
        let mut taken = self.worker.seats.taken.borrow_mut();
        let index = self.seat.index.get();
        taken.swap_remove(index);
        if let Some(moved) = taken.get(index) {
            moved.index.set(index);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn standing(has_asked: bool, since_ms: u64) -> Standing {
        Standing { has_asked, since: Duration::from_millis(since_ms) }
    }

    #[test]
    fn those_that_never_asked_go_first_and_then_the_longest_idle() {
        let mut all =
            [standing(true, 5), standing(false, 9), standing(true, 1), standing(false, 3)];
        all.sort_unstable();
        let order = [standing(false, 3), standing(false, 9), standing(true, 1), standing(true, 5)];
        assert_eq!(all, order);
    }
}
