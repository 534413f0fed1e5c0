//! Weights without an exact place in a compiled cycle or table: which shares are off, and by how much?
//!
//! A round robin has at most 65,536 picks in a cycle and a Maglev table a fixed number of slots; nginx's
//! `ip_hash` has 6,271 hashes and its `hash` 32,768. Shares that do not divide into so many places are
//! rounded, and small weights beside large ones the most: of 65535:65534:1 the third has one place of
//! 65,536, which is twice its share. Off the hot path: O(n) and as many steps as there are places.

use std::fmt;

use crate::catalogue::Algorithm;

/// A share is reported from a difference of one part in so many of what it should be.
const TOLERANCE: u64 = 20;

/// One endpoint whose share of the picks is not the one that its weight says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rounding {
    /// The endpoint's place in the list.
    pub index: usize,
    /// Its weight, and the sum of all.
    pub weight: (u64, u64),
    /// The places that it has instead, and how many there are.
    pub places: (u64, u64),
}

impl Rounding {
    /// The difference of both shares, in parts of the one by weight; u128, so that nothing overflows.
    fn is_beyond_tolerance(&self) -> bool {
        let (by_weight, by_places, unit) = self.crossed();
        by_weight.abs_diff(by_places) * unit > by_weight
    }

    /// Both shares over their common denominator, and the tolerance.
    fn crossed(&self) -> (u128, u128, u128) {
        let ((weight, weights), (places, all)) = (self.weight, self.places);
        let by_weight = u128::from(weight) * u128::from(all);
        let by_places = u128::from(places) * u128::from(weights);
        (by_weight, by_places, u128::from(TOLERANCE))
    }

    /// How far it is off, in parts per million of the share by weight: to find the worst.
    fn off_ppm(&self) -> u128 {
        let (by_weight, by_places, _) = self.crossed();
        by_weight.abs_diff(by_places) * 1_000_000 / by_weight.max(1)
    }
}

/// Both shares in percent: `gets 0.00153 % of the requests; its weight says 0.000763 %`.
impl fmt::Display for Rounding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (gets, due) = (Percent(self.places), Percent(self.weight));
        write!(f, "gets {gets} of the requests; its weight says {due}")
    }
}

/// A share with three significant digits.
struct Percent((u64, u64));

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Percent((part, whole)) = *self;
        let percent = part as f64 * 100.0 / whole.max(1) as f64;
        let digits = if part == 0 { 0.0 } else { (2.0 - percent.log10().floor()).clamp(0.0, 9.0) };
        write!(f, "{percent:.*} %", digits as usize)
    }
}

impl Algorithm {
    /// Endpoints that get clearly more or less than their weights say because places are whole, the one
    /// that is off the most first. Weight 0: not eligible.
    pub fn roundings(&self, weights: &[u64]) -> Vec<Rounding> {
        let sum: u64 = weights.iter().sum();
        let Some(places) = self.places(weights).filter(|_| sum > 0) else { return Vec::new() };
        let all = places.iter().sum();
        let of = |(index, (weight, places)): (usize, (&u64, u64))| Rounding {
            index,
            weight: (*weight, sum),
            places: (places, all),
        };
        let mut found: Vec<_> = weights.iter().zip(places).enumerate().map(of).collect();
        found.retain(|one| one.weight.0 > 0 && one.is_beyond_tolerance());
        found.sort_by_key(|one| (std::cmp::Reverse(one.off_ppm()), one.index));
        found
    }
}

#[cfg(test)]
mod tests {
    use crate::catalogue::{self, OptionValue};

    fn told(name: &str, options: &[(&str, OptionValue<'_>)], weights: &[u64]) -> Vec<String> {
        let listing = catalogue::find(name).unwrap();
        let algorithm = listing.configure(name, options).unwrap();
        let roundings = algorithm.roundings(weights);
        roundings.iter().map(|one| format!("{}: {one}", one.index)).collect()
    }

    #[test]
    fn the_smallest_of_three_gets_twice_its_share_of_a_cycle() {
        let twice = "2: gets 0.00153 % of the requests; its weight says 0.000763 %";
        for name in ["round_robin", "least_connections"] {
            assert_eq!(told(name, &[], &[65_535, 65_534, 1]), [twice]);
        }
        let slots = "2: gets 0.00153 % of the requests; its weight says 0.000763 %";
        assert_eq!(told("maglev", &[], &[65_535, 65_534, 1]), [slots]);
        assert_eq!(told("hash", &[], &[65_535, 65_534, 1]), [twice]);
    }

    #[test]
    fn hashes_of_nginx_leave_out_what_lies_beyond_their_last() {
        let nothing = "1: gets 0 % of the requests; its weight says 9.09 %";
        let first = "0: gets 100 % of the requests; its weight says 90.9 %";
        assert_eq!(told("ip_hash", &[], &[10_000, 1_000]), [nothing, first]);
        let method = [("method", "nginx_modulo".into())];
        assert_eq!(told("hash", &method, &[40_000, 4_000]), [nothing, first]);
    }

    #[test]
    fn weights_with_a_place_are_not_mentioned() {
        for listing in catalogue::all() {
            for weights in [&[1, 1, 1][..], &[100, 50, 1], &[60_000, 30_000], &[5, 0], &[0, 0], &[]]
            {
                let found = listing.algorithm().roundings(weights);
                // nginx's `ip_hash` has 6,271 hashes: 60,000 of them are too many.
                let is_known = listing.name == "ip_hash" && weights.first() == Some(&60_000);
                assert!(found.is_empty() != is_known, "{} {weights:?}: {found:?}", listing.name);
            }
        }
        assert_eq!(told("random", &[], &[65_535, 65_534, 1]), [""; 0], "drawn by chance: exact");
    }
}
