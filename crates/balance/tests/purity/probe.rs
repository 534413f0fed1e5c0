//! Builds and asks every algorithm, and the weigher, and exports that: what it does not import, they
//! do not need.

use std::cell::Cell;
use std::net::{IpAddr, Ipv4Addr};

use std::time::Duration;
use subak_balance::weigher::{Options, PerResource, Ppm, Report, Weigher};

use subak_balance::{
    Balancer, Completion, Endpoints, Entry, Key, LoadView, PickRequest, Previous, Recipe, Tickets,
    catalogue,
};
use subak_base::{BitSet, Tick, Weight};

struct Counter(Cell<u64>);

impl Tickets for Counter {
    fn draw(&self) -> u64 {
        self.0.replace(self.0.get() + 1)
    }
}

struct Loads {
    mask: u32,
    cells: [u64; 8],
    summary: u64,
}

impl LoadView for Loads {
    fn in_flight(&self, index: usize) -> u32 {
        index as u32 & self.mask
    }

    fn cell(&self, index: usize) -> u64 {
        self.cells[index]
    }

    fn packets(&self, index: usize) -> u64 {
        index as u64
    }

    fn bytes(&self, index: usize) -> u64 {
        index as u64
    }

    fn summary(&self) -> u64 {
        self.summary
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
        let now = Tick(random);
        let mut loads = Loads { mask: client, cells: [0; 8], summary: 0 };
        while let Some(index) =
            second.pick(&loads, &request(&tickets, random, client, &fewer, &tried))
        {
            sum += index as u64;
            let elapsed = Duration::from_nanos(u64::from(client));
            let first_byte = (index > 2).then_some(elapsed);
            let completion = Completion { now, elapsed, first_byte, failed: index == 0 };
            let cell = second.on_dispatch(loads.cells[index], now);
            loads.cells[index] = second.on_complete(cell, index, &completion, &loads);
            loads.summary = second.summarise(&loads, now);
            let latency = second.latency(loads.cells[index], now, loads.summary);
            sum += latency.map_or(0, |latency| latency.subsec_nanos().into());
            tried.insert(index);
        }
        let request = request(&tickets, random, client, &fewer, &BitSet::EMPTY);
        let score = second.score(&loads, &request, 1);
        sum += score.map_or(0, |score| score.amount as u64);
        sum += second.table().map_or(0, |_| 1);
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

fn request<'a>(
    tickets: &'a Counter,
    random: u64,
    client: u32,
    eligible: &'a BitSet,
    tried: &'a BitSet,
) -> PickRequest<'a> {
    let key = Key::Address(IpAddr::V4(Ipv4Addr::from(client)));
    PickRequest { tickets, random, now: Tick(random), key, eligible, tried }
}
