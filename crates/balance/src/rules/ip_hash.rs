//! By the client's address, exactly where nginx's `ip_hash` sends it.
//!
//! h starts at 89; for each of the first 3 octets of an IPv4 address, or all 16 of an IPv6 address,
//! h = (113·h + octet) mod 6271. The slot h mod Σw, found by walking the weights in configured
//! order, names the endpoint; Σw counts every endpoint of the list, eligible or not. An endpoint
//! that cannot take the request is a miss: the octets are hashed again starting from the present h.
//! The 21st miss leaves the request to round robin, and so does a list of fewer than two endpoints.
//! A retry goes on from the h that chose the endpoint tried last.
//!
//! One round is the affine map h → h·113ᵏ + c (mod 6271), and c follows from the first h. So the
//! whole chain depends on the first h alone, and with nothing tried the pick is a look-up in a
//! table of 6,271 slots, one for IPv4 and one for IPv6, compiled for the eligible set. A client
//! given as v4-mapped IPv6 counts as IPv4 (nginx hashes its 16 octets).
//!
//! Retries walk the chain again from its start; see [`chain`].
//!
//! Weights: proportional. Cost: O(1); a retry walks at most 21 + tried steps.
//! Source: nginx 1.22, checked pick for pick; Ma & Chi 2022, algorithm 2 and figure 5.

use std::net::IpAddr;

use crate::balancer::Recipe;
use crate::catalogue::{Cost, Share, Traits, Wants};
use crate::chain::{self, MISSES_MAX};
use crate::key::{Key, KeySource};
use crate::request::{LoadView, PickRequest};
use crate::rotation::Rotation;
use crate::rules::{Algorithm, Pick, Rule};
use crate::score::Score;
use crate::shares;
use crate::table::Table;

const MODULUS: u32 = 6271;
const START: u32 = 89;
const FACTOR: u32 = 113;

#[derive(Debug)]
pub(crate) struct IpHash {
    /// The endpoint for each first h of an IPv4 client, or [`Table::NO_SLOT`].
    ipv4: Box<[u32]>,
    /// The same for IPv6 clients.
    ipv6: Box<[u32]>,
    wheel: Wheel,
}

impl Rule for IpHash {
    const NAME: &'static str = "ip_hash";
    const SUMMARY: &'static str = "by the client's address, where nginx would send it";
    const WHEN: &'static str = "a client must stay where it is, and nginx's placement must be kept";

    fn traits(_: &Algorithm) -> Traits {
        Traits {
            has_table: true,
            takes_changing_weights: false,
            keeps_pace: true,
            wants: Wants { key: true, ..Wants::NOTHING },
            ..Traits::of(Share::ByKey, Cost::Constant)
        }
    }

    fn key(_: &Algorithm) -> Option<&KeySource> {
        Some(&KeySource::Source)
    }

    fn places(_: &Algorithm, weights: &[u64]) -> Option<Vec<u64>> {
        Some(shares::of_hashes(weights, u64::from(MODULUS)))
    }

    fn build(recipe: &Recipe<'_>) -> IpHash {
        let wheel = Wheel::new(recipe.endpoints.iter().map(|entry| entry.weight.get()));
        let table = |round: Round| -> Box<[u32]> {
            let eligible = |index| recipe.eligible.contains(index);
            let chosen = |first| wheel.first(round.chain_from(first), eligible);
            (0..MODULUS).map(|first| chosen(first).map_or(Table::NO_SLOT, |e| e as u32)).collect()
        };
        IpHash { ipv4: table(Round::IPV4), ipv6: table(Round::IPV6), wheel }
    }

    #[inline]
    fn pick<L: LoadView + ?Sized>(&self, pick: &Pick<'_, L>) -> Option<usize> {
        let Key::Address(address) = pick.request.key else {
            return pick.next_in_rotation();
        };
        let (round, first) = Round::of(address);
        let table = if round.octets == 3 { &self.ipv4 } else { &self.ipv6 };
        let PickRequest { tried, eligible, .. } = pick.request;
        if tried.is_empty() {
            match table[first as usize] {
                Table::NO_SLOT => return pick.next_in_rotation(),
                index if eligible.contains(index as usize) => return Some(index as usize),
                _ => {}
            }
        }
        match self.wheel.is_empty() {
            true => pick.next_in_rotation(),
            false => chain::follow(pick, self.wheel.endpoints(round.chain_from(first))),
        }
    }

    fn score<L: LoadView + ?Sized>(&self, pick: &Pick<'_, L>, index: usize) -> Option<Score> {
        let Key::Address(address) = pick.request.key else {
            return pick.turn(index);
        };
        let (round, first) = Round::of(address);
        if self.wheel.is_empty() {
            return pick.turn(index);
        }
        let misses = chain::misses_before(self.wheel.endpoints(round.chain_from(first)), index)?;
        Some(Score::whole(misses, "misses of the client's chain before it, fewest first"))
    }

    fn table<'a>(&'a self, rotation: &'a Rotation) -> Option<Table<'a>> {
        Some(Table::Address { ipv4: &self.ipv4, ipv6: &self.ipv6, cycle: rotation.cycle() })
    }
}

/// One round of hashing over the octets of an address family: h → h·`factor` + c.
#[derive(Clone, Copy)]
struct Round {
    /// 113 to the power of the number of octets.
    factor: u32,
    /// What each octet is multiplied with; the last is 1.
    powers: [u32; 16],
    octets: usize,
}

impl Round {
    const IPV4: Round = Round::over(3);
    const IPV6: Round = Round::over(16);

    /// The round for a client, and h after it.
    #[inline]
    fn of(address: IpAddr) -> (Round, u32) {
        match address.to_canonical() {
            IpAddr::V4(v4) => {
                let [a, b, c, _] = v4.octets();
                (Round::IPV4, Round::IPV4.first(&[a, b, c]))
            }
            IpAddr::V6(v6) => (Round::IPV6, Round::IPV6.first(&v6.octets())),
        }
    }

    const fn over(octets: usize) -> Round {
        let mut powers = [0; 16];
        let mut power = 1;
        let mut left = octets;
        while left > 0 {
            left -= 1;
            powers[left] = power;
            power = power * FACTOR % MODULUS;
        }
        Round { factor: power, powers, octets }
    }

    /// h after the first round. At most 16 · 255 · 6270 + 89 · 6270: fits 32 bits unreduced.
    #[inline]
    fn first(&self, octets: &[u8]) -> u32 {
        debug_assert_eq!(octets.len(), self.octets);
        let sum: u32 =
            octets.iter().zip(&self.powers).map(|(octet, p)| u32::from(*octet) * p).sum();
        (START * self.factor + sum) % MODULUS
    }

    /// Every h from the first on, without end.
    fn chain_from(self, first: u32) -> impl Iterator<Item = u32> {
        let offset = first + MODULUS - START * self.factor % MODULUS;
        std::iter::successors(Some(first), move |h| Some((h * self.factor + offset) % MODULUS))
    }
}

/// The weights laid end to end, as far as any h reaches.
#[derive(Debug)]
struct Wheel {
    /// For each slot the place of its endpoint in `reachable`. A Σw above 6,271 is cut there: then
    /// h mod Σw is h.
    slots: Box<[u16]>,
    /// The endpoints that own a slot.
    reachable: Box<[u32]>,
    /// Fewer than two endpoints: round robin decides.
    is_single: bool,
}

impl Wheel {
    fn new(weights: impl ExactSizeIterator<Item = u64>) -> Wheel {
        let is_single = weights.len() < 2;
        let (mut slots, mut reachable) = (Vec::new(), Vec::new());
        for (index, weight) in weights.enumerate() {
            let room = MODULUS as usize - slots.len();
            if weight > 0 && room > 0 {
                slots.resize(slots.len() + room.min(weight as usize), reachable.len() as u16);
                reachable.push(index as u32);
            }
        }
        Wheel { slots: slots.into(), reachable: reachable.into(), is_single }
    }

    /// Whether there is nothing to hash over: round robin decides.
    fn is_empty(&self) -> bool {
        self.is_single || self.slots.is_empty()
    }

    /// The endpoints that a chain of h falls on. Not for an empty wheel.
    fn endpoints(&self, chain: impl Iterator<Item = u32>) -> impl Iterator<Item = usize> {
        chain.map(|h| {
            let place = self.slots[h as usize % self.slots.len()];
            self.reachable[usize::from(place)] as usize
        })
    }

    /// The first endpoint of the chain that is eligible, if it is found in time.
    fn first(
        &self,
        chain: impl Iterator<Item = u32>,
        eligible: impl Fn(usize) -> bool,
    ) -> Option<usize> {
        if self.is_empty() {
            return None;
        }
        self.endpoints(chain).take(MISSES_MAX).find(|index| eligible(*index))
    }
}
