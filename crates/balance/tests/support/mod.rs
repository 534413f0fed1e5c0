//! What every test of this crate needs: a counter, loads as arrays, and one pool under test.
#![allow(dead_code, reason = "each test binary uses its own part")]

pub(crate) mod latency_oracle;
pub(crate) mod nginx;
pub(crate) mod subject;
pub(crate) mod traffic;

use std::cell::Cell;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use subak_balance::catalogue::{self, OptionError, OptionKind, OptionSpec, OptionValue};
use subak_balance::{
    Algorithm, Balancer, Completion, Endpoints, Entry, FULL, Key, LoadView, PickRequest, Previous,
    Recipe, Score, Tickets, Window,
};
use subak_base::{BitSet, Rng, Tick, Weight};

/// A pool's ticket counter.
#[derive(Default)]
pub(crate) struct Counter(pub(crate) Cell<u64>);

impl Tickets for Counter {
    fn draw(&self) -> u64 {
        self.0.replace(self.0.get() + 1)
    }
}

/// What a pool knows of the load, in arrays.
#[derive(Clone, Default)]
pub(crate) struct Loads {
    pub(crate) in_flight: Vec<u32>,
    pub(crate) cells: Vec<u64>,
    pub(crate) packets: Vec<Window>,
    pub(crate) bytes: Vec<Window>,
    pub(crate) ramps: Vec<u16>,
    pub(crate) summary: u64,
    pub(crate) now: Tick,
    /// Shows the busiest as the least busy.
    pub(crate) is_inverted: bool,
}

impl Loads {
    pub(crate) fn new(count: usize) -> Loads {
        let mut loads = Loads::default();
        loads.resize(count);
        loads
    }

    pub(crate) fn resize(&mut self, count: usize) {
        self.in_flight.resize(count, 0);
        self.cells.resize(count, 0);
        self.packets.resize(count, Window::default());
        self.bytes.resize(count, Window::default());
        self.ramps.resize(count, FULL);
    }
}

impl LoadView for Loads {
    fn in_flight(&self, index: usize) -> u32 {
        if self.is_inverted { 1_000_000 - self.in_flight[index] } else { self.in_flight[index] }
    }

    fn cell(&self, index: usize) -> u64 {
        self.cells[index]
    }

    fn packets(&self, index: usize) -> u64 {
        self.packets[index].sum(self.now)
    }

    fn bytes(&self, index: usize) -> u64 {
        self.bytes[index].sum(self.now)
    }

    fn ramp(&self, index: usize) -> u16 {
        self.ramps[index]
    }

    fn summary(&self) -> u64 {
        self.summary
    }
}

/// Endpoints named e0, e1, … with these weights.
pub(crate) fn endpoints(weights: &[u16]) -> Endpoints {
    named(weights.iter().enumerate().map(|(index, weight)| (index, *weight)))
}

/// Endpoints named after these numbers, with these weights.
pub(crate) fn named(entries: impl IntoIterator<Item = (usize, u16)>) -> Endpoints {
    let entry = |(number, weight)| {
        let name = format!("e{number}");
        Entry::new(format!("http:{name}"), name, Weight(weight))
    };
    Endpoints::new(entries.into_iter().map(entry).collect()).unwrap()
}

/// Every algorithm with every combination of its options; of ranges both ends.
pub(crate) fn algorithms() -> Vec<Algorithm> {
    catalogue::all()
        .iter()
        .flat_map(|listing| {
            let mut settings: Vec<Vec<(&str, OptionValue<'_>)>> = vec![vec![]];
            for option in listing.options {
                let with = |set: &Vec<_>, value| [set.clone(), vec![(option.name, value)]].concat();
                let more: Vec<_> = settings
                    .iter()
                    .flat_map(|set| values(option).into_iter().map(move |value| with(set, value)))
                    .collect();
                // Without it, where that is something else than any value.
                settings = if option.default.is_some() { more } else { [settings, more].concat() };
            }
            let configured = settings.into_iter().map(|set| listing.configure(listing.name, &set));
            configured.filter(|algorithm| !matches!(algorithm, Err(OptionError::Conflict { .. })))
        })
        .map(|algorithm| algorithm.unwrap())
        .collect()
}

/// The values of an option that are worth a try.
fn values(option: &OptionSpec) -> Vec<OptionValue<'static>> {
    match option.kind {
        OptionKind::Words(words) => words.iter().map(|word| (*word).into()).collect(),
        OptionKind::Text { .. } => option.default.into_iter().collect(),
        OptionKind::Integer { min, max } => [min, max].map(OptionValue::Integer).to_vec(),
        OptionKind::Decimal { min, max } => [min, max].map(OptionValue::Thousandths).to_vec(),
    }
}

/// A random client: IPv4 or IPv6.
pub(crate) fn client(rng: &mut Rng) -> IpAddr {
    let word = rng.next_u64();
    if word & 1 == 0 {
        Ipv4Addr::from((word >> 32) as u32).into()
    } else {
        Ipv6Addr::from(u128::from(word) << 64 | u128::from(rng.next_u64())).into()
    }
}

/// A set with each index below `len` in it at a chance of `percent` in 100.
pub(crate) fn some_of(len: usize, percent: u64, rng: &mut Rng) -> BitSet {
    (0..len).filter(|_| rng.below(100) < percent).collect()
}

/// What is deliberately broken, to see that a check notices.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fault {
    None,
    /// Every endpoint is taken to have weight 1.
    WeightIgnored,
    /// Weight 0 is taken for 1.
    ZeroIsOne,
    /// The first of the least loaded always wins.
    FirstOnTie,
    /// A rebuild begins anew.
    RestartOnRebuild,
    /// Endpoints tried already are picked again.
    TriedIgnored,
    /// The set compiled from is used, whatever the request's set says.
    EligibleIgnored,
    /// The key is not looked at.
    KeyIgnored,
    /// Of several the one with most in flight is taken.
    BusierKept,
    /// A pick depends on something that is not passed in.
    HiddenState,
}

/// A pool in one thread: the list, who is eligible, the balancer compiled for them, the counter.
pub(crate) struct Pool {
    pub(crate) fault: Fault,
    pub(crate) algorithm: Algorithm,
    pub(crate) endpoints: Endpoints,
    pub(crate) eligible: BitSet,
    pub(crate) balancer: Balancer,
    pub(crate) tickets: Counter,
    pub(crate) loads: Loads,
    pub(crate) random: Rng,
    compiled_from: (Endpoints, BitSet),
}

thread_local! {
    static HIDDEN: Cell<u64> = const { Cell::new(0) };
}

impl Pool {
    pub(crate) fn new(algorithm: Algorithm, endpoints: Endpoints) -> Pool {
        Pool::faulty(algorithm, endpoints, Fault::None)
    }

    pub(crate) fn faulty(algorithm: Algorithm, endpoints: Endpoints, fault: Fault) -> Pool {
        let eligible = BitSet::full(endpoints.len());
        let mut loads = Loads::new(endpoints.len());
        loads.is_inverted = fault == Fault::BusierKept;
        let seen = seen_through(fault, &endpoints);
        let balancer = Balancer::build(Recipe {
            algorithm: &algorithm,
            endpoints: &seen,
            eligible: &eligible,
            previous: None,
        });
        let (tickets, random) = (Counter::default(), Rng::new(0));
        let compiled_from = (seen, eligible.clone());
        Pool {
            fault,
            algorithm,
            endpoints,
            eligible,
            balancer,
            tickets,
            loads,
            random,
            compiled_from,
        }
    }

    /// Rebuilds for another eligible set.
    pub(crate) fn set_eligible(&mut self, eligible: BitSet) {
        let endpoints = self.endpoints.clone();
        self.replace(endpoints, eligible);
    }

    /// Rebuilds for another list.
    pub(crate) fn replace(&mut self, endpoints: Endpoints, eligible: BitSet) {
        let previous = Previous {
            balancer: &self.balancer,
            endpoints: &self.compiled_from.0,
            ticket: self.tickets.0.get(),
        };
        let seen = seen_through(self.fault, &endpoints);
        self.balancer = Balancer::build(Recipe {
            algorithm: &self.algorithm,
            endpoints: &seen,
            eligible: &eligible,
            previous: (self.fault != Fault::RestartOnRebuild).then_some(previous),
        });
        if self.fault == Fault::RestartOnRebuild {
            self.tickets = Counter::default();
            self.loads = Loads { now: self.loads.now, ..Loads::default() };
        }
        self.loads.resize(endpoints.len());
        self.compiled_from = (seen, eligible.clone());
        (self.endpoints, self.eligible) = (endpoints, eligible);
    }

    pub(crate) fn pick_with(&mut self, key: Key<'_>, tried: &BitSet) -> Option<usize> {
        let random = self.random.next_u64();
        let mut request = PickRequest {
            tickets: &self.tickets,
            random,
            now: self.loads.now,
            key,
            eligible: &self.eligible,
            tried,
        };
        let loads = &self.loads.in_flight;
        match self.fault {
            Fault::TriedIgnored => request.tried = &BitSet::EMPTY,
            Fault::EligibleIgnored => request.eligible = &self.compiled_from.1,
            Fault::KeyIgnored => request.key = Key::None,
            Fault::FirstOnTie => {
                let of = |index: usize| u64::from(loads[index]);
                let weight = |index: usize| self.endpoints.entry(index).weight.get();
                let candidates = request.eligible.without(tried).filter(|index| weight(*index) > 0);
                return candidates.reduce(|best, next| {
                    if of(next) * weight(best) < of(best) * weight(next) { next } else { best }
                });
            }
            Fault::HiddenState => {
                HIDDEN.set(HIDDEN.get() + 1);
                let picked = self.balancer.pick(&self.loads, &request)?;
                let mut others =
                    self.candidates(tried).into_iter().filter(|index| *index != picked);
                let is_time = HIDDEN.get().is_multiple_of(13);
                return others.next().filter(|_| is_time).or(Some(picked));
            }
            _ => {}
        }
        self.balancer.pick(&self.loads, &request)
    }

    /// What a pick without a key would compare of an endpoint; draws no ticket.
    pub(crate) fn score(&self, index: usize) -> Option<Score> {
        let tickets = Counter(Cell::new(self.tickets.0.get()));
        let request = PickRequest {
            tickets: &tickets,
            random: 0,
            now: self.loads.now,
            key: Key::None,
            eligible: &self.eligible,
            tried: &BitSet::EMPTY,
        };
        self.balancer.score(&self.loads, &request, index)
    }

    pub(crate) fn pick(&mut self) -> Option<usize> {
        self.pick_with(Key::None, &BitSet::EMPTY)
    }

    pub(crate) fn pick_for(&mut self, address: IpAddr, tried: &BitSet) -> Option<usize> {
        self.pick_with(Key::Address(address), tried)
    }

    /// Sends a request to an endpoint.
    pub(crate) fn dispatch(&mut self, index: usize) {
        let loads = &mut self.loads;
        loads.in_flight[index] += 1;
        loads.cells[index] = self.balancer.on_dispatch(loads.cells[index], loads.now);
    }

    /// Settles a request in flight.
    pub(crate) fn complete(&mut self, index: usize, elapsed: Duration, failed: bool) {
        let now = self.loads.now;
        let first_byte = (!failed).then_some(elapsed);
        let completion = Completion { now, elapsed, first_byte, failed };
        let cell = self.loads.cells[index];
        let cell = self.balancer.on_complete(cell, index, &completion, &self.loads);
        self.loads.cells[index] = cell;
        // A pool that forgets has forgotten this one, too.
        self.loads.in_flight[index] = self.loads.in_flight[index].saturating_sub(1);
    }

    /// What a pool does about once every 100 ms.
    pub(crate) fn summarise(&mut self) {
        self.loads.summary = self.balancer.summarise(&self.loads, self.loads.now);
    }

    /// Picks without a key.
    pub(crate) fn picks(&mut self, count: usize) -> Vec<usize> {
        (0..count).map(|_| self.pick().expect("one is eligible")).collect()
    }

    /// The endpoints that may take a request now.
    pub(crate) fn candidates(&self, tried: &BitSet) -> Vec<usize> {
        let has_weight = |index: &usize| self.endpoints.entry(*index).weight > Weight::ZERO;
        self.eligible.without(tried).filter(has_weight).collect()
    }

    pub(crate) fn weights(&self) -> Vec<u64> {
        self.endpoints.iter().map(|entry| entry.weight.get()).collect()
    }
}

/// The list as a balancer with this fault sees it.
fn seen_through(fault: Fault, endpoints: &Endpoints) -> Endpoints {
    let weight = |weight: Weight| match fault {
        Fault::WeightIgnored => Weight(weight.0.min(1)),
        Fault::ZeroIsOne => Weight(weight.0.max(1)),
        _ => weight,
    };
    let entry = |entry: &Entry| Entry { weight: weight(entry.weight), ..entry.clone() };
    Endpoints::new(endpoints.iter().map(entry).collect()).unwrap()
}
