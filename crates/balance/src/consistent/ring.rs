//! A ring of points: nginx's `hash … consistent` (ketama), pick for pick.
//!
//! Each endpoint has 160 points for each unit of weight, eligible or not. A point is the CRC-32 of
//! the endpoint's host, a zero byte, its port and the endpoint's point before, as four bytes, the
//! lowest first; the first follows on zero. Host and port are those of the name as written: the port
//! is what follows the last colon, if that is all digits; a unix socket's name is its path, and it
//! has none. A key goes to the first point that is not below the CRC-32 of the key, and so round.
//!
//! Points that cannot take the request are misses; the 21st leaves it to round robin, as in nginx,
//! unless there is a bound, which nginx has not. Endpoints beyond their capacity or in slow start are
//! passed by without being counted.
//!
//! Where two names share a point the endpoint of the lower rank has it, so that the order of the
//! list is of no importance (nginx leaves that to its sort).
//!
//! Weights: proportional, ± 160⁻¹ᐟ² or so. Cost: O(log n). At most 2²⁰ points: more is an error of
//! the configuration, and weights that change while it runs are rounded to fit.
//! Source: nginx 1.22; Cache::Memcached::Fast; Karger et al. 1997.

use std::sync::Arc;

use crate::balancer::Recipe;
use crate::chain::MISSES_MAX;
use crate::consistent::{Gate, ranks};
use crate::crc32::Crc32;
use crate::endpoints::Endpoints;
use crate::request::LoadView;
use crate::shares;

/// Points for each unit of weight.
const POINTS: u64 = 160;

/// Points on the largest ring.
pub(crate) const POINTS_MAX: usize = 1 << 20;

/// Points that a walk looks at before all endpoints are scanned.
const WALK_MAX: usize = 512;

/// Shared by all balancers compiled from one list: who is eligible does not change it.
#[derive(Clone, Debug)]
pub(crate) struct Ring(Arc<Points>);

#[derive(Debug)]
struct Points {
    /// Ascending, none twice.
    hashes: Box<[u32]>,
    /// The endpoint of each.
    owners: Box<[u32]>,
}

/// How many points the endpoints have together.
pub(crate) fn points(endpoints: &Endpoints) -> u64 {
    endpoints.iter().map(|entry| entry.weight.get() * POINTS).sum()
}

impl Ring {
    /// How many points each weight gets.
    pub(crate) fn places(weights: &[u64]) -> Vec<u64> {
        let points: Vec<u64> = weights.iter().map(|weight| weight * POINTS).collect();
        shares::limited(&points, POINTS_MAX)
    }

    /// The ring of the list; `previous`, if that is of a list with the same names and weights.
    pub(crate) fn build(recipe: &Recipe<'_>, previous: Option<&Ring>) -> Ring {
        let is_same = recipe.previous.is_some_and(|previous| {
            let (old, new) = (previous.endpoints, recipe.endpoints);
            let same = |(old, new): (&crate::Entry, &crate::Entry)| {
                old.weight == new.weight && old.name == new.name && old.identity == new.identity
            };
            old.len() == new.len() && old.iter().zip(new.iter()).all(same)
        });
        match previous {
            Some(ring) if is_same => ring.clone(),
            _ => Ring(Arc::new(Points::build(recipe))),
        }
    }

    /// The first endpoint that is admitted, from the key's point on; none after too many misses.
    #[inline]
    pub(crate) fn lead<L: LoadView + ?Sized>(
        &self,
        key: &[u8],
        gate: &Gate<'_, L>,
    ) -> Option<usize> {
        let mut misses = 0;
        for index in self.endpoints(key).take(WALK_MAX) {
            if gate.admits(index) {
                return Some(index);
            }
            misses += usize::from(!gate.pick.is_candidate(index));
            if misses == MISSES_MAX && !gate.is_bounded() {
                return None;
            }
        }
        gate.scan()
    }

    /// The endpoints of all points, from the key's on.
    pub(crate) fn endpoints(&self, key: &[u8]) -> impl Iterator<Item = usize> {
        let hash = Crc32::START.update(key).finish();
        let start = self.0.hashes.partition_point(|point| *point < hash);
        let (before, after) = self.0.owners.split_at(start);
        after.iter().chain(before).map(|index| *index as usize)
    }
}

impl Points {
    fn build(recipe: &Recipe<'_>) -> Points {
        let weights = recipe.endpoints.iter().map(|entry| entry.weight.get());
        let counts = Ring::places(&weights.collect::<Vec<_>>());
        let ranks = ranks(recipe);
        let mut points = Vec::with_capacity(counts.iter().sum::<u64>() as usize);
        for (index, (entry, count)) in recipe.endpoints.iter().zip(counts).enumerate() {
            let (host, port) = host_and_port(&entry.name);
            let base = Crc32::START.update(host).update(&[0]).update(port);
            let mut point = 0_u32;
            for _ in 0..count {
                point = base.update(&point.to_le_bytes()).finish();
                points.push((point, ranks[index], index as u32));
            }
        }
        points.sort_unstable();
        points.dedup_by_key(|(point, ..)| *point);
        Points {
            hashes: points.iter().map(|(point, ..)| *point).collect(),
            owners: points.iter().map(|(.., index)| *index).collect(),
        }
    }
}

/// A name's two parts as nginx takes them.
fn host_and_port(name: &str) -> (&[u8], &[u8]) {
    if let Some((scheme, path)) = name.split_at_checked(5)
        && scheme.eq_ignore_ascii_case("unix:")
    {
        return (path.as_bytes(), &[]);
    }
    match name.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => {
            (host.as_bytes(), port.as_bytes())
        }
        _ => (name.as_bytes(), &[]),
    }
}

#[cfg(test)]
mod tests {
    use super::host_and_port;

    #[test]
    fn a_name_has_a_host_and_maybe_a_port() {
        let parts = |name: &str| {
            let (host, port) = host_and_port(name);
            let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
            (text(host), text(port))
        };
        let pair = |host: &str, port: &str| (host.to_owned(), port.to_owned());
        assert_eq!(parts("10.0.0.2:8080"), pair("10.0.0.2", "8080"));
        assert_eq!(parts("[2001:db8::1]:80"), pair("[2001:db8::1]", "80"));
        assert_eq!(parts("10.0.0.2"), pair("10.0.0.2", ""));
        assert_eq!(parts("[2001:db8::1]"), pair("[2001:db8::1]", ""));
        assert_eq!(parts("unix:/run/app.sock"), pair("/run/app.sock", ""));
        assert_eq!(parts("UNIX:/run/8080:80"), pair("/run/8080:80", ""));
    }
}
