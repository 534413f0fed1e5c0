//! Outages by chance, as a balancer lives through them: one of several endpoints is ill for 12 of 25
//! seconds under 600 requests a second. Counted is what clients see. A failing seed is in the message.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use crate::support::{ERROR, OK, TICK, World, spec};
use subak_base::{BitSet, Rng};
use subak_health::{EjectionSpec, State};
use subak_pool::{Acquire, Outcome, PoolSpec};

/// In which way the endpoint is ill.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Ill {
    /// It refuses connections.
    Refusing,
    /// It resets, closes or talks nonsense instead of a response.
    Breaking,
    /// It answers 500.
    Erring,
    /// It breaks its responses off.
    Cutting,
}

impl Ill {
    const ALL: [Ill; 4] = [Ill::Refusing, Ill::Breaking, Ill::Erring, Ill::Cutting];

    fn outcome(self) -> Outcome {
        match self {
            Ill::Refusing => Outcome::Unreachable,
            Ill::Breaking => Outcome::Broken,
            Ill::Erring => ERROR,
            Ill::Cutting => Outcome::Failed,
        }
    }
}

struct Run {
    world: World,
    random: Rng,
    clients: u64,
    /// Requests in a thousand that fail whatever endpoint takes them.
    noise: u64,
    is_get: bool,
    ill: Ill,
    /// Requests that failed because of the endpoint.
    lost: u32,
}

impl Run {
    fn new(seed: u64, ill: Ill, (clients, noise, is_get): (u64, u64, bool)) -> Run {
        let mut random = Rng::new(seed);
        let algorithms = ["round_robin", "random", "least_connections"];
        let algorithm = algorithms[random.below(3) as usize];
        let eject = EjectionSpec { latency: None, ..EjectionSpec::default() };
        let spec = PoolSpec { eject: Some(eject), ..spec(algorithm, &[1, 1, 1]) };
        Run { world: World::new(&spec), random, clients, noise, is_get, ill, lost: 0 }
    }

    fn live(&mut self) {
        let began = self.world.now;
        let ill = self.ill;
        for millis in 0..25_000_u64 {
            let is_ill = (6_000..18_000).contains(&millis);
            self.world.now = began.after(Duration::from_millis(millis));
            if millis % 100 == 0 {
                self.world.tick();
            }
            for _ in 0..self.random.below(2) + u64::from(millis % 10 == 0) {
                let outcome = is_ill.then(|| ill.outcome());
                self.request(outcome);
            }
        }
    }

    /// One request, with retries as a balancer makes them.
    fn request(&mut self, of_the_ill: Option<Outcome>) {
        let from = self.random.below(self.clients) as u8;
        let from: IpAddr = Ipv4Addr::new(10, 1, 0, from).into();
        let fails_anyhow = self.random.below(1000) < self.noise;
        let (mut tried, mut broken) = (BitSet::EMPTY, BitSet::EMPTY);
        let now = self.world.now;
        loop {
            let request = Acquire { from: Some(from), ..self.world.request() };
            let Ok(lease) = self.world.pool.acquire(&request, &tried) else { break };
            let index = lease.index();
            let outcome = match of_the_ill {
                Some(outcome) if index == 0 => outcome,
                _ if fails_anyhow => ERROR,
                _ => OK,
            };
            lease.settle(outcome, now);
            tried.insert(index);
            match outcome {
                Outcome::Completed(answered) if !answered.status_failed => {
                    if !broken.is_empty() {
                        self.world.pool.confirm(&broken, now);
                    }
                    return;
                }
                Outcome::Unreachable => continue,
                Outcome::Broken => {
                    broken.insert(index);
                    if self.is_get && self.world.pool.withdraw_retry(now) {
                        continue;
                    }
                }
                _ => {}
            }
            break;
        }
        self.lost += u32::from(!fails_anyhow);
    }
}

#[test]
fn an_endpoint_that_is_ill_for_twelve_seconds_costs_a_few_requests() {
    for seed in 0..1 {
        for ill in Ill::ALL {
            for clients in [1, 50] {
                for is_get in [true, false] {
                    let mut run = Run::new(seed, ill, (clients, 0, is_get));
                    run.live();
                    let most = match ill {
                        Ill::Refusing => 0,
                        Ill::Breaking if is_get => 0,
                        Ill::Breaking => 10,
                        Ill::Erring | Ill::Cutting => 20,
                    };
                    let lost = run.lost;
                    let what = format!("seed {seed}, {ill:?}, {clients} clients, GET: {is_get}");
                    assert!(lost <= most, "{what}: {lost} requests lost");
                    run.world.pass(Duration::from_secs(30));
                    run.world.send(30, |_| OK);
                    let status = run.world.pool.status(run.world.now);
                    assert!(status.endpoints.iter().all(|one| one.state == State::Ready), "{what}");
                }
            }
        }
    }
}

/// One request in fifty fails wherever it goes: an endpoint that is ill as well goes, others do not.
#[test]
fn ordinary_noise_hides_no_illness_and_is_none() {
    for seed in 0..2 {
        for clients in [1, 50] {
            let mut run = Run::new(seed, Ill::Erring, (clients, 20, true));
            run.live();
            let what = format!("seed {seed}, {clients} clients");
            assert!(run.lost <= 80, "{what}: {} requests lost", run.lost);
            let told = run.world.told();
            assert!(told.iter().all(|event| event.starts_with("e0: ")), "{what}: {told:#?}");
            let first = told.first().unwrap_or_else(|| panic!("{what}: nothing was noticed"));
            assert!(first.contains("requests in a row failed"), "{what}: {first}");
        }
    }
}

#[test]
fn noise_alone_moves_nobody() {
    for seed in 0..8 {
        let noise = [5, 50, 200, 100][seed as usize % 4];
        let mut run = Run::new(seed, Ill::Erring, ([1, 30][seed as usize / 4], noise, true));
        for _ in 0..300 {
            (0..60).for_each(|_| run.request(None));
            run.world.pass(TICK);
        }
        let told = run.world.told();
        assert_eq!(told, [""; 0], "seed {seed}, {noise} of 1,000 fail");
    }
}
