//! A pool under a clock of its own, and a process in which it is reloaded.
#![allow(dead_code, reason = "every test uses a part of it")]

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use subak_balance::{Algorithm, Key, catalogue};
use subak_base::{Address, BitSet, Rng, Tick, Weight};
use subak_health::{ProbeFailure, ProbeResult};
use subak_pool::{
    Acquire, Answered, EndpointIds, EndpointSpec, EndpointStatus, Event, Lease, Outcome, Pool,
    PoolSpec, Question, Refusal, ShadowKeys,
};

/// The control side's rhythm.
pub(crate) const TICK: Duration = Duration::from_millis(100);

pub(crate) const OK: Outcome =
    Outcome::Completed(Answered { first_byte: None, status_failed: false });
pub(crate) const ERROR: Outcome =
    Outcome::Completed(Answered { first_byte: None, status_failed: true });

/// One process: its clock, its randomness, and the pool in force.
pub(crate) struct World {
    pub(crate) ids: EndpointIds,
    pub(crate) pool: Pool,
    pub(crate) now: Tick,
    pub(crate) random: Rng,
    /// Everything that was told.
    pub(crate) events: Vec<Event>,
}

pub(crate) fn algorithm(name: &str) -> Algorithm {
    catalogue::find(name).unwrap().algorithm()
}

/// The endpoint at this port of this machine.
pub(crate) fn endpoint(port: u16, weight: u16) -> EndpointSpec {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    EndpointSpec {
        weight: Weight(weight),
        ..EndpointSpec::new(format!("e{port}"), Address::Inet(address))
    }
}

/// Endpoints e0, e1, … of these weights.
pub(crate) fn spec(name: &str, weights: &[u16]) -> PoolSpec {
    let endpoints = (0..).zip(weights).map(|(port, weight)| endpoint(port, *weight)).collect();
    PoolSpec::new("app", algorithm(name), endpoints)
}

pub(crate) fn key(bytes: &[u8]) -> Acquire<'_> {
    let key = if bytes.is_empty() { Key::None } else { Key::Bytes(bytes) };
    Acquire {
        key,
        shadow_keys: ShadowKeys::OWN,
        random: 0,
        now: Tick(0),
        in_turn: false,
        stick: None,
        client: None,
        from: None,
        decision: None,
    }
}

/// A key as this algorithm wants it, in `bytes` where it is no address; now and then none.
pub(crate) fn any_key<'a>(algorithm: &str, random: &mut Rng, bytes: &'a mut [u8; 8]) -> Key<'a> {
    *bytes = random.below(40).to_be_bytes();
    let client = [10, 0, 0, random.below(200) as u8];
    match algorithm {
        "ip_hash" | "new_hash" => Key::Address(client.into()),
        _ if random.below(8) == 0 => Key::None,
        _ => Key::Bytes(bytes),
    }
}

/// One of those held ends: it has counted packets and bytes, and has mostly been answered.
pub(crate) fn end_one(held: &mut Vec<Lease<'_>>, random: &mut Rng, now: Tick) {
    let place = random.below(held.len() as u64) as usize;
    let lease = held.swap_remove(place);
    lease.count(random.below(50), random.below(5000), now);
    let first_byte = Some(Duration::from_micros(random.below(90_000)));
    let outcome = match random.below(9) {
        0 => Outcome::Failed,
        1 => Outcome::Unreachable,
        2 => Outcome::Cancelled,
        _ => Outcome::Completed(Answered { first_byte, status_failed: false }),
    };
    lease.settle(outcome, now);
}

impl World {
    pub(crate) fn new(spec: &PoolSpec) -> World {
        let now = Tick::from_millis(60_000);
        let mut ids = EndpointIds::new();
        let pool = Pool::build(spec, &mut ids, None, now);
        let mut world = World { ids, pool, now, random: Rng::new(7), events: Vec::new() };
        world.tick();
        world
    }

    /// A reload.
    pub(crate) fn reload(&mut self, spec: &PoolSpec) {
        let pool = Pool::build(spec, &mut self.ids, Some(&self.pool), self.now);
        self.ids.keep([&pool].into_iter());
        self.pool = pool;
        self.tick();
    }

    pub(crate) fn tick(&mut self) {
        let events = self.pool.tick(self.now, self.random.next_u64());
        self.events.extend(events);
    }

    /// Lets time pass, tick by tick.
    pub(crate) fn pass(&mut self, time: Duration) {
        let end = self.now.after(time);
        while self.now < end {
            self.now = self.now.after(TICK);
            self.tick();
        }
    }

    /// Lets time pass; whoever is probed answers, well or not.
    pub(crate) fn pass_probed(&mut self, time: Duration, is_well: impl Fn(usize) -> bool) {
        let end = self.now.after(time);
        while self.now < end {
            self.now = self.now.after(TICK);
            self.tick();
            self.answer_probes(&is_well);
        }
    }

    pub(crate) fn answer_probes(&mut self, is_well: &impl Fn(usize) -> bool) {
        for due in self.pool.due(self.now) {
            assert_eq!(due.question, Question::Probe);
            let result = match is_well(due.index) {
                true => ProbeResult::Passed,
                false => ProbeResult::Failed(ProbeFailure::Refused),
            };
            let random = self.random.next_u64();
            let event = self.pool.probed(due.index, due.run, result, self.now, random);
            self.events.extend(event);
        }
    }

    pub(crate) fn request(&mut self) -> Acquire<'static> {
        Acquire { now: self.now, random: self.random.next_u64(), ..key(b"") }
    }

    pub(crate) fn acquire(&mut self) -> Result<Lease<'_>, Refusal> {
        let request = self.request();
        self.pool.acquire(&request, &BitSet::EMPTY)
    }

    /// Sends requests one after another and answers who took them.
    pub(crate) fn send(
        &mut self,
        requests: usize,
        outcome: impl Fn(usize) -> Outcome,
    ) -> Vec<usize> {
        let mut hits = vec![0; self.pool.endpoints().len()];
        for _ in 0..requests {
            let now = self.now;
            if let Ok(lease) = self.acquire() {
                let index = lease.index();
                hits[index] += 1;
                lease.settle(outcome(index), now);
            }
        }
        hits
    }

    pub(crate) fn status(&self, index: usize) -> EndpointStatus {
        self.pool.status(self.now).endpoints.swap_remove(index)
    }

    /// What has been told since the last time, as text.
    pub(crate) fn told(&mut self) -> Vec<String> {
        self.events.drain(..).map(|event| event.to_string()).collect()
    }
}
