//! By the client's address, with the 32-bit hash that Ma & Chi propose instead of nginx's.
//!
//! h starts at 89; for each of the first 3 octets of an IPv4 address (`octets = 4`: all of them), or
//! all 16 of an IPv6 address, h = (33·h + octet) XOR (h ≫ 16), the h on the right being the one
//! before the step, modulo 2³². The slot h mod Σw is found by binary search over the prefix sums of
//! the weights, made once for each change of the list; Σw counts every endpoint, eligible or not. An
//! endpoint that cannot take the request is a miss, and the octets are hashed again from the present
//! h; see [`chain`].
//!
//! The paper's algorithm 5 as printed sorts the weights for every request and then searches them for
//! the slot, as if they were the prefix sums: at weights 1:1:1 or 2:1:1 it sends every request to the
//! node of index 1, the second. What is kept of it is the hash.
//!
//! Weights: proportional. No table: h has 2³² values. Cost: O(log n) for each step of the chain.
//! Source: Ma & Chi 2022, algorithm 5 and figure 6.

use std::net::IpAddr;

use crate::balancer::Recipe;
use crate::catalogue::{Cost, Share, Traits, Wants};
use crate::chain;
use crate::key::{Key, KeySource};
use crate::options::{OptionKind, OptionValue, Setting};
use crate::request::LoadView;
use crate::rules::{Algorithm, Pick, Rule};
use crate::score::Score;

const START: u32 = 89;
const FACTOR: u32 = 33;

/// How many octets of an IPv4 address are hashed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Octets(u32);

impl Octets {
    /// The number: 3 or 4.
    pub fn get(self) -> usize {
        self.0 as usize
    }
}

impl Default for Octets {
    fn default() -> Octets {
        Octets(3)
    }
}

impl Setting for Octets {
    const SUMMARY: &'static str = "how many octets of an IPv4 address are hashed";
    const KIND: OptionKind = OptionKind::Integer { min: 3, max: 4 };
    const DEFAULT: Option<OptionValue<'static>> = Some(OptionValue::Integer(3));

    fn from_number(number: u32) -> Option<Octets> {
        Some(Octets(number))
    }
}

#[derive(Debug)]
pub(crate) struct NewHash {
    octets: usize,
    /// The sum of the weights up to and including each endpoint's.
    ends: Box<[u64]>,
}

impl Rule for NewHash {
    const NAME: &'static str = "new_hash";
    const SUMMARY: &'static str = "by the client's address, with the hash of Ma & Chi";
    const WHEN: &'static str =
        "as `ip_hash`, with clients spread more evenly; to compare with the paper";

    fn traits(_: &Algorithm) -> Traits {
        Traits {
            takes_changing_weights: false,
            keeps_pace: true,
            wants: Wants { key: true, ..Wants::NOTHING },
            ..Traits::of(Share::ByKey, Cost::Logarithmic)
        }
    }

    fn key(_: &Algorithm) -> Option<&KeySource> {
        Some(&KeySource::Source)
    }

    fn build(recipe: &Recipe<'_>) -> NewHash {
        let octets = match recipe.algorithm {
            Algorithm::NewHash { octets } => *octets,
            _ => Octets::default(),
        };
        let mut sum = 0;
        let ends = recipe.endpoints.iter().map(|entry| {
            sum += entry.weight.get();
            sum
        });
        NewHash { octets: octets.get(), ends: ends.collect() }
    }

    #[inline]
    fn pick<L: LoadView + ?Sized>(&self, pick: &Pick<'_, L>) -> Option<usize> {
        match pick.request.key {
            Key::Address(client) if self.total() > 0 && self.ends.len() > 1 => {
                chain::follow(pick, self.endpoints(&HashedOctets::of(client, self.octets)))
            }
            _ => pick.next_in_rotation(),
        }
    }

    fn score<L: LoadView + ?Sized>(&self, pick: &Pick<'_, L>, index: usize) -> Option<Score> {
        match pick.request.key {
            Key::Address(client) if self.total() > 0 && self.ends.len() > 1 => {
                let octets = HashedOctets::of(client, self.octets);
                let misses = chain::misses_before(self.endpoints(&octets), index)?;
                Some(Score::whole(misses, "misses of the client's chain before it, fewest first"))
            }
            _ => pick.turn(index),
        }
    }
}

impl NewHash {
    fn total(&self) -> u64 {
        self.ends.last().copied().unwrap_or(0)
    }

    /// The endpoints that a client's chain of hashes falls on. Not for weights that sum to 0.
    fn endpoints(&self, octets: &HashedOctets) -> impl Iterator<Item = usize> {
        let total = self.total();
        let hashes = std::iter::successors(Some(octets.hash(START)), |h| Some(octets.hash(*h)));
        hashes.map(move |h| {
            let slot = u64::from(h) % total;
            self.ends.partition_point(|end| *end <= slot)
        })
    }
}

/// What is hashed of a client's address.
#[derive(Clone, Copy)]
struct HashedOctets {
    all: [u8; 16],
    count: usize,
}

impl HashedOctets {
    #[inline]
    fn of(client: IpAddr, of_ipv4: usize) -> HashedOctets {
        let mut all = [0; 16];
        match client.to_canonical() {
            IpAddr::V4(v4) => {
                all[..4].copy_from_slice(&v4.octets());
                HashedOctets { all, count: of_ipv4 }
            }
            IpAddr::V6(v6) => HashedOctets { all: v6.octets(), count: 16 },
        }
    }

    /// h after one more round.
    #[inline]
    fn hash(&self, h: u32) -> u32 {
        self.all[..self.count]
            .iter()
            .fold(h, |h, octet| h.wrapping_mul(FACTOR).wrapping_add(u32::from(*octet)) ^ h >> 16)
    }
}
