//! May this address in? The most specific network that holds it decides.
//!
//! With an allowed network and none that holds the address it may not; with denied ones alone it may.
//! The order in which networks are written means nothing. One search in a sorted list for each length
//! of prefix that is used.

use std::net::IpAddr;

/// A network: the bits of an IPv6 address (IPv4 as v4-mapped) and how many of them count.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Network {
    bits: u128,
    length: u8,
}

impl Network {
    /// The network of an address with a prefix of so many bits, in the family's own counting.
    pub fn new(address: IpAddr, length: u8) -> Network {
        let length = match address {
            IpAddr::V4(_) => length.min(32) + 96,
            IpAddr::V6(_) => length.min(128),
        };
        Network { bits: bits(address) & mask(length), length }
    }
}

fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped().to_bits(),
        IpAddr::V6(v6) => v6.to_bits(),
    }
}

fn mask(length: u8) -> u128 {
    u128::MAX.checked_shl(128 - u32::from(length)).unwrap_or(0)
}

/// Networks of one length, sorted, with whether they are allowed.
type Prefixes = Box<[(u128, bool)]>;

/// Networks that are allowed and denied.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Networks {
    /// By length of prefix, the longest first.
    by_length: Box<[(u8, Prefixes)]>,
    /// What holds for an address of no network.
    otherwise: bool,
}

impl Networks {
    /// A network that is both allowed and denied is denied.
    pub fn new(allowed: &[Network], denied: &[Network]) -> Networks {
        let all =
            denied.iter().map(|one| (one, false)).chain(allowed.iter().map(|one| (one, true)));
        let mut all: Vec<(u8, u128, bool)> =
            all.map(|(network, may)| (network.length, network.bits, may)).collect();
        all.sort_by_key(|(length, bits, may)| (std::cmp::Reverse(*length), *bits, *may));
        all.dedup_by_key(|(length, bits, _)| (*length, *bits));
        let by_length = all.chunk_by(|one, other| one.0 == other.0);
        let list = |chunk: &[(u8, u128, bool)]| {
            (chunk[0].0, chunk.iter().map(|(_, bits, may)| (*bits, *may)).collect())
        };
        Networks { by_length: by_length.map(list).collect(), otherwise: allowed.is_empty() }
    }

    /// Whether this address may in. A process that came by unix socket has none, and may.
    pub fn may(&self, address: Option<IpAddr>) -> bool {
        address.is_none_or(|address| self.network_of(address).map_or(self.otherwise, |one| one.1))
    }

    /// The network that decides, as its length and whether it is allowed.
    fn network_of(&self, address: IpAddr) -> Option<(u8, bool)> {
        let bits = bits(address);
        self.by_length.iter().find_map(|(length, list)| {
            let wanted = bits & mask(*length);
            let found = list.binary_search_by_key(&wanted, |(bits, _)| *bits).ok()?;
            Some((*length, list[found].1))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(text: &str) -> Network {
        let (address, length) = text.split_once('/').expect("a network");
        Network::new(address.parse().expect("an address"), length.parse().expect("a length"))
    }

    fn may(allowed: &[&str], denied: &[&str], address: &str) -> bool {
        let list = |texts: &[&str]| texts.iter().map(|text| network(text)).collect::<Vec<_>>();
        let networks = Networks::new(&list(allowed), &list(denied));
        networks.may(Some(address.parse().expect("an address")))
    }

    #[test]
    fn the_most_specific_network_decides() {
        let (allowed, denied) = (["10.0.0.0/8", "10.1.2.3/32"], ["10.1.0.0/16"]);
        assert!(may(&allowed, &denied, "10.2.0.1"));
        assert!(!may(&allowed, &denied, "10.1.2.4"));
        assert!(may(&allowed, &denied, "10.1.2.3"));
        assert!(!may(&allowed, &denied, "192.0.2.1"), "only some are allowed");
        assert!(!may(&allowed, &denied, "2001:db8::1"));
        assert!(may(&[], &denied, "192.0.2.1") && may(&[], &denied, "::1"));
        assert!(!may(&[], &["::/0"], "10.0.0.1"), "IPv4 is a part of it");
        assert!(!may(&["2001:db8::/32"], &["2001:db8::/32"], "2001:db8::1"));
        assert!(may(&["0.0.0.0/0"], &[], "10.0.0.1") && !may(&["0.0.0.0/0"], &[], "::1"));
        assert!(Networks::new(&[network("10.0.0.0/8")], &[]).may(None));
    }
}
