//! What every test of this crate needs: a counter, loads as arrays, and one pool under test.
#![allow(dead_code, reason = "each test binary uses its own part")]

pub(crate) mod nginx;

use std::cell::Cell;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use subak_balance::catalogue::{self, OptionError, OptionKind, OptionSpec, OptionValue};
use subak_balance::{
    Algorithm, Balancer, Endpoints, Entry, Key, LoadView, PickRequest, Previous, Recipe, Tickets,
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

/// In flight per endpoint.
pub(crate) struct Loads(pub(crate) Vec<u32>);

impl LoadView for Loads {
    fn in_flight(&self, index: usize) -> u32 {
        self.0[index]
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

/// Every algorithm with every combination of its options; of ranges both ends and the default.
pub(crate) fn algorithms() -> Vec<Algorithm> {
    catalogue::all()
        .iter()
        .flat_map(|listing| {
            let mut settings: Vec<Vec<(&str, OptionValue<'_>)>> = vec![vec![]];
            for option in listing.options {
                let with = |set: &Vec<_>, value| [set.clone(), vec![(option.name, value)]].concat();
                let some =
                    |set: &Vec<_>| values(option).into_iter().map(|v| with(set, v)).collect();
                settings =
                    settings.iter().flat_map(|set: &Vec<_>| -> Vec<_> { some(set) }).collect();
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
        OptionKind::Integer { min, max } => {
            let ends = [OptionValue::Integer(min), OptionValue::Integer(max)];
            option.default.into_iter().chain(ends).collect()
        }
        OptionKind::Decimal { min, max } => {
            let ends = [OptionValue::Thousandths(min), OptionValue::Thousandths(max)];
            option.default.into_iter().chain(ends).collect()
        }
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
        let loads = Loads(vec![0; endpoints.len()]);
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
        }
        self.loads.0.resize(endpoints.len(), 0);
        self.compiled_from = (seen, eligible.clone());
        (self.endpoints, self.eligible) = (endpoints, eligible);
    }

    pub(crate) fn pick_with(&mut self, key: Key<'_>, tried: &BitSet) -> Option<usize> {
        let random = self.random.next_u64();
        let mut request = PickRequest {
            tickets: &self.tickets,
            random,
            now: Tick(0),
            key,
            eligible: &self.eligible,
            tried,
        };
        let loads = &self.loads.0;
        match self.fault {
            Fault::TriedIgnored => request.tried = &BitSet::EMPTY,
            Fault::EligibleIgnored => request.eligible = &self.compiled_from.1,
            Fault::KeyIgnored => request.key = Key::None,
            Fault::FirstOnTie => {
                let all: Vec<_> = request.eligible.without(tried).collect();
                let least = all.iter().map(|index| loads[*index]).min()?;
                return all.into_iter().find(|index| loads[*index] == least);
            }
            Fault::HiddenState => {
                HIDDEN.set(HIDDEN.get() + 1);
                let all: Vec<_> = request.eligible.without(tried).collect();
                return all.get(HIDDEN.get() as usize % all.len().max(1)).copied();
            }
            _ => {}
        }
        self.balancer.pick(&self.loads, &request)
    }

    pub(crate) fn pick(&mut self) -> Option<usize> {
        self.pick_with(Key::None, &BitSet::EMPTY)
    }

    pub(crate) fn pick_for(&mut self, address: IpAddr, tried: &BitSet) -> Option<usize> {
        self.pick_with(Key::Address(address), tried)
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
