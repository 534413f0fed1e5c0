//! Sets of 1,000 clients: the paper's random ones, and structured ones as networks really have them.

use std::net::Ipv4Addr;

use subak_base::Rng;

/// Clients of a set, as many as the paper drew.
pub const CLIENTS: usize = 1000;

/// How the addresses of a set are made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Clients {
    /// Four random octets, as the paper's.
    Random,
    /// Random hosts of 172.16.0.0/16.
    OneNetwork,
    /// A thousand people behind one address.
    OneAddress,
    /// Random, but for a third octet of 7: the same subnet of many sites.
    ThirdOctetSeven,
}

impl Clients {
    /// Every set.
    pub const ALL: [Clients; 4] =
        [Clients::Random, Clients::OneNetwork, Clients::OneAddress, Clients::ThirdOctetSeven];

    /// As a table names it.
    pub fn name(self) -> &'static str {
        match self {
            Clients::Random => "random",
            Clients::OneNetwork => "one /16",
            Clients::OneAddress => "one address (NAT)",
            Clients::ThirdOctetSeven => "third octet 7",
        }
    }

    /// The addresses, a pure function of the seed.
    pub fn draw(self, seed: u64) -> Vec<Ipv4Addr> {
        let mut random = Rng::new(seed);
        let mut octet = |below: u64| random.below(below) as u8;
        let client = |_| {
            // The first octet of a host on the internet is 1 to 223.
            let [a, b, c, d] = [1 + octet(223), octet(256), octet(256), 1 + octet(254)];
            match self {
                Clients::Random => Ipv4Addr::new(a, b, c, d),
                Clients::OneNetwork => Ipv4Addr::new(172, 16, c, d),
                Clients::OneAddress => Ipv4Addr::new(203, 0, 113, 7),
                Clients::ThirdOctetSeven => Ipv4Addr::new(a, b, 7, d),
            }
        };
        (0..CLIENTS).map(client).collect()
    }
}
