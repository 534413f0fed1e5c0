//! Whole lives of a pool, made up by chance: probes, failures, people, agents' weights, reloads, time.
//! Whatever happens, what the pool promises holds at every step. A failing seed is in the message.

use std::num::NonZeroU32;
use std::time::Duration;

use crate::support::{World, endpoint};
use subak_balance::Key;
use subak_balance::catalogue::{self, Listing};
use subak_base::{BitSet, Rng, Weight};
use subak_health::{
    Admin, Because, EjectionSpec, OnAllDown, ProbeFailure, ProbeResult, ProbeSpec, Reason,
    SlowStart, State,
};
use subak_pool::{
    Acquire, Answered, EndpointSpec, EndpointStatus, Lease, Outcome, PoolSpec, PoolStatus, Refusal,
    ShadowKeys, StickTableSpec,
};

const SEEDS: u64 = 128;
const STEPS: usize = 120;

fn chance(random: &mut Rng, one_in: u64) -> bool {
    random.below(one_in) == 0
}

fn some_endpoint(random: &mut Rng, port: u16) -> EndpointSpec {
    EndpointSpec {
        backup: chance(random, 5),
        max_in_flight: chance(random, 3).then(|| 1 + random.below(3) as u32),
        admin: if chance(random, 12) { Admin::Drain } else { Admin::Ready },
        ..endpoint(port, random.below(4) as u16)
    }
}

fn some_spec(random: &mut Rng) -> PoolSpec {
    // Tables of many thousand slots take their time to be compiled, so seldom.
    let is_light = |listing: &&Listing| !["maglev", "hash"].contains(&listing.name);
    let is_heavy_turn = chance(random, 40);
    let listings: Vec<_> =
        catalogue::all().iter().filter(|one| is_heavy_turn != is_light(one)).collect();
    let algorithm = listings[random.below(listings.len() as u64) as usize].algorithm();
    let mut ports: Vec<u16> = (1..8).filter(|_| !chance(random, 3)).collect();
    if chance(random, 2) {
        ports.reverse();
    }
    let endpoints = ports.into_iter().map(|port| some_endpoint(random, port)).collect();
    let eject = EjectionSpec {
        consecutive: NonZeroU32::new(1 + random.below(4) as u32),
        window: Duration::from_secs(2),
        min_requests: 5,
        base: Duration::from_secs(1 + random.below(5)),
        max_share_per_mille: [0, 100, 500, 1000][random.below(4) as usize],
        ..EjectionSpec::default()
    };
    let policies = [OnAllDown::FailOpen, OnAllDown::FailClosed, OnAllDown::BackupOnly];
    PoolSpec {
        probe: (!chance(random, 3)).then(ProbeSpec::default),
        eject: (!chance(random, 3)).then_some(eject),
        slow_start: chance(random, 2).then(|| SlowStart::over(Duration::from_secs(5))),
        on_all_down: policies[random.below(3) as usize],
        stick_table: chance(random, 2)
            .then_some(StickTableSpec { expire: Duration::from_secs(9), entries: 20 }),
        pick_log: std::num::NonZeroUsize::new(random.below(2) as usize * 50),
        ..PoolSpec::new("app", algorithm, endpoints)
    }
}

/// A pool in force, and the chance that decides what happens to it.
struct Life {
    spec: PoolSpec,
    world: World,
    random: Rng,
    seed: u64,
}

impl Life {
    fn live(&mut self) {
        let mut before = self.world.pool.status(self.world.now);
        for step in 0..STEPS {
            self.some_requests(step);
            self.something_happens();
            self.world.now = self.world.now.after(Duration::from_millis(self.random.below(300)));
            self.world.tick();
            before = self.check_status(&before);
        }
    }

    /// Some requests, held together, and settled; every pick is checked.
    fn some_requests(&mut self, step: usize) {
        let (random, world) = (&mut self.random, &self.world);
        let (pool, spec, seed) = (&world.pool, &self.spec, self.seed);
        let mut held: Vec<Lease<'_>> = Vec::new();
        for _ in 0..random.below(12) {
            let tried: BitSet = (0..spec.endpoints.len()).filter(|_| chance(random, 5)).collect();
            let client = random.below(30);
            let bytes = client.to_be_bytes();
            let asked = Acquire {
                key: if chance(random, 4) { Key::None } else { Key::Bytes(&bytes) },
                shadow_keys: ShadowKeys::OWN,
                random: random.next_u64(),
                now: world.now,
                in_turn: false,
                stick: chance(random, 6).then(|| random.below(8) as usize),
                client: chance(random, 2).then_some(client << 58),
                from: None,
                decision: None,
            };
            let status = pool.status(world.now);
            match pool.acquire(&asked, &tried) {
                Ok(lease) => {
                    let one = &status.endpoints[lease.index()];
                    let why = format!("seed {seed}, step {step}: {:?} of {status:#?}", asked.stick);
                    assert!(!tried.contains(lease.index()), "tried: {why}");
                    assert!(one.max_in_flight.is_none_or(|cap| one.in_flight < cap), "cap: {why}");
                    assert_ne!(one.state, State::Maintenance, "{why}");
                    let is_sticky = asked.stick.is_some() || asked.client.is_some();
                    if !is_sticky {
                        assert!(one.weight.in_force > Weight::ZERO, "weight: {why}");
                        assert_ne!(one.state, State::Drain, "{why}");
                    }
                    if one.state == State::Down && !status.because.is_desperate() {
                        // It was ejected a moment ago, and it is this one or nobody.
                        assert_ne!(spec.on_all_down, OnAllDown::FailClosed, "down: {why}");
                        let mut others =
                            (0..spec.endpoints.len()).filter(|index| !tried.contains(*index));
                        assert!(
                            !others.any(|index| status.endpoints[index].is_eligible),
                            "down: {why}"
                        );
                    }
                    held.push(lease);
                }
                Err(Refusal::NoEndpoint) => {
                    let takes = |index: &usize| {
                        status.endpoints[*index].is_eligible && !tried.contains(*index)
                    };
                    let left = (0..spec.endpoints.len()).find(takes);
                    assert_eq!(left, None, "seed {seed}, step {step}: {status:#?}");
                }
                Err(Refusal::Saturated) => {}
            }
        }
        for lease in held {
            let first_byte = Some(Duration::from_micros(random.below(500_000)));
            let answered = Answered { first_byte, status_failed: chance(random, 6) };
            let outcome = match random.below(10) {
                0 => Outcome::Unreachable,
                1 | 2 => Outcome::Failed,
                3 => Outcome::Cancelled,
                _ => Outcome::Completed(answered),
            };
            match chance(random, 20) {
                true => drop(lease),
                false => lease.settle(outcome, world.now),
            }
        }
        let left = pool.endpoints().map(|endpoint| endpoint.in_flight()).sum::<u32>();
        assert_eq!(left, 0, "seed {seed}: every lease was settled");
    }

    fn something_happens(&mut self) {
        let (random, world) = (&mut self.random, &mut self.world);
        for due in world.pool.due(world.now) {
            let result = match random.below(5) {
                0 | 1 => ProbeResult::Failed(ProbeFailure::Reset),
                _ => ProbeResult::Passed,
            };
            let word = random.next_u64();
            if chance(random, 10) {
                continue;
            }
            world.events.extend(world.pool.probed(due.index, due.run, result, world.now, word));
        }
        let name = format!("e{}", 1 + random.below(7));
        match random.below(20) {
            0 => {
                let wanted =
                    [None, Some(Admin::Ready), Some(Admin::Drain), Some(Admin::Maintenance)];
                let wanted = wanted[random.below(4) as usize];
                let _ = world.pool.set_admin(&name, wanted, world.now, random.next_u64());
            }
            1 => {
                let weight = chance(random, 2).then(|| Weight(random.below(4) as u16));
                let _ = world.pool.set_weight(&name, weight, world.now);
            }
            2 => {
                let factor = subak_balance::weights::Factor::from_1024ths(random.below(4096));
                world.pool.set_factors(&[(random.below(7) as usize, factor)], world.now);
            }
            3 => {
                let algorithm = self.spec.algorithm.clone();
                self.spec = some_spec(random);
                if chance(random, 2) {
                    self.spec.algorithm = algorithm;
                }
                world.reload(&self.spec);
            }
            _ => {}
        }
    }

    /// What must hold after every tick, by itself and compared with what was after the one before.
    fn check_status(&mut self, before: &PoolStatus) -> PoolStatus {
        let (world, spec, seed) = (&self.world, &self.spec, self.seed);
        let status = world.pool.status(world.now);
        let is_ejected = |one: &EndpointStatus| {
            one.state == State::Down && matches!(one.reason, Reason::Ejected { .. })
        };
        let has_weight = |one: &&EndpointStatus| {
            one.weight.operator.unwrap_or(one.weight.configured) > Weight::ZERO
        };
        let wanted = |one: &&EndpointStatus| one.wanted.0 == Admin::Ready;
        let with_weight = || status.endpoints.iter().filter(has_weight).filter(wanted);
        let ejected = with_weight().filter(|one| is_ejected(one)).count();
        let considered = with_weight().filter(|one| one.state == State::Ready || is_ejected(one));
        let room = spec.eject.as_ref().map_or(0, |spec| spec.room(considered.count()));
        assert!(ejected <= room, "seed {seed}: {ejected} of {room}: {status:#?}");
        for one in &status.endpoints {
            let is_same = |other: &&EndpointStatus| other.id == one.id;
            let Some(earlier) = before.endpoints.iter().find(is_same) else { continue };
            // A ramp only grows while the endpoint stays ready.
            if status.generation == before.generation
                && one.state == State::Ready
                && earlier.state == State::Ready
                && earlier.since == one.since
                && one.back_off_until.is_none()
                && earlier.back_off_until.is_none()
            {
                assert!(one.weight.ramp >= earlier.weight.ramp, "seed {seed}: {one:?} {earlier:?}");
            }
            assert!(one.hits >= earlier.hits && one.failures >= earlier.failures);
        }
        let primaries = status.endpoints.iter().any(|one| {
            one.is_eligible && one.tier == subak_health::Tier::Primary && one.state == State::Ready
        });
        if status.because == Because::BackupsReady {
            assert!(!primaries, "seed {seed}: {status:#?}");
        }
        status
    }
}

#[test]
fn whatever_happens_a_pool_keeps_its_promises() {
    for seed in 0..SEEDS {
        let mut random = Rng::new(seed);
        let spec = some_spec(&mut random);
        let world = World::new(&spec);
        Life { spec, world, random, seed }.live();
    }
}

/// Over enough requests, idle endpoints get what their weights in force say, whatever happened before.
#[test]
fn shares_follow_the_weights_in_force() {
    for seed in 0..40 {
        let mut random = Rng::new(seed);
        let mut spec = some_spec(&mut random);
        let names = ["round_robin", "random", "least_connections"];
        spec.algorithm = crate::support::algorithm(names[random.below(3) as usize]);
        spec.slow_start = None;
        spec.endpoints.iter_mut().for_each(|endpoint| endpoint.max_in_flight = None);
        let world = World::new(&spec);
        let mut life = Life { spec, world, random, seed };
        for step in 0..50 {
            life.some_requests(step);
            let word = life.random.next_u64();
            let name = format!("e{}", 1 + word % 7);
            let _ = life.world.pool.set_weight(
                &name,
                Some(Weight((word >> 9) as u16 % 5)),
                life.world.now,
            );
            life.world.pass(Duration::from_millis(100));
        }
        life.world.pass(Duration::from_secs(400));
        let status = life.world.pool.status(life.world.now);
        let weight = |index: usize| match status.endpoints[index].is_eligible {
            true => f64::from(status.endpoints[index].weight.in_force.0),
            false => 0.0,
        };
        let total: f64 = (0..status.endpoints.len()).map(weight).sum();
        let sent = 6_000;
        let hits = life.world.send(sent, |_| crate::support::OK);
        for (index, hits) in hits.iter().enumerate().filter(|_| total > 0.0) {
            let due = sent as f64 * weight(index) / total;
            // Five standard deviations of a draw, for the one that draws.
            let slack = 5.0 * due.sqrt() + 3.0;
            assert!(
                (*hits as f64 - due).abs() <= slack,
                "seed {seed}: {hits} for {due}: {status:#?}"
            );
        }
    }
}
