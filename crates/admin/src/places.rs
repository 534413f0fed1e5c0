//! Who holds the connections' places, and who gives one up.
//!
//! Every connection begins as a stranger; the first of its requests that passes the gate makes it
//! known. When all places are taken a newcomer gets that of the oldest stranger, and an address whose
//! strangers hold [its share](STRANGERS_MAX) gets the place of its own oldest. So whoever cannot pass
//! the gate pushes out nobody but others who have not, and one address is done with 16 places. Only
//! when all places belong to known connections does a newcomer wait until one of them ends.
//!
//! A newcomer costs a look at 64 places.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::task::{AbortHandle, Id};

/// Connections at once.
const PLACES: usize = 64;
/// Connections of one address that have not passed the gate.
const STRANGERS_MAX: usize = 16;

/// Whether a connection has passed the gate; shared with who serves it.
#[derive(Clone, Default, Debug)]
pub(crate) struct Acquaintance(Arc<AtomicBool>);

impl Acquaintance {
    /// It has.
    pub(crate) fn make_known(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    fn is_known(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// The places that are taken, oldest first.
#[derive(Default, Debug)]
pub(crate) struct Places(Vec<Place>);

#[derive(Debug)]
struct Place {
    /// None by a unix socket: there the file's permissions say who may come.
    from: Option<IpAddr>,
    acquaintance: Acquaintance,
    task: AbortHandle,
}

impl Places {
    /// Frees a place for a newcomer from there, if that takes one from a stranger. Answers whether
    /// there is one.
    pub(crate) fn make_room(&mut self, from: Option<IpAddr>) -> bool {
        let is_stranger = |place: &Place| !place.acquaintance.is_known();
        let is_alike = |place: &Place| from.is_some() && place.from == from && is_stranger(place);
        let goes = if self.0.iter().filter(|place| is_alike(place)).count() >= STRANGERS_MAX {
            self.0.iter().position(is_alike)
        } else if self.0.len() >= PLACES {
            self.0.iter().position(is_stranger)
        } else {
            return true;
        };
        goes.map(|index| self.0.remove(index).task.abort()).is_some()
    }

    /// Gives a place to this connection.
    pub(crate) fn take(
        &mut self,
        from: Option<IpAddr>,
        acquaintance: Acquaintance,
        task: AbortHandle,
    ) {
        self.0.push(Place { from, acquaintance, task });
    }

    /// Takes back the place of a connection that has ended, unless it was given up before.
    pub(crate) fn leave(&mut self, task: Id) {
        self.0.retain(|place| place.task.id() != task);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::pending;
    use tokio::task::JoinSet;

    /// Connections that last until they are ended.
    #[derive(Default)]
    struct Crowd {
        places: Places,
        tasks: JoinSet<()>,
    }

    impl Crowd {
        /// One more from this address, which finds a place.
        fn enter(&mut self, from: u8) -> (Id, Acquaintance) {
            let from = Some(IpAddr::from([192, 0, 2, from]));
            assert!(self.places.make_room(from));
            let acquaintance = Acquaintance::default();
            let task = self.tasks.spawn(pending());
            let id = task.id();
            self.places.take(from, acquaintance.clone(), task);
            (id, acquaintance)
        }

        /// The same, and it passes the gate.
        fn enter_known(&mut self) -> Id {
            let (id, acquaintance) = self.enter(1);
            acquaintance.make_known();
            id
        }

        /// The one that was ended since the last time.
        async fn ended(&mut self) -> Id {
            self.tasks.join_next().await.expect("one more").expect_err("it was ended").id()
        }
    }

    #[tokio::test]
    async fn a_newcomer_takes_the_place_of_the_oldest_stranger() {
        let mut crowd = Crowd::default();
        let people: Vec<_> = (0..64).map(|index| crowd.enter(index)).collect();
        people[0].1.make_known();
        people[2].1.make_known();
        for goes in [1, 3, 4] {
            crowd.enter(100);
            assert_eq!(crowd.ended().await, people[goes].0);
        }
        assert_eq!(crowd.tasks.len(), 64);
    }

    #[tokio::test]
    async fn an_address_has_a_share_of_strangers_and_no_limit_of_known_ones() {
        let mut crowd = Crowd::default();
        crowd.enter(2);
        let own: Vec<_> = (0..16).map(|_| crowd.enter(1)).collect();
        assert_eq!(crowd.tasks.len(), 17);
        crowd.enter(1);
        assert_eq!(crowd.ended().await, own[0].0, "one of its own, though the other is older");
        own[1].1.make_known();
        crowd.enter(1);
        crowd.enter(1);
        assert_eq!(crowd.ended().await, own[2].0);
        assert_eq!(crowd.tasks.len(), 18);
        crowd.enter(2);
        assert_eq!(crowd.tasks.len(), 19, "the other address has its own share");
    }

    #[tokio::test]
    async fn known_connections_are_ended_by_nobody_and_leave_room_when_they_end() {
        let mut crowd = Crowd::default();
        let people: Vec<_> = (0..64).map(|_| crowd.enter_known()).collect();
        assert!(!crowd.places.make_room(None));
        assert_eq!(crowd.tasks.len(), 64);
        crowd.places.leave(people[5]);
        assert!(crowd.places.make_room(None));
    }
}
