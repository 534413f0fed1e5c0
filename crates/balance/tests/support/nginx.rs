//! nginx's `ip_hash` as a state machine that lives as long as a request, written from its observable
//! behaviour: slow, obvious, and without tables.

use std::net::IpAddr;

/// What became of one pick.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Choice {
    /// The hash chose this endpoint.
    Hash(usize),
    /// 21 misses, or nothing to hash over: round robin is asked.
    RoundRobin,
}

/// One request that may be tried at several endpoints.
pub(crate) struct IpHashRequest {
    octets: Vec<u8>,
    hash: u32,
    misses: u32,
    tried: Vec<usize>,
}

impl IpHashRequest {
    pub(crate) fn new(client: IpAddr) -> IpHashRequest {
        let octets = match client.to_canonical() {
            IpAddr::V4(v4) => v4.octets()[..3].to_vec(),
            IpAddr::V6(v6) => v6.octets().to_vec(),
        };
        IpHashRequest { octets, hash: 89, misses: 0, tried: Vec::new() }
    }

    /// The next endpoint to try.
    pub(crate) fn choose(&mut self, weights: &[u64], eligible: impl Fn(usize) -> bool) -> Choice {
        let total: u64 = weights.iter().sum();
        if weights.len() < 2 || total == 0 {
            return Choice::RoundRobin;
        }
        let mut hash = self.hash;
        while self.misses <= 20 {
            for octet in &self.octets {
                hash = (hash * 113 + u32::from(*octet)) % 6271;
            }
            let mut slot = u64::from(hash) % total;
            let mut index = 0;
            while slot >= weights[index] {
                slot -= weights[index];
                index += 1;
            }
            if !self.tried.contains(&index) && eligible(index) {
                self.tried.push(index);
                self.hash = hash;
                return Choice::Hash(index);
            }
            self.misses += 1;
        }
        Choice::RoundRobin
    }
}
