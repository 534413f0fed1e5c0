//! How often each node is visited (figures 20 and 21 of Ma & Chi 2022), by the balancers that serve
//! traffic and by the algorithm as printed.

use std::cell::Cell;
use std::net::Ipv4Addr;

use subak_balance::{
    Algorithm, Balancer, Endpoints, Entry, Key, LoadView, PickRequest, Recipe, Tickets, catalogue,
};
use subak_base::{BitSet, Tick, Weight};

use super::printed::algorithm5_as_printed;

/// How a client becomes a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Hash {
    /// nginx's `ip_hash`.
    IpHash,
    /// The paper's hash, found properly.
    NewHash,
    /// The paper's algorithm 5, letter by letter.
    Algorithm5AsPrinted,
}

impl Hash {
    /// As the paper's figures and the tables here name it.
    pub fn name(self) -> &'static str {
        match self {
            Hash::IpHash => "IP_HASH",
            Hash::NewHash => "NEW_HASH",
            Hash::Algorithm5AsPrinted => "algorithm 5 as printed",
        }
    }
}

/// Visits of every node, in order, when each client comes once.
pub fn visits(hash: Hash, weights: &[u32], clients: &[Ipv4Addr]) -> Vec<u64> {
    let mut counts = vec![0; weights.len()];
    let mut count = |node: usize| counts[node] += 1;
    match hash {
        Hash::Algorithm5AsPrinted => {
            let mut scratch = Vec::new();
            clients.iter().for_each(|client| {
                count(algorithm5_as_printed(*client, weights, &mut scratch));
            });
        }
        Hash::IpHash | Hash::NewHash => {
            let name = if hash == Hash::IpHash { "ip_hash" } else { "new_hash" };
            let picker = Picker::new(&named(name), weights);
            clients.iter().filter_map(|client| picker.pick(*client)).for_each(count);
        }
    }
    counts
}

/// An algorithm of the catalogue with its defaults.
pub(super) fn named(name: &str) -> Algorithm {
    catalogue::find(name).expect("a name of the catalogue").algorithm()
}

/// A compiled balancer over nodes that are all well and idle.
pub(super) struct Picker {
    balancer: Balancer,
    eligible: BitSet,
    tickets: Counter,
}

impl Picker {
    pub(super) fn new(algorithm: &Algorithm, weights: &[u32]) -> Picker {
        let entry = |(index, weight): (usize, &u32)| {
            let name = format!("node{index}");
            Entry::new(&name, &name, Weight(*weight as u16))
        };
        let endpoints = Endpoints::new(weights.iter().enumerate().map(entry).collect())
            .expect("every node has another name");
        let eligible = BitSet::full(weights.len());
        let recipe =
            Recipe { algorithm, endpoints: &endpoints, eligible: &eligible, previous: None };
        let balancer = Balancer::build(recipe);
        Picker { balancer, eligible, tickets: Counter(Cell::new(0)) }
    }

    #[inline]
    pub(super) fn pick(&self, client: Ipv4Addr) -> Option<usize> {
        let request = PickRequest {
            tickets: &self.tickets,
            random: 0,
            now: Tick(0),
            key: Key::Address(client.into()),
            eligible: &self.eligible,
            tried: &BitSet::EMPTY,
        };
        self.balancer.pick(&Idle, &request)
    }
}

struct Counter(Cell<u64>);

impl Tickets for Counter {
    fn draw(&self) -> u64 {
        self.0.replace(self.0.get() + 1)
    }
}

struct Idle;

impl LoadView for Idle {
    fn in_flight(&self, _: usize) -> u32 {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::{Hash, visits};
    use crate::hashing::clients::{CLIENTS, Clients};
    use crate::statistics::ChiSquare;

    #[test]
    fn both_hashes_spread_random_clients_evenly() {
        for hash in [Hash::IpHash, Hash::NewHash] {
            // 50 draws: at one in twenty, seven or more misses have a chance below 1 %.
            let uneven = (0..50)
                .map(|seed| visits(hash, &[1, 1, 1], &Clients::Random.draw(seed)))
                .filter(|counts| !ChiSquare::of(counts, &[1, 1, 1]).is_even())
                .count();
            assert!(uneven < 7, "{}: {uneven} of 50", hash.name());
        }
    }

    #[test]
    fn where_the_sum_of_weights_is_divisible_by_3_or_11_a_third_octet_decides() {
        let clients = Clients::ThirdOctetSeven.draw(1);
        let equal = visits(Hash::NewHash, &[1, 1, 1], &clients);
        assert_eq!(equal[1], 0, "{equal:?}");
        assert!(equal[0].abs_diff(500) < 60 && equal[2].abs_diff(500) < 60, "{equal:?}");
        // Of the 11 slots two are reached.
        let eleven = visits(Hash::NewHash, &[1; 11], &clients);
        assert_eq!(eleven.iter().filter(|count| **count > 0).count(), 2, "{eleven:?}");
        // Divisible by neither: the first octets count again.
        let four = visits(Hash::NewHash, &[1, 1, 1, 1], &clients);
        assert!(four.iter().all(|count| *count > 150), "{four:?}");
    }

    #[test]
    fn one_address_is_one_node() {
        for hash in [Hash::IpHash, Hash::NewHash, Hash::Algorithm5AsPrinted] {
            let counts = visits(hash, &[1, 1, 1], &Clients::OneAddress.draw(1));
            assert!(counts.contains(&(CLIENTS as u64)), "{counts:?}");
        }
    }
}
