//! Builds and asks every algorithm, and the weigher, and exports that: what it does not import, they
//! do not need.

use std::cell::Cell;
use std::net::{IpAddr, Ipv4Addr};

use subak_balance::weigher::{Options, PerResource, Ppm, Report, Weigher};
use subak_balance::{
    Balancer, Endpoints, Entry, Key, LoadView, PickRequest, Previous, Recipe, Tickets, catalogue,
};
use subak_base::{BitSet, Tick, Weight};

struct Counter(Cell<u64>);

impl Tickets for Counter {
    fn draw(&self) -> u64 {
        self.0.replace(self.0.get() + 1)
    }
}

struct Loads(u32);

impl LoadView for Loads {
    fn in_flight(&self, index: usize) -> u32 {
        index as u32 & self.0
    }
}

/// The sum of the indices that all algorithms pick, through a rebuild and a retry.
#[unsafe(no_mangle)]
pub extern "C" fn probe(weight: u32, client: u32, random: u64) -> u64 {
    let entry = |number: usize| {
        let name = format!("e{number}");
        Entry::new(name.clone(), name, Weight((weight as usize + number) as u16))
    };
    let Ok(endpoints) = Endpoints::new((0..8).map(entry).collect()) else { return 0 };
    let mut sum = 0;
    for listing in catalogue::all() {
        let algorithm = listing.algorithm();
        let (all, fewer) = (BitSet::full(8), (0..5).collect::<BitSet>());
        let recipe =
            Recipe { algorithm: &algorithm, endpoints: &endpoints, eligible: &all, previous: None };
        let first = Balancer::build(recipe);
        let previous =
            Some(Previous { balancer: &first, endpoints: &endpoints, ticket: random % 9 });
        let second = Balancer::build(Recipe { eligible: &fewer, previous, ..recipe });
        let tickets = Counter(Cell::new(random % 9));
        let mut tried = BitSet::EMPTY;
        while let Some(index) = second.pick(
            &Loads(client),
            &PickRequest {
                tickets: &tickets,
                random,
                now: Tick(random),
                key: Key::Address(IpAddr::V4(Ipv4Addr::from(client))),
                eligible: &fewer,
                tried: &tried,
            },
        ) {
            sum += index as u64;
            tried.insert(index);
        }
    }
    sum
}

/// The sum of the factors of two endpoints, through a change of their loads.
#[unsafe(no_mangle)]
pub extern "C" fn probe_weigher(capacity: u64, load: u64, moment: u64) -> u64 {
    let report = |number: u64, at| {
        let used = Some(Ppm::saturating(load.wrapping_mul(number)));
        Some(Report {
            at: Tick(at),
            capacity: PerResource {
                cpu: Some(capacity.wrapping_mul(number)),
                ..Default::default()
            },
            used: PerResource { cpu: used, memory: used, disk: None, network: used },
        })
    };
    let mut weigher = Weigher::new(Options::default(), 2);
    weigher.update(&[report(1, 0), report(2, 0)], Tick(0));
    let weighed = weigher.update(&[report(2, moment), report(3, moment)], Tick(moment));
    let factors: u64 = weighed.iter().map(|weighed| u64::from(weighed.factor.get())).sum();
    factors + weigher.imbalance_ppm().unwrap_or(0)
}
