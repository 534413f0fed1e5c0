//! What a failure says: of its endpoint, of its request, or of its client.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use crate::support::{ERROR, OK, TICK, World, spec};
use subak_base::BitSet;
use subak_health::{EjectionSpec, State};
use subak_pool::{Acquire, Outcome, PoolSpec};

const SECOND: Duration = Duration::from_secs(1);

/// As configured without a word of it.
fn usual(endpoints: usize) -> PoolSpec {
    let eject = EjectionSpec { latency: None, ..EjectionSpec::default() };
    PoolSpec { eject: Some(eject), ..spec("round_robin", &vec![1; endpoints]) }
}

/// The client of this number.
fn client(number: u8) -> Option<IpAddr> {
    Some(Ipv4Addr::new(10, 0, 0, number).into())
}

impl World {
    /// A request of this client for an endpoint that is not in `tried`; answers who took it.
    fn ask(
        &mut self,
        from: Option<IpAddr>,
        tried: &BitSet,
        how: impl Fn(usize) -> Outcome,
    ) -> usize {
        let request = Acquire { from, ..self.request() };
        let lease = self.pool.acquire(&request, tried).expect("an endpoint");
        let index = lease.index();
        lease.settle(how(index), self.now);
        index
    }

    /// A request that breaks at endpoint 0 alone and is tried again elsewhere, as a GET is.
    fn get(&mut self, from: Option<IpAddr>, breaks: impl Fn(usize) -> bool) {
        let outcome = |index| if breaks(index) { Outcome::Broken } else { OK };
        let mut tried = BitSet::EMPTY;
        for _ in 0..3 {
            let index = self.ask(from, &tried, outcome);
            if !breaks(index) {
                if !tried.is_empty() {
                    self.pool.confirm(&tried, self.now);
                }
                return;
            }
            tried.insert(index);
        }
        self.pool.withdraw(&tried);
    }

    fn states(&self) -> Vec<State> {
        let status = self.pool.status(self.now);
        status.endpoints.iter().map(|endpoint| endpoint.state).collect()
    }

    fn in_back_off(&self) -> Vec<usize> {
        let status = self.pool.status(self.now);
        let out =
            status.endpoints.iter().enumerate().filter(|(_, one)| one.back_off_until.is_some());
        out.map(|(index, _)| index).collect()
    }
}

#[test]
fn three_requests_in_a_row_that_break_leave_an_endpoint_out_and_that_is_told() {
    let mut world = World::new(&usual(3));
    while world.in_back_off() != [0] {
        assert!(world.status(0).failures < 3);
        world.get(client(1), |index| index == 0);
    }
    assert_eq!(world.status(0).failures, 3);
    let hits = world.status(0).hits;
    (0..30).for_each(|_| world.get(client(1), |index| index == 0));
    assert_eq!(world.status(0).hits, hits);
    world.pass(TICK);
    assert_eq!(world.told(), ["e0: ready to back_off: in back-off: its requests failed"]);
    assert_eq!(world.states(), [State::BackOff, State::Ready, State::Ready]);
}

#[test]
fn an_endpoint_that_is_still_ill_costs_one_request_each_time_and_ever_more_rarely() {
    let mut world = World::new(&usual(3));
    let began = world.now;
    let mut tried_at = Vec::new();
    while world.now.since(began) < 20 * SECOND {
        let hits = world.status(0).hits;
        (0..20).for_each(|_| world.get(client(1), |index| index == 0));
        let more = world.status(0).hits - hits;
        tried_at.extend((0..more).map(|_| world.now.since(began).as_secs()));
        world.pass(TICK);
    }
    assert_eq!(tried_at, [0, 0, 0, 1, 4, 9, 18]);
    world.events.clear();
    // Well again: the next request that tries it brings it back.
    while world.in_back_off() == [0] {
        world.pass(TICK);
    }
    world.pass(TICK);
    assert_eq!(world.states()[0], State::BackOff, "nothing is known yet");
    // The client whose trials broke leaves this one to another.
    (0..3).for_each(|_| world.get(client(1), |_| false));
    assert_eq!(world.states()[0], State::BackOff);
    (0..3).for_each(|_| world.get(client(2), |_| false));
    assert_eq!(world.states()[0], State::Ready);
    world.pass(TICK);
    assert_eq!(world.told(), ["e0: back_off to ready: it answers again"]);
    let hits = world.send(30, |_| OK);
    assert_eq!(hits, [10, 10, 10]);
}

#[test]
fn what_cannot_be_tried_again_speaks_by_contrast() {
    let mut world = World::new(&usual(3));
    let breaks = |index| if index == 0 { Outcome::Broken } else { OK };
    for _ in 0..30 {
        world.ask(client(1), &BitSet::EMPTY, breaks);
    }
    assert_eq!((world.in_back_off(), world.status(0).failures), (vec![0], 3));
}

#[test]
fn a_request_that_breaks_wherever_it_goes_moves_nobody() {
    let mut world = World::new(&usual(3));
    for round in 0..200_u8 {
        // Tried everywhere, or once, by one client or by many.
        let from = client(if round < 100 { 1 } else { round });
        if round % 2 == 0 {
            world.get(from, |_| true);
        } else {
            world.ask(from, &BitSet::EMPTY, |_| Outcome::Broken);
        }
        if round % 5 == 0 {
            world.pass(TICK);
        }
        assert_eq!(world.in_back_off(), [], "round {round}");
    }
    world.pass(TICK);
    assert_eq!(world.told(), [""; 0]);
}

#[test]
fn the_last_endpoint_of_a_pool_stays() {
    let mut world = World::new(&usual(1));
    for _ in 0..50 {
        world.ask(client(1), &BitSet::EMPTY, |_| Outcome::Broken);
        world.ask(client(2), &BitSet::EMPTY, |_| ERROR);
        world.pass(TICK);
    }
    assert_eq!(world.states(), [State::Ready]);
    let mut world = World::new(&usual(2));
    let both = |index| if index == 0 { Outcome::Broken } else { OK };
    (0..10).for_each(|_| _ = world.ask(client(1), &BitSet::EMPTY, both));
    assert_eq!(world.in_back_off(), [0]);
    (0..10).for_each(|_| _ = world.ask(client(1), &BitSet::EMPTY, |_| Outcome::Broken));
    assert_eq!(world.in_back_off(), [0]);
}

#[test]
fn timeouts_of_one_client_move_nobody_and_those_of_three_do_by_their_share() {
    let slow = |world: &mut World, from: &dyn Fn(u8) -> Option<IpAddr>| {
        for round in 0..200_u8 {
            let at = |index| if index == 0 { Outcome::Late } else { OK };
            world.ask(from(round), &BitSet::EMPTY, at);
            if round % 3 == 0 {
                world.pass(TICK);
            }
        }
    };
    let mut world = World::new(&usual(3));
    slow(&mut world, &|_| client(1));
    assert_eq!((world.told(), world.in_back_off()), (vec![], vec![]), "one");
    let mut world = World::new(&usual(3));
    slow(&mut world, &|round| client(1 + round % 2));
    assert_eq!((world.told(), world.in_back_off()), (vec![], vec![]), "two");
    let mut world = World::new(&usual(3));
    slow(&mut world, &|round| client(1 + round / 3 % 3));
    let told = world.told();
    assert!(told[0].starts_with("e0: ready to down: ejected: "), "{told:?}");
    assert!(told[0].ends_with("requests failed") && !told[0].contains("in a row"), "{told:?}");
}

#[test]
fn twelve_slow_urls_of_one_client_move_nobody_and_nobody_is_refused() {
    let mut world = World::new(&usual(3));
    for round in 0..60 {
        // Each is tried at all three endpoints.
        for _ in 0..12 {
            let mut tried = BitSet::EMPTY;
            (0..3).for_each(|_| {
                let index = world.ask(client(1), &tried, |_| Outcome::Late);
                tried.insert(index);
            });
        }
        (0..3).for_each(|_| _ = world.ask(client(2), &BitSet::EMPTY, |_| OK));
        world.pass(TICK);
        assert_eq!(world.in_back_off(), [], "round {round}");
    }
    assert_eq!(world.told(), [""; 0]);
}

/// Where an endpoint has several clients, one of them that chooses what fails does not take it away from
/// the others.
#[test]
fn a_client_whose_own_requests_fail_does_not_take_the_endpoint_from_others() {
    for failure in [ERROR, Outcome::Failed, Outcome::Broken] {
        let mut world = World::new(&usual(3));
        for round in 0..300_u32 {
            // It belongs to endpoint 0, and asks much more often than they do.
            let others = |number: u8, world: &mut World| {
                (0..3).for_each(|_| _ = world.ask(client(number), &BitSet::EMPTY, |_| OK));
            };
            others(2, &mut world);
            others(3, &mut world);
            let only: BitSet = [1, 2].into_iter().collect();
            (0..20).for_each(|_| _ = world.ask(client(1), &only, |_| failure));
            world.pass(TICK);
            assert_eq!(world.states(), [State::Ready; 3], "{failure:?}, round {round}");
        }
    }
}

#[test]
fn a_client_that_is_alone_moves_one_endpoint_at_a_time() {
    let mut world = World::new(&usual(4));
    for round in 0..40 {
        // It breaks whatever it belongs to, and goes on to the next when that is out.
        for index in 0..4_usize {
            let only: BitSet = (0..4).filter(|other| *other != index).collect();
            let others: BitSet = [index].into_iter().collect();
            (0..6).for_each(|_| {
                let request = Acquire { from: client(1), ..world.request() };
                if let Ok(lease) = world.pool.acquire(&request, &only) {
                    lease.settle(ERROR, world.now);
                }
                (0..3).for_each(|_| _ = world.ask(client(1), &others, |_| OK));
            });
        }
        world.pass(TICK);
        let down = world.states().iter().filter(|state| **state != State::Ready).count();
        assert!(down <= 1, "round {round}: {:?}", world.states());
    }
    assert!(!world.told().is_empty(), "that one");
}

#[test]
fn answers_of_500_everywhere_move_nobody() {
    let mut world = World::new(&usual(3));
    for _ in 0..60 {
        // One of three requests asks for what fails everywhere.
        (0..10).for_each(|_| {
            world.ask(client(1), &BitSet::EMPTY, |_| ERROR);
            world.ask(client(2), &BitSet::EMPTY, |_| OK);
            world.ask(client(3), &BitSet::EMPTY, |_| OK);
            world.ask(client(3), &BitSet::EMPTY, |_| OK);
        });
        world.pass(TICK);
    }
    assert_eq!(world.told(), [""; 0]);
}

#[test]
fn one_that_answers_500_to_all_is_ejected_after_five() {
    let mut world = World::new(&usual(3));
    world.pass(SECOND);
    (0..60).for_each(|_| {
        world.ask(client(1), &BitSet::EMPTY, |index| if index == 0 { ERROR } else { OK });
    });
    assert_eq!((world.status(0).failures, world.states()[0]), (5, State::Down));
}
