//! What the consistent methods share: who of those that a key leads to may take it.
//!
//! A key leads to endpoints one after the other: round a ring, along a table, by falling score. The
//! first that is admitted takes the request. Not admitted is
//!
//! - whoever is no candidate;
//! - with `balance_factor` c: whoever has its share already. The capacity of endpoint i is
//!   ⌈c · (A + 1) · wᵢ ÷ Σw⌉, where A is what is in flight and Σw the weights of all candidates
//!   together (Mirrokni, Thorup, Zadimoghaddam 2017). The capacities sum to more than A, so there is
//!   always one with room;
//! - in slow start: the endpoint, for all but some keys. A hash of key and identity decides whether
//!   a key is one of those, so a key that has come stays, and others follow as the ramp rises.
//!
//! If that leaves nobody, slow start does not count; if there is nobody still, the bound does not
//! either. So a single endpoint always takes all.
//!
//! Cost: nothing without the option; with `balance_factor` O(n), as all loads are summed.

mod maglev;
mod modulo;
mod nginx;
mod rendezvous;
mod ring;

use subak_base::Rng;

use crate::balancer::Recipe;
use crate::hash64::hash64;
use crate::key::Key;
use crate::options::{OptionKind, OptionValue, Setting};
use crate::request::{FULL, LoadView};
use crate::rules::Pick;

pub(crate) use maglev::MaglevTable;
pub(crate) use modulo::Modulo;
pub(crate) use nginx::{NginxKey, NginxModulo};
pub(crate) use rendezvous::Rendezvous;
pub(crate) use ring::{POINTS_MAX, Ring, points};

/// Seed of the hash of keys.
const KEY_SEED: u64 = 0;

/// How much more than its share an endpoint may have in flight, in thousandths; none: no bound.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct BalanceFactor(Option<u32>);

impl BalanceFactor {
    /// No bound.
    pub const UNBOUND: BalanceFactor = BalanceFactor(None);

    /// In thousandths: from 1,010 to 10,000.
    pub fn thousandths(self) -> Option<u32> {
        self.0
    }
}

impl Setting for BalanceFactor {
    const SUMMARY: &'static str =
        "bound: an endpoint takes at most so many times its share of what is in flight";
    const KIND: OptionKind = OptionKind::Decimal { min: 1010, max: 10_000 };
    const DEFAULT: Option<OptionValue<'static>> = None;

    fn from_number(number: u32) -> Option<BalanceFactor> {
        Some(BalanceFactor(Some(number)))
    }
}

/// The 64-bit hash of a key; none of a request without one.
#[inline]
pub(crate) fn hash_of(key: Key<'_>) -> Option<u64> {
    match key {
        Key::None | Key::Bytes([]) => None,
        Key::Bytes(bytes) => Some(hash64(bytes, KEY_SEED)),
        Key::Address(address) => Some(match address.to_canonical() {
            std::net::IpAddr::V4(v4) => hash64(&v4.octets(), KEY_SEED),
            std::net::IpAddr::V6(v6) => hash64(&v6.octets(), KEY_SEED),
        }),
    }
}

/// What decides who is admitted, besides who is a candidate.
#[derive(Debug, Default)]
pub(crate) struct Admission {
    factor: BalanceFactor,
    /// A hash of each endpoint's identity.
    identities: Box<[u64]>,
}

impl Admission {
    pub(crate) fn build(recipe: &Recipe<'_>, factor: BalanceFactor) -> Admission {
        let identities = recipe.endpoints.iter();
        let identities = identities.map(|entry| hash64(entry.identity.as_bytes(), KEY_SEED));
        Admission { factor, identities: identities.collect() }
    }

    /// The endpoint that `lead` finds for a key: it gets a [`Gate`] and looks for the first endpoint
    /// that the gate admits.
    #[inline]
    pub(crate) fn choose<L: LoadView + ?Sized>(
        &self,
        pick: &Pick<'_, L>,
        hash: u64,
        lead: impl Fn(&Gate<'_, L>) -> Option<usize>,
    ) -> Option<usize> {
        let capacity = self.factor.0.map(|factor| Capacity::of(pick, factor));
        let strict = Gate { pick, admission: self, hash, capacity, thins: true };
        let found = lead(&strict);
        if found.is_some() {
            return found;
        }
        let all_keys = Gate { thins: false, ..strict };
        lead(&all_keys).or_else(|| lead(&Gate { capacity: None, ..all_keys }))
    }
}

/// Who may take one request.
#[derive(Clone, Copy)]
pub(crate) struct Gate<'a, L: ?Sized> {
    pub(crate) pick: &'a Pick<'a, L>,
    admission: &'a Admission,
    hash: u64,
    capacity: Option<Capacity>,
    thins: bool,
}

impl<L: LoadView + ?Sized> Gate<'_, L> {
    /// Whether the endpoint may take the request.
    #[inline]
    pub(crate) fn admits(&self, index: usize) -> bool {
        self.pick.is_candidate(index) && self.has_room(index) && self.has_key(index)
    }

    /// Whether there is a bound.
    pub(crate) fn is_bounded(&self) -> bool {
        self.admission.factor.0.is_some()
    }

    /// Whether the endpoint is below its capacity.
    #[inline]
    fn has_room(&self, index: usize) -> bool {
        let has_room = |capacity: Capacity| {
            capacity.is_above(self.pick.load.in_flight(index), self.pick.weight(index))
        };
        self.capacity.is_none_or(has_room)
    }

    /// Whether the key is one of those that the endpoint takes in slow start.
    #[inline]
    fn has_key(&self, index: usize) -> bool {
        if !self.thins {
            return true;
        }
        let ramp = self.pick.load.ramp(index);
        ramp >= FULL || self.is_early(index, ramp)
    }

    #[cold]
    fn is_early(&self, index: usize, ramp: u16) -> bool {
        let identity = self.admission.identities.get(index).copied().unwrap_or(0);
        let lot = Rng::new(self.hash ^ identity).below(u64::from(FULL));
        lot < u64::from(ramp)
    }

    /// An endpoint that is admitted, by the hash, by looking at all of them: where a walk has not
    /// found one in reasonable time.
    #[cold]
    pub(crate) fn scan(&self) -> Option<usize> {
        by_hash(self.hash, || self.pick.candidates().filter(|index| self.admits(*index)))
    }
}

/// What one unit of weight may have in flight.
#[derive(Clone, Copy)]
struct Capacity {
    /// c · (A + 1), in thousandths.
    total: u128,
    /// Σw.
    weights: u128,
}

impl Capacity {
    fn of<L: LoadView + ?Sized>(pick: &Pick<'_, L>, factor: u32) -> Capacity {
        let (mut in_flight, mut weights) = (0_u64, 0_u64);
        pick.candidates().for_each(|index| {
            in_flight += u64::from(pick.load.in_flight(index));
            weights += pick.weight(index);
        });
        let total = u128::from(in_flight + 1) * u128::from(factor);
        Capacity { total, weights: u128::from(weights) }
    }

    /// a < ⌈total · w ÷ Σw⌉, which is a < total · w ÷ Σw for a whole a.
    fn is_above(self, in_flight: u32, weight: u64) -> bool {
        u128::from(in_flight) * self.weights * 1000 < self.total * u128::from(weight)
    }
}

/// One of these endpoints, by the hash. Live loads may have changed between the two looks at them:
/// then there may be none at its place.
fn by_hash<I: Iterator<Item = usize>>(hash: u64, endpoints: impl Fn() -> I) -> Option<usize> {
    let count = endpoints().count() as u64;
    endpoints().nth(hash.checked_rem(count)? as usize)
}

/// The rank of each endpoint in canonical order, which does not depend on the order of the list.
pub(crate) fn ranks(recipe: &Recipe<'_>) -> Box<[u32]> {
    let mut ranks = vec![0; recipe.endpoints.len()];
    let canonical = recipe.endpoints.canonical().iter();
    canonical.zip(0..).for_each(|(index, rank)| ranks[*index as usize] = rank);
    ranks.into()
}

/// How far a walk has got before it reaches an endpoint.
pub(crate) fn steps_before(mut walk: impl Iterator<Item = usize>, index: usize) -> Option<u64> {
    let place = walk.position(|passed| passed == index);
    place.map(|place| place as u64)
}
