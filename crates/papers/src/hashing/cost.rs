//! What locating a node costs against the number of nodes (figure 12 of Ma & Chi 2022), measured in
//! nanoseconds per pick instead of drawn as n and log n.

use std::hint::black_box;
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use super::clients::Clients;
use super::printed::algorithm5_as_printed;
use super::visits::{Picker, named};

/// Numbers of nodes that are measured.
pub const NODES: [usize; 7] = [3, 10, 30, 100, 300, 1000, 10_000];

/// How the node is found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Search {
    /// nginx's hash and the walk over the weights that the paper describes.
    IpHashWalk,
    /// `ip_hash` as it serves here: a table.
    IpHashTable,
    /// `new_hash` as it serves here: binary search over prefix sums made once.
    NewHash,
    /// The paper's algorithm 5, which copies and sorts the weights for every request.
    Algorithm5AsPrinted,
}

impl Search {
    /// Every way.
    pub const ALL: [Search; 4] =
        [Search::IpHashWalk, Search::IpHashTable, Search::NewHash, Search::Algorithm5AsPrinted];

    /// As a plot names it.
    pub fn name(self) -> &'static str {
        match self {
            Search::IpHashWalk => "IP_HASH, sequential as in nginx",
            Search::IpHashTable => "ip_hash here (table)",
            Search::NewHash => "new_hash here (binary search)",
            Search::Algorithm5AsPrinted => "algorithm 5 as printed",
        }
    }

    /// As a key of results.
    pub fn key(self) -> &'static str {
        match self {
            Search::IpHashWalk => "ip_hash_walk",
            Search::IpHashTable => "ip_hash",
            Search::NewHash => "new_hash",
            Search::Algorithm5AsPrinted => "algorithm5_as_printed",
        }
    }
}

/// Nanoseconds per pick over this many nodes of weight 1, measured for about `time`: of many short
/// batches that at the lower quarter, because other work on the machine only ever adds.
pub fn pick_ns(search: Search, nodes: usize, time: Duration) -> f64 {
    const BATCHES: u32 = 40;
    let clients = Clients::Random.draw(7);
    let weights = vec![1_u32; nodes];
    let total = nodes as u32;
    let mut scratch = Vec::new();
    let compiled = match search {
        Search::IpHashTable => Some(Picker::new(&named("ip_hash"), &weights)),
        Search::NewHash => Some(Picker::new(&named("new_hash"), &weights)),
        _ => None,
    };
    let mut pick = |client: Ipv4Addr| match (search, &compiled) {
        (_, Some(picker)) => picker.pick(client).unwrap_or_default(),
        (Search::Algorithm5AsPrinted, _) => algorithm5_as_printed(client, &weights, &mut scratch),
        _ => walk(client, &weights, total),
    };
    let mut costs = Vec::new();
    for _ in 0..BATCHES {
        let (start, mut picks) = (Instant::now(), 0_u32);
        while start.elapsed() < time / BATCHES {
            for client in clients.iter().take(100) {
                black_box(pick(black_box(*client)));
            }
            picks += 100;
        }
        costs.push(start.elapsed().as_secs_f64() * 1e9 / f64::from(picks));
    }
    costs.sort_by(f64::total_cmp);
    costs[costs.len() / 4]
}

/// Algorithm 2 of the paper: nginx's hash, then the weights one after the other.
fn walk(client: Ipv4Addr, weights: &[u32], total: u32) -> usize {
    let octets = &client.octets()[..3];
    let hash = octets.iter().fold(89_u32, |hash, octet| (hash * 113 + u32::from(*octet)) % 6271);
    let mut w = hash % total.max(1);
    for (index, weight) in weights.iter().enumerate() {
        if w < *weight {
            return index;
        }
        w -= weight;
    }
    0
}

#[cfg(test)]
mod tests {
    use super::walk;
    use crate::hashing::clients::Clients;
    use crate::hashing::visits::{Picker, named};

    #[test]
    fn the_walk_ends_where_the_table_points() {
        let weights = [3, 1, 2];
        let table = Picker::new(&named("ip_hash"), &weights);
        for client in Clients::Random.draw(3) {
            assert_eq!(Some(walk(client, &weights, 6)), table.pick(client), "{client}");
        }
    }
}
